"""Windows that move over the axes of images: for convolutions and pools."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from converters.tf.ir.sizes import ShapeError
from converters.tf.ir.values import Batch, Dim, shape_text


def taps(size: Sequence[int]) -> list[tuple[int, ...]]:
    """Returns the places in a window."""
    return list(itertools.product(*(range(s) for s in size)))


def at_tap(
    tap: Sequence[int], outputs: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[slice, ...]:
    """Returns the index of what a place of the window sees at all stops, batch axis included."""
    spatial = tuple(
        slice(t * d, t * d + (o - 1) * s + 1, s)
        for t, o, s, d in zip(tap, outputs, strides, dilations, strict=True)
    )
    return (slice(None), *spatial)


def stops(
    padded: Sequence[int], size: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[int, ...]:
    """Returns how often a window stops along each axis."""
    reach = [(s - 1) * d + 1 for s, d in zip(size, dilations, strict=True)]
    return tuple((p - r) // s + 1 for p, r, s in zip(padded, reach, strides, strict=True))


def window_stops(
    spatial: Sequence[Dim],
    size: Sequence[Dim],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: Sequence[tuple[int, int]],
) -> tuple[int, ...]:
    """Returns how often a window stops along each axis of an image.

    Raises:
        ShapeError: An axis depends on the batch size.
    """
    images = [d for d in spatial if not isinstance(d, Batch)]
    window = [d for d in size if not isinstance(d, Batch)]
    if len(images) != len(spatial) or len(window) != len(size):
        raise ShapeError(f"an axis of {shape_text(tuple(spatial))} depends on the batch size")
    padded = [d + sum(p) for d, p in zip(images, padding, strict=True)]
    return stops(padded, window, strides, dilations)


def window_padding(padding: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the padding of all axes: none of batch and channels."""
    return [(0, 0), *padding, (0, 0)]
