"""Ops on images and on boxes in them."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from converters.tf.ir.graph import Node, Op
from converters.tf.ir.operands import Operands
from converters.tf.ir.ops.windows import at_tap, stops, taps, window_padding, window_stops
from converters.tf.ir.sizes import numbers
from converters.tf.ir.values import Array, Shape

__all__ = ["Pool", "PoolKind", "Resize", "ResizeKind", "Suppress"]


class PoolKind(StrEnum):
    """What a pool keeps of its window."""

    MAX = "max"
    AVERAGE = "average"  # of the elements inside the input, not of the padding


@dataclass(frozen=True)
class Pool(Op):
    """Pools over one or two axes: (x [batch, *spatial, C]), f32. Padding as in `Conv`.

    A maximum leaves NaN out, and is at least the least finite value.
    """

    kind: PoolKind
    size: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]

    single = True

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns `[batch, *stops, C]`."""
        ones = (1,) * len(self.size)
        spatial = window_stops(x[0][1:-1], self.size, self.strides, ones, self.padding)
        return ((x[0][0], *spatial, x[0][-1]),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the extremes or the means of what the window sees."""
        data = x.wide()[0]
        ones = (1,) * len(self.size)
        # The search starts from the least finite value.
        empty = np.finfo(np.float32).min if self.kind is PoolKind.MAX else 0.0
        padded = np.pad(data, window_padding(self.padding), constant_values=empty)
        inside = np.pad(np.ones(data.shape), window_padding(self.padding))
        outputs = stops(padded.shape[1:-1], self.size, self.strides, ones)
        places = [at_tap(tap, outputs, self.strides, ones) for tap in taps(self.size)]
        if self.kind is PoolKind.MAX:
            return [np.fmax.reduce([padded[p] for p in places], axis=0, initial=empty)]
        total = np.sum([padded[p] for p in places], axis=0)
        return [total / np.sum([inside[p] for p in places], axis=0)]


class ResizeKind(StrEnum):
    """Interpolations."""

    NEAREST = "nearest"
    BILINEAR = "bilinear"


@dataclass(frozen=True)
class Resize(Op):
    """Resizes images [batch, height, width, C] to the shape of the output: (x).

    Bilinear takes f32. With `align_corners` the outermost pixels meet; with `half_pixel` centers
    lie at halves. Never both.
    """

    kind: ResizeKind
    align_corners: bool = False
    half_pixel: bool = False

    single = True

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the images, resized an axis after the other."""
        result = x.wide()[0]
        for axis, target in enumerate(shape[1:-1], start=1):
            low, high, weight = _places(self, result.shape[axis], target)
            if self.kind is ResizeKind.NEAREST:
                result = np.take(result, low, axis=axis)
                continue
            w = weight.reshape([-1 if i == axis else 1 for i in range(4)])
            below, above = np.take(result, low, axis=axis), np.take(result, high, axis=axis)
            result = below + (above - below) * w
        return [result]


@dataclass(frozen=True)
class Suppress(Op):
    """Boxes chosen by their scores: (boxes [..., N, 4], scores [..., *classes, N], f32) -> i32.

    The result is [..., *classes, K]: places of boxes, the best score first, and -1 where no more
    are chosen. A chosen box suppresses those that overlap it. Boxes are two opposite corners;
    classes share theirs.

    Attributes:
        overlap: A box is suppressed if more than this part of its union with a chosen one is
            shared.
        score: Boxes have a higher score than this.
        in_order: Of equal scores the first comes first. Otherwise they come as they leave a binary
            heap in which scores alone are compared.
    """

    overlap: float
    score: float
    in_order: bool

    single = True

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the places of the chosen boxes."""
        boxes, scores = x[0], x[1]
        count = scores.shape[-1]
        out = np.full(shape, -1, np.int32).reshape(-1, shape[-1])
        if not out.size or not count:
            return [out.reshape(shape)]
        rows = scores.reshape(-1, count)
        each = boxes.reshape(-1, count, 4)
        for group, row in enumerate(rows):
            corners = each[group * len(each) // len(rows)]
            chosen: list[int] = []
            for place in (_in_order if self.in_order else _from_heap)(row, np.float32(self.score)):
                if len(chosen) == shape[-1]:
                    break
                shared = _overlaps(corners[place], corners[chosen])
                if not np.any(shared > np.float32(self.overlap)):
                    chosen.append(place)
            out[group, : len(chosen)] = chosen
        return [out.reshape(shape)]

    def scratch(self, node: Node, packed: bool = True) -> int:
        """Returns an element per box."""
        return numbers(node.given(1).shape)[-1]


def _places(
    op: Resize, size: int, target: int
) -> tuple[Array, Array, Array]:  # low, high, weight of high
    scale = (size - 1) / (target - 1) if op.align_corners and target > 1 else size / target
    if op.kind is ResizeKind.NEAREST:
        # A place in float32 can be the next pixel's, and halves go up.
        centre = (np.arange(target) + (0.5 if op.half_pixel else 0)).astype(np.float32)
        near = np.floor(centre * np.float32(scale) + np.float32(0.5 if op.align_corners else 0))
        index = np.clip(near, 0, size - 1).astype(int)
        return index, index, np.zeros(target)
    place = np.arange(target, dtype=np.float64)
    at = (place + 0.5) * scale - 0.5 if op.half_pixel else place * scale
    low = np.floor(at)
    indices = [np.clip(i, 0, size - 1).astype(int) for i in (low, low + 1)]
    return indices[0], indices[1], at - low


def _overlaps(box: Array, others: Array) -> Array:
    """Returns the shared parts of the unions in float32, whose rounding decides at the limit."""
    ends, other_ends = (
        np.sort(b.astype(np.float32).reshape(-1, 2, 2), axis=1) for b in (box, others)
    )
    area, areas = (np.prod(e[:, 1] - e[:, 0], axis=1) for e in (ends, other_ends))
    low, high = np.maximum(ends[:, 0], other_ends[:, 0]), np.minimum(ends[:, 1], other_ends[:, 1])
    common = np.prod(np.maximum(high - low, np.float32(0)), axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = common / (area + areas - common)
    return np.where(np.minimum(area, areas) <= 0, np.float32(0), parts)


def _in_order(scores: Array, least: np.float32) -> list[int]:
    order = np.argsort(-scores, kind="stable")
    return [int(i) for i in order if scores[i] > least]


def _from_heap(scores: Array, least: np.float32) -> list[int]:
    """Returns places in the order in which they leave a heap that compares scores alone."""
    heap: list[_Place] = []
    for place, score in enumerate(scores):
        if score > least:
            heapq.heappush(heap, _Place(float(score), place))
    return [heapq.heappop(heap).place for _ in range(len(heap))]


class _Place:
    def __init__(self, score: float, place: int) -> None:
        self.score = score
        self.place = place

    def __lt__(self, other: _Place) -> bool:
        return self.score > other.score
