"""Reductions, and ops along an axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from converters.tf.ir.graph import Node, Op
from converters.tf.ir.operands import Operands, wide
from converters.tf.ir.sizes import ShapeError
from converters.tf.ir.types import BOOLS, FLOATS, NUMBERS, unserved
from converters.tf.ir.values import Array, Batch, Dim, DType, Shape

__all__ = ["ArgExtreme", "Cumulative", "Reduce", "ReduceKind", "TopK"]


class ReduceKind(StrEnum):
    """Reductions; ALL and ANY take bools."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"
    MIN = "min"
    PROD = "prod"
    ALL = "all"
    ANY = "any"


@dataclass(frozen=True)
class Reduce(Op):
    """Reduces axes, sorted and not negative: (x)."""

    kind: ReduceKind
    axes: tuple[int, ...]
    keepdims: bool = False

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the axes that are left, or 1 for those that are not."""
        if any(isinstance(x[0][a], Batch) for a in self.axes):
            raise ShapeError("the batch is reduced")
        kept: list[Dim] = [1 if i in self.axes else d for i, d in enumerate(x[0])]
        return (tuple(d for i, d in enumerate(kept) if self.keepdims or i not in self.axes),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the reduced elements."""
        function = _REDUCE[self.kind]
        least = {"initial": _least(self.kind, x[0].dtype)} if self.kind in _EXTREMES else {}
        return [np.asarray(function(wide(x[0]), axis=self.axes, keepdims=self.keepdims, **least))]

    def refused(self, node: Node) -> list[str]:
        """Returns whether the runtime reduces the type."""
        served = _REDUCE_TYPES.get(self.kind, NUMBERS)
        return unserved(f"reduce {self.kind}", node.input.dtype, served)


@dataclass(frozen=True)
class ArgExtreme(Op):
    """The first place of the largest (or smallest) element along an axis: (x) -> i32 or i64.

    NaN is never chosen. Nothing but NaN, and infinities at the other end, give place 0.
    """

    axis: int
    smallest: bool = False

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the other axes."""
        return (x[0][: self.axis] + x[0][self.axis + 1 :],)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the places."""
        data = x[0]
        if data.dtype.kind == "f":
            limits = np.finfo(data.dtype)
            # The search starts at place 0 from the finite value at the other end.
            data = np.fmin(data, limits.max) if self.smallest else np.fmax(data, limits.min)
        return [np.asarray((np.argmin if self.smallest else np.argmax)(data, axis=self.axis))]

    def refused(self, node: Node) -> list[str]:
        """Returns whether the runtime compares the type, and whether there is an element at all."""
        if node.input.shape[self.axis] == 0:
            return ["the place of the largest or smallest of no elements"]
        return unserved("arg_max", node.input.dtype, NUMBERS)


@dataclass(frozen=True)
class TopK(Op):
    """The places of the largest elements of each row of the last axis: (x) -> i32.

    The shape of the output says how many. They are in falling order, the first of equal ones first
    and NaN last.
    """

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the places, by a stable sort."""
        turned = np.flip(x[0], -1)
        order = turned.shape[-1] - 1 - np.flip(np.argsort(turned, axis=-1, kind="stable"), -1)
        if x[0].dtype.kind == "f":
            unknown = np.take_along_axis(np.isnan(x[0]), order, -1)
            order = np.take_along_axis(order, np.argsort(unknown, axis=-1, kind="stable"), -1)
        return [np.asarray(order[..., : shape[-1]])]

    def refused(self, node: Node) -> list[str]:
        """Returns whether the runtime sorts the type."""
        return unserved("top_k", node.input.dtype, NUMBERS)


@dataclass(frozen=True)
class Cumulative(Op):
    """Running sum or product along an axis: (x)."""

    axis: int
    product: bool = False
    exclusive: bool = False
    reverse: bool = False

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of x."""
        return (x[0],)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the running sums or products."""
        data = np.flip(x[0], self.axis) if self.reverse else x[0]
        result = (np.cumprod if self.product else np.cumsum)(wide(data), axis=self.axis)
        if self.exclusive:
            result = np.roll(result, 1, self.axis)
            first = [slice(None)] * result.ndim
            first[self.axis] = slice(0, 1)
            result[tuple(first)] = 1 if self.product else 0
        return [np.flip(result, self.axis) if self.reverse else result]

    def refused(self, node: Node) -> list[str]:
        """Returns whether the runtime adds and multiplies the type."""
        return unserved("cumulative", node.input.dtype, NUMBERS)


_REDUCE: Mapping[ReduceKind, Callable[..., Any]] = {
    ReduceKind.SUM: np.sum,
    ReduceKind.MEAN: np.mean,
    ReduceKind.MAX: np.max,
    ReduceKind.MIN: np.min,
    ReduceKind.PROD: np.prod,
    ReduceKind.ALL: np.all,
    ReduceKind.ANY: np.any,
}
_EXTREMES = (ReduceKind.MAX, ReduceKind.MIN)


def _least(kind: ReduceKind, dtype: Any) -> Any:
    """Returns the largest or smallest of no elements, as TensorFlow gives it."""
    low = kind is ReduceKind.MAX
    if dtype.kind == "f":
        return -np.inf if low else np.inf
    limits = np.iinfo(dtype)
    return limits.min if low else limits.max


# Of a reduction that takes all numbers, there is no row.
_REDUCE_TYPES: Mapping[ReduceKind, frozenset[DType]] = {
    ReduceKind.MEAN: FLOATS,
    ReduceKind.ALL: BOOLS,
    ReduceKind.ANY: BOOLS,
}
