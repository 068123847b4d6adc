"""Operators between int8 numbers, replayed as the ops that compute in integers.

What stands here gives what TFLite's reference kernels give, bit for bit. Other operators between
int8 numbers compute in float32 (`model.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf import ir
from converters.tf.ir import Array
from converters.tf.ir.ops.quantized import SUM_SHIFT, away, scaled
from converters.tf.load.saved_model.replay import Tensor
from converters.tf.load.tflite import file, whole_layers, whole_state
from converters.tf.load.tflite.shapes import OPS as SHAPES
from converters.tf.load.tflite.whole import (
    HIGH,
    LOW,
    Handler,
    NotServed,
    Whole,
    ends_of,
    factor,
    is_unsigned,
    is_whole,
    scale_of,
    signed,
    zero_of,
)
from converters.tf.load.tflite.whole_layers import window_of
from converters.tf.load.tflite.windows import pair


def _alike(whole: Whole) -> tuple[Tensor, Tensor]:
    """Returns two operands of one shape; the smaller one is repeated."""
    a, b = whole.value(0), whole.value(1)
    if a.shape.rank is None or b.shape.rank is None:
        raise NotServed
    shapes = [t.shape.as_list() for t in (a, b)]
    if shapes[0] == shapes[1]:
        return a, b
    most = max(shapes, key=lambda s: (len(s), math.prod(d or 1 << 20 for d in s)))
    if tf.broadcast_static_shape(*map(tf.TensorShape, shapes)).as_list() != most:
        raise NotServed
    target = tf.shape(a if shapes[0] == most else b)
    return tf.broadcast_to(a, target), tf.broadcast_to(b, target)


def _sum(sign: int) -> Callable[[Whole], Tensor]:
    """Returns the handler of a sum, or with -1 of a difference."""

    def handler(whole: Whole) -> Tensor:
        a, b = _alike(whole)
        scales = [scale_of(whole.tensor(i)) for i in (0, 1)]
        target, twice = scale_of(whole.result), 2.0 * float(max(scales))
        reals = [float(scale) / twice for scale in scales]
        reals.append(twice / float(np.float32(1 << SUM_SHIFT) * target))
        if reals[2] >= 1.0:
            raise NotServed
        factors = [factor(real) for real in reals]
        multipliers = (factors[0][0], sign * factors[1][0], factors[2][0])
        return whole.emit(_pair(whole, ir.QuantizedPairKind.SUM, multipliers, factors), a, b)

    return handler


def _product(whole: Whole) -> Tensor:
    a, b = _alike(whole)
    scales = scale_of(whole.tensor(0)) * scale_of(whole.tensor(1))
    found = factor(float(scales / scale_of(whole.result)))
    factors = [(0, 0), (0, 0), found]
    return whole.emit(_pair(whole, ir.QuantizedPairKind.PRODUCT, (0, 0, found[0]), factors), a, b)


def _pair(
    whole: Whole,
    kind: ir.QuantizedPairKind,
    multipliers: tuple[int, int, int],
    factors: Sequence[tuple[int, int]],
) -> ir.QuantizedPair:
    zeros = (zero_of(whole.tensor(0)), zero_of(whole.tensor(1)), zero_of(whole.result))
    shifts = (factors[0][1], factors[1][1], factors[2][1])
    return ir.QuantizedPair(kind, zeros, multipliers, shifts, *whole.ends)


def _same(whole: Whole, *others: int) -> None:
    """Checks that numbers stand for the same ones before and after.

    Raises:
        NotServed: They do not.
    """
    wanted = (scale_of(whole.result), zero_of(whole.result))
    tensors = [*(whole.tensor(i) for i in others), *whole.call.results]
    if any(not is_whole(t) or (scale_of(t), zero_of(t)) != wanted for t in tensors):
        raise NotServed


def _pool(kind: ir.QuantizedPoolKind) -> Callable[[Whole], Tensor]:
    def handler(whole: Whole) -> Tensor:
        _same(whole, 0)
        x, size = whole.value(0), pair(whole.call, "filterHeight", "filterWidth")
        window = window_of(whole, x, size, dilated=False)
        own = kind
        if is_unsigned(whole.tensor(0)) and kind is ir.QuantizedPoolKind.AVERAGE:
            own = ir.QuantizedPoolKind.AVERAGE_UP
        op = ir.QuantizedPool(own, window.taps, window.strides, window.padding, *whole.ends)
        return whole.emit(op, x)

    return handler


def _mean(whole: Whole) -> Tensor:
    """Replays a mean over neighbouring axes: the count is part of the factor of the sum."""
    x, axes = whole.value(0), whole.tensor(1).data
    if axes is None or x.shape.rank is None or not axes.size:
        raise NotServed
    dims = x.shape.as_list()
    places = sorted({int(a) % len(dims) for a in axes.reshape(-1)})
    first, last = places[0], places[-1] + 1
    if places != list(range(first, last)) or first == 0 or None in dims[1:]:
        raise NotServed
    lead = -1 if dims[0] is None else math.prod(dims[:first])
    if dims[0] is None and first > 1:
        raise NotServed
    count = math.prod(dims[first:last])
    multiplier, shift = factor(float(scale_of(whole.tensor(0))) / float(scale_of(whole.result)))
    moved = min(count.bit_length() - 1, 32, 31 + shift)
    if count < 1 or moved < 0 or shift - moved < -31:
        raise NotServed
    multiplier, shift = (multiplier << moved) // count, shift - moved
    op = ir.QuantizedMean(zero_of(whole.tensor(0)), multiplier, shift, zero_of(whole.result))
    found = whole.emit(op, tf.reshape(x, [lead, count, math.prod(dims[last:])]))
    kept = [1] * len(places) if whole.call.option("keepDims") else []
    first_dim = -1 if dims[0] is None else dims[0]
    return tf.reshape(found, [first_dim, *dims[1:first], *kept, *dims[last:]])


def _softmax(whole: Whole) -> Tensor:
    x, scale = whole.value(0), scale_of(whole.tensor(0))
    if x.shape.rank is None or x.shape[-1] is None:
        raise NotServed
    below = np.arange(255, -1, -1, dtype=np.float32)
    exponents = -scale * np.float32(whole.call.option("beta", 1.0)) * below
    table = np.exp(exponents.astype(np.float64)).astype(np.float32)
    op = ir.QuantizedSoftmax(float(scale_of(whole.result)), zero_of(whole.result))
    return whole.emit(op, x, whole.call.weight("exponentials", table))


# Every int8 number, from the least to the most.
_ALL = np.arange(LOW, HIGH + 1)


def _ends_of_function(whole: Whole) -> tuple[file.Tensor, file.Tensor]:
    """Returns what a function of one number reads and gives.

    Raises:
        NotServed: One of them is not of int8.
    """
    if not is_whole(whole.tensor(0)):
        raise NotServed
    return whole.tensor(0), whole.result


def _looked(whole: Whole, table: Array) -> Tensor:
    data = np.clip(table, LOW, HIGH).astype(np.int8)
    return whole.emit(ir.Looked(), whole.value(0), whole.call.weight("table", data))


def _function(function: Callable[[Array], Array]) -> Callable[[Whole], Tensor]:
    """Returns the handler of a function of real numbers, which is computed in float32."""

    def handler(whole: Whole) -> Tensor:
        source, target = _ends_of_function(whole)
        x = scale_of(source) * (_ALL - zero_of(source)).astype(np.float32)
        found = function(x.astype(np.float64)).astype(np.float32) / scale_of(target)
        return _looked(whole, away(found) + zero_of(target))

    return handler


def _requantized(least: float, most: float, single: bool = True) -> Callable[[Whole], Tensor]:
    """Returns the handler of numbers that come to stand for the same by another scale.

    Args:
        least: The least that a result stands for.
        most: The most.
        single: Whether the quotient of the scales is one of float32.
    """

    def handler(whole: Whole) -> Tensor:
        source, target = _ends_of_function(whole)
        number = float(scale_of(source) / scale_of(target))
        if not single:
            number = float(scale_of(source)) / float(scale_of(target))
        found = scaled(_ALL - zero_of(source), *factor(number)) + zero_of(target)
        return _looked(whole, np.clip(found, *ends_of(target, least, most)))

    return handler


def _leaky(whole: Whole) -> Tensor:
    source, target = _ends_of_function(whole)
    alpha = np.float32(whole.call.option("alpha"))
    x = _ALL - zero_of(source)
    plain = factor(float(scale_of(source) / scale_of(target)))
    below = factor(float(scale_of(source) * alpha / scale_of(target)))
    if alpha < 0:
        raise NotServed
    return _looked(whole, np.where(x >= 0, scaled(x, *plain), scaled(x, *below)) + zero_of(target))


def _requantize(whole: Whole) -> Tensor:
    return _requantized(-math.inf, math.inf, single=False)(whole)


def _moved(whole: Whole) -> Tensor | Sequence[Tensor]:
    """Replays an operator that moves numbers as they are."""
    call = whole.call
    if call.option("fusedActivationFunction"):
        raise NotServed
    reals = [i for i, t in enumerate(whole.tensors) if t is not None and t.quantization is not None]
    _same(whole, *reals)
    given = [whole.value(i) if i in reals else v for i, v in enumerate(call.operands)]
    return SHAPES[call.operator.kind](replace(call, operands=given))


def _pad(whole: Whole) -> Tensor:
    """Replays a border of what stands for 0, or of a number of its own."""
    _same(whole, 0)
    border = zero_of(whole.result)
    if whole.call.operator.kind == "PADV2":
        _same(whole, 2)
        data = whole.tensor(2).data
        if data is None:
            raise NotServed
        border = int(signed(data).reshape(-1)[0])
    number = tf.constant(border, tf.int8)
    sizes = whole.call.tensor(1)
    return tf.raw_ops.PadV2(input=whole.value(0), paddings=sizes, constant_values=number)


_MOVED = (
    *("CONCATENATION", "EXPAND_DIMS", "PACK", "RESHAPE", "SLICE", "SPLIT", "SPLIT_V"),
    *("SQUEEZE", "STRIDED_SLICE", "TRANSPOSE", "UNPACK"),
)

OPS: Mapping[str, Handler] = {
    "ADD": _sum(1),
    "AVERAGE_POOL_2D": _pool(ir.QuantizedPoolKind.AVERAGE),
    "LEAKY_RELU": _leaky,
    "LOGISTIC": _function(lambda x: 1 / (1 + np.exp(-x))),
    "MAX_POOL_2D": _pool(ir.QuantizedPoolKind.MAX),
    "MEAN": _mean,
    "MUL": _product,
    "PAD": _pad,
    "PADV2": _pad,
    "QUANTIZE": _requantize,
    "RELU": _requantized(0.0, math.inf),
    "RELU6": _requantized(0.0, 6.0),
    "RELU_N1_TO_1": _requantized(-1.0, 1.0),
    "SOFTMAX": _softmax,
    "SUB": _sum(-1),
    "TANH": _function(np.tanh),
    **dict.fromkeys(_MOVED, _moved),
    **whole_layers.OPS,
    **whole_state.OPS,
}


def replayed(whole: Whole) -> Any:
    """Replays an operator in integers.

    Raises:
        NotServed: There is no op for it as it is.
    """
    handler = OPS.get(whole.call.operator.kind)
    if handler is None or whole.call.operator.custom:
        raise NotServed
    return handler(whole)
