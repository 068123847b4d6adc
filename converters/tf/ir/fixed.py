"""A graph whose open dimensions are numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from converters.tf.ir.expressions import Size, Unknown, counted, names_of
from converters.tf.ir.graph import Graph, Node, Op, Port
from converters.tf.ir.longest import longest_dims
from converters.tf.ir.values import Array, Batch, Shape, Value, shape_text


def multiples(graph: Graph) -> dict[str, int]:
    """Returns the numbers of which open dimensions are multiples, by name, where it is not 1."""
    dims = (dim for port in graph.inputs for dim in port.value.shape if isinstance(dim, Size))
    atoms = (atom for dim in dims for atom in dim.atoms() if isinstance(atom, Unknown))
    return {atom.name: atom.by for atom in atoms if atom.by > 1}


def open_dims(graph: Graph) -> tuple[str, ...]:
    """Returns the names of the open dimensions besides the batch, in the order of the inputs.

    Those that texts decide come last.
    """
    found: dict[str, None] = {}
    for port in graph.inputs:
        for dim in port.value.shape:
            if isinstance(dim, Size):
                found |= dict.fromkeys(names_of(dim))
    return (*found, *longest_dims(graph))


def counted_dims(graph: Graph) -> dict[str, int]:
    """Returns the numbers that a call counts, in the order of the nodes, with the most of each."""
    sizes = (dim for node in graph.nodes for value in node.outputs for dim in value.shape)
    parts = (dim.scale if isinstance(dim, Batch) else dim for dim in sizes)
    return {atom.name: atom.most for part in parts for atom in counted(part)}


def sizes_of(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, int]:
    """Returns the open dimensions that arrays have, by name.

    Raises:
        ValueError: An array has another rank than its input, or two contradict each other.
    """
    found: dict[str, int] = {}
    computed: list[tuple[str, Size, int]] = []
    for port in graph.inputs:
        shape = np.shape(inputs[port.name])
        if len(shape) != port.value.rank:
            expected = shape_text(port.value.shape)
            raise ValueError(f"input {port.name} has shape {shape}, not {expected}")
        for dim, size in zip(port.value.shape, shape, strict=True):
            if not isinstance(dim, Size):
                continue
            name, by = dim.whole
            if not name:
                computed.append((port.name, dim, size))
            elif found.setdefault(name, size) != size:
                raise ValueError(f"{name} is {found[name]}, and {size} in input {port.name}")
            elif size % by:
                raise ValueError(f"{name} is {size}, which is not a multiple of {by}")
    for name, longest in longest_dims(graph).items():
        found[name] = longest.of(inputs[longest.port.name])
    for name, of, size in computed:
        if of.at(found) != size:
            raise ValueError(f"{of!s} is {of.at(found)}, and {size} in input {name}")
    return found


def fixed(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """Returns the graph for some open dimensions.

    Args:
        graph: The graph.
        sizes: A number, or another size, for each of them by name.

    Raises:
        ValueError: A tensor would have a dimension below 1, or is too small for a node.
    """
    return _Fixed(sizes).graph(graph) if sizes else graph


def counted_node(node: Node, sizes: Mapping[str, int]) -> Node:
    """Returns a node for numbers that the call has counted, with values of its own."""
    return _Fixed(sizes, 0).node(node) if sizes else node


class _Fixed:
    def __init__(self, sizes: Mapping[str, int], least: int = 1) -> None:
        self._sizes = sizes
        self._least = least
        self._values: dict[Value, Value] = {}

    def graph(self, graph: Graph) -> Graph:
        inputs = tuple(Port(p.name, self._value(p.value)) for p in graph.inputs)
        nodes = tuple(self.node(node) for node in graph.nodes)
        outputs = tuple(replace(p, value=self._value(p.value)) for p in graph.outputs)
        return replace(graph, inputs=inputs, outputs=outputs, nodes=nodes)

    def node(self, node: Node) -> Node:
        inputs = tuple(None if v is None else self._value(v) for v in node.inputs)
        outputs = tuple(self._value(v) for v in node.outputs)
        op = self._part(node.op)
        if what := op.misfit([() if v is None else v.shape for v in inputs]):
            raise ValueError(f"the sizes are too small: {what}")
        return replace(node, op=op, inputs=inputs, outputs=outputs)

    def _value(self, value: Value) -> Value:
        if value.is_constant:
            return value
        if value not in self._values:
            shape = self._shape(value)
            self._values[value] = Value(value.dtype, shape, None, value.name)
        return self._values[value]

    def _shape(self, value: Value) -> Shape:
        shape: Shape = self._part(value.shape)
        changed = (d for d, before in zip(shape, value.shape, strict=True) if d is not before)
        numbers = (d.scale if isinstance(d, Batch) else d for d in changed)
        if any(size < (0 if counted(size) else self._least) for size in numbers):
            text = f"{shape_text(value.shape)} is {shape_text(shape)}"
            raise ValueError(f"the sizes are too small: {value.name} of {text}")
        return shape

    def _part(self, part: Any) -> Any:
        """Returns an attribute, or the op that has attributes, in the same way."""
        if isinstance(part, Size):
            return part.with_atoms(self._sizes)
        if isinstance(part, Batch):
            return replace(part, scale=self._part(part.scale))
        if isinstance(part, Graph):
            return self.graph(part)
        if isinstance(part, Node):
            return self.node(part)
        if isinstance(part, tuple):
            return tuple(self._part(inner) for inner in part)
        if isinstance(part, Op) and is_dataclass(part):
            return replace(
                part, **{f.name: self._part(getattr(part, f.name)) for f in fields(part)}
            )
        return part
