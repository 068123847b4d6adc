"""Ops on square matrices in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from converters.tf import ir
from converters.tf.ir import Array


def _each(function: Callable[..., Any], *operands: Array) -> Array:
    """Applies a function to matrices of all operands at once; they have the same leading axes."""
    lead = operands[0].shape[:-2]
    flat = [x.reshape(-1, *x.shape[-2:]) for x in operands]
    found = np.asarray([function(*parts) for parts in zip(*flat, strict=True)])
    return found.reshape(*lead, *operands[-1].shape[-2:])


def _factor(x: Array) -> Array:
    lower = np.tril(x)
    try:
        return np.asarray(np.linalg.cholesky(lower + np.tril(x, -1).T))
    except np.linalg.LinAlgError:
        return np.where(np.tril(np.ones(x.shape)) > 0, np.nan, 0)


def _substituted(op: ir.TriangularSolve, matrix: Array, right: Array) -> Array:
    triangle = np.tril(matrix) if op.lower else np.triu(matrix)
    triangle = triangle.T if op.transposed else triangle
    out = np.zeros(right.shape)
    size = len(triangle)
    for i in range(size) if op.lower != op.transposed else reversed(range(size)):
        known = slice(0, i) if op.lower != op.transposed else slice(i + 1, size)
        out[i] = (right[i] - triangle[i, known] @ out[known]) / triangle[i, i]
    return out


def _solved(op: ir.Solve, matrix: Array, right: Array) -> Array:
    if np.isnan(matrix).any():
        raise ArithmeticError("a matrix has no inverse")
    try:
        return np.asarray(np.linalg.solve(matrix.T if op.transposed else matrix, right))
    except np.linalg.LinAlgError as err:
        raise ArithmeticError("a matrix has no inverse") from err


SYSTEMS: Mapping[type, Callable[[Any, list[Any]], list[Array]]] = {
    ir.Cholesky: lambda op, x: [_each(_factor, x[0])],
    ir.TriangularSolve: lambda op, x: [_each(lambda a, b: _substituted(op, a, b), *x)],
    ir.Solve: lambda op, x: [_each(lambda a, b: _solved(op, a, b), *x)],
    ir.LogDeterminant: lambda op, x: [np.asarray(part) for part in np.linalg.slogdet(x[0])],
}
