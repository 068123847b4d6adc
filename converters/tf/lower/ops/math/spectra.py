"""Fourier transforms, as products with matrices of cosines and sines."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind, Fn
from converters.tf.ir.build import Builder, static
from converters.tf.lower.graph import Context, Handler, Result, Unsupported
from converters.tf.lower.ops.math.complex_numbers import of, product
from converters.tf.lower.tensors import Complex

# A transform of at least so many points is done in two steps.
_TWO_STEPS = 64


def _factor(points: int) -> int:
    """Returns the largest divisor up to the square root."""
    return max(d for d in range(1, int(points**0.5) + 1) if points % d == 0)


def _turns(points: int, steps: ir.Array, back: bool = False) -> Complex:
    """Returns `exp(-2 pi i steps / points)`, or its conjugate if `back`.

    Quarters of a turn are exact, so that the bins that are real have imaginary parts of +0.
    """
    angle = 2 * np.pi * (steps % points) / points
    quarters = 4 * steps % (2 * points)
    cosine = np.where(quarters == points, 0, np.cos(angle))
    sine = np.where(quarters == 0, 0, np.sin(angle) if back else -np.sin(angle))
    return Complex(*(ir.constant(part.astype(np.float32)) for part in (cosine, sine)))


def _times(build: Builder, x: ir.Value | Complex, matrix: Complex) -> Complex:
    """Multiplies rows of real or complex numbers by a matrix."""
    if isinstance(x, ir.Value):
        return Complex(build.mat_mul(x, matrix.real), build.mat_mul(x, matrix.imaginary))
    rr, ri, ir_, ii = (
        build.mat_mul(part, other)
        for part in (x.real, x.imaginary)
        for other in (matrix.real, matrix.imaginary)
    )
    real = build.binary(BinaryKind.SUB, rr, ii)
    return Complex(real, build.binary(BinaryKind.ADD, ri, ir_))


def _mapped(x: ir.Value | Complex, function: Callable[[ir.Value], ir.Value]) -> ir.Value | Complex:
    if isinstance(x, ir.Value):
        return function(x)
    return Complex(function(x.real), function(x.imaginary))


def _shape(x: ir.Value | Complex) -> ir.Shape:
    return x.shape if isinstance(x, ir.Value) else x.real.shape


def _complex(x: ir.Value | Complex) -> Complex:
    assert isinstance(x, Complex)
    return x


def _fitted(build: Builder, x: ir.Value | Complex, points: int) -> ir.Value | Complex:
    """Cuts the last axis, or adds zeros to its end."""
    shape = _shape(x)
    size, last = static(shape[-1], "a signal"), len(shape) - 1
    if size > points:
        return _mapped(x, lambda v: build.part(v, last, 0, points))
    padding = [*[(0, 0)] * last, (0, points - size)]
    return _mapped(x, lambda v: build.pad(v, padding))


def transform(
    build: Builder, x: ir.Value | Complex, points: int, bins: int, back: bool = False
) -> Complex:
    """Transforms the last axis, without the factor of the way back; gives the first `bins`.

    Raises:
        Unsupported: The elements are not float32.
    """
    part = x if isinstance(x, ir.Value) else x.real
    if part.dtype is not ir.DType.F32:
        raise Unsupported(f"a Fourier transform of {part.dtype}")
    x = _fitted(build, x, points)
    rows = _factor(points) if points else 1
    if points < _TWO_STEPS or rows == 1:
        return _times(build, x, _turns(points, np.outer(np.arange(points), np.arange(bins)), back))
    whole = _in_two_steps(build, x, (rows, points // rows), back)
    last = len(_shape(whole)) - 1
    return _complex(_mapped(whole, lambda v: build.part(v, last, 0, bins)))


def _in_two_steps(
    build: Builder, x: ir.Value | Complex, sizes: tuple[int, int], back: bool
) -> Complex:
    """Transforms points in a matrix: along its columns, turned, then along its rows.

    With `n = columns * a + b` and `k = c + rows * d`, the sum over `n` is one over `a`, which
    gives `[b, c]`, times `exp(-2 pi i b c / points)`, then one over `b`.
    """
    rows, columns = sizes
    points, lead = rows * columns, _shape(x)[:-1]
    swapped = [*range(len(lead)), len(lead) + 1, len(lead)]

    def turned(value: ir.Value) -> ir.Value:
        return build.transpose(value, swapped)

    x = _mapped(x, lambda v: turned(build.reshape(v, (*lead, rows, columns))))
    first = _times(build, x, _turns(rows, np.outer(np.arange(rows), np.arange(rows)), back))
    steps = np.outer(np.arange(columns), np.arange(rows))
    second = _mapped(product(build, first, _turns(points, steps, back)), turned)
    matrix = _turns(columns, np.outer(np.arange(columns), np.arange(columns)), back)
    whole = _mapped(_times(build, second, matrix), turned)
    return _complex(_mapped(whole, lambda v: build.reshape(v, (*lead, points))))


def _scaled(build: Builder, x: ir.Value, points: int) -> ir.Value:
    return build.binary(BinaryKind.MUL, x, build.scalar(1 / max(points, 1), x.dtype))


def _along(build: Builder, x: ir.Value | Complex, points: int, back: bool, axis: int) -> Complex:
    """Transforms one of the last axes, with the factor of the way back."""
    rank = len(_shape(x))
    order = [i for i in range(rank) if i != rank + axis]
    order.append(rank + axis)
    behind = [order.index(i) for i in range(rank)]
    moved = _mapped(x, lambda v: build.transpose(v, order))
    found = transform(build, moved, points, points, back)
    found = _complex(_mapped(found, lambda v: build.transpose(v, behind)))
    return _complex(_mapped(found, lambda v: _scaled(build, v, points))) if back else found


def _real_from(build: Builder, x: Complex, points: int) -> ir.Value:
    """Transforms the first half of a spectrum back; the other half is its mirror image."""
    bins = points // 2 + 1
    half = _complex(_fitted(build, x, bins))
    last = half.real.rank - 1
    begin = [bins - 1 - (points + 1) % 2 if i == last else 0 for i in range(last + 1)]
    counts = [points - bins if i == last else d for i, d in enumerate(half.real.shape)]
    steps = [-1 if i == last else 1 for i in range(last + 1)]

    def whole(value: ir.Value, mirror: Fn | None) -> ir.Value:
        if points == bins:
            return value
        other = build.slice(value, begin, counts, steps)
        other = build.unary(mirror, other) if mirror else other
        return build.concat([value, other], last)

    spectrum = Complex(whole(half.real, None), whole(half.imaginary, Fn.NEG))
    return _scaled(build, transform(build, spectrum, points, points, back=True).real, points)


def _rfft(axes: int) -> Handler:
    def handler(ctx: Context) -> Result:
        *others, points = ctx.ints(1)
        found = transform(ctx.build, ctx.value(0), points, points // 2 + 1)
        for axis, size in enumerate(others):
            found = _along(ctx.build, found, size, False, axis - axes)
        return found

    return handler


def _irfft(axes: int) -> Handler:
    def handler(ctx: Context) -> Result:
        *others, points = ctx.ints(1)
        x = of(ctx)
        for axis, size in enumerate(others):
            x = _along(ctx.build, x, size, True, axis - axes)
        return _real_from(ctx.build, x, points)

    return handler


def _fft(axes: int, back: bool) -> Handler:
    def handler(ctx: Context) -> Result:
        x = of(ctx)
        for axis in range(-axes, 0):
            size = static(x.real.shape[axis], "a signal")
            x = _along(ctx.build, x, size, back, axis)
        return x

    return handler


_NAMES = ("", "2D", "3D")

OPS: dict[str, Handler] = {
    **{f"RFFT{name}": _rfft(axes) for axes, name in enumerate(_NAMES, 1)},
    **{f"IRFFT{name}": _irfft(axes) for axes, name in enumerate(_NAMES, 1)},
    **{f"FFT{name}": _fft(axes, False) for axes, name in enumerate(_NAMES, 1)},
    **{f"IFFT{name}": _fft(axes, True) for axes, name in enumerate(_NAMES, 1)},
}
