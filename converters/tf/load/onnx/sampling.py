"""Elements of images at places that are computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from converters.tf.load.onnx.context import Context, Handler, Result, fixed, reshaped
from converters.tf.load.saved_model.replay import Refused


def _grid_sample(ctx: Context) -> Result:
    """Mixes the pixels around places that are -1 at one end of an axis and 1 at the other."""
    mode = ctx.text("mode", "linear", ["linear", "bilinear", "nearest"])
    outside = ctx.text("padding_mode", "zeros", ["zeros", "border"])
    if ctx.rank(0) != 4 or ctx.rank(1) != 4:
        raise Refused("a grid over images of other than two axes")
    batch = ctx.shape(0)[0]
    channels, rows, columns = ctx.sizes(0, "the size of an image")
    if ctx.shape(1)[0] != batch:
        raise Refused("a grid for another batch")
    places = [fixed(d, "the size of a grid") for d in ctx.shape(1)[1:3]]
    count = places[0] * places[1]
    flat = reshaped(ctx.last(0), [batch, rows * columns, channels])
    grid = reshaped(ctx.form(1), [batch, count, 2])
    ends = bool(ctx.attr("align_corners", 0))

    def at(axis: int, size: int) -> Any:
        g = grid[:, :, axis]
        x = (g + 1.0) * ((size - 1) / 2) if ends else ((g + 1.0) * size - 1.0) / 2.0
        return tf.clip_by_value(x, 0.0, size - 1.0) if outside == "border" else x

    x, y = at(0, columns), at(1, rows)

    def taken(row: Any, column: Any) -> Any:
        """Returns the pixels at whole places; 0 outside of the image."""
        r, c = tf.clip_by_value(row, 0.0, rows - 1.0), tf.clip_by_value(column, 0.0, columns - 1.0)
        pixels = tf.gather(flat, tf.cast(r * columns + c, tf.int32), batch_dims=1, axis=1)
        inside = tf.logical_and(tf.equal(r, row), tf.equal(c, column))
        return pixels * tf.cast(inside, tf.float32)[:, :, None]

    if mode == "nearest":
        found = taken(tf.round(y), tf.round(x))
    else:
        top, left = tf.floor(y), tf.floor(x)
        down, right = (y - top)[:, :, None], (x - left)[:, :, None]
        above = taken(top, left) * (1.0 - right) + taken(top, left + 1.0) * right
        below = taken(top + 1.0, left) * (1.0 - right) + taken(top + 1.0, left + 1.0) * right
        found = above * (1.0 - down) + below * down
    return ctx.result_last(reshaped(found, [batch, *places, channels]))


OPS: Mapping[str, Handler] = {"GridSample": _grid_sample}
