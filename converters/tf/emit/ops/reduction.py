"""Reductions, and ops along an axis."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf import ir
from converters.tf.emit.context import Context, Emit
from converters.tf.emit.functions import BINARY, REDUCE, numbers_text, typed_literal
from converters.tf.emit.ops.elementwise import typed
from converters.tf.emit.statements import Code, call, code
from converters.tf.plan.arena import Step


def _reduce(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.Reduce)
    op = c.kernel(REDUCE[node.op.kind])
    out = c.result(node, str(node.op.kind))
    axes = numbers_text(node.op.axes)
    return [call("reduce::reduce", op, c.shaped(node.input), axes, out)]


def _arg(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.ArgExtreme)
    extreme = f"reduce::Extreme::{'Min' if node.op.smallest else 'Max'}"
    out = c.result(node, "arg")
    index = f"|i| i as {node.output.dtype}"
    return [call("reduce::arg", extreme, c.shaped(node.input), node.op.axis, index, out)]


def _top_k(c: Context, step: Step) -> list[Code]:
    node = step.node
    out = c.result(node, "largest")
    return [call("top::top_k", c.shaped(node.input), c.dim(node.output.shape[-1]), out)]


def _introsort(c: Context, step: Step) -> list[Code]:
    node = step.node
    count = c.dim(node.output.shape[-1])
    return [call("top::introsort", c.source(node.input), count, c.result(node, "sorted"))]


def _cumulative(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.Cumulative)
    kernel = c.kernel(BINARY[ir.BinaryKind.MUL if op.product else ir.BinaryKind.ADD])
    neutral = typed_literal(1.0 if op.product else 0.0, node.input.dtype)
    mode = code("reduce::Mode { exclusive: {}, reverse: {} }", op.exclusive, op.reverse)
    out = c.result(node, "running")
    x = c.shaped(node.input)
    statement = call("reduce::running", (kernel, neutral), x, op.axis, mode, out)
    return [typed(node.input.dtype, statement)]


OPS: Mapping[type[ir.Op], Emit] = {
    ir.ArgExtreme: _arg,
    ir.Cumulative: _cumulative,
    ir.Introsort: _introsort,
    ir.Reduce: _reduce,
    ir.TopK: _top_k,
}
