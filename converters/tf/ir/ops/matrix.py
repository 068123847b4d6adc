"""Matrix products, and ops on square matrices, the last two axes of their operand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from converters.tf.ir.agreeing import differ
from converters.tf.ir.graph import Node, Op
from converters.tf.ir.operands import Operands
from converters.tf.ir.ops.functions import Function, affine, apply, finish
from converters.tf.ir.ops.packing import DIRECT_ROWS, LANES, packed_len, packed_rows, plain_product
from converters.tf.ir.sizes import ShapeError, broadcast, elements, has_open, numbers
from converters.tf.ir.types import INTEGERS, unserved
from converters.tf.ir.values import Array, Shape, shape_text

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

    single = True
    packed = (1,)

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of x with N columns."""
        if x[0][-1] != x[1][0]:
            raise _misfit(x[0], x[1])
        return ((*x[0][:-1], x[1][1]),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the product."""
        x = x.wide()
        return [finish(x[0] @ x[1], [x.get(2), x.get(3)], self.activation)]

    def macs(self, node: Node) -> int:
        """Returns K for each element of the result."""
        return elements(node.input.shape) * numbers(node.given(1).shape)[-1]

    def scratch(self, node: Node, packed: bool = True) -> int:
        """Returns nothing for a packed kernel, else the memory that packs it."""
        if packed:
            return 0
        k, n = numbers(node.given(1).shape)
        return plain_product(elements(node.input.shape) // max(k, 1), n, k)

    def overwritten(self, node: Node) -> tuple[int, ...]:
        """Returns the residual."""
        return (3,) if node.operand(3) is not None else ()


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

    single = True
    packed = (1,)

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of x with N columns."""
        return ((*x[0][:-1], x[1][-1]),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the product of the scaled operand."""
        x = x.wide()
        kernel = x[1]
        rows = affine(x[0], x[4], x.get(5))
        rows = rows if self.bounds is None else apply(self.bounds, rows)
        result = rows @ kernel.reshape(kernel.shape[-2:])
        return [finish(result, [x.get(2), x.get(3)], self.activation)]

    def macs(self, node: Node) -> int:
        """Returns K for each element of the result, and what scaling with a shift costs."""
        scaled = elements(node.input.shape) if node.operand(5) is not None else 0
        return elements(node.input.shape) * numbers(node.given(1).shape)[-1] + scaled

    def overwritten(self, node: Node) -> tuple[int, ...]:
        """Returns the residual."""
        return (3,) if node.operand(3) is not None else ()


@dataclass(frozen=True)
class MatMul(Op):
    """Matmuls: (a [..., M, K], b [..., K, N], bias [N]?), f32.

    The leading axes broadcast as in NumPy. With `transpose_a`, a is [..., K, M]; with
    `transpose_b`, b is [..., N, K].
    """

    transpose_a: bool = False
    transpose_b: bool = False
    activation: Function | None = None

    single = True

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns `[..., M, N]` with the leading axes that broadcasting gives."""
        a, b = x[0], x[1]
        left = (a[-1], a[-2]) if self.transpose_a else (a[-2], a[-1])
        right = (b[-1], b[-2]) if self.transpose_b else (b[-2], b[-1])
        if left[1] != right[0]:
            differ(left[1], right[0])
            raise _misfit(a, b)
        return ((*broadcast(a[:-2], b[:-2]), left[0], right[1]),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the products."""
        x = x.wide()
        a = np.swapaxes(x[0], -1, -2) if self.transpose_a else x[0]
        b = np.swapaxes(x[1], -1, -2) if self.transpose_b else x[1]
        return [finish(a @ b, [x.get(2)], self.activation)]

    def macs(self, node: Node) -> int:
        """Returns K for each element of the result."""
        depth = numbers(node.input.shape)[-2 if self.transpose_a else -1]
        return elements(node.output.shape) * depth

    def scratch(self, node: Node, packed: bool = True) -> int:
        """Returns the memory that packs the second operand: of many small matrices together."""
        *lead, m, n = numbers(node.output.shape)
        k = numbers(node.input.shape)[-2 if self.transpose_a else -1]
        if has_open((*numbers(node.output.shape), k)):
            each = max(packed_len(lanes, k, n) for lanes in LANES)
            return each * math.prod(lead)
        direct = m <= DIRECT_ROWS and not self.transpose_a and not self.transpose_b
        if m <= 1 or n <= 1 or k == 0 or direct:
            return 0
        one = max(packed_len(lanes, packed_rows(k), n) for lanes in LANES)
        if 2 * m * n * k >= _LARGE_PRODUCT:
            return one
        most = one
        for lanes in LANES:
            each = packed_len(lanes, k, n)
            most = max(most, each * min(max(1, _PACKED_TOGETHER // each), max(1, math.prod(lead))))
        return most


@dataclass(frozen=True)
class WholeProduct(Op):
    """Matmuls of integers: (a [..., M, K], b [..., K, N]).

    The leading axes are the same, or b has none.
    """

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns `[..., M, N]`."""
        if x[0][-1] != x[1][-2]:
            raise _misfit(x[0], x[1])
        return ((*x[0][:-1], x[1][-1]),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the products."""
        return [np.matmul(x[0], x[1])]

    def refused(self, node: Node) -> list[str]:
        """Returns whether the runtime multiplies the type."""
        return unserved("matmul", node.input.dtype, INTEGERS)


@dataclass(frozen=True)
class Cholesky(Op):
    """The lower triangular `l` with `l @ transpose(l) = x`: (x [..., N, N]).

    Only the lower triangle of x is read. That of the result is NaN if x is not positive definite.
    """

    single = True

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of x."""
        return (x[0],)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the factors."""
        return [_each(_factor, x.wide()[0])]


@dataclass(frozen=True)
class TriangularSolve(Op):
    """Solves `matrix @ y = right`: (matrix [..., N, N], right [..., N, M]) -> y.

    The lower or upper triangle of the matrix is read, and then transposed if that is asked for. A
    zero in the diagonal divides as numbers do.
    """

    lower: bool = True
    transposed: bool = False

    single = True

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns `[..., N, M]`."""
        return ((*x[0][:-2], *x[1][-2:]),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the solutions, by substitution."""
        x = x.wide()
        return [_each(lambda a, b: _substituted(self, a, b), x[0], x[1])]


@dataclass(frozen=True)
class Solve(Op):
    """Solves `matrix @ y = right`: (matrix [..., N, N], right [..., N, M]) -> y.

    With `transposed`, the matrix is. One that has no inverse is an error of the call.
    """

    transposed: bool = False

    single = True

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns `[..., N, M]`."""
        return ((*x[0][:-2], *x[1][-2:]),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the solutions."""
        x = x.wide()
        return [_each(lambda a, b: _solved(self, a, b), x[0], x[1])]

    def scratch(self, node: Node, packed: bool = True) -> int:
        """Returns the memory of one matrix."""
        return numbers(node.input.shape)[-1] ** 2


@dataclass(frozen=True)
class LogDeterminant(Op):
    """The determinants of matrices: (x [..., N, N]) -> (sign [...], log of the magnitude [...])."""

    single = True

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the leading axes, twice."""
        return (x[0][:-2], x[0][:-2])

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns signs and logarithms."""
        return [np.asarray(part) for part in np.linalg.slogdet(x.wide()[0])]

    def scratch(self, node: Node, packed: bool = True) -> int:
        """Returns the memory of one matrix."""
        return numbers(node.input.shape)[-1] ** 2


# Matrices that are packed together have at most so many elements.
_PACKED_TOGETHER = 2 * 1024 * 1024
# Floating-point operations of a matrix product that is computed by itself.
_LARGE_PRODUCT = 16_000_000


def _misfit(a: Shape, b: Shape) -> ShapeError:
    return ShapeError(f"{shape_text(a)} times {shape_text(b)} don't fit")


def _each(function: Callable[..., Any], *operands: Array) -> Array:
    """Applies a function to the matrices of all operands, which have the same leading axes."""
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


def _substituted(op: TriangularSolve, matrix: Array, right: Array) -> Array:
    triangle = np.tril(matrix) if op.lower else np.triu(matrix)
    triangle = triangle.T if op.transposed else triangle
    out = np.zeros(right.shape)
    size = len(triangle)
    for i in range(size) if op.lower != op.transposed else reversed(range(size)):
        known = slice(0, i) if op.lower != op.transposed else slice(i + 1, size)
        out[i] = (right[i] - triangle[i, known] @ out[known]) / triangle[i, i]
    return out


def _solved(op: Solve, matrix: Array, right: Array) -> Array:
    if np.isnan(matrix).any():
        raise ArithmeticError("a matrix has no inverse")
    try:
        return np.asarray(np.linalg.solve(matrix.T if op.transposed else matrix, right))
    except np.linalg.LinAlgError as err:
        raise ArithmeticError("a matrix has no inverse") from err
