"""Real numbers that become int8 by their range at run time, and products of them with int8 weights.

A level `q` stands for `scale * (q - zero)`. Levels are those of ONNX's `DynamicQuantizeLinear` less
128, and each example has a scale and a zero of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from converters.tf.ir.graph import Node, Op
from converters.tf.ir.operands import Operands
from converters.tf.ir.ops.functions import Function, finish
from converters.tf.ir.ops.quantized import OFFSET, unpacked
from converters.tf.ir.ops.windows import at_tap, taps, window_padding, window_stops
from converters.tf.ir.sizes import ShapeError, elements, numbers
from converters.tf.ir.values import Array, Shape

__all__ = ["DynamicConv", "DynamicDense", "DynamicLevels"]

# Numbers that say what levels stand for: a scale, and the level of 0.
ENDS = 2
_STEPS = np.float32(255)


@dataclass(frozen=True)
class DynamicLevels(Op):
    """Levels by the range of each example: (x f32) -> (i8, ends f32 [..., 2]).

    Ties are rounded to even. The range has 0 in it. An example with a number that is not finite has
    levels of 0, and NaN as its scale.

    Attributes:
        axes: Last axes of `x` whose elements share a range; one or more.
    """

    axes: int

    single = True
    writes_all = True

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of the operand, and the axes before those of an example."""
        return x[0], (*x[0][: len(x[0]) - self.axes], ENDS)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns levels and ends, computed in float32."""
        data = x[0].astype(np.float32)
        lead = shape[: len(shape) - self.axes]
        rows = data.reshape(math.prod(lead), -1)
        least = np.minimum(rows.min(axis=1, initial=0), 0)
        most = np.maximum(rows.max(axis=1, initial=0), 0)
        width = most - least
        parts = np.where(np.isfinite(width), width / _STEPS, most / _STEPS - least / _STEPS)
        scale = np.where(parts > 0, parts, np.float32(1)).astype(np.float32)
        zero = np.rint(np.clip(-least / scale, np.float32(0), _STEPS))
        levels = np.clip(np.rint(rows / scale[:, None]), -zero[:, None], _STEPS - zero[:, None])
        finite = np.asarray(np.isfinite(rows).all(axis=1))
        levels = np.where(finite[:, None], levels + zero[:, None] - OFFSET, 0)
        ends = np.stack(
            [np.where(finite, scale, np.nan), np.where(finite, zero - OFFSET, 0)], axis=1
        )
        return [levels.reshape(shape), ends.reshape(*lead, ENDS)]


def _finished(
    sums: Array, scale: Array, x: Operands, outputs: int, activation: Function | None
) -> list[Array]:
    """Returns sums as they are, or as the real numbers that they stand for if there are factors."""
    if x.get(4) is None:
        return [sums.astype(np.int64)]
    factors = scale.astype(np.float32) * x[4][:outputs].astype(np.float32)
    real = sums.astype(np.int64).astype(np.float32) * factors
    more = (None if a is None else a.astype(np.float64) for a in (x.get(5), x.get(6)))
    return [finish(real.astype(np.float64), list(more), activation)]


def _spread(ends: Array, index: int, rank: int) -> Array:
    """Returns one of the ends in a shape that broadcasts with tensors of `rank` axes."""
    part = ends[..., index].astype(np.float64)
    return part.reshape(*part.shape, *(1,) * (rank - part.ndim))


@dataclass(frozen=True)
class DynamicDense(Op):
    """Products of levels with a matrix of int8: (levels, ends, kernel, totals, factors?, ...).

    The operands are (levels i8 [..., K], ends f32, kernel i8, totals i32, factors f32?, bias f32
    [N]?, residual f32?). The result is f32 with factors, and without them i32: the sums. The ends
    have fewer axes before their last one than the levels, or as many. The kernel is `packed`;
    totals are the sums of its columns, which together with the factors are `spread`.

    Attributes:
        outputs: N.
        activation: Applied last, to f32.
    """

    outputs: int
    activation: Function | None = None

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of the levels with N columns.

        Raises:
            ShapeError: The ends are of other examples.
        """
        lead = x[1][:-1]
        if len(lead) >= len(x[0]) or lead != x[0][: len(lead)]:
            raise ShapeError(f"levels {x[0]} and ends {x[1]}")
        return ((*x[0][:-1], self.outputs),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns sums of products, scaled if there are factors."""
        levels, ends = x[0], x[1]
        kernel = unpacked(x[2], self.outputs, (levels.shape[-1],)).astype(np.float64)
        sums = (levels.astype(np.float64) - _spread(ends, 1, levels.ndim)) @ kernel.T
        return _finished(sums, _spread(ends, 0, sums.ndim), x, self.outputs, self.activation)

    def macs(self, node: Node) -> int:
        """Returns N for each level."""
        return elements(node.input.shape) * self.outputs


@dataclass(frozen=True)
class DynamicConv(Op):
    """A convolution of levels over one or two axes: operands and results as `DynamicDense`.

    The levels are [batch, *spatial, Cin], the ends [batch, 2] or [2]. Padding is of what stands
    for 0.

    Attributes:
        taps: One number per spatial axis, as all that follow.
        strides: From one stop to the next.
        dilations: From one tap to the next.
        padding: Elements before and after.
        outputs: Output channels.
        activation: Applied last, to f32.
    """

    taps: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    outputs: int
    activation: Function | None = None

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns `[batch, *stops, outputs]`.

        Raises:
            ShapeError: The ends are of other examples.
        """
        if x[1][:-1] not in ((), x[0][:1]):
            raise ShapeError(f"levels {x[0]} and ends {x[1]}")
        stops = window_stops(x[0][1:-1], self.taps, self.strides, self.dilations, self.padding)
        return ((x[0][0], *stops, self.outputs),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns sums of products, scaled if there are factors."""
        levels, ends = x[0], x[1]
        kernel = unpacked(x[2], self.outputs, (*self.taps, levels.shape[-1])).astype(np.float64)
        apart = levels.astype(np.float64) - _spread(ends, 1, levels.ndim)
        wide = np.pad(apart, window_padding(self.padding))
        sums = np.zeros(shape)
        for tap in taps(self.taps):
            part = wide[at_tap(tap, shape[1:-1], self.strides, self.dilations)]
            sums += np.asarray(part @ np.moveaxis(kernel, 0, -1)[tap])
        return _finished(sums, _spread(ends, 0, sums.ndim), x, self.outputs, self.activation)

    def macs(self, node: Node) -> int:
        """Returns the products of an example."""
        inputs = numbers(node.input.shape)[-1]
        return elements(node.output.shape) * math.prod(self.taps) * inputs
