"""Elements of images at places that are computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.load.onnx.context import Context, Handler, Result, fixed, reshaped
from converters.tf.load.onnx.windows import numbers
from converters.tf.load.saved_model.replay import Refused

# The parameter of cubic interpolation in grids.
_SLOPE = -0.75
# A place along an axis, and the weight of the pixel there; nothing for 1.
Tap = tuple[Any, Any]


@dataclass(frozen=True)
class _Images:
    """Images whose pixels are looked up.

    Attributes:
        flat: Pixels `[batch, pixels, channels]`.
        sizes: The sizes of the spatial axes.
        outside: What lies outside of them: zeros, border, reflection.
        ends: Whether pixels at the ends lie at the ends of the axis, or half a pixel inside.
    """

    flat: Any
    sizes: tuple[int, ...]
    outside: str
    ends: bool

    def inside(self, at: Any, axis: int) -> Any:
        """Returns places on the axis for places anywhere."""
        size = self.sizes[axis]
        if self.outside == "reflection":
            low, high = (0.0, size - 1.0) if self.ends else (-0.5, size - 0.5)
            at = _reflected(at, low, high)
        return tf.clip_by_value(at, 0.0, size - 1.0)

    def mixed(self, taps: Sequence[Sequence[Tap]]) -> Any:
        """Returns the weighted sum of the pixels at all pairs of places `[batch, places, C]`."""
        return self._mixed(taps, 0, 0.0, None)

    def _mixed(self, taps: Sequence[Sequence[Tap]], axis: int, number: Any, there: Any) -> Any:
        if axis == len(taps):
            pixels = tf.gather(self.flat, tf.cast(number, tf.int32), batch_dims=1, axis=1)
            return pixels if there is None else pixels * tf.cast(there, tf.float32)[:, :, None]
        total = None
        for at, weight in taps[axis]:
            place, found = self.inside(at, axis), there
            if self.outside == "zeros":
                same = tf.equal(place, at)
                found = same if there is None else tf.logical_and(there, same)
            part = self._mixed(taps, axis + 1, number * self.sizes[axis] + place, found)
            part = part if weight is None else part * weight[:, :, None]
            total = part if total is None else total + part
        return total


def _reflected(at: Any, low: float, high: float) -> Any:
    """Returns places between two mirrors."""
    width = high - low
    if width == 0:
        return tf.zeros_like(at) + low
    turn = tf.math.floormod(at - low, 2 * width)
    return low + tf.where(turn > width, 2 * width - turn, turn)


def _nearest(at: Any) -> list[Tap]:
    return [(tf.round(at), None)]


def _linear(at: Any) -> list[Tap]:
    low = tf.floor(at)
    part = at - low
    return [(low, 1.0 - part), (low + 1.0, part)]


def _cubic(at: Any) -> list[Tap]:
    low = tf.floor(at)
    part, a = at - low, _SLOPE

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    weights = (far(part + 1.0), near(part), near(1.0 - part), far(2.0 - part))
    return [(low + (i - 1.0), weight) for i, weight in enumerate(weights)]


_MODES: Mapping[str, Callable[[Any], list[Tap]]] = {
    "bicubic": _cubic,
    "bilinear": _linear,
    "cubic": _cubic,
    "linear": _linear,
    "nearest": _nearest,
}


def _grid_sample(ctx: Context) -> Result:
    """Mixes the pixels around places that are -1 at one end of an axis and 1 at the other."""
    mode = _MODES[ctx.text("mode", "linear", list(_MODES))]
    outside = ctx.text("padding_mode", "zeros", ["zeros", "border", "reflection"])
    rank = ctx.rank(0) - 2
    if rank < 1 or ctx.rank(1) != rank + 2 or ctx.shape(1)[-1] != rank:
        raise Refused(f"a grid {list(ctx.shape(1))} over images of {rank} axes")
    batch = ctx.shape(0)[0]
    channels, *sizes = ctx.sizes(0, "the size of an image")
    if ctx.shape(1)[0] != batch:
        raise Refused("a grid for another batch")
    places = [fixed(d, "the size of a grid") for d in ctx.shape(1)[1:-1]]
    flat = reshaped(ctx.last(0), [batch, math.prod(sizes), channels])
    grid = reshaped(ctx.form(1), [batch, math.prod(places), rank])
    ends = bool(ctx.attr("align_corners", 0))
    images = _Images(flat, tuple(sizes), outside, ends)

    def at(axis: int, size: int) -> Any:
        g = grid[:, :, rank - 1 - axis]
        x = (g + 1.0) * ((size - 1) / 2) if ends else ((g + 1.0) * size - 1.0) / 2.0
        if outside == "zeros" or mode is _nearest:
            return x
        if outside == "border" and mode is _linear:
            return images.inside(x, axis)
        low, high = (0.0, size - 1.0) if ends else (-0.5, size - 0.5)
        if outside == "border":
            return tf.where(tf.logical_or(x < low, x > high), images.inside(x, axis), x)
        return _reflected(x, low, high)

    found = images.mixed([mode(at(axis, size)) for axis, size in enumerate(sizes)])
    return ctx.result_last(reshaped(found, [batch, *places, channels]))


def _roi_align(ctx: Context) -> Result:
    """Averages pixels between which regions are sampled, or takes the largest.

    A region is sampled along each axis on its own, so that both axes are matmuls.
    """
    mode = ctx.text("mode", "avg", ["avg", "max"])
    old = ctx.node.version < 16
    default = "output_half_pixel" if old else "half_pixel"
    known = ["half_pixel", "output_half_pixel"]
    half = ctx.text("coordinate_transformation_mode", default, known) == "half_pixel"
    samples = int(ctx.attr("sampling_ratio", 0))
    if samples < 1:
        raise Refused("sampling_ratio=0: how many samples there are depends on the regions")
    scale = float(ctx.attr("spatial_scale", 1.0))
    rows, columns = ctx.sizes(0, "the size of an image")[1:]
    count = [int(ctx.attr(f"output_{name}", 1)) for name in ("height", "width")]
    rois = ctx.form(1) * scale - (0.5 if half else 0.0)
    images = tf.gather(ctx.form(0), ctx.form(2))

    def weights(axis: int, size: int) -> list[Any]:
        start, end = rois[:, 1 - axis, None], rois[:, 3 - axis, None]
        length = end - start if half else tf.maximum(end - start, 1.0)
        steps = (np.arange(count[axis] * samples) + 0.5) / (count[axis] * samples)
        at = start + length * steps.astype(np.float32)
        there = tf.logical_and(at >= -1.0, at <= float(size))
        at = tf.clip_by_value(at, 0.0, size - 1.0)
        low = tf.minimum(tf.floor(at), float(max(size - 2, 0)))
        part = at - low
        pairs = ((low, 1.0 - part), (tf.minimum(low + 1.0, size - 1.0), part))
        shown = [
            tf.one_hot(tf.cast(place, tf.int32), size)
            * (weight * tf.cast(there, tf.float32))[..., None]
            for place, weight in pairs
        ]
        return shown if mode == "max" else [shown[0] + shown[1]]

    def bins(y: Any, reduce: Any) -> Any:
        shape = [-1, int(y.shape[1]), count[0], samples, count[1], samples]
        return reduce(tf.reshape(y, shape), [3, 5])

    down, right = weights(0, rows), weights(1, columns)
    corners = [
        tf.matmul(tf.matmul(a[:, None], images), b[:, None], transpose_b=True)
        for a in down
        for b in right
    ]
    if mode == "avg":
        return ctx.result(bins(corners[0], tf.reduce_mean))
    most = corners[0]
    for corner in corners[1:]:
        most = tf.maximum(most, corner)
    return ctx.result(bins(most, tf.reduce_max))


def _deformed_conv(ctx: Context) -> Result:
    """A convolution whose taps are moved by an operand and weighted by another."""
    if ctx.rank(0) != 4:
        raise Refused(f"images of {ctx.rank(0) - 2} axes; 2 are supported")
    batch = ctx.shape(0)[0]
    channels, *sizes = ctx.sizes(0, "the size of an image")
    outputs, per_group, *size = (fixed(d, "a size of weights") for d in ctx.shape(1))
    groups, own = int(ctx.attr("group", 1)), int(ctx.attr("offset_group", 1))
    if channels != per_group * groups or outputs % groups or channels % own:
        raise Refused(f"{groups} groups of {channels} channels, {own} of offsets")
    strides, dilations = numbers(ctx, "strides", 2), numbers(ctx, "dilations", 2)
    pads = [int(p) for p in ctx.attr("pads") or (0, 0, 0, 0)]
    places = [fixed(d, "the size of the result") for d in ctx.shape(2)[2:]]
    count, taps = math.prod(places), math.prod(size)
    offsets = reshaped(ctx.form(2), [batch, own, taps, 2, count])
    grids = np.meshgrid(*(np.arange(n) * s for n, s in zip(places, strides, strict=True)),
                        indexing="ij")  # fmt: skip
    window = np.meshgrid(*(np.arange(k) * d for k, d in zip(size, dilations, strict=True)),
                         indexing="ij")  # fmt: skip
    base = [
        (w.reshape(-1, 1) + g.reshape(1, -1) - pads[i]).astype(np.float32)
        for i, (w, g) in enumerate(zip(window, grids, strict=True))
    ]
    pixels = reshaped(ctx.last(0), [batch, math.prod(sizes), channels])
    parts = []
    for number, flat in enumerate(tf.split(pixels, own, axis=-1)):
        images = _Images(flat, tuple(sizes), "zeros", True)
        at = [
            reshaped(offsets[:, number, :, axis] + base[axis], [batch, taps * count])
            for axis in range(2)
        ]
        found = images.mixed([_linear(x) for x in at])
        if ctx.has(4):
            masks = reshaped(ctx.form(4), [batch, own, taps * count])
            found = found * masks[:, number, :, None]
        parts.append(reshaped(found, [batch, taps, count, channels // own]))
    seen = tf.transpose(tf.concat(parts, -1), [0, 2, 1, 3])
    kernel = tf.transpose(tf.reshape(ctx.form(1), [outputs, per_group, taps]), [2, 1, 0])
    pairs = zip(tf.split(seen, groups, axis=-1), tf.split(kernel, groups, axis=-1), strict=True)
    rows = [
        tf.matmul(
            reshaped(x, [batch, count, taps * per_group]),
            tf.reshape(w, [taps * per_group, outputs // groups]),
        )
        for x, w in pairs
    ]
    y = reshaped(tf.concat(rows, -1), [batch, *places, outputs])
    return ctx.result_last(tf.nn.bias_add(y, ctx.form(3)) if ctx.has(3) else y)


OPS: Mapping[str, Handler] = {
    "DeformConv": _deformed_conv,
    "GridSample": _grid_sample,
    "RoiAlign": _roi_align,
}
