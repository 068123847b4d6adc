"""What Keras computes with the number of an example or with all examples, without mixing them.

A flattened batch is read at `example * size + place`. The length of a histogram is found as the
largest number of the batch, held within limits that leave only one. Both vanish in what uses
them; anything else that reads them is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind, CompareKind
from converters.tf.ir.build import Builder, broadcast, static
from converters.tf.ir.interpret import evaluate
from converters.tf.ir.symbolic import Symbol, divide, multiply, product
from converters.tf.lower.graph import Context, Result, Tensor, Unsupported
from converters.tf.lower.tensors import Bounds, Numbered, Rows

# Ops that give every example the same if their operands do.
_REPEATED = (ir.Binary, ir.BroadcastTo, ir.Cast, ir.Compare, ir.Reshape)
_AS_DATA = "the number of an example in the batch is used as data"


def extreme(x: ir.Value) -> Bounds:
    """Returns the largest or smallest integer of a batch: any number."""
    return Bounds(-math.inf, math.inf, x.dtype)


def of_each(build: Builder, x: ir.Value) -> ir.Array | None:
    """Returns the elements of an example if all have the same, which no input decides."""
    if not x.shape or not isinstance(x.shape[0], ir.Batch):
        return None
    makers = {value: node for node in build.nodes for value in node.outputs}
    found = [_known(makers, x, batch) for batch in (1, 2, 3)]
    first = found[0]
    if first is None:
        return None
    for batch, several in enumerate(found, 1):
        times = (batch, *(1,) * (x.rank - 1))
        if several is None or not np.array_equal(several, np.tile(first, times)):
            return None
    return first


def _known(makers: Mapping[ir.Value, ir.Node], x: ir.Value, batch: int) -> ir.Array | None:
    """Returns a tensor for a batch size if constants alone decide about it."""
    if x.data is not None:
        return x.data
    node = makers.get(x)
    if node is None or not isinstance(node.op, _REPEATED):
        return None
    operands = [_known(makers, value, batch) for value in node.present]
    return None if any(o is None for o in operands) else evaluate(node, operands, batch)[0]


def places(mask: ir.Array) -> Rows:
    """Returns where a mask holds that every example has in a flattened batch."""
    offset = np.flatnonzero(mask)[None]
    return Rows(mask.size, ir.constant(offset), (ir.Batch(offset.size), 1))


def is_open(arg: Tensor) -> bool:
    """Returns whether an operand is for the functions of this module."""
    return isinstance(arg, Bounds | Rows)


def binary(ctx: Context, kind: BinaryKind) -> Result:
    """Combines two operands of which one depends on the batch."""
    if any(isinstance(a, Rows) for a in ctx.args):
        return _places(ctx, kind)
    a, b = (_bounds(ctx, i) for i in range(2))
    if kind is BinaryKind.ADD:
        result = (a.least + b.least, a.most + b.most)
    elif kind is BinaryKind.MAX:
        result = (max(a.least, b.least), max(a.most, b.most))
    elif kind is BinaryKind.MIN:
        result = (min(a.least, b.least), min(a.most, b.most))
    elif kind is BinaryKind.MUL and 1 in (a.known(), b.known()):
        result = (b.least, b.most) if a.known() == 1 else (a.least, a.most)
    else:
        raise Unsupported("the batch is reduced")
    found = Bounds(*result, a.dtype)
    known = found.known()
    return found if known is None else ir.constant(np.asarray(known, a.dtype.numpy))


def _bounds(ctx: Context, index: int) -> Bounds:
    arg = ctx.args[index]
    if isinstance(arg, Bounds):
        return arg
    value = ctx.value(index)
    number = ctx.integer(index)
    return Bounds(number, number, value.dtype)


def _places(ctx: Context, kind: BinaryKind) -> Result:
    first, second = ctx.args
    rows, other, index = (first, second, 1) if isinstance(first, Rows) else (second, first, 0)
    assert isinstance(rows, Rows)
    if isinstance(other, Symbol) and kind is BinaryKind.ADD and other.dims.ndim == 0:
        return Rows(0, rows.offset, rows.shape)  # Past the end: for indices below zero.
    value = ctx.value(index)
    if kind is BinaryKind.MUL and _are_ones(ctx.build, value):
        return Rows(rows.scale, rows.offset, broadcast(rows.shape, value.shape))
    if kind is BinaryKind.ADD:
        offset = ctx.build.binary(kind, rows.offset, value)
        return Rows(rows.scale, offset, broadcast(rows.shape, value.shape))
    if kind is BinaryKind.MUL and value.data is not None and np.unique(value.data).size == 1:
        scale = rows.scale * int(value.data.flat[0])
        factor = ctx.build.scalar(int(value.data.flat[0]), value.dtype)
        offset = ctx.build.binary(kind, rows.offset, factor)
        return Rows(scale, offset, broadcast(rows.shape, value.shape))
    raise Unsupported(_AS_DATA)


def _are_ones(build: Builder, value: ir.Value) -> bool:
    """Returns whether a tensor is made of ones, which are repeated for every example."""
    made = next((n for n in reversed(build.nodes) if value in n.outputs), None)
    source = made.input if made is not None and isinstance(made.op, ir.BroadcastTo) else value
    return source.data is not None and bool((source.data == 1).all())


def numbers(limit: ir.Batch, dtype: ir.DType) -> Rows:
    """Returns the numbers of all examples."""
    return Rows(1, ir.constant(np.zeros((1,), dtype.numpy)), (limit,))


def _is_single(offset: ir.Value) -> bool:
    return offset.rank > 0 and all(dim == 1 for dim in offset.shape)


def widened(build: Builder, rows: Rows, shape: ir.Shape) -> Rows:
    """Returns places with new axes of one element."""
    rest = [d for d in shape if d != 1]
    if rest != [d for d in rows.shape if d != 1] or not _is_single(rows.offset):
        raise Unsupported(_AS_DATA)
    return Rows(rows.scale, build.reshape(rows.offset, (1,) * len(shape)), shape)


def reshaped(build: Builder, rows: Rows, shape: ir.Shape) -> Rows:
    """Returns places with axes of one element more or fewer, or all in one axis."""
    flat = rows.shape[:1]
    if (*flat, 1) == rows.shape and shape == flat:
        return Rows(rows.scale, rows.offset, shape)
    if len(shape) == 1 and len(rows.shape) > 1 and product(rows.shape) == shape[0]:
        sizes = [static(d, "the number of places") for d in rows.shape[1:]]
        offset = build.broadcast_to(rows.offset, (rows.offset.shape[0], *sizes))
        return Rows(rows.scale, offset, shape)
    if rows.offset.rank == 1 or _is_single(rows.offset):
        return widened(build, rows, shape)
    kept = [d for d in rows.shape if d != 1]
    if rows.offset.shape != rows.shape or kept != [d for d in shape if d != 1]:
        raise Unsupported(_AS_DATA)
    return Rows(rows.scale, build.reshape(rows.offset, shape), shape)


def packed(ctx: Context, rows: Rows) -> Result:
    """Returns places along a new axis, which has nothing else or other numbers of an index."""
    axis = ctx.attr("axis", 0)
    if len(ctx.args) > 1:
        return numbered(ctx, ctx.args, axis, new=True)
    axis %= len(rows.shape) + 1
    return reshaped(ctx.build, rows, (*rows.shape[:axis], 1, *rows.shape[axis:]))


def transposed(build: Builder, rows: Rows, perm: Sequence[int]) -> Rows:
    """Returns places whose axes of one element moved."""
    return reshaped(build, rows, tuple(rows.shape[axis] for axis in perm))


def broadcast_to(rows: Rows, shape: ir.Shape) -> Rows:
    """Returns places that are repeated for every example."""
    if shape[:1] != rows.shape[:1] or broadcast(rows.shape, shape) != shape:
        raise Unsupported(_AS_DATA)
    return Rows(rows.scale, rows.offset, shape)


def own(rows: Rows) -> bool:
    """Returns whether all places of an example are its own number."""
    offset = rows.offset.data
    return rows.scale == 1 and offset is not None and not offset.any()


def numbered(ctx: Context, parts: Sequence[Tensor], axis: int, new: bool) -> Numbered:
    """Joins the number of an example and more numbers to indices, along the last axis."""
    first, *others = parts
    rank = len(first.shape) + new if isinstance(first, Rows) else 0
    if not isinstance(first, Rows) or not own(first) or axis % rank != rank - 1 or not others:
        raise Unsupported(_AS_DATA)
    values = [ctx.value(ctx.args.index(part)) for part in others]
    shape = first.shape if new else first.shape[:-1]
    if (not new and first.shape[-1] != 1) or first.shape[0] != ir.Batch():
        raise Unsupported(_AS_DATA)
    rest = [ctx.build.reshape(v, (*v.shape, 1)) if new else v for v in values]
    if any(v.shape[:-1] != shape for v in rest):
        raise Unsupported(_AS_DATA)
    return Numbered(ctx.build.concat(rest, rank - 1))


def compare(ctx: Context, kind: CompareKind) -> Result:
    """Compares places with zero: none is below, as an example's places lie in its elements."""
    if any(isinstance(a, Bounds) for a in ctx.args):
        raise Unsupported("the batch is reduced")
    rows = ctx.args[0]
    if isinstance(rows, Rows) and kind is CompareKind.LT and not ctx.array(1).any():
        return ir.constant(np.asarray(False))
    raise Unsupported(_AS_DATA)


def of_several(ctx: Context) -> Result:
    """Returns the numbers of the examples; the number 0 instead of the only one is the same."""
    rows, other = ctx.args[1], ctx.args[2]
    known = isinstance(other, ir.Value) and other.data is not None and not other.data.any()
    if isinstance(rows, Rows) and _is_number(rows) and known:
        return rows
    raise Unsupported("it depends on the batch size whether it is more than 1")


def _is_number(rows: Rows) -> bool:
    """Returns whether places are the numbers of all examples."""
    offset = rows.offset.data
    return (
        rows.scale == 1 and rows.shape == (ir.Batch(),) and offset is not None and not any(offset)
    )


def gather(ctx: Context, rows: Rows) -> Result:
    """Takes elements of a flattened batch by places in each example, or all examples."""
    x = ctx.value(0)
    axis = ctx.integer(2) if len(ctx.args) > 2 else 0
    direct = axis == 0 and not ctx.attr("batch_dims", 0)
    if direct and x.shape[:1] == (ir.Batch(),) and _is_number(rows):
        return x
    first = rows.shape[0]
    inner = rows.offset.shape[1:] if rows.offset.rank > len(rows.shape) else rows.shape[1:]
    sizes = [static(dim, "the number of places") for dim in inner]
    count = divide(first, math.prod(sizes)) if rows.offset.rank > len(rows.shape) else first
    if (
        not direct
        or not isinstance(count, ir.Batch)
        or x.shape[:1] != (multiply(count, rows.scale),)
    ):
        raise Unsupported("batch elements are taken by index")
    build = ctx.build
    places = build.broadcast_to(rows.offset, (count, *sizes))
    own_elements = build.reshape(x, (count, rows.scale, *x.shape[1:]))
    taken = build.gather(own_elements, places, 1, batch_dims=1)
    return build.reshape(taken, (*rows.shape, *x.shape[1:]))
