"""Ops that take elements by index, and ops that move blocks of pixels."""

from __future__ import annotations

import math

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind
from converters.tf.ir.build import static, whole
from converters.tf.ir.symbolic import Symbol, divide, multiply, product
from converters.tf.lower.graph import Context, Handler, Result, Unsupported
from converters.tf.lower.ops.control import examples
from converters.tf.lower.ops.image.windows import dilated
from converters.tf.lower.ops.math.elementwise import simplified
from converters.tf.lower.tensors import Numbered, Rows, Spread


def _gather(ctx: Context) -> Result:
    versioned = len(ctx.args) > 2
    arg = ctx.args[0]
    if isinstance(arg, Symbol):
        axis = ctx.integer(2) if versioned else 0
        return simplified(Symbol(np.asarray(np.take(arg.dims, ctx.array(1), axis)), arg.dtype))
    places = ctx.args[1]
    if isinstance(places, Rows):
        return examples.gather(ctx, places)
    params, indices = ctx.value(0), ctx.value(1)
    axis = ctx.axis(2, params.rank) if versioned else 0
    batch_dims = ctx.attr("batch_dims", 0) % (indices.rank + 1)
    if isinstance(params.shape[axis], ir.Batch):
        raise Unsupported("batch elements are taken by index")
    if indices.data is not None and batch_dims == 0 and indices.rank <= 1:
        return taken(ctx, params, indices.data, axis)
    if indices.dtype not in (ir.DType.I32, ir.DType.I64):
        indices = ctx.build.cast(indices, ir.DType.I32)
    return ctx.build.gather(params, indices, axis, batch_dims)


def taken(ctx: Context, x: ir.Value, indices: ir.Array, axis: int) -> ir.Value:
    """Takes known places; evenly spaced ones are a slice."""
    places = np.ravel(indices)
    size = static(x.shape[axis], "the axis")
    places = np.where(places < 0, places + size, places)
    if places.size and (places.min() < 0 or places.max() >= size):
        raise Unsupported(f"an index of {places.tolist()} outside of an axis of {size}")
    steps = np.unique(np.diff(places))
    rest = (*x.shape[:axis], *np.shape(indices), *x.shape[axis + 1 :])
    if places.size and steps.size <= 1 and 0 not in steps:
        begin = [whole(places[0]) if i == axis else 0 for i in range(x.rank)]
        step = int(steps[0]) if steps.size else 1
        strides = [step if i == axis else 1 for i in range(x.rank)]
        counts = [int(places.size) if i == axis else d for i, d in enumerate(x.shape)]
        return ctx.build.reshape(ctx.build.slice(x, begin, counts, strides), rest)
    return ctx.build.gather(x, ir.constant(np.asarray(indices)), axis)


def _gather_nd(ctx: Context) -> Result:
    params, lead = ctx.value(0), ctx.attr("batch_dims", 0)
    places = ctx.args[1]
    if isinstance(places, Numbered) and lead == 0:
        indices, lead = places.rest, 1
    else:
        indices = ctx.value(1)
    depth = static(indices.shape[-1], "the depth of an index")
    sizes = [static(d, "an axis that is indexed") for d in params.shape[lead : lead + depth]]
    b = ctx.build
    place = None
    for axis, size in enumerate(sizes):
        number = b.reshape(b.part(indices, indices.rank - 1, axis, 1), indices.shape[:-1])
        if depth > 1:
            # A table of places says which index is outside of its own axis.
            stride = b.length(math.prod(sizes[axis + 1 :]), indices.dtype)
            table = b.binary(BinaryKind.MUL, b.numbers(size, indices.dtype), stride)
            number = b.gather(table, number, 0)
        place = number if place is None else b.binary(BinaryKind.ADD, place, number)
    if place is None:
        inner = indices.shape[lead:-1]
        whole = (*params.shape[:lead], *(1 for _ in inner), *params.shape[lead:])
        wide = (*params.shape[:lead], *inner, *params.shape[lead:])
        return b.broadcast_to(b.reshape(params, whole), wide)
    shape = (*params.shape[:lead], math.prod(sizes), *params.shape[lead + depth :])
    return b.gather(b.reshape(params, shape), place, lead, lead)


def _one_hot(ctx: Context) -> Result:
    indices, depth = ctx.value(0), static(ctx.dims(1).item(), "the number of classes")
    on, off = ctx.array(2), ctx.array(3)
    axis = ctx.attr("axis", -1)
    axis = indices.rank if axis == -1 else axis
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])
    if indices.dtype not in (ir.DType.I32, ir.DType.I64):
        indices = ctx.build.cast(indices, ir.DType.I32)
    op = ir.OneHot(axis, float(on), float(off))
    return ctx.build.emit(op, [indices], shape, ctx.dtype("T"))


def _depth_to_space(ctx: Context) -> Result:
    x, block = ctx.value(0), ctx.attr("block_size")
    if ctx.attr("data_format", "NHWC") != "NHWC":
        raise Unsupported(f"data format {ctx.attr('data_format')}")
    n, h, w, c = x.shape
    b = ctx.build
    if ctx.node.op == "DepthToSpace":
        rest = divide(c, block * block)
        x = b.reshape(x, (n, h, w, block, block, rest))
        x = b.transpose(x, [0, 1, 3, 2, 4, 5])
        return b.reshape(x, (n, multiply(h, block), multiply(w, block), rest))
    h, w = divide(h, block), divide(w, block)
    x = b.transpose(b.reshape(x, (n, h, block, w, block, c)), [0, 1, 3, 2, 4, 5])
    return b.reshape(x, (n, h, w, multiply(c, block * block)))


def _space_to_batch(ctx: Context) -> Result:
    x = ctx.value(0)
    blocks = ctx.ints(1)
    pairs = [(p, q) for p, q in ctx.dims(2)]
    m, b = len(blocks), ctx.build
    source = x
    x = b.pad(x, [(0, 0), *pairs, *[(0, 0)] * (x.rank - 1 - m)])
    outer = [divide(d, s) for d, s in zip(x.shape[1:], blocks, strict=False)]
    split = [v for pair in zip(outer, blocks, strict=True) for v in pair]
    rest = x.shape[1 + m :]
    batch = x.shape[0]
    x = b.reshape(x, (batch, *split, *rest))
    order = [*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m, 2), *range(2 * m + 1, x.rank)]
    x = b.transpose(x, order)
    result = b.reshape(x, (product([batch, *blocks]), *outer, *rest))
    ctx.low.spread[result] = Spread(source, tuple(blocks), tuple(pairs))
    return result


def _batch_to_space(ctx: Context) -> Result:
    x = ctx.value(0)
    blocks = ctx.ints(1)
    crops = [(p, q) for p, q in ctx.dims(2)]
    m, b = len(blocks), ctx.build
    direct = dilated(ctx, x, blocks, crops)
    if direct is not None:
        return direct
    batch = divide(x.shape[0], int(np.prod(blocks)))
    sizes, rest = x.shape[1 : 1 + m], x.shape[1 + m :]
    x = b.reshape(x, (*blocks, batch, *sizes, *rest))
    order = [m]
    for i in range(m):
        order += [m + 1 + i, i]
    x = b.transpose(x, [*order, *range(2 * m + 1, x.rank)])
    grown = [multiply(d, s) for d, s in zip(sizes, blocks, strict=True)]
    x = b.reshape(x, (batch, *grown, *rest))
    begin = [0, *(c[0] for c in crops), *(0 for _ in rest)]
    counts = [static(g, "a size") - sum(c) for g, c in zip(grown, crops, strict=True)]
    return b.slice(x, begin, (batch, *counts, *rest))


def _resize(kind: ir.ResizeKind) -> Handler:
    def handler(ctx: Context) -> Result:
        x = ctx.value(0)
        height, width = ctx.dims(1).ravel()
        align, half = bool(ctx.attr("align_corners")), bool(ctx.attr("half_pixel_centers"))
        if kind is ir.ResizeKind.BILINEAR:
            x = ctx.build.cast(x, ir.DType.F32)
        shape = (x.shape[0], height, width, x.shape[3])
        return ctx.build.emit(ir.Resize(kind, align, half), [x], shape)

    return handler


OPS: dict[str, Handler] = {
    "Gather": _gather,
    "GatherV2": _gather,
    "ResourceGather": _gather,
    "GatherNd": _gather_nd,
    "OneHot": _one_hot,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _depth_to_space,
    "SpaceToBatchND": _space_to_batch,
    "BatchToSpaceND": _batch_to_space,
    "ResizeBilinear": _resize(ir.ResizeKind.BILINEAR),
    "ResizeNearestNeighbor": _resize(ir.ResizeKind.NEAREST),
}
