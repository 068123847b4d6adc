"""Matrix products, and ops on square matrices."""

from __future__ import annotations

from dataclasses import dataclass

from converters.tf.ir.graph import Op
from converters.tf.ir.ops.functions import Function

__all__ = [
    "Cholesky",
    "Dense",
    "LogDeterminant",
    "MatMul",
    "ScaledDense",
    "Solve",
    "TriangularSolve",
    "WholeProduct",
]


@dataclass(frozen=True)
class Dense(Op):
    """A product with a constant matrix: (x [..., K], kernel [K, N], bias [N]?, residual?), f32.

    `activation(x @ kernel + bias + residual)`; the residual has the shape of the output.
    """

    activation: Function | None = None


@dataclass(frozen=True)
class ScaledDense(Op):
    """A `Dense` whose operand is scaled first: (x, kernel, bias?, residual?, scale, shift?).

    `activation(bounds(x * scale + shift) @ kernel + bias + residual)`. The kernel is
    [1, ..., K, N], the scale [K] or [batch, 1, ..., K], the shift [K].

    Attributes:
        bounds: A clamp, applied to the scaled operand.
        activation: Applied last.
    """

    bounds: Function | None = None
    activation: Function | None = None


@dataclass(frozen=True)
class MatMul(Op):
    """Products of matrices: (a [..., M, K], b [..., K, N], bias [N]?), f32.

    The leading axes broadcast as in NumPy. With `transpose_a`, a is [..., K, M]; with
    `transpose_b`, b is [..., N, K].
    """

    transpose_a: bool = False
    transpose_b: bool = False
    activation: Function | None = None


@dataclass(frozen=True)
class WholeProduct(Op):
    """Products of matrices of whole numbers: (a [..., M, K], b [..., K, N]).

    The leading axes are the same, or b has none.
    """


@dataclass(frozen=True)
class Cholesky(Op):
    """The lower triangular `l` with `l @ transpose(l) = x`: (x [..., N, N]).

    Only the lower triangle of x is read. That of the result is NaN if x is not positive definite.
    """


@dataclass(frozen=True)
class TriangularSolve(Op):
    """Solves `matrix @ y = right`: (matrix [..., N, N], right [..., N, M]) -> y.

    The lower or upper triangle of the matrix is read, and then transposed if that is asked for. A
    zero in the diagonal divides as numbers do.
    """

    lower: bool = True
    transposed: bool = False


@dataclass(frozen=True)
class Solve(Op):
    """Solves `matrix @ y = right`: (matrix [..., N, N], right [..., N, M]) -> y.

    With `transposed`, the matrix is. One that has no inverse is an error of the call.
    """

    transposed: bool = False


@dataclass(frozen=True)
class LogDeterminant(Op):
    """The determinants of matrices: (x [..., N, N]) -> (sign [...], log of the magnitude [...])."""
