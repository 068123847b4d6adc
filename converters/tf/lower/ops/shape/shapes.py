"""Ops that ask for shapes, move elements, or make tensors of a given shape."""

from __future__ import annotations

import math

import numpy as np

from converters.tf import ir
from converters.tf.ir.agreeing import divisible
from converters.tf.ir.build import static, whole
from converters.tf.ir.expressions import is_open, minimum, surely
from converters.tf.ir.symbolic import Symbol, complete, map_dims, objects, of_shape, product
from converters.tf.lower.graph import Context, Handler, Result, Tensor, Unsupported
from converters.tf.lower.ops.control import examples
from converters.tf.lower.ops.math.elementwise import simplified
from converters.tf.lower.ops.shape import moving
from converters.tf.lower.tensors import Complex, Rows


def _shape_of(arg: Tensor) -> ir.Shape:
    if isinstance(arg, Symbol):
        return tuple(int(d) for d in arg.dims.shape)
    if isinstance(arg, Complex):
        return arg.real.shape
    if isinstance(arg, ir.Value | Rows):
        return arg.shape
    if hasattr(arg, "data") and arg.data is not None:
        return tuple(int(d) for d in arg.data.shape)
    raise Unsupported("the shape of a list or a resource")


def _shape(ctx: Context) -> Result:
    return simplified(of_shape(_shape_of(ctx.args[0]), ctx.attr("out_type", "int32")))


def _shape_n(ctx: Context) -> Result:
    kind = ctx.attr("out_type", "int32")
    results = (simplified(of_shape(_shape_of(arg), kind)) for arg in ctx.args)
    return tuple(r for r in results if not isinstance(r, tuple))


def _size(ctx: Context) -> Result:
    total = np.empty((), object)
    total[()] = product(_shape_of(ctx.args[0]))
    return simplified(Symbol(total, ctx.attr("out_type", "int32")))


def _rank(ctx: Context) -> Result:
    return ir.constant(np.asarray(len(_shape_of(ctx.args[0])), np.int32))


def _reshape(ctx: Context) -> Result:
    arg = ctx.args[0]
    target = list(ctx.dims(1).ravel())
    if isinstance(arg, Symbol):
        shape = complete(target, int(arg.dims.size))
        return Symbol(arg.dims.reshape([static(d, "a size") for d in shape]), arg.dtype)
    if isinstance(arg, Rows):
        return examples.reshaped(ctx.build, arg, complete(target, product(arg.shape)))
    x = ctx.value(0)
    try:
        shape = complete(target, product(x.shape))
    except ValueError as err:
        raise Unsupported(str(err)) from err
    if _mixes(ctx.build.unshaped(x).shape, shape) and not _all_same(ctx, x):
        raise Unsupported("a reshape mixes the batch elements")
    return ctx.build.reshape(x, shape)


def _mixes(before: ir.Shape, after: ir.Shape) -> bool:
    """Returns whether elements of one example become elements of others.

    They do if the batch is an axis of its own, and not as many elements are around it as before.
    """
    found = [
        math.prod(d for d in shape[:axis] if not isinstance(d, ir.Batch))
        for shape in (before, after)
        for axis, dim in enumerate(shape)
        if dim == ir.Batch()
    ]
    return len(found) == 2 and found[0] != found[1]


def _all_same(ctx: Context, x: ir.Value) -> bool:
    """Returns whether all elements are one number, whatever the example."""
    made = next((n for n in reversed(ctx.build.nodes) if x in n.outputs), None)
    if made is None or not isinstance(made.op, ir.BroadcastTo):
        return False
    return all(d == 1 for d in made.input.shape)


def _squeeze(ctx: Context) -> Result:
    shape = _shape_of(ctx.args[0])
    axes = [a % len(shape) for a in ctx.attr("squeeze_dims", ())]
    if not axes:
        axes = [i for i, d in enumerate(shape) if d == 1]
    return _reshaped(ctx, tuple(d for i, d in enumerate(shape) if i not in axes))


def _expand_dims(ctx: Context) -> Result:
    shape = list(_shape_of(ctx.args[0]))
    shape.insert(ctx.integer(1) % (len(shape) + 1), 1)
    return _reshaped(ctx, tuple(shape))


def _reshaped(ctx: Context, shape: ir.Shape) -> Result:
    arg = ctx.args[0]
    if isinstance(arg, Symbol):
        return Symbol(arg.dims.reshape([static(d, "a size") for d in shape]), arg.dtype)
    if isinstance(arg, Rows):
        return examples.reshaped(ctx.build, arg, shape)
    return ctx.build.reshape(ctx.value(0), shape)


def _transpose(ctx: Context) -> Result:
    if isinstance(ctx.args[0], Rows):
        return examples.transposed(ctx.build, ctx.args[0], ctx.ints(1))
    return ctx.build.transpose(ctx.value(0), ctx.ints(1))


def _pack(ctx: Context) -> Result:
    if ctx.symbolic:
        parts = [ctx.dims(i) for i in range(len(ctx.args))]
        return Symbol(np.stack(parts, ctx.attr("axis", 0)), ctx.attr("T", "int32"))
    if isinstance(ctx.args[0], Rows):
        return examples.packed(ctx, ctx.args[0])
    parts_ = ctx.values
    axis = ctx.attr("axis", 0) % (parts_[0].rank + 1)
    shape = parts_[0].shape
    wide = (*shape[:axis], 1, *shape[axis:])
    return ctx.build.concat([ctx.build.reshape(p, wide) for p in parts_], axis)


def _unpack(ctx: Context) -> Result:
    shape = _shape_of(ctx.args[0])
    axis = ctx.attr("axis", 0) % len(shape)
    count = static(shape[axis], "the number of unpacked parts")
    arg = ctx.args[0]
    if isinstance(arg, Symbol):
        rows = (objects(np.take(arg.dims, i, axis)) for i in range(count))
        parts = [simplified(Symbol(row, arg.dtype)) for row in rows]
        return tuple(p for p in parts if not isinstance(p, tuple))
    x = ctx.value(0)
    rest = (*shape[:axis], *shape[axis + 1 :])
    return tuple(ctx.build.reshape(ctx.build.part(x, axis, i, 1), rest) for i in range(count))


def _concat(ctx: Context) -> Result:
    first = ctx.node.op == "Concat"
    parts = ctx.args[1:] if first else ctx.args[:-1]
    offset = 1 if first else 0
    axis = ctx.integer(0 if first else len(ctx.args) - 1)
    if ctx.symbolic:
        dims = [ctx.dims(i + offset) for i in range(len(parts))]
        return Symbol(np.concatenate(dims, axis), ctx.attr("T", "int32"))
    if isinstance(parts[0], Rows):
        return examples.numbered(ctx, parts, axis, new=False)
    values = [ctx.value(i + offset) for i in range(len(parts))]
    full = [v for v in values if 0 not in v.shape] or values[:1]
    return ctx.build.concat(full, axis % full[0].rank)


def _split(ctx: Context) -> Result:
    arg = ctx.args[1]
    if isinstance(arg, Symbol):
        pieces = np.split(arg.dims, ctx.attr("num_split"), ctx.axis(0, arg.dims.ndim))
        parts = [simplified(Symbol(piece, arg.dtype)) for piece in pieces]
        return tuple(p for p in parts if not isinstance(p, tuple))
    x = ctx.value(1)
    axis = ctx.axis(0, x.rank)
    count = ctx.attr("num_split")
    total = static(x.shape[axis], "the split axis")
    size = total // count
    if size * count != total:
        divisible(total, count)
        raise Unsupported(f"{count} equal parts of an axis of {total!s}")
    return tuple(ctx.build.part(x, axis, i * size, size) for i in range(count))


def _split_v(ctx: Context) -> Result:
    arg = ctx.args[0]
    shape = _shape_of(arg)
    axis = ctx.axis(2, len(shape))
    total = static(shape[axis], "the split axis")
    sizes = ctx.ints(1)
    rest = total - sum(s for s in sizes if s >= 0)
    sizes = [rest if s < 0 else s for s in sizes]
    begins = np.cumsum([0, *sizes])
    if isinstance(arg, Symbol):
        dims = (arg.dims[b : b + s] for b, s in zip(begins, sizes, strict=False))
        parts = [simplified(Symbol(d, arg.dtype)) for d in dims]
        return tuple(p for p in parts if not isinstance(p, tuple))
    x = ctx.value(0)
    return tuple(ctx.build.part(x, axis, int(b), s) for b, s in zip(begins, sizes, strict=False))


def _mask(ctx: Context, name: str, bit: int) -> bool:
    return bool(ctx.attr(name, 0) >> bit & 1)


def _index(ctx: Context, operand: int, place: int) -> ir.Dim:
    dim: ir.Dim = ctx.dims(operand).ravel()[place]
    return dim


def _strided_slice(ctx: Context) -> Result:
    place = ctx.args[1]
    if isinstance(place, ir.Value) and place.data is None:
        return moving.strided_slice(ctx, place)
    shape = _shape_of(ctx.args[0])
    spec = len(ctx.dims(1).ravel())
    used = sum(
        1
        for i in range(spec)
        if not (_mask(ctx, "new_axis_mask", i) or _mask(ctx, "ellipsis_mask", i))
    )
    begins, counts, steps, target = [], [], [], []
    axis = 0
    for i in range(spec):
        if _mask(ctx, "ellipsis_mask", i):
            for _ in range(len(shape) - used):
                begins.append(0)
                steps.append(1)
                counts.append(shape[axis])
                target.append(shape[axis])
                axis += 1
            continue
        if _mask(ctx, "new_axis_mask", i):
            target.append(1)
            continue
        begin, step, count = _one_axis(ctx, i, shape[axis])
        begins.append(begin)
        steps.append(step)
        counts.append(count)
        if not _mask(ctx, "shrink_axis_mask", i):
            target.append(count)
        axis += 1
    for dim in shape[axis:]:
        begins.append(0)
        steps.append(1)
        counts.append(dim)
        target.append(dim)
    arg = ctx.args[0]
    if isinstance(arg, Symbol):
        dims = arg.dims
        for i, (b, s, c) in enumerate(zip(begins, steps, counts, strict=True)):
            dims = np.take(dims, b + s * np.arange(static(c, "a size")), axis=i)
        return simplified(Symbol(dims.reshape([static(t, "a size") for t in target]), arg.dtype))
    if isinstance(arg, Rows):
        return examples.widened(ctx.build, arg, tuple(target))
    part = ctx.build.slice(ctx.value(0), begins, counts, steps)
    return ctx.build.reshape(part, tuple(target))


def _one_axis(ctx: Context, i: int, dim: ir.Dim) -> tuple[int, int, ir.Dim]:
    step = _index(ctx, 3, i)
    begin, end = _index(ctx, 1, i), _index(ctx, 2, i)
    no_begin, no_end = _mask(ctx, "begin_mask", i), _mask(ctx, "end_mask", i)
    shrink = _mask(ctx, "shrink_axis_mask", i)
    if isinstance(dim, ir.Batch):
        whole = step == 1 and not shrink
        if whole and (no_begin or begin == 0) and (no_end or end in (dim, _END)):
            return 0, 1, dim
        raise Unsupported("batch elements are taken apart")
    if isinstance(step, ir.Batch) or isinstance(begin, ir.Batch) or isinstance(end, ir.Batch):
        raise Unsupported("a slice that depends on the batch size")
    if any(map(is_open, (dim, begin, end))) and not shrink:
        return _open_axis(dim, None if no_begin else begin, None if no_end else end, step)
    if shrink:
        place = begin + dim if begin < 0 else begin
        if not 0 <= place < dim:
            raise Unsupported(f"index {begin} of an axis of {dim}")
        return place, 1, 1
    places = range(*slice(None if no_begin else begin, None if no_end else end, step).indices(dim))
    return (places.start if len(places) else 0), step, len(places)


def _open_axis(dim: int, begin: int | None, end: int | None, step: int) -> tuple[int, int, ir.Dim]:
    """Returns first place, step and count of a slice whose size is open.

    It ends with the axis. Elsewhere, a call in which TensorFlow would shorten it is an error of the
    call.

    Raises:
        Unsupported: It is a part that is taken backwards.
    """
    if step < 0:
        if step != -1 or begin is not None or end is not None:
            raise Unsupported("a part of an open axis is taken backwards")
        return dim - 1, -1, dim
    first = 0 if begin is None else dim + begin if surely(lambda: begin < 0) else begin
    if end is None or surely(lambda: end == _END):
        last = dim
    elif surely(lambda: end < 0):
        last = dim + end
    else:
        last = minimum(end, dim) if not is_open(end) else end
    return first, step, (last - first + step - 1) // step


_END = np.iinfo(np.int32).max


def _slice(ctx: Context) -> Result:
    arg = ctx.args[0]
    if isinstance(arg, Symbol):
        begin, size = ctx.integer(1), ctx.integer(2)
        end = None if size < 0 else begin + size
        return simplified(Symbol(arg.dims[begin:end], arg.dtype))
    x = ctx.value(0)
    if ctx.value(1).data is None:
        return moving.slice_of(ctx, x, ctx.value(1))
    begins = ctx.dims(1).ravel()
    sizes = ctx.dims(2).ravel()
    starts: list[int] = []
    counts: list[ir.Dim] = []
    for begin, size, dim in zip(begins, sizes, x.shape, strict=True):
        if isinstance(begin, ir.Batch):
            raise Unsupported("a slice that depends on the batch size")
        if isinstance(dim, ir.Batch):
            if begin != 0 or size not in (-1, dim):
                raise Unsupported("batch elements are taken apart")
            counts.append(dim)
        else:
            count = dim - begin if size == -1 else static(size, "the size of a slice")
            # A slice that a call does not have is an error of the call.
            if surely(lambda: not 0 <= begin <= begin + count <= dim):  # noqa: B023
                raise Unsupported(f"places {begin} to {begin + count} of an axis of {dim}")
            counts.append(count)
        starts.append(whole(begin))
    return ctx.build.slice(x, starts, counts)


def _reverse(ctx: Context) -> Result:
    x = ctx.value(0)
    axes = {a % x.rank for a in ctx.ints(1)}
    begins, steps = [0] * x.rank, [1] * x.rank
    for axis in axes:
        begins[axis] = static(x.shape[axis], "the reversed axis") - 1
        steps[axis] = -1
    return ctx.build.slice(x, begins, x.shape, steps)


def _roll(ctx: Context) -> Result:
    x = ctx.value(0)
    for shift, axis in zip(ctx.ints(1), ctx.ints(2), strict=True):
        axis %= x.rank
        size = static(x.shape[axis], "the rolled axis")
        if is_open(size):  # An error of a call in which it is not longer than the shift.
            begin = size - shift if shift > 0 else -shift
        else:
            begin = -shift % size if size else 0
        if is_open(begin) or begin:
            parts = [(begin, size - begin), (0, begin)]
            x = ctx.build.concat([ctx.build.part(x, axis, *part) for part in parts], axis)
    return x


def _pad(ctx: Context) -> Result:
    x = ctx.value(0)
    value = float(ctx.array(2)) if ctx.node.op == "PadV2" else 0.0
    padding = [(static(a, "a padding"), static(b, "a padding")) for a, b in ctx.dims(1)]
    if ctx.node.op == "MirrorPad":
        mode = ir.PadMode(ctx.attr("mode", "REFLECT").lower())
        return ctx.build.pad(x, padding, mode)
    return ctx.build.pad(x, padding, ir.PadMode.CONSTANT, value)


def _tile(ctx: Context) -> Result:
    arg = ctx.args[0]
    multiples = ctx.dims(1).ravel()
    if isinstance(arg, Symbol):
        return Symbol(np.tile(arg.dims, ctx.ints(1)), arg.dtype)
    if isinstance(arg, Rows):
        wide = tuple(product([d, m]) for d, m in zip(arg.shape, multiples, strict=True))
        return examples.broadcast_to(arg, wide)
    x = ctx.value(0)
    shape = tuple(product([d, m]) for d, m in zip(x.shape, multiples, strict=True))
    if any(isinstance(m, ir.Batch) for m in multiples):
        if all(m == 1 or d == 1 for d, m in zip(x.shape, multiples, strict=True)):
            return ctx.build.broadcast_to(x, shape)
        raise Unsupported("a tensor is repeated as often as the batch size says")
    if all(m == 1 for m in multiples):
        return x
    if all(m == 1 or d == 1 for d, m in zip(x.shape, multiples, strict=True)):
        return ctx.build.broadcast_to(x, shape)
    return ctx.build.emit(ir.Tile(tuple(int(m) for m in multiples)), [x], shape)


def _broadcast_to(ctx: Context) -> Result:
    if isinstance(ctx.args[0], Rows):
        return examples.broadcast_to(ctx.args[0], tuple(ctx.dims(1).ravel()))
    return ctx.build.broadcast_to(ctx.value(0), tuple(ctx.dims(1).ravel()))


def _fill(ctx: Context) -> Result:
    return ctx.build.broadcast_to(ctx.value(1), tuple(ctx.dims(0).ravel()))


def _like(number: int) -> Handler:
    def handler(ctx: Context) -> Result:
        shape = _shape_of(ctx.args[0])
        arg = ctx.args[0]
        dtype = arg.dtype if isinstance(arg, ir.Value) else ir.DType.I32
        return ctx.build.broadcast_to(ctx.build.scalar(number, dtype), shape)

    return handler


def _range(ctx: Context) -> Result:
    limit_ = ctx.args[1]
    dtype, build = ctx.dtype("Tidx"), ctx.build
    if isinstance(limit_, Symbol) and ctx.integer(2) > 0:
        (end,) = limit_.dims.ravel()
        first, step = ctx.integer(0), ctx.integer(2)
        if not isinstance(end, ir.Batch):
            places = build.numbers((end - first + step - 1) // step, dtype)
            if step != 1:
                places = build.binary(ir.BinaryKind.MUL, places, build.scalar(step, dtype))
            if first:
                places = build.binary(ir.BinaryKind.ADD, places, build.scalar(first, dtype))
            return places
        if (first, step) == (0, 1):
            return examples.numbers(end, dtype)
    start, limit, delta = (ctx.array(i) for i in range(3))
    known = np.arange(start.item(), limit.item(), delta.item())
    return ir.constant(known.astype(ctx.dtype("Tidx").numpy))


def _lin_space(ctx: Context) -> Result:
    points = np.linspace(float(ctx.array(0)), float(ctx.array(1)), ctx.integer(2))
    return ir.constant(points.astype(ctx.dtype("T").numpy))


def _broadcast_args(ctx: Context) -> Result:
    a, b = list(ctx.dims(0)), list(ctx.dims(1))
    rank = max(len(a), len(b))
    a, b = [1] * (rank - len(a)) + a, [1] * (rank - len(b)) + b
    dims = map_dims(lambda x, y: y if x == 1 else x, np.array(a, object), np.array(b, object))
    return simplified(Symbol(dims, ctx.attr("T", "int32")))


def _band_part(ctx: Context) -> Result:
    x = ctx.value(0)
    low, high = ctx.integer(1), ctx.integer(2)
    rows, columns = (static(d, "a matrix") for d in x.shape[-2:])
    if is_open(rows) or is_open(columns):
        return _open_band(ctx, x, (low, high), (rows, columns))
    distance = np.arange(columns)[None, :] - np.arange(rows)[:, None]
    keep = np.ones((rows, columns), bool)
    if low >= 0:
        keep &= distance >= -low
    if high >= 0:
        keep &= distance <= high
    return ctx.build.select(ir.constant(keep), x, ctx.build.scalar(0, x.dtype))


def _open_band(
    ctx: Context, x: ir.Value, ends: tuple[int, int], sizes: tuple[int, int]
) -> ir.Value:
    """Keeps the elements of open matrices that are near enough to the diagonal."""
    low, high = ends
    b, rows, columns = ctx.build, *sizes
    row = b.reshape(b.numbers(rows, ir.DType.I32), (rows, 1))
    column = b.reshape(b.numbers(columns, ir.DType.I32), (1, columns))
    zero = b.scalar(0, x.dtype)
    for bound, far, near in ((low, row, column), (high, column, row)):
        if bound >= 0:
            limit = b.binary(ir.BinaryKind.ADD, near, b.scalar(bound, ir.DType.I32))
            keep = b.compare(ir.CompareKind.LE, far, limit if bound else near)
            keep = b.broadcast_to(keep, sizes)
            x = b.select(b.broadcast_to(keep, x.shape), x, zero)
    return x


OPS: dict[str, Handler] = {
    "Shape": _shape,
    "ShapeN": _shape_n,
    "Size": _size,
    "Rank": _rank,
    "Reshape": _reshape,
    "Squeeze": _squeeze,
    "ExpandDims": _expand_dims,
    "Transpose": _transpose,
    "Pack": _pack,
    "Unpack": _unpack,
    "Concat": _concat,
    "ConcatV2": _concat,
    "Split": _split,
    "SplitV": _split_v,
    "StridedSlice": _strided_slice,
    "Slice": _slice,
    "XlaDynamicUpdateSlice": moving.update_slice,
    "ReverseV2": _reverse,
    "Roll": _roll,
    "Pad": _pad,
    "PadV2": _pad,
    "MirrorPad": _pad,
    "Tile": _tile,
    "BroadcastTo": _broadcast_to,
    "BroadcastArgs": _broadcast_args,
    "Fill": _fill,
    "ZerosLike": _like(0),
    "OnesLike": _like(1),
    "Range": _range,
    "LinSpace": _lin_space,
    "MatrixBandPart": _band_part,
}
