"""Ops that move elements; of them, only `Scatter` computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from converters.tf.ir.agreeing import differ
from converters.tf.ir.expressions import unknown
from converters.tf.ir.graph import Node, Op
from converters.tf.ir.operands import Operands, wide
from converters.tf.ir.sizes import ShapeError
from converters.tf.ir.symbolic import multiply
from converters.tf.ir.types import INTEGERS, NUMBERS, unserved
from converters.tf.ir.values import Array, Batch, Dim, Shape, shape_text

__all__ = [
    "BroadcastTo",
    "Chosen",
    "Concat",
    "Gather",
    "OneHot",
    "OutsideError",
    "Pad",
    "PadMode",
    "Reshape",
    "Scatter",
    "ScatterKind",
    "Slice",
    "Tile",
    "Transpose",
    "Update",
]


class OutsideError(ValueError):
    """An index is not an element of its axis; a generated crate gives `Error::Layer`."""

    def __init__(self, size: object) -> None:
        """Says how many elements there are: a number, or one per axis."""
        super().__init__(f"an index is not below {size}")
        self.size = size


@dataclass(frozen=True)
class Transpose(Op):
    """Reorders axes: (x); output axis `i` is input axis `perm[i]`."""

    perm: tuple[int, ...]

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the reordered axes."""
        return (tuple(x[0][p] for p in self.perm),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the elements in their new order."""
        return [np.transpose(x[0], self.perm)]


@dataclass(frozen=True)
class Reshape(Op):
    """The same elements with the shape of the output: (x)."""

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the elements with the new shape."""
        return [x[0].reshape(shape)]


@dataclass(frozen=True)
class Concat(Op):
    """Joins any number of tensors along an axis: (x, ...)."""

    axis: int

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of all parts together."""
        axis = self.axis
        if len({p[:axis] + p[axis + 1 :] for p in x}) > 1:
            for place, part in ((i, p) for p in x[1:] for i in range(len(p)) if i != axis):
                differ(x[0][place], part[place])
            raise ShapeError(f"parts {', '.join(shape_text(p) for p in x)} differ")
        sizes = [d for d in (p[axis] for p in x) if not isinstance(d, Batch)]
        if len(sizes) < len(x):
            raise ShapeError("tensors are joined along the batch")
        return ((*x[0][:axis], sum(sizes), *x[0][axis + 1 :]),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the parts one after the other."""
        return [np.concatenate(x.every(), axis=self.axis)]


@dataclass(frozen=True)
class Slice(Op):
    """Takes elements `begin + i * stride` of each axis: (x).

    The shape of the output says how many. A stride may be negative. An axis of batch size is taken
    whole: begin 0, stride 1.
    """

    begin: tuple[int, ...]
    strides: tuple[int, ...]

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the elements that are taken."""
        result = x[0]
        moves = zip(self.begin, self.strides, shape, strict=True)
        for axis, (begin, stride, count) in enumerate(moves):
            result = np.take(result, begin + stride * np.arange(count), axis=axis)
        return [result]


class PadMode(StrEnum):
    """What the border is filled with."""

    CONSTANT = "constant"
    REFLECT = "reflect"  # the edge once
    SYMMETRIC = "symmetric"  # the edge twice


@dataclass(frozen=True)
class Pad(Op):
    """Widens each axis before and after: (x)."""

    padding: tuple[tuple[int, int], ...]
    mode: PadMode = PadMode.CONSTANT
    value: float = 0.0

    def misfit(self, x: Sequence[Shape]) -> str:
        """Returns where an axis is shorter than what is mirrored."""
        if self.mode is PadMode.CONSTANT:
            return ""
        for dim, ends in zip(x[0], self.padding, strict=True):
            if isinstance(dim, int) and max(ends) > dim - (self.mode is PadMode.REFLECT):
                return f"{max(ends)} mirrored elements of an axis of {dim}"
        return ""

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the wider axes."""
        if what := self.misfit(x):
            raise ShapeError(what)
        wider: list[Dim] = []
        for dim, (before, after) in zip(x[0], self.padding, strict=True):
            if not isinstance(dim, Batch):
                wider.append(dim + before + after)
            elif before or after:
                raise ShapeError("the batch is padded")
            else:
                wider.append(dim)
        return (tuple(wider),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the elements with their border."""
        if self.mode is PadMode.CONSTANT:
            return [np.pad(x[0], self.padding, constant_values=self.value)]
        mode: Any = _BORDERS[self.mode]
        return [np.pad(x[0], self.padding, mode=mode)]


@dataclass(frozen=True)
class Gather(Op):
    """Takes slices along an axis: (params, indices i32 or i64).

    The output is `params[:axis] + indices[batch_dims:] + params[axis + 1:]`, the first
    `batch_dims` axes of both running together. An index outside the axis is an error of the call;
    with `wrap`, a negative one counts from the end of the axis.
    """

    axis: int
    batch_dims: int = 0
    wrap: bool = False

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of the slices at the places of the indices."""
        params, indices = x[0], x[1]
        rest = params[self.axis + 1 :]
        return ((*params[: self.axis], *indices[self.batch_dims :], *rest),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the slices."""
        params, indices = x[0], x[1]
        lead, axis = self.batch_dims, self.axis
        groups = int(np.prod(params.shape[:lead]))
        flat = params.reshape(groups, *params.shape[lead:])
        places = indices.reshape(groups, *indices.shape[lead:])
        if self.wrap:
            places = np.where(places < 0, places + params.shape[axis], places)
        if places.size and (places.min() < 0 or places.max() >= params.shape[axis]):
            raise OutsideError(params.shape[axis])
        taken = [np.take(p, i, axis=axis - lead) for p, i in zip(flat, places, strict=True)]
        return [np.asarray(taken, params.dtype).reshape(shape)]

    def refused(self, node: Node) -> list[str]:
        """Returns whether the indices are served; `passes/narrow.py` takes `wrap` apart."""
        wraps = ["indices from the end of the batch"] if self.wrap else []
        return [*wraps, *unserved("indices", node.given(1).dtype, INTEGERS)]


@dataclass(frozen=True)
class Chosen(Op):
    """The places of what is true, in their order: (mask bool [n]); the result is i32 [name].

    `name` is a number that each call counts, at most n. The op is in no body of a loop.
    """

    name: str

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns as many places as a call counts."""
        (most,) = x[0]
        assert not isinstance(most, Batch)
        return ((unknown(self.name, most),),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the places."""
        return [np.flatnonzero(x[0]).astype(np.int32)]


@dataclass(frozen=True)
class OneHot(Op):
    """`on` at the index, `off` elsewhere, along a new axis: (indices); the depth is in the output.

    An index outside the depth gives `off` everywhere.
    """

    axis: int
    on: float = 1.0
    off: float = 0.0

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns `on` at the places of the indices."""
        hits = np.expand_dims(x[0], self.axis)
        places = np.arange(shape[self.axis]).reshape(
            [-1 if i == self.axis else 1 for i in range(len(shape))]
        )
        return [np.where(hits == places, self.on, self.off)]

    def refused(self, node: Node) -> list[str]:
        """Returns whether the type of the indices is served."""
        return unserved("indices", node.input.dtype, INTEGERS)


@dataclass(frozen=True)
class Tile(Op):
    """Repeats the tensor along each axis: (x)."""

    multiples: tuple[int, ...]

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the repeated axes."""
        return (tuple(multiply(d, n) for d, n in zip(x[0], self.multiples, strict=True)),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the repeated elements."""
        return [np.tile(x[0], self.multiples)]


@dataclass(frozen=True)
class BroadcastTo(Op):
    """Repeats the tensor to the shape of the output as NumPy's broadcasting does: (x)."""

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the repeated elements."""
        return [np.broadcast_to(x[0], shape)]


@dataclass(frozen=True)
class Update(Op):
    """A copy of x with the slice `index` of its first axis replaced: (x, index i32 [], slice)."""

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of x."""
        return (x[0],)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the copy."""
        result = x[0].copy()
        result[int(x[1])] = x[2]
        return [result]


class ScatterKind(StrEnum):
    """How a slice and what is written there are put together."""

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    MIN = "min"
    MAX = "max"
    UPDATE = "update"


@dataclass(frozen=True)
class Scatter(Op):
    """A copy of x with slices changed in order: (x, indices i32 or i64, updates).

    x is `lead + sizes + rest`, the indices `lead + count + [len(sizes)]`, the updates
    `lead + count + rest`; `lead` has `batch_dims` axes, which run together. A number outside of
    its axis is an error of the call; with `skip`, a slice whose index has a negative one is left
    out.
    """

    kind: ScatterKind
    batch_dims: int = 0
    skip: bool = False

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of x."""
        return (x[0],)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the copy, changed an index after the other."""
        data, indices, updates = x[0], x[1], x[2]
        lead, depth = self.batch_dims, indices.shape[-1]
        groups = int(np.prod(shape[:lead]))
        limits, rest = shape[lead : lead + depth], shape[lead + depth :]
        result = wide(data).reshape(groups, *limits, *rest).copy()
        places = indices.reshape(groups, -1, depth)
        parts = updates.reshape(*places.shape[:2], *rest)
        for group in range(groups):
            kept = np.all(places[group] >= 0, -1) if self.skip else np.full(places.shape[1], True)
            index, part = places[group][kept], parts[group][kept]
            if index.size and (index.min() < 0 or np.any(index >= limits)):
                raise OutsideError(limits)
            where = (group, *index.T)
            if self.kind is ScatterKind.UPDATE:
                for place, new in zip(index, part, strict=True):
                    result[(group, *place)] = new
            else:
                # A maximum or minimum stays where what is written is NaN.
                if self.kind in _NEUTRAL and part.dtype.kind == "f":
                    part = np.where(np.isnan(part), _NEUTRAL[self.kind], part)
                _COMBINE[self.kind].at(result, where, part)
        return [np.asarray(result.reshape(shape))]

    def refused(self, node: Node) -> list[str]:
        """Returns whether the types of the elements and of the indices are served."""
        reasons = unserved("scatter", node.input.dtype, NUMBERS)
        return [*reasons, *unserved("indices", node.given(1).dtype, INTEGERS)]


_BORDERS: Mapping[PadMode, str] = {
    PadMode.REFLECT: "reflect",
    PadMode.SYMMETRIC: "symmetric",
}
_NEUTRAL: Mapping[ScatterKind, float] = {ScatterKind.MIN: np.inf, ScatterKind.MAX: -np.inf}
_COMBINE: Mapping[ScatterKind, Any] = {
    ScatterKind.ADD: np.add,
    ScatterKind.SUB: np.subtract,
    ScatterKind.MUL: np.multiply,
    ScatterKind.MIN: np.minimum,
    ScatterKind.MAX: np.maximum,
}
