"""Reductions by segments, sequences turned around, sums over channels."""

from __future__ import annotations

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind, CompareKind, ReduceKind
from converters.tf.ir.build import Builder, static
from converters.tf.ir.spans import over_spans
from converters.tf.ir.symbolic import product
from converters.tf.lower.graph import Context, Handler, Result, Unsupported
from converters.tf.lower.ops.index.scatter import scatter
from converters.tf.lower.tensors import Rows

# Segments that are written out one by one.
_MOST_SEGMENTS = 1024


def _empty(kind: ReduceKind, dtype: ir.DType, unsorted: bool) -> float:
    """Returns what TensorFlow gives for a segment without elements."""
    if kind is ReduceKind.PROD:
        return 1
    if not unsorted or kind in (ReduceKind.SUM, ReduceKind.MEAN):
        return 0
    limits = np.finfo(dtype.numpy) if dtype.numpy.kind == "f" else np.iinfo(dtype.numpy)
    return float(limits.min) if kind is ReduceKind.MAX else float(limits.max)


def _segments(kind: ReduceKind, unsorted: bool) -> Handler:
    def handler(ctx: Context) -> Result:
        x, build = ctx.value(0), ctx.build
        if isinstance(ctx.args[1], Rows):
            return _of_each(ctx, kind, x, ctx.args[1])
        numbers = ctx.value(1)
        if any(isinstance(d, ir.Batch) for d in (*x.shape[:1], *numbers.shape)):
            raise Unsupported("segments of the batch are reduced")
        if numbers.data is None:
            if not unsorted:
                raise Unsupported("segments that the inputs choose are reduced")
            count = ctx.integer(2)
            return _chosen(build, kind, x, numbers, count, skip=True)
        rest = x.shape[numbers.rank :]
        of_row = np.ravel(numbers.data)
        count = ctx.integer(2) if unsorted else int(of_row.max(initial=-1)) + 1
        if of_row.size and of_row.max() >= count:
            raise Unsupported(f"segment {of_row.max()} of {count}")
        if count > _MOST_SEGMENTS:
            raise Unsupported(f"{count} segments; at most {_MOST_SEGMENTS} are written out")
        if not count:
            return build.broadcast_to(build.scalar(0, x.dtype), (0, *rest))
        rows = build.reshape(x, (int(of_row.size), *rest))
        parts = []
        for number in range(count):
            places = np.flatnonzero(of_row == number)
            if places.size:
                taken = _rows(ctx, rows, places)
                parts.append(build.reduce(kind, taken, [0], keepdims=True))
            else:
                empty = build.scalar(_empty(kind, x.dtype, unsorted), x.dtype)
                parts.append(build.broadcast_to(empty, (1, *rest)))
        return build.concat(parts, 0)

    return handler


_SCATTER = {
    ReduceKind.SUM: ir.ScatterKind.ADD,
    ReduceKind.MAX: ir.ScatterKind.MAX,
    ReduceKind.MIN: ir.ScatterKind.MIN,
    ReduceKind.PROD: ir.ScatterKind.MUL,
}


def _chosen(
    build: Builder, kind: ReduceKind, x: ir.Value, numbers: ir.Value, count: int, skip: bool
) -> ir.Value:
    """Reduces segments that the inputs choose; axes before those of the numbers are groups."""
    lead = 0 if skip else 1
    rest = x.shape[numbers.rank :]
    empty = build.scalar(_empty(kind, x.dtype, True), x.dtype)
    start = build.broadcast_to(empty, (*x.shape[:lead], count, *rest))
    indices = build.reshape(numbers, (*numbers.shape, 1))
    return scatter(build, _SCATTER[kind], start, indices, x, lead, skip)


def _of_each(ctx: Context, kind: ReduceKind, x: ir.Value, rows: Rows) -> ir.Value:
    """Reduces segments of which every example has its own, side by side."""
    segments = ctx.dims(2).item()
    inner = rows.offset.shape[1:]
    if segments != ir.Batch(rows.scale) or rows.shape != (product((ir.Batch(), *inner)),):
        raise Unsupported("segments of the batch are reduced")
    build, rest = ctx.build, x.shape[1:]
    numbers = build.broadcast_to(rows.offset, (ir.Batch(), *inner))
    data = build.reshape(x, (ir.Batch(), *inner, *rest))
    found = _chosen(build, kind, data, numbers, rows.scale, skip=False)
    return build.reshape(found, (segments, *rest))


def _rows(ctx: Context, rows: ir.Value, places: ir.Array) -> ir.Value:
    if places[-1] - places[0] == places.size - 1:
        return ctx.build.part(rows, 0, int(places[0]), int(places.size))
    return ctx.build.gather(rows, ir.constant(places.astype(np.int32)), 0)


def _reverse_sequence(ctx: Context) -> Result:
    """Turns the first steps of every example around, as many as its length says."""
    x, lengths, build = ctx.value(0), ctx.value(1), ctx.build
    axis = ctx.attr("seq_dim") % x.rank
    if ctx.attr("batch_dim", 0) % x.rank != 0:
        raise Unsupported("sequences whose first axis is not the batch are turned around")
    steps = static(x.shape[axis], "the length of a sequence")
    order = [0, axis, *(i for i in range(1, x.rank) if i != axis)]
    turned = build.transpose(x, order)
    step = build.numbers(steps, lengths.dtype)
    length = build.reshape(lengths, (*lengths.shape, 1))
    last = build.binary(BinaryKind.SUB, length, build.scalar(1, lengths.dtype))
    back = build.binary(BinaryKind.SUB, last, step)
    inside = build.compare(CompareKind.LT, step, length)
    places = build.select(inside, back, step)
    turned = build.gather(turned, places, 1, batch_dims=1)
    return build.transpose(turned, [order.index(i) for i in range(x.rank)])


def _local_response(ctx: Context) -> Result:
    """Divides by a power of the sum of squares of the channels around."""
    x, build = ctx.value(0), ctx.build
    channels = static(x.shape[-1], "the number of channels")
    # Beyond the others there are zeros alone.
    radius = min(int(ctx.attr("depth_radius", 5)), max(channels - 1, 0))
    squares = build.unary(ir.Fn.SQUARE, x)
    total = over_spans(
        build.pad(squares, [(0, 0)] * (x.rank - 1) + [(radius, radius)]),
        2 * radius + 1,
        channels + 2 * radius,
        lambda y, begin, count: build.part(y, y.rank - 1, begin, count),
        lambda a, b: build.binary(BinaryKind.ADD, a, b),
    )
    alpha, bias, beta = (
        build.scalar(float(ctx.attr(name, default)), x.dtype)
        for name, default in (("alpha", 1.0), ("bias", 1.0), ("beta", 0.5))
    )
    base = build.binary(BinaryKind.ADD, bias, build.binary(BinaryKind.MUL, alpha, total))
    return build.binary(BinaryKind.DIV, x, build.binary(BinaryKind.POW, base, beta))


def _euclidean(ctx: Context) -> Result:
    x, build = ctx.value(0), ctx.build
    squares = build.unary(ir.Fn.SQUARE, x)
    keep = bool(ctx.attr("keep_dims", False))
    return build.unary(ir.Fn.SQRT, build.reduce(ReduceKind.SUM, squares, ctx.ints(1), keep))


OPS: dict[str, Handler] = {
    "SegmentSum": _segments(ReduceKind.SUM, False),
    "SegmentMean": _segments(ReduceKind.MEAN, False),
    "SegmentMax": _segments(ReduceKind.MAX, False),
    "SegmentMin": _segments(ReduceKind.MIN, False),
    "SegmentProd": _segments(ReduceKind.PROD, False),
    "UnsortedSegmentSum": _segments(ReduceKind.SUM, True),
    "UnsortedSegmentMax": _segments(ReduceKind.MAX, True),
    "UnsortedSegmentMin": _segments(ReduceKind.MIN, True),
    "UnsortedSegmentProd": _segments(ReduceKind.PROD, True),
    "ReverseSequence": _reverse_sequence,
    "LRN": _local_response,
    "EuclideanNorm": _euclidean,
}
