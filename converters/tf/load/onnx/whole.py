"""Layers between quantized numbers of 8 bits, in integer arithmetic and rounded as by onnxruntime.

Levels are int8 here: those of uint8 are less 128. Sums of products are int32, and become levels by
a factor of float32, ties to even.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from converters.tf import ir
from converters.tf.ir import Array, Dim
from converters.tf.ir.ops.quantized import OFFSET, offset_bias, packed, spread, ungrouped
from converters.tf.load.onnx.context import Context
from converters.tf.load.onnx.values import Known, Order, Tensor, last, stated
from converters.tf.load.onnx.windows import window_of

_T = TypeVar("_T")
LEVELS = ("int8", "uint8")
_I8, _F32 = ir.DType.I8, ir.DType.F32
# Filters of more groups would be mostly zeros.
MOST_GROUPS = 8


class NotServed(Exception):  # noqa: N818 - it names a finding, not a failure of the program
    """A layer has operands that there is no op in integers for."""


@dataclass(frozen=True)
class Layer:
    """What a layer has beside its input.

    Attributes:
        kernel: Weights less their level of 0: `[outputs, ...]`, int8.
        bias: int32 of each output.
        factors: float32 of each output.
        zero: What stands for 0 in the input, as int8.
        kind: Type of the result's levels.
        out_zero: What stands for 0 in the result, as int8.
    """

    kernel: Array
    bias: Array
    factors: Array
    zero: int
    kind: str
    out_zero: int


def shift(kind: str) -> int:
    """Returns what makes levels int8.

    Raises:
        NotServed: They are of another type.
    """
    if kind not in LEVELS:
        raise NotServed
    return -OFFSET if kind == "uint8" else 0


def kind_of(ctx: Context, index: int) -> str:
    """Returns the type of an operand, that of levels where float32 stands for them."""
    value = ctx.value(index)
    return (value.levels if isinstance(value, Tensor) else "") or str(value.dtype)


def constant(ctx: Context, index: int) -> Array:
    """Returns the elements of an operand.

    Raises:
        NotServed: It is not a constant.
    """
    value = ctx.value(index)
    if not isinstance(value, Known):
        raise NotServed
    return value.data


def number(ctx: Context, index: int) -> Array:
    """Returns an operand that is one number.

    Raises:
        NotServed: It is not.
    """
    data = constant(ctx, index).reshape(-1)
    if data.size != 1:
        raise NotServed
    return np.asarray(data[0])


def _zero(ctx: Context, index: int) -> tuple[str, int]:
    """Returns the type of levels, and what stands for 0 as int8."""
    kind = kind_of(ctx, index)
    return kind, int(number(ctx, index)) + shift(kind)


def _layer(
    ctx: Context, kernel: Array, bias: int, ends: tuple[int, int], alpha: np.float32 | None = None
) -> Layer:
    """Returns what a layer has, whose weights are operand 3 and `[outputs, ...]` here.

    Args:
        ctx: The node: levels, scale and level of 0, then those of the weights.
        kernel: The weights.
        bias: Which operand is the bias, if it is given.
        ends: Which operands are scale and level of 0 of the result.
        alpha: A factor of the product, if there is one.
    """
    outputs = kernel.shape[0]
    middle = constant(ctx, 5).astype(np.int64).reshape(-1) if ctx.has(5) else np.zeros(1, np.int64)
    scales = constant(ctx, 4).astype(np.float32).reshape(-1)
    if middle.size not in (1, outputs) or scales.size not in (1, outputs):
        raise NotServed
    whole = kernel.astype(np.int64) - middle.reshape(-1, *(1,) * (kernel.ndim - 1))
    if kernel.dtype.name not in LEVELS or np.any(whole < -128) or np.any(whole > 127):
        raise NotServed
    own = np.zeros(outputs, np.int64)
    if ctx.has(bias):
        own = constant(ctx, bias).astype(np.int64).reshape(-1)
        if own.size != outputs:
            raise NotServed
    scale = np.float32(number(ctx, 1))
    first = scale if alpha is None else np.float32(alpha * scale)
    factors = first * scales / np.float32(number(ctx, ends[0]))
    _, zero = _zero(ctx, 2)
    kind, out_zero = _zero(ctx, ends[1])
    if not np.all(np.isfinite(factors)):
        raise NotServed
    factors = np.broadcast_to(factors.astype(np.float32), (outputs,))
    return Layer(whole.astype(np.int8), own, factors, zero, kind, out_zero)


def levels(ctx: Context, order: Order) -> Tensor:
    """Returns operand 0 as int8 with its axes in an order.

    Raises:
        NotServed: It is not one of levels.
    """
    value = ctx.value(0)
    if not isinstance(value, Tensor):
        raise NotServed
    zero = shift(value.levels)
    if value.whole is None:
        op = ir.Quantize(1.0, zero)
        value.whole = ctx.result(
            ctx.session.typed(op, [value.form(order)], _I8), order, value.shape
        )
    return value.whole


def result(ctx: Context, found: Tensor, kind: str) -> Tensor:
    """Returns levels of which the integers are known."""
    order = found.home
    real = ctx.session.typed(ir.Dequantize(1.0, shift(kind)), [found.form(order)], _F32)
    result = ctx.result(real, order, found.shape)
    result.levels, result.whole = kind, found
    return result


def _operands(ctx: Context, kernel: Array, bias: Array, factors: Array) -> list[Array]:
    bits = np.ascontiguousarray(factors, np.float32).view(np.int32)
    numbers = (bias.astype(np.int32), bits)
    parts = zip(("kernel", "bias", "factors"), (kernel, *numbers), strict=True)
    weights = [ctx.session.weight(role, data) for role, data in parts]
    # There are no shifts; the kernel wants as many.
    return [*weights, weights[-1]]


def _both(values: Sequence[_T]) -> tuple[_T, _T]:
    """Returns what there is for both axes of images."""
    first, second = values
    return first, second


def conv(ctx: Context) -> Tensor:
    """Returns `QLinearConv` of images.

    Raises:
        NotServed: Its operands have another form.
    """
    if ctx.rank(0) != 4 or constant(ctx, 3).ndim != 4:
        raise NotServed
    layer = _layer(ctx, constant(ctx, 3).transpose(0, 2, 3, 1), 8, (6, 7))
    outputs, *size, inputs = layer.kernel.shape
    window = window_of(ctx, size)
    groups, channels = int(ctx.attr("group", 1)), inputs * int(ctx.attr("group", 1))
    if ctx.sizes(0)[0] != channels or outputs % groups or window.size != tuple(size):
        raise NotServed
    x = levels(ctx, last(4)).form(last(4))
    if None in x.shape.as_list()[1:]:
        raise NotServed
    place = (
        _both(window.size),
        _both(window.strides),
        _both(window.dilations),
        _both(window.pads),
    )
    zeros, ends = (layer.zero, layer.out_zero), (-128, 127)
    op: ir.Op
    if groups == channels == outputs:
        op = ir.QuantizedDepthwise(*place, ir.Rescaling.REAL, *zeros, *ends)
        kernel = np.ascontiguousarray(layer.kernel[..., 0].transpose(1, 2, 0))
        operands = _operands(ctx, kernel, layer.bias, layer.factors)
    elif groups <= MOST_GROUPS:
        op = ir.QuantizedConv(*place, outputs, ir.Rescaling.REAL, *zeros, *ends)
        operands = _dense(ctx, layer, ungrouped(layer.kernel, groups))
    else:
        raise NotServed
    order = last(4)
    shape = (ctx.shape(0)[0], outputs, *window.outputs)
    found = ctx.result(ctx.session.typed(op, [x, *operands], _I8), order, shape)
    return result(ctx, found, layer.kind)


def _dense(ctx: Context, layer: Layer, kernel: Array) -> list[Array]:
    """Returns the operands of `ir.QuantizedConv`."""
    bias = spread(offset_bias(kernel, layer.bias, layer.zero))
    factors = np.zeros(bias.size, np.float32)
    factors[: layer.factors.size] = layer.factors
    return _operands(ctx, packed(kernel), bias, factors)


def real(ctx: Context) -> Tensor:
    """Returns `DequantizeLinear` of levels that are known as integers.

    Raises:
        NotServed: They are not, or have several scales.
    """
    value = ctx.value(0)
    if not isinstance(value, Tensor) or value.whole is None:
        raise NotServed
    zero = int(number(ctx, 2)) if ctx.has(2) else 0
    op = ir.Dequantize(float(np.float32(number(ctx, 1))), zero + shift(value.levels))
    order = value.whole.home
    found = ctx.session.typed(op, [value.whole.form(order)], _F32)
    return ctx.result(found, order, value.shape)


def mat_mul(ctx: Context) -> Tensor:
    """Returns `QLinearMatMul` with a constant matrix.

    Raises:
        NotServed: Its operands have another form.
    """
    kernel = constant(ctx, 3)
    if kernel.ndim != 2:
        raise NotServed
    return _rows(ctx, _layer(ctx, kernel.T, 8, (6, 7)))


def gemm(ctx: Context) -> Tensor:
    """Returns `QGemm` with a constant matrix and levels as its result.

    Raises:
        NotServed: Its operands have another form.
    """
    kernel = constant(ctx, 3)
    if not (ctx.has(7) and ctx.has(8)) or kernel.ndim != 2 or ctx.attr("transA", 0):
        raise NotServed
    kernel = kernel if ctx.attr("transB", 0) else kernel.T
    return _rows(ctx, _layer(ctx, kernel, 6, (7, 8), np.float32(ctx.attr("alpha", 1.0))))


def _rows(ctx: Context, layer: Layer) -> Tensor:
    """Returns a product of rows with a matrix `[outputs, inputs]`."""
    lead: list[Dim] = list(ctx.shape(0)[:-1])
    outputs, inputs = layer.kernel.shape
    rest = [d for d in lead[1:] if isinstance(d, int)]
    if not lead or ctx.shape(0)[-1] != inputs or len(rest) < len(lead) - 1:
        raise NotServed
    order = stated(len(lead) + 1)
    middle = math.prod(rest)
    x = ctx.reshaped(levels(ctx, order).form(order), [lead[0], 1, middle, inputs])
    op = ir.QuantizedConv(
        (1, 1),
        (1, 1),
        (1, 1),
        ((0, 0), (0, 0)),
        outputs,
        ir.Rescaling.REAL,
        layer.zero,
        layer.out_zero,
        -128,
        127,
    )
    operands = _dense(ctx, layer, layer.kernel.reshape(outputs, 1, 1, inputs))
    shape = [*lead, outputs]
    found = ctx.reshaped(ctx.session.typed(op, [x, *operands], _I8), shape)
    return result(ctx, ctx.result(found, order, shape), layer.kind)
