"""Functions of the gamma and Bessel families, and inverses of the error function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
import tensorflow as tf

from converters.tf import ir
from converters.tf.ir import Fn
from converters.tf.ir.ops.functions import apply
from converters.tf.tests.checks import checked

_EXACT: dict[Fn, Callable[..., Any]] = {
    Fn.LGAMMA: scipy.special.gammaln,
    Fn.DIGAMMA: scipy.special.digamma,
    Fn.ERFINV: scipy.special.erfinv,
    Fn.NDTRI: scipy.special.ndtri,
    Fn.BESSEL_I0: scipy.special.i0,
    Fn.BESSEL_I0E: scipy.special.i0e,
    Fn.BESSEL_I1: scipy.special.i1,
    Fn.BESSEL_I1E: scipy.special.i1e,
}


@pytest.mark.parametrize("kind", _EXACT)
def test_the_meaning_of_functions(kind: Fn) -> None:
    random = np.random.default_rng(3)
    bits = random.integers(0, 1 << 32, 4000, dtype=np.uint64).astype(np.uint32)
    parts: list[ir.Array] = [
        random.normal(0, 30, 4000),
        random.uniform(-1, 1, 4000),
        bits.view(np.float32),
    ]
    with np.errstate(all="ignore"):
        x = np.concatenate(parts).astype(np.float32).astype(np.float64)
        found, exact = apply(ir.Function(kind), x), _EXACT[kind](x)
    finite = np.isfinite(exact)
    np.testing.assert_array_equal(found[~finite], exact[~finite])
    # Next to a zero of the function scipy's own error counts.
    np.testing.assert_allclose(found[finite], exact[finite], rtol=1e-10, atol=1e-12)


def test_functions_of_tensorflow() -> None:
    def body(x: Any) -> list[Any]:
        # TensorFlow's own digamma is far off next to its poles.
        inside, above = tf.tanh(x), tf.abs(x) * 9.0 + 0.01
        return [
            tf.math.lgamma(above),
            tf.math.lgamma(-above),
            tf.math.digamma(above),
            tf.math.digamma(-tf.floor(above) - 0.25 - tf.sigmoid(x) / 2.0),
            tf.math.lbeta(above),
            tf.math.erfinv(inside),
            tf.math.erfinv(inside * 1e-4),
            tf.math.ndtri(tf.sigmoid(x * 3.0)),
            tf.math.erfcinv(inside + 1.0),
            tf.math.special.bessel_i0(x * 4.0),
            tf.math.special.bessel_i0e(x * 9.0),
            tf.math.special.bessel_i1(x * 4.0),
            tf.math.special.bessel_i1e(x * 9.0),
        ]

    checked([(40,)], body)


@pytest.mark.parametrize(
    "name",
    ["Lgamma", "Digamma", "Erfinv", "Ndtri", "BesselI0", "BesselI0e", "BesselI1", "BesselI1e"],
)
def test_values_that_are_no_numbers(name: str) -> None:
    odd = [0.0, -0.0, -1.0, 1.0, 2.0, -2.0, -3e9, 3e38, np.inf, -np.inf, np.nan, 1.5, -1.5]

    def body(x: Any) -> Any:
        return getattr(tf.raw_ops, name)(x=x * 0.0 + tf.constant(odd))

    checked([(len(odd),)], body)
