"""What windows of neighbours give together, in steps that grow with the logarithm of their size."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def over_spans(
    x: T,
    taps: int,
    length: int,
    part: Callable[[T, int, int], T],
    meet: Callable[[T, T], T],
    step: int = 1,
) -> T:
    """Returns what the elements of each window along an axis give together.

    Windows of 2, 4, 8 and more elements come from two of half the size. The window comes from those
    whose sizes add up to its own.

    Args:
        x: Elements, or several tensors of them.
        taps: How many elements a window has, at least 1.
        length: The size of the axis.
        part: Takes elements along the axis: `part(x, begin, count)`.
        meet: Joins two tensors elementwise; it has to be associative.
        step: How far apart the elements of a window are.

    Returns:
        A tensor whose axis has `length - (taps - 1) * step` elements.
    """
    count = length - (taps - 1) * step
    found: T | None = None
    at, size = 0, 1
    while True:
        if taps & size:
            one = part(x, at * step, count)
            found = one if found is None else meet(found, one)
            at += size
        if 2 * size > taps:
            assert found is not None
            return found
        wide = length - (2 * size - 1) * step
        x = meet(part(x, 0, wide), part(x, size * step, wide))
        size *= 2
