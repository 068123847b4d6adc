"""Nodes that the loader of a file format has as ops of the typed graph."""

from __future__ import annotations

from converters.tf.lower.graph import Context, Handler, Result
from converters.tf.lower.trace import TYPED, TYPED_NODE


def _typed(ctx: Context) -> Result:
    op, dtypes = ctx.attr(TYPED), ctx.attr("dtypes")
    if len(dtypes) == 1:
        return ctx.build.emit(op, ctx.values, dtype=dtypes[0])
    shapes = op.shapes([value.shape for value in ctx.values])
    return ctx.build.emit_many(op, ctx.values, list(zip(dtypes, shapes, strict=True)))


OPS: dict[str, Handler] = {
    TYPED_NODE: _typed,
}
