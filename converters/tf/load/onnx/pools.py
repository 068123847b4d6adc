"""Pools, and what turns them around: images have their channels last."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array, Shape
from converters.tf.ir.symbolic import product
from converters.tf.load.onnx.context import Context, Handler, Result, fixed, reshaped
from converters.tf.load.onnx.values import Known
from converters.tf.load.onnx.windows import (
    Pads,
    Window,
    flat,
    numbers,
    spread,
    wider,
    window_of,
    without_dilations,
)
from converters.tf.load.saved_model.replay import Refused


def _max_pool(ctx: Context) -> Result:
    window = window_of(ctx, tuple(ctx.attr("kernel_shape") or ()))
    x = ctx.last(0)
    pads = _with_beyond(window)
    low = x.dtype.min if x.dtype.is_integer else -math.inf
    if len(ctx.node.outputs) > 1 and ctx.node.outputs[1]:
        column_major = bool(ctx.attr("storage_order", 0))
        places = _pixels(ctx.shape(0), window, pads, column_major)
        return [ctx.result_last(y) for y in _with_places(x, window, pads, low, places)]
    if set(window.dilations) != {1} or len(window.size) == 3 or not x.dtype.is_floating:
        return ctx.result_last(_by_taps(x, window, pads, low, tf.maximum))
    x, window, line = _plane(x, window)
    pads = _with_beyond(window)
    y = tf.raw_ops.MaxPool(
        input=x,
        ksize=[1, *window.size, 1],
        strides=[1, *window.strides, 1],
        padding="EXPLICIT" if any(any(p) for p in pads) else "VALID",
        explicit_paddings=flat(pads) if any(any(p) for p in pads) else [],
    )
    return ctx.result_last(tf.squeeze(y, [1]) if line else y)


def _plane(x: Any, window: Window) -> tuple[Any, Window, bool]:
    if len(window.size) == 1:
        return tf.expand_dims(x, 1), wider(window), True
    return x, window, False


def _with_beyond(window: Window) -> Pads:
    return tuple((b, a + more) for (b, a), more in zip(window.pads, window.beyond, strict=True))


def _taps(window: Window) -> Iterator[tuple[slice, ...]]:
    """Yields what each tap of a window sees of the spatial axes of padded images."""
    for tap in np.ndindex(window.size):
        yield tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(
                tap, window.dilations, window.outputs, window.strides, strict=True
            )
        )


def _padded(x: Any, pads: Pads, value: float) -> Any:
    if not any(any(p) for p in pads):
        return x
    return tf.pad(x, [[0, 0], *map(list, pads), [0, 0]], constant_values=value)


def _by_taps(x: Any, window: Window, pads: Pads, outside: float, meet: Any) -> Any:
    """Returns what the shifted images of all taps give together."""
    x = _padded(x, pads, outside)
    return functools.reduce(meet, (x[(slice(None), *cut)] for cut in _taps(window)))


def _with_places(x: Any, window: Window, pads: Pads, low: float, places: Array) -> tuple[Any, Any]:
    """Returns the largest elements, and the places of the first of them."""
    x = _padded(x, pads, low)
    best: Any = None
    found: Any = None
    for cut in _taps(window):
        part, at = x[(slice(None), *cut)], tf.constant(places[(slice(None), *cut)])
        if best is None:
            best, found = part, tf.broadcast_to(at, tf.shape(part))
        else:
            # Padding is no place.
            more = tf.logical_or(part > best, tf.logical_and(found < 0, at >= 0))
            best, found = tf.where(more, part, best), tf.where(more, at, found)
    return best, found


def _pixels(shape: Shape, window: Window, pads: Pads, column_major: bool) -> Array:
    """Returns the number of each element of padded images `[batch, *spatial, channels]`."""
    batch, channels, *spatial = (fixed(d, "the place of an element") for d in shape)
    count = math.prod(spatial)
    own = np.arange(count).reshape(spatial[::-1]).T if column_major else np.arange(count)
    image = np.pad(own.reshape(spatial), pads, constant_values=-1)[..., None]
    lead = np.arange(batch * channels).reshape(batch, *(1,) * len(spatial), channels) * count
    return np.where(image < 0, -1, lead + image).astype(np.int64)


def _max_unpool(ctx: Context) -> Result:
    """Writes elements to places that count all elements of the result."""
    shape = [fixed(d, "the place of an element") for d in ctx.shape(0)]
    rank = len(shape) - 2
    size = tuple(int(k) for k in ctx.attr("kernel_shape") or ())
    if len(size) != rank:
        raise Refused(f"a window of {len(size)} axes over images of {rank}")
    strides = numbers(ctx, "strides", rank)
    ends = [int(p) for p in ctx.attr("pads") or (0,) * (2 * rank)]
    inner = [
        (n - 1) * s - before - after + k
        for n, s, k, before, after in zip(
            shape[2:], strides, size, ends[:rank], ends[rank:], strict=True
        )
    ]
    full = [*shape[:2], *inner]
    count = math.prod(full)
    places = tf.reshape(ctx.form(1), [-1, 1])
    zeros = tf.zeros([count], ctx.form(0).dtype)
    y = tf.tensor_scatter_nd_update(zeros, places, tf.reshape(ctx.form(0), [-1]))
    y = tf.reshape(y, full)
    if ctx.has(2):
        wanted = ctx.ints(2)
        if len(wanted) != len(full) or any(w < n for w, n in zip(wanted, full, strict=True)):
            raise Refused(f"output_shape={wanted} of elements {full}")
        y = tf.pad(y, [[0, w - n] for w, n in zip(wanted, full, strict=True)])
    return ctx.result(y)


def _col2im(ctx: Context) -> Result:
    """Sums columns of windows: a transposed convolution that leaves each tap as it is."""
    spatial, size = ctx.ints(1), ctx.ints(2)
    batch, rows, _ = ctx.shape(0)
    rank, taps = len(spatial), math.prod(size)
    rows = fixed(rows, "the number of rows")
    if rank not in (1, 2, 3) or len(size) != rank or rows % taps:
        raise Refused(f"{rows} rows for a window {size} over images {spatial}")
    strides, dilations = numbers(ctx, "strides", rank), numbers(ctx, "dilations", rank)
    ends = [int(p) for p in ctx.attr("pads") or (0,) * (2 * rank)]
    pads = tuple(zip(ends[:rank], ends[rank:], strict=True))
    columns = [
        (n + b + a - (k - 1) * d - 1) // s + 1
        for n, (b, a), k, d, s in zip(spatial, pads, size, dilations, strides, strict=True)
    ]
    channels = rows // taps
    wide = product([batch, channels])
    x = reshaped(ctx.form(0), [wide, taps, math.prod(columns)])
    x = reshaped(tf.transpose(x, [0, 2, 1]), [wide, *columns, taps])
    eye = np.eye(taps, dtype=np.float32).reshape(taps, 1, *size)
    weights = without_dilations(eye, dilations).transpose(*range(2, 2 + rank), 1, 0)
    edges = tuple(
        (b, (c - 1) * s + (k - 1) * d + 1 - b - n)
        for n, (b, _), k, d, s, c in zip(
            spatial, pads, size, dilations, strides, columns, strict=True
        )
    )
    known = ctx.session.tensor(Known(weights, role="taps"))
    y = spread(x, known, spatial, strides, edges, 1)
    full = [batch, channels, *spatial]
    return ctx.result(reshaped(y, full), None, full)


def average_pool(ctx: Context) -> Result:
    """Returns the mean of what a window sees."""
    window = window_of(ctx, tuple(ctx.attr("kernel_shape") or ()))
    x = ctx.last(0)
    counts = _counts(ctx.sizes(0)[1:], window, bool(ctx.attr("count_include_pad", 0)))
    pads = _with_beyond(window)
    if set(window.dilations) != {1}:
        total = _by_taps(x, window, pads, 0.0, tf.add)
        return ctx.result_last(total * (1 / counts).astype(np.float32)[..., None])
    x = _padded(x, pads, 0.0)
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
    for axis, (n, (before, after)) in enumerate(zip(spatial, window.pads, strict=True)):
        starts = np.arange(window.outputs[axis]) * window.strides[axis] - before
        taps = np.arange(window.size[axis]) * window.dilations[axis]
        at = starts[:, None] + taps
        low, high = (-before, n + after) if with_pads else (0, n)
        found = np.sum((at >= low) & (at < high), axis=1)
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
    "Col2Im": _col2im,
    "GlobalAveragePool": _global_pool("mean"),
    "GlobalMaxPool": _global_pool("max"),
    "LpPool": _lp_pool,
    "MaxPool": _max_pool,
    "MaxUnpool": _max_unpool,
}
