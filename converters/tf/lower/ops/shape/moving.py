"""Slices whose place the model's inputs say, and which one turn of a loop reads or writes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind
from converters.tf.ir.build import Builder, static
from converters.tf.lower.graph import Context, Result, Unsupported

# Rows that are written one by one.
_MOST_ROWS = 64


def _elements(build: Builder, vector: ir.Value) -> list[ir.Value]:
    """Returns the numbers of a vector by themselves: known ones, if it was made of such."""
    count = static(vector.shape[0], "the number of axes") if vector.rank else 1
    made = next((n for n in reversed(build.nodes) if vector in n.outputs), None)
    if made is not None and isinstance(made.op, ir.Concat):
        parts = [build.unshaped(p) for p in made.present]
        if len(parts) == count:
            return [build.reshape(p, ()) for p in parts]
    return [build.reshape(build.part(vector, 0, i, 1), ()) for i in range(count)]


def strided_slice(ctx: Context, begins: ir.Value) -> Result:
    """Takes `x[:, t]`: one place of an axis, and whole axes or known parts of the others."""
    x = ctx.value(0)
    ends = ctx.value(2)
    starts, stops = (_elements(ctx.build, v) for v in (begins, ends))
    steps = ctx.ints(3)
    if any(ctx.attr(name, 0) for name in ("ellipsis_mask", "new_axis_mask")):
        raise Unsupported("a slice at a place that the inputs say, with new axes")
    axis = 0
    for i, (start, stop, step) in enumerate(zip(starts, stops, steps, strict=True)):
        no_begin, no_end, one = (
            bool(ctx.attr(name, 0) >> i & 1)
            for name in ("begin_mask", "end_mask", "shrink_axis_mask")
        )
        if one:
            x = _taken(ctx.build, x, start, axis)
            continue
        if (no_begin or start.data is not None) and (no_end or stop.data is not None):
            first = None if no_begin else _number(start)
            last = None if no_end else _number(stop)
            x = _part(ctx.build, x, axis, slice(first, last, step))
            axis += 1
            continue
        raise Unsupported("a part whose length the inputs say")
    return x


def _number(value: ir.Value) -> int:
    assert value.data is not None
    return int(value.data.item())


def _part(build: Builder, x: ir.Value, axis: int, part: slice) -> ir.Value:
    if part == slice(None, None, 1):
        return x
    size = static(x.shape[axis], "the sliced axis")
    places = range(*part.indices(size))
    begin = [places.start if i == axis and len(places) else 0 for i in range(x.rank)]
    steps = [places.step if i == axis else 1 for i in range(x.rank)]
    counts = [len(places) if i == axis else d for i, d in enumerate(x.shape)]
    return build.slice(x, begin, counts, steps)


def _taken(build: Builder, x: ir.Value, place: ir.Value, axis: int) -> ir.Value:
    if isinstance(x.shape[axis], ir.Batch):
        raise Unsupported("batch elements are taken by index")
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return build.emit(ir.Gather(axis, wrap=True), [x, place], shape)


def slice_of(ctx: Context, x: ir.Value, begins: ir.Value) -> Result:
    """Takes a part of known size from a place that the inputs say."""
    build = ctx.build
    sizes = ctx.dims(2).ravel()
    for axis, (start, size) in enumerate(zip(_elements(build, begins), sizes, strict=True)):
        if start.data is not None:
            first = _number(start)
            if isinstance(x.shape[axis], ir.Batch):
                if first != 0 or size not in (-1, x.shape[axis]):
                    raise Unsupported("batch elements are taken apart")
                continue
            x = _part(build, x, axis, slice(first, None if size == -1 else first + int(size), 1))
            continue
        if isinstance(x.shape[axis], ir.Batch):
            raise Unsupported("batch elements are taken by index")
        if size == -1:
            raise Unsupported("a part whose length the inputs say")
        count = static(size, "the size of a slice")
        places = build.binary(
            BinaryKind.ADD, start, ir.constant(np.arange(count, dtype=start.dtype.numpy))
        )
        x = build.gather(x, places, axis)
    return x


def update_slice(ctx: Context) -> Result:
    """Writes a part at places that are known or the inputs say, held within their axes.

    An axis that is written as a whole has one place, whatever it should start at.
    """
    x, part, build = ctx.value(0), ctx.value(1), ctx.build
    starts = _elements(build, ctx.value(2))
    axes = [i for i, (a, b) in enumerate(zip(x.shape, part.shape, strict=True)) if a != b]
    return _written(build, x, part, [(axis, starts[axis]) for axis in axes])


def _written(
    build: Builder, x: ir.Value, part: ir.Value, places: Sequence[tuple[int, ir.Value]]
) -> ir.Value:
    """Writes a part that is smaller in some axes: what lies around it along the first one stays."""
    if not places:
        return part
    (axis, start), *inner = places
    size = static(x.shape[axis], "the axis that is written")
    count = static(part.shape[axis], "the number of rows that are written")
    if start.data is not None:
        begin = min(max(_number(start), 0), size - count)
        end = begin + count
        part = _written(build, build.part(x, axis, begin, count), part, inner)
        around = [build.part(x, axis, 0, begin), part, build.part(x, axis, end, size - end)]
        return build.concat([p for p in around if p.shape[axis] != 0], axis)
    if count > _MOST_ROWS:
        raise Unsupported(f"{count} rows are written at a place that the inputs say")
    start = build.cast(start, ir.DType.I32)
    start = build.binary(BinaryKind.MAX, start, build.scalar(0, ir.DType.I32))
    start = build.binary(BinaryKind.MIN, start, build.scalar(size - count, ir.DType.I32))
    if inner:
        numbers = ir.constant(np.arange(count, dtype=np.int32))
        old = build.gather(x, build.binary(BinaryKind.ADD, start, numbers), axis)
        part = _written(build, old, part, inner)
    return _rows_written(build, x, part, axis, start)


def _rows_written(
    build: Builder, x: ir.Value, rows: ir.Value, axis: int, start: ir.Value
) -> ir.Value:
    order = [axis, *(i for i in range(x.rank) if i != axis)]
    back = [order.index(i) for i in range(x.rank)]
    target, rows = build.transpose(x, order), build.transpose(rows, order)
    for i in range(static(rows.shape[0], "the number of rows that are written")):
        row = build.reshape(build.part(rows, 0, i, 1), rows.shape[1:])
        place = build.binary(BinaryKind.ADD, start, build.scalar(i, ir.DType.I32))
        target = build.emit(ir.Update(), [target, place, row], target.shape)
    return build.transpose(target, back)
