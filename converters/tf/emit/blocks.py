"""Repeated parts of a model become a struct with a function.

Two runs of statements are the same block if they differ only in their layers, in the places of
their tensors and in their weights. Layers become fields of the block, the rest the fields of a
struct of places, of which each use of the block has a constant.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from converters.tf.emit.context import Field, SlotName
from converters.tf.emit.names import snake
from converters.tf.emit.statements import Code, Kind, Name
from tools.codegen.names import Scope, type_name

# Shortest and longest run of statements that is worth a struct.
_SHORTEST = 3
_LONGEST = 80
# Statements that a block saves, at least.
_SAVED = 4
# The types of places.
_PLACES = {Kind.SLOT: "memory::Slot", Kind.TENSOR: "weights::Tensor"}
# What the uses of a block differ in.
_NAMED = (Kind.FIELD, Kind.SLOT, Kind.TENSOR)


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


@dataclass
class _Run:
    """Statements that may become a block.

    Attributes:
        start: The first one.
        shape: The first start of a run of the same length with statements of equal shapes.
        free: Whether no block has one of them, none names an input, and none before them names one
            of their layers.
        reach: The last statement that names one of their layers.
        layers: How often they name a layer.
    """

    start: int
    shape: int = 0
    free: bool = True
    reach: int = -1
    layers: int = 0

    def usable(self, length: int) -> bool:
        """Returns whether their layers are used nowhere else, and there are some."""
        return self.free and self.reach < self.start + length and self.layers > 1


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
        # The first and the last statement that names a layer.
        self._reach: dict[str, tuple[int, int]] = {}
        for index, used in enumerate(self._used):
            for name in used:
                self._reach[name] = (self._reach.get(name, (index, index))[0], index)
        self._shapes = _numbered(line.shape() for line in lines)
        self._reads_input = [line.has(Kind.INPUT) for line in lines]
        self._named = [list(line.names(*_NAMED)) for line in lines]
        # The same as numbers, which are quick to compare.
        numbers = iter(_numbered(itertools.chain.from_iterable(self._named)))
        self._numbers = [list(itertools.islice(numbers, len(named))) for named in self._named]
        self._claimed = [False] * len(lines)
        self._type_names = {*taken, *(f.type for f in fields)}
        self._names = Scope(frozenset({*self._fields, "weights", "engine", "thresholds"}))
        self._constants = Scope(frozenset(s.name for s in slots))

    def find(self) -> list[Block]:
        """Returns the blocks, those that save most first."""
        blocks = []
        while (best := self._best()) is not None:
            blocks.append(self._block(*best))
        return blocks

    def _key(self, start: int, length: int) -> tuple[int, ...]:
        """Returns the numbers of the things that the statements name: equal ones are the same."""
        known: dict[int, int] = {}
        names = itertools.chain.from_iterable(self._numbers[start : start + length])
        return tuple([known.setdefault(name, len(known)) for name in names])

    def _longer(self, runs: list[_Run], length: int) -> list[list[_Run]]:
        """Makes the runs a statement longer; returns those of equal shapes together.

        Args:
            runs: Of one statement less; those that would pass the end are left out from here on.
            length: How many statements they have then.
        """
        del runs[len(self._lines) - length + 1 :]
        shapes: dict[tuple[int, int], list[_Run]] = {}
        for run in runs:
            last = run.start + length - 1
            run.free &= not self._claimed[last] and not self._reads_input[last]
            for name in self._used[last]:
                run.reach = max(run.reach, self._reach[name][1])
                run.free &= self._reach[name][0] >= run.start
            run.layers += len(self._used[last])
            same = shapes.setdefault((run.shape, self._shapes[last]), [])
            same.append(run)
            run.shape = same[0].start
        return list(shapes.values())

    def _best(self) -> tuple[list[int], int] | None:
        best: tuple[float, list[int], int] | None = None
        runs = [_Run(start) for start in range(len(self._lines))]
        for length in range(1, min(_LONGEST, len(runs) // 2) + 1):
            shapes = self._longer(runs, length)
            for alike in shapes if length >= _SHORTEST else []:
                if len(alike) < 2 or (best and 2 * (len(alike) - 1) * length < best[0]):
                    continue
                for same in self._groups([r.start for r in alike if r.usable(length)], length):
                    saved = (len(same) - 1) * length
                    if saved < _SAVED:
                        continue
                    weight = saved * (1 + self._unity(same, length))
                    if best is None or weight > best[0]:
                        best = (weight, same, length)
        return None if best is None else (best[1], best[2])

    def _groups(self, starts: Sequence[int], length: int) -> list[list[int]]:
        """Returns runs of equal shapes that name things alike, and do not overlap."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for start in starts:
            group = groups.setdefault(self._key(start, length), [])
            if not group or group[-1] + length <= start:
                group.append(start)
        return [group for group in groups.values() if len(group) > 1]

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
            for index in range(start, start + length):
                self._claimed[index] = True
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


def _numbered(things: Iterable[Hashable]) -> list[int]:
    """Returns numbers that are equal where the things are."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(thing, len(numbers)) for thing in things]


def _common_prefix(names: Sequence[str]) -> str:
    low, high = min(names, default=""), max(names, default="")
    same = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    return low[:same]
