"""Images of another size by filters: every row of the result is a weighted sum of rows.

A filter along one axis is a constant matrix, so that resizing is two matmuls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from converters.tf import ir
from converters.tf.ir.build import static
from converters.tf.ir.symbolic import product
from converters.tf.lower.graph import Context, Handler, Result, Unsupported

# TensorFlow looks the weights of bicubic resizing up: so many places from one pixel to the next.
_PLACES = 1024
# Elements of a matrix of weights, 64 MB of them.
_MOST_WEIGHTS = 1 << 24


def _cubic(x: float, a: float) -> float:
    """Returns a cubic filter of radius 2; `a` is its slope where it crosses 0."""
    if x >= 2:
        return 0.0
    if x >= 1:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return ((a + 2) * x - (a + 3)) * x * x + 1


def _mitchell(x: float) -> float:
    if x >= 2:
        return 0.0
    if x >= 1:
        return (((-7 / 18) * x + 2) * x - 10 / 3) * x + 16 / 9
    return ((7 / 6) * x - 2) * x * x + 8 / 9


def _lanczos(radius: int) -> Callable[[float], float]:
    def weight(x: float) -> float:
        if x > radius:
            return 0.0
        if x <= 1e-3:
            return 1.0
        turn = math.pi * x
        return radius * math.sin(turn) * math.sin(turn / radius) / (turn * turn)

    return weight


@dataclass(frozen=True)
class _Filter:
    """A symmetric filter: its weight at a distance, 0 from `radius` on."""

    radius: float
    weight: Callable[[float], float]


_FILTERS: Mapping[str, _Filter] = {
    "lanczos1": _Filter(1, _lanczos(1)),
    "lanczos3": _Filter(3, _lanczos(3)),
    "lanczos5": _Filter(5, _lanczos(5)),
    "gaussian": _Filter(1.5, lambda x: 0.0 if x >= 1.5 else math.exp(-2 * x * x)),
    "triangle": _Filter(1, lambda x: max(0.0, 1 - x)),
    "keyscubic": _Filter(2, lambda x: _cubic(x, -0.5)),
    "mitchellcubic": _Filter(2, _mitchell),
}


def _zeros(out: int, size: int) -> ir.Array:
    if out * size > _MOST_WEIGHTS:
        what = f"an axis of {size} pixels to {out} by a filter of {out} x {size} weights"
        raise Unsupported(f"resizing {what}; at most {_MOST_WEIGHTS} weights are built in")
    return np.zeros((out, size), np.float32)


def bicubic_matrix(size: int, out: int, align: bool, half: bool) -> ir.Array:
    """Returns the weights `[out, size]` of `ResizeBicubic` along an axis.

    Raises:
        Unsupported: They are too many.
    """
    matrix = _zeros(out, size)
    scale = np.float32((size - 1) / (out - 1) if align and out > 1 else size / out)
    for row in range(out):
        at = np.float32(np.float32(row + 0.5) * scale - np.float32(0.5))
        at = at if half else np.float32(row) * scale
        first = math.floor(at)
        offset = round(float(at - np.float32(first)) * _PLACES) / _PLACES
        for tap in range(-1, 3):
            weight = _cubic(abs(tap - offset), -0.5 if half else -0.75)
            place = min(max(first + tap, 0), size - 1)
            # Around half pixels, what lies outside has no weight; else the edge is repeated.
            if not half or place == first + tap:
                matrix[row, place] += np.float32(weight)
        if half:
            matrix[row] /= matrix[row].sum()
    return matrix


def filter_matrix(
    size: int, out: int, scale: float, shift: float, kind: str, smooth: bool
) -> ir.Array:
    """Returns the weights `[out, size]` of `ScaleAndTranslate` along an axis.

    Raises:
        Unsupported: The filter is not known, or the weights are too many.
    """
    known = _FILTERS.get(kind)
    if known is None:
        raise Unsupported(f"the filter {kind}; supported: {', '.join(sorted(_FILTERS))}")
    inverse = np.float32(1) / np.float32(scale)
    wide = max(float(inverse), 1.0) if smooth else 1.0
    matrix = _zeros(out, size)
    for row in range(out):
        at = float(np.float32(row + 0.5) * inverse - inverse * np.float32(shift))
        if not 0 <= at <= size:
            continue
        first = max(math.ceil(at - known.radius * wide - 0.5), 0)
        last = min(math.floor(at + known.radius * wide - 0.5), size - 1)
        for place in range(first, last + 1):
            matrix[row, place] = known.weight(abs(place + 0.5 - at) / wide)
        total = matrix[row].sum()
        if abs(total) >= 1000 * np.finfo(np.float32).tiny:
            matrix[row] /= total
    return matrix


def _resampled(ctx: Context, rows: ir.Array, columns: ir.Array) -> ir.Value:
    """Returns images [batch, height, width, C] with both axes filtered."""
    x = ctx.build.cast(ctx.value(0), ir.DType.F32)
    batch, height, width, channels = x.shape
    x = ctx.build.reshape(x, (batch, height, product([width, channels])))
    x = ctx.build.mat_mul(ir.constant(rows, "rows"), x)
    tall = len(rows)
    x = ctx.build.reshape(x, (product([batch, tall]), width, channels))
    x = ctx.build.mat_mul(ir.constant(columns, "columns"), x)
    return ctx.build.reshape(x, (batch, tall, len(columns), channels))


def _sizes(ctx: Context) -> list[int]:
    return [static(d, "the size of an image") for d in ctx.value(0).shape[1:3]]


def _bicubic(ctx: Context) -> Result:
    align, half = bool(ctx.attr("align_corners")), bool(ctx.attr("half_pixel_centers"))
    rows, columns = (
        bicubic_matrix(size, out, align, half)
        for size, out in zip(_sizes(ctx), ctx.ints(1), strict=True)
    )
    return _resampled(ctx, rows, columns)


def area_matrix(size: int, out: int, align: bool) -> ir.Array:
    """Returns the weights `[out, size]` of `ResizeArea` along an axis: the shares of pixels.

    Raises:
        Unsupported: They are too many.
    """
    matrix = _zeros(out, size)
    scale = np.float32((size - 1) / (out - 1) if align and out > 1 else size / out)
    for row in range(out):
        first, last = np.float32(row) * scale, np.float32(row + 1) * scale
        for place in range(math.floor(first), math.ceil(last)):
            share = min(float(last), place + 1) - max(float(first), place)
            matrix[row, min(place, size - 1)] += np.float32(share / float(scale))
    return matrix


def _area(ctx: Context) -> Result:
    rows, columns = (
        area_matrix(size, out, bool(ctx.attr("align_corners")))
        for size, out in zip(_sizes(ctx), ctx.ints(1), strict=True)
    )
    return _resampled(ctx, rows, columns)


def _scale_and_translate(ctx: Context) -> Result:
    scales, shifts = (np.ravel(ctx.array(i)).tolist() for i in (2, 3))
    kind, smooth = str(ctx.attr("kernel_type", "lanczos3")), bool(ctx.attr("antialias", True))
    rows, columns = (
        filter_matrix(size, out, scale, shift, kind, smooth)
        for size, out, scale, shift in zip(_sizes(ctx), ctx.ints(1), scales, shifts, strict=True)
    )
    return _resampled(ctx, rows, columns)


OPS: dict[str, Handler] = {
    "ResizeArea": _area,
    "ResizeBicubic": _bicubic,
    "ScaleAndTranslate": _scale_and_translate,
}
