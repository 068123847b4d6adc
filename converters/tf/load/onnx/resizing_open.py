"""Images of open size that are resized."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir.agreeing import differ
from converters.tf.ir.expressions import is_open, surely
from converters.tf.ir.symbolic import of_shape
from converters.tf.load.onnx.context import Context
from converters.tf.load.saved_model.replay import Refused

# A factor of an open size is a fraction of at most this divisor.
_MOST_DIVISOR = 64


@dataclass(frozen=True)
class Places:
    """Where a pixel of the result lies in the image, in ONNX's words.

    Attributes:
        mode: How it is computed.
        where: `coordinate_transformation_mode`.
        rounding: `nearest_mode`.
    """

    mode: str
    where: str
    rounding: str

    @property
    def repeats(self) -> bool:
        """Returns whether nearest pixels repeat for a factor that is an integer."""
        if self.where == "asymmetric":
            return self.rounding == "floor"
        return "half_pixel" in self.where and self.rounding.startswith("round")


def scaled(size: int, factor: float) -> int:
    """Returns a size times a factor, rounded down.

    Raises:
        Refused: The size is open, and the factor is not a fraction of small numbers.
    """
    if not is_open(size):
        return math.floor(size * factor)
    part = Fraction(factor).limit_denominator(_MOST_DIVISOR)
    if np.float32(part) != np.float32(factor):
        raise Refused(f"a factor of {factor} for a size, {size!s}, that is open")
    return size * part.numerator // part.denominator


def resize_open(
    ctx: Context,
    sizes: Sequence[int],
    outputs: Sequence[int],
    factors: Sequence[float] | None,
    places: Places,
) -> Any:
    """Returns images of open size in another size, with channels last.

    TensorFlow's ops compute places by the sizes alone. So a factor that is given has to lead to the
    size of the result without rounding.

    Args:
        ctx: The call; operand 0 are the images.
        sizes: Their height and width, or their width alone.
        outputs: The sizes of the result.
        factors: The factors that places are computed by; `None` for the quotients of the sizes.
        places: Where pixels of the result lie.

    Raises:
        Refused: The places depend on numbers that a call decides, or the mode does not know them.
    """
    x = ctx.last(0)
    if len(sizes) == 1:
        line = tf.expand_dims(x, 1)
        own = None if factors is None else [1.0, *factors]
        return tf.squeeze(_resized(ctx, line, [1, *sizes], [1, *outputs], own, places), [1])
    if len(sizes) != 2:
        raise Refused(f"an open size of images of {len(sizes)} axes")
    return _resized(ctx, x, sizes, outputs, factors, places)


def _resized(
    ctx: Context,
    x: Any,
    sizes: Sequence[int],
    outputs: Sequence[int],
    factors: Sequence[float] | None,
    places: Places,
) -> Any:
    for size, output, factor in zip(sizes, outputs, factors or (), strict=factors is not None):
        part = Fraction(factor).limit_denominator(_MOST_DIVISOR)
        if output * part.denominator != size * part.numerator:
            differ(output * part.denominator, size * part.numerator)
            raise Refused(f"a resize of {size!s} by {factor}: the result is rounded")
    target = ctx.session.symbol(of_shape(tuple(outputs), "int32"))
    if places.mode == "nearest":
        whole = all(map(_is_multiple, outputs, sizes))
        # Without a whole factor, both round the quotient of the sizes down.
        plain = places.where == "asymmetric" and places.rounding == "floor"
        if not plain and not (whole and places.repeats):
            raise Refused(f"an open size, {places.where} and {places.rounding}")
        return tf.raw_ops.ResizeNearestNeighbor(images=x, size=target)
    if places.mode != "linear" or not _is_linear(sizes, outputs, places.where):
        raise Refused(f"an open size, {places.mode} and {places.where}")
    return tf.raw_ops.ResizeBilinear(
        images=x,
        size=target,
        align_corners=places.where == "align_corners",
        half_pixel_centers="half_pixel" in places.where,
    )


def _is_linear(sizes: Sequence[int], outputs: Sequence[int], where: str) -> bool:
    """Returns whether TensorFlow's bilinear op knows the places."""
    if where == "pytorch_half_pixel":
        # A result of one pixel is the first one, or the only one.
        return all(map(_is_plain, sizes, outputs))
    return where in ("align_corners", "asymmetric", "half_pixel", "half_pixel_symmetric")


def _is_multiple(size: int, of: int) -> bool:
    return surely(lambda: size % of == 0)


def _is_plain(size: int, output: int) -> bool:
    return surely(lambda: output >= 2) or surely(lambda: output >= size)
