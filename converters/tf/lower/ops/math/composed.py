"""Ops that are made of others, element by element or along one axis."""

from __future__ import annotations

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind, CompareKind, Fn, ReduceKind
from converters.tf.ir.build import Builder, static
from converters.tf.ir.sizes import elements
from converters.tf.lower.graph import Context, Handler, Result, Unsupported

# Sums of so many elements of an example are computed for each of its results.
_MOST_PAIRS = 1 << 22


def _cross(ctx: Context) -> Result:
    """Multiplies vectors of three elements, the last axis."""
    a, b = ctx.value(0), ctx.value(1)
    last, build = a.rank - 1, ctx.build

    def turned(x: ir.Value, places: list[int]) -> ir.Value:
        return build.concat([build.part(x, last, place, 1) for place in places], last)

    forth, back = [1, 2, 0], [2, 0, 1]
    left = build.binary(BinaryKind.MUL, turned(a, forth), turned(b, back))
    right = build.binary(BinaryKind.MUL, turned(a, back), turned(b, forth))
    return build.binary(BinaryKind.SUB, left, right)


def _searched(kind: CompareKind) -> Handler:
    """Counts the elements of a sorted row that lie before each value."""

    def handler(ctx: Context) -> Result:
        rows, values = ctx.value(0), ctx.value(1)
        build, out = ctx.build, ctx.dtype("out_type")
        count = static(rows.shape[-1], "a sorted row")
        if count * elements(values.shape[-1:]) > _MOST_PAIRS:
            raise Unsupported("a search for many values in a long row")
        wide = build.reshape(rows, (*rows.shape[:-1], 1, count))
        each = build.reshape(values, (*values.shape, 1))
        before = build.cast(build.compare(kind, wide, each), out)
        return build.reduce(ReduceKind.SUM, before, [before.rank - 1])

    return handler


def _in_top_k(ctx: Context) -> Result:
    """Returns whether fewer than k classes are above the target; NaN and infinity are in none."""
    predictions, targets, k = ctx.value(0), ctx.value(1), ctx.array(2)
    b, classes = ctx.build, static(ctx.value(0).shape[1], "the number of classes")
    numbers = ir.constant(np.arange(classes, dtype=targets.dtype.numpy))
    own = b.compare(CompareKind.EQ, b.reshape(targets, (*targets.shape, 1)), numbers)
    zero = b.scalar(0, predictions.dtype)
    score = b.reduce(ReduceKind.SUM, b.select(own, predictions, zero), [1], True)
    above = b.cast(b.compare(CompareKind.GT, predictions, score), ir.DType.I32)
    count = b.reduce(ReduceKind.SUM, above, [1])
    few = b.compare(CompareKind.LT, count, ir.constant(np.asarray(int(k), np.int32)))
    known = b.reduce(ReduceKind.ALL, b.unary(Fn.IS_FINITE, predictions), [1])
    inside = b.reduce(ReduceKind.ANY, own, [1])
    return b.binary(BinaryKind.LOGICAL_AND, few, b.binary(BinaryKind.LOGICAL_AND, known, inside))


def _steps(ctx: Context, low: ir.Array, high: ir.Array) -> Result:
    """Rounds to steps between limits that are moved so that 0 is one of them."""
    least = np.float32(1 if ctx.attr("narrow_range") else 0)
    most = np.float32(2 ** ctx.attr("num_bits", 8) - 1)
    low, high = np.asarray(low, np.float32), np.asarray(high, np.float32)
    b, x = ctx.build, ctx.value(0)
    if not np.any(low) and not np.any(high):
        return b.binary(BinaryKind.MUL, x, b.scalar(0, x.dtype))
    scale = (high - low) / (most - least)
    zero = least - low / scale
    point = np.where(zero < least, least, np.where(zero > most, most, np.floor(zero + 0.5)))
    floor, ceiling = ((end - point) * scale for end in (least, most))

    def known(data: ir.Array) -> ir.Value:
        return ir.constant(np.asarray(data, np.float32))

    held = b.binary(BinaryKind.MIN, b.binary(BinaryKind.MAX, x, known(floor)), known(ceiling))
    moved = b.binary(BinaryKind.SUB, held, known(floor))
    place = b.binary(BinaryKind.MUL, moved, known(np.float32(1) / scale))
    place = b.unary(Fn.FLOOR, b.binary(BinaryKind.ADD, place, b.scalar(0.5, x.dtype)))
    return b.binary(BinaryKind.ADD, b.binary(BinaryKind.MUL, place, known(scale)), known(floor))


def _quantized(ctx: Context) -> Result:
    if ctx.node.op == "FakeQuantWithMinMaxArgs":
        return _steps(ctx, ctx.attr("min", -6.0), ctx.attr("max", 6.0))
    return _steps(ctx, ctx.array(1), ctx.array(2))


def _there_and_back(ctx: Context) -> Result:
    """Rounds to integers of a few bits, of which 0 is 0, and scales back."""
    x, b = ctx.value(0), ctx.build
    bits = ctx.integer(3) if ctx.node.op == "QuantizeAndDequantizeV3" else ctx.attr("num_bits", 8)
    axis, given = ctx.attr("axis", -1), ctx.attr("range_given", False)
    signed, narrow = ctx.attr("signed_input", True), ctx.attr("narrow_range", False)
    least = (int(narrow) - (1 << bits - 1)) if signed else 0
    most = (1 << bits - 1) - 1 if signed else (1 << bits) - 1
    if given:
        along = tuple(d if i == axis else 1 for i, d in enumerate(x.shape)) if axis >= 0 else ()
        low, high = (b.reshape(ctx.value(i), along) for i in (1, 2))
    else:
        axes = [i for i in range(x.rank) if i != axis]
        low, high = (b.reduce(k, x, axes, True) for k in (ReduceKind.MIN, ReduceKind.MAX))

    def known(number: float) -> ir.Value:
        return b.scalar(number, x.dtype)

    def two(kind: BinaryKind, left: ir.Value, right: ir.Value) -> ir.Value:
        return b.binary(kind, left, right)

    def scale_of(end: ir.Value, number: int) -> ir.Value:
        counts = b.compare(CompareKind.GT, two(BinaryKind.MUL, known(number), end), known(0))
        largest = known(np.finfo(x.dtype.numpy).max)
        return b.select(counts, two(BinaryKind.DIV, known(number), end), largest)

    of_low, scale = scale_of(low, least), scale_of(high, most)
    step = two(BinaryKind.DIV, high, known(most))
    floor, ceiling = two(BinaryKind.MUL, known(least), step), high
    if least:
        below = b.compare(CompareKind.LT, of_low, scale)
        scale = b.select(below, of_low, scale)
        step = b.select(below, two(BinaryKind.DIV, low, known(least)), step)
        floor = b.select(below, low, two(BinaryKind.MUL, known(least), step))
        ceiling = b.select(below, two(BinaryKind.MUL, known(most), step), high)
    if given:
        x = two(BinaryKind.MAX, two(BinaryKind.MIN, x, ceiling), floor)
    place = two(BinaryKind.MUL, x, scale)
    if ctx.attr("round_mode", "HALF_TO_EVEN") == "HALF_UP":
        place = b.unary(Fn.FLOOR, two(BinaryKind.ADD, place, known(0.5)))
    else:
        place = b.unary(Fn.ROUND, place)
    return two(BinaryKind.MUL, place, step)


def _cumulative_log_sum(ctx: Context) -> Result:
    """Returns logarithms of running sums of exponentials, which a triangle of masks tells apart."""
    x = ctx.value(0)
    axis = ctx.axis(1, x.rank)
    size, b = static(x.shape[axis], "the axis"), ctx.build
    order = [i for i in range(x.rank) if i != axis]
    order.append(axis)
    rows = b.transpose(x, order)
    triangle = np.tri(size, k=-1 if ctx.attr("exclusive") else 0, dtype=bool)
    triangle = triangle.T if ctx.attr("reverse") else triangle
    lowest = b.scalar(float("-inf"), x.dtype)
    if size * size > _MOST_PAIRS:
        raise Unsupported("running sums of logarithms along a long axis")
    each = b.reshape(rows, (*rows.shape[:-1], 1, size))
    seen = b.select(ir.constant(triangle), each, lowest)
    result = _log_sum(b, seen)
    return b.transpose(result, [order.index(i) for i in range(x.rank)])


def _log_sum(b: Builder, x: ir.Value) -> ir.Value:
    """Returns the logarithm of the sum of the exponentials of the last axis."""
    last = x.rank - 1
    top = b.reduce(ReduceKind.MAX, x, [last], True)
    top = b.select(b.unary(Fn.IS_FINITE, top), top, b.scalar(0, x.dtype))
    total = b.reduce(ReduceKind.SUM, b.unary(Fn.EXP, b.binary(BinaryKind.SUB, x, top)), [last])
    return b.binary(BinaryKind.ADD, b.unary(Fn.LOG, total), b.reshape(top, total.shape))


OPS: dict[str, Handler] = {
    "Cross": _cross,
    "CumulativeLogsumexp": _cumulative_log_sum,
    "FakeQuantWithMinMaxArgs": _quantized,
    "FakeQuantWithMinMaxVars": _quantized,
    "FakeQuantWithMinMaxVarsPerChannel": _quantized,
    **{f"QuantizeAndDequantizeV{version}": _there_and_back for version in (2, 3, 4)},
    "InTopK": _in_top_k,
    "InTopKV2": _in_top_k,
    "LowerBound": _searched(CompareKind.LT),
    "UpperBound": _searched(CompareKind.LE),
}
