"""Every operator of ONNX that is supported, and why some others are not."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf.load.onnx import (
    control,
    elementwise,
    fused,
    indexing,
    learned,
    norms,
    pools,
    quantized,
    recurrent,
    reductions,
    resizing,
    sampling,
    shapes,
    sorting,
    spectra,
    trees,
    windows,
    words,
)
from converters.tf.load.onnx.context import Handler

_FAMILIES = (
    control,
    elementwise,
    fused,
    indexing,
    learned,
    norms,
    pools,
    quantized,
    recurrent,
    reductions,
    resizing,
    sampling,
    shapes,
    sorting,
    spectra,
    trees,
    windows,
    words,
)

HANDLERS: Mapping[str, Handler] = {
    op: handler for family in _FAMILIES for op, handler in family.OPS.items()
}

_RANDOM = "random numbers"
_STRINGS = "strings"
_SEQUENCES = "lists of tensors"
_OPTIONALS = "values that may be absent"
_TRAINING = "training; a crate only predicts"
_TRAINED = ("Adagrad", "Adam", "Gradient", "Momentum")

REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike"), _RANDOM),
    **dict.fromkeys(("RandomUniform", "RandomUniformLike"), _RANDOM),
    **dict.fromkeys(("StringConcat", "StringSplit"), _STRINGS),
    **dict.fromkeys(("SequenceAt", "SequenceConstruct", "SplitToSequence"), _SEQUENCES),
    **dict.fromkeys(("ConcatFromSequence", "SequenceEmpty", "SequenceInsert"), _SEQUENCES),
    **dict.fromkeys(("SequenceErase", "SequenceLength", "SequenceMap"), _SEQUENCES),
    **dict.fromkeys(("Optional", "OptionalGetElement", "OptionalHasElement"), _OPTIONALS),
    **dict.fromkeys((f"ai.onnx.preview.training.{op}" for op in _TRAINED), _TRAINING),
    "ImageDecoder": "the file of an image; give the model its pixels",
    "com.microsoft.DynamicQuantizeLSTM": "quantized by the range of each call; leave LSTM out of "
    "the operators that are quantized (op_types_to_quantize)",
    "ai.onnx.ml.ZipMap": "a list of dictionaries; export with options={'zipmap': False}",
}
