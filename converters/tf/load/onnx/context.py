"""One ONNX node with its operands, for the function that says it in TensorFlow's ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array, Batch, Dim, DType, Op, Shape
from converters.tf.ir.expressions import is_open
from converters.tf.ir.symbolic import Objects, Symbol, complete, objects, of_shape, product
from converters.tf.load.onnx.file import Graph, Node
from converters.tf.load.onnx.values import (
    Known,
    Numbered,
    Order,
    Tensor,
    Value,
    is_variable,
    last,
    shape_of,
    stated,
    wrapped,
)
from converters.tf.load.saved_model.replay import Refused

_COMPUTED = "is computed from the model's inputs"
# Elements of the largest constant that a node without operands may ask for.
_MOST_ELEMENTS = 1 << 28
# Attributes that are integers of 0 and 1 in every operator that has them.
_TRUTH_VALUES = frozenset(
    {
        "align_corners",
        "allowzero",
        "antialias",
        "ceil_mode",
        "count_include_pad",
        "detect_negative",
        "detect_positive",
        "exclude_outside",
        "exclusive",
        "fmod",
        "input_forget",
        "interleaved",
        "inverse",
        "is_causal",
        "keepdims",
        "largest",
        "layout",
        "linear_before_reset",
        "noop_with_empty_axes",
        "onesided",
        "periodic",
        "reverse",
        "saturate",
        "select_last_index",
        "sorted",
        "storage_order",
        "training_mode",
        "transA",
        "transB",
        "upper",
    }
)


class Session(Protocol):
    """What a replay offers its nodes."""

    @property
    def whole(self) -> bool:
        """Returns whether levels are computed in integers here."""

    def tensor(self, known: Known) -> Any:
        """Returns a constant as a tensor of TensorFlow."""

    def symbol(self, symbol: Symbol) -> Any:
        """Returns dimensions as a tensor of TensorFlow."""

    def shape(self, tensor: Any) -> Shape | None:
        """Returns the shape of a tensor of TensorFlow, where TensorFlow can't say it."""

    def state(self, tensor: Any, shape: Shape) -> None:
        """Takes the shape of a tensor of TensorFlow."""

    def typed(self, op: Op, operands: Sequence[Any], dtype: DType) -> Any:
        """Returns what an op of the typed graph gives, which TensorFlow has no counterpart of."""

    def typed_all(self, op: Op, operands: Sequence[Any], dtypes: Sequence[DType]) -> list[Any]:
        """As `typed`, of an op with a result for each of the element types."""

    def body(self, graph: Graph, args: Sequence[Value]) -> list[Value]:
        """Replays a graph inside of a node; it sees what the node's graph has."""

    def weight(self, role: str, data: Array) -> Any:
        """Returns a weight of the node's layer as a tensor of TensorFlow."""


Result: TypeAlias = Any
Handler: TypeAlias = Callable[["Context"], Result]


@dataclass
class Context:
    """A node with its operands.

    Attributes:
        session: The replay.
        node: The node.
        args: Operands; `None` for one that is left out.
    """

    session: Session
    node: Node
    args: tuple[Value | None, ...]

    def has(self, index: int) -> bool:
        """Returns whether an operand is given."""
        return index < len(self.args) and self.args[index] is not None

    def value(self, index: int) -> Value:
        """Returns an operand.

        Raises:
            Refused: It is left out.
        """
        value = self.args[index] if index < len(self.args) else None
        if value is None:
            raise Refused(f"operand {index} is missing")
        return value

    def attr(self, name: str, default: Any = None) -> Any:
        """Returns an attribute.

        Raises:
            Refused: It is a truth value that is not 0 or 1, which runtimes take for either.
        """
        value = self.node.attrs.get(name, default)
        if name in _TRUTH_VALUES and value not in (0, 1, default):
            raise Refused(f"{name} is {value}, expected 0 or 1")
        return value

    def text(self, name: str, default: str, known: Sequence[str]) -> str:
        """Returns an attribute that is one of some words.

        Raises:
            Refused: It is another one.
        """
        value = str(self.attr(name, default))
        if value not in known:
            raise Refused(f"{name}={value!r}; supported: {', '.join(known)}")
        return value

    def shape(self, index: int) -> Shape:
        """Returns the dimensions of an operand."""
        return shape_of(self.value(index))

    def rank(self, index: int) -> int:
        """Returns the number of axes of an operand."""
        return len(self.shape(index))

    def sizes(self, index: int, what: str = "a size") -> tuple[int, ...]:
        """Returns the dimensions of an operand but the first, which may be open.

        Raises:
            Refused: One depends on the batch.
        """
        return tuple(whole(d, what) for d in self.shape(index)[1:])

    def axis(self, rank: int, name: str = "axis", default: int = 0) -> int:
        """Returns an attribute as an axis that is not negative."""
        return axis_of(int(self.attr(name, default)), rank)

    def known(self, index: int) -> Known:
        """Returns an operand that must be a constant.

        Raises:
            Refused: It is computed from the model's inputs.
        """
        value = self.value(index)
        if isinstance(value, Symbol):
            raise Refused(f"operand {index} depends on {_what_is_open(value)}")
        if not isinstance(value, Known):
            raise Refused(f"operand {index} {_COMPUTED}")
        return value

    def array(self, index: int) -> Array:
        """Returns the elements of an operand that must be a constant."""
        return self.known(index).data

    def ints(self, index: int) -> list[int]:
        """Returns an operand that must be known as integers."""
        return [int(i) for i in np.ravel(self.array(index))]

    def number(self, index: int) -> Any:
        """Returns an operand of one integer: the number, or an open size as a tensor."""
        if isinstance(self.value(index), Symbol):
            return tf.reshape(tf.cast(self.form(index), tf.int32), [])
        return self.ints(index)[0]

    def dims(self, index: int) -> Objects:
        """Returns an operand whose elements are dimensions."""
        value = self.value(index)
        return value.dims if isinstance(value, Symbol) else objects(self.array(index))

    def axes(self, index: int, rank: int) -> list[int] | None:
        """Returns axes that are an attribute in old operators and an operand in new ones."""
        given = self.attr("axes")
        if given is None and self.has(index):
            given = self.ints(index)
        return None if given is None else sorted({axis_of(int(a), rank) for a in given})

    def order(self, index: int) -> Order:
        """Returns the order that an operand is best read in."""
        value = self.value(index)
        return value.home if isinstance(value, Tensor) else stated(self.rank(index))

    def form(self, index: int, order: Order | None = None) -> Any:
        """Returns an operand as a tensor of TensorFlow, in an order of axes."""
        return self.formed(self.value(index), order)

    def formed(self, value: Value, order: Order | None = None) -> Any:
        """Returns a value as a tensor of TensorFlow, in an order of axes.

        A value of fewer axes than the order has gets axes of size 1 before its own.
        """
        rank = len(shape_of(value))
        if order is not None and len(order) == 0 and rank == 0:
            order = None
        if isinstance(value, Known):
            return self.session.tensor(value if order is None else value.arranged(order))
        if isinstance(value, Symbol):
            tensor = self.session.symbol(value)
            if order is not None and len(order) > rank > 0:
                raise Refused("dimensions as a tensor of more axes")
            return tensor
        if isinstance(value, Numbered):
            raise Refused("the numbers of batch elements")
        if order is None or len(order) == rank:
            return value.form(order)
        if rank == 0:
            return value.form()
        lead = len(order) - rank
        wide = self.reshaped(value.form(), (1,) * lead + value.shape)
        return wide if order == stated(len(order)) else tf.transpose(wide, order)

    def last(self, index: int) -> Any:
        """Returns an operand with its channels last."""
        return self.form(index, last(self.rank(index)))

    def weight(
        self, index: int, key: Any = None, change: Callable[[Array], Array] | None = None
    ) -> Any:
        """Returns a constant operand as a tensor of TensorFlow, changed."""
        known = self.known(index)
        return self.session.tensor(known if change is None else known.view(key, change))

    @property
    def batch(self) -> Dim | None:
        """Returns the dimension of the operands that depends on the batch."""
        for value in self.args:
            if isinstance(value, Tensor):
                for dim in value.shape:
                    if isinstance(dim, Batch):
                        return dim
        return None

    def result(
        self, tensor: Any, order: Order | None = None, shape: Sequence[Dim] | None = None
    ) -> Tensor:
        """Returns a result whose axes are in an order."""
        if shape is None and (found := self.session.shape(tensor)) is not None:
            places = stated(len(found)) if order is None else order
            shape = tuple(found[places.index(axis)] for axis in range(len(found)))
        made = wrapped(tensor, order, self.batch, None if shape is None else tuple(shape))
        self.session.state(tensor, tuple(made.shape[axis] for axis in made.home))
        return made

    def inner(self, *args: Value | None, outputs: int | None = None, **attrs: Any) -> Context:
        """Returns the same node with other operands, fewer results and more attributes."""
        names = self.node.outputs[:outputs]
        node = replace(self.node, attrs={**self.node.attrs, **attrs}, outputs=names)
        return Context(self.session, node, args)

    def tensor(self, result: Result) -> Tensor:
        """Returns a handler's only result."""
        return result if isinstance(result, Tensor) else self.result(result)

    def result_last(self, tensor: Any) -> Tensor:
        """Returns a result with its channels last."""
        return self.result(tensor, last(tensor.shape.rank))

    def reshape(self, index: int, target: Sequence[Dim]) -> Tensor:
        """Returns an operand in another shape; one dimension may be -1.

        Raises:
            Refused: The dimensions can't be known before the batch is.
        """
        try:
            shape = complete(tuple(target), product(self.shape(index)))
        except ValueError as err:
            raise Refused(f"a reshape that does not fit: {err}") from err
        return self.result(self.reshaped(self.form(index), shape), None, shape)

    def reshaped(self, tensor: Any, shape: Sequence[Dim]) -> Any:
        """Returns a tensor of TensorFlow in a shape."""
        if sum(map(is_variable, shape)) < 2:
            return reshaped(tensor, shape)
        return tf.reshape(tensor, self.session.symbol(of_shape(tuple(shape))))

    def elementwise(self, function: Callable[..., Any], *indices: int) -> Tensor:
        """Returns what a function gives for operands that broadcast, in the order they have."""
        values = [self.value(i) for i in (indices or range(len(self.args)))]
        return self.combined(function, values)

    def combined(self, function: Callable[..., Any], values: Sequence[Value]) -> Tensor:
        """Returns what a function gives for values that broadcast, in the order they have."""
        rank = max(len(shape_of(v)) for v in values)
        order = common_order(values, rank)
        if rank == 0 or order == stated(rank):
            tensor = function(*(self.formed(v) for v in values))
            return self.result(tensor)
        return self.result(function(*(self.formed(v, order) for v in values)), order)


def common_order(values: Sequence[Value], rank: int) -> Order:
    """Returns the order that most tensors of a rank are in; not ONNX's if there is a choice."""
    full = [v for v in values if isinstance(v, Tensor) and v.rank == rank]
    orders = [order for v in full for order in v.forms]
    best = stated(rank)
    for order in orders:
        more = orders.count(order) - orders.count(best)
        if more > 0 or (more == 0 and best == stated(rank)):
            best = order
    return best


def reshaped(tensor: Any, shape: Sequence[Dim]) -> Any:
    """Returns a tensor of TensorFlow in a shape of which one dimension may be open.

    Raises:
        Refused: More than one does.
    """
    if sum(map(is_variable, shape)) > 1:
        raise Refused("two axes of its result depend on the batch size")
    return tf.reshape(tensor, [-1 if is_variable(d) else d for d in shape])


def whole(dim: Dim, what: str) -> int:
    """Returns a dimension that must not depend on the batch, and may be open.

    Raises:
        Refused: It does.
    """
    if isinstance(dim, Batch):
        raise Refused(f"{what} depends on the batch size")
    return dim


def fixed(dim: Dim, what: str) -> int:
    """Returns a dimension that must be a number.

    Raises:
        Refused: It depends on the batch or on an open dimension.
    """
    size = whole(dim, what)
    if is_open(size):
        raise Refused(f"{what} is {size!s}, and must be known")
    return int(size)


def is_computed(reason: str) -> bool:
    """Returns whether an operator is refused because an operand is not a constant."""
    return reason.endswith(_COMPUTED)


def _what_is_open(symbol: Symbol) -> str:
    """Returns what decides the dimensions of a tensor of them."""
    batch = any(isinstance(d, Batch) for d in symbol.dims.flat)
    return "the batch size" if batch else "an open dimension"


def axis_of(axis: int, rank: int) -> int:
    """Returns an axis that is not negative.

    Raises:
        Refused: There is no such axis.
    """
    if not -max(rank, 1) <= axis < max(rank, 1):
        raise Refused(f"axis {axis} of a tensor with {rank} axes")
    return axis % max(rank, 1)


def bounded(dims: Sequence[Dim]) -> list[Dim]:
    """Returns dimensions of which a tensor can be made.

    Raises:
        Refused: One is negative, or there would be too many elements.
    """
    count = 1
    for dim in dims:
        size = dim.scale if isinstance(dim, Batch) else dim
        if is_open(size):
            continue
        size = int(size)
        if size < 0:
            raise Refused(f"a dimension of {size}")
        count *= size
    if count > _MOST_ELEMENTS:
        raise Refused(f"a tensor of {count} elements")
    return list(dims)
