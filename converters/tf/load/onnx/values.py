"""What names of an ONNX graph stand for: tensors in any order of axes, constants, dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array, Batch, Dim, Shape
from converters.tf.ir.expressions import is_open
from converters.tf.ir.symbolic import Symbol
from converters.tf.load.saved_model.replay import Refused

# Which axis of the tensor, as ONNX has it, each axis of a form is.
Order: TypeAlias = tuple[int, ...]


def stated(rank: int) -> Order:
    """Returns the order that ONNX has."""
    return tuple(range(rank))


def last(rank: int) -> Order:
    """Returns the order with the channels, ONNX's axis 1, last."""
    return (0, *range(2, rank), 1) if rank > 2 else stated(rank)


@dataclass(eq=False)
class Tensor:
    """A tensor that the model computes, in one or more orders of its axes.

    Attributes:
        shape: Dimensions as ONNX has them.
        forms: TensorFlow's tensors by the order of their axes.
        unrolled: What a matrix was before its axes but the first became one; for dense layers.
        levels: The type of the quantized numbers that it holds, which are float32 here; else
            nothing.
        whole: The same numbers as int8, less 128 if their type is uint8, or as int32, if somebody
            made them.
        ends: Of a scale or level of 0 that is one of each example: TensorFlow's tensor of both.
        sizes: The dimensions that it holds, if it holds them as floats.
    """

    shape: Shape
    forms: dict[Order, Any]
    unrolled: Tensor | None = None
    levels: str = ""
    whole: Tensor | None = None
    ends: Any = None
    sizes: Symbol | None = None

    @property
    def rank(self) -> int:
        """Returns the number of axes."""
        return len(self.shape)

    @property
    def dtype(self) -> str:
        """Returns the element type by NumPy's name."""
        return str(next(iter(self.forms.values())).dtype.name)

    def form(self, order: Order | None = None) -> Any:
        """Returns the tensor in an order of axes, by default ONNX's.

        A copy is kept only in the graph that has the tensor: one that a branch made is of no use
        outside of it.
        """
        wanted = stated(self.rank) if order is None else order
        found = self.forms.get(wanted)
        if found is None:
            have, tensor = next(iter(self.forms.items()))
            found = tf.transpose(tensor, [have.index(axis) for axis in wanted])
            if tf.executing_eagerly() or found.graph is tensor.graph:
                self.forms[wanted] = found
        return found

    def transposed(self, perm: Sequence[int]) -> Tensor:
        """Returns the tensor with other axes; nothing is moved before somebody reads it."""
        place = {axis: i for i, axis in enumerate(perm)}
        forms = {tuple(place[a] for a in order): t for order, t in self.forms.items()}
        return Tensor(tuple(self.shape[p] for p in perm), forms)

    @property
    def home(self) -> Order:
        """Returns the order that it was computed in."""
        return next(iter(self.forms))


@dataclass(eq=False)
class Known:
    """A constant.

    Attributes:
        data: Its elements.
        name: Its name in the file; empty for what was computed from several.
        role: What it is for the layer that reads it first.
        tensor: TensorFlow's tensor, once there is one.
    """

    data: Array
    name: str = ""
    role: str = ""
    tensor: Any = None
    _views: dict[Any, Known] = field(default_factory=dict)

    @property
    def shape(self) -> Shape:
        """Returns the dimensions."""
        return tuple(self.data.shape)

    @property
    def rank(self) -> int:
        """Returns the number of axes."""
        return self.data.ndim

    @property
    def dtype(self) -> str:
        """Returns the element type by NumPy's name."""
        return str(self.data.dtype.name)

    def view(self, key: Any, change: Callable[[Array], Array]) -> Known:
        """Returns it changed, the same object for the same key every time."""
        found = self._views.get(key)
        if found is None:
            changed = np.asarray(change(self.data), order="C")
            found = self._views[key] = Known(changed, self.name, self.role)
        return found

    def arranged(self, order: Order) -> Known:
        """Returns it in an order of axes, with axes of size 1 before what it has."""
        if self.data.size == 1 and self.rank < len(order):
            return self.view("scalar", lambda a: a.reshape(()))
        if order == stated(self.rank):
            return self
        lead = len(order) - self.rank
        return self.view(order, lambda a: a.reshape((1,) * lead + a.shape).transpose(order))


@dataclass(eq=False)
class Numbered:
    """Integers that depend on the number of the example: `offset + scale * number`.

    Attributes:
        scale: An array with one element along the batch; `None` if only the shape is known.
        offset: An array of the same shape.
        axis: The axis that is the batch.
    """

    scale: Array | None
    offset: Array
    axis: int

    @property
    def shape(self) -> Shape:
        """Returns the dimensions."""
        dims = self.offset.shape
        return (*dims[: self.axis], Batch(), *dims[self.axis + 1 :])

    @property
    def dtype(self) -> str:
        """Returns the element type by NumPy's name."""
        return str(self.offset.dtype.name)


Value: TypeAlias = Tensor | Known | Symbol | Numbered


def shape_of(value: Value) -> Shape:
    """Returns the dimensions of a value."""
    return tuple(value.dims.shape) if isinstance(value, Symbol) else value.shape


def is_variable(dim: Dim) -> bool:
    """Returns whether calls differ in a dimension."""
    return isinstance(dim, Batch) or is_open(dim)


def wrapped(tensor: Any, order: Order | None, batch: Dim | None, shape: Shape | None) -> Tensor:
    """Returns a tensor of TensorFlow with its shape.

    Args:
        tensor: The tensor.
        order: Its axes; by default ONNX's.
        batch: What an open dimension is.
        shape: Its dimensions in ONNX's order, if they are known better than TensorFlow does.

    Raises:
        Refused: A dimension depends on more than the batch.
    """
    if tensor.shape.rank is None:
        raise Refused("the rank of its result depends on what the model is given")
    order = stated(tensor.shape.rank) if order is None else order
    dims = tensor.shape.as_list()
    if shape is None:
        if sum(d is None for d in dims) > 1 or (None in dims and batch is None):
            text = ", ".join("?" if d is None else str(d) for d in dims)
            raise Refused(f"its result has the shape [{text}], of which too much is open")
        full: list[Dim] = [0] * len(dims)
        for place, dim in zip(order, dims, strict=True):
            full[place] = dim if dim is not None else batch if batch is not None else Batch()
        shape = tuple(full)
    known = [None if is_variable(shape[a]) else shape[a] for a in order]
    if known != dims:
        tensor.set_shape(known)
    return Tensor(shape, {order: tensor})
