"""Rows put together, told apart and numbered by places that are known."""

from __future__ import annotations

import numpy as np

from converters.tf import ir
from converters.tf.ir.build import static
from converters.tf.ir.symbolic import Symbol
from converters.tf.lower.graph import Context, Handler, Result, Unsupported
from converters.tf.lower.ops.index.indexing import taken
from converters.tf.lower.ops.math.elementwise import simplified


def _stitch(ctx: Context) -> Result:
    """Puts rows of several tensors at places of one; of several for one place the last stays."""
    count = len(ctx.args) // 2
    places = [ctx.array(i) for i in range(count)]
    order = _last_writers(np.concatenate([np.ravel(p) for p in places]))
    if any(isinstance(arg, Symbol) for arg in ctx.args[count:]):
        dims = np.concatenate([np.ravel(ctx.dims(i)) for i in range(count, 2 * count)])
        return simplified(Symbol(dims[order], ctx.attr("T", "int32")))
    parts = []
    for index, where in enumerate(places):
        x = ctx.value(count + index)
        parts.append(ctx.build.reshape(x, (where.size, *x.shape[where.ndim :])))
    return taken(ctx, ctx.build.concat([p for p in parts if p.shape[0]] or parts[:1], 0), order, 0)


def _last_writers(places: ir.Array) -> ir.Array:
    """Returns which of the rows one after the other each place has."""
    order = np.full(int(places.max(initial=-1)) + 1, -1, np.int32)
    order[places] = np.arange(places.size)
    if (order < 0).any():
        raise Unsupported(f"nothing is put at place {int(np.argmin(order))}")
    return order


def _partition(ctx: Context) -> Result:
    """Tells rows apart by known numbers."""
    x, numbers = ctx.value(0), ctx.array(1)
    for dim in x.shape[: numbers.ndim]:
        static(dim, "what is told apart")
    rows = ctx.build.reshape(x, (numbers.size, *x.shape[numbers.ndim :]))
    each = [np.flatnonzero(np.ravel(numbers) == i) for i in range(ctx.attr("num_partitions"))]
    return tuple(
        taken(ctx, rows, places.astype(np.int32), 0)
        if places.size
        else ctx.build.part(rows, 0, 0, 0)
        for places in each
    )


def _inverse(ctx: Context) -> Result:
    order = ctx.array(0)
    if sorted(order.tolist()) != list(range(order.size)):
        raise Unsupported(f"{order.tolist()} is not a permutation")
    return ir.constant(np.argsort(order).astype(order.dtype))


OPS: dict[str, Handler] = {
    "DynamicPartition": _partition,
    "DynamicStitch": _stitch,
    "InvertPermutation": _inverse,
    "ParallelDynamicStitch": _stitch,
}
