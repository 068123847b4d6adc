"""What is asked of whole texts: whether an expression matches them, and their fingerprints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from converters.tf.ir.graph import Node, Op
from converters.tf.ir.operands import Operands
from converters.tf.ir.ops.hashes import farm
from converters.tf.ir.ops.text import Change, Reading, as_bytes
from converters.tf.ir.values import Array, DType, Shape

__all__ = ["Automaton", "TextMatch", "TextPrint"]


@dataclass(frozen=True, eq=False)
class Automaton:
    """What each byte of a text leads to.

    Attributes:
        classes: The class of each byte, u8 [256].
        next: The next state for each state and class, i32 [states, classes].
        start: The state before the first byte.
        matching: Texts match that end in this state or a later one.
    """

    classes: Array
    next: Array
    start: int
    matching: int

    def matches(self, text: bytes) -> bool:
        """Returns whether a text matches as a whole."""
        state = self.start
        for byte in text:
            state = int(self.next[state, self.classes[byte]])
        return state >= self.matching


@dataclass(frozen=True)
class _Whole(Op):
    """What the ops of this family have in common.

    Attributes:
        changes: How texts are standardized.
    """

    changes: tuple[Change, ...]

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of the texts."""
        return (x[0],)

    def texts(self, x: Operands) -> list[bytes]:
        """Returns the texts, standardized."""
        reading = Reading(self.changes)
        return [reading.tokens(as_bytes(text))[0] for text in np.ravel(x[0])]

    def refused(self, node: Node) -> list[str]:
        """Returns whether the texts are served."""
        if node.input.dtype is not DType.STR:
            return [f"texts of {node.input.dtype}"]
        return Reading(self.changes).problems()


@dataclass(frozen=True)
class TextMatch(_Whole):
    """Whether texts match: (texts str [...], classes u8 [256], next i32 [states, classes]).

    The operands are those of an `Automaton`, whose other parts are attributes.

    Attributes:
        start: The state before the first byte.
        matching: Texts match that end in this state or a later one.
    """

    start: int
    matching: int

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns truth values."""
        automaton = Automaton(x[1], x[2], self.start, self.matching)
        found = [automaton.matches(text) for text in self.texts(x)]
        return [np.array(found, bool).reshape(np.shape(x[0]))]


@dataclass(frozen=True)
class TextPrint(_Whole):
    """The 64 bits of FarmHash of each text, as int64: (texts str [...])."""

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the bits."""
        found = np.array([farm(text) for text in self.texts(x)], np.uint64)
        return [found.view(np.int64).reshape(np.shape(x[0]))]
