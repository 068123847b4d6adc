"""Images whose scales or sizes a call gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.load.onnx.agreed import Agreed, confirmed, length, sizes_of, wanted
from converters.tf.load.onnx.context import Context, Handler, Result
from converters.tf.load.onnx.stated import Fixed
from converters.tf.load.saved_model.replay import Refused

# Weights of the largest matrix by which an axis is resized.
_MOST_WEIGHTS = 1 << 20
_ZERO = np.float64(0)


def _resized(ctx: Context, plain: Handler) -> Result:
    """Resizes axis by axis, with places and weights that each call computes."""
    shape = sizes_of(ctx, 0)
    mode = ctx.text("mode", "nearest", ["nearest", "linear", "cubic"])
    old = ctx.node.op == "Upsample" or ctx.node.version < 11
    where = ctx.attr("coordinate_transformation_mode", "asymmetric" if old else "half_pixel")
    rounding = ctx.attr("nearest_mode", "floor" if old else "round_prefer_floor")
    if where not in _PLACES or rounding not in _ROUNDED:
        raise Refused(f"coordinate_transformation_mode={where!r} with nearest_mode={rounding!r}")
    axes = [int(a) % len(shape) for a in ctx.attr("axes") or range(len(shape))]
    full, scales, holds = _scales(ctx, shape, axes, old)
    regions = _regions(ctx, axes, where)
    x, inside = ctx.form(0), None
    dtype = x.dtype
    for axis, scale, region in zip(axes, scales, regions, strict=True):
        own, size = shape[axis], full[axis]
        at = _PLACES[where](own, size, scale, region)
        if where == "tf_crop_and_resize":
            there = tf.logical_and(at >= 0, at <= own - 1)
            there = tf.reshape(there, [-1 if i == axis else 1 for i in range(len(shape))])
            inside = there if inside is None else tf.logical_and(inside, there)
        if mode == "nearest":
            place = tf.clip_by_value(_ROUNDED[rounding](at), 0.0, float(own - 1))
            x = tf.gather(x, tf.cast(place, tf.int32), axis=axis)
        else:
            x = _mixed(x, _weights(ctx, at, own, size, scale, mode), axis)
    if inside is not None:
        beyond = np.float32(ctx.attr("extrapolation_value", 0.0))
        x = tf.where(inside, x, tf.cast(beyond, x.dtype))
    return confirmed(ctx, tf.cast(x, dtype), holds)


def _scales(
    ctx: Context, shape: Fixed, axes: Sequence[int], old: bool
) -> tuple[Fixed, list[Any], Any]:
    """Returns the result's shape, a scale for each axis, and whether both agree."""
    index = 1 if old else 2
    by_size = not old and ctx.has(3) and length(ctx, 3) > 0
    full = wanted(ctx, 3 if by_size else index)
    own = np.array([shape[a] for a in axes], np.float64)
    results = np.array([full[a] for a in axes], np.float64)
    rest = [i for i in range(len(shape)) if i not in axes]
    if len(full) != len(shape) or 0 in shape or any(shape[i] != full[i] for i in rest):
        raise Refused(f"a resize of {shape} to {full}")
    if length(ctx, 3 if by_size else index) != len(axes):
        raise Refused(f"a resize of {len(axes)} axes by other numbers")
    if not by_size:
        scale = tf.cast(tf.reshape(ctx.form(index), [len(axes)]), tf.float64)
        found = tf.floor(scale * own)
    else:
        policy = ctx.text("keep_aspect_ratio_policy", "stretch", ["stretch", *_POLICIES])
        sizes = tf.cast(tf.reshape(ctx.form(3), [len(axes)]), tf.float64)
        scale = sizes / own
        found = sizes
        if policy != "stretch":
            scale = _POLICIES[policy](scale, 0, keepdims=True) * tf.ones([len(axes)], tf.float64)
            # Halves are rounded up.
            found = tf.floor(scale * own + 0.5)
    holds = tf.reduce_all(tf.equal(found, results))
    return full, [scale[place] for place in range(len(axes))], holds


_POLICIES: Mapping[str, Any] = {"not_larger": tf.reduce_min, "not_smaller": tf.reduce_max}


def _regions(ctx: Context, axes: Sequence[int], where: str) -> list[tuple[Any, Any]]:
    """Returns the part of each axis that is resized, from 0 to 1."""
    if where != "tf_crop_and_resize":
        return [(0.0, 1.0)] * len(axes)
    if not ctx.has(1) or length(ctx, 1) != 2 * len(axes):
        raise Refused(f"a part to resize of {len(axes)} axes")
    ends = tf.cast(tf.reshape(ctx.form(1), [-1]), tf.float64)
    return [(ends[i], ends[i + len(axes)]) for i in range(len(axes))]


def _counted(size: int) -> Any:
    return np.arange(size, dtype=np.float64)


def _aligned(own: int, size: int, scale: Any, region: tuple[Any, Any]) -> Any:
    if size == 1:
        return tf.zeros([1], tf.float64)
    # The last place, of the size of the result before it is rounded.
    return _counted(size) * ((own - 1) / (own * scale - 1))


def _cropped(own: int, size: int, scale: Any, region: tuple[Any, Any]) -> Any:
    start, end = region
    if size == 1:
        return tf.reshape((start + end) * (0.5 * (own - 1)), [1])
    return start * (own - 1) + _counted(size) * ((end - start) * (own - 1) / (own * scale - 1))


def _halves(own: int, size: int, scale: Any, region: tuple[Any, Any]) -> Any:
    return (_counted(size) + 0.5) / scale - 0.5


def _halves_of_pytorch(own: int, size: int, scale: Any, region: tuple[Any, Any]) -> Any:
    if size == 1:
        return tf.zeros([1], tf.float64)
    return _halves(own, size, scale, region)


def _symmetric(own: int, size: int, scale: Any, region: tuple[Any, Any]) -> Any:
    # The same distance from both ends.
    return (1.0 - size / (own * scale)) * (own / 2) + _halves(own, size, scale, region)


def _asymmetric(own: int, size: int, scale: Any, region: tuple[Any, Any]) -> Any:
    return _counted(size) / scale


# Where every output lies among the inputs of an axis.
_PLACES: Mapping[str, Callable[[int, int, Any, tuple[Any, Any]], Any]] = {
    "align_corners": _aligned,
    "asymmetric": _asymmetric,
    "half_pixel": _halves,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": _halves_of_pytorch,
    "tf_crop_and_resize": _cropped,
}
_ROUNDED: Mapping[str, Callable[[Any], Any]] = {
    "ceil": tf.math.ceil,
    "floor": tf.floor,
    "round_prefer_ceil": lambda at: tf.floor(at + 0.5),
    "round_prefer_floor": lambda at: tf.math.ceil(at - 0.5),
}


def _weights(ctx: Context, at: Any, own: int, size: int, scale: Any, mode: str) -> Any:
    """Returns the weights `[outputs, inputs]` of interpolation, as float32."""
    if own * size > _MOST_WEIGHTS:
        raise Refused(f"resizing by {size} x {own} weights that a call computes")
    reach = 1 if mode == "linear" else 2
    slope = float(ctx.attr("cubic_coeff_a", -0.75))
    outside = bool(ctx.attr("exclude_outside", 0))
    antialias = bool(ctx.attr("antialias", 0))
    # How much farther it reaches, so that a small image sees every pixel.
    wide = tf.maximum(1.0 / scale, np.float64(1)) if antialias else 1.0
    widest = max(1.0, own / size) if antialias else 1.0
    most = math.ceil(reach * widest)
    low = tf.floor(at)
    matrix: Any = None
    total: Any = None
    for tap in range(1 - most, most + 1):
        place = low + float(tap)
        distance = tf.abs(at - place) / wide
        weight = tf.maximum(1.0 - distance, _ZERO) if reach == 1 else _cubic(distance, slope)
        if outside:
            there = tf.logical_and(place >= 0, place <= own - 1)
            weight = tf.where(there, weight, _ZERO)
        kept = tf.clip_by_value(place, 0.0, float(own - 1))
        part = tf.where(tf.equal(kept[:, None], _counted(own)), weight[:, None], _ZERO)
        matrix = part if matrix is None else matrix + part
        total = weight if total is None else total + weight
    if outside or antialias:
        matrix = matrix / total[:, None]
    return tf.cast(matrix, tf.float32)


def _cubic(x: Any, a: float) -> Any:
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return tf.where(x <= 1, near, tf.where(x < 2, far, _ZERO))


def _mixed(x: Any, weights: Any, axis: int) -> Any:
    """Returns a tensor whose axis is multiplied by a matrix of weights."""
    shape = x.shape.as_list()
    left, right = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    flat = tf.reshape(tf.cast(x, tf.float32), [left, shape[axis], right])
    mixed = tf.matmul(weights, flat)
    return tf.reshape(mixed, [*shape[:axis], weights.shape[0], *shape[axis + 1 :]])


OPS: Mapping[str, tuple[tuple[int, ...], Agreed]] = {
    "Resize": ((1, 2, 3), _resized),
    "Upsample": ((1,), _resized),
}
