"""Functions of the gamma and Bessel families, and inverses of the error function, in NumPy.

They are computed in other ways than the kernels do it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from converters.tf.ir.values import Array

erf: Any = np.vectorize(math.erf, otypes=[np.float64])
erfc: Any = np.vectorize(math.erfc, otypes=[np.float64])

# Numerators and denominators of the Bernoulli numbers that the series of `digamma` has.
_BERNOULLI = ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6))
# Terms of the sums of Bessel functions: enough for arguments below 30, and from there on.
_TERMS, _FAR_TERMS = 90, 20


def _log_gamma(x: float) -> float:
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


def _digamma(x: float) -> float:
    if math.isnan(x) or x == math.inf:
        return x
    if x == -math.inf or (x <= 0 and x == math.floor(x)):
        return math.nan
    if x < 0:
        place = x - round(x)
        return _digamma(1 - x) - math.pi / math.tan(math.pi * place)
    steps = 0.0
    while x < 12:
        steps, x = steps + 1 / x, x + 1
    square = 1 / x / x
    rest = sum(a / b / (2 * k) * square**k for k, (a, b) in enumerate(_BERNOULLI, 1))
    return math.log(x) - 0.5 / x - rest - steps


def _above(p: Array) -> Array:
    """Returns which number a normally distributed one exceeds with a probability of 0 to 1 / 2."""
    known = np.where(p > 0, p, 0.5)
    x = np.sqrt(-2 * np.log(known))
    # Newton's method for the logarithm, which is convex, from above.
    for _ in range(12):
        above = erfc(x / math.sqrt(2)) / 2
        density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        x = x + (np.log(above) - np.log(known)) * above / density
    return np.where(p > 0, x, np.where(p == 0, np.inf, np.nan))


def quantile(p: Array) -> Array:
    """Returns what a normally distributed number is below with a probability."""
    inside = (p >= 0) & (p <= 1)
    least = np.where(inside, np.minimum(p, 1 - p), np.nan)
    return np.asarray(np.where(p < 0.5, -1, 1) * _above(least))


def inverse_erf(x: Array) -> Array:
    """Returns the inverse of the error function."""
    small = np.where(np.abs(x) <= 0.5, x, 0)
    near = small * math.sqrt(math.pi) / 2
    for _ in range(6):
        near = near - (erf(near) - small) * math.sqrt(math.pi) / 2 * np.exp(near * near)
    far = np.copysign(quantile((1 + np.abs(x)) / 2) / math.sqrt(2), x)
    return np.where(np.abs(x) <= 0.5, near, far)


def scaled_bessel(order: int, x: Array) -> Array:
    """Returns `bessel` times `exp(-|x|)`."""
    size = np.abs(x)
    near = np.where(size < 30, size, 0)
    term = np.exp(-near) * (near / 2) ** order
    total = term
    for k in range(1, _TERMS):
        term = term * (near / 2) ** 2 / (k * (k + order))
        total = total + term
    far = np.where(size < 30, 30, size)
    term = 1 / np.sqrt(2 * np.pi * far)
    series = term
    for k in range(1, _FAR_TERMS):
        term = -term * (4 * order * order - (2 * k - 1) ** 2) / (8 * k * far)
        series = series + term
    result = np.where(size < 30, total, series)
    result = np.where(np.isnan(x), x, result)
    return np.copysign(result, x) if order else result


def bessel(order: int, x: Array) -> Array:
    """Returns a modified Bessel function of the first kind, of order 0 or 1."""
    return np.exp(np.abs(x)) * scaled_bessel(order, x)


log_gamma: Any = np.vectorize(_log_gamma, otypes=[np.float64])
digamma: Any = np.vectorize(_digamma, otypes=[np.float64])
