"""What a model with open dimensions computes at each call: sizes, and the places of tensors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from converters.tf import ir
from converters.tf.emit.context import SlotName
from converters.tf.emit.names import snake
from converters.tf.emit.port_text import PortText
from converters.tf.emit.readings import reading_of
from converters.tf.emit.statements import Code, Kind, Name
from converters.tf.emit.weights import rust_type
from converters.tf.ir.expressions import Above, Atom, Floor, Size, Unknown, counted, size_at
from converters.tf.ir.fixed import counted_dims, multiples, open_dims
from converters.tf.ir.longest import longest_dims
from converters.tf.ir.sizes import numbers
from converters.tf.plan.arena import Plan, region
from tools.codegen.names import Scope
from tools.codegen.rust import one_line, string_literal

# What the function that computes the places names.
_TAKEN = frozenset({"bytes", "sizes", "batch", "end", "self"})


@dataclass(frozen=True)
class Computed:
    """A field of the places: a size, or the slot of a tensor.

    Attributes:
        name: Its name.
        type: Its Rust type.
        doc: What it is, in one line.
        value: The expression that computes it.
    """

    name: str
    type: str
    doc: str
    value: str


@dataclass
class Opened:
    """The open dimensions of a model and all that depends on them.

    Attributes:
        dims: Names of the open dimensions besides the batch, in Rust, by their names.
        counts: The same of the numbers that a call counts.
        regions: The expression of each region's first byte, by its name, and of the end.
        sizes: Fields of the places with sizes that are not products.
        slots: Fields with the places of tensors.
        most: The most that each open dimension may be, in a crate without std.
    """

    plan: Plan
    dims: dict[str, str]
    counts: dict[str, str] = field(default_factory=dict)
    regions: list[tuple[str, str]] = field(default_factory=list)
    sizes: list[Computed] = field(default_factory=list)
    slots: list[Computed] = field(default_factory=list)
    most: Mapping[str, int] = field(default_factory=dict)
    _names: Scope = field(default_factory=Scope)
    _most: dict[str, str] = field(default_factory=dict)
    _known: dict[Size, str] = field(default_factory=dict)
    _variables: dict[str, str] = field(default_factory=dict)
    _read: set[str] = field(default_factory=set)
    _computed: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, plan: Plan, most: Mapping[str, int] = MappingProxyType({})) -> Opened | None:
        """Returns what is open in a plan, or nothing if only the batch is.

        Args:
            plan: The plan.
            most: The most that each dimension may be, by its name, in a crate without std.
        """
        found, counts = open_dims(plan.graph), counted_dims(plan.graph)
        if not found and not counts:
            return None
        taken = _TAKEN.union(str(region(index)) for index in range(len(plan.regions)))
        scope = Scope(taken)
        opened = cls(plan, {name: scope.unique(_wish(name)) for name in found})
        opened.most = most
        opened.counts = {name: scope.unique(_wish(name)) for name in counts}
        opened._variables = opened.dims | opened.counts
        opened._names = Scope(taken.union(opened._variables.values()))
        opened._most = {name: opened._checked(most, opened._given) for name, most in counts.items()}
        opened._lay_out()
        opened._check_shapes()
        return opened

    def renamed(self, code: Code) -> Code:
        """Returns a code whose sizes and slots are fields of the places."""
        return code.renamed(self._renamed)

    def _renamed(self, name: Name) -> str | Name:
        if name.kind is Kind.SIZE and name.size is not None:
            return self.text(name.size)
        if name.kind is Kind.SLOT:
            return Name(Kind.SLOT, f"s.{self.slot_name(name.name)}", name.type)
        return name

    @staticmethod
    def slot_name(name: str) -> str:
        """Returns the field of a slot."""
        return f"at_{name.lower()}"

    def text(self, size: int | Size) -> str:
        """Returns a size as an expression of the statements: a product, or a field."""
        if not isinstance(size, Size):
            return str(size)
        if not _is_product(size):
            name = self._field(size, 0)
            self._read.add(name)
            return f"s.{name}"
        ((product, factor),) = size.terms
        names = [self._variables[a.name] for a in product if isinstance(a, Unknown)]
        factor = 1 if size.whole[0] else factor
        self._read.update(names)
        return " * ".join([*(f"s.{n}" for n in names), *([str(factor)] if factor > 1 else [])])

    def dim(self, dim: ir.Dim) -> str:
        """Returns a dimension of an output as an expression of the statements."""
        if not isinstance(dim, ir.Batch):
            return self.text(dim)
        return "m.batch" if dim.scale == 1 else f"m.batch * {self.text(dim.scale)}"

    def view(self) -> dict[str, object]:
        """Returns what the templates name, once all expressions are made."""
        images = any(len(port.value.shape) > 3 for port in self.plan.graph.inputs)
        sample, steps = _IMAGE if images else _SEQUENCE, multiples(self.plan.graph)
        dims = [
            {
                "name": name,
                "step": steps.get(label, 1),
                "sample": -(-sample // steps.get(label, 1)) * steps.get(label, 1),
                "label": one_line(label),
                "read": name in self._read,
                "computed": name in self._computed,
                "most": self.most.get(label),
            }
            for label, name in self.dims.items()
        ]
        counts = [
            {
                "name": name,
                "label": one_line(label),
                "most": self._most[label],
                "computed": name in self._computed,
            }
            for label, name in self.counts.items()
        ]
        sizes = [{**vars(size), "read": size.name in self._read} for size in self.sizes]
        parts = {
            "idle": not counts and self._read.union(self._computed).isdisjoint(self.dims.values()),
            "sizes": sizes,
            "slots": self.slots,
            "regions": self.regions,
            "arena": self.largest(self._arena) if self.most else 0,
        }
        return {"dims": dims, "counts": counts, **parts}

    def largest(self, size: Callable[[Mapping[str, int]], int]) -> int:
        """Returns the most that a size is where each open dimension is 1 or the most it may be.

        A size that is larger in between is refused by the call: it asks for the memory it needs.
        """
        corners = itertools.product(*((1, self.most[name]) for name in self.dims))
        return max(0, *(size(dict(zip(self.dims, corner, strict=True))) for corner in corners))

    def elements(self, shape: ir.Shape) -> int:
        """Returns the most elements of a shape without batch."""
        return self.largest(lambda at: math.prod(max(0, size_at(d, at)) for d in numbers(shape)))

    def _arena(self, sizes: Mapping[str, int]) -> int:
        """Returns the bytes of the workspace for open dimensions."""
        return sum(max(size_at(s, sizes) for s in region) for region in self.plan.regions)

    def longest(self, port: PortText) -> list[tuple[int, Code, int]]:
        """Returns the open dimensions that the texts of an input decide.

        Returns:
            The number of each among all, how a text becomes tokens, and how many at most if that is
            not 0.
        """
        names = list(self.dims)
        return [
            (
                names.index(name) + 1,
                reading_of(longest.reading, ir.Rest()),
                longest.reading.split.most,
            )
            for name, longest in longest_dims(self.plan.graph).items()
            if longest.port.name == port.name and not port.source
        ]

    @property
    def sums(self) -> bool:
        """Returns whether an input has a size that is computed of open dimensions."""
        dims = (dim for port in self.plan.graph.inputs for dim in port.value.shape)
        return any(isinstance(dim, Size) and not dim.whole[0] for dim in dims)

    def add_slots(self, slots: Sequence[SlotName]) -> None:
        """Adds the slots of all tensors to the fields."""
        for slot in slots:
            place = slot.place
            make = "fixed" if place.fixed else "new"
            ends = ", ".join(
                f"({self._checked(n)}).bytes()?" if isinstance(n, Size) else str(n)
                for n in (place.at, place.elements)
            )
            kind = f"Slot<{rust_type(place.dtype)}>"
            self.slots.append(
                Computed(self.slot_name(slot.name), kind, slot.doc, f"Slot::{make}({ends})")
            )

    def _lay_out(self) -> None:
        end = "Size::from(0)"
        for index, sizes in enumerate(self.plan.regions):
            name = str(region(index))
            self._variables[name] = name
            atoms = [atom for size in sizes for atom in _atoms(size)]
            # A region that moves when the call has counted would leave its tensors behind.
            assert self.counts.keys().isdisjoint(str(atom) for atom in atoms)
            self.regions.append((name, end))
            first, *rest = (self._checked(size) for size in sizes)
            most = f"({first})" + "".join(f".or({size})" for size in rest) if rest else first
            end = f"{name} + {most}"
        self.regions.append(("end", end))

    def _check_shapes(self) -> None:
        """Adds a field for every dimension that may be too small, though the inputs are not."""
        for node in self.plan.graph.all_nodes():
            for value in node.outputs:
                for dim in value.shape:
                    size = dim.scale if isinstance(dim, ir.Batch) else dim
                    if isinstance(size, Size) and not _is_positive(size):
                        self._field(size, 0 if counted(size) else 1)

    def _field(self, size: Size, least: int) -> str:
        known = self._known.get(size)
        if known is None:
            known = self._known[size] = self._names.unique(f"size_{len(self._known) + 1}")
            what = string_literal(f"{size!s} must be at least {least}")
            value = f"({self._checked(size)}).at_least({least}, {what})?"
            self.sizes.append(Computed(known, "usize", f"`{one_line(str(size))}`", value))
        return known

    def _given(self, name: str) -> str:
        return self.counts.get(name) or f"Size::of(sizes.{self.dims[name]})"

    def check(self, size: Size) -> str:
        """Returns a size as an expression of the runtime's, with the dimensions as numbers."""
        return self._checked(size, lambda name: f"Size::of({self.dims[name]})")

    def _checked(self, size: int | Size, atom: Callable[[str], str] | None = None) -> str:
        """Returns a size as an expression of the runtime's checked numbers.

        Args:
            size: The size.
            atom: The expression of an open dimension, by default the variable of the places.
        """
        if not isinstance(size, Size):
            return f"Size::from({size})"
        terms = sorted(size.terms, key=lambda term: (term[1] < 0, not term[0]))
        text = ""
        for product, factor in terms:
            atoms = [self._atom(part, atom) for part in product]
            if not text and (not atoms or factor < 0):
                text = f"Size::from({factor if not atoms else 0})"
                if not atoms:
                    continue
            amount = [*atoms, *([str(abs(factor))] if abs(factor) != 1 or not atoms else [])]
            sign = " - " if factor < 0 else " + "
            text += (sign if text else "") + " * ".join(amount)
        return text

    def _atom(self, part: Atom, atom: Callable[[str], str] | None) -> str:
        if isinstance(part, Floor):
            return f"({self._checked(part.of, atom)}).over({part.by})"
        if isinstance(part, Above):
            return f"({self._checked(part.of, atom)}).or(Size::from(0))"
        if atom is not None:
            text = atom(part.name)
        else:
            text = self._variables[part.name]
            self._computed.add(text)
        return text if part.by == 1 else f"({text}).over({part.by})"


def _wish(name: str) -> str:
    """Returns a field for an open dimension, which no other field of the places is called."""
    wish = snake(name, "size")
    return f"open_{wish}" if wish.startswith(("at_", "size_", "region_")) else wish


def _atoms(size: int | Size) -> list[Atom]:
    return list(size.atoms()) if isinstance(size, Size) else []


def _is_positive(size: Size) -> bool:
    """Returns whether a size is a product of open dimensions or of parts, never too small."""
    (product, factor), *others = size.terms
    return not others and factor > 0 and all(isinstance(a, Unknown) for a in product)


def _is_product(size: Size) -> bool:
    """Returns whether a size is a product of whole open dimensions."""
    ((product, _), *_) = size.terms
    whole = all(isinstance(a, Unknown) and a.by == 1 for a in product)
    return _is_positive(size) and (whole or bool(size.whole[0]))


# What open dimensions are in the bench.
_IMAGE, _SEQUENCE = 64, 128
