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
)

HANDLERS: Mapping[str, Handler] = {
    op: handler for family in _FAMILIES for op, handler in family.OPS.items()
}

_RANDOM = "random numbers"
_SIZE = "the size of its result depends on what the model is given"
_STRINGS = "strings"
_SEQUENCES = "lists of tensors"

REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike"), _RANDOM),
    **dict.fromkeys(("RandomUniform", "RandomUniformLike"), _RANDOM),
    "NonMaxSuppression": f"{_SIZE}; export the model without it, and suppress boxes afterwards",
    **dict.fromkeys(
        ("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"), _STRINGS
    ),
    **dict.fromkeys(("SequenceAt", "SequenceConstruct", "SplitToSequence"), _SEQUENCES),
    **dict.fromkeys(("ConcatFromSequence", "SequenceEmpty", "SequenceInsert"), _SEQUENCES),
    "com.microsoft.DynamicQuantizeLSTM": "quantized by the range of each call; leave LSTM out of "
    "the operators that are quantized (op_types_to_quantize)",
    "ai.onnx.ml.ZipMap": "a list of dictionaries; export with options={'zipmap': False}",
}
