"""Distances between the rows of two matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from converters.tf.load.onnx.context import Context, Handler, Result
from converters.tf.load.saved_model.replay import Refused


def squared(x: Any, y: Any) -> Any:
    """Returns the squared Euclidean distances of rows, `[rows of x, rows of y]`."""
    return tf.reduce_sum(tf.math.squared_difference(x[:, None, :], y[None, :, :]), -1)


def _distances(ctx: Context) -> Result:
    """Differences are squared, while onnxruntime subtracts products, which loses digits."""
    kind = ctx.text("metric", "sqeuclidean", ["euclidean", "sqeuclidean"])
    if ctx.rank(0) != 2 or ctx.rank(1) != 2 or ctx.shape(0)[1] != ctx.shape(1)[1]:
        raise Refused(f"rows of the shapes {ctx.shape(0)} and {ctx.shape(1)}")
    y = squared(ctx.form(0), ctx.form(1))
    shape = (ctx.shape(0)[0], ctx.shape(1)[0])
    return ctx.result(tf.sqrt(y) if kind == "euclidean" else y, None, shape)


OPS: Mapping[str, Handler] = {"com.microsoft.CDist": _distances}
