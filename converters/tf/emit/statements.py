"""Emitted Rust as data: text in which names stay names, with the imports that it needs.

A statement or an expression is a `Code`. Its layers, tensors and inputs are found by their kind.
Two statements are alike if they differ in nothing but such names. The imports of a file are the
union of what its codes use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TypeAlias

from converters.tf.ir.expressions import Size


class Kind(Enum):
    """What a name stands for."""

    FIELD = auto()  # a layer of the model
    LOCAL = auto()  # a layer that a call makes, because its sizes are open
    SLOT = auto()  # the place of a tensor in memory
    TENSOR = auto()  # the place of a constant in the weights
    INPUT = auto()  # an input of the model
    BATCH = auto()  # the batch size of the call
    SIZE = auto()  # a size that depends on other open dimensions of the call
    WEIGHTS = auto()  # the bytes of the weights, while layers are made
    PARALLEL = auto()  # what computes, while layers are made
    MEMORY = auto()  # the memory of the call, where it is not an argument of a statement
    LABEL = auto()  # a layer's name for messages, which the layer fills in


_PREFIXES = {Kind.FIELD: "self.", Kind.TENSOR: "weights::", Kind.INPUT: "x."}


@dataclass(frozen=True)
class Name:
    """A name of the model in its code.

    Attributes:
        kind: What it stands for.
        name: The identifier.
        type: The Rust type of a layer, or of the elements of a tensor.
        size: The expression of a size.
    """

    kind: Kind
    name: str
    type: str = ""
    size: Size | None = None

    def __str__(self) -> str:
        """Returns the expression."""
        return _PREFIXES.get(self.kind, "") + self.name


BATCH = Name(Kind.BATCH, "b")
WEIGHTS = Name(Kind.WEIGHTS, "w")
PARALLEL = Name(Kind.PARALLEL, "p")
MEMORY = Name(Kind.MEMORY, "m")
LABEL = Name(Kind.LABEL, "name")


@dataclass(frozen=True)
class Code:
    """A statement or an expression.

    Attributes:
        pieces: Text and names in their order; no two texts follow each other.
        uses: Imports, as paths below the runtime.
        needs: Files below the runtime that have to be there and are not named, such as those that
            implement an operation for a type.
    """

    pieces: tuple[str | Name, ...]
    uses: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()

    def __str__(self) -> str:
        """Returns the text."""
        return "".join(map(str, self.pieces))

    def names(self, *kinds: Kind) -> Iterator[Name]:
        """Yields the names of some kinds, each as often as it stands there."""
        return (p for p in self.pieces if isinstance(p, Name) and p.kind in kinds)

    def has(self, kind: Kind) -> bool:
        """Returns whether a name of a kind stands there."""
        return next(self.names(kind), None) is not None

    def shape(self) -> tuple[object, ...]:
        """Returns what two codes have in common that differ in their names alone."""
        return tuple(p if isinstance(p, str) else (p.kind, p.type) for p in self.pieces)

    def renamed(self, change: Callable[[Name], str | Name]) -> Code:
        """Returns the code with other names or texts in the places of its names."""
        pieces = (p if isinstance(p, str) else change(p) for p in self.pieces)
        return replace(self, pieces=_merged(pieces))

    def needing(self, *files: str) -> Code:
        """Returns the code with more files that it needs and does not name."""
        return replace(self, needs=self.needs.union(files))


# A bool, an integer and text stand for themselves, a tuple is one in Rust, a list is an array.
# So is a size that only a call knows: the type checker takes it for an integer.
Part: TypeAlias = "str | int | Name | Code | tuple[Part, ...] | list[Part]"


def code(template: str, *parts: Part, use: Iterable[str] = ()) -> Code:
    """Returns a template with parts in the places of its `{}`, in their order.

    Args:
        template: Text; every other brace stands for itself.
        parts: As many as there are places.
        use: Imports that the template needs.
    """
    texts = template.split("{}")
    pieces: list[str | Name] = [texts[0]]
    uses, needs = set(use), set[str]()
    for part, text in zip(parts, texts[1:], strict=True):
        _add(part, pieces, uses, needs)
        pieces.append(text)
    return Code(_merged(pieces), frozenset(uses), frozenset(needs))


def call(function: str, *parts: Part, use: Iterable[str] = ()) -> Code:
    """Returns a statement that calls a function of a module of the runtime with the memory."""
    module = function.partition("::")[0]
    return code(f"{function}(m, {{}})?;", _listed(parts), use=[module, *use])


def method(layer: Name, name: str, *parts: Part) -> Code:
    """Returns a statement that calls a method of a layer with the memory."""
    return code(f"{{}}.{name}(m, {{}})?;", layer, _listed(parts))


def lines(codes: Iterable[Code]) -> Code:
    """Returns codes on lines of their own, as one that nothing takes apart."""
    return _joined(list(codes), "\n")


def _listed(parts: Iterable[Part]) -> Code:
    return _joined(list(parts), ", ")


def _joined(parts: list[Part], between: str) -> Code:
    pieces: list[str | Name] = []
    uses, needs = set[str](), set[str]()
    for index, part in enumerate(parts):
        if index:
            pieces.append(between)
        _add(part, pieces, uses, needs)
    return Code(_merged(pieces), frozenset(uses), frozenset(needs))


def _add(part: Part, pieces: list[str | Name], uses: set[str], needs: set[str]) -> None:
    """Adds the pieces of a part, and what it uses and needs."""
    if isinstance(part, Code):
        pieces += part.pieces
        uses |= part.uses
        needs |= part.needs
    elif isinstance(part, bool):
        pieces.append(str(part).lower())
    elif isinstance(part, int):
        pieces.append(str(part))
    elif isinstance(part, Size):
        pieces.append(Name(Kind.SIZE, str(part), "", part))
    elif isinstance(part, tuple | list):
        ends = "()" if isinstance(part, tuple) else "[]"
        pieces.append(ends[0])
        _add(_listed(part), pieces, uses, needs)
        pieces.append(ends[1])
    else:
        pieces.append(part)


def _merged(pieces: Iterable[str | Name]) -> tuple[str | Name, ...]:
    """Returns the pieces with neighbouring texts as one, and without empty ones."""
    merged: list[str | Name] = []
    for piece in pieces:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        elif piece:
            merged.append(piece)
    return tuple(merged)
