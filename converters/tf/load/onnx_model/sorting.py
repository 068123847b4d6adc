"""Operators that order elements, and those that write them to places of a constant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array
from converters.tf.load.onnx_model.context import Context, Handler, Result, axis_of
from converters.tf.load.onnx_model.values import Known
from converters.tf.load.replay import Refused

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
    data, places, updates, meet = _constants(ctx)
    for at in np.ndindex(places.shape[:-1]):
        to = tuple(int(i) for i in places[at])
        data[to] = meet(data[to], updates[at])
    return Known(data)


def _scatter_elements(ctx: Context) -> Result:
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
