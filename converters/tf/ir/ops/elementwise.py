"""Ops on each element by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from converters.tf.ir.graph import Node, Op
from converters.tf.ir.operands import Operands, wide
from converters.tf.ir.ops.functions import Fn, Function, apply, types_of
from converters.tf.ir.sizes import broadcast, elements
from converters.tf.ir.types import (
    BOOLS,
    FLOATS,
    INTEGERS,
    NUMBERS,
    SINGLE,
    SINGLE_AND_INTEGERS,
    unserved,
)
from converters.tf.ir.values import Array, DType, Shape

__all__ = [
    "Binary",
    "BinaryKind",
    "Cast",
    "Compare",
    "CompareKind",
    "ScaleShift",
    "Select",
    "Unary",
]


@dataclass(frozen=True)
class Unary(Op):
    """Applies a function to every element: (x). f32 for the functions above `ABS` to `SQUARE`."""

    function: Function

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of x."""
        return (x[0],)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the function of every element."""
        return [apply(self.function, wide(x[0]))]

    def computes_single(self) -> bool:
        """Returns whether float64 lacks the function."""
        return self.function.kind not in _WIDE_UNARY

    def refused(self, node: Node) -> list[str]:
        """Returns whether the runtime has the function for the type."""
        kind = str(self.function.kind)
        return unserved(kind, node.input.dtype, types_of(self.function))

    def overwritten(self, node: Node) -> tuple[int, ...]:
        """Returns x."""
        return (0,)


class BinaryKind(StrEnum):
    """Functions of two elements of one type.

    Division of integers by 0, remainders of it and negative powers of integers are errors of the
    call; otherwise integers wrap.
    """

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"  # true division of floats; integers truncate
    DIV_NO_NAN = "div_no_nan"  # 0 where the divisor is 0
    MUL_NO_NAN = "mul_no_nan"  # 0 where the second factor is 0
    MAX = "max"
    MIN = "min"
    POW = "pow"
    FLOOR_DIV = "floor_div"
    FLOOR_MOD = "floor_mod"
    TRUNC_MOD = "trunc_mod"
    SQUARED_DIFFERENCE = "squared_difference"
    ATAN2 = "atan2"
    PRELU = "prelu"  # a if a > 0 else b * a; floats
    LOGICAL_AND = "logical_and"
    LOGICAL_OR = "logical_or"
    LOGICAL_XOR = "logical_xor"
    BIT_AND = "bit_and"  # integers, as the others
    BIT_OR = "bit_or"
    BIT_XOR = "bit_xor"
    BIT_LEFT = "bit_left"  # by an amount that is cut to 0 and the last bit
    BIT_RIGHT = "bit_right"


@dataclass(frozen=True)
class Binary(Op):
    """Combines two tensors of one type elementwise with NumPy's broadcasting: (a, b)."""

    kind: BinaryKind
    activation: Function | None = None

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns what NumPy's broadcasting gives."""
        return (broadcast(x[0], x[1]),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the function of every two elements, rounded before its activation."""
        a, b = wide(x[0]), wide(x[1])
        result = np.asarray(BINARY[self.kind](a, b))
        if self.activation is None:
            return [result]
        # Its first rounding can decide where a function that jumps ends up.
        return [apply(self.activation, wide(result.astype(x[0].dtype)))]

    def computes_single(self) -> bool:
        """Returns whether float64 lacks the function."""
        return self.kind in _SINGLE_BINARY

    def refused(self, node: Node) -> list[str]:
        """Returns whether the runtime has the function for the type."""
        dtype = node.input.dtype
        reasons = unserved(str(self.kind), dtype, _BINARY_TYPES.get(self.kind, NUMBERS))
        if self.activation is not None and dtype is not DType.F32:
            reasons.append(f"{self.kind} of {dtype} with an activation; f32 only")
        return reasons

    def overwritten(self, node: Node) -> tuple[int, ...]:
        """Returns the operands that have the shape of the result."""
        return tuple(i for i in (0, 1) if node.given(i).shape == node.output.shape)


class CompareKind(StrEnum):
    """Comparisons."""

    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"


@dataclass(frozen=True)
class Compare(Op):
    """Compares two tensors of one type with NumPy's broadcasting: (a, b) -> bool."""

    kind: CompareKind

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns what NumPy's broadcasting gives."""
        return (broadcast(x[0], x[1]),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the comparison of every two elements."""
        return [np.asarray(_COMPARE[self.kind](x[0], x[1]))]

    def refused(self, node: Node) -> list[str]:
        """Returns whether the runtime compares the type."""
        equality = self.kind in (CompareKind.EQ, CompareKind.NE)
        served = NUMBERS | BOOLS if equality else NUMBERS
        return unserved(str(self.kind), node.input.dtype, served)


@dataclass(frozen=True)
class Select(Op):
    """Takes `then` where a bool holds: (condition, then, otherwise), NumPy's broadcasting."""

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns what NumPy's broadcasting gives."""
        return (broadcast(*x),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the chosen elements."""
        return [np.where(x[0].astype(bool), x[1], x[2])]


@dataclass(frozen=True)
class Cast(Op):
    """Converts elements to the type of the output: (x). Floats truncate; to bool is `!= 0`."""

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of x."""
        return (x[0],)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns x, which the interpreter converts."""
        return [x[0]]

    def refused(self, node: Node) -> list[str]:
        """Returns whether the runtime converts between the types."""
        if changes_size(node):
            return []
        targets = _CASTS - {DType.U8}
        return [
            *unserved("cast", node.input.dtype, _CASTS),
            *unserved("cast to", node.output.dtype, targets),
        ]


@dataclass(frozen=True)
class ScaleShift(Op):
    """`x * scale + shift` along the last axis: (x, scale [C], shift [C]), f32."""

    activation: Function | None = None

    single = True

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of x."""
        return (x[0],)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the scaled and shifted elements."""
        result = wide(x[0]) * x[1] + x[2]
        return [result if self.activation is None else apply(self.activation, result)]

    def macs(self, node: Node) -> int:
        """Returns one for each element."""
        return elements(node.output.shape)


def changes_size(node: Node) -> bool:
    """Returns whether a conversion between integers drops or adds upper bits."""
    source, target = node.input.dtype, node.output.dtype
    if source.numpy.kind not in "iub" or target.numpy.kind not in "iu":
        return False
    return target not in INTEGERS or source not in INTEGERS | {DType.BOOL, DType.U8}


# Functions that float64 has, too.
_WIDE_UNARY = frozenset(
    [
        Fn.ABS,
        Fn.IS_FINITE,
        Fn.IS_INF,
        Fn.IS_NAN,
        Fn.NEG,
        Fn.RECIPROCAL,
        Fn.SQRT,
        Fn.SQUARE,
    ]
)
_SINGLE_BINARY = frozenset([BinaryKind.ATAN2, BinaryKind.FLOOR_DIV, BinaryKind.POW])
# Of a function that has all numbers, there is no row.
_BINARY_TYPES: Mapping[BinaryKind, frozenset[DType]] = {
    BinaryKind.DIV_NO_NAN: FLOATS,
    BinaryKind.MUL_NO_NAN: FLOATS,
    BinaryKind.POW: SINGLE_AND_INTEGERS,
    BinaryKind.FLOOR_DIV: SINGLE_AND_INTEGERS,
    BinaryKind.PRELU: FLOATS,
    BinaryKind.ATAN2: SINGLE,
    BinaryKind.LOGICAL_AND: BOOLS,
    BinaryKind.LOGICAL_OR: BOOLS,
    BinaryKind.LOGICAL_XOR: BOOLS,
    BinaryKind.BIT_AND: INTEGERS,
    BinaryKind.BIT_OR: INTEGERS,
    BinaryKind.BIT_XOR: INTEGERS,
    BinaryKind.BIT_LEFT: INTEGERS,
    BinaryKind.BIT_RIGHT: INTEGERS,
}
_CASTS = NUMBERS | {DType.BOOL, DType.U8}


def _whole(a: Array) -> bool:
    return bool(np.issubdtype(np.asarray(a).dtype, np.integer))


def _divide(a: Array, b: Array) -> Array:
    if not _whole(a):
        return np.asarray(np.true_divide(a, b))
    return np.asarray((a - np.fmod(a, b)) // b)


def _by_what_is_not_zero(function: Callable[[Array, Array], Any]) -> Callable[..., Any]:
    def divide(a: Array, b: Array) -> Any:
        if _whole(a) and not np.all(b) and np.broadcast(a, b).size:
            raise ZeroDivisionError("integer division by zero")
        return function(a, b)

    return divide


def _power(a: Array, b: Array) -> Any:
    if _whole(a) and np.any(b < 0):
        raise ArithmeticError("integers have no negative integer powers")
    return np.power(a, b)


def _amount(b: Array) -> Any:
    return np.clip(b, 0, 8 * b.dtype.itemsize - 1).astype(b.dtype)


BINARY: dict[BinaryKind, Callable[[Array, Array], Any]] = {
    BinaryKind.ADD: np.add,
    BinaryKind.SUB: np.subtract,
    BinaryKind.MUL: np.multiply,
    BinaryKind.DIV: _by_what_is_not_zero(_divide),
    BinaryKind.DIV_NO_NAN: lambda a, b: np.where(b == 0, 0, np.true_divide(a, b)),
    BinaryKind.MUL_NO_NAN: lambda a, b: np.where(b == 0, 0, np.multiply(a, b)),
    BinaryKind.MAX: np.maximum,
    BinaryKind.MIN: np.minimum,
    BinaryKind.POW: _power,
    BinaryKind.FLOOR_DIV: _by_what_is_not_zero(np.floor_divide),
    BinaryKind.FLOOR_MOD: _by_what_is_not_zero(np.mod),
    BinaryKind.TRUNC_MOD: _by_what_is_not_zero(np.fmod),
    BinaryKind.SQUARED_DIFFERENCE: lambda a, b: np.square(a - b),
    BinaryKind.ATAN2: np.arctan2,
    BinaryKind.PRELU: lambda a, b: np.where(a > 0, a, b * a),
    BinaryKind.LOGICAL_AND: np.logical_and,
    BinaryKind.LOGICAL_OR: np.logical_or,
    BinaryKind.LOGICAL_XOR: np.logical_xor,
    BinaryKind.BIT_AND: np.bitwise_and,
    BinaryKind.BIT_OR: np.bitwise_or,
    BinaryKind.BIT_XOR: np.bitwise_xor,
    BinaryKind.BIT_LEFT: lambda a, b: np.left_shift(a, _amount(b)),
    BinaryKind.BIT_RIGHT: lambda a, b: np.right_shift(a, _amount(b)),
}

_COMPARE: dict[CompareKind, Callable[[Array, Array], Any]] = {
    CompareKind.EQ: np.equal,
    CompareKind.NE: np.not_equal,
    CompareKind.LT: np.less,
    CompareKind.LE: np.less_equal,
    CompareKind.GT: np.greater,
    CompareKind.GE: np.greater_equal,
}
