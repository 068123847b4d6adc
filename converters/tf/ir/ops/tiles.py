"""Scratch memory of convolutions by minimal filtering, as in kernels/src/conv/winograd/tiles.rs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Tiles that the micro-kernels of each level take at once; they need memory for all levels.
STRIPS = (4, 6, 14)
CHANNELS = 16
PIXELS = 100
PIXELS_OF_FOUR = 256
NEAR = 1 << 14
FAR = 1 << 16
REUSED = 32
REUSED_BY_TWO = 512
LINE_CHANNELS = 32
LINE_PIXELS = 12
LINE_NEAR = 1 << 18
LINE_REUSED = 1 << 14
BLOCK = 32
GAP = 16
KEPT = 512 * 1024
PART = 4


@dataclass(frozen=True)
class Axis:
    """One axis of a convolution.

    Attributes:
        input: Elements of the input.
        output: Elements of the output.
        size: Taps.
        stride: Elements from one stop to the next.
        dilation: Elements from one tap to the next.
        before: Zeros before the first element.
    """

    input: int
    output: int
    size: int
    stride: int = 1
    dilation: int = 1
    before: int = 0


@dataclass(frozen=True)
class Tiles:
    """The tiles of a convolution.

    Attributes:
        points: Products of a tile.
        out: Outputs of a tile along each axis.
    """

    points: int
    out: tuple[int, int]


def tiles_of(y: Axis, x: Axis, depth: int, columns: int) -> Tiles | None:
    """Returns the tiles that suit a convolution of a single group, if any do."""
    pixels, weights = y.output * x.output, depth * columns
    moves = [(axis.size, axis.stride, axis.dilation) for axis in (y, x)]
    if moves == [(3, 1, 1), (3, 1, 1)]:
        if min(depth, columns) < CHANNELS or pixels < PIXELS:
            return None
        if pixels >= PIXELS_OF_FOUR and weights <= max(NEAR, min(FAR, pixels * REUSED)):
            return Tiles(36, (4, 4))
        return Tiles(16, (2, 2)) if weights <= min(FAR, pixels * REUSED_BY_TWO) else None
    apart = moves[0] == (1, 1, 1) and not y.before and y.input == y.output
    if (
        not apart
        or x.stride != 1
        or not 1 <= x.dilation <= x.input
        or min(depth, columns) < LINE_CHANNELS
        or pixels < LINE_PIXELS
        or weights > max(LINE_NEAR, pixels * LINE_REUSED)
    ):
        return None
    points = {3: 6, 4: 8, 5: 8}.get(x.size)
    return Tiles(points, (1, 4)) if points else None


def scratch(images: int, axes: Sequence[Axis], depth: int, columns: int) -> int:
    """Returns the f32 elements of scratch memory of a convolution of a single group.

    Args:
        images: Images of an example.
        axes: The spatial axes, one or two.
        depth: Channels of the input.
        columns: Channels of the output.
    """
    y, x = axes if len(axes) > 1 else (Axis(1, 1, 1), *axes)
    tiles = tiles_of(y, x, depth, columns)
    if tiles is None:
        return 0
    data = y.input * x.input * depth + y.output * x.output * columns
    all_data = data + y.size * x.size * depth * columns
    limit = all_data + all_data // 2
    kept = min(max(KEPT, data // PART), limit)

    def points(strip: int, count: int) -> int:
        whole, rest = divmod(count - 1, strip)
        return tiles.points * (whole * _point(strip, strip, depth) + _point(strip, rest + 1, depth))

    most = 0
    for strip in STRIPS:
        lines, across = _grid(tiles, y, x, strip)
        most = max(most, min(points(strip, lines * across), max(kept, points(strip, across))))
    # For several images as much as for each of them.
    return images * most if most <= limit else 0


def _grid(tiles: Tiles, y: Axis, x: Axis, strip: int) -> tuple[int, int]:
    """Returns the lines of tiles of an image, and the tiles of a line."""
    step = x.dilation
    across = min(step, x.output) * math.ceil(math.ceil(x.output / step) / tiles.out[1])
    if tiles.out[0] == 1 and y.output == 1 and step == 1:
        each = max(1, min(strip, across))
        return math.ceil(across / each), each
    return math.ceil(y.output / tiles.out[0]), across


def _point(strip: int, count: int, depth: int) -> int:
    """Returns the elements of a point of so many tiles."""
    lines = -(-count // 4) * 4
    if strip == max(STRIPS):
        lines = strip if count > 8 else 7 if 5 <= count <= 7 else lines
    return -(-depth // BLOCK) * BLOCK * lines + GAP
