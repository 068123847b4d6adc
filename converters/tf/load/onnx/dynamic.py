"""Levels by the range of each example, and products of levels with constant weights, in integers.

Sums of products are int32, as those of onnxruntime, and as large.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf import ir
from converters.tf.ir import Array, Batch, Dim
from converters.tf.ir.ops.dynamic import ENDS
from converters.tf.ir.ops.quantized import OFFSET, packed, spread, ungrouped
from converters.tf.load.onnx import whole
from converters.tf.load.onnx.context import Context
from converters.tf.load.onnx.values import Known, Order, Tensor, last, stated
from converters.tf.load.onnx.whole import NotServed
from converters.tf.load.onnx.windows import window_of

_I8, _I32, _F32 = ir.DType.I8, ir.DType.I32, ir.DType.F32


def levels(ctx: Context) -> list[Tensor]:
    """Returns levels, their scale and the level of 0, by the range of each example.

    Raises:
        NotServed: A dimension is open besides the batch, or the batch is not the first axis.
    """
    order = ctx.order(0)
    first, *rest = [ctx.shape(0)[axis] for axis in order] or [1]
    many = isinstance(first, Batch)
    _check_fixed([*([] if many else [first]), *rest])
    if not rest or (isinstance(first, Batch) and first.scale != 1):
        raise NotServed
    op = ir.DynamicLevels(len(order) - many)
    q, ends = ctx.session.typed_all(op, [ctx.form(0, order)], [_I8, _F32])
    y = whole.result(ctx, ctx.result(q, order, ctx.shape(0)), "uint8")
    place: list[Dim] = [first, *(1 for _ in rest)] if many else []
    parts = [ctx.reshaped(ends[..., i], place) for i in range(ENDS)]
    scale, zero = (
        ctx.result(part, order if many else None, place)
        for part in (parts[0], parts[1] + np.float32(OFFSET))
    )
    zero.levels = "uint8"
    scale.ends = zero.ends = ends
    return [y, scale, zero]


def _check_fixed(dims: Sequence[Dim]) -> None:
    if not all(isinstance(d, int) for d in dims):
        raise NotServed


def _ends(ctx: Context, zero: int, scale: int | None = None) -> Any:
    """Returns what levels stand for: numbers of all examples, or such of each.

    Args:
        ctx: The node, whose operand 0 are the levels.
        zero: Which operand is the level of 0, if it is given.
        scale: Which one is their scale; 1 without it.
    """
    middle = ctx.value(zero) if ctx.has(zero) else None
    factor = None if scale is None else ctx.value(scale)
    if isinstance(middle, Tensor):
        if middle.ends is None or (isinstance(factor, Tensor) and factor.ends is not middle.ends):
            raise NotServed
        if isinstance(factor, Known) or (middle.ends.shape.rank > 1 and ctx.shape(0)[0] != Batch()):
            raise NotServed
        return middle.ends
    one = np.float32(1 if scale is None else whole.number(ctx, scale))
    level = 0 if middle is None else int(whole.number(ctx, zero))
    return tf.constant(np.array([one, level + whole.shift(whole.kind_of(ctx, 0))], np.float32))


def _weights(ctx: Context, index: int, zero: int, axis: int) -> Array:
    """Returns weights less their level of 0, int8 with the outputs first.

    Args:
        ctx: The node.
        index: Which operand the weights are.
        zero: Which operand is their level of 0, if it is given.
        axis: The axis of the outputs.
    """
    data = whole.constant(ctx, index)
    kernel = np.moveaxis(data, axis, 0)
    middle = whole.constant(ctx, zero).reshape(-1) if ctx.has(zero) else np.zeros(1)
    if middle.size not in (1, len(kernel)):
        raise NotServed
    apart = kernel.astype(np.int64) - middle.astype(np.int64).reshape(-1, *(1,) * (data.ndim - 1))
    if data.dtype.name not in whole.LEVELS or np.any(apart < -128) or np.any(apart > 127):
        raise NotServed
    return apart.astype(np.int8)


def _filter(ctx: Context, kernel: Array) -> list[Any]:
    """Returns weights as products read them, and their sums."""
    totals = spread(kernel.reshape(len(kernel), -1).sum(axis=1, dtype=np.int64))
    parts = {"kernel": packed(kernel), "totals": totals}
    return [ctx.session.weight(role, data) for role, data in parts.items()]


def _sums(ctx: Context, found: Any, order: Order, shape: Sequence[Dim]) -> Tensor:
    """Returns sums, of which others read float32."""
    real = ctx.result(tf.cast(found, tf.float32), order, shape)
    real.levels, real.whole = "int32", ctx.result(found, order, shape)
    return real


def _rows(ctx: Context, kernel: Array) -> Tensor:
    """Returns the levels of `MatMulInteger` and its kind."""
    lead = ctx.shape(0)[:-1]
    if not lead or ctx.shape(0)[-1] != kernel.shape[1]:
        raise NotServed
    _check_fixed(lead[1:])
    return whole.levels(ctx, stated(len(lead) + 1))


def mat_mul(ctx: Context) -> Tensor:
    """Returns `MatMulInteger` with a constant matrix.

    Raises:
        NotServed: Its operands have another form.
    """
    if ctx.rank(1) != 2:
        raise NotServed
    kernel = _weights(ctx, 1, 3, 1)
    ends, x = _ends(ctx, 2), _rows(ctx, kernel)
    op = ir.DynamicDense(len(kernel))
    found = ctx.session.typed(op, [x.form(), ends, *_filter(ctx, kernel)], _I32)
    shape = (*ctx.shape(0)[:-1], len(kernel))
    return _sums(ctx, found, stated(len(shape)), shape)


def mat_mul_to_float(ctx: Context) -> Tensor:
    """Returns `MatMulIntegerToFloat` with a constant matrix.

    Raises:
        NotServed: Its operands have another form.
    """
    if ctx.rank(1) != 2:
        raise NotServed
    kernel = _weights(ctx, 1, 5, 1)
    outputs = len(kernel)
    scales = whole.constant(ctx, 3).astype(np.float32).reshape(-1)
    bias = whole.constant(ctx, 6) if ctx.has(6) else np.zeros(outputs, np.float32)
    if scales.size not in (1, outputs) or bias.shape != (outputs,):
        raise NotServed
    ends, x = _ends(ctx, 4, 2), _rows(ctx, kernel)
    factors = np.zeros(spread(np.zeros(outputs)).size, np.float32)
    factors[:outputs] = scales
    more = [ctx.session.weight(*each) for each in (("factors", factors), ("bias", bias))]
    op = ir.DynamicDense(outputs)
    found = ctx.session.typed(op, [x.form(), ends, *_filter(ctx, kernel), *more], _F32)
    return ctx.result(found, None, (*ctx.shape(0)[:-1], outputs))


def conv(ctx: Context) -> Tensor:
    """Returns `ConvInteger` over one or two axes.

    Raises:
        NotServed: Its operands have another form.
    """
    rank = ctx.rank(0)
    if rank not in (3, 4) or ctx.rank(1) != rank:
        raise NotServed
    kernel = np.moveaxis(_weights(ctx, 1, 3, 0), 1, -1)
    outputs, *size, inputs = kernel.shape
    window, groups = window_of(ctx, size), int(ctx.attr("group", 1))
    if groups != 1:
        if rank != 4 or groups > whole.MOST_GROUPS or outputs % groups:
            raise NotServed
        kernel = ungrouped(kernel, groups)
    if ctx.shape(0)[1] != inputs * groups or window.size != tuple(size):
        raise NotServed
    _check_fixed(ctx.shape(0)[2:])
    order = last(rank)
    ends, x = _ends(ctx, 2), whole.levels(ctx, order).form(order)
    op = ir.DynamicConv(
        tuple(size),
        tuple(window.strides),
        tuple(window.dilations),
        tuple(window.pads),
        outputs,
    )
    found = ctx.session.typed(op, [x, ends, *_filter(ctx, kernel)], _I32)
    return _sums(ctx, found, order, (ctx.shape(0)[0], outputs, *window.outputs))
