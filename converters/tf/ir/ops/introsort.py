"""Rows in the order in which the sort of TensorFlow's C++ library leaves them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from converters.tf.ir.graph import Node, Op
from converters.tf.ir.operands import Operands
from converters.tf.ir.types import unserved
from converters.tf.ir.values import Array, DType, Shape

__all__ = ["Introsort"]

# Parts of at most as many elements are left to the insertion sort.
_SHORT = 16


@dataclass(frozen=True)
class Introsort(Op):
    """The places of each row of the last axis, the largest element first: (x), f32 -> i32.

    Equal elements come as libstdc++'s `std::sort` leaves them, which TensorFlow's kernels call. It
    isn't stable: a quicksort by the median of three. Short parts are left to an insertion sort, and
    parts that it divides too often to a heap sort.
    """

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of x."""
        return (x[0],)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the places, by the same steps."""
        out = np.zeros(shape, np.int32)
        if out.size:
            for row, places in zip(
                x[0].reshape(-1, shape[-1]), out.reshape(-1, shape[-1]), strict=True
            ):
                places[:] = sorted_places(row.tolist())
        return [out]

    def refused(self, node: Node) -> list[str]:
        """Returns whether the runtime sorts the type."""
        return unserved("introsort", node.input.dtype, frozenset({DType.F32}))


def sorted_places(elements: Sequence[float]) -> list[int]:
    """Returns the places in falling order of their elements; NaN leaves them in any order."""
    return _Row(elements).sorted()


class _Row:
    """Elements, and their places on the way to their order."""

    def __init__(self, elements: Sequence[float]) -> None:
        self.elements = elements
        self.places = list(range(len(elements)))

    def sorted(self) -> list[int]:
        """Puts the places in order."""
        places = self.places
        self._divide(0, len(places), 2 * (len(places).bit_length() - 1))
        for at, place in enumerate(places):
            hole = at
            while hole > 0 and self._before(place, places[hole - 1]):
                places[hole] = places[hole - 1]
                hole -= 1
            places[hole] = place
        return places

    def _before(self, a: int, b: int) -> bool:
        return self.elements[a] > self.elements[b]

    def _divide(self, start: int, end: int, depth: int) -> None:
        while end - start > _SHORT:
            if not depth:
                self.places[start:end] = self._by_heap(self.places[start:end])
                return
            depth -= 1
            cut = self._partition(start, end)
            self._divide(cut, end, depth)
            end = cut

    def _partition(self, start: int, end: int) -> int:
        """Puts what comes before a median of three in front, and returns where that ends."""
        places, before = self.places, self._before
        middle = self._median(start + 1, start + (end - start) // 2, end - 1)
        places[start], places[middle] = places[middle], places[start]
        pivot = places[start]
        low, high = start + 1, end
        while True:
            while low < end and before(places[low], pivot):
                low += 1
            high -= 1
            while high > start and before(pivot, places[high]):
                high -= 1
            if low >= high:
                return low
            places[low], places[high] = places[high], places[low]
            low += 1

    def _median(self, a: int, b: int, c: int) -> int:
        low, high = (a, b) if self._before(self.places[a], self.places[b]) else (b, a)
        if self._before(self.places[high], self.places[c]):
            return high
        return c if self._before(self.places[low], self.places[c]) else low

    def _by_heap(self, heap: list[int]) -> list[int]:
        for root in reversed(range(len(heap) // 2)):
            self._sink(heap, root, len(heap), heap[root])
        for end in reversed(range(1, len(heap))):
            place, heap[end] = heap[end], heap[0]
            self._sink(heap, 0, end, place)
        return heap

    def _sink(self, heap: list[int], root: int, end: int, place: int) -> None:
        """The gap at the root sinks to the end of a branch, where the place starts to rise."""
        gap = root
        while (child := 2 * gap + 1) < end:
            if child + 1 < end and not self._before(heap[child + 1], heap[child]):
                child += 1
            heap[gap] = heap[child]
            gap = child
        while gap > root and self._before(heap[parent := (gap - 1) // 2], place):
            heap[gap] = heap[parent]
            gap = parent
        heap[gap] = place
