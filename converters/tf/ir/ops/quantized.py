"""Ops on int8 numbers that stand for real ones, bit for bit as TFLite's reference kernels compute.

A number `q` stands for `scale * (q - zero)`. Products are summed in int32. A sum becomes int8 by a
factor that is an integer of 31 bits and a power of two (`scaled`). As in onnxruntime, the factor
may also be a float32 number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from converters.tf.ir.graph import Node, Op
from converters.tf.ir.operands import Operands
from converters.tf.ir.ops.windows import at_tap, stops, taps, window_padding, window_stops
from converters.tf.ir.sizes import ShapeError, numbers
from converters.tf.ir.values import Array, Shape

__all__ = [
    "Dequantize",
    "Looked",
    "Quantize",
    "QuantizedConv",
    "QuantizedDepthwise",
    "QuantizedMean",
    "QuantizedPair",
    "QuantizedPairKind",
    "QuantizedPool",
    "QuantizedPoolKind",
    "QuantizedSoftmax",
    "Rescaling",
]

# Output channels of a block of packed weights, and products of an instruction that sums them.
CHANNELS = 16
GROUP = 4
# What makes an int8 number one that is not negative, as such instructions take it.
OFFSET = 128


def scaled(x: Array, multiplier: Array | int, shift: Array | int) -> Array:
    """Returns `x * multiplier * 2^(shift - 31)` in int64, rounded after each of both factors.

    The product is rounded to the nearest, ties up; a shift to the right rounds ties away from zero.

    Args:
        x: Integers of 32 bits.
        multiplier: Integers of 31 bits.
        shift: Powers of two.
    """
    wide = np.asarray(x, np.int64)
    moved = np.asarray(shift, np.int64)
    left = (wide << np.maximum(moved, 0)).astype(np.int32).astype(np.int64)
    product = (left * np.asarray(multiplier, np.int64) + (1 << 30)) >> 31
    return shifted(product, np.maximum(-moved, 0))


def scaled_once(x: Array, multiplier: Array | int, shift: Array | int) -> Array:
    """As `scaled`, rounded once to the nearest, ties up: so TFLite does it after a matmul."""
    right = 31 - np.asarray(shift, np.int64)
    product = np.asarray(x, np.int64) * np.asarray(multiplier, np.int64)
    return np.asarray((product + (np.int64(1) << (right - 1))) >> right)


class Rescaling(StrEnum):
    """How sums become int8."""

    ONCE = "once"  # `scaled_once`
    TWICE = "twice"  # `scaled`
    REAL = "real"  # float32 factors, whose bits are given; ties to even

    def of(self, x: Array, multiplier: Array, shift: Array) -> Array:
        """Returns sums in levels, as int64."""
        if self is Rescaling.ONCE:
            return scaled_once(x, multiplier, shift)
        if self is Rescaling.TWICE:
            return scaled(x, multiplier, shift)
        factor = np.ascontiguousarray(multiplier, np.int32).view(np.float32)
        product = x.astype(np.int32).astype(np.float32) * factor
        # What is far beyond int8 is of no use, and has no whole number.
        held = np.clip(product, np.float32(-1e6), np.float32(1e6))
        return np.asarray(np.rint(held), np.int64)


def shifted(x: Array, right: Array | int) -> Array:
    """Returns `x / 2^right`, rounded to the nearest, ties away from zero."""
    right = np.asarray(right, np.int64)
    mask = (np.int64(1) << right) - 1
    threshold = (mask >> 1) + (x < 0)
    return np.asarray((x >> right) + ((x & mask) > threshold))


def packed(kernel: Array) -> Array:
    """Returns a filter as products read it: `[blocks, groups, CHANNELS, GROUP]`, int8.

    A group is `GROUP` neighbours of a window: height before width before input channels. What lacks
    is 0.

    Args:
        kernel: `[outputs, height, width, inputs]`, int8.
    """
    rows = kernel.reshape(kernel.shape[0], -1)
    spare = (-rows.shape[0] % CHANNELS, -rows.shape[1] % GROUP)
    rows = np.pad(rows, ((0, spare[0]), (0, spare[1])))
    parts = rows.reshape(-1, CHANNELS, rows.shape[1] // GROUP, GROUP)
    return np.ascontiguousarray(parts.transpose(0, 2, 1, 3))


def unpacked(filters: Array, outputs: int, window: tuple[int, ...]) -> Array:
    """Returns the filter of which `packed` made another one.

    Args:
        filters: What it made.
        outputs: Output channels.
        window: Height, width and input channels.
    """
    rows = filters.transpose(0, 2, 1, 3).reshape(-1, filters.shape[1] * GROUP)
    return rows[:outputs, : math.prod(window)].reshape(outputs, *window)


def spread(numbers: Array) -> Array:
    """Returns int32 numbers of output channels with zeros up to whole blocks."""
    return np.pad(numbers.astype(np.int32), (0, -numbers.size % CHANNELS))


def offset_bias(kernel: Array, bias: Array, zero: int) -> Array:
    """Returns the bias of sums of `filter * (x + OFFSET)`.

    Args:
        kernel: `[outputs, height, width, inputs]`, integers.
        bias: That of sums of `filter * (x - zero)`: an integer for each output.
        zero: What stands for 0 in `x`.
    """
    return np.asarray(bias - (zero + OFFSET) * kernel.astype(np.int64).sum(axis=(1, 2, 3)))


def ungrouped(kernel: Array, groups: int) -> Array:
    """Returns a filter whose outputs see all channels: 0 stands for those of other groups.

    Args:
        kernel: `[outputs, height, width, inputs of a group]`, int8.
        groups: Their number, of which the outputs are a multiple.
    """
    outputs, height, width, inputs = kernel.shape
    whole = np.zeros((outputs, height, width, inputs * groups), np.int8)
    for group in range(groups):
        rows = slice(group * outputs // groups, (group + 1) * outputs // groups)
        whole[rows, :, :, group * inputs : (group + 1) * inputs] = kernel[rows]
    return whole


@dataclass(frozen=True)
class QuantizedConv(Op):
    """A convolution: (x i8 [batch, H, W, I], filter i8, bias, multiplier, shift i32) -> i8.

    The filter is `packed`, the other operands are `spread`. The bias belongs to sums of
    `(filter - filter_zero) * (x + OFFSET)`: that of the model less `(zero + OFFSET)` times the
    channel's weights, each less `filter_zero`.

    Attributes:
        taps: Height and width of the filter.
        strides: Of both axes.
        dilations: Of both axes.
        padding: Elements before and after, of both axes; they are `zero`.
        outputs: Output channels.
        rescaling: How a sum is rounded.
        zero: What stands for 0 in `x`.
        out_zero: What stands for 0 in the result.
        low: The least of the result.
        high: The most of the result.
        filter_zero: What stands for 0 in the filter, less which weights are multiplied.
    """

    taps: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    padding: tuple[tuple[int, int], tuple[int, int]]
    outputs: int
    rescaling: Rescaling
    zero: int
    out_zero: int
    low: int
    high: int
    filter_zero: int = 0

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns `[batch, *stops, outputs]`."""
        spatial = window_stops(x[0][1:-1], self.taps, self.strides, self.dilations, self.padding)
        return ((x[0][0], *spatial, self.outputs),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns sums of products, scaled."""
        data, kernel, bias, multiplier, shift = x.every()
        kernel = unpacked(kernel, self.outputs, (*self.taps, data.shape[-1])).astype(np.float64)
        kernel = kernel - self.filter_zero
        widened = np.pad(data, window_padding(self.padding), constant_values=self.zero)
        wide = widened.astype(np.float64) + OFFSET
        total = np.zeros((*shape[:-1], self.outputs))
        for tap in taps(self.taps):
            part = wide[at_tap(tap, shape[1:-1], self.strides, self.dilations)]
            # Products of eight bits, fewer than 2^37 of them: float64 has them exactly.
            total += part @ kernel[:, tap[0], tap[1]].T
        sums = total.astype(np.int64) + bias[: self.outputs]
        ends = (multiplier[: self.outputs], shift[: self.outputs])
        found = self.rescaling.of(sums, *ends)
        return [np.clip(found + self.out_zero, self.low, self.high)]

    def macs(self, node: Node) -> int:
        """Returns the products of an example."""
        _, *spatial, outputs = numbers(node.output.shape)
        inputs = numbers(node.input.shape)[-1]
        return math.prod(spatial) * outputs * math.prod(self.taps) * inputs


@dataclass(frozen=True)
class QuantizedDepthwise(Op):
    """A convolution of each channel: (x i8 [batch, H, W, C], filter i8, bias, multiplier, shift).

    The filter is `[height, width, C]`; bias, multiplier and shift have `C` i32. Attributes are
    those of `QuantizedConv`; the bias is that of the model.
    """

    taps: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    padding: tuple[tuple[int, int], tuple[int, int]]
    rescaling: Rescaling
    zero: int
    out_zero: int
    low: int
    high: int
    filter_zero: int = 0

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns `[batch, *stops, C]`."""
        spatial = window_stops(x[0][1:-1], self.taps, self.strides, self.dilations, self.padding)
        return ((x[0][0], *spatial, x[0][-1]),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns sums of products, scaled."""
        data, kernel, bias, multiplier, shift = x.every()
        widened = np.pad(data, window_padding(self.padding), constant_values=self.zero)
        wide = widened.astype(np.int64) - self.zero
        sums = np.zeros(shape, np.int64) + bias
        for tap in taps(self.taps):
            part = wide[at_tap(tap, shape[1:-1], self.strides, self.dilations)]
            sums += part * (kernel[tap[0], tap[1]].astype(np.int64) - self.filter_zero)
        found = self.rescaling.of(sums, multiplier, shift)
        return [np.clip(found + self.out_zero, self.low, self.high)]

    def macs(self, node: Node) -> int:
        """Returns the products of an example."""
        return math.prod(numbers(node.output.shape)[1:]) * math.prod(self.taps)


class QuantizedPairKind(StrEnum):
    """What is made of two numbers."""

    SUM = "sum"
    PRODUCT = "product"


@dataclass(frozen=True)
class QuantizedPair(Op):
    """A sum or product of two tensors of one shape: (a i8, b i8) -> i8.

    Attributes:
        kind: Which.
        zeros: What stands for 0 in `a`, `b` and the result.
        multipliers: Factors of `a`, `b` and the result; a product has only the last one.
        shifts: Their powers of two.
        low: The least of the result.
        high: The most of the result.
    """

    kind: QuantizedPairKind
    zeros: tuple[int, int, int]
    multipliers: tuple[int, int, int]
    shifts: tuple[int, int, int]
    low: int
    high: int

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of both.

        Raises:
            ShapeError: They differ.
        """
        if x[0] != x[1]:
            raise ShapeError("operands in int8 have one shape")
        return (x[0],)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the pairs, scaled."""
        a, b = (
            data.astype(np.int64) - zero for data, zero in zip(x.every(), self.zeros, strict=False)
        )
        if self.kind is QuantizedPairKind.SUM:
            first, second = (
                scaled(data << SUM_SHIFT, self.multipliers[i], self.shifts[i])
                for i, data in enumerate((a, b))
            )
            found = first + second
        else:
            found = a * b
        found = scaled(found, self.multipliers[2], self.shifts[2]) + self.zeros[2]
        return [np.clip(found, self.low, self.high)]


# Powers of two by which the terms of a sum are widened before they are scaled.
SUM_SHIFT = 20


class QuantizedPoolKind(StrEnum):
    """What a pool keeps of its window."""

    MAX = "max"
    AVERAGE = "average"  # of the elements inside the input, not of the padding
    AVERAGE_UP = "average_up"  # the same with ties up


@dataclass(frozen=True)
class QuantizedPool(Op):
    """Pools over two axes: (x i8 [batch, H, W, C]) -> i8 of the same scale.

    A mean is rounded to the nearest, ties away from zero unless the kind says up.
    """

    kind: QuantizedPoolKind
    size: tuple[int, int]
    strides: tuple[int, int]
    padding: tuple[tuple[int, int], tuple[int, int]]
    low: int
    high: int

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns `[batch, *stops, C]`."""
        spatial = window_stops(x[0][1:-1], self.size, self.strides, (1, 1), self.padding)
        return ((x[0][0], *spatial, x[0][-1]),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the extremes or the means of what the window sees."""
        data = x[0].astype(np.int64)
        empty = -(1 << 31) if self.kind is QuantizedPoolKind.MAX else 0
        padding = window_padding(self.padding)
        wide = np.pad(data, padding, constant_values=empty)
        inside = np.pad(np.ones(data.shape, np.int64), padding)
        outputs = stops(wide.shape[1:-1], self.size, self.strides, (1, 1))
        places = [at_tap(tap, outputs, self.strides, (1, 1)) for tap in taps(self.size)]
        if self.kind is QuantizedPoolKind.MAX:
            found = np.max([wide[p] for p in places], axis=0)
        else:
            count = np.sum([inside[p] for p in places], axis=0)
            total = np.sum([wide[p] for p in places], axis=0)
            up = self.kind is QuantizedPoolKind.AVERAGE_UP
            found = (total + count // 2) // count if up else divided(total, count)
        return [np.clip(found, self.low, self.high)]


def divided(x: Array, count: Array | int) -> Array:
    """Returns whole quotients, rounded to the nearest, ties away from zero."""
    return np.asarray(np.sign(x) * ((np.abs(x) + np.asarray(count) // 2) // count))


@dataclass(frozen=True)
class QuantizedMean(Op):
    """Means over one span of axes: (x i8 [outer, count, inner]) -> i8 [outer, inner].

    Attributes:
        zero: What stands for 0 in `x`.
        multiplier: Factor of a sum, which makes it a mean of the result's scale.
        shift: Its power of two.
        out_zero: What stands for 0 in the result.
    """

    zero: int
    multiplier: int
    shift: int
    out_zero: int

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape without the middle axis."""
        return ((x[0][0], x[0][2]),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the means."""
        total = (x[0].astype(np.int64) - self.zero).sum(axis=1)
        found = scaled(total, self.multiplier, self.shift)
        return [np.clip(found + self.out_zero, -128, 127)]


@dataclass(frozen=True)
class Looked(Op):
    """A function of one number by its table: (x i8, table i8 [256]) -> i8; -128 comes first."""

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of the operand."""
        return (x[0],)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns what the table has."""
        return [x[1][x[0].astype(np.int64) + OFFSET]]


@dataclass(frozen=True)
class QuantizedSoftmax(Op):
    """Softmax over the last axis: (x i8, table f32 [256]) -> i8.

    The table has the exponential of how far a number is below the largest one of its row: element
    255 is that of 0. Sums are of f32, in order.

    Attributes:
        scale: Of the result.
        zero: What stands for 0 in the result.
    """

    scale: float
    zero: int

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of the operand."""
        return (x[0],)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the parts of each row."""
        data, table = x[0].astype(np.int64), x[1]
        exponents = table[255 + data - data.max(axis=-1, keepdims=True)].astype(np.float32)
        # `cumsum` adds in order, where `sum` adds pairs.
        total = np.cumsum(exponents, axis=-1, dtype=np.float32)[..., -1:]
        factor = np.float32(1) / (total * np.float32(self.scale))
        return [np.clip(away(exponents * factor) + self.zero, -128, 127)]


def away(x: Array) -> Array:
    """Returns floats rounded to integers, ties away from zero."""
    return np.asarray(np.trunc(x + np.copysign(np.nextafter(x.dtype.type(0.5), 0), x)))


@dataclass(frozen=True)
class Quantize(Op):
    """The int8 numbers that stand for real ones: (x f32) -> i8, ties away from zero."""

    scale: float
    zero: int

    single = True

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of the operand."""
        return (x[0],)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns quotients by the scale, rounded."""
        found = away(x[0].astype(np.float32) / np.float32(self.scale))
        return [np.clip(np.nan_to_num(found) + self.zero, -128, 127)]


@dataclass(frozen=True)
class Dequantize(Op):
    """The real numbers that int8 ones stand for: (x i8) -> f32."""

    scale: float
    zero: int

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of the operand."""
        return (x[0],)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns multiples of the scale."""
        return [(x[0].astype(np.float64) - self.zero) * self.scale]
