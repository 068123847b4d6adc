"""Boxes that suppress each other in NumPy."""

from __future__ import annotations

import heapq

import numpy as np

from converters.tf import ir
from converters.tf.ir import Array


def suppressed(op: ir.Suppress, x: list[Array], shape: tuple[int, ...]) -> Array:
    """Returns the places of the chosen boxes."""
    boxes, scores = x
    count = scores.shape[-1]
    out = np.full(shape, -1, np.int32).reshape(-1, shape[-1])
    if not out.size or not count:
        return out.reshape(shape)
    rows = scores.reshape(-1, count)
    each = boxes.reshape(-1, count, 4)
    for group, row in enumerate(rows):
        corners = each[group * len(each) // len(rows)]
        chosen: list[int] = []
        for place in (_in_order if op.in_order else _from_heap)(row, np.float32(op.score)):
            if len(chosen) == shape[-1]:
                break
            shared = [_overlap(corners[place], corners[other]) for other in chosen]
            if all(part <= np.float32(op.overlap) or np.isnan(part) for part in shared):
                chosen.append(place)
        out[group, : len(chosen)] = chosen
    return out.reshape(shape)


def _overlap(box: Array, other: Array) -> np.float32:
    """Returns the shared part of the union in float32, whose rounding decides at the limit."""
    ends = [np.sort(b.astype(np.float32).reshape(2, 2), axis=0) for b in (box, other)]
    areas = [np.prod(high - low) for low, high in ends]
    if min(areas) <= 0:
        return np.float32(0)
    low, high = np.maximum(ends[0][0], ends[1][0]), np.minimum(ends[0][1], ends[1][1])
    common = np.prod(np.maximum(high - low, np.float32(0)))
    return np.float32(common / (areas[0] + areas[1] - common))


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
