"""Operators that move elements; transposing moves nothing before somebody reads the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir import Batch, Dim, Shape
from converters.tf.ir.agreeing import differ, divisible
from converters.tf.ir.expressions import is_open
from converters.tf.ir.symbolic import Symbol, complete, objects, product
from converters.tf.load.onnx.context import (
    Context,
    Handler,
    Result,
    axis_of,
    bounded,
    common_order,
    fixed,
    whole,
)
from converters.tf.load.onnx.file import dtype_of
from converters.tf.load.onnx.numbered import constant_of_all, counted
from converters.tf.load.onnx.shape_data import NO_END, sizes_of, slices
from converters.tf.load.onnx.values import (
    Known,
    Order,
    Tensor,
    is_variable,
    last,
    shape_of,
    stated,
)
from converters.tf.load.saved_model.replay import Refused


def _reshape(ctx: Context) -> Result:
    if ctx.node.version < 5:
        raise Refused("Reshape before version 5")
    shape = ctx.shape(0)
    target = list(ctx.dims(1).ravel())
    if not ctx.attr("allowzero", 0):
        target = [shape[i] if d == 0 else d for i, d in enumerate(target)]
    return _joined(ctx, target)


def _flatten(ctx: Context) -> Result:
    shape = ctx.shape(0)
    axis = int(ctx.attr("axis", 1))
    axis = axis + len(shape) if axis < 0 else axis
    return _joined(ctx, (product(shape[:axis]), product(shape[axis:])))


def _joined(ctx: Context, target: Sequence[Dim]) -> Tensor:
    """Returns a reshaped tensor; a matrix of images also knows the images."""
    x = ctx.value(0)
    if isinstance(x, Tensor) and x.home != stated(x.rank):
        kept = _kept_last(ctx, x, complete(tuple(target), product(x.shape)))
        if kept is not None:
            return kept
    result = ctx.reshape(0, target)
    if isinstance(x, Tensor) and result.rank == 2 and x.rank > 2 and x.shape[0] == result.shape[0]:
        moved = [axis for axis in x.home if x.shape[axis] != 1]
        if x.home[0] == 0 and moved != sorted(moved):
            result.unrolled = x
    return result


def _kept_last(ctx: Context, x: Tensor, shape: Shape) -> Tensor | None:
    """Returns images in another shape with their channels last, if that can be.

    Either the spatial axes change and the channels stay, or the channels are split or joined.
    """
    rank, wide = x.rank, len(shape)
    if min(rank, wide) < 3 or x.shape[0] != shape[0]:
        return None
    if x.home == last(rank) and x.shape[1] == shape[1]:
        order = last(wide)
        form = ctx.reshaped(x.form(x.home), [shape[axis] for axis in order])
        return Tensor(shape, {order: form})
    spatial = max(
        (m for m in range(1, rank - 1) if x.home[1 : 1 + m] == tuple(range(rank - m, rank))),
        default=0,
    )
    if not spatial or spatial > wide - 2 or x.shape[-spatial:] != shape[-spatial:]:
        return None
    before, after = ((0, *range(n - spatial, n), *range(1, n - spatial)) for n in (rank, wide))
    form = ctx.reshaped(x.form(before), [shape[axis] for axis in after])
    return Tensor(shape, {after: form})


def _axes_operand(ctx: Context) -> list[int] | None:
    given = ctx.attr("axes")
    if given is None and ctx.has(1):
        given = ctx.ints(1)
    return None if given is None else [int(a) for a in given]


def _squeeze(ctx: Context) -> Result:
    shape = ctx.shape(0)
    axes = ctx.axes(1, len(shape))
    gone = [i for i, d in enumerate(shape) if d == 1] if axes is None else axes
    if any(shape[a] != 1 for a in gone):
        raise Refused(f"axes {gone} of {len(shape)} are not all of size 1")
    x = ctx.value(0)
    kept = [d for i, d in enumerate(shape) if i not in gone]
    if not isinstance(x, Tensor):
        return ctx.reshape(0, kept)
    order = x.home
    tensor = tf.squeeze(x.form(order), [order.index(a) for a in gone]) if gone else x.form(order)
    return ctx.result(tensor, without(order, gone), kept)


def without(order: Order, gone: Sequence[int]) -> Order:
    """Returns an order of axes of which some are gone."""
    left = [axis for axis in order if axis not in gone]
    return tuple(sorted(left).index(axis) for axis in left)


def _unsqueeze(ctx: Context) -> Result:
    shape = list(ctx.shape(0))
    axes = _axes_operand(ctx) or []
    rank = len(shape) + len(axes)
    for axis in sorted(axis_of(a, rank) for a in axes):
        shape.insert(axis, 1)
    return ctx.reshape(0, shape)


def _transpose(ctx: Context) -> Result:
    rank = ctx.rank(0)
    perm = [int(p) for p in ctx.attr("perm") or range(rank)[::-1]]
    if sorted(perm) != list(range(rank)):
        raise Refused(f"perm={perm} of a tensor with {rank} axes")
    x = ctx.value(0)
    if isinstance(x, Known):
        return x.view(("transpose", *perm), lambda a: a.transpose(perm))
    return x.transposed(perm) if isinstance(x, Tensor) else x


def _concat(ctx: Context) -> Result:
    values = [ctx.value(i) for i in range(len(ctx.args))]
    rank = len(shape_of(values[0]))
    axis = axis_of(int(ctx.attr("axis", 1)), rank)
    order = common_order(values, rank)
    parts = [ctx.formed(v, order) for v in values]
    return ctx.result(tf.concat(parts, order.index(axis)), order)


def _split(ctx: Context) -> Result:
    shape, count = ctx.shape(0), len(ctx.node.outputs)
    axis = ctx.axis(len(shape))
    sizes = ctx.attr("split") or (ctx.ints(1) if ctx.has(1) else None)
    into: int | list[int] = count
    if sizes is None and is_open(shape[axis]):
        total = whole(shape[axis], "the size of what is split")
        if total // count * count != total:
            divisible(total, count)
            raise Refused(f"{count} equal parts of an axis of {total!s}")
    elif sizes is None:
        total = fixed(shape[axis], "the size of what is split")
        one = -(-total // count)
        into = [min(one, total - i * one) for i in range(count)]
    else:
        into = [int(size) for size in sizes]
    order = ctx.order(0)
    parts = tf.split(ctx.form(0, order), into, order.index(axis))
    return [ctx.result(part, order) for part in parts]


def _slice(ctx: Context) -> Result:
    order = ctx.order(0)
    x = ctx.form(0, order)
    places = slices(ctx, ctx.rank(0))
    return ctx.result(x[tuple(_in_32_bits(ctx, places[axis]) for axis in order)], order)


def _in_32_bits(ctx: Context, part: slice) -> slice:
    def bound(at: Any) -> Any:
        if is_variable(at):
            return ctx.session.symbol(_scalar(at))
        return None if at is None or at >= NO_END else max(at, -(1 << 31))

    return slice(bound(part.start), bound(part.stop), part.step)


def _expand(ctx: Context) -> Result:
    alike = constant_of_all(ctx)
    if alike is not None:
        return alike
    shape, target = ctx.shape(0), list(ctx.dims(1).ravel())
    rank = max(len(shape), len(target))
    have = (1,) * (rank - len(shape)) + tuple(shape)
    wanted = [1] * (rank - len(target)) + target
    full = [h if w == 1 or w == h else w for h, w in zip(have, wanted, strict=True)]
    apart = [(h, f) for h, f in zip(have, full, strict=True) if h not in (1, f)]
    if apart:
        differ(*apart[0])
        raise Refused(f"shapes {shape} and {target} don't broadcast")
    if list(have) == full:
        return ctx.reshape(0, full) if rank > len(shape) else ctx.value(0)
    dims = ctx.session.symbol(_vector(bounded(full)))
    x = ctx.value(0)
    if not isinstance(x, Tensor) or rank > len(shape) or x.home == stated(rank):
        return ctx.result(tf.broadcast_to(ctx.form(0), dims), None, full)
    moved = ctx.session.symbol(_vector([full[axis] for axis in x.home]))
    y = tf.broadcast_to(x.form(x.home), moved)
    return ctx.result(y, x.home, full)


def _vector(dims: Sequence[Dim]) -> Symbol:
    array = np.empty(len(dims), object)
    array[:] = list(dims)
    return Symbol(array, "int32")


def _scalar(dim: Dim) -> Symbol:
    array = np.empty((), object)
    array[()] = dim
    return Symbol(array, "int32")


def _tile(ctx: Context) -> Result:
    shape, counts = ctx.shape(0), ctx.dims(1).ravel()
    full: list[Dim] = []
    for dim, count in zip(shape, counts, strict=True):
        both = isinstance(dim, Batch) and isinstance(count, Batch)
        if both or (isinstance(dim, Batch) and count < 1):
            raise Refused("the batch is repeated")
        full.append(product([dim, count]))
    bounded(full)
    if any(isinstance(c, Batch) for c in counts):
        if any(c != 1 and d != 1 for c, d in zip(counts, shape, strict=True)):
            raise Refused("a tensor is repeated as often as the batch size says")
        return ctx.result(
            tf.broadcast_to(ctx.form(0), ctx.session.symbol(_vector(full))), None, full
        )
    order = ctx.order(0)
    if any(map(is_open, counts)):
        times = ctx.session.symbol(_vector([counts[axis] for axis in order]))
    else:
        times = [int(counts[axis]) for axis in order]
    tiled = tf.tile(ctx.form(0, order), times)
    return ctx.result(tiled, order, full)


def _pad(ctx: Context) -> Result:
    rank = ctx.rank(0)
    mode = ctx.text("mode", "constant", ["constant", "reflect", "edge", "wrap"])
    old = ctx.node.version < 11
    if not old and isinstance(ctx.value(1), Symbol):
        return _padded_by_sizes(ctx, mode)
    flat = [int(p) for p in ctx.attr("pads", [])] if old else ctx.ints(1)
    axes = [axis_of(a, rank) for a in ctx.ints(3)] if ctx.has(3) else list(range(rank))
    if len(flat) != 2 * len(axes):
        raise Refused(f"pads {flat} for {len(axes)} axes")
    pads = [(0, 0)] * rank
    for axis, before, after in zip(axes, flat[: len(axes)], flat[len(axes) :], strict=True):
        pads[axis] = (before, after)
    order = ctx.order(0)
    x = ctx.form(0, order)
    ordered = [pads[axis] for axis in order]
    x = x[tuple(slice(max(0, -b), -max(0, -a) or None) for b, a in ordered)]
    grown = [[max(0, b), max(0, a)] for b, a in ordered]
    if not any(any(p) for p in grown):
        return ctx.result(x, order)
    if mode == "constant":
        value = float(ctx.attr("value", 0.0)) if old else 0.0
        if ctx.has(2) and isinstance(ctx.value(2), Tensor):
            inside = np.pad(np.ones(x.shape.as_list(), bool), grown)
            around = tf.reshape(ctx.form(2), [])
            return ctx.result(tf.where(inside, tf.pad(x, grown), around), order)
        if ctx.has(2):
            value = ctx.array(2).ravel()[0]
        return ctx.result(tf.pad(x, grown, constant_values=tf.cast(value, x.dtype)), order)
    if mode == "reflect":
        return ctx.result(tf.pad(x, grown, mode="REFLECT"), order)
    return ctx.result(_edges(x, grown, mode == "wrap"), order)


def _padded_by_sizes(ctx: Context, mode: str) -> Result:
    """Pads by numbers that open dimensions decide."""
    if mode != "constant" or ctx.has(3):
        raise Refused(f"pads that depend on an open dimension, in mode {mode} or with axes")
    ends = ctx.dims(1).reshape(2, -1)
    value = ctx.array(2).ravel()[0] if ctx.has(2) else 0
    x = ctx.form(0)
    amounts = ctx.session.symbol(Symbol(ends.T, "int32"))
    y = tf.pad(x, amounts, constant_values=tf.cast(value, x.dtype))
    pairs = zip(ctx.shape(0), ends.sum(axis=0), strict=True)
    sizes = [d if isinstance(d, Batch) else d + more for d, more in pairs]
    return ctx.result(y, None, sizes)


def _edges(x: Any, pads: Sequence[Sequence[int]], wrap: bool) -> Any:
    """Returns a tensor whose edges are repeated, or that goes on from the other side."""
    for axis, (before, after) in enumerate(pads):
        if before or after:
            size = x.shape[axis]
            if size is None:
                raise Refused("the batch is padded")
            places = np.arange(-before, size + after)
            places = places % size if wrap else np.clip(places, 0, size - 1)
            x = tf.gather(x, places, axis=axis)
    return x


def _constant(ctx: Context) -> Result:
    for name in ("value", "value_float", "value_int", "value_floats", "value_ints"):
        value = ctx.attr(name)
        if value is not None:
            if name != "value":
                value = np.asarray(value, np.float32 if "float" in name else np.int64)
            return Known(value, ctx.node.outputs[0])
    raise Refused("a constant of strings or sparse elements")


def _constant_of_shape(ctx: Context) -> Result:
    value = ctx.attr("value")
    value = np.zeros(1, np.float32) if value is None else value
    dims = bounded(list(ctx.dims(0).ravel()))
    if not any(map(is_variable, dims)):
        return Known(np.full([int(d) for d in dims if isinstance(d, int)], value.ravel()[0]))
    filled = tf.fill(ctx.session.symbol(_vector(dims)), value.ravel()[0])
    return ctx.result(filled, None, dims)


def _range(ctx: Context) -> Result:
    ends = [sizes_of(ctx.value(i)) for i in range(2)]
    if any(is_open(end.dims.item()) for end in ends if end is not None):
        return _open_range(ctx)
    if isinstance(ctx.value(1), Symbol):
        return counted(ctx.array(0).ravel()[0], ctx.dims(1).ravel()[0], ctx.array(2).ravel()[0])
    start, limit, step = (ctx.array(i).ravel()[0] for i in range(3))
    bounded([max(0, int(np.ceil((limit - start) / step)))])
    return Known(np.arange(start, limit, step, dtype=start.dtype))


def _open_range(ctx: Context) -> Result:
    """Returns a range whose length calls decide."""
    found = [sizes_of(ctx.value(i)) for i in range(2)]
    start, limit = (_end(ctx, i) if end is None else end.dims.item() for i, end in enumerate(found))
    step = _end(ctx, 2)
    if isinstance(start, Batch) or isinstance(limit, Batch) or step < 1:
        raise Refused(f"a range from {start!s} to {limit!s} in steps of {step}")
    begin, end = (ctx.session.symbol(_scalar(d)) for d in (start, limit))
    if is_open(start):  # The conversion counts from numbers only.
        numbers = tf.range(end)[begin::step]
    else:
        numbers = tf.range(begin, end, tf.constant(step, tf.int32))
    return ctx.result(tf.cast(numbers, ctx.value(1).dtype), None, [-((start - limit) // step)])


def _end(ctx: Context, index: int) -> int:
    """Returns a constant of a range whose length calls decide."""
    number = ctx.array(index).item()
    if number != int(number):
        raise Refused(f"a range of open length with {number}")
    return int(number)


def _places(ctx: Context, dim: Dim) -> Any:
    """Returns the numbers of the places of an axis."""
    size = whole(dim, "the size of a matrix")
    if is_open(size):
        return tf.range(ctx.session.symbol(_scalar(size)))
    return np.arange(size)


def _trilu(ctx: Context) -> Result:
    rows, columns = (_places(ctx, d) for d in ctx.shape(0)[-2:])
    upper = bool(ctx.attr("upper", 1))
    # How far each element is right of the diagonal.
    place = columns - rows[:, None]
    kept: Any
    if ctx.has(1) and not isinstance(ctx.value(1), Known):
        offset = tf.cast(tf.reshape(ctx.form(1), []), tf.int64)
        place = tf.cast(place, tf.int64)
        kept = place >= offset if upper else place <= offset
    else:
        k = ctx.ints(1)[0] if ctx.has(1) else 0
        kept = place >= k if upper else place <= k
    x = ctx.form(0)
    return ctx.result(tf.where(kept, x, tf.zeros([], x.dtype)))


def _eye_like(ctx: Context) -> Result:
    rows, columns = (whole(d, "the size of a matrix") for d in ctx.shape(0))
    dtype = dtype_of(ctx.attr("dtype")) if ctx.attr("dtype") else ctx.value(0).dtype
    if is_open(rows) or is_open(columns):
        sizes = ctx.session.symbol(Symbol(objects(np.array([rows, columns], object))))
        places = tf.range(sizes[1])[None] - tf.range(sizes[0])[:, None]
        return ctx.result(tf.cast(tf.equal(places, int(ctx.attr("k", 0))), dtype))
    return Known(np.eye(rows, columns, ctx.attr("k", 0), dtype=dtype))


def _shape(ctx: Context) -> Result:
    raise Refused("the shape of a tensor")


OPS: Mapping[str, Handler] = {
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Expand": _expand,
    "EyeLike": _eye_like,
    "Flatten": _flatten,
    "Pad": _pad,
    "Range": _range,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": _shape,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Trilu": _trilu,
    "Unsqueeze": _unsqueeze,
}
