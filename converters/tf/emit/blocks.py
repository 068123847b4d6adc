"""Repeated parts of a model become a struct with a function.

Two runs of statements are the same block if they differ only in their layers, in the places of
their tensors and in their weights. Layers become fields of the block, the rest the fields of a
struct of places, of which each use of the block has a constant.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from converters.tf.emit.context import Field, SlotName
from converters.tf.emit.names import snake
from converters.tf.emit.statements import Code, Kind, Name
from tools.codegen.names import Scope, type_name

# Shortest and longest run of statements that is worth a struct.
_SHORTEST = 3
_LONGEST = 80
# How far back a run named for the last time what it names first, and where.
_NEW = (1 << 60, 0)
# Statements that a block saves, at least.
_SAVED = 4
# The types of places.
_PLACES = {Kind.SLOT: "memory::Slot", Kind.TENSOR: "weights::Tensor"}
# What the uses of a block differ in.
_NAMED = (Kind.FIELD, Kind.SLOT, Kind.TENSOR)

# A number for each of many runs or statements.
Numbers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Role:
    """A thing in which the uses of a block differ.

    Attributes:
        name: Its field in the block or in the places.
        type: Its Rust type.
        kind: `FIELD`, `SLOT` or `TENSOR`.
        path: Path of a layer's type below the runtime.
    """

    name: str
    type: str
    kind: Kind
    path: str = ""


@dataclass(frozen=True)
class Use:
    """One use of a block.

    Attributes:
        name: Field of the model.
        constant: Constant with the places.
        fields: The layers, in the order of the block's roles.
        places: Expressions of the places, in the order of the block's roles.
        start: First statement.
    """

    name: str
    constant: str
    fields: tuple[Field, ...]
    places: tuple[Name, ...]
    start: int


@dataclass(frozen=True)
class Block:
    """A repeated run of statements.

    Attributes:
        type: Name of the struct.
        doc: What it is, in one line.
        roles: What differs.
        lines: The statements.
        uses: Where it is used.
    """

    type: str
    doc: str
    roles: tuple[Role, ...]
    lines: tuple[Code, ...]
    uses: tuple[Use, ...]

    @property
    def fields(self) -> tuple[Role, ...]:
        """Returns the layers."""
        return tuple(r for r in self.roles if r.kind is Kind.FIELD)

    @property
    def places(self) -> tuple[Role, ...]:
        """Returns the rest."""
        return tuple(r for r in self.roles if r.kind is not Kind.FIELD)

    @property
    def uses_batch(self) -> bool:
        """Returns whether the statements name the batch."""
        return any(line.has(Kind.BATCH) for line in self.lines)

    @property
    def imports(self) -> frozenset[str]:
        """Returns what the statements and the types of the roles import from the runtime."""
        kinds = {r.kind for r in self.roles}
        own = frozenset(path for kind, path in _PLACES.items() if kind in kinds)
        return own.union(*(line.uses for line in self.lines), (r.path for r in self.fields))


@dataclass(frozen=True)
class _Runs:
    """Runs of one length that may become blocks: none has a statement of one or names an input.

    Attributes:
        start: The first statement of each, in order.
        like: The first start of a run that differs from it at most as the uses of a block do.
        reach: The last statement that names one of their layers.
        layers: How often they name a layer.
    """

    start: Numbers
    like: Numbers
    reach: Numbers
    layers: Numbers

    @classmethod
    def empty(cls, statements: int) -> _Runs:
        """Returns a run without a statement before each statement."""
        none = np.zeros(statements, np.int64)
        return cls(np.arange(statements), none, none - 1, none)

    def of(self, kept: npt.NDArray[Any]) -> _Runs:
        """Returns some of them, by a mask or by their places."""
        return _Runs(self.start[kept], self.like[kept], self.reach[kept], self.layers[kept])

    def alike(self, length: int, least: int) -> Iterator[list[int]]:
        """Yields the starts of usable runs that are alike, if there are so many of them."""
        usable = self.of((self.reach < self.start + length) & (self.layers > 1))
        usable = usable.of(np.argsort(usable.like, kind="stable"))
        _, firsts, counts = np.unique(usable.like, return_index=True, return_counts=True)
        many = counts >= least
        for first, count in zip(firsts[many], counts[many], strict=True):
            yield usable.start[first : first + count].tolist()


class Blocks:
    """Finds the blocks of a model."""

    def __init__(
        self,
        lines: Sequence[Code],
        fields: Sequence[Field],
        slots: Sequence[SlotName],
        taken: frozenset[str] = frozenset(),
    ) -> None:
        """Takes the statements of a model, what they name, and names that no type may have."""
        self._lines = list(lines)
        self._fields = {f.name: f for f in fields}
        # The layers that each statement names, as often as it does.
        self._used = [[name.name for name in line.names(Kind.FIELD)] for line in lines]
        self._named = [list(line.names(*_NAMED)) for line in lines]
        # Whether a statement may be in a block, and the first and the last that name its layers.
        self._open = np.array([not line.has(Kind.INPUT) for line in lines], bool)
        self._first, self._end = np.array(self._layer_spans(), np.int64).reshape(-1, 2).T
        self._counts = np.array([len(used) for used in self._used], np.int64)
        self._forms = self._numbered_forms()
        self._type_names = {*taken, *(f.type for f in fields)}
        self._names = Scope(frozenset({*self._fields, "weights", "engine", "thresholds"}))
        self._constants = Scope(frozenset(s.name for s in slots))

    def find(self) -> list[Block]:
        """Returns the blocks, those that save most first."""
        blocks = []
        while (best := self._best()) is not None:
            blocks.append(self._block(*best))
        return blocks

    def _layer_spans(self) -> list[tuple[int, int]]:
        """Returns for each statement the first and the last that name one of its layers."""
        reach: dict[str, tuple[int, int]] = {}
        for index, used in enumerate(self._used):
            for name in used:
                reach[name] = (reach.get(name, (index, index))[0], index)
        return [
            (
                min((reach[name][0] for name in used), default=index),
                max((reach[name][1] for name in used), default=-1),
            )
            for index, used in enumerate(self._used)
        ]

    def _named_back(self) -> list[tuple[tuple[int, int], ...]]:
        """Returns for all that each statement names where it was named last.

        That is how many statements back, and at which place there.
        """
        result = []
        last: dict[Name, tuple[int, int]] = {}
        for index, named in enumerate(self._named):
            found = []
            for place, name in enumerate(named):
                before = last.get(name)
                found.append((index - before[0], before[1]) if before else _NEW)
                last[name] = (index, place)
            result.append(tuple(found))
        return result

    def _numbered_forms(self) -> list[Numbers]:
        """Returns for each distance a number for every statement.

        It is the same for statements that differ in names alone, and name last, within the
        distance, alike what they name. Two runs are alike if this is so for each of their
        statements, with its distance from the first one.
        """
        numbers: dict[Hashable, int] = {}
        back = self._named_back()
        changes: dict[int, list[int]] = {}
        for index, named in enumerate(back):
            for way in {way for way, _ in named}:
                changes.setdefault(way, []).append(index)
        shapes = [line.shape() for line in self._lines]
        forms = []
        now = np.zeros(len(back), np.int64)
        for far in range(min(_LONGEST, len(back) // 2)):
            now = now.copy()
            for index in changes.get(far, ()) if far else range(len(back)):
                seen = tuple(named if named[0] <= far else _NEW for named in back[index])
                now[index] = numbers.setdefault((shapes[index], seen), len(numbers))
            forms.append(now)
        return forms

    def _longer(self, runs: _Runs, length: int) -> _Runs:
        """Makes the runs a statement longer.

        Those that pass the end, can't become a block or are like no other are left out.

        Args:
            runs: Of one statement less.
            length: How many statements they have then.
        """
        last = runs.start + length - 1
        inside = last < len(self._lines)
        runs, last = runs.of(inside), last[inside]
        fits = self._open[last] & (self._first[last] >= runs.start)
        runs, last = runs.of(fits), last[fits]
        form = self._forms[length - 1][last]
        kinds = runs.like * (form.max(initial=0) + 1) + form
        _, firsts, kinds, counts = np.unique(
            kinds, return_index=True, return_inverse=True, return_counts=True
        )
        longer = _Runs(
            runs.start,
            runs.start[firsts][kinds],
            np.maximum(runs.reach, self._end[last]),
            runs.layers + self._counts[last],
        )
        return longer.of(counts[kinds] > 1)

    def _best(self) -> tuple[list[int], int] | None:
        best: tuple[float, list[int], int] | None = None
        runs = _Runs.empty(len(self._lines))
        for length in range(1, min(_LONGEST, len(self._lines) // 2) + 1):
            runs = self._longer(runs, length)
            if length < _SHORTEST:
                continue
            for starts in runs.alike(length, 1 + ceil(_SAVED / length)):
                same = _apart(starts, length)
                saved = (len(same) - 1) * length
                if saved < _SAVED or (best and 2 * saved <= best[0]):
                    continue
                weight = saved * (1 + self._unity(same, length))
                if best is None or weight > best[0]:
                    best = (weight, same, length)
        return None if best is None else (best[1], best[2])

    def _unity(self, starts: Sequence[int], length: int) -> float:
        """Returns for how many runs the names of the layers say the same, as a part of all.

        There a block ends where the model's author ended one: `stage1_conv`, `stage1_norm`.
        """
        ends: dict[tuple[str, ...], int] = {}
        for start in starts:
            prefix = self._prefix(start, length)
            if prefix:
                used = itertools.chain.from_iterable(self._used[start : start + length])
                end = tuple(name[len(prefix) :] for name in used)
                ends[end] = ends.get(end, 0) + 1
        return max(ends.values(), default=0) / len(starts)

    def _prefix(self, start: int, length: int) -> str:
        """Returns what the names of a run's layers start with."""
        names = list(itertools.chain.from_iterable(self._used[start : start + length]))
        prefix = _common_prefix(names)
        if all(name == prefix or name[len(prefix)] == "_" for name in names):
            return prefix
        return prefix.rpartition("_")[0]

    def _block(self, starts: Sequence[int], length: int) -> Block:
        first = starts[0]
        prefix = self._prefix(first, length)
        roles = self._roles(first, length, prefix)
        words = "".join("_" if c.isdigit() else c for c in prefix).strip("_")
        base = type_name(words, "") if words else ""
        kind = self._type_name(base if len(base) > 3 else f"{base}Block")
        uses = [self._use(start, length, roles, kind) for start in starts]
        for start in starts:
            self._open[start : start + length] = False
        layers = ", ".join(dict.fromkeys(r.type for r in roles.values() if r.kind is Kind.FIELD))

        def renamed(name: Name) -> str | Name:
            if name not in roles:
                return name
            return ("self." if name.kind is Kind.FIELD else "p.") + roles[name].name

        lines = tuple(line.renamed(renamed) for line in self._lines[first : first + length])
        used = [
            self._fields[name.name]
            for name in self._names_in(first, length)
            if name.kind is Kind.FIELD
        ]
        ends = [field.doc.partition(":")[0] for field in used]
        doc = f"{layers}: {ends[0]} to {ends[-1]}, and {len(uses) - 1} more like it."
        return Block(kind, doc, tuple(roles.values()), lines, tuple(uses))

    def _type_name(self, wish: str) -> str:
        number = 2
        if wish in self._type_names and not wish.endswith("Block"):
            wish += "Block"
        name = wish
        while not self._type_names.isdisjoint((name, f"{name}Places")):
            name = f"{wish}{number}"
            number += 1
        self._type_names |= {name, f"{name}Places"}
        return name

    def _roles(self, start: int, length: int, prefix: str) -> dict[Name, Role]:
        scope = Scope(frozenset(["p", "m", "b", "run"]))
        places = Scope()
        roles: dict[Name, Role] = {}
        for name in self._names_in(start, length):
            if name in roles:
                continue
            short = name.name.lower()
            if prefix and short.startswith(prefix) and len(short) > len(prefix) + 1:
                short = short[len(prefix) + 1 :]
            if name.kind is Kind.FIELD:
                wish = scope.unique(snake(short, "layer"))
                roles[name] = Role(wish, name.type, name.kind, self._fields[name.name].path)
            elif name.kind is Kind.TENSOR:
                wish = places.unique(snake(short, "weights"))
                roles[name] = Role(wish, f"Tensor<{name.type}>", name.kind)
            else:
                outside = prefix and not name.name.lower().startswith(prefix)
                wish = places.unique("input" if outside else snake(short, "tensor"))
                roles[name] = Role(wish, f"Slot<{name.type}>", name.kind)
        return roles

    def _names_in(self, start: int, length: int) -> Iterator[Name]:
        """Yields what a run names, each as often as it does."""
        return itertools.chain.from_iterable(self._named[start : start + length])

    def _use(self, start: int, length: int, roles: Mapping[Name, Role], kind: str) -> Use:
        fields = []
        places = []
        names = dict.fromkeys(self._names_in(start, length))
        for role, name in zip(roles.values(), names, strict=True):
            if role.kind is Kind.FIELD:
                fields.append(self._fields[name.name])
            else:
                places.append(name)
        prefix = self._prefix(start, length) or snake(kind, "block")
        field = self._names.unique(snake(prefix, "block"))
        constant = self._constants.unique(field.upper(), f"{field.upper()}_PLACES")
        return Use(field, constant, tuple(fields), tuple(places), start)


def _apart(starts: Sequence[int], length: int) -> list[int]:
    """Returns the starts of runs that do not overlap."""
    apart: list[int] = []
    place = 0
    while place < len(starts):
        apart.append(starts[place])
        place = bisect_left(starts, starts[place] + length, place + 1)
    return apart


def _common_prefix(names: Sequence[str]) -> str:
    low, high = min(names, default=""), max(names, default="")
    same = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    return low[:same]
