"""Text that a call writes: only outputs have it, so that it never has a place in the workspace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from converters.tf.ir.expressions import is_open
from converters.tf.ir.graph import Node, Op
from converters.tf.ir.operands import Operands
from converters.tf.ir.ops.text import Change, Ends, Reading, again, as_bytes
from converters.tf.ir.sizes import broadcast, is_fixed
from converters.tf.ir.values import Array, Batch, Shape, Value, shape_text

__all__ = ["WRITING", "Case", "JoinText", "Piece", "SplitText", "changed", "trimmed"]


class Case(StrEnum):
    """What the letters of all alphabets become."""

    LOWER = "lower"
    UPPER = "upper"

    def of(self, text: str) -> str:
        """Returns a text in that case."""
        return text.lower() if self is Case.LOWER else text.upper()


def changed(text: object, changes: Sequence[Change], case: Case | None) -> str:
    """Returns a text after changes, in a case.

    Raises:
        UnicodeDecodeError: It is not UTF-8.
    """
    found = Reading(tuple(changes)).tokens(as_bytes(text))[0].decode()
    return found if case is None else case.of(found)


def trimmed(changes: Sequence[Change]) -> tuple[tuple[Change, ...], bool]:
    """Returns changes before the last one, and whether that cuts off white space at both ends.

    Returns:
        All changes if the last one does not.
    """
    if changes and changes[-1] is Ends.SPACES:
        return tuple(changes[:-1]), True
    return tuple(changes), False


def _problems(changes: Sequence[Change]) -> list[str]:
    return Reading(trimmed(changes)[0]).problems()


@dataclass(frozen=True)
class Piece:
    """A part of a text that is joined.

    Attributes:
        words: Words that the model has. Without an operand, it is the only one.
        sizes: Elements of one example of each operand of text.
        chosen: Whether an operand of places, i32, comes before those of text. A place is that of a
            word. After all words it is that of an element of the texts of the same example, one
            operand after the other. Without places there is one text for each element.
        changes: What changes in the text.
        case: The case of its letters afterwards; nothing to leave them.
    """

    words: tuple[bytes, ...] = ()
    sizes: tuple[int, ...] = ()
    chosen: bool = False
    changes: tuple[Change, ...] = ()
    case: Case | None = None

    @property
    def count(self) -> int:
        """Returns the number of its operands."""
        return self.chosen + len(self.sizes)

    def texts(self, x: Sequence[Array]) -> list[object]:
        """Returns the texts before their change, in the order of the elements."""
        if not self.chosen:
            return list(np.ravel(x[0])) if x else [self.words[0]]
        places, *given = (np.ravel(operand) for operand in x)
        batch = max((len(t) // size for t, size in zip(given, self.sizes, strict=True)), default=1)
        rows = places.reshape(batch, -1) if places.size else np.zeros((0, 0), np.int64)
        found: list[object] = []
        for row, numbers in enumerate(rows):
            known: list[object] = list(self.words)
            for texts, size in zip(given, self.sizes, strict=True):
                first = row * size % len(texts)
                known += list(texts[first : first + size])
            found += [known[number] for number in numbers]
        return found


@dataclass(frozen=True)
class JoinText(Op):
    """Texts that are joined of pieces: (the operands of each piece in turn). Pieces broadcast.

    Attributes:
        pieces: The pieces.
        changes: What changes in the whole text.
        case: The case of its letters afterwards; nothing to leave them.
    """

    pieces: tuple[Piece, ...]
    changes: tuple[Change, ...] = ()
    case: Case | None = None

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape to which the pieces are broadcast."""
        firsts = [x[at] for piece, at in self._placed() if piece.count]
        return (broadcast(*firsts) if firsts else (),)

    def _placed(self) -> Iterator[tuple[Piece, int]]:
        """Yields each piece with the number of its first operand."""
        at = 0
        for piece in self.pieces:
            yield piece, at
            at += piece.count

    def operands(self, node: Node) -> Iterator[tuple[Piece, tuple[Value, ...]]]:
        """Yields each piece with its operands."""
        for piece, at in self._placed():
            yield piece, node.present[at : at + piece.count]

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns Python's strings."""
        every = x.every()
        parts = []
        for piece, at in self._placed():
            texts = piece.texts(every[at : at + piece.count])
            parts.append([changed(text, piece.changes, piece.case) for text in texts])
        out = np.empty(int(np.prod(shape)), object)
        for place in range(out.size):
            text = "".join(part[place % len(part)] for part in parts)
            out[place] = changed(text, self.changes, self.case)
        return [out.reshape(shape)]

    def refused(self, node: Node) -> list[str]:
        """Returns whether the pieces are served."""
        found = _problems(self.changes)
        whole = node.output.shape
        for piece, values in self.operands(node):
            found += _problems(piece.changes)
            if values and not again(values[0].shape, whole):
                was, becomes = shape_text(values[0].shape), shape_text(whole)
                found.append(f"texts {was} that are joined as {becomes}")
            if piece.chosen and not all(is_fixed(text.shape) for text in values[1:]):
                found += [
                    f"texts {shape_text(v.shape)}, whose examples are not one after the other"
                    for v in values
                    if not is_fixed(v.shape) and not _leads(v.shape)
                ]
                if is_fixed(values[0].shape):
                    found.append("texts of all examples where none of them is chosen")
        return found


@dataclass(frozen=True)
class SplitText(Op):
    """The tokens of each text, as text: (texts str [...]). Empty ones follow after the last.

    Attributes:
        reading: How texts become tokens, each of one part.
        row: How many tokens of a text are given. An open dimension is as many as the longest has.
    """

    reading: Reading
    row: int

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of the texts, with an axis of tokens."""
        return ((*x[0], self.row),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns Python's strings."""
        texts = [self.reading.tokens(as_bytes(text)) for text in np.ravel(x[0])]
        row = max(map(len, texts), default=0) if is_open(self.row) else self.row
        out = np.full((len(texts), row), "", object)
        for line, found in zip(out, texts, strict=True):
            line[: len(found)] = [token.decode() for token in found[:row]]
        return [out.reshape(*np.shape(x[0]), row)]

    def refused(self, node: Node) -> list[str]:
        """Returns whether the tokens are served."""
        joined = ["tokens that are joined"] if self.reading.widths != (1,) else []
        return [*joined, *Reading(self.reading.changes).problems()]


# What writes text.
WRITING = (JoinText, SplitText)


def _leads(shape: Shape) -> bool:
    """Returns whether the elements of each example are next to each other."""
    return next((d for d in shape if d != 1), 1) == Batch()
