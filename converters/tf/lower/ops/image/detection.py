"""Boxes of which only the best of those that overlap are kept."""

from __future__ import annotations

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind, CompareKind, Fn, ReduceKind
from converters.tf.ir.build import Builder, static
from converters.tf.ir.expressions import is_open
from converters.tf.lower.graph import Context, Handler, Result, Unsupported
from converters.tf.lower.ops.index.chosen import places

# What TensorFlow takes for the least score where none is given.
_LOWEST = float(np.finfo(np.float32).min)
_SOFT = "scores that fall with the overlap"


def _combined(ctx: Context) -> Result:
    """Keeps boxes of every class, and of these the best: boxes, scores, classes and their number.

    Equal scores come as TensorFlow's sort on the CPU leaves them, which isn't stable. What a class
    has less than its most boxes counts as boxes of score -1, as there.
    """
    boxes, scores = ctx.value(0), ctx.value(1)
    per_class, total = ctx.integer(2), ctx.integer(3)
    overlap, least = float(ctx.array(4)), float(ctx.array(5))
    b, lead = ctx.build, scores.shape[0]
    count, classes = (static(d, "boxes and classes") for d in scores.shape[1:])
    own = static(boxes.shape[2], "the boxes of a class")
    kept = min(per_class, count)
    if ctx.attr("pad_per_class", False):
        total = min(total, per_class * classes)
    # One class after the other, each with its boxes, or all with those of every class.
    of_class = b.transpose(boxes, [0, 2, 1, 3])
    rows = b.transpose(scores, [0, 2, 1])
    op = ir.Suppress(overlap, least, in_order=False)
    corners = of_class if own > 1 else b.reshape(of_class, (lead, count, 4))
    places = b.emit(op, [corners, rows], (lead, classes, kept), ir.DType.I32)
    zero = b.scalar(0, ir.DType.I32)
    there = b.compare(CompareKind.GE, places, zero)
    first = b.binary(BinaryKind.MAX, places, zero)
    found = b.gather(rows, first, 2, batch_dims=2)
    found = b.select(there, found, b.scalar(-1, scores.dtype))
    if own > 1:
        starts = np.arange(classes, dtype=np.int32)[:, None] * count
        first = b.binary(BinaryKind.ADD, first, ir.constant(starts))
    flat = (lead, classes * kept)
    most = min(total, classes * kept)
    order = b.emit(ir.Introsort(), [b.reshape(found, flat)], flat, ir.DType.I32)
    order = b.slice(order, (0, 0), (lead, most))

    def best(x: ir.Value) -> ir.Value:
        return b.gather(b.reshape(x, flat), order, 1, batch_dims=1)

    inside = best(there)
    valid = b.reduce(ReduceKind.SUM, b.cast(there, ir.DType.I32), [1, 2])
    valid = b.binary(BinaryKind.MIN, valid, b.scalar(total, ir.DType.I32))
    rank = ir.constant(np.arange(most, dtype=np.int32))
    shown = b.compare(CompareKind.LT, rank, b.reshape(valid, (lead, 1)))
    corners = b.reshape(of_class, (lead, own * count, 4))
    chosen = b.gather(corners, best(first), 1, batch_dims=1)
    if ctx.attr("clip_boxes", True):
        chosen = b.unary(Fn.CLAMP, chosen, 0.0, 1.0)
    numbers = np.repeat(np.arange(classes, dtype=np.float32), kept)
    class_of = b.gather(ir.constant(numbers), order, 0)
    class_of = b.select(inside, class_of, b.scalar(-1, class_of.dtype))
    both = b.binary(BinaryKind.LOGICAL_AND, shown, inside)
    return (
        _padded(b, b.reshape(both, (lead, most, 1)), chosen, total),
        _padded(b, shown, best(found), total),
        _padded(b, shown, class_of, total),
        valid,
    )


def _padded(b: Builder, there: ir.Value, x: ir.Value, size: int) -> ir.Value:
    """Returns as many rows of each example, those of what is not there 0."""
    kept = b.select(there, x, b.scalar(0, x.dtype))
    missing = size - static(x.shape[1], "the boxes")
    return b.pad(kept, [(0, 0), (0, missing), *[(0, 0)] * (x.rank - 2)])


def _single(ctx: Context) -> Result:
    """Keeps boxes without a batch: as many as are left, or padded with the first one."""
    version = int(ctx.node.op.removeprefix("NonMaxSuppression").removeprefix("V") or 1)
    boxes, scores, size = ctx.value(0), ctx.value(1), ctx.integer(2)
    overlap = float(ctx.array(3)) if version > 1 else ctx.attr("iou_threshold", 0.5)
    least = float(ctx.array(4)) if version > 2 else _LOWEST
    if version == 5 and float(ctx.array(5)) > 0:
        raise Unsupported(_SOFT)
    padded = bool(ctx.attr("pad_to_max_output_size", False))
    count = static(scores.shape[0], "the number of boxes")
    b = ctx.build
    if not padded and not is_open(count):
        size = min(size, count)
    op = ir.Suppress(overlap, least, in_order=True)
    found = b.emit(op, [boxes, scores], (size,), ir.DType.I32)
    zero = b.scalar(0, ir.DType.I32)
    there = b.compare(CompareKind.GE, found, zero)
    valid = b.reduce(ReduceKind.SUM, b.cast(there, ir.DType.I32), [0])
    if padded:
        first = b.binary(BinaryKind.MAX, found, zero)
        best = b.select(there, b.gather(scores, first, 0), b.scalar(0, scores.dtype))
    else:
        first = b.gather(found, places(ctx, there), 0)
        best = b.gather(scores, first, 0)
    if version < 4:
        return first
    return (first, valid) if version == 4 else (first, best, valid)


OPS: dict[str, Handler] = {
    "CombinedNonMaxSuppression": _combined,
    "NonMaxSuppression": _single,
    **{f"NonMaxSuppressionV{version}": _single for version in range(2, 6)},
}
