"""Fourier transforms of real numbers, as products with matrices of cosines and sines."""

from __future__ import annotations

import numpy as np

from converters.tf import ir
from converters.tf.build import Builder, static
from converters.tf.ir import BinaryKind, Fn
from converters.tf.lower import Context, Handler, Result, Unsupported
from converters.tf.tensors import Complex

# A transform of at least so many points is done in two steps.
_TWO_STEPS = 64


def _rfft(ctx: Context) -> Result:
    x, points = ctx.value(0), ctx.integer(1)
    if x.dtype is not ir.DType.F32:
        raise Unsupported(f"a Fourier transform of {x.dtype}")
    size = static(x.shape[-1], "a signal")
    build = ctx.build
    if size > points:
        x = build.part(x, x.rank - 1, 0, points)
    elif size < points:
        x = build.pad(x, [*[(0, 0)] * (x.rank - 1), (0, points - size)])
    bins = points // 2 + 1
    rows = _factor(points)
    if points < _TWO_STEPS or rows == 1:
        real, imaginary = _turns(points, np.outer(np.arange(points), np.arange(bins)))
        return Complex(_times(build, x, real), _times(build, x, imaginary))
    return _in_two_steps(build, x, rows, points // rows)


def _factor(points: int) -> int:
    """Returns the largest divisor up to the square root."""
    return max(d for d in range(1, int(points**0.5) + 1) if points % d == 0)


def _turns(points: int, steps: ir.Array) -> tuple[ir.Array, ir.Array]:
    """Returns the real and imaginary part of `exp(-2 pi i steps / points)`."""
    angle = 2 * np.pi * (steps % points) / points
    return np.cos(angle).astype(np.float32), -np.sin(angle).astype(np.float32)


def _times(build: Builder, x: ir.Value, matrix: ir.Array) -> ir.Value:
    return build.mat_mul(x, ir.constant(matrix))


def _in_two_steps(build: Builder, x: ir.Value, rows: int, columns: int) -> Complex:
    """Transforms points in a matrix: along its columns, turned, then along its rows.

    With `n = columns * a + b` and `k = c + rows * d`, the sum over `n` is one over `a`, which
    gives `[b, c]`, times `exp(-2 pi i b c / points)`, then one over `b`.
    """
    points, lead = rows * columns, x.shape[:-1]
    swapped = [*range(len(lead)), len(lead) + 1, len(lead)]
    x = build.transpose(build.reshape(x, (*lead, rows, columns)), swapped)
    outer = _turns(rows, np.outer(np.arange(rows), np.arange(rows)))
    first = Complex(_times(build, x, outer[0]), _times(build, x, outer[1]))
    turns = _turns(points, np.outer(np.arange(columns), np.arange(rows)))
    turned = _product(build, first, Complex(*(ir.constant(t) for t in turns)))
    matrix = _turns(columns, np.outer(np.arange(columns), np.arange(columns)))
    real, imaginary = (build.transpose(p, swapped) for p in (turned.real, turned.imaginary))
    parts = (
        (BinaryKind.SUB, _times(build, real, matrix[0]), _times(build, imaginary, matrix[1])),
        (BinaryKind.ADD, _times(build, real, matrix[1]), _times(build, imaginary, matrix[0])),
    )
    results = []
    for kind, one, other in parts:
        whole = build.transpose(build.binary(kind, one, other), swapped)
        flat = build.reshape(whole, (*lead, points))
        results.append(build.part(flat, len(lead), 0, points // 2 + 1))
    return Complex(*results)


def _product(build: Builder, a: Complex, b: Complex) -> Complex:
    def mul(x: ir.Value, y: ir.Value) -> ir.Value:
        return build.binary(BinaryKind.MUL, x, y)

    real = build.binary(BinaryKind.SUB, mul(a.real, b.real), mul(a.imaginary, b.imaginary))
    imaginary = build.binary(BinaryKind.ADD, mul(a.real, b.imaginary), mul(a.imaginary, b.real))
    return Complex(real, imaginary)


def _complex(ctx: Context) -> Complex:
    arg = ctx.args[0]
    if not isinstance(arg, Complex):
        raise Unsupported("complex numbers that are no spectrum")
    return arg


def _real(ctx: Context) -> Result:
    return _complex(ctx).real


def _imaginary(ctx: Context) -> Result:
    return _complex(ctx).imaginary


def _magnitude(ctx: Context) -> Result:
    x, build = _complex(ctx), ctx.build
    squares = (build.unary(Fn.SQUARE, part) for part in (x.real, x.imaginary))
    return build.unary(Fn.SQRT, build.binary(BinaryKind.ADD, *squares))


def _angle(ctx: Context) -> Result:
    x = _complex(ctx)
    return ctx.build.binary(BinaryKind.ATAN2, x.imaginary, x.real)


OPS: dict[str, Handler] = {
    "Angle": _angle,
    "RFFT": _rfft,
    "Real": _real,
    "Imag": _imaginary,
    "ComplexAbs": _magnitude,
}
