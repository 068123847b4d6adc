"""Sizes and shapes of tensors."""

from __future__ import annotations

import math

from converters.tf.ir.agreeing import differ
from converters.tf.ir.expressions import is_open
from converters.tf.ir.values import Batch, Dim, Shape, shape_text


class ShapeError(ValueError):
    """Operands do not fit together."""


def elements(shape: Shape) -> int:
    """Returns the elements of one example of a tensor."""
    return math.prod(numbers(shape))


def is_fixed(shape: Shape) -> bool:
    """Returns whether a shape does not depend on the batch."""
    return not any(isinstance(d, Batch) for d in shape)


def has_open(shape: Shape) -> bool:
    """Returns whether a shape has an open dimension besides the batch."""
    return any(is_open(d.scale if isinstance(d, Batch) else d) for d in shape)


def numbers(shape: Shape) -> list[int]:
    """Returns the dimensions of a shape, the batch as its scale."""
    return [d.scale if isinstance(d, Batch) else d for d in shape]


def broadcast(*shapes: Shape) -> Shape:
    """Returns the shape that NumPy's broadcasting gives.

    Raises:
        ShapeError: The shapes do not fit together for every batch size.
    """
    rank = max(len(s) for s in shapes)
    result: list[Dim] = []
    for axis in range(-rank, 0):
        dims = {s[axis] for s in shapes if len(s) >= -axis} - {1}
        if len(dims) > 1:
            differ(*list(dims)[:2])
            raise ShapeError(f"shapes {', '.join(map(shape_text, shapes))} don't broadcast")
        result.append(dims.pop() if dims else 1)
    return tuple(result)
