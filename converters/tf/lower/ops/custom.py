"""Operators of the user's own."""

from __future__ import annotations

from converters.tf import ir
from converters.tf.lower.graph import Context, Handler, Result, element_type
from converters.tf.lower.trace import OWN, OWN_OP


def _own(ctx: Context) -> Result:
    own: ir.OwnOp = ctx.attr(OWN)
    op, operands = ir.Custom(own), ctx.values
    shapes = op.shapes([v.shape for v in operands])
    kinds = [element_type(name) for name in ctx.attr("Tout")]
    return ctx.build.emit_many(op, operands, list(zip(kinds, shapes, strict=True)))


OPS: dict[str, Handler] = {OWN_OP: _own}
