"""What random models are drawn with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Random = np.random.Generator
# The shapes of the inputs, and the layers over them.
Case = tuple[list[tuple[int, ...]], Callable[..., Any]]


def pick(r: Random, *values: Any) -> Any:
    """Returns one of some values."""
    return values[int(r.integers(len(values)))]


def flag(r: Random) -> bool:
    """Returns true in half of all cases."""
    return bool(r.integers(2))


def drawn_shape(r: Random, dims: int) -> tuple[int, ...]:
    """Returns sizes of so many dimensions, and channels."""
    least, most = {1: (6, 10), 2: (6, 9), 3: (4, 6)}[dims]
    sizes = [int(size) for size in r.integers(least, most, dims)]
    return (*sizes, int(r.integers(1, 4)) * 2)
