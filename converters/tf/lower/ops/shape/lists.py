"""Lists of tensors of one shape: what loops and `TensorArray` read and write."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from converters.tf import ir
from converters.tf.ir.build import Builder, static
from converters.tf.ir.symbolic import Symbol
from converters.tf.lower.graph import POISON, Context, Handler, Result, Unsupported, element_type
from converters.tf.lower.ops.index.scatter import scatter
from converters.tf.lower.ops.math.elementwise import simplified
from converters.tf.lower.tensors import TensorList

SET = "TensorListSetItem"
# Says that a list grows if it is written past its end.
RESIZE = "resize_if_index_out_of_bounds"
GROWS = "a list that grows to a length that is not known"
_LENGTH = "the length of a list"


def lengthened(build: Builder, known: TensorList, length: int) -> TensorList:
    """Returns a list with zeros at its end if it is shorter."""
    before = static(known.length, _LENGTH)
    length = max(before, length)
    if known.stacked is None or length == before:
        return replace(known, length=length)
    rest = (length - before, *known.stacked.shape[1:])
    zeros = build.broadcast_to(build.scalar(0, known.dtype), rest)
    parts = [known.stacked, zeros] if before else [zeros]
    return replace(known, stacked=build.concat(parts, 0), length=length)


def _shape_hint(ctx: Context, index: int) -> ir.Shape | None:
    """Returns the shape of a list's elements if it is known immediately."""
    try:
        dims = ctx.dims(index).ravel()
    except Unsupported:
        return None
    if any(d == -1 for d in dims):
        return None
    return tuple(dims) if dims.size else None


def _reserve(ctx: Context) -> Result:
    dtype = element_type(ctx.attr("element_dtype"))
    (length,) = ctx.dims(1).ravel()
    return TensorList(None, length, dtype, _shape_hint(ctx, 0))


def _from_tensor(ctx: Context) -> Result:
    x = ctx.value(0)
    return TensorList(x, x.shape[0], x.dtype, x.shape[1:])


def _list(ctx: Context) -> TensorList:
    arg = ctx.args[0]
    if not isinstance(arg, TensorList):
        raise Unsupported("a list that is not a list of tensors")
    return arg


def _reached(ctx: Context, known: TensorList) -> ir.Value:
    """Returns the place that is read or written; one element per example is that of its own."""
    index = ctx.value(1)
    if isinstance(known.length, ir.Batch) and (known.own is None or index is not known.own):
        raise Unsupported("batch elements are taken by index")
    return index


def _stack(ctx: Context) -> Result:
    known = _list(ctx)
    if known.stacked is None:
        if known.shape is None:
            raise Unsupported("a list of tensors of unknown shape")
        return ctx.build.broadcast_to(
            ctx.build.scalar(0, known.dtype), (known.length, *known.shape)
        )
    return known.stacked


def _get(ctx: Context) -> Result:
    known = _list(ctx)
    if known.stacked is None:
        if known.shape is None:
            return POISON
        return ctx.build.broadcast_to(ctx.build.scalar(0, known.dtype), known.shape)
    index = _reached(ctx, known)
    if known.own is not None:
        return ctx.build.emit(ir.Gather(0), [known.stacked, index], known.stacked.shape[1:])
    if index.data is not None:
        part = ctx.build.part(known.stacked, 0, int(index.data), 1)
        return ctx.build.reshape(part, known.stacked.shape[1:])
    return ctx.build.gather(known.stacked, index, 0)


def _set(ctx: Context) -> Result:
    known, item = _list(ctx), ctx.value(2)
    index = _reached(ctx, known)
    if known.own is not None and any(isinstance(d, ir.Batch) for d in item.shape):
        raise Unsupported("an example is computed from all elements of the batch")
    if ctx.attr(RESIZE) and not known.grows:
        if index.data is None:
            raise Unsupported(GROWS)
        known = lengthened(ctx.build, known, int(index.data) + 1)
    if known.stacked is None and known.shape is None and ctx.low.probing:
        return replace(known, shape=item.shape)
    stacked = known.stacked
    if stacked is None:
        zero = ctx.build.scalar(0, known.dtype)
        stacked = ctx.build.broadcast_to(zero, (known.length, *item.shape))
    index = ctx.build.cast(index, ir.DType.I32)
    stacked = ctx.build.emit(ir.Update(), [stacked, index, item], stacked.shape)
    return replace(known, stacked=stacked, shape=item.shape)


def _empty(ctx: Context) -> Result:
    return TensorList(None, 0, element_type(ctx.attr("element_dtype")), _shape_hint(ctx, 0))


def _stacked(build: Builder, known: TensorList) -> ir.Value:
    """Returns the elements of a list whose length does not depend on the batch."""
    length = static(known.length, _LENGTH)
    if known.stacked is not None:
        return known.stacked
    if known.shape is None:
        raise Unsupported("a list of tensors of unknown shape")
    return build.broadcast_to(build.scalar(0, known.dtype), (length, *known.shape))


def _push(ctx: Context) -> Result:
    known, item, build = _list(ctx), ctx.value(1), ctx.build
    stacked = build.reshape(item, (1, *item.shape))
    if known.length != 0:
        stacked = build.concat([_stacked(build, known), stacked], 0)
    length = static(known.length, _LENGTH) + 1
    return TensorList(stacked, length, known.dtype, item.shape, known.grows)


def _pop(ctx: Context) -> Result:
    known, build = _list(ctx), ctx.build
    rest = static(known.length, _LENGTH) - 1
    if rest < 0:
        raise Unsupported("the last element of an empty list is taken")
    stacked = _stacked(build, known)
    last = build.reshape(build.part(stacked, 0, rest, 1), stacked.shape[1:])
    kept = build.part(stacked, 0, 0, rest) if rest else None
    return replace(known, stacked=kept, length=rest, shape=stacked.shape[1:]), last


def _gather(ctx: Context) -> Result:
    known = _list(ctx)
    return ctx.build.gather(_stacked(ctx.build, known), ctx.value(1), 0)


def _written(build: Builder, stacked: ir.Value, indices: ir.Value, items: ir.Value) -> ir.Value:
    places = build.reshape(indices, (*indices.shape, 1))
    return scatter(build, ir.ScatterKind.UPDATE, stacked, places, items)


def _scatter(ctx: Context) -> Result:
    items, indices, build = ctx.value(0), ctx.value(1), ctx.build
    length = ctx.integer(3) if len(ctx.args) > 3 else -1
    if length < 0:
        length = max(ctx.ints(1), default=-1) + 1
    zeros = build.broadcast_to(build.scalar(0, items.dtype), (length, *items.shape[1:]))
    stacked = _written(build, zeros, indices, items)
    return TensorList(stacked, length, items.dtype, items.shape[1:])


def _scatter_into(ctx: Context) -> Result:
    known, items, build = _list(ctx), ctx.value(1), ctx.build
    shape = items.shape[1:]
    stacked = _stacked(build, replace(known, shape=shape))
    stacked = _written(build, stacked, ctx.value(2), items)
    return replace(known, stacked=stacked, shape=shape)


def _concat(ctx: Context) -> Result:
    stacked = _stacked(ctx.build, _list(ctx))
    count, *rest = stacked.shape
    rows = static(rest[0], "tensors are joined along the batch: their length")
    lengths = np.full((static(count, _LENGTH),), rows, np.int64)
    whole = ctx.build.reshape(stacked, (rows * len(lengths), *rest[1:]))
    return whole, ir.constant(lengths)


def _length(ctx: Context) -> Result:
    if _list(ctx).grows:
        raise Unsupported("a loop asks how long the list is that it writes")
    length = np.empty((), object)
    length[()] = _list(ctx).length
    return simplified(Symbol(length, "int32"))


def _element_shape(ctx: Context) -> Result:
    known = _list(ctx)
    if known.shape is None:
        raise Unsupported("a list of tensors of unknown shape")
    dims = np.empty(len(known.shape), object)
    dims[:] = known.shape
    return Symbol(dims, ctx.attr("shape_type", "int32"))


OPS: dict[str, Handler] = {
    "EmptyTensorList": _empty,
    "TensorListConcatV2": _concat,
    "TensorListGather": _gather,
    "TensorListPopBack": _pop,
    "TensorListPushBack": _push,
    "TensorListScatter": _scatter,
    "TensorListScatterIntoExistingList": _scatter_into,
    "TensorListScatterV2": _scatter,
    "TensorListReserve": _reserve,
    "TensorListFromTensor": _from_tensor,
    "TensorListStack": _stack,
    "TensorListGetItem": _get,
    SET: _set,
    "TensorListLength": _length,
    "TensorListElementShape": _element_shape,
}
