"""Systems of linear equations, and the factors of square matrices."""

from __future__ import annotations

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind
from converters.tf.ir.build import Builder, broadcast, static
from converters.tf.lower.graph import Context, Handler, Result, Unsupported


def _square(x: ir.Value) -> int:
    """Returns the number of rows of the matrices."""
    rows, columns = (static(d, "a matrix") for d in x.shape[-2:])
    if rows != columns:
        raise Unsupported(f"matrices of {rows} x {columns}; square ones are supported")
    return rows


def _cholesky(ctx: Context) -> Result:
    x = ctx.value(0)
    _square(x)
    return ctx.build.emit(ir.Cholesky(), [x], x.shape)


def solved(build: Builder, op: ir.Op, matrix: ir.Value, right: ir.Value) -> ir.Value:
    """Solves systems whose leading axes are broadcast."""
    if _square(matrix) != right.shape[-2]:
        shapes = f"{ir.shape_text(matrix.shape)} and {ir.shape_text(right.shape)}"
        raise Unsupported(f"a system of {shapes}")
    lead = broadcast(matrix.shape[:-2], right.shape[:-2])
    matrix = build.broadcast_to(matrix, (*lead, *matrix.shape[-2:]))
    right = build.broadcast_to(right, (*lead, *right.shape[-2:]))
    return build.emit(op, [matrix, right], right.shape)


def _triangular(ctx: Context) -> Result:
    op = ir.TriangularSolve(bool(ctx.attr("lower", True)), bool(ctx.attr("adjoint", False)))
    return solved(ctx.build, op, ctx.value(0), ctx.value(1))


def _solve(ctx: Context) -> Result:
    op = ir.Solve(bool(ctx.attr("adjoint", False)))
    return solved(ctx.build, op, ctx.value(0), ctx.value(1))


def _inverse(ctx: Context) -> Result:
    x = ctx.value(0)
    one = ir.constant(np.eye(_square(x), dtype=x.dtype.numpy))
    return solved(ctx.build, ir.Solve(bool(ctx.attr("adjoint", False))), x, one)


def _log_determinant(ctx: Context) -> tuple[ir.Value, ...]:
    x = ctx.value(0)
    _square(x)
    kinds = [(x.dtype, x.shape[:-2])] * 2
    return ctx.build.emit_many(ir.LogDeterminant(), [x], kinds)


def _determinant(ctx: Context) -> Result:
    sign, logarithm = _log_determinant(ctx)
    return ctx.build.binary(BinaryKind.MUL, sign, ctx.build.unary(ir.Fn.EXP, logarithm))


OPS: dict[str, Handler] = {
    "BatchMatrixTriangularSolve": _triangular,
    "Cholesky": _cholesky,
    "LogMatrixDeterminant": _log_determinant,
    "MatrixDeterminant": _determinant,
    "MatrixInverse": _inverse,
    "MatrixSolve": _solve,
    "MatrixTriangularSolve": _triangular,
}
