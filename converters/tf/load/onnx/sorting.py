"""Operators that order elements, and those that write them to places."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array, Batch
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
    count = ctx.number(1) if ctx.node.version >= 10 else int(ctx.attr("k"))
    largest = bool(ctx.attr("largest", 1))
    order = (*(i for i in range(rank) if i != axis), axis)
    x = ctx.form(0, order)
    if x.dtype == tf.uint64:
        places = tf.math.top_k(_ranks(x, largest), count).indices
        values = tf.gather(x, places, batch_dims=rank - 1, axis=rank - 1)
        return [ctx.result(y, order) for y in (values, tf.cast(places, tf.int64))]
    falls = x if largest else -1 - x if x.dtype.is_integer else -x
    values, places = tf.math.top_k(falls, count)
    if not largest:
        values = -1 - values if x.dtype.is_integer else -values
    return [ctx.result(y, order) for y in (values, tf.cast(places, tf.int64))]


def _ranks(x: Any, largest: bool) -> Any:
    """Returns numbers of int64 that rise, or fall, with those of uint64."""
    turned = tf.bitwise.bitwise_xor(tf.cast(x, tf.int64), np.iinfo(np.int64).min)
    return turned if largest else -1 - turned


def _constants(ctx: Context) -> tuple[Array, Array, Array, Callable[[Any, Any], Any]]:
    """Returns what is written to, places, what is written, and how it meets what was there."""
    reduction = ctx.text("reduction", "none", list(_REDUCTIONS))
    data, places, updates = (ctx.array(i) for i in range(3))
    return data.copy(), places, updates, _REDUCTIONS[reduction]


def _scatter_nd(ctx: Context) -> Result:
    if any(isinstance(ctx.value(i), Tensor) for i in range(3)):
        return _written(ctx)
    data, places, updates, meet = _constants(ctx)
    for at in np.ndindex(places.shape[:-1]):
        to = tuple(int(i) for i in places[at])
        data[to] = meet(data[to], updates[at])
    return Known(data)


# What is there already and what is written, put together.
_MEETING: Mapping[str, Callable[..., Any]] = {
    "none": tf.tensor_scatter_nd_update,
    "add": tf.tensor_scatter_nd_add,
    "max": tf.tensor_scatter_nd_max,
    "min": tf.tensor_scatter_nd_min,
}
# Numbers that a product of computed places may have for a while.
_MOST_FACTORS = 1 << 22


def _written(ctx: Context) -> Result:
    """Writes to places that are constants or computed."""
    reduction = ctx.text("reduction", "none", list(_REDUCTIONS))
    shape, depth = ctx.shape(0), fixed(ctx.shape(1)[-1], "the number of axes")
    sizes = [fixed(d, "the size of what is written to") for d in shape[:depth]]
    if depth > len(shape):
        raise Refused(f"places of {depth} axes in {len(shape)}")
    if isinstance(ctx.value(1), Known):
        places = ctx.array(1)
        if np.any(places < -np.array(sizes)) or np.any(places >= sizes):
            raise Refused(f"places outside of {sizes}")
        if reduction == "none":
            return _chosen(ctx, places, sizes)
    at = ctx.form(1)
    at = tf.where(at < 0, at + tf.constant(sizes, at.dtype), at)
    return ctx.result(_met(reduction, ctx.form(0), at, ctx.form(2)), None, shape)


def _met(reduction: str, x: Any, at: Any, updates: Any) -> Any:
    """Returns a tensor with what is written to places, negative ones of which there are none."""
    if reduction != "mul":
        return _MEETING[reduction](x, at, updates)
    depth = int(at.shape[-1])
    sizes, rest = x.shape.as_list()[:depth], x.shape.as_list()[depth:]
    count = math.prod(at.shape.as_list()[:-1])
    if math.prod(sizes) * count * math.prod(rest) > _MOST_FACTORS:
        raise Refused(f"{count} factors for {math.prod(sizes)} places")
    steps = np.cumprod([1, *sizes[:0:-1]])[::-1]
    number = tf.reduce_sum(at * tf.constant(steps, at.dtype), -1)
    hit = tf.one_hot(tf.reshape(number, [count]), math.prod(sizes), True, False, dtype=tf.bool)
    hit = tf.reshape(hit, [count, math.prod(sizes), *(1,) * len(rest)])
    factors = tf.reshape(updates, [count, 1, *rest])
    product = tf.reduce_prod(tf.where(hit, factors, tf.ones_like(factors)), 0)
    return x * tf.reshape(product, x.shape)


def _chosen(ctx: Context, places: Array, sizes: list[int]) -> Result:
    """Chooses between what was there and what is written, by places that are constants."""
    shape, depth = ctx.shape(0), places.shape[-1]
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


def _written_elements(ctx: Context) -> Result:
    """Writes at places along one axis that are computed."""
    reduction = ctx.text("reduction", "none", list(_REDUCTIONS))
    shape, places_shape = ctx.shape(0), ctx.shape(1)
    axis = axis_of(int(ctx.attr("axis", 0)), len(shape))
    if any(isinstance(d, Batch) for d in shape):
        return _written_rows(ctx, reduction, axis)
    size = fixed(shape[axis], "the size of what is written to")
    sizes = [fixed(d, "the number of places") for d in places_shape]
    at = ctx.form(1)
    at = tf.where(at < 0, at + size, at)
    grids = np.meshgrid(*(np.arange(n) for n in sizes), indexing="ij")
    index = [at if i == axis else tf.constant(grid, at.dtype) for i, grid in enumerate(grids)]
    y = _met(reduction, ctx.form(0), tf.stack(index, -1), ctx.form(2))
    return ctx.result(y, None, shape)


def _written_rows(ctx: Context, reduction: str, axis: int) -> Result:
    """Writes in every row of each example."""
    if reduction not in _MEETING:
        raise Refused(f"reduction={reduction!r} in each example")
    shape, places_shape = ctx.shape(0), ctx.shape(1)
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
    y = _MEETING[reduction](data, indices, updates)
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


def _cached(ctx: Context) -> Result:
    """Writes rows of a sequence into a cache, from a place on that each example has."""
    circular = ctx.text("mode", "linear", ["linear", "circular"]) == "circular"
    shape, part = ctx.shape(0), ctx.shape(1)
    axis = axis_of(int(ctx.attr("axis", -2)), len(shape))
    if axis == 0:
        raise Refused("a cache along the batch")
    size, count = (fixed(s[axis], "the length of a cache") for s in (shape, part))
    along = [1] * len(shape)
    along[axis] = count
    at = tf.reshape(tf.range(count, dtype=tf.int64), along)
    if ctx.has(2):
        start = reshaped(tf.cast(ctx.form(2), tf.int64), [part[0], *(1,) * (len(shape) - 1)])
        at = at + start
    at = tf.math.floormod(at, size) if circular else at
    places = ctx.result(tf.broadcast_to(at, tf.shape(ctx.form(1))), None, part)
    return _written_elements(ctx.inner(ctx.value(0), places, ctx.value(1), axis=axis))


OPS: dict[str, Handler] = {
    "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "TensorScatter": _cached,
    "TopK": _top_k,
}
