"""Nodes and graphs, and the card of an op: all that it says about itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from converters.tf.ir.operands import Operands
from converters.tf.ir.types import SINGLE, unserved
from converters.tf.ir.values import Array, DType, Shape, Value


class Op:
    """What a node computes.

    The fields of a class are the attributes of its op, and its docstring names operands and
    results. Passes, memory plan and emitters ask for nothing but its methods. The methods here are
    those of an op without anything special. The ops of a family are in one file of `ops`.

    Attributes:
        single: Whether operands are float32, apart from masks of truth values.
        packed: Which operands `packed_operands` returns.
        writes_all: Whether a result that nobody reads is written all the same, and has a place.
    """

    single: ClassVar[bool] = False
    packed: ClassVar[tuple[int, ...]] = ()
    writes_all: ClassVar[bool] = False

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...] | None:
        """Returns the shapes of the results; `None` if they do not follow from the operands.

        Args:
            x: The shapes of the operands, `()` for one that is left out.

        Raises:
            ShapeError: The operands do not fit together.
        """
        return None

    def misfit(self, x: Sequence[Shape]) -> str:
        """Returns why a call can't have operands of these shapes, or nothing.

        A model with open dimensions has them for some sizes; then that is an error of the call.
        """
        return ""

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> Sequence[Array]:
        """Returns the results in NumPy; the interpreter rounds them to their types.

        Args:
            x: The operands, of which floats are best read by `x.wide()`.
            shape: The shape of the first result.

        Raises:
            ArithmeticError: The call is an error: an integer division by 0.
            ValueError: The call is an error: an index outside of its axis.
        """
        raise NotImplementedError(f"{type(self).__name__} has no meaning of its own")

    def computes_single(self) -> bool:
        """Returns whether floats are computed in float32 alone."""
        return self.single

    def refused(self, node: Node) -> list[str]:
        """Returns why the runtime does not serve the element types of a node."""
        found = {v.dtype for v in node.present} - {DType.BOOL} if self.single else set()
        name = type(self).__name__
        return [reason for dtype in sorted(found) for reason in unserved(name, dtype, SINGLE)]

    def packed_operands(self, node: Node) -> tuple[int, ...]:
        """Returns the operands that are packed when a model is made, and not read afterwards."""
        return self.packed

    def macs(self, node: Node) -> int:
        """Returns the multiplications with addition of a node for one example."""
        return 0

    def scratch(self, node: Node, packed: bool = True) -> int:
        """Returns the f32 elements of scratch memory that a node needs for one example.

        It is what the kernel asks for, at most, at any SIMD level; a test compares them
        (`converters/tf/tests/crates/scratch_test.py`).

        Args:
            node: The node.
            packed: Whether matrices of weights are packed beforehand.
        """
        return 0

    def overwritten(self, node: Node) -> tuple[int, ...]:
        """Returns the operands in whose memory the result may be computed."""
        return ()

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

    def given(self, index: int) -> Value:
        """Returns an operand.

        Raises:
            ValueError: It is left out.
        """
        value = self.operand(index)
        if value is None:
            name = type(self.op).__name__
            raise ValueError(f"{name} of layer {self.layer!r} lacks operand {index}")
        return value

    @property
    def present(self) -> tuple[Value, ...]:
        """Returns the operands that are there."""
        inputs = self.inputs
        return tuple(v for v in inputs if v is not None) if None in inputs else inputs  # type: ignore[return-value]

    @property
    def input(self) -> Value:
        """Returns the first operand.

        Raises:
            ValueError: It is left out.
        """
        return self.given(0)

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
    """An input or output of a graph.

    Attributes:
        name: Its public name, in the model's words.
        value: The tensor.
        words: What the numbers of an output stand for, from 0 on, if it is text: UTF-8, without a
            zero at the end.
    """

    name: str
    value: Value
    words: tuple[bytes, ...] | None = None

    @property
    def dtype(self) -> DType:
        """Returns the element type that users see."""
        return self.value.dtype if self.words is None else DType.STR

    def spelled(self, numbers: Array) -> Array:
        """Returns an output as users see it: Python's strings where it is text."""
        if self.words is None:
            return numbers
        words = np.array([word.decode() for word in self.words], object)
        return np.asarray(words[numbers], object)


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
