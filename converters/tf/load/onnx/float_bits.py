"""The bits of floats as integers and back, by arithmetic: every power of two is exact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf


@dataclass(frozen=True)
class _Format:
    """A type of floats.

    Attributes:
        real: The type.
        whole: The integer of as many bits.
        mantissa: Bits of it that are stored.
        bias: What is added to exponents.
    """

    real: Any
    whole: Any
    mantissa: int
    bias: int

    @property
    def hidden(self) -> int:
        """Returns the bit of normal numbers that is not stored."""
        return 1 << self.mantissa


_SINGLE = _Format(tf.float32, tf.int32, 23, 127)
_DOUBLE = _Format(tf.float64, tf.int64, 52, 1023)


def _to_bits(x: Any, f: _Format) -> Any:
    """Returns bits; all NaN have those of the ordinary one."""
    one = tf.constant(1.0, f.real)
    negative = tf.logical_or(x < 0, tf.logical_and(tf.equal(x, 0), tf.math.reciprocal(x) < 0))
    size = tf.abs(x)
    finite = tf.math.is_finite(x)
    scaled = tf.where(finite, size, one)
    exponent = tf.zeros_like(x, f.whole)
    steps = [1 << k for k in range((f.bias + 1).bit_length() - 1, -1, -1)]
    for step in steps:  # Downwards to numbers below 2.
        large = scaled >= tf.constant(2.0**step if step <= f.bias else np.inf, f.real)
        scaled = tf.where(large, scaled * tf.constant(2.0**-step, f.real), scaled)
        exponent = exponent + tf.where(large, tf.constant(step, f.whole), 0)
    for step in steps:  # Upwards to numbers from 1 on.
        if step > f.bias - 1:
            continue
        small = tf.logical_and(
            scaled < tf.constant(2.0 ** (1 - step), f.real), exponent - step >= 1 - f.bias
        )
        scaled = tf.where(small, scaled * tf.constant(2.0**step, f.real), scaled)
        exponent = exponent - tf.where(small, tf.constant(step, f.whole), 0)
    normal = scaled >= one
    whole = tf.cast(scaled * tf.constant(float(f.hidden), f.real), f.whole)
    bits = tf.where(normal, (exponent + f.bias) * f.hidden + (whole - f.hidden), whole)
    top = (2 * f.bias + 1) * f.hidden
    bits = tf.where(finite, bits, tf.constant(top, f.whole))
    bits = tf.where(tf.math.is_nan(x), tf.constant(top + f.hidden // 2, f.whole), bits)
    return tf.where(negative, bits + f.whole.min, bits)


def _to_float(bits: Any, f: _Format) -> Any:
    size = tf.bitwise.bitwise_and(bits, f.whole.max)
    exponent = tf.bitwise.right_shift(size, tf.constant(f.mantissa, f.whole))
    stored = tf.bitwise.bitwise_and(size, f.hidden - 1)
    powers = np.exp2(np.arange(2 * f.bias + 1, dtype=np.float64) - f.bias)
    # Multiplied in two steps, as the step of the smallest numbers is no number that is normal.
    steps = np.append(powers, 1.0)
    steps[0] = powers[1]
    factor = tf.gather(tf.constant(steps.astype(f.real.as_numpy_dtype)), exponent)
    whole = tf.where(exponent > 0, stored + f.hidden, stored)
    y = tf.cast(whole, f.real) * tf.constant(1.0 / f.hidden, f.real) * factor
    special = tf.where(tf.equal(stored, 0), np.inf, np.nan)
    y = tf.where(tf.equal(exponent, 2 * f.bias + 1), tf.cast(special, f.real), y)
    return tf.where(bits < 0, -y, y)


def _unsigned(function: Callable[[Any], Any], dtype: Any) -> Callable[[Any], Any]:
    return lambda x: tf.cast(function(x), dtype)


def _table() -> Mapping[tuple[str, str], Callable[[Any], Any]]:
    found: dict[tuple[str, str], Callable[[Any], Any]] = {}
    for f, unsigned in ((_SINGLE, tf.uint32), (_DOUBLE, tf.uint64)):

        def to_bits(x: Any, f: _Format = f) -> Any:
            return _to_bits(x, f)

        def to_float(x: Any, f: _Format = f) -> Any:
            return _to_float(tf.cast(x, f.whole), f)

        found[f.real.name, f.whole.name] = to_bits
        found[f.real.name, unsigned.name] = _unsigned(to_bits, unsigned)
        found[f.whole.name, f.real.name] = found[unsigned.name, f.real.name] = to_float
    return found


BITS = _table()
