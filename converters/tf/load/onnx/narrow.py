"""Types of few bits: they are computed in wider ones, and a cast rounds to what they hold.

Floats of 16 bits are not rounded: they stay float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

# ONNX's numbers of element types.
_UINT4, _INT4, _UINT2, _INT2 = 21, 22, 25, 26
E8M0 = 24

# The least number of a type of integers, and its bits.
_INTEGERS = {_UINT4: (0, 4), _INT4: (-8, 4), _UINT2: (0, 2), _INT2: (-2, 2)}


@dataclass(frozen=True)
class _Float:
    """A type of floats.

    Attributes:
        mantissa: Bits of it.
        least: The exponent of the smallest normal number.
        largest: The largest finite number.
        infinite: Whether it holds infinity.
        known: Whether it holds NaN.
        signed: Whether it holds -0.
    """

    mantissa: int
    least: int
    largest: float
    infinite: bool = False
    known: bool = True
    signed: bool = True


_FLOATS = {
    17: _Float(3, -6, 448.0),
    18: _Float(3, -7, 240.0, signed=False),
    19: _Float(2, -14, 57344.0, infinite=True),
    20: _Float(2, -15, 57344.0, signed=False),
    23: _Float(1, 0, 6.0, known=False),
}


def is_narrow(number: int) -> bool:
    """Returns whether a cast to a type, by ONNX's number, rounds to what a wider one holds."""
    return number in _INTEGERS or number in _FLOATS or number == E8M0


def bounds(number: int) -> tuple[int, int] | None:
    """Returns the least and the largest number of a type of integers of few bits."""
    if number not in _INTEGERS:
        return None
    least, bits = _INTEGERS[number]
    return least, least + (1 << bits) - 1


def is_float(number: int) -> bool:
    """Returns whether a type is one of few bits for floats."""
    return number in _FLOATS


def narrowed(x: Any, number: int, saturate: bool = True, round_mode: str = "up") -> Any:
    """Returns numbers as a type of few bits holds them.

    Args:
        x: A tensor of TensorFlow.
        number: ONNX's number of the type.
        saturate: Whether floats that are too large become the largest; else infinity or NaN.
        round_mode: How powers of two are rounded: up, down or nearest.

    Returns:
        int8 or uint8 for integers, of which upper bits are lost, else float32.
    """
    if number in _INTEGERS:
        least, bits = _INTEGERS[number]
        kept = tf.bitwise.bitwise_and(tf.cast(x, tf.int32) - least, (1 << bits) - 1)
        return tf.cast(kept + least, tf.int8 if least else tf.uint8)
    x = x if x.dtype == tf.float32 else tf.cast(x, tf.float32)
    if number == E8M0:
        return _powers(x, saturate, round_mode)
    return _rounded(x, _FLOATS[number], saturate)


def _rounded(x: Any, kind: _Float, saturate: bool) -> Any:
    most = int(np.floor(np.log2(kind.largest)))
    exponents = np.arange(kind.least, most + 1)
    # What two neighbouring numbers differ by, between the powers of two.
    steps = np.exp2(exponents - kind.mantissa).astype(np.float32)
    reached = tf.raw_ops.Bucketize(input=tf.abs(x), boundaries=list(np.exp2(exponents[1:])))
    step = tf.gather(tf.constant(steps), reached)
    y = tf.round(x / step) * step
    if saturate or not kind.known:
        y = tf.clip_by_value(y, -kind.largest, kind.largest)
        y = y if kind.known else tf.where(tf.math.is_nan(x), -0.0, y)
    else:
        beyond = tf.sign(y) * np.float32(np.inf if kind.infinite else np.nan)
        y = tf.where(tf.abs(y) > kind.largest, beyond, y)
    return y if kind.signed else tf.where(tf.equal(y, 0.0), 0.0, y)


def _powers(x: Any, saturate: bool, round_mode: str) -> Any:
    """Returns powers of two from 2^-127 to 2^127."""
    exponents = np.arange(-127, 128)
    powers = np.exp2(exponents).astype(np.float32)
    table = tf.constant(powers)
    if round_mode == "up":
        # How many powers are below it.
        above = tf.reduce_sum(tf.cast(x[..., None] > table, tf.int32), -1)
    elif round_mode == "down":
        above = tf.reduce_sum(tf.cast(x[..., None] >= table, tf.int32), -1) - 1
    else:
        middles = (powers[1:].astype(np.float64) + powers[:-1]) / 2
        above = tf.reduce_sum(tf.cast(x[..., None] >= middles.astype(np.float32), tf.int32), -1)
    y = tf.gather(table, tf.clip_by_value(above, 0, len(powers) - 1))
    if not saturate:
        outside = tf.logical_or(x > float(powers[-1]), x < float(powers[0]))
        y = tf.where(outside, np.float32(np.nan), y)
    return tf.where(tf.math.is_nan(x), np.float32(np.nan), y)
