"""What a node may give besides a tensor of the model: parts of patterns that others finish."""

from __future__ import annotations

import math
from dataclasses import dataclass

from converters.tf import ir


@dataclass(frozen=True, eq=False)
class TensorList:
    """A list of tensors of one shape.

    Attributes:
        stacked: The elements along a new first axis; `None` as long as nothing was written.
        length: Number of elements; that of the examples for a list with one for each.
        dtype: Element type.
        shape: Shape of an element if it is known.
        grows: Whether the length is the one that it has after the loop that writes it.
        own: In a loop over the examples, the number of the one whose element alone is reached.
    """

    stacked: ir.Value | None
    length: ir.Dim
    dtype: ir.DType
    shape: ir.Shape | None
    grows: bool = False
    own: ir.Value | None = None


@dataclass(frozen=True, eq=False)
class Bits:
    """The bits of floats, read as integers; only their sign may be asked for.

    Attributes:
        source: The floats.
    """

    source: ir.Value


@dataclass(frozen=True, eq=False)
class Spread:
    """How `SpaceToBatchND` made an image: the first half of a dilated convolution.

    Attributes:
        source: The image before.
        blocks: Dilations.
        padding: Zeros before and after, per axis.
    """

    source: ir.Value
    blocks: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Bounds:
    """A whole number that depends on all examples of the batch, by what is known of it.

    Attributes:
        least: It is at least this.
        most: It is at most this.
        dtype: Element type.
    """

    least: float
    most: float
    dtype: ir.DType

    def known(self) -> int | None:
        """Returns the number if there is only one."""
        return int(self.least) if self.least == self.most and math.isfinite(self.least) else None


@dataclass(frozen=True, eq=False)
class Rows:
    """Places in a flattened batch: `scale` times the number of the example, plus an offset.

    The places of an example must lie in its own elements: those of others can't be reached.

    Attributes:
        scale: Elements of an example.
        offset: Places in an example; its shape broadcasts to that of the places, or to that from
            which they were flattened.
        shape: Shape of the places; the first axis is the batch, or all of its elements.
    """

    scale: int
    offset: ir.Value
    shape: ir.Shape


@dataclass(frozen=True, eq=False)
class Numbered:
    """Indices whose first number is that of their example.

    Attributes:
        rest: The other numbers, along the last axis; the first axis is the batch.
    """

    rest: ir.Value


@dataclass(frozen=True)
class Several:
    """Whether there is more than one example, which `tf.vectorized_map` asks."""


@dataclass(frozen=True)
class Seed:
    """What TensorFlow derives of a seed: the key and the counter of random numbers.

    Attributes:
        source: The seed, two whole numbers.
    """

    source: ir.Value


@dataclass(frozen=True, eq=False)
class Complex:
    """Complex numbers.

    Attributes:
        real: Their real parts.
        imaginary: Their imaginary parts.
    """

    real: ir.Value
    imaginary: ir.Value
