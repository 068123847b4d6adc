"""Reductions and the places of largest elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir import Dim
from converters.tf.load.onnx.context import Context, Handler, Result, fixed
from converters.tf.load.onnx.shapes import without
from converters.tf.load.onnx.values import Known
from converters.tf.load.saved_model.replay import Refused

Function = Callable[..., Any]


def _nothing(x: Any) -> Any:
    return x


def _reduce(reduce: Function, before: Function = _nothing, after: Function = _nothing) -> Handler:
    """Returns the handler of a reduction; axes are an attribute in old operators."""

    def handler(ctx: Context) -> Result:
        rank = ctx.rank(0)
        axes = ctx.axes(1, rank)
        if not axes:
            if ctx.attr("noop_with_empty_axes", 0):
                return ctx.value(0)
            axes = list(range(rank))
        keep = bool(ctx.attr("keepdims", 1))
        order = ctx.order(0)
        x = before(ctx.form(0, order))
        if x.dtype == tf.bool:
            return ctx.result(
                _OF_BOOLS[reduce](x, [order.index(a) for a in axes], keepdims=keep),
                order if keep else without(order, axes),
            )
        if 0 in [ctx.shape(0)[a] for a in axes] and reduce in _OF_NOTHING:
            sizes = enumerate(ctx.shape(0))
            shape = [1 if i in axes else d for i, d in sizes if keep or i not in axes]
            return _filled(shape, x.dtype, _OF_NOTHING[reduce])
        y = after(reduce(x, [order.index(a) for a in axes], keepdims=keep))
        return ctx.result(y, order if keep else without(order, axes))

    return handler


def _filled(shape: Sequence[Dim], dtype: Any, number: float) -> Known:
    """Returns what a reduction of no elements gives."""
    full = [fixed(d, "the size of a reduction of nothing") for d in shape]
    if dtype.is_integer:
        number = dtype.min if number < 0 else dtype.max
    return Known(np.full(full, number, dtype.as_numpy_dtype))


def _log_sum_exp(x: Any, axes: list[int], keepdims: bool) -> Any:
    most = tf.reduce_max(x, axes, keepdims=True)
    total = tf.math.log(tf.reduce_sum(tf.exp(x - most), axes, keepdims=True)) + most
    return total if keepdims else tf.squeeze(total, axes)


def _arg(function: Function) -> Handler:
    def handler(ctx: Context) -> Result:
        rank = ctx.rank(0)
        axis = ctx.axis(rank)
        order = ctx.order(0)
        x, place = ctx.form(0, order), order.index(axis)
        backwards = bool(ctx.attr("select_last_index", 0))
        y = function(tf.reverse(x, [place]) if backwards else x, place, output_type=tf.int64)
        if backwards:
            size = x.shape[place]
            if size is None:
                raise Refused("a place along the batch")
            y = tf.cast(size - 1, tf.int64) - y
        if ctx.attr("keepdims", 1):
            return ctx.result(tf.expand_dims(y, place), order)
        return ctx.result(y, without(order, [axis]))

    return handler


def _cumulative(function: Function) -> Handler:
    def handler(ctx: Context) -> Result:
        rank = ctx.rank(0)
        axis = ctx.ints(1)[0] % max(rank, 1)
        order = ctx.order(0)
        options = {
            "exclusive": bool(ctx.attr("exclusive", 0)),
            "reverse": bool(ctx.attr("reverse", 0)),
        }
        return ctx.result(function(ctx.form(0, order), order.index(axis), **options), order)

    return handler


_OF_NOTHING = {tf.reduce_max: -np.inf, tf.reduce_min: np.inf, _log_sum_exp: -np.inf}
_OF_BOOLS = {tf.reduce_max: tf.reduce_any, tf.reduce_min: tf.reduce_all}

OPS: Mapping[str, Handler] = {
    "ArgMax": _arg(tf.argmax),
    "ArgMin": _arg(tf.argmin),
    "CumProd": _cumulative(tf.math.cumprod),
    "CumSum": _cumulative(tf.cumsum),
    "ReduceL1": _reduce(tf.reduce_sum, before=tf.abs),
    "ReduceL2": _reduce(tf.reduce_sum, before=tf.square, after=tf.sqrt),
    "ReduceLogSum": _reduce(tf.reduce_sum, after=tf.math.log),
    "ReduceLogSumExp": _reduce(_log_sum_exp),
    "ReduceMax": _reduce(tf.reduce_max),
    "ReduceMean": _reduce(tf.reduce_mean),
    "ReduceMin": _reduce(tf.reduce_min),
    "ReduceProd": _reduce(tf.reduce_prod),
    "ReduceSum": _reduce(tf.reduce_sum),
    "ReduceSumSquare": _reduce(tf.reduce_sum, before=tf.square),
}
