"""A traced model as plain data, in TensorFlow's own words; nothing here imports TensorFlow.

A function is a list of nodes; its arguments are nodes of the op `Placeholder`. Values of attributes
are Python's: numbers, strings, element types by their NumPy names, shapes as tuples with `None`
for what is unknown, arrays, and names of functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from converters.tf.ir import Array, Layer

Attr: TypeAlias = Any
# The attribute of a node that the loader refuses: why. Such a node has the op of its file's format.
REFUSED = "refused"
# The attribute of a node that the loader has as an op of the typed graph: that op. Such a node has
# the op `TYPED_NODE`, and the element types of its results are the attribute `dtypes`.
TYPED = "typed"
TYPED_NODE = "TypedNode"
# The op that stands for an output of text, which no file can name.
WRITE = "output of text"
# The op of a node that an operator of the user's own is, which no file can name, and the attribute
# that holds its `ir.OwnOp`.
OWN_OP, OWN = "operator of the user", "own"


@dataclass(frozen=True)
class FunctionName:
    """The value of an attribute that names a function."""

    name: str


@dataclass(frozen=True)
class TensorRef:
    """An output of a node."""

    node: str
    index: int = 0


@dataclass(frozen=True)
class TraceNode:
    """A TensorFlow node.

    Attributes:
        name: Its name in the function.
        op: TensorFlow's op.
        inputs: Operands, without control edges.
        attrs: Attributes.
        layer: Path of the Keras layer that made it; empty outside of layers.
        shape: Shape of its first output, `None` for a dimension that is open; `None` where there
            is no output or its rank is unknown.
        after: Nodes that run before it without giving it an operand: its control edges.
    """

    name: str
    op: str
    inputs: tuple[TensorRef, ...]
    attrs: Mapping[str, Attr]
    layer: str = ""
    shape: tuple[int | None, ...] | None = None
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class TraceFunction:
    """A function.

    Attributes:
        name: Its name.
        arguments: Names of the placeholders, in order.
        nodes: Nodes by name.
        results: What it returns.
    """

    name: str
    arguments: tuple[str, ...]
    nodes: Mapping[str, TraceNode]
    results: tuple[TensorRef, ...]


@dataclass(frozen=True)
class Variable:
    """A variable or another captured tensor, by its value.

    Attributes:
        name: Path of the layer and the name of the variable: `dense/kernel`.
        data: The value; `None` for a resource that holds no tensor.
        entries: Keys and values if the resource is a lookup table; strings are of NumPy's objects.
    """

    name: str
    data: Array | None
    entries: tuple[Array, Array] | None = None


@dataclass(frozen=True)
class TraceInput:
    """An input of the model.

    Attributes:
        name: Public name.
        node: Placeholder.
        dtype: Element type by its NumPy name.
        shape: Dimensions; `None` for the batch, a name or an expression for what else is open.
    """

    name: str
    node: str
    dtype: str
    shape: tuple[int | str | None, ...]


@dataclass(frozen=True)
class Trace:
    """A traced model.

    Attributes:
        name: Name of the model.
        main: What is computed.
        functions: What nodes call, by name.
        inputs: Inputs in order.
        outputs: Public names of the results of `main`, in order.
        variables: Captured tensors by placeholder.
        layers: Keras layers in the order in which they ran.
        architecture: The Keras config, or an empty mapping.
        half: Whether it computes in half precision somewhere; here it does so in float32.
        weights: Names of each layer's variables in Keras' order, by path of the layer.
        constants: What the caller made of inputs, by name: the crate does not have these inputs.
    """

    name: str
    main: TraceFunction
    functions: Mapping[str, TraceFunction]
    inputs: tuple[TraceInput, ...]
    outputs: tuple[str, ...]
    variables: Mapping[str, Variable]
    layers: tuple[Layer, ...] = ()
    architecture: Mapping[str, Any] = field(default_factory=dict)
    half: bool = False
    weights: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    constants: Mapping[str, Array] = field(default_factory=dict)


Predict: TypeAlias = Callable[[Mapping[str, Array]], dict[str, Array]]


@dataclass(frozen=True)
class Carried:
    """A variable that became an input and an output, whose value a step carries to the next one.

    Attributes:
        given: The input: its value before a step.
        following: The output: its value after the step.
        first: What it holds before the first step.
    """

    given: str
    following: str
    first: Array


@dataclass(frozen=True)
class Loaded:
    """A model in both forms.

    Attributes:
        trace: As plain data.
        predict: Runs the model in TensorFlow: arrays by input name to arrays by output name.
        notes: What the converter decided, or does otherwise than TensorFlow.
        held: TensorFlow's variables by placeholder.
        states: What steps carry on.
        facts: What the file says of itself: names and texts.
    """

    trace: Trace
    predict: Predict
    notes: tuple[str, ...] = ()
    held: Mapping[str, Any] = field(default_factory=dict)
    states: tuple[Carried, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
