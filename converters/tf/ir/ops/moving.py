"""Ops that move elements and compute none."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from converters.tf.ir.graph import Op

__all__ = [
    "BroadcastTo",
    "Concat",
    "Gather",
    "OneHot",
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


@dataclass(frozen=True)
class Transpose(Op):
    """Reorders axes: (x); output axis `i` is input axis `perm[i]`."""

    perm: tuple[int, ...]


@dataclass(frozen=True)
class Reshape(Op):
    """The same elements with the shape of the output: (x)."""


@dataclass(frozen=True)
class Concat(Op):
    """Joins any number of tensors along an axis: (x, ...)."""

    axis: int


@dataclass(frozen=True)
class Slice(Op):
    """Takes elements `begin + i * stride` of each axis: (x).

    The shape of the output says how many. A stride may be negative. An axis of batch size is taken
    whole: begin 0, stride 1.
    """

    begin: tuple[int, ...]
    strides: tuple[int, ...]


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


@dataclass(frozen=True)
class OneHot(Op):
    """`on` at the index, `off` elsewhere, along a new axis: (indices); the depth is in the output.

    An index outside the depth gives `off` everywhere.
    """

    axis: int
    on: float = 1.0
    off: float = 0.0


@dataclass(frozen=True)
class Tile(Op):
    """Repeats the tensor along each axis: (x)."""

    multiples: tuple[int, ...]


@dataclass(frozen=True)
class BroadcastTo(Op):
    """Repeats the tensor to the shape of the output as NumPy's broadcasting does: (x)."""


@dataclass(frozen=True)
class Update(Op):
    """A copy of x with the slice `index` of its first axis replaced: (x, index i32 [], slice)."""


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
