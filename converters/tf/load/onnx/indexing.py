"""Operators that take elements by index, and those that move blocks of pixels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir.expressions import is_open
from converters.tf.ir.symbolic import of_shape, product
from converters.tf.load.onnx.context import Context, Handler, Result, fixed, whole
from converters.tf.load.onnx.shapes import without
from converters.tf.load.onnx.values import Known
from converters.tf.load.saved_model.replay import Refused

# Pairs of elements that are compared to find slices that are equal, at most.
_MOST_PAIRS = 1 << 22


def _indices(ctx: Context, index: int, size: int) -> Any:
    """Returns indices, negative ones counted from the end."""
    value = ctx.value(index)
    if isinstance(value, Known) and not (is_open(size) and np.any(value.data < 0)):
        return tf.constant(np.where(value.data < 0, value.data + size, value.data))
    x = ctx.form(index)
    return tf.where(x < 0, x + _number(ctx, size, x.dtype), x)


def _number(ctx: Context, size: int, dtype: tf.DType) -> Any:
    """Returns a size, which may be open, as a tensor."""
    return tf.cast(ctx.session.symbol(of_shape((size,), "int64")), dtype)[0]


def _gather(ctx: Context) -> Result:
    rank = ctx.rank(0)
    axis = ctx.axis(rank)
    size = whole(ctx.shape(0)[axis], "the axis that elements are taken from")
    chosen = ctx.value(1)
    order = ctx.order(0)
    if isinstance(chosen, Known) and chosen.rank == 0:
        at = int(chosen.data)
        place = order.index(axis)
        part = ctx.form(0, order)[(*(slice(None),) * place, at)]
        return ctx.result(part, without(order, [axis]))
    indices = _indices(ctx, 1, size)
    if isinstance(chosen, Known) and chosen.rank == 1:
        return ctx.result(tf.gather(ctx.form(0, order), indices, axis=order.index(axis)), order)
    return ctx.result(tf.gather(ctx.form(0), indices, axis=axis))


def _gather_elements(ctx: Context) -> Result:
    rank = ctx.rank(0)
    axis = ctx.axis(rank)
    x, indices = ctx.shape(0), ctx.shape(1)
    if any(a != b for i, (a, b) in enumerate(zip(x, indices, strict=True)) if i != axis):
        raise Refused("elements of a part of the axes")
    places = _indices(ctx, 1, whole(x[axis], "the axis that elements are taken from"))
    params = ctx.form(0)
    if axis != rank - 1:
        swap = [rank - 1 if i == axis else axis if i == rank - 1 else i for i in range(rank)]
        params, places = tf.transpose(params, swap), tf.transpose(places, swap)
        taken = tf.gather(params, places, batch_dims=rank - 1, axis=rank - 1)
        return ctx.result(tf.transpose(taken, swap))
    return ctx.result(tf.gather(params, places, batch_dims=rank - 1, axis=rank - 1))


def _gather_nd(ctx: Context) -> Result:
    lead = int(ctx.attr("batch_dims", 0))
    value = ctx.value(1)
    indices = ctx.form(1)
    depth = fixed(ctx.shape(1)[-1], "the number of axes")
    what = "the axis that elements are taken from"
    sizes = [whole(d, what) for d in ctx.shape(0)[lead : lead + depth]]
    if isinstance(value, Known) and not any(map(is_open, sizes)):
        indices = tf.constant(np.where(value.data < 0, value.data + sizes, value.data))
    elif sizes:
        numbers = tf.stack([_number(ctx, size, indices.dtype) for size in sizes])
        indices = tf.where(indices < 0, indices + numbers, indices)
    return ctx.result(tf.gather_nd(ctx.form(0), indices, lead))


def _one_hot(ctx: Context) -> Result:
    rank = ctx.rank(0)
    depth = ctx.number(1)
    axis = int(ctx.attr("axis", -1))
    indices = ctx.form(0)
    if not indices.dtype.is_integer:
        indices = tf.cast(indices, tf.int64)
    indices = tf.where(indices < 0, indices + tf.cast(depth, indices.dtype), indices)
    axis = axis + rank + 1 if axis < 0 else axis
    if not 0 <= axis <= rank:
        raise Refused(f"a new axis at {axis} of {rank}")
    axis = -1 if axis == rank else axis
    ends = ctx.value(2)
    if not isinstance(ends, Known):
        off, on = tf.unstack(ctx.form(2))
        return ctx.result(tf.where(tf.one_hot(indices, depth, True, False, axis, tf.bool), on, off))
    off, on = ends.data.ravel()
    return ctx.result(tf.one_hot(indices, depth, on, off, axis=axis, dtype=ends.data.dtype))


def _reverse_sequence(ctx: Context) -> Result:
    """Turns around as much of each sequence as it is long."""
    time, batch = (int(ctx.attr(f"{name}_axis", d)) for name, d in (("time", 0), ("batch", 1)))
    if {time, batch} != {0, 1}:
        raise Refused(f"time along axis {time} and batch along axis {batch}")
    order = (batch, time, *range(2, ctx.rank(0)))
    y = tf.reverse_sequence(ctx.form(0, order), ctx.form(1), seq_axis=1, batch_axis=0)
    return ctx.result(y, order, ctx.shape(0))


def _compress(ctx: Context) -> Result:
    """Keeps what a condition says of an axis; it may be shorter than the axis."""
    if isinstance(ctx.value(1), Known):
        places = np.flatnonzero(ctx.array(1))
    else:
        places = tf.where(ctx.form(1))[:, 0]
    if ctx.attr("axis") is None:
        return ctx.result(tf.gather(tf.reshape(ctx.form(0), [-1]), places))
    order = ctx.order(0)
    axis = order.index(ctx.axis(ctx.rank(0)))
    return ctx.result(tf.gather(ctx.form(0, order), places, axis=axis), order)


def _non_zero(ctx: Context) -> Result:
    if isinstance(ctx.value(0), Known):
        return Known(np.array(np.nonzero(ctx.array(0)), np.int64))
    return ctx.result(tf.transpose(tf.where(ctx.form(0))))


def _unique(ctx: Context) -> Result:
    axis = ctx.attr("axis")
    if not isinstance(ctx.value(0), Known):
        return _computed_unique(ctx)
    found = np.unique(ctx.array(0), True, True, True, axis=None if axis is None else int(axis))
    values, first, inverse, counts = found
    inverse = inverse.ravel()
    if not ctx.attr("sorted", 1):
        order = np.argsort(first)
        values = np.take(values, order, axis=0 if axis is None else int(axis))
        first, counts = first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    return [Known(values), *(Known(a.astype(np.int64)) for a in (first, inverse, counts))][
        : len(ctx.node.outputs)
    ]


def _computed_unique(ctx: Context) -> Result:
    if ctx.attr("axis") is not None:
        return _unique_slices(ctx)
    values, inverse, counts = tf.unique_with_counts(tf.reshape(ctx.form(0), [-1]), tf.int64)
    numbers = tf.range(tf.shape(values, tf.int64)[0])
    first = tf.argmax(tf.cast(tf.equal(inverse[None], numbers[:, None]), tf.int32), 1)
    if ctx.attr("sorted", 1):
        place = tf.reduce_sum(tf.cast(values[None] < values[:, None], tf.int64), 1)
        order = tf.argmax(tf.cast(tf.equal(place[None], numbers[:, None]), tf.int32), 1)
        values, first, counts = (tf.gather(x, order) for x in (values, first, counts))
        inverse = tf.gather(place, inverse)
    results = [ctx.result(x) for x in (values, first, inverse, counts)]
    return results[: len(ctx.node.outputs)]


def _unique_slices(ctx: Context) -> Result:
    """Keeps each slice once: all pairs of them are compared, element by element."""
    rank = ctx.rank(0)
    axis = ctx.axis(rank)
    x = ctx.form(0)
    count, size = (
        fixed(product(dims), "the number of elements")
        for dims in (ctx.shape(0)[axis : axis + 1], ctx.shape(0)[:axis] + ctx.shape(0)[axis + 1 :])
    )
    if count * count * size > _MOST_PAIRS:
        raise Refused(f"{count} slices of {size} elements, of which each comes once")
    moved = tf.transpose(x, [axis, *(i for i in range(rank) if i != axis)])
    rows = tf.reshape(moved, [count, size])
    one, other = rows[:, None, :], rows[None, :, :]
    differs = tf.not_equal(one, other)
    first = tf.argmax(tf.cast(tf.logical_not(tf.reduce_any(differs, 2)), tf.int32), 1)
    new = tf.equal(first, np.arange(count))
    found = tf.where(new)[:, 0]
    if ctx.attr("sorted", 1):
        decides = tf.equal(tf.argmax(tf.cast(differs, tf.int32), 2)[:, :, None], np.arange(size))
        less = tf.reduce_any(tf.logical_and(decides, one > other), 2)
        place = tf.reduce_sum(tf.cast(tf.logical_and(less, new[None]), tf.int64), 1)
        numbers = tf.range(tf.shape(found, tf.int64)[0])
        at = tf.equal(tf.gather(place, found)[None], numbers[:, None])
        found = tf.gather(found, tf.argmax(tf.cast(at, tf.int32), 1))
    else:
        place = tf.cumsum(tf.cast(new, tf.int64)) - 1
    counts = tf.reduce_sum(tf.cast(tf.equal(first[None], found[:, None]), tf.int64), 1)
    values = tf.gather(x, found, axis=axis)
    results = [ctx.result(y) for y in (values, found, tf.gather(place, first), counts)]
    return results[: len(ctx.node.outputs)]


def _depth_to_space(ctx: Context) -> Result:
    """`DCR` is TensorFlow's order of channels; for `CRD` they are brought into it first."""
    block, mode = _blocks(ctx)
    x, count = ctx.last(0), ctx.sizes(0)[0]
    if count % (block * block):
        raise Refused(f"blocks of {block} x {block} of {count} channels")
    if mode == "CRD":
        x = tf.gather(x, np.arange(count).reshape(-1, block * block).T.ravel(), axis=3)
    return ctx.result_last(x if block == 1 else tf.nn.depth_to_space(x, block))


def _space_to_depth(ctx: Context) -> Result:
    block, mode = _blocks(ctx)
    x, count = ctx.last(0), ctx.sizes(0)[0] * block * block
    y = x if block == 1 else tf.nn.space_to_depth(x, block)
    if mode == "CRD":
        y = tf.gather(y, np.arange(count).reshape(block * block, -1).T.ravel(), axis=3)
    return ctx.result_last(y)


def _blocks(ctx: Context) -> tuple[int, str]:
    block = int(ctx.attr("blocksize"))
    if block < 1 or ctx.rank(0) != 4:
        raise Refused(f"blocks of {block} pixels of a tensor with {ctx.rank(0)} axes")
    return block, ctx.text("mode", "DCR", ["DCR", "CRD"])


# Operators whose results are as large as what they are given says.
COUNTING = frozenset(["Compress", "NonMaxSuppression", "NonZero", "Unique"])

OPS: Mapping[str, Handler] = {
    "Compress": _compress,
    "DepthToSpace": _depth_to_space,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "NonZero": _non_zero,
    "OneHot": _one_hot,
    "ReverseSequence": _reverse_sequence,
    "SpaceToDepth": _space_to_depth,
    "Unique": _unique,
}
