"""Ops on square matrices: a line that calls a function of the runtime."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf import ir
from converters.tf.emit.context import Context
from converters.tf.emit.layers import Emit
from converters.tf.emit.names import wishes
from converters.tf.plan.arena import Step


def _named(c: Context, value: ir.Value, node: ir.Node, default: str) -> str:
    return c.name_slot(value, *wishes(value.name or node.layer, default))


def _rows(c: Context, value: ir.Value | None) -> str:
    """Returns an operand with the length of its rows."""
    assert value is not None
    return f"({c.source(value)}, {c.dim(value.shape[-1])})"


def _cholesky(c: Context, step: Step) -> list[str]:
    node = step.node
    c.use("linear_system")
    out = _named(c, node.output, node, "factor")
    return [f"linear_system::cholesky(m, {_rows(c, node.input)}, {out})?;"]


def _triangular(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.TriangularSolve)
    c.use("linear_system", "kernels::ops::matrix::linear_system::Triangle")
    lower, transposed = (str(b).lower() for b in (node.op.lower, node.op.transposed))
    how = f"Triangle {{ lower: {lower}, transposed: {transposed} }}"
    matrix, right = _rows(c, node.input), _rows(c, node.operand(1))
    out = _named(c, node.output, node, "solution")
    return [f"linear_system::triangular_solve(m, {matrix}, {how}, {right}, {out})?;"]


def _solve(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.Solve)
    c.use("linear_system")
    matrix, right = _rows(c, node.input), _rows(c, node.operand(1))
    out = f"({_named(c, node.output, node, 'solution')}, {c.scratch(step)})"
    transposed = str(node.op.transposed).lower()
    return [f"linear_system::solve(m, {matrix}, {transposed}, {right}, {out})?;"]


def _log_determinant(c: Context, step: Step) -> list[str]:
    node = step.node
    c.use("linear_system")
    sign, log = (
        _named(c, value, node, name)
        for value, name in zip(node.outputs, ("sign", "log_determinant"), strict=True)
    )
    out = f"({sign}, {log}, {c.scratch(step)})"
    return [f"linear_system::log_determinant(m, {_rows(c, node.input)}, {out})?;"]


SYSTEMS: Mapping[type[object], Emit] = {
    ir.Cholesky: _cholesky,
    ir.LogDeterminant: _log_determinant,
    ir.Solve: _solve,
    ir.TriangularSolve: _triangular,
}
