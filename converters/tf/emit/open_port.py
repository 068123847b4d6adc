"""An input or output of a model with open dimensions, as the templates see it."""

from __future__ import annotations

from collections.abc import Sequence

from converters.tf import ir
from converters.tf.emit.opened import Opened
from converters.tf.emit.port_text import PortText
from converters.tf.ir.expressions import Above, Atom, Floor, Size, counted, names_of, size_at
from converters.tf.ir.fixed import multiples
from converters.tf.ir.sizes import numbers
from tools.codegen.rust import one_line, string_literal


class OpenPort:
    """An input or output of a model with open dimensions, as the templates see it.

    Attributes:
        axes: What each axis is, for an input.
        call_dims: Its size along each axis in terms of `sizes`, for an input.
        checks: Axes of an input whose sizes are computed, each with its expression and its text.
            The text names the axes of inputs that the size depends on.
        dims: The same in terms of `sizes` and of the places `s`, for an output.
        counted: Whether the call counts how many elements it has, for an output.
        most: The most elements, in a crate without std.
        longest: Open dimensions that its texts decide, each with how these become tokens.
        beyond: A shape whose dimensions are each the next one above the most it may be, for an
            input.
    """

    def __init__(self, port: PortText, opened: Opened) -> None:
        self.field = port.field
        self.name = one_line(port.name).replace("`", "'")
        self.literal = string_literal(port.name)
        self.key = string_literal(port.key)
        self.type = port.type
        self.shape = port.shape
        self.rank = len(port.full)
        self.extents = port.extents
        self.zero = port.zero
        self.sample = port.sample
        self.element = port.element
        self.kind = port.kind
        self.lists = port.lists
        self.read = port.read
        names = list(opened.dims)
        self.axes = [] if port.source else [_axis(dim, names) for dim in port.full]
        self.call_dims = [] if port.source else [_of_call(dim, opened) for dim in port.full]
        computed = [] if port.source else enumerate(port.full)
        self.checks = [
            {"axis": axis, "size": opened.check(dim), "text": string_literal(_told(dim, opened))}
            for axis, dim in computed
            if isinstance(dim, Size) and not dim.whole[0]
        ]
        self.longest = opened.longest(port)
        self.dims = [_dim(dim, opened) for dim in port.full] if port.source else []
        self.counted = any(map(counted, numbers(port.full))) if port.source else False
        self.most = opened.elements(port.full) if opened.most else 0
        self.beyond = _beyond(port.full, opened) if opened.most and not port.source else []


def _told(size: Size, opened: Opened) -> str:
    """Returns how a size is computed, and which axes of which inputs say its dimensions."""
    found = {
        dim.whole[0]: f"{dim.whole[0]} is axis {axis} of input {port.name}"
        for port in reversed(opened.plan.graph.inputs)
        for axis, dim in reversed([*enumerate(port.value.shape)])
        if isinstance(dim, Size)
    }
    said = [found[name] for name in names_of(size) if name in found]
    return f"{size!s} ({', '.join(said)})" if said else str(size)


def _beyond(shape: ir.Shape, opened: Opened) -> list[int]:
    if not any(isinstance(d, Size) and d.whole[0] for d in shape):
        return []
    steps = multiples(opened.plan.graph)
    above = {name: most + steps.get(name, 1) for name, most in opened.most.items()}
    return [size_at(d, above) for d in numbers(shape)]


def _axis(dim: ir.Dim, names: Sequence[str]) -> str:
    if isinstance(dim, ir.Batch):
        return "Extent::Open(0)"
    if isinstance(dim, Size):
        name, by = dim.whole
        if not name:
            return "Extent::Computed"
        number = names.index(name) + 1
        return f"Extent::Open({number})" if by == 1 else f"Extent::Multiple({number}, {by})"
    return f"Extent::Fixed({dim})"


def _of_call(dim: ir.Dim, opened: Opened) -> str:
    if isinstance(dim, ir.Batch):
        return "sizes.batch"
    return _plain(dim, opened) if isinstance(dim, Size) else str(dim)


def _plain(size: Size, opened: Opened) -> str:
    """Returns a size as an expression of Rust's own numbers."""
    text = ""
    for product, factor in sorted(size.terms, key=lambda term: term[1] < 0):
        whole = bool(Size({product: factor}).whole[0])
        factor = 1 if whole else factor
        parts = [_plain_atom(a, opened, whole) for a in product]
        parts += [str(abs(factor))] if abs(factor) != 1 or not product else []
        text += (" - " if factor < 0 else " + " if text else "") + " * ".join(parts)
    return text


def _plain_atom(atom: Atom, opened: Opened, whole: bool) -> str:
    if isinstance(atom, Floor):
        return f"({_plain(atom.of, opened)}) / {atom.by}"
    if isinstance(atom, Above):
        above, below = (
            Size({product: abs(n) for product, n in atom.of.terms if (n > 0) is positive})
            for positive in (True, False)
        )
        return f"({_plain(above, opened)}).saturating_sub({_plain(below, opened)})"
    size = f"sizes.{opened.dims[atom.name]}"
    return size if whole or atom.by == 1 else f"{size} / {atom.by}"


def _dim(dim: ir.Dim, opened: Opened) -> str:
    if not isinstance(dim, ir.Batch):
        return opened.text(dim)
    return "sizes.batch" if dim.scale == 1 else f"sizes.batch * {opened.text(dim.scale)}"
