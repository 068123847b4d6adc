"""The arrays that a node reads, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from converters.tf.ir.values import Array


def wide(data: Array) -> Array:
    """Returns float32 as float64, and other types as they are."""
    return data.astype(np.float64) if data.dtype == np.float32 else data


class Operands:
    """Arrays in the order that the op states; `None` for one that is left out."""

    def __init__(self, arrays: Sequence[Array | None]) -> None:
        """Takes the arrays, of which those at the end may be missing."""
        self._arrays = tuple(arrays)

    def get(self, index: int) -> Array | None:
        """Returns an operand, or `None` if it is left out."""
        return self._arrays[index] if index < len(self._arrays) else None

    def __getitem__(self, index: int) -> Array:
        """Returns an operand.

        Raises:
            ValueError: It is left out.
        """
        value = self.get(index)
        if value is None:
            raise ValueError(f"operand {index} is left out, which the op needs")
        return value

    def every(self) -> list[Array]:
        """Returns all operands.

        Raises:
            ValueError: One is left out.
        """
        return [self[index] for index in range(len(self._arrays))]

    def wide(self) -> Operands:
        """Returns the operands with float32 as float64."""
        return Operands([None if data is None else wide(data) for data in self._arrays])
