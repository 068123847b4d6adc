"""Sizes that a call gives: of results, of their parts, and of windows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array
from converters.tf.load.onnx.agreed import (
    Agreed,
    confirmed,
    equal,
    is_given,
    length,
    numbers,
    sizes_of,
    tried,
    wanted,
    with_known,
)
from converters.tf.load.onnx.context import Context, Handler, Result, axis_of
from converters.tf.load.saved_model.replay import Refused

# The scale of mels: 2595 for each factor of 10 of a frequency beyond 700 Hz.
_PER_DECADE, _BREAK, _TEN = 2595.0, 700.0, math.log(10.0)


def _reshaped(ctx: Context, plain: Handler) -> Result:
    """A size may be -1, or 0 for that of the operand."""
    full, shape, target = wanted(ctx, 1), sizes_of(ctx, 0), numbers(ctx, 1)
    if len(full) != length(ctx, 1) or math.prod(full) != math.prod(shape):
        raise Refused(f"a reshape of {shape} to {length(ctx, 1)} sizes, where {full} is stated")
    rest = tf.equal(target, -1)
    fits = tf.logical_or(tf.equal(target, np.array(full, np.int64)), rest)
    if not ctx.attr("allowzero", 0):
        kept = [place < len(shape) and shape[place] == size for place, size in enumerate(full)]
        fits = tf.logical_or(fits, tf.logical_and(tf.equal(target, 0), np.array(kept, bool)))
    single = tf.reduce_sum(tf.cast(rest, tf.int32)) < 2
    holds = tf.logical_and(tf.reduce_all(fits), single)
    return confirmed(ctx, ctx.reshape(0, full), holds)


def _expanded(ctx: Context, plain: Handler) -> Result:
    full, shape, target = wanted(ctx, 1), sizes_of(ctx, 0), numbers(ctx, 1)
    rank, count = len(full), length(ctx, 1)
    have = (1,) * (rank - len(shape)) + shape
    if rank != max(len(shape), count) or full[: rank - count] != have[: rank - count]:
        raise Refused(f"{shape} broadcast to {count} sizes, where {full} is stated")
    have, own = have[rank - count :], full[rank - count :]
    alike = np.array([h == f for h, f in zip(have, own, strict=True)], bool)
    fits = tf.logical_or(
        tf.equal(target, np.array(own, np.int64)), tf.logical_and(tf.equal(target, 1), alike)
    )
    result = plain(with_known(ctx, {1: np.array(full, np.int64)}))
    return confirmed(ctx, result, tf.reduce_all(fits))


def _filled(ctx: Context, plain: Handler) -> Result:
    full = wanted(ctx, 0)
    return _exactly(ctx, plain, 0, full)


def _exactly(ctx: Context, plain: Handler, index: int, sizes: tuple[int, ...]) -> Result:
    """Returns a result for sizes that the operand has to be."""
    if length(ctx, index) != len(sizes):
        raise Refused(f"{length(ctx, index)} sizes, where {sizes} are stated")
    shape = sizes_of(ctx, index)
    holds = equal(numbers(ctx, index), sizes)
    known = np.array(sizes, np.int64).reshape(shape)
    return confirmed(ctx, plain(with_known(ctx, {index: known})), holds)


def _repeated(ctx: Context, plain: Handler) -> Result:
    full, shape = wanted(ctx, 1), sizes_of(ctx, 0)
    if 0 in shape or any(f % d for f, d in zip(full, shape, strict=True)):
        raise Refused(f"{shape} repeated to {full}")
    counts = tuple(f // d for f, d in zip(full, shape, strict=True))
    return _exactly(ctx, plain, 1, counts)


def _one_axis(ctx: Context, plain: Handler) -> Result:
    """The operand is the size of one axis of the result."""
    full = wanted(ctx, 1)
    return _exactly(ctx, plain, 1, (full[ctx.axis(len(full), default=-1)],))


def _parted(ctx: Context, plain: Handler) -> Result:
    axis = axis_of(int(ctx.attr("axis", 0)), len(sizes_of(ctx, 0)))
    sizes = tuple(wanted(ctx, 1, result)[axis] for result in range(len(ctx.node.outputs)))
    return _exactly(ctx, plain, 1, sizes)


def _unpooled(ctx: Context, plain: Handler) -> Result:
    return _exactly(ctx, plain, 2, wanted(ctx, 2))


def _gridded(ctx: Context, plain: Handler) -> Result:
    """The operand has the shape of an image, of whose channels nothing depends."""
    batch, *spatial, _ = wanted(ctx, 1)
    if length(ctx, 1) != len(spatial) + 2:
        raise Refused(f"{length(ctx, 1)} sizes of an image, where {spatial} are stated")
    given = numbers(ctx, 1)
    holds = tf.logical_and(tf.equal(given[0], batch), equal(given[2:], spatial))
    known = np.array([batch, 1, *spatial], np.int64)
    return confirmed(ctx, plain(with_known(ctx, {1: known})), holds)


def _counted(ctx: Context, plain: Handler) -> Result:
    """Counts from a start in steps; the end only says how often."""
    (count,) = wanted(ctx, 1)
    first, last, step = (tf.reshape(ctx.form(i), []) for i in range(3))
    places = tf.cast(tf.constant(np.arange(count, dtype=np.int64)), first.dtype)
    wide = [tf.cast(part, tf.float64) for part in (first, last, step)]
    found = tf.maximum(tf.math.ceil((wide[1] - wide[0]) / wide[2]), 0.0)
    holds = tf.equal(found, tf.constant(count, tf.float64))
    return confirmed(ctx, first + places * step, holds)


def _joined(ctx: Context, plain: Handler) -> Result:
    """Tries all windows of as many taps as there are rows for each channel."""
    full, rows = wanted(ctx, 1), sizes_of(ctx, 0)[1]
    spatial = full[2:]
    if length(ctx, 1) != len(spatial) or not full[1] or rows % full[1]:
        raise Refused(f"{rows} rows for images {full}")
    taps = rows // full[1]
    divisors = [size for size in range(1, taps + 1) if taps % size == 0]
    sizes = [np.array(spatial, np.int64)]
    if is_given(ctx, 2):
        found = itertools.product(divisors, repeat=len(spatial))
        windows = [window for window in found if math.prod(window) == taps]
        windows = [window for window in windows if _columns(ctx, spatial, window)]
    else:
        windows = [tuple(ctx.ints(2))]
    matches = tf.reduce_all(tf.equal(numbers(ctx, 2), _rows(windows, len(spatial))), 1)
    if is_given(ctx, 1):
        matches = tf.logical_and(matches, equal(numbers(ctx, 1), spatial))
    ways = [{1: sizes[0], 2: np.array(window, np.int64)} for window in windows]
    return tried(ctx, plain, ways, matches)


def _rows(windows: Sequence[tuple[int, ...]], rank: int) -> Array:
    return np.array(windows, np.int64).reshape(-1, rank)


def _columns(ctx: Context, spatial: tuple[int, ...], window: tuple[int, ...]) -> bool:
    """Returns whether a window has as many places in an image as there are columns."""
    rank = len(spatial)
    strides, dilations = (
        [int(n) for n in ctx.attr(name) or (1,) * rank] for name in ("strides", "dilations")
    )
    pads = [int(n) for n in ctx.attr("pads") or (0,) * (2 * rank)]
    counts = [
        (n + pads[i] + pads[i + rank] - (k - 1) * dilations[i] - 1) // strides[i] + 1
        for i, (n, k) in enumerate(zip(spatial, window, strict=True))
    ]
    return min(counts) > 0 and math.prod(counts) == sizes_of(ctx, 0)[2]


def _framed(ctx: Context, plain: Handler) -> Result:
    """Tries all distances and lengths of frames that give as many as the file states."""
    full, steps = wanted(ctx, 1), sizes_of(ctx, 0)[1]
    frames, bins = full[1:3]
    if is_given(ctx, 3):
        one_sided = bool(ctx.attr("onesided", 1))
        lengths = [2 * bins - 2, 2 * bins - 1] if one_sided else [bins]
        own = sizes_of(ctx, 2)[0] if ctx.has(2) else None
        lengths = [n for n in lengths if 0 < n <= steps and own in (None, n)]
    else:
        lengths = [ctx.ints(3)[0] if ctx.has(3) else sizes_of(ctx, 2)[0]]
    pairs = [
        (step, size)
        for size in lengths
        for step in range(1, steps + 1)
        if (steps - size) // step + 1 == frames
    ]
    matches = tf.equal(numbers(ctx, 1)[0], np.array([step for step, _ in pairs], np.int64))
    ways = [{1: np.array(step)} for step, _ in pairs]
    if ctx.has(3):
        expected = np.array([size for _, size in pairs], np.int64)
        matches = tf.logical_and(matches, tf.equal(numbers(ctx, 3)[0], expected))
        ways = [{1: np.array(step), 3: np.array(size)} for step, size in pairs]
    return tried(ctx, plain, ways, matches)


def _banded(ctx: Context, plain: Handler) -> Result:
    """Weighs whole bins of a spectrum for each band, by edges that the call computes."""
    count, bands = wanted(ctx, 0)
    many, length, rate = (tf.reshape(tf.cast(ctx.form(i), tf.float64), []) for i in range(3))
    edges = tf.stack([tf.reshape(tf.cast(ctx.form(i), tf.float64), []) for i in (3, 4)])
    ends = _PER_DECADE / _TEN * tf.math.log(1.0 + edges / _BREAK)
    step = (ends[1] - ends[0]) / (bands + 2.0)
    mels = tf.constant(np.arange(bands + 2.0)) * step + ends[0]
    hertz = _BREAK * (tf.math.exp(mels * (_TEN / _PER_DECADE)) - 1.0)
    at = tf.floor(hertz * (length + 1.0) / rate)
    first, middle, last = at[:-2], at[1:-1], at[2:]
    places = tf.constant(np.arange(float(count))[:, None])
    rises = tf.logical_and(places >= first, places < middle)
    falls = tf.logical_and(places > middle, places < last)
    one, zero = tf.ones([], tf.float64), tf.zeros([], tf.float64)
    up = (places - first) / tf.maximum(middle - first, one)
    down = (last - places) / tf.maximum(last - middle, one)
    weights = tf.where(rises, up, tf.where(falls, down, zero))
    weights = tf.where(tf.equal(places, middle), one, weights)
    agrees = tf.logical_and(tf.equal(many, bands), tf.equal(tf.floor(length / 2.0) + 1.0, count))
    inside = tf.logical_and(at[0] >= 0.0, tf.reduce_all(at <= count))
    inside = tf.logical_and(inside, tf.reduce_all(middle < count))
    return confirmed(ctx, tf.cast(weights, tf.float32), tf.logical_and(agrees, inside))


OPS: Mapping[str, tuple[tuple[int, ...], Agreed]] = {
    "AffineGrid": ((1,), _gridded),
    "Col2Im": ((1, 2), _joined),
    "ConstantOfShape": ((0,), _filled),
    "Expand": ((1,), _expanded),
    "MaxUnpool": ((2,), _unpooled),
    "MelWeightMatrix": ((0, 1, 2, 3, 4), _banded),
    "OneHot": ((1,), _one_axis),
    "Range": ((0, 1, 2), _counted),
    "Reshape": ((1,), _reshaped),
    "STFT": ((1, 3), _framed),
    "Split": ((1,), _parted),
    "Tile": ((1,), _repeated),
    "TopK": ((1,), _one_axis),
}
