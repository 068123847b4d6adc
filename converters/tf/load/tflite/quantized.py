"""Operators between int8 numbers, replayed as the ops that compute in whole numbers.

What stands here gives what TFLite's reference kernels give, bit for bit. Other operators between
int8 numbers compute in float32 (`model.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from converters.tf import ir
from converters.tf.ir import Array
from converters.tf.ir.ops.quantized import OFFSET, SUM_SHIFT, away, packed, scaled, spread
from converters.tf.load.saved_model.replay import Replay, Tensor
from converters.tf.load.tflite import file
from converters.tf.load.tflite.call import Call, Constant
from converters.tf.load.tflite.shapes import OPS as SHAPES
from converters.tf.load.tflite.windows import padding, pair

_LOW, _HIGH = -128, 127
_I8, _F32 = ir.DType.I8, ir.DType.F32
# Operators whose results say that a file is meant to compute in whole numbers.
_PRODUCTS = frozenset(["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
# Between what real numbers fused activations leave results, by their number in the schema.
_BOUNDS = {0: (-math.inf, math.inf), 1: (0.0, math.inf), 2: (-1.0, 1.0), 3: (0.0, 6.0)}


class NotServed(Exception):  # noqa: N818 - it names a finding, not a failure of the program
    """There is no op in whole numbers for an operator as it is."""


def is_whole(tensor: file.Tensor) -> bool:
    """Returns whether a tensor holds int8 numbers that stand for real ones, by one scale."""
    found = tensor.quantization
    return (
        tensor.dtype == "int8"
        and found is not None
        and found.scale.size == 1
        and float(found.scale[0]) > 0.0
        and _LOW <= int(found.zero_point[0]) <= _HIGH
    )


def computes_whole(model: file.Model) -> bool:
    """Returns whether a model multiplies int8 numbers by int8 weights, and has no control flow."""
    if len(model.subgraphs) != 1:
        return False
    graph = model.subgraphs[0]
    return any(
        operator.kind in _PRODUCTS
        and all(is_whole(graph.tensors[i]) for i in (operator.inputs[0], *operator.outputs))
        and graph.tensors[operator.inputs[1]].data is not None
        and graph.tensors[operator.inputs[1]].dtype == "int8"
        for operator in graph.operators
        if len(operator.inputs) > 1 and min(operator.inputs[:2]) >= 0
    )


def quantized(replay: Replay, value: Tensor, tensor: file.Tensor) -> Tensor:
    """Returns the int8 numbers of a tensor that stand for float32 ones."""
    return replay.typed(ir.Quantize(float(_scale(tensor)), _zero(tensor)), [value], _I8)


def dequantized(replay: Replay, value: Tensor, tensor: file.Tensor) -> Tensor:
    """Returns the float32 numbers that those of a tensor stand for."""
    return replay.typed(ir.Dequantize(float(_scale(tensor)), _zero(tensor)), [value], _F32)


@dataclass(frozen=True)
class Whole:
    """An operator between int8 numbers.

    Attributes:
        call: The operator; its operands that are int8 are so in the graph.
        tensors: What the file says of its operands; `None` for one that is missing.
    """

    call: Call
    tensors: Sequence[file.Tensor | None]

    def tensor(self, index: int) -> file.Tensor:
        """Returns what the file says of an operand.

        Raises:
            NotServed: It is missing.
        """
        found = self.tensors[index] if index < len(self.tensors) else None
        if found is None:
            raise NotServed
        return found

    def value(self, index: int) -> Tensor:
        """Returns an int8 operand in the graph.

        Raises:
            NotServed: It stands for no real numbers, or by several scales.
        """
        tensor = self.tensor(index)
        if not is_whole(tensor):
            raise NotServed
        if tensor.data is not None:
            return self.call.weight("constant", tensor.data)
        return self.call.tensor(index)

    @property
    def result(self) -> file.Tensor:
        """Returns what the file says of the result.

        Raises:
            NotServed: It is not of int8.
        """
        if not is_whole(self.call.results[0]):
            raise NotServed
        return self.call.results[0]

    @property
    def ends(self) -> tuple[int, int]:
        """Returns the least and the most of the result after its fused activation.

        Raises:
            NotServed: The activation has no such ends.
        """
        kind = int(self.call.option("fusedActivationFunction"))
        if kind not in _BOUNDS:
            raise NotServed
        return _ends(self.result, *_BOUNDS[kind])

    def emit(self, op: ir.Op, *operands: Tensor) -> Tensor:
        """Returns the int8 result of an op."""
        return self.call.replay.typed(op, operands, _I8)


def _scale(tensor: file.Tensor) -> np.float32:
    assert tensor.quantization is not None
    return np.float32(tensor.quantization.scale[0])


def _zero(tensor: file.Tensor) -> int:
    assert tensor.quantization is not None
    return int(tensor.quantization.zero_point[0])


def _rounded(x: np.float32) -> int:
    return int(away(np.asarray(x, np.float32)))


def _ends(tensor: file.Tensor, least: float, most: float) -> tuple[int, int]:
    scale, zero = _scale(tensor), _zero(tensor)
    low = _LOW if math.isinf(least) else zero + _rounded(np.float32(least) / scale)
    high = _HIGH if math.isinf(most) else zero + _rounded(np.float32(most) / scale)
    return max(_LOW, low), min(_HIGH, high)


def factor(number: float) -> tuple[int, int]:
    """Returns a number as one of 31 bits and a power of two, for `scaled`.

    Raises:
        NotServed: It is 2^30 or more.
    """
    part, shift = math.frexp(number)
    whole = math.floor(part * (1 << 31) + 0.5)
    if whole == 1 << 31:
        whole, shift = whole // 2, shift + 1
    if shift > 30:
        raise NotServed
    return (0, 0) if shift < -31 else (whole, shift)


def _weights(whole: Whole, channels: int, single: bool) -> tuple[Array, Array, Array, Array]:
    """Returns weights, bias, multipliers and shifts of the output channels.

    Args:
        whole: The operator.
        channels: Output channels.
        single: Whether a factor for all channels is a product of float32, as that of a product of
            matrices.

    Raises:
        NotServed: The weights or the bias are computed, or 0 stands for another number in them.
    """
    kernel = whole.tensor(1)
    found = kernel.quantization
    if kernel.data is None or kernel.data.dtype != np.int8 or found is None:
        raise NotServed
    if np.any(found.zero_point) or found.scale.size not in (1, channels):
        raise NotServed
    bias = np.zeros(channels, np.int32)
    if len(whole.tensors) > 2 and whole.tensors[2] is not None:
        data = whole.tensors[2].data
        if data is None or data.dtype != np.int32 or data.size != channels:
            raise NotServed
        bias = data.reshape(-1)
    source, target = _scale(whole.tensor(0)), _scale(whole.result)
    if single and found.scale.size == 1:
        reals = [float(source * np.float32(found.scale[0])) / float(target)]
    else:
        reals = [float(source) * float(scale) / float(target) for scale in found.scale]
    pairs = np.array([factor(real) for real in reals], np.int32)
    multiplier, shift = np.broadcast_to(pairs, (channels, 2)).T
    return kernel.data, bias, multiplier, shift


@dataclass(frozen=True)
class _Window:
    """How a filter moves over an image; as in `ir.QuantizedConv`."""

    taps: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    padding: tuple[tuple[int, int], tuple[int, int]]


_POINT = _Window((1, 1), (1, 1), (1, 1), ((0, 0), (0, 0)))


def _window(whole: Whole, x: Tensor, taps: Sequence[int], dilated: bool) -> _Window:
    call = whole.call
    strides = pair(call, "strideH", "strideW")
    dilations = pair(call, "dilationHFactor", "dilationWFactor") if dilated else [1, 1]
    sizes = x.shape.as_list()[1:3] if x.shape.rank == 4 else [None]
    if None in sizes:
        raise NotServed
    pads = [(0, 0), (0, 0)]
    if padding(call) == "SAME":
        for axis, size in enumerate(sizes):
            reach = (taps[axis] - 1) * dilations[axis] + 1
            lacks = max((-(-size // strides[axis]) - 1) * strides[axis] + reach - size, 0)
            pads[axis] = (lacks // 2, lacks - lacks // 2)
    height, width = (int(t) for t in taps)
    return _Window(
        (height, width),
        (strides[0], strides[1]),
        (dilations[0], dilations[1]),
        (pads[0], pads[1]),
    )


def _convolved(
    whole: Whole, x: Tensor, window: _Window, parts: tuple[Array, Array, Array, Array], once: bool
) -> Tensor:
    """Returns a convolution with a filter `[outputs, height, width, inputs]`."""
    call, (kernel, bias, multiplier, shift) = whole.call, parts
    zero, (low, high) = _zero(whole.tensor(0)), whole.ends
    total = kernel.astype(np.int64).sum(axis=(1, 2, 3))
    op = ir.QuantizedConv(
        window.taps,
        window.strides,
        window.dilations,
        window.padding,
        kernel.shape[0],
        once,
        zero,
        _zero(whole.result),
        low,
        high,
    )
    return whole.emit(
        op,
        x,
        call.weight("kernel", packed(kernel)),
        call.weight("bias", spread(bias - (zero + OFFSET) * total)),
        call.weight("multiplier", spread(multiplier)),
        call.weight("shift", spread(shift)),
    )


def _conv(whole: Whole) -> Tensor:
    x = whole.value(0)
    outputs = whole.tensor(1).shape[0] or 0
    kernel, *rest = _weights(whole, outputs, single=False)
    if kernel.ndim != 4 or not x.shape[-1] or x.shape[-1] % kernel.shape[3]:
        raise NotServed
    window = _window(whole, x, kernel.shape[1:3], dilated=True)
    groups = x.shape[-1] // kernel.shape[3]
    if groups > 1:
        kernel = _ungrouped(kernel, groups)
    return _convolved(whole, x, window, (kernel, rest[0], rest[1], rest[2]), once=False)


def _ungrouped(kernel: Array, groups: int) -> Array:
    """Returns a filter whose outputs see all channels: 0 stands for those of other groups."""
    outputs, height, width, inputs = kernel.shape
    if outputs % groups:
        raise NotServed
    whole = np.zeros((outputs, height, width, inputs * groups), np.int8)
    for group in range(groups):
        rows = slice(group * outputs // groups, (group + 1) * outputs // groups)
        whole[rows, :, :, group * inputs : (group + 1) * inputs] = kernel[rows]
    return whole


def _depthwise(whole: Whole) -> Tensor:
    x = whole.value(0)
    kernel, bias, multiplier, shift = _weights(whole, whole.tensor(1).shape[-1] or 0, single=False)
    channels = x.shape[-1]
    if kernel.ndim != 4 or kernel.shape[0] != 1 or not channels or kernel.shape[3] % channels:
        raise NotServed
    window = _window(whole, x, kernel.shape[1:3], dilated=True)
    if kernel.shape[3] != channels:
        wide = _ungrouped(kernel.transpose(3, 1, 2, 0), channels)
        return _convolved(whole, x, window, (wide, bias, multiplier, shift), once=False)
    call, (low, high) = whole.call, whole.ends
    op = ir.QuantizedDepthwise(
        window.taps,
        window.strides,
        window.dilations,
        window.padding,
        _zero(whole.tensor(0)),
        _zero(whole.result),
        low,
        high,
    )
    return whole.emit(
        op,
        x,
        call.weight("kernel", kernel[0]),
        call.weight("bias", bias),
        call.weight("multiplier", multiplier),
        call.weight("shift", shift),
    )


def _dense(whole: Whole) -> Tensor:
    x, call = whole.value(0), whole.call
    kernel, *rest = _weights(whole, whole.tensor(1).shape[0] or 0, single=True)
    if kernel.ndim != 2 or call.option("weightsFormat") or x.shape.rank is None:
        raise NotServed
    outputs, inputs = kernel.shape
    lead = x.shape.as_list()[:-1] if x.shape[-1] == inputs else [None]
    if None in lead[1:] or (not call.option("keepNumDims") and len(lead) > 1):
        raise NotServed
    rows = tf.reshape(x, [-1 if lead[0] is None else lead[0], 1, math.prod(lead[1:]), inputs])
    parts = (kernel.reshape(outputs, 1, 1, inputs), rest[0], rest[1], rest[2])
    found = _convolved(whole, rows, _POINT, parts, once=True)
    return tf.reshape(found, [-1 if lead[0] is None else lead[0], *lead[1:], outputs])


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
        scales = [_scale(whole.tensor(i)) for i in (0, 1)]
        target, twice = _scale(whole.result), 2.0 * float(max(scales))
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
    scales = _scale(whole.tensor(0)) * _scale(whole.tensor(1))
    found = factor(float(scales / _scale(whole.result)))
    factors = [(0, 0), (0, 0), found]
    return whole.emit(_pair(whole, ir.QuantizedPairKind.PRODUCT, (0, 0, found[0]), factors), a, b)


def _pair(
    whole: Whole,
    kind: ir.QuantizedPairKind,
    multipliers: tuple[int, int, int],
    factors: Sequence[tuple[int, int]],
) -> ir.QuantizedPair:
    zeros = (_zero(whole.tensor(0)), _zero(whole.tensor(1)), _zero(whole.result))
    shifts = (factors[0][1], factors[1][1], factors[2][1])
    return ir.QuantizedPair(kind, zeros, multipliers, shifts, *whole.ends)


def _same(whole: Whole, *others: int) -> None:
    """Checks that numbers stand for the same ones before and after.

    Raises:
        NotServed: They do not.
    """
    wanted = (_scale(whole.result), _zero(whole.result))
    tensors = [*(whole.tensor(i) for i in others), *whole.call.results]
    if any(not is_whole(t) or (_scale(t), _zero(t)) != wanted for t in tensors):
        raise NotServed


def _pool(kind: ir.QuantizedPoolKind) -> Callable[[Whole], Tensor]:
    def handler(whole: Whole) -> Tensor:
        _same(whole, 0)
        x, size = whole.value(0), pair(whole.call, "filterHeight", "filterWidth")
        window = _window(whole, x, size, dilated=False)
        op = ir.QuantizedPool(kind, window.taps, window.strides, window.padding, *whole.ends)
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
    multiplier, shift = factor(float(_scale(whole.tensor(0))) / float(_scale(whole.result)))
    moved = min(count.bit_length() - 1, 32, 31 + shift)
    if count < 1 or moved < 0 or shift - moved < -31:
        raise NotServed
    multiplier, shift = (multiplier << moved) // count, shift - moved
    op = ir.QuantizedMean(_zero(whole.tensor(0)), multiplier, shift, _zero(whole.result))
    found = whole.emit(op, tf.reshape(x, [lead, count, math.prod(dims[last:])]))
    kept = [1] * len(places) if whole.call.option("keepDims") else []
    first_dim = -1 if dims[0] is None else dims[0]
    return tf.reshape(found, [first_dim, *dims[1:first], *kept, *dims[last:]])


def _softmax(whole: Whole) -> Tensor:
    x, scale = whole.value(0), _scale(whole.tensor(0))
    if x.shape.rank is None or x.shape[-1] is None:
        raise NotServed
    below = np.arange(255, -1, -1, dtype=np.float32)
    exponents = -scale * np.float32(whole.call.option("beta", 1.0)) * below
    table = np.exp(exponents.astype(np.float64)).astype(np.float32)
    op = ir.QuantizedSoftmax(float(_scale(whole.result)), _zero(whole.result))
    return whole.emit(op, x, whole.call.weight("exponentials", table))


# Every int8 number, from the least to the most.
_ALL = np.arange(_LOW, _HIGH + 1)


def _ends_of_function(whole: Whole) -> tuple[file.Tensor, file.Tensor]:
    """Returns what a function of one number reads and gives.

    Raises:
        NotServed: One of them is not of int8.
    """
    if not is_whole(whole.tensor(0)):
        raise NotServed
    return whole.tensor(0), whole.result


def _looked(whole: Whole, table: Array) -> Tensor:
    data = np.clip(table, _LOW, _HIGH).astype(np.int8)
    return whole.emit(ir.Looked(), whole.value(0), whole.call.weight("table", data))


def _function(function: Callable[[Array], Array]) -> Callable[[Whole], Tensor]:
    """Returns the handler of a function of real numbers, which is computed in float32."""

    def handler(whole: Whole) -> Tensor:
        source, target = _ends_of_function(whole)
        x = _scale(source) * (_ALL - _zero(source)).astype(np.float32)
        found = function(x.astype(np.float64)).astype(np.float32) / _scale(target)
        return _looked(whole, away(found) + _zero(target))

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
        number = float(_scale(source) / _scale(target))
        if not single:
            number = float(_scale(source)) / float(_scale(target))
        found = scaled(_ALL - _zero(source), *factor(number)) + _zero(target)
        return _looked(whole, np.clip(found, *_ends(target, least, most)))

    return handler


def _leaky(whole: Whole) -> Tensor:
    source, target = _ends_of_function(whole)
    alpha = np.float32(whole.call.option("alpha"))
    x = _ALL - _zero(source)
    plain = factor(float(_scale(source) / _scale(target)))
    below = factor(float(_scale(source) * alpha / _scale(target)))
    if alpha < 0:
        raise NotServed
    return _looked(whole, np.where(x >= 0, scaled(x, *plain), scaled(x, *below)) + _zero(target))


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
    border = _zero(whole.result)
    if whole.call.operator.kind == "PADV2":
        _same(whole, 2)
        data = whole.tensor(2).data
        if data is None:
            raise NotServed
        border = int(data.reshape(-1)[0])
    number = tf.constant(border, tf.int8)
    sizes = whole.call.tensor(1)
    return tf.raw_ops.PadV2(input=whole.value(0), paddings=sizes, constant_values=number)


Handler: TypeAlias = Callable[[Whole], Any]
_MOVED = (
    *("CONCATENATION", "EXPAND_DIMS", "PACK", "RESHAPE", "SLICE", "SPLIT", "SPLIT_V"),
    *("SQUEEZE", "STRIDED_SLICE", "TRANSPOSE", "UNPACK"),
)

OPS: Mapping[str, Handler] = {
    "ADD": _sum(1),
    "AVERAGE_POOL_2D": _pool(ir.QuantizedPoolKind.AVERAGE),
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _dense,
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
}


def replayed(whole: Whole) -> Any:
    """Replays an operator in whole numbers.

    Raises:
        NotServed: There is no op for it as it is.
    """
    handler = OPS.get(whole.call.operator.kind)
    if handler is None or whole.call.operator.custom:
        raise NotServed
    return handler(whole)


def in_graph(value: Any) -> Any:
    """Returns a constant of int8 in the graph."""
    return tf.constant(value.data) if isinstance(value, Constant) else value
