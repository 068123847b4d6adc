"""Windows that are joined from windows of half their size."""

from __future__ import annotations

import numpy as np
import pytest

from converters.tf.ir.spans import over_spans


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("taps", [*range(1, 18), 60])
def test_each_window_is_whole_and_in_order(taps: int, step: int) -> None:
    length = (taps - 1) * step + 5
    joins = 0

    def part(x: list[tuple[int, ...]], begin: int, count: int) -> list[tuple[int, ...]]:
        assert begin >= 0
        assert begin + count <= len(x)
        return x[begin : begin + count]

    def meet(a: list[tuple[int, ...]], b: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        nonlocal joins
        joins += 1
        return [left + right for left, right in zip(a, b, strict=True)]

    given: list[tuple[int, ...]] = [(i,) for i in range(length)]
    found = over_spans(given, taps, length, part, meet, step)
    wanted = [[at + tap * step for tap in range(taps)] for at in range(5)]
    assert [sorted(window) for window in found] == wanted
    assert joins <= 2 * np.log2(taps)
