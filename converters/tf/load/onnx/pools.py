"""Pools, and what turns them around: images have their channels last."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array, Shape
from converters.tf.ir.expressions import is_open
from converters.tf.ir.spans import over_spans
from converters.tf.ir.symbolic import of_shape, product
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

# Images, and what goes with each of their elements.
Images = tuple[Any, ...]
# A window of more taps is joined from smaller ones along each axis.
_MOST_TAPS = 16


def _pool_window(ctx: Context) -> Window:
    """Returns the window of a pool.

    Raises:
        Refused: It does not fit, or there is nothing to pool.
    """
    if 0 in ctx.shape(0)[2:]:
        raise Refused("a pool of images without pixels")
    window = window_of(ctx, tuple(ctx.attr("kernel_shape") or ()), same=True)
    deep = len(window.size) == 3 and (window.same or ctx.node.op == "MaxPool")
    if any(map(is_open, window.outputs)) and (deep or set(window.dilations) != {1}):
        raise Refused("a pool that is dilated or has 3 axes, over images of open size")
    return window


def _max_pool(ctx: Context) -> Result:
    window = _pool_window(ctx)
    x = ctx.last(0)
    pads = _with_beyond(window)
    low = x.dtype.min if x.dtype.is_integer else -math.inf
    if window.same and (x.dtype.is_integer or len(ctx.node.outputs) > 1):
        raise Refused("auto_pad=SAME_UPPER of places or integers of an image of open size")
    if len(ctx.node.outputs) > 1 and ctx.node.outputs[1]:
        shape = ctx.shape(0)
        places = _places([fixed(d, "the place of an element") for d in shape[2:]], pads)
        best, found = _with_places(x, window, pads, low, places)
        numbered = _numbers(found, shape, bool(ctx.attr("storage_order", 0)))
        return [ctx.result_last(best), ctx.result_last(numbered)]
    if set(window.dilations) != {1} or len(window.size) == 3 or not x.dtype.is_floating:
        padded = _padded(x, pads, low)
        (y,) = _by_taps((padded,), window, lambda a, b: (tf.maximum(a[0], b[0]),))
        return ctx.result_last(y)
    x, window, line = _plane(x, window)
    pads = _with_beyond(window)
    y = tf.raw_ops.MaxPool(
        input=x,
        ksize=[1, *window.size, 1],
        strides=[1, *window.strides, 1],
        padding=window.padding if window.same or any(any(p) for p in pads) else "VALID",
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


def _by_taps(x: Images, window: Window, meet: Callable[[Images, Images], Images]) -> Images:
    """Returns what the elements that a window sees of padded images give together."""

    def cut(x: Images, *slices: slice) -> Images:
        return tuple(image[(slice(None), *slices)] for image in x)

    if math.prod(window.size) <= _MOST_TAPS:
        return functools.reduce(meet, (cut(x, *slices) for slices in _taps(window)))
    for axis, (taps, step) in enumerate(zip(window.size, window.dilations, strict=True)):
        before = (slice(None),) * axis

        def part(x: Images, begin: int, count: int, before: Any = before) -> Images:
            return cut(x, *before, slice(begin, begin + count))

        x = over_spans(x, taps, int(x[0].shape[axis + 1]), part, meet, step)
        ends = slice(0, (window.outputs[axis] - 1) * window.strides[axis] + 1, window.strides[axis])
        x = cut(x, *before, ends)
    return x


def _with_places(x: Any, window: Window, pads: Pads, low: float, places: Any) -> tuple[Any, Any]:
    """Returns the largest elements, and the places of the first of them."""

    def meet(a: Images, b: Images) -> Images:
        (best, found), (part, at) = a, b
        more = tf.logical_or(part > best, tf.logical_and(tf.equal(part, best), at < found))
        if x.dtype.is_floating:
            more = tf.logical_or(more, tf.math.is_nan(best))
        return tf.where(more, part, best), tf.where(more, at, found)

    best, found = _by_taps((_padded(x, pads, low), places), window, meet)
    return best, found


def _places(spatial: Sequence[int], pads: Pads) -> Any:
    """Returns the number of each element of padded images `[1, *spatial, 1]`; padding is last."""
    count = math.prod(spatial)
    own = np.arange(count, dtype=np.int64).reshape(spatial)
    return tf.constant(np.pad(own, pads, constant_values=count)[None, ..., None])


def _numbers(found: Any, shape: Shape, column_major: bool) -> Any:
    """Returns the numbers of elements among those of all images `[batch, *spatial, channels]`."""
    batch, channels, *spatial = (fixed(d, "the place of an element") for d in shape)
    count = math.prod(spatial)
    lead = np.arange(batch * channels).reshape(batch, *(1,) * len(spatial), channels) * count
    own = found
    if column_major:
        order = np.arange(count).reshape(spatial[::-1]).T.ravel()
        own = tf.gather(tf.constant(order), tf.minimum(found, count - 1))
    return tf.where(found < count, own + lead, np.int64(-1))


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
    y = spread(ctx, x, known, spatial, strides, edges, 1)
    full = [batch, channels, *spatial]
    return ctx.result(reshaped(y, full), None, full)


def average_pool(ctx: Context) -> Result:
    """Returns the mean of what a window sees."""
    window = _pool_window(ctx)
    spatial, with_pads = ctx.sizes(0)[1:], bool(ctx.attr("count_include_pad", 0))
    if window.same:
        if with_pads:
            raise Refused("auto_pad=SAME_UPPER and count_include_pad of an image of open size")
        x, plane, line = _plane(ctx.last(0), window)
        y = tf.nn.avg_pool(x, plane.size, plane.strides, "SAME")
        return ctx.result_last(tf.squeeze(y, [1]) if line else y)
    x = _padded(ctx.last(0), _with_beyond(window), 0.0)
    y = _means(x, window)
    if any(map(is_open, spatial)):
        if any(window.beyond) or (not with_pads and any(any(p) for p in window.pads)):
            y = y / _open_shares(ctx, spatial, window, with_pads)
        return ctx.result_last(y)
    counts, taps = _counts(spatial, window, with_pads), math.prod(window.size)
    if np.any(counts != taps):
        y = y * (taps / counts).astype(np.float32)[..., None]
    return ctx.result_last(y)


def _means(x: Any, window: Window) -> Any:
    """Returns the means of all taps of a window over padded images."""
    if set(window.dilations) != {1}:
        (total,) = _by_taps((x,), window, lambda a, b: (a[0] + b[0],))
        return total * np.float32(1 / math.prod(window.size))
    if len(window.size) == 3:
        return tf.nn.avg_pool3d(x, window.size, window.strides, "VALID")
    x, plane, line = _plane(x, window)
    y = tf.nn.avg_pool2d(x, plane.size, plane.strides, "VALID")
    return tf.squeeze(y, [1]) if line else y


def _open_shares(ctx: Context, spatial: Sequence[int], window: Window, with_pads: bool) -> Any:
    """Returns the shares of its taps that each window counts in an image of open size."""
    shape = ctx.session.symbol(of_shape((1, *spatial, 1), "int32"))
    ones = _padded(tf.fill(shape, 1.0), window.pads, 1.0 if with_pads else 0.0)
    beyond = tuple((0, more) for more in window.beyond)
    return _means(_padded(ones, beyond, 0.0), window)


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
        if 0 in ctx.shape(0)[2:]:
            raise Refused("a pool of images without pixels")
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
