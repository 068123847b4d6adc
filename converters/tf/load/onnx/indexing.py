"""Operators that take elements by index, and those that move blocks of pixels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array
from converters.tf.load.onnx.context import Context, Handler, Result, fixed
from converters.tf.load.onnx.shapes import without
from converters.tf.load.onnx.values import Known
from converters.tf.load.saved_model.replay import Refused


def _indices(ctx: Context, index: int, size: int) -> Any:
    """Returns indices, negative ones counted from the end."""
    value = ctx.value(index)
    if isinstance(value, Known):
        return tf.constant(np.where(value.data < 0, value.data + size, value.data))
    x = ctx.form(index)
    return tf.where(x < 0, x + size, x)


def _gather(ctx: Context) -> Result:
    rank = ctx.rank(0)
    axis = ctx.axis(rank)
    size = fixed(ctx.shape(0)[axis], "the axis that elements are taken from")
    chosen = ctx.value(1)
    order = ctx.order(0)
    if isinstance(chosen, Known) and chosen.rank == 0:
        at = int(chosen.data)
        place = order.index(axis)
        part = ctx.form(0, order)[(*(slice(None),) * place, at)]
        return ctx.result(part, without(order, [axis]))
    indices = _indices(ctx, 1, size)
    if isinstance(chosen, Known) and chosen.rank == 1:
        return ctx.result(tf.gather(ctx.form(0, order), indices, axis=order.index(axis)), order)
    return ctx.result(tf.gather(ctx.form(0), indices, axis=axis))


def _gather_elements(ctx: Context) -> Result:
    rank = ctx.rank(0)
    axis = ctx.axis(rank)
    x, indices = ctx.shape(0), ctx.shape(1)
    if any(a != b for i, (a, b) in enumerate(zip(x, indices, strict=True)) if i != axis):
        raise Refused("elements of a part of the axes")
    places = _indices(ctx, 1, fixed(x[axis], "the axis that elements are taken from"))
    params = ctx.form(0)
    if axis != rank - 1:
        swap = [rank - 1 if i == axis else axis if i == rank - 1 else i for i in range(rank)]
        params, places = tf.transpose(params, swap), tf.transpose(places, swap)
        taken = tf.gather(params, places, batch_dims=rank - 1, axis=rank - 1)
        return ctx.result(tf.transpose(taken, swap))
    return ctx.result(tf.gather(params, places, batch_dims=rank - 1, axis=rank - 1))


def _gather_nd(ctx: Context) -> Result:
    lead = int(ctx.attr("batch_dims", 0))
    value = ctx.value(1)
    indices = ctx.form(1)
    depth = fixed(ctx.shape(1)[-1], "the number of axes")
    sizes = [
        fixed(d, "the axis that elements are taken from")
        for d in ctx.shape(0)[lead : lead + depth]
    ]
    if isinstance(value, Known):
        indices = tf.constant(np.where(value.data < 0, value.data + sizes, value.data))
    else:
        indices = tf.where(indices < 0, indices + tf.constant(sizes, indices.dtype), indices)
    return ctx.result(tf.gather_nd(ctx.form(0), indices, lead))


def _one_hot(ctx: Context) -> Result:
    rank = ctx.rank(0)
    depth = ctx.ints(1)[0]
    axis = int(ctx.attr("axis", -1))
    off, on = (x for x in ctx.array(2).ravel())
    indices = ctx.form(0)
    if not indices.dtype.is_integer:
        indices = tf.cast(indices, tf.int64)
    indices = tf.where(indices < 0, indices + tf.cast(depth, indices.dtype), indices)
    axis = axis if axis < 0 else axis if axis < rank else -1
    dtype = ctx.array(2).dtype
    return ctx.result(tf.one_hot(indices, depth, on, off, axis=axis, dtype=dtype))


def _depth_to_space(ctx: Context) -> Result:
    """`DCR` is TensorFlow's order of channels; for `CRD` they are brought into it first."""
    block, mode = _blocks(ctx)
    x, count = ctx.last(0), ctx.sizes(0)[0]
    if count % (block * block):
        raise Refused(f"blocks of {block} x {block} of {count} channels")
    if mode == "CRD":
        x = tf.gather(x, np.arange(count).reshape(-1, block * block).T.ravel(), axis=3)
    return ctx.result_last(x if block == 1 else tf.nn.depth_to_space(x, block))


def _space_to_depth(ctx: Context) -> Result:
    block, mode = _blocks(ctx)
    x, count = ctx.last(0), ctx.sizes(0)[0] * block * block
    y = x if block == 1 else tf.nn.space_to_depth(x, block)
    if mode == "CRD":
        y = tf.gather(y, np.arange(count).reshape(block * block, -1).T.ravel(), axis=3)
    return ctx.result_last(y)


def _blocks(ctx: Context) -> tuple[int, str]:
    block = int(ctx.attr("blocksize"))
    if block < 1 or ctx.rank(0) != 4:
        raise Refused(f"blocks of {block} pixels of a tensor with {ctx.rank(0)} axes")
    return block, ctx.text("mode", "DCR", ["DCR", "CRD"])


def _scales(ctx: Context) -> tuple[list[float] | None, list[int]]:
    """Returns the factors and the sizes of a resized image's spatial axes."""
    shape = ctx.shape(0)
    spatial = [fixed(d, "the size of an image") for d in shape[2:]]
    scales, sizes = _given(ctx)
    rank = len(shape)
    axes = [int(a) % rank for a in ctx.attr("axes") or range(rank)]
    ctx.text("keep_aspect_ratio_policy", "stretch", ["stretch"])
    factors: list[float] = [1.0] * rank
    outputs = [*shape]
    if scales is not None:
        for axis, scale in zip(axes, scales, strict=True):
            factors[axis] = scale
        outputs = [
            d if f == 1.0 else math.floor(fixed(d, "a size that is resized") * f)
            for d, f in zip(shape, factors, strict=True)
        ]
    elif sizes is not None:
        for axis, size in zip(axes, sizes, strict=True):
            outputs[axis] = size
    else:
        raise Refused("a resize without scales and sizes")
    if tuple(outputs[:2]) != tuple(shape[:2]):
        raise Refused("a resize of the batch or of channels")
    full = [fixed(d, "a size") for d in outputs[2:]]
    if not full or any(n < 1 or n > 1 << 20 for n in full):
        raise Refused(f"a resize of {spatial} to {full}")
    return (factors[2:] if scales is not None else None), full


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
    ]
    where = ctx.text("coordinate_transformation_mode", "asymmetric" if old else "half_pixel", known)
    rounding = ctx.text(
        "nearest_mode",
        "floor" if old else "round_prefer_floor",
        ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"],
    )
    if ctx.attr("antialias", 0):
        raise Refused("a resize with antialias")
    scales, outputs = _scales(ctx)
    spatial = ctx.sizes(0)[1:]
    x = ctx.last(0)
    slope = float(ctx.attr("cubic_coeff_a", -0.75))
    outside = bool(ctx.attr("exclude_outside", 0))
    plain = mode == "linear" and len(spatial) == 2 and where in _PLAIN
    exact = scales is None or all(
        n * s == o for n, s, o in zip(spatial, scales, outputs, strict=True)
    )
    if plain and exact and outputs != list(spatial):
        return ctx.result_last(_bilinear(x, outputs, where))
    if where == "align_corners" and not exact:
        raise Refused("align_corners with scales that give no whole sizes")
    whole = [o // n if o % n == 0 else 0 for n, o in zip(spatial, outputs, strict=True)]
    repeats = (where == "asymmetric" and rounding == "floor") or (
        "half_pixel" in where and rounding.startswith("round")
    )
    if mode == "nearest" and len(spatial) == 2 and all(whole) and exact and repeats:
        return ctx.result_last(tf.image.resize(x, outputs, "nearest"))
    for place, (n, o) in enumerate(zip(spatial, outputs, strict=True)):
        scale = o / n if scales is None else scales[place]
        at = _places(n, o, scale, where)
        if mode == "nearest":
            chosen = np.clip(_rounded(at, rounding), 0, n - 1).astype(np.int32)
            if not np.array_equal(chosen, np.arange(n)):
                x = tf.gather(x, chosen, axis=place + 1)
        elif o != n or not np.array_equal(at, np.arange(n)):
            matrix = _linear(at, n) if mode == "linear" else _cubic(at, n, slope, outside)
            x = _mixed(ctx, x, matrix, place + 1)
    return ctx.result_last(x)


def _bilinear(x: Any, outputs: Sequence[int], where: str) -> Any:
    return tf.raw_ops.ResizeBilinear(
        images=x,
        size=outputs,
        align_corners=where == "align_corners",
        half_pixel_centers=where == "half_pixel",
    )


def _places(n: int, o: int, scale: float, where: str) -> Array:
    """Returns the place of every output among the inputs of an axis."""
    at = np.arange(o, dtype=np.float64)
    if where == "align_corners":
        return at * (n - 1) / (o - 1) if o > 1 else at * 0
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


def _linear(at: Array, n: int) -> Array:
    """Returns the weights `[outputs, inputs]` of linear interpolation."""
    matrix = np.zeros((len(at), n))
    low = np.floor(at)
    for tap, weight in ((low, 1 - (at - low)), (low + 1, at - low)):
        place = np.clip(tap, 0, n - 1).astype(int)
        np.add.at(matrix, (np.arange(len(at)), place), weight)
    return matrix.astype(np.float32)


def _cubic(at: Array, n: int, a: float, outside: bool) -> Array:
    """Returns the weights `[outputs, inputs]` of cubic interpolation."""
    matrix = np.zeros((len(at), n))
    low = np.floor(at)
    for tap in range(-1, 3):
        x = np.abs(at - (low + tap))
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        weight = np.where(x <= 1, near, np.where(x < 2, far, 0))
        place = low + tap
        if outside:
            weight = np.where((place < 0) | (place >= n), 0, weight)
        np.add.at(matrix, (np.arange(len(at)), np.clip(place, 0, n - 1).astype(int)), weight)
    if outside:
        matrix /= matrix.sum(axis=1, keepdims=True)
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


OPS: Mapping[str, Handler] = {
    "DepthToSpace": _depth_to_space,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "OneHot": _one_hot,
    "Resize": _resize,
    "SpaceToDepth": _space_to_depth,
    "Upsample": _resize,
}
