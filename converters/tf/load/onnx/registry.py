"""Every operator of ONNX that is supported, and why some others are not."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf.load.onnx import (
    agreed_axes,
    agreed_images,
    agreed_places,
    agreed_sizes,
    boxes,
    control,
    distances,
    elementwise,
    features,
    fused,
    grids,
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
    support_vectors,
    trees,
    windows,
    words,
)
from converters.tf.load.onnx.agreed import Agreed, is_given
from converters.tf.load.onnx.context import Context, Handler, Result

_FAMILIES = (
    boxes,
    control,
    distances,
    elementwise,
    features,
    fused,
    grids,
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
    support_vectors,
    trees,
    windows,
    words,
)

HANDLERS: Mapping[str, Handler] = {
    op: handler for family in _FAMILIES for op, handler in family.OPS.items()
}

# Operators of which calls may give an axis or a size, and the places of these operands.
AGREED: Mapping[str, tuple[tuple[int, ...], Agreed]] = {
    **agreed_axes.OPS,
    **agreed_images.OPS,
    **agreed_places.OPS,
    **agreed_sizes.OPS,
}


def computed(ctx: Context) -> Result:
    """Returns the results of a node, by its operands and by the shapes that the file states."""
    op = ctx.node.op
    plain = HANDLERS[op]
    places, agreed = AGREED.get(op, ((), None))
    stated = any(shape is not None for shape in ctx.node.shapes)
    if agreed is None or not stated or not any(is_given(ctx, i) for i in places):
        return plain(ctx)
    return agreed(ctx, plain)


_RANDOM = "random numbers"
_SEQUENCES = "lists of tensors"
_TRAINING = "training; a crate only predicts"
_TRAINED = ("Adagrad", "Adam", "Gradient", "Momentum")

REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike"), _RANDOM),
    **dict.fromkeys(("RandomUniform", "RandomUniformLike"), _RANDOM),
    **dict.fromkeys(("SequenceAt", "SequenceConstruct", "SplitToSequence"), _SEQUENCES),
    **dict.fromkeys(("ConcatFromSequence", "SequenceEmpty", "SequenceInsert"), _SEQUENCES),
    **dict.fromkeys(("SequenceErase", "SequenceLength", "SequenceMap"), _SEQUENCES),
    **dict.fromkeys((f"ai.onnx.preview.training.{op}" for op in _TRAINED), _TRAINING),
    "ImageDecoder": "the file of an image; give the model its pixels",
    "com.microsoft.DynamicQuantizeLSTM": "quantized by the range of each call; leave LSTM out of "
    "the operators that are quantized (op_types_to_quantize)",
    "ai.onnx.ml.ZipMap": "a list of dictionaries; export with options={'zipmap': False}",
}
