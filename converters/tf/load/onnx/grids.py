"""Places in images that an affine map gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir import Dim
from converters.tf.ir.expressions import is_open
from converters.tf.ir.symbolic import of_shape, product
from converters.tf.load.onnx.context import Context, Handler, Result, bounded, whole
from converters.tf.load.saved_model.replay import Refused


def _affine(ctx: Context) -> Result:
    """Maps the places of the pixels of an image, or of a volume, whose ends are -1 and 1."""
    batch, rank, columns = ctx.shape(0)
    first, _, *spatial = bounded(list(ctx.dims(1).ravel()))
    if rank not in (2, 3) or len(spatial) != rank or columns != rank + 1:
        raise Refused(f"a map of {rank} x {columns} for {len(spatial)} axes")
    if first != batch:
        raise Refused("sizes of another batch than that of the maps")
    sizes = [whole(dim, "a size of an image") for dim in spatial]
    ends = bool(ctx.attr("align_corners", 0))
    theta = ctx.form(0)
    places = []
    # Maps name the last axis first.
    for axis in reversed(range(rank)):
        along = [-1 if i == axis else 1 for i in range(rank)]
        places.append(tf.cast(tf.reshape(_along(ctx, sizes[axis], ends), along), theta.dtype))
    places.append(tf.ones([1] * rank, theta.dtype))
    full = sum(places[1:-1], places[0]) * 0
    rows = tf.stack([place + full for place in places], -1)
    flat = ctx.reshaped(rows, [product(sizes), columns])
    found = tf.matmul(flat[None], theta, transpose_b=True)
    shape: list[Dim] = [batch, *sizes, rank]
    return ctx.result(ctx.reshaped(found, shape), None, shape)


def _along(ctx: Context, size: int, ends: bool) -> Any:
    """Returns the places of an axis, float32; at the ends, or in the middle of the pixels."""
    if is_open(size):
        many = ctx.session.symbol(of_shape((size,), "int32"))[0]
        number, count = tf.cast(tf.range(many), tf.float32), tf.cast(many, tf.float32)
    else:
        count = np.float32(size)
        number = tf.constant(np.arange(size, dtype=np.float32))
    if ends:
        return number * (2.0 / tf.maximum(count - 1.0, 1.0)) - 1.0
    return (number * 2.0 + 1.0) / count - 1.0


OPS: Mapping[str, Handler] = {"AffineGrid": _affine}
