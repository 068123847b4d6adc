"""Images that are resized."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array
from converters.tf.ir.expressions import is_open
from converters.tf.load.onnx.context import Context, Handler, Result, fixed, whole
from converters.tf.load.onnx.resizing_open import Places, resize_open, scaled
from converters.tf.load.onnx.values import Known
from converters.tf.load.saved_model.replay import Refused


@dataclass(frozen=True)
class _Axis:
    """An axis that is resized.

    Attributes:
        size: Its size.
        result: The size of the result.
        scale: The factor that places are computed by.
        region: Where the part lies that is resized, from 0 to 1.
    """

    size: int
    result: int
    scale: float
    region: tuple[float, float]

    @property
    def whole(self) -> bool:
        """Returns whether the factor gives the size of the result without rounding."""
        return self.size * self.scale == self.result


def _sizes(ctx: Context) -> tuple[list[int], list[int], list[float] | None]:
    """Returns the sizes of the spatial axes, those of the result, and the factors, if they count.

    A size may be open.
    """
    shape = ctx.shape(0)
    scales, sizes = _given(ctx)
    rank = len(shape)
    axes = _chosen(ctx)
    policy = ctx.text("keep_aspect_ratio_policy", "stretch", list(_POLICIES))
    factors: list[float] = [1.0] * rank
    outputs = [*shape]
    if scales is not None:
        for axis, scale in zip(axes, scales, strict=True):
            factors[axis] = scale
        outputs = [
            d if f == 1.0 else scaled(whole(d, "a size that is resized"), f)
            for d, f in zip(shape, factors, strict=True)
        ]
    elif sizes is not None:
        for axis, size in zip(axes, sizes, strict=True):
            outputs[axis] = size
        if policy != "stretch":
            both = [(fixed(outputs[a], "a size"), fixed(shape[a], "a size")) for a in axes]
            scale = _POLICIES[policy](o / n for o, n in both)
            for axis, (_, n) in zip(axes, both, strict=True):
                # Halves are rounded up.
                factors[axis], outputs[axis] = scale, math.floor(n * scale + 0.5)
    else:
        raise Refused("a resize without scales and sizes")
    if tuple(outputs[:2]) != tuple(shape[:2]):
        raise Refused("a resize of the batch or of channels")
    full = [whole(d, "a size") for d in outputs[2:]]
    spatial = [whole(d, "the size of an image") for d in shape[2:]]
    if not full or any(not is_open(n) and not 1 <= n <= 1 << 20 for n in full):
        raise Refused(f"a resize of {spatial} to {full}")
    counts = scales is not None or policy != "stretch"
    return spatial, full, factors[2:] if counts else None


def _chosen(ctx: Context) -> list[int]:
    rank = ctx.rank(0)
    return [int(a) % rank for a in ctx.attr("axes") or range(rank)]


_POLICIES: Mapping[str, Any] = {"stretch": None, "not_larger": min, "not_smaller": max}


def _regions(ctx: Context) -> list[tuple[float, float]]:
    """Returns the parts of all axes that are resized."""
    axes = _chosen(ctx)
    regions = [(0.0, 1.0)] * ctx.rank(0)
    if ctx.attr("coordinate_transformation_mode") == "tf_crop_and_resize":
        ends = [float(r) for r in ctx.array(1).ravel()]
        if len(ends) != 2 * len(axes):
            raise Refused(f"roi={ends} for {len(axes)} axes")
        for i, axis in enumerate(axes):
            regions[axis] = (ends[i], ends[i + len(axes)])
    return regions


def _given(ctx: Context) -> tuple[list[float] | None, list[Any] | None]:
    if ctx.node.op == "Upsample" and ctx.node.version < 9:
        return [float(s) for s in ctx.attr("scales")], None
    if ctx.node.op == "Upsample" or ctx.node.version < 11:
        return [float(s) for s in ctx.array(1).ravel()], None
    if ctx.has(3) and len(ctx.dims(3).ravel()):
        return None, list(ctx.dims(3).ravel())
    return ([float(s) for s in ctx.array(2).ravel()] or None) if ctx.has(2) else None, None


# Which places of pixels TensorFlow's own op knows.
_PLAIN = ("align_corners", "asymmetric", "half_pixel")


def _resize(ctx: Context) -> Result:
    mode = ctx.text("mode", "nearest", ["nearest", "linear", "cubic"])
    old = ctx.node.op == "Upsample" or ctx.node.version < 11
    known = [
        "half_pixel",
        "half_pixel_symmetric",
        "pytorch_half_pixel",
        "align_corners",
        "asymmetric",
        "tf_crop_and_resize",
    ]
    where = ctx.text("coordinate_transformation_mode", "asymmetric" if old else "half_pixel", known)
    rounding = ctx.text(
        "nearest_mode",
        "floor" if old else "round_prefer_floor",
        ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"],
    )
    antialias = bool(ctx.attr("antialias", 0))
    spatial, outputs, factors = _sizes(ctx)
    x = ctx.last(0)
    if any(map(is_open, (*spatial, *outputs))):
        if antialias:
            raise Refused("an open size and antialias")
        return ctx.result_last(
            resize_open(ctx, spatial, outputs, factors, Places(mode, where, rounding))
        )
    scales = [o / n for n, o in zip(spatial, outputs, strict=True)] if factors is None else factors
    parts = zip(spatial, outputs, scales, _regions(ctx)[2:], strict=True)
    axes = [_Axis(*part) for part in parts]
    slope = float(ctx.attr("cubic_coeff_a", -0.75))
    outside = bool(ctx.attr("exclude_outside", 0))
    plain = mode == "linear" and len(axes) == 2 and where in _PLAIN and not antialias
    exact = all(a.whole or a.scale == a.result / a.size for a in axes)
    if plain and exact and outputs != spatial:
        return ctx.result_last(_bilinear(x, outputs, where))
    whole = [o // n if o % n == 0 else 0 for n, o in zip(spatial, outputs, strict=True)]
    repeats = (where == "asymmetric" and rounding == "floor") or (
        "half_pixel" in where and rounding.startswith("round")
    )
    if mode == "nearest" and len(axes) == 2 and all(whole) and exact and repeats:
        return ctx.result_last(tf.image.resize(x, outputs, "nearest"))
    inside = None
    for place, axis in enumerate(axes):
        n, at = axis.size, _places(axis, where)
        if where == "tf_crop_and_resize":
            there = (at >= 0) & (at <= n - 1)
            there = there.reshape([-1 if i == place else 1 for i in range(len(axes))])
            inside = there if inside is None else inside & there
        if mode == "nearest":
            chosen = np.clip(_rounded(at, rounding), 0, n - 1).astype(np.int32)
            if not np.array_equal(chosen, np.arange(n)):
                x = tf.gather(x, chosen, axis=place + 1)
        elif axis.result != n or not np.array_equal(at, np.arange(n)):
            wide = 1 / axis.scale if antialias and axis.scale < 1 else 1.0
            if mode == "linear":
                matrix = _weights(at, n, 1.0, wide, _triangle, outside)
            else:
                matrix = _weights(at, n, 2.0, wide, lambda d: _cubic(d, slope), outside)
            x = _mixed(ctx, x, matrix, place + 1)
    if inside is not None and not inside.all():
        beyond = np.float32(ctx.attr("extrapolation_value", 0.0))
        x = tf.where(inside[None, ..., None], x, tf.cast(beyond, x.dtype))
    return ctx.result_last(x)


def _bilinear(x: Any, outputs: Sequence[int], where: str) -> Any:
    return tf.raw_ops.ResizeBilinear(
        images=x,
        size=outputs,
        align_corners=where == "align_corners",
        half_pixel_centers=where == "half_pixel",
    )


def _places(axis: _Axis, where: str) -> Array:
    """Returns the place of every output among the inputs of an axis."""
    n, o, scale = axis.size, axis.result, axis.scale
    at = np.arange(o, dtype=np.float64)
    if where in ("align_corners", "tf_crop_and_resize"):
        # The size of the result before it is rounded.
        last, (start, end) = n * scale - 1, axis.region
        if o == 1 or last == 0:
            middle = 0.0 if where == "align_corners" else (start + end) / 2
            return at * 0 + middle * (n - 1)
        return start * (n - 1) + at * (end - start) * (n - 1) / last
    if where == "asymmetric":
        return at / scale
    if where == "pytorch_half_pixel" and o == 1:
        return at * 0
    if where == "half_pixel_symmetric":  # The same distance from both ends.
        offset = n / 2 * (1 - o / (n * scale))
        return offset + (at + 0.5) / scale - 0.5
    return (at + 0.5) / scale - 0.5


def _rounded(at: Array, rounding: str) -> Array:
    if rounding == "round_prefer_floor":
        return np.ceil(at - 0.5)
    if rounding == "round_prefer_ceil":
        return np.floor(at + 0.5)
    return np.floor(at) if rounding == "floor" else np.ceil(at)


def _triangle(distance: Array) -> Array:
    return np.asarray(np.maximum(0, 1 - distance))


def _cubic(x: Array, a: float) -> Array:
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.asarray(np.where(x <= 1, near, np.where(x < 2, far, 0)))


def _weights(
    at: Array, n: int, reach: float, wide: float, weight: Any, without_outside: bool
) -> Array:
    """Returns the weights `[outputs, inputs]` of interpolation.

    Args:
        at: The places of the outputs among the inputs.
        n: How many inputs there are.
        reach: The distance from which on weights are 0.
        wide: How much farther it reaches, so that a small image sees every pixel.
        weight: The weight by distance.
        without_outside: Whether what lies outside has no weight; else it is the outermost pixel.
    """
    matrix = np.zeros((len(at), n))
    low = np.floor(at)
    most = math.ceil(reach * wide)
    total = np.zeros(len(at))
    for tap in range(1 - most, most + 1):
        place = low + tap
        own = weight(np.abs(at - place) / wide)
        if without_outside:
            own = np.where((place < 0) | (place >= n), 0, own)
        total += own
        np.add.at(matrix, (np.arange(len(at)), np.clip(place, 0, n - 1).astype(int)), own)
    if without_outside or wide > 1:
        matrix /= total[:, None]
    return matrix.astype(np.float32)


def _mixed(ctx: Context, x: Any, matrix: Array, axis: int) -> Any:
    """Returns a tensor whose axis is multiplied by a matrix of weights."""
    if matrix.size > 1 << 24:
        raise Refused(f"resizing by {matrix.shape[0]} x {matrix.shape[1]} weights")
    weights = ctx.session.tensor(Known(matrix, role="weights"))
    left = [d if d is not None else -1 for d in x.shape.as_list()[:axis]]
    rest = math.prod(x.shape.as_list()[axis + 1 :])
    flat = tf.reshape(x, [*left, matrix.shape[1], rest])
    mixed = tf.matmul(weights, flat)
    return tf.reshape(mixed, [*left, matrix.shape[0], *x.shape.as_list()[axis + 1 :]])


OPS: Mapping[str, Handler] = {"Resize": _resize, "Upsample": _resize}
