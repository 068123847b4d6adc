"""Ops with a graph inside; what they mean is in `interpret.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from converters.tf.ir.graph import Graph, Op
from converters.tf.ir.values import Dim, Shape

__all__ = ["Loop"]


@dataclass(frozen=True)
class Loop(Op):
    """Runs a body again and again: (carried, ...) -> (carried, ...).

    The inputs of the body are the index of the iteration (i32, scalar) and the carried values. Its
    outputs are the carried values for the next iteration, in the order of this node's operands,
    with equal types and shapes. A value that the body returns as it came does not change in the
    loop. The body may use constants, but no other value from outside.

    It runs `trips` times; as often as there are examples, it maps the body over them, and each
    iteration reads and writes what is its own example's. Where `going` is the place of a carried
    truth value, the loop ends before the iteration at which that is false. Then `trips` is only the
    most that it can run.
    """

    trips: Dim
    body: Graph
    going: int | None = None

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shapes of the carried values."""
        return tuple(x)

    def bodies(self) -> tuple[Graph, ...]:
        """Returns the body."""
        return (self.body,)
