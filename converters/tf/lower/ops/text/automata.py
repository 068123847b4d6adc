"""Regular expressions as automata: a table says what each byte of a text leads to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from converters.tf.ir import Array, Automaton
from converters.tf.lower.graph import Unsupported
from converters.tf.lower.ops.text.expressions import (
    SURROGATES,
    At,
    Either,
    One,
    Ranges,
    Repeat,
    Then,
    Tree,
    parsed,
)

# As many parts and states as an expression may have.
_MOST_PARTS, _MOST_STATES = 20_000, 4_096
_WORD = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")
# What is before or after a place.
_NOTHING, _OTHER, _LETTER = range(3)
_FINAL = 0


@dataclass
class _Parts:
    """An automaton that may be in several states at the same time.

    Attributes:
        steps: For each state, ranges of bytes and where they lead.
        free: For each state, where it leads without a byte, and what is asked of the place.
    """

    steps: list[list[tuple[int, int, int]]]
    free: list[list[tuple[int, At | None]]]

    def state(self) -> int:
        """Returns a new state."""
        if len(self.steps) >= _MOST_PARTS:
            raise Unsupported(f"a regular expression of more than {_MOST_PARTS} parts")
        self.steps.append([])
        self.free.append([])
        return len(self.steps) - 1

    def before(self, tree: Tree, after: int) -> int:
        """Returns the state from which a part leads to another state."""
        if isinstance(tree, At):
            start = self.state()
            self.free[start].append((after, tree))
            return start
        if isinstance(tree, One):
            return self._one(tree.ranges, after)
        if isinstance(tree, Then):
            for part in reversed(tree.parts):
                after = self.before(part, after)
            return after
        start = self.state()
        if isinstance(tree, Either):
            self.free[start] += [(self.before(part, after), None) for part in tree.parts]
            return start
        return self._repeated(tree, after, start)

    def _repeated(self, tree: Repeat, after: int, start: int) -> int:
        if tree.most is None:
            again = start
            self.free[again] += [(after, None), (self.before(tree.part, again), None)]
            after = again
        else:
            end = after
            for _ in range(tree.most - tree.least):
                start = self.state()
                self.free[start] += [(end, None), (self.before(tree.part, after), None)]
                after = start
        for _ in range(tree.least):
            after = self.before(tree.part, after)
        return after

    def _one(self, ranges: Ranges, after: int) -> int:
        """Returns the state before a character: a byte, or the bytes of UTF-8."""
        start = self.state()
        known: dict[tuple[tuple[int, int], ...], int] = {(): after}
        for low, high in ranges:
            for sequence in _encoded(low, high):
                self.steps[start].append((*sequence[0], self._rest(sequence[1:], known)))
        return start

    def _rest(
        self, sequence: tuple[tuple[int, int], ...], known: dict[tuple[tuple[int, int], ...], int]
    ) -> int:
        if sequence not in known:
            after = self._rest(sequence[1:], known)
            known[sequence] = self.state()
            self.steps[known[sequence]].append((*sequence[0], after))
        return known[sequence]


def _encoded(low: int, high: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yields sequences of ranges of bytes that together are a range of characters."""
    if low > high:
        return
    if low <= SURROGATES[1] and high >= SURROGATES[0]:
        yield from _encoded(low, SURROGATES[0] - 1)
        yield from _encoded(SURROGATES[1] + 1, high)
        return
    for last in (0x7F, 0x7FF, 0xFFFF):
        if low <= last < high:
            yield from _encoded(low, last)
            yield from _encoded(last + 1, high)
            return
    if high <= 0x7F:
        yield ((low, high),)
        return
    for bits in (6, 12, 18):
        rest = (1 << bits) - 1
        if low & ~rest != high & ~rest:
            if low & rest:
                yield from _encoded(low, low | rest)
                yield from _encoded((low | rest) + 1, high)
                return
            if high & rest != rest:
                yield from _encoded(low, (high & ~rest) - 1)
                yield from _encoded(high & ~rest, high)
                return
    yield tuple(zip(chr(low).encode(), chr(high).encode(), strict=True))


def automaton(pattern: str) -> Automaton:
    """Returns the automaton that knows the texts that an expression matches as a whole.

    Raises:
        Unsupported: The expression is not served, or has too many states.
    """
    parts = _Parts([[]], [[]])
    start = parts.before(parsed(pattern), _FINAL)
    byte_classes, firsts = _classes(parts)
    first = (frozenset([start]), _NOTHING)
    numbers, order, table = {first: 0}, [first], []
    for kept, before in order:
        row = []
        for byte in firsts:
            after = _LETTER if byte in _WORD else _OTHER
            closed = _closed(parts, kept, before, after)
            moved = {to for s in closed for low, high, to in parts.steps[s] if low <= byte <= high}
            found = (frozenset(moved), after if moved else _OTHER)
            if found not in numbers:
                numbers[found] = len(order)
                order.append(found)
            row.append(numbers[found])
        table.append(row)
        if len(order) > _MOST_STATES:
            raise Unsupported(f"a regular expression of more than {_MOST_STATES} states")
    ends = [_FINAL in _closed(parts, kept, before, _NOTHING) for kept, before in order]
    return _arranged(byte_classes, np.array(table, np.int32), np.array(ends, bool))


def _closed(parts: _Parts, kept: frozenset[int], before: int, after: int) -> set[int]:
    """Returns where the states lead without a byte, between two characters."""
    edge = (before == _LETTER) != (after == _LETTER)
    holds = {
        None: True,
        At.START: before == _NOTHING,
        At.END: after == _NOTHING,
        At.WORD: edge,
        At.NO_WORD: not edge,
    }
    found, stack = set(kept), list(kept)
    while stack:
        for to, asked in parts.free[stack.pop()]:
            if holds[asked] and to not in found:
                found.add(to)
                stack.append(to)
    return found


def _classes(parts: _Parts) -> tuple[Array, Sequence[int]]:
    """Returns the class of each byte, and a byte of each: all of a class lead to the same."""
    starts = {0, *(byte for byte in range(1, 256) if (byte in _WORD) != (byte - 1 in _WORD))}
    for steps in parts.steps:
        for low, high, _ in steps:
            starts |= {low, high + 1}
    firsts = sorted(start for start in starts if start < 256)
    classes: Array = np.searchsorted(firsts, np.arange(256), "right") - 1
    return classes, firsts


def _arranged(classes: Array, table: Array, ends: Array) -> Automaton:
    """Returns an automaton with few states and classes, those that match last."""
    groups = _merged(table, ends)
    # A state of each group, the first one's first among those that are alike.
    count = int(groups.max()) + 1
    states = np.array([int(np.flatnonzero(groups == g)[0]) for g in range(count)])
    order = sorted(range(count), key=lambda g: (bool(ends[states[g]]), g))
    place = np.empty(count, np.int32)
    place[order] = np.arange(count)
    small = place[groups[table[states[order]]]]
    columns, inverse = np.unique(small, axis=1, return_inverse=True)
    matching = int(np.count_nonzero(ends[states]))
    return Automaton(
        inverse.ravel()[classes].astype(np.uint8),
        columns.astype(np.int32),
        int(place[groups[0]]),
        count - matching,
    )


def _merged(table: Array, ends: Array) -> Array:
    """Returns the group of each state: states of one lead to the same groups."""
    groups: Array = ends.astype(np.int64)
    while True:
        rows = np.concatenate([groups[:, None], groups[table]], axis=1)
        found: Array = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
        if found.max() == groups.max():
            return found
        groups = found
