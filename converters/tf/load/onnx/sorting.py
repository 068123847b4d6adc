"""Operators that order elements, and those that write them to places."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array
from converters.tf.load.onnx.context import (
    Context,
    Handler,
    Result,
    axis_of,
    fixed,
    reshaped,
)
from converters.tf.load.onnx.values import Known, Tensor
from converters.tf.load.saved_model.replay import Refused

_REDUCTIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "none": lambda _, new: new,
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
}


def _top_k(ctx: Context) -> Result:
    """The order of the smallest is that of the largest of what falls as they rise."""
    rank = ctx.rank(0)
    if not rank:
        raise Refused("a tensor without axes")
    axis = ctx.axis(rank, default=-1)
    count = ctx.ints(1)[0] if ctx.node.version >= 10 else int(ctx.attr("k"))
    largest = bool(ctx.attr("largest", 1))
    order = (*(i for i in range(rank) if i != axis), axis)
    x = ctx.form(0, order)
    falls = x if largest else -1 - x if x.dtype.is_integer else -x
    values, places = tf.math.top_k(falls, count)
    if not largest:
        values = -1 - values if x.dtype.is_integer else -values
    return [ctx.result(y, order) for y in (values, tf.cast(places, tf.int64))]


def _constants(ctx: Context) -> tuple[Array, Array, Array, Callable[[Any, Any], Any]]:
    """Returns what is written to, places, what is written, and how it meets what was there."""
    reduction = ctx.text("reduction", "none", list(_REDUCTIONS))
    data, places, updates = (ctx.array(i) for i in range(3))
    return data.copy(), places, updates, _REDUCTIONS[reduction]


def _scatter_nd(ctx: Context) -> Result:
    if any(isinstance(ctx.value(i), Tensor) for i in (0, 2)):
        return _written(ctx)
    data, places, updates, meet = _constants(ctx)
    for at in np.ndindex(places.shape[:-1]):
        to = tuple(int(i) for i in places[at])
        data[to] = meet(data[to], updates[at])
    return Known(data)


# What is there already and what is written, put together.
_MEETING = {
    "add": tf.tensor_scatter_nd_add,
    "max": tf.tensor_scatter_nd_max,
    "min": tf.tensor_scatter_nd_min,
}


def _written(ctx: Context) -> Result:
    """Chooses between what was there and what is written, by places that are constants."""
    reduction = ctx.text("reduction", "none", ["none", *_MEETING])
    places, shape = ctx.array(1), ctx.shape(0)
    depth = places.shape[-1]
    sizes = [fixed(d, "the size of what is written to") for d in shape[:depth]]
    if depth > len(shape) or np.any(places < -np.array(sizes)) or np.any(places >= sizes):
        raise Refused(f"places outside of {sizes}")
    if reduction != "none":
        places = tf.constant(np.where(places < 0, places + sizes, places))
        return ctx.result(_MEETING[reduction](ctx.form(0), places, ctx.form(2)), None, shape)
    rest = tuple(range(depth, len(shape)))
    order = (*rest, *range(depth))
    kept = [shape[axis] for axis in rest]
    lead = places.ndim - 1
    update_order = (*range(lead, lead + len(rest)), *range(lead))
    count = math.prod(places.shape[:-1])
    rows = reshaped(ctx.form(0, order), [*kept, math.prod(sizes)])
    updates = reshaped(ctx.form(2, update_order), [*kept, count])
    chosen = np.arange(math.prod(sizes)).reshape(sizes)
    for number, at in enumerate(np.ndindex(places.shape[:-1])):
        chosen[tuple(places[at])] = math.prod(sizes) + number
    y = tf.gather(tf.concat([rows, updates], -1), chosen.ravel(), axis=len(rest))
    return ctx.result(reshaped(y, [*kept, *sizes]), order, shape)


_WRITES: Mapping[str, Callable[..., Any]] = {
    "none": tf.tensor_scatter_nd_update,
    "add": tf.tensor_scatter_nd_add,
    "max": tf.tensor_scatter_nd_max,
    "min": tf.tensor_scatter_nd_min,
}


def _written_elements(ctx: Context) -> Result:
    """Writes at places along one axis that are computed, in every row of each example."""
    write = _WRITES[ctx.text("reduction", "none", list(_WRITES))]
    shape, places_shape = ctx.shape(0), ctx.shape(1)
    axis = axis_of(int(ctx.attr("axis", 0)), len(shape))
    others = [i for i in range(len(shape)) if i != axis]
    if axis == 0 or any(shape[i] != places_shape[i] for i in others):
        raise Refused("places along the batch, or for a part of the other axes")
    size = fixed(shape[axis], "the size of what is written to")
    count = fixed(places_shape[axis], "the number of places")
    order = (*others, axis)
    inner = math.prod(fixed(shape[i], "the size of what is written to") for i in others[1:])
    data = reshaped(ctx.form(0, order), [shape[0], inner, size])
    places, updates = (reshaped(ctx.form(i, order), [shape[0], inner, count]) for i in (1, 2))
    places = tf.where(places < 0, places + size, places)
    number, row = (
        tf.broadcast_to(tf.reshape(tf.range(many), form), tf.shape(places))
        for many, form in ((tf.shape(data)[0], [-1, 1, 1]), (inner, [1, -1, 1]))
    )
    indices = tf.stack([tf.cast(number, places.dtype), tf.cast(row, places.dtype), places], -1)
    y = write(data, indices, updates)
    return ctx.result(reshaped(y, [shape[i] for i in order]), order, shape)


def _scatter_elements(ctx: Context) -> Result:
    if any(isinstance(ctx.value(i), Tensor) for i in range(3)):
        return _written_elements(ctx)
    data, places, updates, meet = _constants(ctx)
    axis = axis_of(int(ctx.attr("axis", 0)), data.ndim)
    for at in np.ndindex(places.shape):
        to = (*at[:axis], int(places[at]), *at[axis + 1 :])
        data[to] = meet(data[to], updates[at])
    return Known(data)


OPS: dict[str, Handler] = {
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "TopK": _top_k,
}
