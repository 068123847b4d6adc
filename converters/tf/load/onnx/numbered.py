"""Indices that exporters compute from the numbers of the examples: strides, and pairs of places."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array, Batch, Dim
from converters.tf.ir.symbolic import complete, of_shape, product
from converters.tf.load.onnx.context import Context, Handler, axis_of, fixed, reshaped
from converters.tf.load.onnx.file import dtype_of
from converters.tf.load.onnx.values import Known, Numbered, Tensor, Value, shape_of
from converters.tf.load.saved_model.replay import Refused


def counted(start: Array, limit: Dim, step: Array) -> Numbered:
    """Returns a range up to a multiple of the batch size: a number for each example.

    Raises:
        Refused: It has another number of elements than the batch.
    """
    whole = start.dtype.kind in "iu" and step.dtype.kind in "iu" and start == 0
    if not whole or not isinstance(limit, Batch) or int(step) != limit.scale:
        raise Refused(f"a range from {start} to {limit} in steps of {step}")
    return Numbered(step.reshape(1), start.reshape(1), 0)


def spread(ctx: Context, value: Numbered) -> Tensor:
    """Returns numbers as a tensor.

    Raises:
        Refused: They are not the same for every example.
    """
    if value.scale is None or np.any(value.scale):
        raise Refused("the numbers of batch elements, but as indices of the elements")
    shape = ctx.session.symbol(of_shape(value.shape))
    return ctx.result(tf.broadcast_to(tf.constant(value.offset), shape), None, value.shape)


def _operands(ctx: Context) -> list[Numbered]:
    """Returns operands that broadcast, with as many axes as the widest."""
    rank = max(len(shape_of(v)) for v in ctx.args if v is not None)
    axes = {v.axis + rank - v.offset.ndim for v in ctx.args if isinstance(v, Numbered)}
    if len(axes) != 1:
        raise Refused("numbers of examples along different axes")
    axis = axes.pop()
    found = []
    for value in ctx.args:
        if isinstance(value, Numbered):
            lead = (1,) * (rank - value.offset.ndim)
            scale = None if value.scale is None else value.scale.reshape(lead + value.scale.shape)
            found.append(Numbered(scale, value.offset.reshape(lead + value.offset.shape), axis))
        elif isinstance(value, Known) and value.data.dtype.kind in "iu":
            data = value.data.reshape((1,) * (rank - value.rank) + value.data.shape)
            if data.shape[axis] != 1:
                raise Refused("numbers of examples with others along the batch")
            found.append(Numbered(np.zeros_like(data), data, axis))
        else:
            raise Refused("numbers of examples with others that are computed")
    return found


def _sum(sign: int) -> Handler:
    def handler(ctx: Context) -> Value:
        a, b = _operands(ctx)
        offset = a.offset + sign * b.offset
        if a.scale is None or b.scale is None:
            return Numbered(None, offset, a.axis)
        return Numbered(a.scale + sign * b.scale, offset, a.axis)

    return handler


def _product(ctx: Context) -> Value:
    a, b = _operands(ctx)
    offset = a.offset * b.offset
    if a.scale is None or b.scale is None or (np.any(a.scale) and np.any(b.scale)):
        return Numbered(None, offset, a.axis)
    return Numbered(a.scale * b.offset + b.scale * a.offset, offset, a.axis)


def _shape_alone(ctx: Context) -> Value:
    """Exporters ask for the largest of indices to know what shape they broadcast to."""
    values = _operands(ctx)
    shape = np.broadcast_shapes(*(v.offset.shape for v in values))
    return Numbered(None, np.zeros(shape, values[0].offset.dtype), values[0].axis)


def _changed(value: Numbered, change: Callable[[Array], Array], axis: int) -> Numbered:
    scale = None if value.scale is None else change(value.scale)
    return Numbered(scale, change(value.offset), axis)


def _first(ctx: Context) -> Numbered | None:
    value = ctx.value(0)
    return value if isinstance(value, Numbered) else None


def _same(ctx: Context) -> Value | None:
    return _first(ctx)


def _cast(ctx: Context) -> Value | None:
    value, dtype = _first(ctx), dtype_of(ctx.attr("to"))
    if value is None or np.dtype(dtype).kind not in "iu":
        return None
    return _changed(value, lambda a: a.astype(dtype), value.axis)


def _reshaped(ctx: Context, target: list[Dim]) -> Value | None:
    """Returns numbers in another shape, the batch where no element is before it."""
    value = _first(ctx)
    if value is None:
        return None
    shape = complete(tuple(target), product(value.shape))
    axis = next((i for i, d in enumerate(shape) if isinstance(d, Batch)), 0)
    before = (math.prod(value.offset.shape[: value.axis]), math.prod(map(_size, shape[:axis])))
    if before[0] != before[1]:
        raise Refused("numbers of examples in another order")
    return _changed(value, lambda a: a.reshape([_size(d) for d in shape]), axis)


def _size(dim: Dim) -> int:
    return dim.scale if isinstance(dim, Batch) else int(dim)


def _reshape(ctx: Context) -> Value | None:
    shape = ctx.shape(0)
    return _reshaped(ctx, [shape[i] if d == 0 else d for i, d in enumerate(ctx.dims(1).ravel())])


def _unsqueeze(ctx: Context) -> Value | None:
    given = ctx.attr("axes") if ctx.attr("axes") is not None else ctx.ints(1)
    shape = list(ctx.shape(0))
    rank = len(shape) + len(given)
    for axis in sorted(axis_of(int(a), rank) for a in given):
        shape.insert(axis, 1)
    return _reshaped(ctx, shape)


def _expand(ctx: Context) -> Value | None:
    value, target = _first(ctx), list(ctx.dims(1).ravel())
    if value is None:
        return None
    rank = max(value.offset.ndim, len(target))
    lead = rank - value.offset.ndim
    sizes = [1] * (rank - len(target)) + [_size(d) for d in target]
    full = np.broadcast_shapes(tuple(sizes), (1,) * lead + value.offset.shape)
    return _changed(value, lambda a: np.broadcast_to(a, full), value.axis + lead)


def _concat(ctx: Context) -> Value | None:
    """Of indices, side by side; what is the same for every example is one, too."""
    values = [v for v in ctx.args if isinstance(v, Numbered)]
    rank = values[0].offset.ndim
    axis = axis_of(int(ctx.attr("axis")), rank)
    if len(values) != len(ctx.args) or axis == values[0].axis:
        return None
    if len({v.axis for v in values}) > 1 or any(v.scale is None for v in values):
        return None
    scale = np.concatenate([v.scale for v in values if v.scale is not None], axis)
    return Numbered(scale, np.concatenate([v.offset for v in values], axis), values[0].axis)


def _taken(ctx: Context, x: Tensor, places: Array, width: int, index: Numbered) -> Tensor:
    """Returns elements of every example.

    Args:
        ctx: The node.
        x: A tensor whose first axes are the batch and `width` elements of each example.
        places: Which of them, in the shape of the indices without the batch.
        width: How many an example has.
        index: The indices.
    """
    rest = list(x.shape)
    count: Dim = 1
    while rest and count != Batch(width):
        count = product([count, rest.pop(0)])
    if np.any((places < -width) | (places >= width)):
        raise Refused("elements of other examples")
    places = np.where(places < 0, places + width, places)
    after = [*places.shape, *rest]
    if np.array_equal(places.ravel(), np.arange(width)):
        y = reshaped(x.form(), [Batch(), *after])
    else:
        wide = reshaped(x.form(), [Batch(), width, *rest])
        y = tf.gather(wide, places.astype(np.int64), axis=1)
    found = ctx.result(y, None, [Batch(), *after])
    order = [*range(1, index.axis + 1), 0, *range(index.axis + 1, found.rank)]
    return found.transposed(order) if index.axis else found


def _without_batch(index: Numbered, values: Array) -> Array:
    return np.squeeze(values, index.axis)


def _gather(ctx: Context) -> Value | None:
    """Takes elements of a tensor that holds those of all examples one after the other."""
    x, index = ctx.value(0), ctx.value(1)
    if not isinstance(index, Numbered) or not isinstance(x, Tensor):
        return None
    if ctx.axis(x.rank) or not isinstance(x.shape[0], Batch):
        return None
    width = x.shape[0].scale
    if index.scale is None or np.any(index.scale != width):
        raise Refused("elements of other examples")
    return _taken(ctx, x, _without_batch(index, index.offset), width, index)


def _gather_nd(ctx: Context) -> Value | None:
    """Takes elements of each example by the example's number and places in it."""
    x, index = ctx.value(0), ctx.value(1)
    if isinstance(x, Numbered):
        x = spread(ctx, x)
    if not isinstance(index, Numbered) or not isinstance(x, Tensor) or ctx.attr("batch_dims", 0):
        return None
    if index.scale is None or x.shape[:1] != (Batch(),):
        return None
    scale, offset = (_without_batch(index, a) for a in (index.scale, index.offset))
    own = np.all(scale[..., 0] == 1) and not np.any(offset[..., 0])
    if index.axis == index.offset.ndim - 1 or not own or np.any(scale[..., 1:]):
        raise Refused("elements of other examples")
    sizes = [fixed(d, "a size") for d in x.shape[1 : offset.shape[-1]]]
    places = np.zeros(offset.shape[:-1], np.int64)
    for column, size in enumerate(sizes):
        at = offset[..., column + 1]
        if np.any((at < -size) | (at >= size)):
            raise Refused(f"a place that is none of {size}")
        places = places * size + np.where(at < 0, at + size, at)
    return _taken(ctx, x, places, math.prod(sizes), index)


def constant_of_all(ctx: Context) -> Value | None:
    """Returns a constant of integers that is repeated for every example, as numbers."""
    value, target = ctx.value(0), list(ctx.dims(1).ravel())
    axes = [i for i, d in enumerate(target) if d == Batch()]
    if not isinstance(value, Known) or value.dtype not in ("int32", "int64") or len(axes) != 1:
        return None
    if len(target) < value.rank or any(isinstance(d, Batch) and d != Batch() for d in target):
        return None
    data = value.data.reshape((1,) * (len(target) - value.rank) + value.data.shape)
    if data.shape[axes[0]] != 1:
        return None
    full = np.broadcast_to(data, np.broadcast_shapes(data.shape, tuple(map(_size, target))))
    return Numbered(np.zeros_like(full), full, axes[0])


OPS: Mapping[str, Callable[[Context], Value | None]] = {
    "Add": _sum(1),
    "Cast": _cast,
    "Concat": _concat,
    "Expand": _expand,
    "Gather": _gather,
    "GatherND": _gather_nd,
    "Identity": _same,
    "Max": _shape_alone,
    "Min": _shape_alone,
    "Mul": _product,
    "Reshape": _reshape,
    "Sub": _sum(-1),
    "Unsqueeze": _unsqueeze,
}
