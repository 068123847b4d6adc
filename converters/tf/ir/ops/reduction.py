"""Reductions, and ops along an axis."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from converters.tf.ir.graph import Op

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


@dataclass(frozen=True)
class ArgExtreme(Op):
    """The first place of the largest (or smallest) element along an axis: (x) -> i32 or i64."""

    axis: int
    smallest: bool = False


@dataclass(frozen=True)
class TopK(Op):
    """The places of the largest elements of each row of the last axis: (x) -> i32.

    The shape of the output says how many. They are in falling order, the first of equal ones first
    and what is not a number last.
    """


@dataclass(frozen=True)
class Cumulative(Op):
    """Running sum or product along an axis: (x)."""

    axis: int
    product: bool = False
    exclusive: bool = False
    reverse: bool = False
