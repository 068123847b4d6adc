"""Lookup tables, and histograms of an example."""

from __future__ import annotations

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind, CompareKind, ReduceKind
from converters.tf.ir.build import Builder, elements
from converters.tf.lower.graph import Context, Handler, Result, Unsupported
from converters.tf.lower.ops.index.scatter import scatter
from converters.tf.lower.trace import Variable

# A table of fewer places than this many, or this often the keys, has one for each number between.
_DENSE_PLACES = 1 << 10
_DENSE_FACTOR = 4


def _find(ctx: Context) -> Result:
    table = ctx.args[0]
    if not isinstance(table, Variable) or table.entries is None:
        raise Unsupported("a lookup table whose entries are not known")
    keys, values = table.entries
    if keys.dtype.kind not in "iu" or values.dtype.kind not in "iuf":
        raise Unsupported(f"a lookup table from {_kind(keys)} to {_kind(values)}")
    x, default = ctx.value(1), ctx.value(2)
    if keys.size == 0:
        return ctx.build.broadcast_to(default, x.shape)
    order = np.argsort(keys)
    keys, values = keys[order].astype(x.dtype.numpy), values[order].astype(default.dtype.numpy)
    span = int(keys[-1]) - int(keys[0]) + 1
    if span <= max(_DENSE_PLACES, _DENSE_FACTOR * keys.size):
        return _dense(ctx.build, keys, values, x, default)
    return _sorted(ctx.build, keys, values, x, default)


def _kind(array: ir.Array) -> str:
    return "strings" if array.dtype.kind in "SUO" else str(array.dtype)


def _dense(
    build: Builder, keys: ir.Array, values: ir.Array, x: ir.Value, default: ir.Value
) -> Result:
    """Looks up in a table with a place for every number from the first key to the last."""
    first, last = (build.scalar(int(k), x.dtype) for k in (keys[0], keys[-1]))
    places = (keys - keys[0]).astype(np.int64)
    table = np.zeros(int(places[-1]) + 1, values.dtype)
    known = np.zeros(table.shape, bool)
    table[places], known[places] = values, True
    inside = build.binary(BinaryKind.MIN, build.binary(BinaryKind.MAX, x, first), last)
    place = build.binary(BinaryKind.SUB, inside, first)
    found = build.gather(ir.constant(table), place, 0)
    there = build.compare(CompareKind.EQ, inside, x)
    if not known.all():
        hit = build.gather(ir.constant(known), place, 0)
        there = build.binary(BinaryKind.LOGICAL_AND, there, hit)
    return build.select(there, found, default)


def _sorted(
    build: Builder, keys: ir.Array, values: ir.Array, x: ir.Value, default: ir.Value
) -> Result:
    """Counts the keys below a number by halving, then compares with the next one."""
    steps = 1 << int(keys.size).bit_length()
    most = np.iinfo(keys.dtype).max
    padded = np.full(steps, most, keys.dtype)
    padded[: keys.size] = keys
    table = ir.constant(padded)
    below = build.scalar(0, x.dtype)
    step = steps // 2
    while step:
        last = build.binary(BinaryKind.ADD, below, build.scalar(step - 1, x.dtype))
        less = build.compare(CompareKind.LT, build.gather(table, last, 0), x)
        further = build.binary(BinaryKind.ADD, below, build.scalar(step, x.dtype))
        below = build.select(less, further, below)
        step //= 2
    found = np.zeros(steps, values.dtype)
    found[: keys.size] = values
    there = build.compare(CompareKind.EQ, build.gather(table, below, 0), x)
    inside = build.compare(CompareKind.LT, below, build.scalar(keys.size, x.dtype))
    there = build.binary(BinaryKind.LOGICAL_AND, there, inside)
    return build.select(there, build.gather(ir.constant(found), below, 0), default)


def _bincount(ctx: Context) -> Result:
    x, weights, size = ctx.value(0), ctx.value(2), ctx.integer(1)
    if x.rank != 2 or isinstance(x.shape[1], ir.Batch):
        raise Unsupported("a histogram of the whole batch")
    build = ctx.build
    dtype = ctx.dtype("T")
    counted = bool(weights.rank == x.rank)
    places = build.cast(x, ir.DType.I32) if x.dtype not in (ir.DType.I32, ir.DType.I64) else x
    hits = build.emit(ir.OneHot(2), [places], (*x.shape, size), dtype)
    if ctx.attr("binary_output", False):
        return build.reduce(ReduceKind.MAX, hits, [1])
    if counted:
        wide = build.reshape(weights, (*weights.shape, 1))
        hits = build.binary(BinaryKind.MUL, hits, wide)
    return build.reduce(ReduceKind.SUM, hits, [1])


def _histogram(ctx: Context) -> Result:
    """Counts the elements between equally spaced limits; those beside them go to the last ones."""
    x, limits, size = ctx.value(0), ctx.value(1), ctx.integer(2)
    if any(isinstance(d, ir.Batch) for d in x.shape):
        raise Unsupported("a histogram of the whole batch")
    b, count, dtype = ctx.build, elements(x.shape), ctx.dtype("dtype")
    low, high = (b.reshape(b.part(limits, 0, i, 1), ()) for i in range(2))
    width = b.cast(b.binary(BinaryKind.SUB, high, low), ir.DType.F64)
    step = b.binary(BinaryKind.DIV, width, b.scalar(size, ir.DType.F64))
    above = b.binary(BinaryKind.SUB, b.binary(BinaryKind.MAX, x, low), low)
    place = b.binary(BinaryKind.DIV, b.cast(above, ir.DType.F64), step)
    place = b.binary(BinaryKind.MIN, place, b.scalar(size - 1, ir.DType.F64))
    indices = b.reshape(b.cast(place, ir.DType.I32), (count, 1))
    start, ones = (ir.constant(np.full(n, i, dtype.numpy)) for i, n in enumerate((size, count)))
    return scatter(b, ir.ScatterKind.ADD, start, indices, ones)


OPS: dict[str, Handler] = {
    "LookupTableFindV2": _find,
    "DenseBincount": _bincount,
    "HistogramFixedWidth": _histogram,
}
