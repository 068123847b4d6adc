"""Sizes that have to be the same: what this says about the open dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

from converters.tf.ir.expressions import Size, Unknown, counted, multiple, names_of, surely

# An open dimension may have to be a multiple of this number, at most.
_MOST_MULTIPLE = 256
# Pairs of sizes that had to be the same and were not, where somebody asks.
_DIFFERENT: ContextVar[list[tuple[Size, Size]] | None] = ContextVar("different", default=None)


@contextmanager
def differences() -> Iterator[list[tuple[Size, Size]]]:
    """Gives a list to which `differ` adds."""
    found: list[tuple[Size, Size]] = []
    token = _DIFFERENT.set(found)
    try:
        yield found
    finally:
        _DIFFERENT.reset(token)


def differ(a: object, b: object) -> None:
    """Notes that two sizes had to be the same, if some calls have them so."""
    found = _DIFFERENT.get()
    if found is None or not isinstance(a, Size) or not isinstance(b, Size) or a == b:
        return
    if not counted(a) and not counted(b) and agreed(a, b):
        found.append((a, b))


def divisible(size: Any, by: Any) -> None:
    """Notes that a quotient had to leave nothing, if it does for multiples of an open dimension."""
    found = _DIFFERENT.get()
    sizes: list[Size] = [each for each in (size, by) if isinstance(each, Size)]
    names = {name for each in sizes for name in names_of(each)}
    if found is None or len(names) != 1 or any(map(counted, sizes)):
        return
    (name,) = names
    step = _part(sizes)
    for most in range(step, _MOST_MULTIPLE + 1, step):
        change = {name: multiple(name, most)}
        a, b = (x.with_atoms(change) if isinstance(x, Size) else x for x in (size, by))
        if surely(lambda: a % b == 0):  # noqa: B023  # It is asked here.
            found.append((cast(Size, multiple(name, step)), cast(Size, multiple(name, most))))
            return


def _part(sizes: Sequence[Size]) -> int:
    """Returns of what number an open dimension is a multiple already."""
    parts = [atom.by for size in sizes for atom in size.atoms() if isinstance(atom, Unknown)]
    return math.lcm(*parts)


def agreed(a: Size, b: Size) -> dict[str, int]:
    """Returns the open dimension whose size has to be another one so that two sizes are the same.

    That is a dimension which is one of them, or one that has to be a multiple of a number. It is
    empty if there is none.
    """
    for one, other in ((a, b), (b, a)):
        if one.name and one.name not in names_of(other):
            return {one.name: cast(int, other)}
    names = {*names_of(a), *names_of(b)}
    if len(names) != 1:
        return {}
    (name,) = names
    step = _part((a, b))
    for by in range(step, _MOST_MULTIPLE + 1, step):
        change = {name: multiple(name, by)}
        if a.with_atoms(change) == b.with_atoms(change):
            return change
    return {}
