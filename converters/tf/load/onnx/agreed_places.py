"""Places that a call gives: parts of a tensor, and what stands around one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.load.onnx.agreed import (
    Agreed,
    confirmed,
    equal,
    hits,
    length,
    numbers,
    places,
    sizes_of,
    wanted,
)
from converters.tf.load.onnx.context import Context, Handler, Result
from converters.tf.load.onnx.stated import Fixed
from converters.tf.load.saved_model.replay import Refused


class _PerAxis:
    """Gives each axis of a tensor the number that a list has for it, or another one."""

    def __init__(self, ctx: Context, axes: int, count: int, rank: int) -> None:
        """Reads the axes, which are the first ones if they are left out.

        Args:
            ctx: The node.
            axes: The operand of axes.
            count: How many axes have a number.
            rank: How many axes there are.
        """
        if not ctx.has(axes) and count > rank:
            raise Refused(f"{count} numbers for {rank} axes")
        default = tf.constant(np.arange(count, dtype=np.int64))
        listed = numbers(ctx, axes) if ctx.has(axes) else default
        found, self.there = places(listed, rank)
        self._hits = hits(found, rank)
        self._some = tf.reduce_any(self._hits, 0)

    def of(self, listed: Any, other: Any) -> Any:
        """Returns an int64 for each axis."""
        zero = tf.zeros([], tf.int64)
        own = tf.reduce_sum(tf.where(self._hits, listed[:, None], zero), 0)
        return tf.where(self._some, own, other)


def _taken(x: Any, full: Fixed, first: Any, step: Any = None) -> Any:
    """Returns the elements at places that each axis counts from its own start."""
    for axis, size in enumerate(full):
        counted = np.arange(size, dtype=np.int64)
        x = tf.gather(
            x, first[axis] + (counted if step is None else counted * step[axis]), axis=axis
        )
    return x


def _sliced(ctx: Context, plain: Handler) -> Result:
    shape, full = sizes_of(ctx, 0), wanted(ctx, 1)
    rank, count = len(shape), length(ctx, 1)
    if len(full) != rank or 0 in shape:
        raise Refused(f"a part of {shape}, where {full} is stated")
    axes = _PerAxis(ctx, 3, count, rank)
    sizes = tf.constant(np.array(shape, np.int64))
    zero, one = tf.zeros([], tf.int64), tf.ones([], tf.int64)
    step = axes.of(numbers(ctx, 4), one) if ctx.has(4) else tf.ones([rank], tf.int64)
    rises, moves = step > 0, tf.not_equal(step, 0)
    step = tf.where(moves, step, one)
    first, last = axes.of(numbers(ctx, 1), zero), axes.of(numbers(ctx, 2), sizes)
    first, last = (tf.where(end < 0, end + sizes, end) for end in (first, last))
    # Steps go down to the first element, which is before place -1.
    first = tf.clip_by_value(first, zero, tf.where(rises, sizes, sizes - 1))
    last = tf.clip_by_value(last, tf.where(rises, zero, -one), tf.where(rises, sizes, sizes - 1))
    there = tf.maximum((last - first + step - tf.sign(step)) // step, zero)
    holds = tf.logical_and(tf.logical_and(equal(there, full), tf.reduce_all(moves)), axes.there)
    return confirmed(ctx, _taken(ctx.form(0), full, first, step), holds)


def _padded(ctx: Context, plain: Handler) -> Result:
    shape, full = sizes_of(ctx, 0), wanted(ctx, 1)
    rank, count = len(shape), length(ctx, 1) // 2
    mode = ctx.text("mode", "constant", ["constant", "reflect", "edge", "wrap"])
    if len(full) != rank or 0 in shape:
        raise Refused(f"{shape} with more around it, where {full} is stated")
    axes = _PerAxis(ctx, 3, count, rank)
    zero, sizes = tf.zeros([], tf.int64), tf.constant(np.array(shape, np.int64))
    pads = numbers(ctx, 1)
    before, after = axes.of(pads[:count], zero), axes.of(pads[count:], zero)
    holds = tf.logical_and(equal(sizes + before + after, full), axes.there)
    if mode != "constant":
        grows = tf.reduce_all(tf.logical_and(before >= 0, after >= 0))
        holds = tf.logical_and(holds, grows)
    x = ctx.form(0)
    inside = None
    for axis, (own, size) in enumerate(zip(shape, full, strict=True)):
        place = np.arange(size, dtype=np.int64) - before[axis]
        if mode == "constant":
            there = tf.logical_and(place >= 0, place < own)
            there = tf.reshape(there, _along(axis, rank))
            inside = there if inside is None else tf.logical_and(inside, there)
        x = tf.gather(x, _within(place, own, mode), axis=axis)
    if inside is not None:
        value = ctx.form(2) if ctx.has(2) else tf.zeros([], x.dtype)
        x = tf.where(inside, x, tf.reshape(tf.cast(value, x.dtype), []))
    return confirmed(ctx, x, holds)


def _along(axis: int, rank: int) -> Sequence[int]:
    return [-1 if i == axis else 1 for i in range(rank)]


def _within(place: Any, size: int, mode: str) -> Any:
    """Returns places that are inside of an axis, for those that may lie outside."""
    last = np.int64(size - 1)
    if mode == "wrap":
        return tf.math.floormod(place, np.int64(size))
    if mode == "reflect" and last > 0:
        place = tf.math.floormod(place, 2 * last)
        return tf.where(place > last, 2 * last - place, place)
    return tf.clip_by_value(place, np.int64(0), last)


OPS: Mapping[str, tuple[tuple[int, ...], Agreed]] = {
    "Pad": ((1, 3), _padded),
    "Slice": ((1, 2, 3, 4), _sliced),
}
