"""Ops of the graph on square matrices, the last two axes of their operand; float32."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cholesky:
    """The lower triangular `l` with `l @ transpose(l) = x`: (x [..., N, N]).

    Only the lower triangle of x is read. That of the result is NaN if x is not positive definite.
    """


@dataclass(frozen=True)
class TriangularSolve:
    """Solves `matrix @ y = right`: (matrix [..., N, N], right [..., N, M]) -> y.

    The lower or upper triangle of the matrix is read, and then transposed if that is asked for. A
    zero in the diagonal divides as numbers do.
    """

    lower: bool = True
    transposed: bool = False


@dataclass(frozen=True)
class Solve:
    """Solves `matrix @ y = right`: (matrix [..., N, N], right [..., N, M]) -> y.

    With `transposed`, the matrix is. One that has no inverse is an error of the call.
    """

    transposed: bool = False


@dataclass(frozen=True)
class LogDeterminant:
    """The determinants of matrices: (x [..., N, N]) -> (sign [...], log of the magnitude [...])."""
