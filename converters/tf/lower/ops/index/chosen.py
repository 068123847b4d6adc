"""Ops whose results are as many elements as a mask chooses, which each call counts."""

from __future__ import annotations

import math

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind, CompareKind, ReduceKind
from converters.tf.ir.build import static
from converters.tf.ir.expressions import is_open
from converters.tf.lower.graph import Context, Handler, Result, Unsupported
from converters.tf.lower.ops.control import examples

_OPEN_LENGTH = "how many elements there are depends on the values of all examples"
# Elements of which each is compared with all others.
_MOST_COMPARED = 1 << 12
_IN_TURN = "how many elements there are differs from turn to turn of a loop"


def places(ctx: Context, mask: ir.Value) -> ir.Value:
    """Returns the places of what is true in a mask of one axis; of one mask they are the same.

    Raises:
        Unsupported: The batch elements decide together how many there are, or the mask is in a
            loop.
    """
    low = ctx.low
    if isinstance(mask.shape[0], ir.Batch):
        raise Unsupported(_OPEN_LENGTH)
    if low.turns:
        raise Unsupported(_IN_TURN)
    mask = ctx.build.unshaped(mask)
    if mask not in low.chosen:
        flat = ctx.build.reshape(mask, (math.prod(static(d, "a mask") for d in mask.shape),))
        name = f"{ctx.node.name}_count"
        while name in low.counts:
            name = f"{name}_"
        low.counts.add(name)
        low.chosen[mask] = ctx.build.emit(ir.Chosen(name), [flat], None, ir.DType.I32)
    return low.chosen[mask]


def _where(ctx: Context) -> Result:
    """Returns the places of what is not zero, a number for each axis."""
    x = ctx.value(0)
    if x.data is not None:
        return ir.constant(np.argwhere(x.data).astype(np.int64))
    if x.rank == 1:
        known = examples.of_each(ctx.build, x)
        if known is not None and known.any():
            return examples.places(known)
    if any(isinstance(d, ir.Batch) for d in x.shape):
        raise Unsupported(_OPEN_LENGTH)
    b = ctx.build
    if x.dtype is not ir.DType.BOOL:
        x = b.compare(CompareKind.NE, x, b.scalar(0, x.dtype))
    sizes = [static(d, "a mask") for d in x.shape]
    found = places(ctx, b.reshape(x, (math.prod(sizes),)))
    (count,) = found.shape
    numbers = []
    for axis, size in enumerate(sizes):
        number = found
        if axis < len(sizes) - 1:
            stride = b.length(math.prod(sizes[axis + 1 :]), ir.DType.I32)
            number = b.binary(BinaryKind.FLOOR_DIV, number, stride)
        if axis > 0:
            number = b.binary(BinaryKind.FLOOR_MOD, number, b.length(size, ir.DType.I32))
        numbers.append(b.reshape(number, (count, 1)))
    return b.cast(b.concat(numbers, 1), ir.DType.I64)


def _unique(ctx: Context) -> Result:
    """Returns what is there once or more, in the order in which it comes first."""
    x = ctx.value(0)
    if ctx.node.op.endswith("V2") and ctx.array(1).size and ctx.integer(1) % x.rank:
        raise Unsupported("slices of which each comes once")
    if x.rank != 1:
        raise Unsupported("slices of which each comes once")
    size, b, kind = static(x.shape[0], "what comes once"), ctx.build, ir.DType.I32
    if not is_open(size) and size > _MOST_COMPARED:
        raise Unsupported(f"{size} elements that are compared with each other")
    numbers = b.numbers(size, kind)
    column, row = (size, 1), (1, size)
    same = b.compare(CompareKind.EQ, b.reshape(x, column), b.reshape(x, row))
    # A NaN is the same as no other.
    own = b.compare(CompareKind.EQ, b.reshape(numbers, column), b.reshape(numbers, row))
    same = b.binary(BinaryKind.LOGICAL_OR, same, own)
    others = b.select(same, b.reshape(numbers, row), b.length(size, kind))
    first = b.reduce(ReduceKind.MIN, others, [1])
    begins = b.compare(CompareKind.EQ, first, numbers)
    chosen = places(ctx, begins)
    before = b.emit(ir.Cumulative(0, exclusive=True), [b.cast(begins, kind)])
    wanted = ctx.dtype("out_idx") if ctx.attr("out_idx") else kind
    index = b.cast(b.gather(before, first, 0), wanted)
    found = b.gather(x, chosen, 0)
    if "Counts" not in ctx.node.op:
        return found, index
    count = b.reduce(ReduceKind.SUM, b.cast(same, kind), [1])
    return found, index, b.cast(b.gather(count, chosen, 0), wanted)


OPS: dict[str, Handler] = {
    **dict.fromkeys(("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2"), _unique),
    "Where": _where,
}
