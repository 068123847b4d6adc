"""Axes that a call gives: of reductions, sums along an axis, and axes of size 1."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from converters.tf.load.onnx.agreed import (
    Agreed,
    confirmed,
    hits,
    is_given,
    length,
    numbers,
    places,
    sizes_of,
    tried,
    wanted,
    with_known,
)
from converters.tf.load.onnx.context import Context, Handler, Result
from converters.tf.load.onnx.stated import Fixed
from converters.tf.load.saved_model.replay import Refused

# Of how many axes some are chosen.
_MOST_AXES = 8


def _chosen(rank: int, count: int) -> list[tuple[int, ...]]:
    """Returns all sets of so many axes."""
    if rank > _MOST_AXES:
        raise Refused(f"axes that a call gives, of {rank}; at most {_MOST_AXES}")
    return list(itertools.combinations(range(rank), count))


def _reduced(ctx: Context, plain: Handler) -> Result:
    shape, count = sizes_of(ctx, 0), length(ctx, 1)
    if not count:
        return plain(with_known(ctx, {1: np.zeros(0, np.int64)}))
    full, keep = wanted(ctx, 1), bool(ctx.attr("keepdims", 1))
    rank = len(shape)

    def fits(axes: Sequence[int]) -> bool:
        left = [1 if i in axes else d for i, d in enumerate(shape) if keep or i not in axes]
        return tuple(left) == full

    sets = [axes for axes in _chosen(rank, count) if fits(axes)]
    return _one_of(ctx, plain, sets, rank)


def _one_of(ctx: Context, plain: Handler, sets: Sequence[tuple[int, ...]], rank: int) -> Result:
    """Returns the result for the axes of a call, which are one of some sets."""
    axes, there = places(numbers(ctx, 1), rank)
    among = tf.reduce_any(hits(axes, rank), 0)
    known = np.array([[i in axes for i in range(rank)] for axes in sets], bool).reshape(-1, rank)
    matches = tf.logical_and(tf.reduce_all(tf.equal(among, known), 1), there)
    return tried(ctx, plain, [{1: np.array(axes, np.int64)} for axes in sets], matches)


def _widened(ctx: Context, plain: Handler) -> Result:
    shape, full = sizes_of(ctx, 0), wanted(ctx, 1)
    return _ones(ctx, shape, full, len(full))


def _narrowed(ctx: Context, plain: Handler) -> Result:
    shape, full = sizes_of(ctx, 0), wanted(ctx, 1)
    return _ones(ctx, full, shape, len(shape))


def _ones(ctx: Context, narrow: Fixed, wide: Fixed, rank: int) -> Result:
    """Returns a tensor with axes of size 1, or without, if the call names these axes."""
    axes, there = places(numbers(ctx, 1), rank)
    among = tf.reduce_any(hits(axes, rank), 0)
    sets = [
        chosen
        for chosen in _chosen(rank, length(ctx, 1))
        if all(wide[i] == 1 for i in chosen)
        and tuple(d for i, d in enumerate(wide) if i not in chosen) == narrow
    ]
    if not sets:
        raise Refused(f"shapes {narrow} and {wide} of {length(ctx, 1)} axes of size 1")
    known = np.array([[i in chosen for i in range(rank)] for chosen in sets], bool)
    matches = tf.reduce_all(tf.equal(among, known), 1)
    holds = tf.logical_and(tf.reduce_any(matches), there)
    return confirmed(ctx, ctx.reshape(0, wanted(ctx, 1)), holds)


def _along(ctx: Context, plain: Handler) -> Result:
    """Computes along each axis; the call says which."""
    rank = len(sizes_of(ctx, 0))
    axis, there = places(numbers(ctx, 1), rank)
    matches = tf.logical_and(hits(axis, rank)[0], there)
    return tried(ctx, plain, [{1: np.array(i)} for i in range(rank)], matches)


def _transformed(ctx: Context, plain: Handler) -> Result:
    """Transforms along each axis that the stated shape allows."""
    rank, full = len(sizes_of(ctx, 0)), wanted(ctx, 2)
    if is_given(ctx, 1):
        raise Refused("the length of a transform is computed from the model's inputs")
    ways = []
    for axis in range(rank - 1):
        shape = list(sizes_of(ctx, 0))
        shape[axis], shape[-1] = full[axis], full[-1]
        if tuple(shape) == full and _transforms(ctx, axis, full):
            ways.append(axis)
    axis, there = places(numbers(ctx, 2), rank)
    matches = tf.logical_and(tf.equal(axis[0], np.array(ways, np.int64)), there)
    return tried(ctx, plain, [{2: np.array(i)} for i in ways], matches)


def _transforms(ctx: Context, axis: int, full: Fixed) -> bool:
    """Returns whether a transform along an axis gives as many numbers as the file states."""
    size = sizes_of(ctx, 0)[axis]
    inverse, one_sided = bool(ctx.attr("inverse", 0)), bool(ctx.attr("onesided", 0))
    count = int(ctx.ints(1)[0]) if ctx.has(1) else size
    if one_sided and not ctx.has(1) and inverse:
        count = 2 * (size - 1)
    elif one_sided and not inverse:
        count = count // 2 + 1
    return count == full[axis]


OPS: Mapping[str, tuple[tuple[int, ...], Agreed]] = {
    "CumProd": ((1,), _along),
    "CumSum": ((1,), _along),
    "DFT": ((2,), _transformed),
    **dict.fromkeys(
        (
            *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax"),
            *("ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
        ),
        ((1,), _reduced),
    ),
    "Squeeze": ((1,), _narrowed),
    "Unsqueeze": ((1,), _widened),
}
