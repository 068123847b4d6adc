"""Nodes that the loader of a file format has as ops of the typed graph."""

from __future__ import annotations

from converters.tf.lower.graph import Context, Handler, Result
from converters.tf.lower.trace import TYPED, TYPED_NODE


def _typed(ctx: Context) -> Result:
    return ctx.build.emit(ctx.attr(TYPED), ctx.values, dtype=ctx.attr("dtype"))


OPS: dict[str, Handler] = {
    TYPED_NODE: _typed,
}
