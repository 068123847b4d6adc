"""Patches of images, which move elements and compute nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from converters.tf import ir
from converters.tf.ir.build import Builder, static

# Patches that overlap are slices of the image that are joined: at most so many.
_MOST_TAPS = 64


def takes_patches(op: ir.Conv, weights: ir.Value) -> bool:
    """Returns whether a convolution copies each element of its window to a channel of its own.

    Keras writes patches so.
    """
    if weights.data is None or op.groups != 1:
        return False
    taps, channels = int(np.prod(weights.data.shape[:-1])), weights.data.shape[-1]
    if taps != channels or not _moves(op, weights.data.shape[:-2]):
        return False
    return np.array_equal(weights.data.reshape(taps, channels), np.eye(taps))


def _moves(op: ir.Conv, window: Sequence[int]) -> bool:
    return _apart(op, window) or int(np.prod(window)) <= _MOST_TAPS


def _apart(op: ir.Conv, window: Sequence[int]) -> bool:
    """Returns whether patches lie side by side."""
    unpadded = not any(sum(pair) for pair in op.padding)
    return unpadded and set(op.dilations) == {1} and tuple(window) == op.strides


def patches(
    build: Builder, x: ir.Value, op: ir.Conv, window: Sequence[int], outputs: Sequence[int]
) -> ir.Value:
    """Returns the elements of each window as channels, those of an image's channels innermost.

    Args:
        build: Gets the nodes.
        x: Images, channels last.
        op: Strides, dilations and padding.
        window: Elements of a window along each axis.
        outputs: Windows along each axis.
    """
    channels = static(x.shape[-1], "the channels")
    shape = (x.shape[0], *outputs, int(np.prod(window)) * channels)
    rank = len(window)
    if _apart(op, window):
        counts = [n * size for n, size in zip(outputs, window, strict=True)]
        x = build.slice(x, [0] * x.rank, (x.shape[0], *counts, channels))
        split = [d for pair in zip(outputs, window, strict=True) for d in pair]
        x = build.reshape(x, (x.shape[0], *split, channels))
        order = [0, *range(1, 2 * rank, 2), *range(2, 2 * rank + 1, 2), 2 * rank + 1]
        return build.reshape(build.transpose(x, order), shape)
    x = build.pad(x, [(0, 0), *op.padding, (0, 0)])
    parts = [
        build.slice(
            x,
            [0, *(i * d for i, d in zip(tap, op.dilations, strict=True)), 0],
            (x.shape[0], *outputs, channels),
            [1, *op.strides, 1],
        )
        for tap in np.ndindex(*window)
    ]
    return build.concat(parts, x.rank - 1)
