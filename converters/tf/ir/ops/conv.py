"""Convolutions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from converters.tf.ir.graph import Node, Op
from converters.tf.ir.operands import Operands
from converters.tf.ir.ops import tiles
from converters.tf.ir.ops.functions import Function, finish
from converters.tf.ir.ops.packing import packed_len, plain_product
from converters.tf.ir.ops.windows import at_tap, stops, taps, window_padding, window_stops
from converters.tf.ir.sizes import elements, has_open, numbers
from converters.tf.ir.values import Array, Shape

# Bands of chains: as in kernels/src/conv/chain.rs.
CHAIN_NEAR = 1 << 17
CHAIN_TASKS = 8
CHAIN_LEAST_LINES = 2
CHAIN_LINE = 16

__all__ = ["Chain", "Conv", "ConvTranspose"]


@dataclass(frozen=True)
class Conv(Op):
    """A convolution over one or two axes: (x, filter, bias [Cout]?, residual?), f32.

    x is [batch, *spatial, Cin], the filter [*size, Cin / groups, Cout] and constant or not, the
    residual has the shape of the output, `activation` comes last. With `groups == Cin` it is
    depthwise: output channel `c * multiplier + m` reads input channel `c`.

    Attributes:
        strides: One per spatial axis.
        dilations: One per spatial axis.
        padding: Zeros before and after, per spatial axis.
        groups: Divides Cin and Cout.
        activation: Applied last.
    """

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    groups: int = 1
    activation: Function | None = None

    single = True

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns `[batch, *stops, Cout]`."""
        *size, _, columns = x[1]
        stops = window_stops(x[0][1:-1], size, self.strides, self.dilations, self.padding)
        return ((x[0][0], *stops, columns),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the convolution, a tap at a time."""
        x = x.wide()
        data, weights = np.pad(x[0], window_padding(self.padding)), x[1]
        size = weights.shape[:-2]
        outputs = stops(data.shape[1:-1], size, self.strides, self.dilations)
        result = np.zeros((data.shape[0], *outputs, weights.shape[-1]))
        if min(result.shape, default=1) > 0:
            inner, outer = weights.shape[-2], weights.shape[-1] // self.groups
            for tap in taps(size):
                part = data[at_tap(tap, outputs, self.strides, self.dilations)]
                if inner == 1 and self.groups > 1:
                    result += np.repeat(part, outer, axis=-1) * weights[tap][0]
                    continue
                for g in range(self.groups):
                    columns = slice(g * outer, (g + 1) * outer)
                    rows = part[..., g * inner : (g + 1) * inner]
                    result[..., columns] += rows @ weights[tap][:, columns]
        return [finish(result, [x.get(2), x.get(3)], self.activation)]

    def packed_operands(self, node: Node) -> tuple[int, ...]:
        """Returns the filter, but not one per channel."""
        return () if is_depthwise(node) else (1,)

    def macs(self, node: Node) -> int:
        """Returns the weights of a filter for each element of the result."""
        return elements(node.output.shape) * math.prod(numbers(node.given(1).shape)[:-1])

    def scratch(self, node: Node, packed: bool = True) -> int:
        """Returns the memory of tiles, or for filters that are not packed that of a packed one."""
        if packed:
            return self._tiled(node)
        if is_pointwise_sum(node):
            k, n = numbers(node.given(1).shape)[-2:]
            return plain_product(elements(node.input.shape) // max(k, 1), n, k)
        if is_depthwise(node):
            return 0
        *size, group_in, out = numbers(node.given(1).shape)
        return self.groups * packed_len(16, math.prod(size) * group_in, out // self.groups)

    def _tiled(self, node: Node) -> int:
        """Returns the scratch elements of a convolution whose filter is transformed for tiles."""
        *size, depth, columns = numbers(node.given(1).shape)
        if self.groups != 1:
            return 0
        images, *inputs, _ = numbers(node.input.shape)
        if has_open(node.input.shape):
            return 0  # Its filter is not transformed.
        outputs = numbers(node.output.shape)[1:-1]
        before = [padding[0] for padding in self.padding]
        axes = zip(inputs, outputs, size, self.strides, self.dilations, before, strict=True)
        return tiles.scratch(images, [tiles.Axis(*axis) for axis in axes], depth, columns)

    def overwritten(self, node: Node) -> tuple[int, ...]:
        """Returns the residual of a matmul."""
        return (3,) if is_pointwise_sum(node) else ()


@dataclass(frozen=True)
class ConvTranspose(Op):
    """The gradient of a convolution's input: (x, filter, bias [Cout]?), f32.

    x is [batch, *spatial, Cin], the filter [*size, Cout / groups, Cin]. Strides, dilations and
    padding are those of the convolution that maps the output of this op to its input.
    """

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    groups: int = 1
    activation: Function | None = None

    single = True
    packed = (1,)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the gradient, a tap at a time."""
        x = x.wide()
        data, weights, spatial = x[0], x[1], shape[1:-1]
        size, inner = weights.shape[:-2], weights.shape[-1] // self.groups
        padded = [
            s + before + after for s, (before, after) in zip(spatial, self.padding, strict=True)
        ]
        outer = weights.shape[-2]
        result = np.zeros((data.shape[0], *padded, outer * self.groups))
        for tap in taps(size):
            place = at_tap(tap, data.shape[1:-1], self.strides, self.dilations)
            for g in range(self.groups):
                rows = slice(g * inner, (g + 1) * inner)
                columns = slice(g * outer, (g + 1) * outer)
                result[(*place, columns)] += data[..., rows] @ weights[tap][:, rows].T
        inside = tuple(slice(b, b + s) for s, (b, _) in zip(spatial, self.padding, strict=True))
        return [finish(result[(slice(None), *inside)], [x.get(2)], self.activation)]

    def macs(self, node: Node) -> int:
        """Returns the weights of a filter for each element of x."""
        return elements(node.input.shape) * math.prod(numbers(node.given(1).shape)[:-1])

    def scratch(self, node: Node, packed: bool = True) -> int:
        """Returns nothing for a packed filter, else the memory that packs it."""
        if packed:
            return 0
        *size, group_out, inputs = numbers(node.given(1).shape)
        return packed_len(16, math.prod(size) * inputs // self.groups, group_out) * self.groups


@dataclass(frozen=True)
class Chain(Op):
    """Layers each of which reads what the one before it gives: (x, weights, ...), f32.

    They are convolutions, between which no image is there as a whole, or two products of one row.
    Weights are the constants that the layers read, each once.

    Attributes:
        links: The layers, which have neither residuals nor other readers.
    """

    links: tuple[Node, ...]

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of the last link's result."""
        return (self.links[-1].output.shape,)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns what the links compute, each rounded."""
        names = dict.fromkeys(v for link in self.links for v in link.present if v.is_constant)
        weights = dict(zip(names, x.every()[1:], strict=True))
        result = x[0]
        for link in self.links:
            operands = [result, *(None if v is None else weights[v] for v in link.inputs[1:])]
            (found,) = link.op.meaning(Operands(operands), ())
            result = found.astype(link.output.dtype.numpy)
        return [result]

    def macs(self, node: Node) -> int:
        """Returns those of the links."""
        return sum(link.op.macs(link) for link in self.links)

    def scratch(self, node: Node, packed: bool = True) -> int:
        """Returns the memory of what lies between the links: bands of lines, or a row."""
        first, *_ = self.links
        if not isinstance(first.op, Conv):
            return elements(first.output.shape)
        lines, each = CHAIN_LEAST_LINES, 0
        for link in reversed(self.links[1:]):
            assert isinstance(link.op, Conv)
            _, height, width, channels = numbers(link.input.shape)
            reach = (numbers(link.given(1).shape)[0] - 1) * link.op.dilations[0] + 1
            lines = min((lines - 1) * link.op.strides[0] + reach, height)
            each += lines * width * channels
        each = -(-each // CHAIN_LINE) * CHAIN_LINE
        return max(CHAIN_TASKS * each, 2 * CHAIN_NEAR)

    def inner(self) -> Iterator[Node]:
        """Yields the links."""
        yield from self.links


def is_depthwise(node: Node) -> bool:
    """Returns whether a convolution has a group per input channel, more than one."""
    if not isinstance(node.op, Conv):
        return False
    channels = node.input.shape[-1]
    return node.op.groups == channels and channels != 1


def is_pointwise_sum(node: Node) -> bool:
    """Returns whether a convolution with a residual is a matmul."""
    op = node.op
    kernel = node.operand(1)
    if not isinstance(op, Conv) or kernel is None or node.operand(3) is None:
        return False
    return (
        op.groups == 1
        and math.prod(numbers(kernel.shape)[:-2]) == 1
        and all(s == 1 for s in op.strides)
        and all(p == (0, 0) for p in op.padding)
    )
