"""Ops on each element by itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from converters.tf.ir.graph import Op
from converters.tf.ir.ops.functions import Function

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
    BIT_AND = "bit_and"  # whole numbers, as the others
    BIT_OR = "bit_or"
    BIT_XOR = "bit_xor"
    BIT_LEFT = "bit_left"  # by an amount that is cut to 0 and the last bit
    BIT_RIGHT = "bit_right"


@dataclass(frozen=True)
class Binary(Op):
    """Combines two tensors of one type elementwise with NumPy's broadcasting: (a, b)."""

    kind: BinaryKind
    activation: Function | None = None


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


@dataclass(frozen=True)
class Select(Op):
    """Takes `then` where a bool holds: (condition, then, otherwise), NumPy's broadcasting."""


@dataclass(frozen=True)
class Cast(Op):
    """Converts elements to the type of the output: (x). Floats truncate; to bool is `!= 0`."""


@dataclass(frozen=True)
class ScaleShift(Op):
    """`x * scale + shift` along the last axis: (x, scale [C], shift [C]), f32."""

    activation: Function | None = None
