"""An operator of the user's own, which a Rust function of theirs computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias

import numpy as np

from converters.tf.ir.graph import Op
from converters.tf.ir.operands import Operands
from converters.tf.ir.values import Array, Shape

__all__ = ["Argument", "Custom", "OwnOp"]

# What the Rust function is given beside tensors.
Argument: TypeAlias = "bool | int | float | str | tuple[Argument, ...]"


class OwnOp(Protocol):
    """What the user says of an operator, for the attributes of one node."""

    @property
    def name(self) -> str:
        """Its name in the model, such as `mine::SoftClip`."""

    @property
    def function(self) -> str:
        """The Rust function."""

    @property
    def module(self) -> str:
        """The Rust module that has the function."""

    @property
    def source(self) -> str:
        """The text of that module."""

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """What the function is given between operands and results."""

    @property
    def shapes(self) -> Callable[[Sequence[Shape]], tuple[Shape, ...]]:
        """The shape rule."""

    @property
    def compute(self) -> Callable[[Sequence[Array]], list[Array]]:
        """The meaning in NumPy."""


@dataclass(frozen=True)
class Custom(Op):
    """What an operator of the user computes: (any tensors) -> one or more of one type."""

    own: OwnOp
    writes_all: ClassVar[bool] = True

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns what the shape rule says."""
        return self.own.shapes(x)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns what the user's NumPy says."""
        return self.own.compute([np.asarray(data) for data in x.every()])
