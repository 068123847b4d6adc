"""Convolutions and pools: images have their channels last from here on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array
from converters.tf.load.onnx.context import Context, Handler, Result
from converters.tf.load.saved_model.replay import Refused

# More would make weights mostly zeros where TensorFlow's op has no groups.
_MOST_GROUPS = 32
Pads = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Window:
    """A window that moves over the spatial axes of images.

    Attributes:
        size: Taps by axis.
        strides: Steps.
        dilations: Distances of taps.
        pads: Elements before and after each axis.
        outputs: Places of the window by axis.
        beyond: How far the last window reaches over the padding, for `ceil_mode`.
    """

    size: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: Pads
    outputs: tuple[int, ...]
    beyond: tuple[int, ...]


def window_of(ctx: Context, size: Sequence[int]) -> Window:
    """Returns the window of a convolution or pool over operand 0.

    Raises:
        Refused: It does not fit.
    """
    spatial = ctx.sizes(0, "the size of an image")[1:]
    rank = len(spatial)
    if len(size) != rank or not rank:
        raise Refused(f"a window of {len(size)} axes over images of {rank}")
    strides = _numbers(ctx, "strides", rank)
    dilations = _numbers(ctx, "dilations", rank)
    reach = [(k - 1) * d + 1 for k, d in zip(size, dilations, strict=True)]
    pads = _pads(ctx, spatial, reach, strides)
    ceil = bool(ctx.attr("ceil_mode", 0))
    outputs, beyond = [], []
    for n, r, s, (before, after) in zip(spatial, reach, strides, pads, strict=True):
        free = n + before + after - r
        if free < 0:
            raise Refused(f"a window of {r} over {n} pixels")
        count = free // s + 1
        if ceil and free % s and count * s < n + before:  # Else it would see the padding alone.
            count += 1
        outputs.append(count)
        beyond.append(max(0, (count - 1) * s + r - (n + before + after)))
    return Window(tuple(size), strides, dilations, pads, tuple(outputs), tuple(beyond))


def _numbers(ctx: Context, name: str, rank: int) -> tuple[int, ...]:
    values = tuple(int(v) for v in ctx.attr(name) or (1,) * rank)
    if len(values) != rank or any(v < 1 for v in values):
        raise Refused(f"{name}={list(values)} for {rank} axes")
    return values


def _pads(
    ctx: Context, spatial: Sequence[int], reach: Sequence[int], strides: Sequence[int]
) -> Pads:
    auto = ctx.text("auto_pad", "NOTSET", ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
    rank = len(spatial)
    if auto == "VALID":
        return ((0, 0),) * rank
    if auto == "NOTSET":
        flat = [int(p) for p in ctx.attr("pads") or (0,) * (2 * rank)]
        if len(flat) != 2 * rank or any(p < 0 for p in flat):
            raise Refused(f"pads={flat} for {rank} axes")
        return tuple(zip(flat[:rank], flat[rank:], strict=True))
    pads = []
    for n, r, s in zip(spatial, reach, strides, strict=True):
        total = max((-(-n // s) - 1) * s + r - n, 0)
        small, large = total // 2, total - total // 2
        pads.append((small, large) if auto == "SAME_UPPER" else (large, small))
    return tuple(pads)


def _flat(pads: Pads) -> list[int]:
    return [0, 0, *(p for pair in pads for p in pair), 0, 0]


def conv(ctx: Context) -> Result:
    """Returns a convolution with constant weights, which are operand 1; 2 is a bias."""
    kernel = ctx.known(1).data
    rank = kernel.ndim - 2
    window = window_of(ctx, tuple(ctx.attr("kernel_shape") or kernel.shape[2:]))
    if window.size != kernel.shape[2:]:
        raise Refused(f"kernel_shape={list(window.size)} of weights {list(kernel.shape)}")
    groups, channels = int(ctx.attr("group", 1)), ctx.sizes(0)[0]
    if groups < 1 or channels != kernel.shape[1] * groups or kernel.shape[0] % groups:
        raise Refused(f"{groups} groups of {channels} channels, weights {list(kernel.shape)}")
    x, size = ctx.last(0), window
    if rank == 1:
        x = tf.expand_dims(x, 1)
        size = _wider(window)
    if rank > 3:
        raise Refused(f"images of {rank} axes; at most 3 are supported")
    y = _convolved(ctx, x, size, groups)
    if rank == 1:
        y = tf.squeeze(y, [1])
    if ctx.has(2):
        y = tf.nn.bias_add(y, ctx.form(2))
    return ctx.result_last(y)


def _wider(window: Window) -> Window:
    return Window(
        (1, *window.size),
        (1, *window.strides),
        (1, *window.dilations),
        ((0, 0), *window.pads),
        (1, *window.outputs),
        (0, *window.beyond),
    )


def _convolved(ctx: Context, x: Any, window: Window, groups: int) -> Any:
    shape = ctx.known(1).data.shape
    strides, dilations = [1, *window.strides, 1], [1, *window.dilations, 1]
    if len(window.size) == 3:
        padding = [[0, 0], *map(list, window.pads), [0, 0]]
        if any(any(p) for p in window.pads):
            x = tf.pad(x, padding)
        if groups > _MOST_GROUPS:
            raise Refused(f"{groups} groups over 3 axes; at most {_MOST_GROUPS} are supported")

        def deep(a: Array) -> Array:
            return _without_groups(a, groups).transpose(2, 3, 4, 1, 0)

        weights = ctx.weight(1, ("conv", groups), deep)
        return tf.raw_ops.Conv3D(
            input=x, filter=weights, strides=strides, padding="VALID", dilations=dilations
        )
    plain = set(window.dilations) == {1} and window.strides[0] == window.strides[1]
    options = {
        "strides": strides,
        "padding": "EXPLICIT",
        "explicit_paddings": _flat(window.pads),
        "dilations": dilations,
    }
    if groups == x.shape[-1] and groups > 1 and plain:
        many = shape[0] // groups

        def depthwise(a: Array) -> Array:
            taps = a.reshape(groups, many, *window.size)
            return taps.transpose(2, 3, 0, 1)

        weights = ctx.weight(1, ("depthwise", window.size), depthwise)
        return tf.raw_ops.DepthwiseConv2dNative(input=x, filter=weights, **options)

    def arranged(a: Array) -> Array:
        return a.reshape(*a.shape[:2], *window.size).transpose(2, 3, 1, 0)

    weights = ctx.weight(1, ("conv", window.size), arranged)
    return tf.raw_ops.Conv2D(input=x, filter=weights, **options)


def _conv_transpose(ctx: Context) -> Result:
    kernel = ctx.known(1).data
    rank = kernel.ndim - 2
    spatial = ctx.sizes(0, "the size of an image")[1:]
    if rank not in (1, 2, 3) or len(spatial) != rank:
        raise Refused(f"weights {list(kernel.shape)} for images of {len(spatial)} axes")
    groups = int(ctx.attr("group", 1))
    if not 1 <= groups <= _MOST_GROUPS or kernel.shape[0] % groups:
        raise Refused(f"{groups} groups; at most {_MOST_GROUPS} are supported")
    strides, dilations = _numbers(ctx, "strides", rank), _numbers(ctx, "dilations", rank)
    outputs, pads = _transposed_sizes(ctx, spatial, kernel.shape[2:], strides, dilations)

    def arranged(a: Array) -> Array:
        whole = _without_groups(_without_dilations(a, dilations), groups)
        return whole.transpose(*range(2, 2 + rank), 1, 0)

    weights = ctx.weight(1, ("transposed", dilations, groups), arranged)
    y = _spread(ctx.last(0), weights, outputs, strides, pads, kernel.shape[1] * groups)
    if ctx.has(2):
        y = tf.nn.bias_add(y, ctx.form(2))
    return ctx.result_last(y)


def _without_dilations(a: Array, dilations: Sequence[int]) -> Array:
    """Returns weights with zeros between the taps, as TensorFlow's CPU has no dilations here."""
    sizes = [(k - 1) * d + 1 for k, d in zip(a.shape[2:], dilations, strict=True)]
    result = np.zeros((*a.shape[:2], *sizes), a.dtype)
    places = (slice(None), slice(None), *(slice(None, None, d) for d in dilations))
    result[places] = a
    return result


def _without_groups(a: Array, groups: int) -> Array:
    """Returns weights `[rows, columns]` of all channels, with zeros where groups don't meet."""
    rows, columns = a.shape[0] // groups, a.shape[1]
    result = np.zeros((a.shape[0], columns * groups, *a.shape[2:]), a.dtype)
    for g in range(groups):
        own = slice(g * rows, (g + 1) * rows)
        result[own, g * columns : (g + 1) * columns] = a[own]
    return result


def _spread(
    x: Any,
    weights: Any,
    outputs: Sequence[int],
    strides: Sequence[int],
    pads: Pads,
    channels: int,
) -> Any:
    """Returns a transposed convolution; it is computed whole, and its edges are cut off."""
    rank = len(outputs)
    if rank == 1:
        y = _spread(
            tf.expand_dims(x, 1),
            tf.expand_dims(weights, 0),
            (1, *outputs),
            (1, *strides),
            ((0, 0), *pads),
            channels,
        )
        return tf.squeeze(y, [1])
    # A negative padding is an edge that no input reaches.
    inner = tuple((max(b, 0), max(a, 0)) for b, a in pads)
    outer = [(max(-b, 0), max(-a, 0)) for b, a in pads]
    sizes = [n - b - a for n, (b, a) in zip(outputs, outer, strict=True)]
    full = [n + b + a for n, (b, a) in zip(sizes, inner, strict=True)]
    batch = tf.shape(x)[0]
    target, padding, explicit = (full, "VALID", []) if rank == 3 else (sizes, "EXPLICIT", inner)
    options: dict[str, Any] = {
        "input_sizes": tf.stack([batch, *target, channels]),
        "filter": weights,
        "out_backprop": x,
        "strides": [1, *strides, 1],
        "padding": padding,
    }
    if rank == 3:
        y = tf.raw_ops.Conv3DBackpropInputV2(**options)
        y = y[(slice(None), *(slice(b, b + n) for n, (b, _) in zip(sizes, inner, strict=True)))]
    else:
        y = tf.raw_ops.Conv2DBackpropInput(explicit_paddings=_flat(tuple(explicit)), **options)
    if any(any(p) for p in outer):
        y = tf.pad(y, [[0, 0], *map(list, outer), [0, 0]])
    return tf.ensure_shape(y, [x.shape[0], *outputs, channels])


def _transposed_sizes(
    ctx: Context,
    spatial: Sequence[int],
    size: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> tuple[tuple[int, ...], Pads]:
    rank = len(spatial)
    extra = [int(p) for p in ctx.attr("output_padding") or (0,) * rank]
    reach = [(k - 1) * d + 1 for k, d in zip(size, dilations, strict=True)]
    whole = [(n - 1) * s + r + e for n, s, r, e in zip(spatial, strides, reach, extra, strict=True)]
    auto = ctx.text("auto_pad", "NOTSET", ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
    wanted = ctx.attr("output_shape")
    if wanted or auto.startswith("SAME"):
        outputs = [int(n) for n in wanted[-rank:]] if wanted else [
            n * s for n, s in zip(spatial, strides, strict=True)
        ]  # fmt: skip
        pads = []
        for w, n in zip(whole, outputs, strict=True):
            total = max(w - n, 0)
            small, large = total // 2, total - total // 2
            pair = (small, large) if auto == "SAME_UPPER" else (large, small)
            pads.append(pair)
    else:
        flat = [int(p) for p in ctx.attr("pads") or (0,) * (2 * rank)]
        flat = [0] * (2 * rank) if auto == "VALID" else flat
        pads = list(zip(flat[:rank], flat[rank:], strict=True))
        outputs = [w - b - a for w, (b, a) in zip(whole, pads, strict=True)]
    if any(n < 1 for n in outputs):
        raise Refused(f"an image of the size {outputs}")
    # What output_padding adds at the end may be computed by nobody but the bias.
    ends = [w - e - b - n for w, e, (b, _), n in zip(whole, extra, pads, outputs, strict=True)]
    return tuple(outputs), tuple((b, end) for (b, _), end in zip(pads, ends, strict=True))


def _max_pool(ctx: Context) -> Result:
    if len(ctx.node.outputs) > 1 and ctx.node.outputs[1]:
        raise Refused("the places of the largest elements")
    window = window_of(ctx, tuple(ctx.attr("kernel_shape") or ()))
    x = ctx.last(0)
    pads = _with_beyond(window)
    if set(window.dilations) != {1} or len(window.size) == 3 or not x.dtype.is_floating:
        low = x.dtype.min if x.dtype.is_integer else -math.inf
        return ctx.result_last(_by_taps(x, window, pads, low))
    x, window, line = _plane(x, window)
    pads = _with_beyond(window)
    y = tf.raw_ops.MaxPool(
        input=x,
        ksize=[1, *window.size, 1],
        strides=[1, *window.strides, 1],
        padding="EXPLICIT" if any(any(p) for p in pads) else "VALID",
        explicit_paddings=_flat(pads) if any(any(p) for p in pads) else [],
    )
    return ctx.result_last(tf.squeeze(y, [1]) if line else y)


def _plane(x: Any, window: Window) -> tuple[Any, Window, bool]:
    if len(window.size) == 1:
        return tf.expand_dims(x, 1), _wider(window), True
    return x, window, False


def _with_beyond(window: Window) -> Pads:
    return tuple((b, a + more) for (b, a), more in zip(window.pads, window.beyond, strict=True))


def _by_taps(x: Any, window: Window, pads: Pads, low: float) -> Any:
    """Returns the largest elements by comparing the shifted images of all taps."""
    if any(any(p) for p in pads):
        x = tf.pad(x, [[0, 0], *map(list, pads), [0, 0]], constant_values=low)
    result = None
    for tap in np.ndindex(window.size):
        cut = [
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(
                tap, window.dilations, window.outputs, window.strides, strict=True
            )
        ]
        part = x[(slice(None), *cut)]
        result = part if result is None else tf.maximum(result, part)
    return result


def average_pool(ctx: Context) -> Result:
    """Returns the mean of what a window sees."""
    window = window_of(ctx, tuple(ctx.attr("kernel_shape") or ()))
    if set(window.dilations) != {1}:
        raise Refused("an average of elements apart (dilations)")
    x = ctx.last(0)
    counts = _counts(ctx.sizes(0)[1:], window, bool(ctx.attr("count_include_pad", 0)))
    pads = _with_beyond(window)
    if any(any(p) for p in pads):
        x = tf.pad(x, [[0, 0], *map(list, pads), [0, 0]])
    if len(window.size) == 3:
        y = tf.nn.avg_pool3d(x, window.size, window.strides, "VALID")
    else:
        x, plane, line = _plane(x, window)
        y = tf.nn.avg_pool2d(x, plane.size, plane.strides, "VALID")
        y = tf.squeeze(y, [1]) if line else y
    taps = math.prod(window.size)
    if np.any(counts != taps):
        y = y * (taps / counts).astype(np.float32)[..., None]
    return ctx.result_last(y)


def _lp_pool(ctx: Context) -> Result:
    """Returns the root of the sum of the powers that a window sees."""
    power = int(ctx.attr("p", 2))
    inner = ctx.inner(
        ctx.elementwise(lambda x: tf.square(x) if power == 2 else tf.pow(tf.abs(x), power), 0),
        count_include_pad=1,
    )
    window = window_of(inner, tuple(ctx.attr("kernel_shape") or ()))
    if any(window.beyond):
        raise Refused("a pool of powers that reaches beyond the padding (ceil_mode)")
    taps = math.prod(window.size)
    mean = ctx.tensor(average_pool(inner))
    root = tf.sqrt if power == 2 else lambda x: tf.pow(x, 1.0 / power)
    return ctx.combined(lambda x: root(x * float(taps)), [mean])


def _counts(spatial: Sequence[int], window: Window, with_pads: bool) -> Array:
    """Returns how many elements each window counts."""
    result = np.ones((), np.float64)
    for n, k, s, (before, after), count in zip(
        spatial, window.size, window.strides, window.pads, window.outputs, strict=True
    ):
        starts = np.arange(count) * s - before
        low, high = (-before, n + after) if with_pads else (0, n)
        found = np.minimum(starts + k, high) - np.maximum(starts, low)
        result = result[..., None] * np.maximum(found, 1)
    return result


def _global_pool(kind: str) -> Handler:
    reduce = tf.reduce_mean if kind == "mean" else tf.reduce_max

    def handler(ctx: Context) -> Result:
        x = ctx.last(0)
        return ctx.result_last(reduce(x, list(range(1, x.shape.rank - 1)), keepdims=True))

    return handler


OPS: Mapping[str, Handler] = {
    "AveragePool": average_pool,
    "Conv": conv,
    "ConvTranspose": _conv_transpose,
    "GlobalAveragePool": _global_pool("mean"),
    "GlobalMaxPool": _global_pool("max"),
    "LpPool": _lp_pool,
    "MaxPool": _max_pool,
}
