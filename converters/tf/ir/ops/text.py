"""Text as numbers: tokens that a vocabulary or a hash tells apart."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar, TypeAlias

import numpy as np

from converters.tf.ir.graph import Node, Op
from converters.tf.ir.operands import Operands
from converters.tf.ir.ops.hashes import farm, sip
from converters.tf.ir.sizes import broadcast
from converters.tf.ir.values import Array, DType, Shape, shape_text

__all__ = [
    "Change",
    "Characters",
    "Each",
    "Ends",
    "Every",
    "Letters",
    "Reading",
    "Rest",
    "SameText",
    "Split",
    "TokenCounts",
    "TokenValues",
    "again",
    "as_bytes",
    "classes_of",
    "listed_words",
    "packed_words",
]

# As many changes, and as long patterns, as the kernel has memory for.
_MOST_CHANGES, _LONGEST, _WIDEST = 8, 255, 16
_SPACES = b"\t\n\v\f\r "
_CHARACTER = re.compile(rb"[\x00-\x7f]|[\x80-\xff][\x80-\xbf]*")


class Letters(StrEnum):
    """What letters of ASCII become."""

    LOWER = "lower"
    UPPER = "upper"


@dataclass(frozen=True)
class Characters:
    """A set of characters: numbers of ASCII, and perhaps all others."""

    ascii: frozenset[int]
    beyond: bool = False

    def has(self, character: bytes) -> bool:
        """Returns whether a character belongs to it, by its first byte."""
        return character[0] in self.ascii if character[0] < 128 else self.beyond


@dataclass(frozen=True)
class Each:
    """Every character of a set becomes some bytes.

    Attributes:
        of: The set.
        becomes: These bytes.
        runs: Whether characters that follow each other become them together. The kernel does not
            serve it; where a text is taken apart at white space, it may make no difference.
    """

    of: Characters
    becomes: bytes
    runs: bool = False


@dataclass(frozen=True)
class Every:
    """Every occurrence of some bytes, from the left, becomes others."""

    of: bytes
    becomes: bytes


class Ends(StrEnum):
    """What is cut off from both ends of a text.

    The kernel does not serve it; where a text is taken apart at white space, it may make no
    difference.
    """

    SPACES = "spaces"


Change: TypeAlias = Letters | Each | Every | Ends


@dataclass(frozen=True)
class Split:
    """Where a text is taken apart.

    Attributes:
        at: `whole` for nowhere, `space` at white space, `characters` around every character, or
            `byte` at a separator of one byte of ASCII.
        byte: That separator.
        most: How many parts a text becomes at most, if it is not 0. The last one is the rest.
    """

    at: str = "whole"
    byte: int = 0
    most: int = 0


@dataclass(frozen=True)
class Rest:
    """What becomes of tokens that are not in the vocabulary: one of some buckets.

    Attributes:
        buckets: How many there are.
        key: The key of SipHash; without one, FarmHash chooses the bucket.
    """

    buckets: int = 1
    key: tuple[int, int] | None = None

    def bucket(self, token: bytes) -> int:
        """Returns the bucket of a token."""
        if self.buckets == 1:
            return 0
        return (farm(token) if self.key is None else sip(token, self.key)) % self.buckets


@dataclass(frozen=True)
class Reading:
    """How a text becomes tokens.

    Attributes:
        changes: How it is standardized.
        split: Where it is taken apart.
        widths: How many neighbours are joined to one token: all of the first number, then those of
            the next.
        between: What stands between neighbours that are joined.
    """

    changes: tuple[Change, ...] = ()
    split: Split = Split()
    widths: tuple[int, ...] = (1,)
    between: bytes = b""

    def tokens(self, text: bytes) -> list[bytes]:
        """Returns the tokens of a text."""
        for change in self.changes:
            text = _changed(text, change)
        found = _split(text, self.split)
        return [
            self.between.join(found[at : at + width])
            for width in self.widths
            for at in range(len(found) - width + 1)
        ]

    def at_spaces(self) -> Reading:
        """Returns it, and then taken apart at white space.

        How many white spaces a run becomes makes no difference there. Neither does white space at
        the ends, unless something that comes later makes letters of it or looks for several bytes.
        """
        changes: list[Change] = []
        for change in reversed(self.changes):
            if change is Ends.SPACES and not any(_tells(later, _SPACES) for later in changes):
                continue
            spaces = change.becomes if isinstance(change, Each) and change.runs else b""
            if spaces.isspace() and not any(_tells(later, spaces) for later in changes):
                assert isinstance(change, Each)
                change = replace(change, runs=False)
            changes.append(change)
        return replace(self, changes=tuple(reversed(changes)), split=Split("space"))

    def problems(self) -> list[str]:
        """Returns why the kernel does not serve it."""
        found = [
            f"runs of characters that become {change.becomes!r}"
            for change in self.changes
            if isinstance(change, Each) and change.runs
        ]
        if self.split.most:
            found.append("texts that are taken apart at some places only")
        if Ends.SPACES in self.changes:
            found.append("white space cut off from texts that are not then taken apart there")
        if len(self.changes) > _MOST_CHANGES:
            found.append(f"{len(self.changes)} changes of a text; at most {_MOST_CHANGES}")
        longest = max((len(c.of) for c in self.changes if isinstance(c, Every)), default=0)
        if longest > _LONGEST:
            found.append(f"a pattern of {longest} bytes; at most {_LONGEST}")
        if max(self.widths, default=1) > _WIDEST:
            found.append(f"{max(self.widths)} tokens that are joined; at most {_WIDEST}")
        return found


def _tells(change: Change, spaces: bytes) -> bool:
    """Returns whether a change may make other words of more white spaces."""
    if isinstance(change, Each):
        makes = bool(change.becomes) and not change.becomes.isspace()
        return makes and any(change.of.has(bytes([byte])) for byte in spaces)
    return isinstance(change, Every)


def _changed(text: bytes, change: Change) -> bytes:
    if change is Letters.LOWER:
        return text.lower()
    if change is Letters.UPPER:
        return text.upper()
    if change is Ends.SPACES:
        return text.strip(_SPACES)
    if isinstance(change, Every):
        return text.replace(change.of, change.becomes)
    assert isinstance(change, Each)
    parts = _CHARACTER.findall(text)
    if change.runs:
        parts = [
            part
            for before, part in itertools.pairwise([b"", *parts])
            if not (before and change.of.has(before) and change.of.has(part))
        ]
    return b"".join(change.becomes if change.of.has(part) else part for part in parts)


def _split(text: bytes, split: Split) -> list[bytes]:
    if split.at == "space":
        return text.split(None, split.most - 1)
    if split.at == "characters":
        return _CHARACTER.findall(text)
    return text.split(bytes([split.byte]), split.most - 1) if split.at == "byte" else [text]


def as_bytes(text: object) -> bytes:
    """Returns the bytes of a text, whatever it is made of."""
    return text if isinstance(text, bytes) else str(text).encode()


def packed_words(words: Sequence[bytes]) -> tuple[Array, Array]:
    """Returns the bytes of words, one after the other, and where each ends.

    Raises:
        ValueError: They have more bytes than an int32 counts.
    """
    joined = np.frombuffer(b"".join(words), np.uint8)
    if joined.size > np.iinfo(np.int32).max:
        raise ValueError(f"a vocabulary of {joined.size} bytes")
    return joined, np.cumsum([len(word) for word in words], dtype=np.int32)


def listed_words(joined: Array | None, ends: Array | None) -> list[bytes]:
    """Returns the words that `packed_words` has put together; none where there are none."""
    if joined is None or ends is None:
        return []
    content = joined.tobytes()
    starts = [0, *map(int, ends[:-1])]
    return [content[start:end] for start, end in zip(starts, map(int, ends), strict=True)]


def classes_of(tokens: Sequence[bytes], places: dict[bytes, int], rest: Rest) -> list[int]:
    """Returns the class of each token: its place among the words, or its bucket after them."""
    count = len(places)
    return [places[token] if token in places else count + rest.bucket(token) for token in tokens]


@dataclass(frozen=True)
class _Tokens(Op):
    """What the ops of this family have in common.

    Attributes:
        reading: How texts become tokens.
        rest: What becomes of tokens that are not in the vocabulary.
        numbers: Types of numbers that are read as their digits.
    """

    reading: Reading
    rest: Rest
    numbers: ClassVar[tuple[DType, ...]] = ()

    def classes(self, x: Operands) -> list[list[int]]:
        """Returns the classes of the tokens of each text."""
        places = {word: place for place, word in enumerate(listed_words(x.get(2), x.get(3)))}
        texts = [as_bytes(text) for text in np.ravel(x[0])]
        return [classes_of(self.reading.tokens(text), places, self.rest) for text in texts]

    def refused(self, node: Node) -> list[str]:
        """Returns whether the tokens are served."""
        if node.input.dtype not in (DType.STR, *self.numbers):
            return [f"tokens of {node.input.dtype}"]
        return self.reading.problems()


@dataclass(frozen=True)
class TokenValues(_Tokens):
    """The value of each token: (texts str [...], values [classes + 1], words u8, ends i32).

    Where each text is a token, integers may stand for the texts of their digits.
    The words of the vocabulary are in the order of their bytes, and left out where there are none.
    A class is the place of a word, or a bucket after all words; the last value stands where a text
    has no more tokens.

    Attributes:
        row: How many tokens of a text are read; nothing if each is a token itself, and the result
            has no axis for them. An open dimension is as many as the longest text has.
    """

    row: int | None = None
    numbers: ClassVar[tuple[DType, ...]] = (DType.I32, DType.I64)

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of the texts, with an axis of tokens."""
        return ((*x[0], *(() if self.row is None else (self.row,))),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the values."""
        values = np.asarray(x[1])
        row = 1 if self.row is None else self.row
        found = [found[:row] for found in self.classes(x)]
        numbers = [[*of, *[len(values) - 1] * (row - len(of))] for of in found]
        return [values[np.asarray(numbers, np.int64).reshape(self._shape(x))]]

    def _shape(self, x: Operands) -> tuple[int, ...]:
        return (*np.shape(x[0]), *(() if self.row is None else (self.row,)))


@dataclass(frozen=True)
class SameText(Op):
    """Whether texts are the same: (a str, b str). They are broadcast.

    Attributes:
        differs: Whether the result says that they are not the same.
    """

    differs: bool = False

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape to which both are broadcast."""
        return (broadcast(*x),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns truth values."""
        same = np.frompyfunc(lambda a, b: as_bytes(a) == as_bytes(b), 2, 1)
        return [np.asarray(same(x[0], x[1]) != self.differs, bool)]

    def refused(self, node: Node) -> list[str]:
        """Returns whether the elements of one side come again and again."""
        given = [v for v in node.present if not again(v.shape, node.output.shape)]
        return [
            f"texts {shape_text(v.shape)} compared as {shape_text(node.output.shape)}"
            for v in given
        ]


def again(shape: Shape, whole: Shape) -> bool:
    """Returns whether a tensor is the end of a larger one, which is the same all along."""
    first = next((i for i, d in enumerate(shape) if d != 1), len(shape))
    kept = shape[first:]
    return kept == whole[len(whole) - len(kept) :]


@dataclass(frozen=True)
class TokenCounts(_Tokens):
    """How often tokens are in each bin: (texts str [...], bins i32 [classes], words u8, ends i32).

    What a class is, `TokenValues` says. Tokens of a bin that is not there are not counted.

    Attributes:
        size: Number of bins.
        binary: Whether a bin has 1 however many tokens it has.
    """

    size: int
    binary: bool

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of the texts, with an axis of bins."""
        return ((*x[0], self.size),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the counts."""
        bins = np.asarray(x[1])
        out = np.zeros((int(np.prod(shape[:-1])), self.size))
        for row, found in zip(out, self.classes(x), strict=True):
            kept = [n for n in map(int, bins[found]) if 0 <= n < self.size]
            np.add.at(row, kept, 1)
        return [(np.minimum(out, 1) if self.binary else out).reshape(shape)]

    def refused(self, node: Node) -> list[str]:
        """Returns whether the tokens and the type of the counts are served."""
        found = super().refused(node)
        if node.output.dtype not in (DType.F32, DType.F64, DType.I32, DType.I64):
            found.append(f"counts of {node.output.dtype}")
        return found
