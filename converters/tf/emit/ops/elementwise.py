"""Ops on each element by itself: calls of `elementwise`."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf import ir
from converters.tf.emit.context import Context, Emit
from converters.tf.emit.functions import ADD_CLAMP, BINARY, COMPARE, unary
from converters.tf.emit.statements import Code, call
from converters.tf.ir.ops.elementwise import changes_size
from converters.tf.plan.arena import Step


def typed(dtype: ir.DType, statement: Code) -> Code:
    """Returns a statement with the file that implements its operation for the type."""
    if dtype is not ir.DType.I32:
        return statement
    return statement.needing("kernels::ops::elementwise::int32")


def _unary(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.Unary)
    function = node.op.function
    dtype = node.input.dtype
    op = c.kernel(unary(function, dtype), function.params)
    out = c.result(node, str(function.kind))
    if step.onto is not None:
        return [typed(dtype, call("elementwise::map_in_place", op, out))]
    return [typed(dtype, call("elementwise::map", op, c.source(node.input), out))]


def _fused_add(c: Context, op: ir.Binary, dtype: ir.DType) -> Code | None:
    """Returns the one operation that adds and clamps."""
    if op.kind is not ir.BinaryKind.ADD or dtype is not ir.DType.F32 or op.activation is None:
        return None
    if op.activation.kind is not ir.Fn.CLAMP:
        return None
    return c.kernel(ADD_CLAMP, op.activation.params)


def _binary(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.Binary)
    a, b = node.given(0), node.given(1)
    fused = _fused_add(c, node.op, a.dtype)
    op = fused or c.kernel(BINARY[node.op.kind])
    out = c.result(node, str(node.op.kind))
    same = a.shape == b.shape
    if step.onto is not None:
        other = b if step.onto == 0 else a
        types = f"<_, _, {str(step.onto == 0).lower()}>"
        if same:
            first = call(f"elementwise::zip_in_place::{types}", op, out, c.source(other))
        else:
            own = (out, c.dims(node.output.shape))
            function = f"elementwise::zip_broadcast_in_place::{types}"
            first = call(function, op, own, c.shaped(other))
    elif same:
        first = call("elementwise::zip", op, c.source(a), c.source(b), out)
    else:
        first = call("elementwise::zip_broadcast", op, c.shaped(a), c.shaped(b), out)
    statements = [typed(a.dtype, first)]
    if node.op.activation is not None and fused is None:
        statements.append(call("elementwise::activate", c.activation(node.op.activation), out))
    return statements


def _compare(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.Compare)
    a, b = node.given(0), node.given(1)
    op = c.kernel(COMPARE[node.op.kind])
    out = c.result(node, str(node.op.kind))
    if a.shape == b.shape:
        return [typed(a.dtype, call("elementwise::zip", op, c.source(a), c.source(b), out))]
    statement = call("elementwise::zip_broadcast", op, c.shaped(a), c.shaped(b), out)
    return [typed(a.dtype, statement)]


def _select(c: Context, step: Step) -> list[Code]:
    node = step.node
    operands = [c.shaped(node.given(i)) for i in range(3)]
    return [call("elementwise::select", *operands, c.result(node, "select"))]


def _cast(c: Context, step: Step) -> list[Code]:
    node = step.node
    function = "whole::cast" if changes_size(node) else "elementwise::cast"
    return [call(function, c.source(node.input), c.result(node, "cast"))]


def _scale_shift(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.ScaleShift)
    operands = [c.source(node.given(i)) for i in range(3)]
    out = c.result(node, "scaled")
    activation = c.activation(node.op.activation)
    return [call("elementwise::scale_shift", *operands, activation, out)]


OPS: Mapping[type[ir.Op], Emit] = {
    ir.Binary: _binary,
    ir.Cast: _cast,
    ir.Compare: _compare,
    ir.ScaleShift: _scale_shift,
    ir.Select: _select,
    ir.Unary: _unary,
}
