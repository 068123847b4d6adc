"""The emitters of all ops, by class; a `Reshape` moves nothing and has none."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf import ir
from converters.tf.emit.context import Emit
from converters.tf.emit.ops import (
    control,
    conv,
    custom,
    dynamic,
    elementwise,
    image,
    matrix,
    moving,
    norm,
    quantized,
    random,
    reduction,
    sequence,
    text,
    written,
)

OPS: Mapping[type[ir.Op], Emit] = {
    **control.OPS,
    **conv.OPS,
    **custom.OPS,
    **dynamic.OPS,
    **elementwise.OPS,
    **image.OPS,
    **matrix.OPS,
    **moving.OPS,
    **norm.OPS,
    **quantized.OPS,
    **random.OPS,
    **reduction.OPS,
    **sequence.OPS,
    **text.OPS,
    **written.OPS,
}
