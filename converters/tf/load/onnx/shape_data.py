"""Operators on shapes as data: integers of which some are multiples of the batch size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from converters.tf.ir import Batch, Dim
from converters.tf.ir.symbolic import (
    NotSymbolicError,
    Objects,
    Symbol,
    add,
    divide,
    larger,
    map_dims,
    multiply,
    objects,
    of_shape,
    product,
    remainder,
    smaller,
    subtract,
)
from converters.tf.load.onnx.context import Context, axis_of
from converters.tf.load.onnx.file import dtype_of
from converters.tf.load.onnx.values import Known, Tensor, Value, is_variable
from converters.tf.load.saved_model.replay import Refused

# Exporters write an end that is beyond every tensor where they mean that there is none: 10^9, or
# the largest integer of 32 or 64 bits.
NO_END = 10**9

_Handler = Callable[[Context], Value | list[Value] | None]


def _shape(ctx: Context) -> Value:
    dims = ctx.shape(0)
    return of_shape(dims[ctx.attr("start", 0) : ctx.attr("end", len(dims))], "int64")


def _size(ctx: Context) -> Value:
    return _scalar(product(ctx.shape(0)))


def _scalar(dim: Dim) -> Symbol:
    dims = np.empty((), object)
    dims[()] = dim
    return Symbol(dims, "int64")


def _dtype(ctx: Context, index: int = 0) -> str:
    value = ctx.value(index)
    return value.dtype


def _like(ctx: Context, dims: Objects, index: int = 0) -> Symbol:
    full = np.empty(np.shape(dims), object)
    full[...] = dims
    return Symbol(full, _dtype(ctx, index))


def _same(ctx: Context) -> Value:
    return ctx.value(0)


def _cast(ctx: Context) -> Value | None:
    dtype = dtype_of(ctx.attr("to"))
    return Symbol(ctx.dims(0), dtype) if dtype in ("int32", "int64") else None


def _gather(ctx: Context) -> Value:
    dims, indices = ctx.dims(0), ctx.array(1)
    return _like(ctx, np.take(dims, indices, axis=ctx.axis(dims.ndim)))


def slices(ctx: Context, rank: int) -> list[slice]:
    """Returns what `Slice` takes of every axis; its operands are attributes in old operators.

    The ends may be open.
    """
    starts: list[Any]
    ends: list[Any]
    if ctx.node.version < 10:
        starts, ends = list(ctx.attr("starts", [])), list(ctx.attr("ends", []))
        axes, steps = ctx.attr("axes"), None
    else:
        starts, ends = _ends(ctx, 1), _ends(ctx, 2)
        axes = ctx.ints(3) if ctx.has(3) else None
        steps = ctx.ints(4) if ctx.has(4) else None
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    result = [slice(None)] * rank
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        before = step < 0 and not is_variable(end) and end <= -NO_END
        stop = None if before else end
        result[axis_of(axis, rank)] = slice(start, stop, step)
    return result


def _ends(ctx: Context, index: int) -> list[Dim]:
    """Returns where slices start or end."""
    ends: list[Dim] = list(ctx.dims(index).ravel())
    return ends


def _slice(ctx: Context) -> Value:
    dims = ctx.dims(0)
    return _like(ctx, dims[tuple(slices(ctx, dims.ndim))])


def _split(ctx: Context) -> list[Value]:
    """Returns parts of equal size but the last one, or of sizes that are an attribute before 13."""
    dims, count = ctx.dims(0), len(ctx.node.outputs)
    sizes = ctx.ints(1) if ctx.has(1) else ctx.attr("split")
    axis = ctx.axis(dims.ndim)
    size = -(-dims.shape[axis] // count)
    ends = np.cumsum(sizes)[:-1] if sizes is not None else size * np.arange(1, count)
    return [_like(ctx, part) for part in np.split(dims, [int(end) for end in ends], axis)]


def _concat(ctx: Context) -> Value:
    parts = [ctx.dims(i) for i in range(len(ctx.args))]
    return _like(ctx, np.concatenate(parts, axis=int(ctx.attr("axis"))))


def _unsqueeze(ctx: Context) -> Value:
    dims = ctx.dims(0)
    axes = ctx.attr("axes") if ctx.attr("axes") is not None else ctx.ints(1)
    return _like(ctx, np.expand_dims(dims, tuple(axes)))


def _squeeze(ctx: Context) -> Value:
    dims = ctx.dims(0)
    axes = ctx.axes(1, dims.ndim)
    return _like(ctx, np.squeeze(dims, None if axes is None else tuple(axes)))


def _reshape(ctx: Context) -> Value:
    dims, target = ctx.dims(0), ctx.ints(1)
    if target.count(0):
        raise Refused("dimensions in a shape with 0")
    return _like(ctx, dims.reshape(target))


def _binary(function: Callable[[Dim, Dim], Dim]) -> _Handler:
    def handler(ctx: Context) -> Value:
        result = ctx.dims(0)
        for index in range(1, len(ctx.args)):
            result = map_dims(function, result, ctx.dims(index))
        return _like(ctx, result)

    return handler


def _mod(ctx: Context) -> Value | None:
    if ctx.attr("fmod", 0):  # Its sign is that of the dividend.
        return None
    return _like(ctx, map_dims(remainder, ctx.dims(0), ctx.dims(1)))


def _neg(ctx: Context) -> Value:
    return _like(ctx, map_dims(lambda dim: subtract(0, dim), ctx.dims(0)))


def _reduce_prod(ctx: Context) -> Value | None:
    dims = ctx.dims(0)
    if dims.ndim != 1 or ctx.attr("keepdims", 1) not in (0, 1):
        return None
    total = product(list(dims))
    return _like(ctx, np.array([total], object)) if ctx.attr("keepdims", 1) else _scalar(total)


def _equals(a: Dim, b: Dim) -> bool:
    if not isinstance(a, Batch) and not isinstance(b, Batch):
        # An open dimension may be what a number is.
        return a == b or not (a < b or a > b)
    if isinstance(a, Batch) and isinstance(b, Batch):
        return a == b
    if min(x for x in (a, b) if isinstance(x, int)) < 1:  # No batch is that small.
        return False
    raise NotSymbolicError(f"{a} = {b}")


def _equal(ctx: Context) -> Value:
    result = np.frompyfunc(_equals, 2, 1)(ctx.dims(0), ctx.dims(1))
    return Known(np.asarray(result).astype(bool))


def _where(ctx: Context) -> Value | None:
    if not isinstance(ctx.value(0), Known):
        return None
    return _like(ctx, np.where(ctx.array(0), ctx.dims(1), ctx.dims(2)), 1)


def _expand(ctx: Context) -> Value:
    dims = ctx.dims(0)
    shape = np.broadcast_shapes(dims.shape, tuple(ctx.ints(1)))
    if len(shape) > 2 or max(shape, default=1) > 64:
        raise Refused("dimensions that are repeated")
    return _like(ctx, np.broadcast_to(dims, shape))


def sizes_of(value: Value) -> Symbol | None:
    """Returns the dimensions that a value holds, as integers or as floats."""
    if isinstance(value, Symbol):
        return value
    return value.sizes if isinstance(value, Tensor) else None


def whole_again(ctx: Context) -> Value | None:
    """Returns dimensions that were floats in between: exporters multiply and round sizes so."""
    if ctx.node.op != "Cast" or not isinstance(ctx.value(0), Tensor):
        return None
    sizes, dtype = sizes_of(ctx.value(0)), dtype_of(ctx.attr("to"))
    whole = dtype in ("int32", "int64")
    return None if sizes is None or not whole else Symbol(sizes.dims, dtype)


def as_floats(ctx: Context) -> Symbol | None:
    """Returns the dimensions that the result of an operator holds as floats, if it does."""
    op, (first, *_) = ctx.node.op, ctx.args
    if op == "Cast" and isinstance(first, Symbol):
        return first if "float" in dtype_of(ctx.attr("to")) else None
    if op in ("Ceil", "Floor", "Identity", "Round"):
        return first.sizes if isinstance(first, Tensor) else None
    if op == "Mul":
        found = [_whole_factors(value) for value in ctx.args]
        held = any(isinstance(value, Tensor) and value.sizes is not None for value in ctx.args)
        if held and all(dims is not None for dims in found):
            return Symbol(map_dims(multiply, *found), "int64")
    return None


def _whole_factors(value: Value | None) -> Objects | None:
    if isinstance(value, Known):
        data = value.data
        return objects(data.astype(np.int64)) if np.array_equal(data, np.trunc(data)) else None
    return value.sizes.dims if isinstance(value, Tensor) and value.sizes is not None else None


# They say what becomes of their first operand; the others only say how.
MOVING = frozenset(
    [
        *("Cast", "Expand", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze"),
        "Unsqueeze",
    ]
)

DIMENSIONS: Mapping[str, _Handler] = {
    "Add": _binary(add),
    "Cast": _cast,
    "Concat": _concat,
    "Div": _binary(divide),
    "Equal": _equal,
    "Expand": _expand,
    "Gather": _gather,
    "Identity": _same,
    "Max": _binary(larger),
    "Min": _binary(smaller),
    "Mod": _mod,
    "Mul": _binary(multiply),
    "Neg": _neg,
    "ReduceProd": _reduce_prod,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Sub": _binary(subtract),
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}
