"""Nodes and graphs, and what every op says about itself: its card."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from converters.tf.ir.values import Value


class Op:
    """What a node computes; the ops of a family are side by side in a file of `ops`."""

    def bodies(self) -> tuple[Graph, ...]:
        """Returns the graphs that the op runs."""
        return ()

    def inner(self) -> Iterator[Node]:
        """Yields the nodes inside of the op, those of their bodies included."""
        for body in self.bodies():
            yield from body.all_nodes()


@dataclass(frozen=True, eq=False)
class Node:
    """One op.

    Attributes:
        op: What is computed.
        inputs: Operands in the order that the op states; `None` for one that is left out.
        outputs: Results.
        layer: Path of the Keras layer that it comes from (`encoder/block_1/dense`), or empty.
        doc: One line for people, or empty.
    """

    op: Op
    inputs: tuple[Value | None, ...]
    outputs: tuple[Value, ...]
    layer: str = ""
    doc: str = ""

    def operand(self, index: int) -> Value | None:
        """Returns an operand, or `None` if it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    @property
    def present(self) -> tuple[Value, ...]:
        """Returns the operands that are there."""
        return tuple(v for v in self.inputs if v is not None)

    @property
    def input(self) -> Value:
        """Returns the first operand.

        Raises:
            ValueError: It is left out.
        """
        first = self.operand(0)
        if first is None:
            raise ValueError(f"{type(self.op).__name__} of layer {self.layer!r} has no operand")
        return first

    @property
    def output(self) -> Value:
        """Returns the only result.

        Raises:
            ValueError: There are several.
        """
        (output,) = self.outputs
        return output


@dataclass(frozen=True)
class Port:
    """An input or output of a graph with its public name, in the model's words."""

    name: str
    value: Value


@dataclass(frozen=True)
class Layer:
    """A Keras layer.

    Attributes:
        path: Names from the outermost model to the layer, joined by `/`.
        kind: Its class, such as `Conv2D`.
    """

    path: str
    kind: str


@dataclass(frozen=True)
class Graph:
    """A model or the body of a loop.

    Attributes:
        name: Name of the model.
        inputs: In the order in which they are passed.
        outputs: In the order of the model; a value may be an input, a constant, or come twice.
        nodes: In an order in which operands come before their users.
        layers: The layers that nodes name, in the model's order.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    nodes: tuple[Node, ...]
    layers: tuple[Layer, ...] = field(default=())

    def constants(self) -> Iterator[Value]:
        """Yields every constant once, in the order of use, those of loop bodies included."""
        seen: set[Value] = set()
        for value in self._uses():
            if value.is_constant and value not in seen:
                seen.add(value)
                yield value

    def all_nodes(self) -> Iterator[Node]:
        """Yields every node, those of a loop's body or of a chain after it."""
        for node in self.nodes:
            yield node
            yield from node.op.inner()

    def _uses(self) -> Iterator[Value]:
        for node in self.nodes:
            yield from node.present
            for body in node.op.bodies():
                yield from body._uses()
        yield from (port.value for port in self.outputs)
