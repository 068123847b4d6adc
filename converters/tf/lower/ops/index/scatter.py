"""Tensors of which slices are written, at places that are known or that the inputs say."""

from __future__ import annotations

from converters.tf import ir
from converters.tf.ir import ScatterKind
from converters.tf.ir.build import Builder, static
from converters.tf.lower.graph import Context, Handler, Result, Unsupported
from converters.tf.lower.tensors import Numbered

# Element types that a kernel puts together; the others are widened to one of them.
_WIDER = {
    **dict.fromkeys((ir.DType.BOOL, ir.DType.I8, ir.DType.I16, ir.DType.U8), ir.DType.I32),
    ir.DType.U16: ir.DType.I32,
    ir.DType.U32: ir.DType.I64,
}


def scatter(
    build: Builder,
    kind: ScatterKind,
    x: ir.Value,
    indices: ir.Value,
    updates: ir.Value,
    batch_dims: int = 0,
    skip: bool = False,
) -> ir.Value:
    """Changes slices of a tensor; see `ir.Scatter`.

    Raises:
        Unsupported: The places are batch elements.
    """
    if indices.dtype not in (ir.DType.I32, ir.DType.I64):
        indices = build.cast(indices, ir.DType.I32)
    depth = static(indices.shape[-1], "the depth of an index")
    sizes = x.shape[batch_dims : batch_dims + depth]
    if any(isinstance(d, ir.Batch) for d in (*sizes, *indices.shape[batch_dims:])):
        raise Unsupported("batch elements are written by index")
    rest = x.shape[batch_dims + depth :]
    expected = (*x.shape[:batch_dims], *indices.shape[batch_dims:-1], *rest)
    if updates.shape != expected:
        found = ir.shape_text(updates.shape)
        raise Unsupported(f"updates {found} where {ir.shape_text(expected)} are written")
    wide = _WIDER.get(x.dtype)
    if wide is not None:
        narrow = x.dtype
        x, updates = build.cast(x, wide), build.cast(updates, wide)
        return build.cast(scatter(build, kind, x, indices, updates, batch_dims, skip), narrow)
    return build.emit(ir.Scatter(kind, batch_dims, skip), [x, indices, updates], x.shape)


def _at(ctx: Context, place: int) -> tuple[ir.Value, int]:
    """Returns indices, and how many axes run together with them."""
    indices = ctx.args[place]
    return (indices.rest, 1) if isinstance(indices, Numbered) else (ctx.value(place), 0)


def _tensor(kind: ScatterKind) -> Handler:
    def handler(ctx: Context) -> Result:
        indices, lead = _at(ctx, 1)
        x, updates = ctx.value(0), ctx.value(2)
        return scatter(ctx.build, kind, x, indices, updates, lead)

    return handler


def _scatter_nd(ctx: Context) -> Result:
    indices, lead = _at(ctx, 0)
    updates, build = ctx.value(1), ctx.build
    zeros = build.broadcast_to(build.scalar(0, updates.dtype), tuple(ctx.dims(2).ravel()))
    return scatter(build, ScatterKind.ADD, zeros, indices, updates, lead)


OPS: dict[str, Handler] = {
    "ScatterNd": _scatter_nd,
    "TensorScatterAdd": _tensor(ScatterKind.ADD),
    "TensorScatterMax": _tensor(ScatterKind.MAX),
    "TensorScatterMin": _tensor(ScatterKind.MIN),
    "TensorScatterSub": _tensor(ScatterKind.SUB),
    "TensorScatterUpdate": _tensor(ScatterKind.UPDATE),
}
