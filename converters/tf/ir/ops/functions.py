"""Functions of one element: their names, their meaning in NumPy, and their element types."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from converters.tf.ir.ops import special
from converters.tf.ir.types import (
    BOOLS,
    FLOATS,
    NUMBERS,
    SINGLE,
    SINGLE_AND_INTEGERS,
)
from converters.tf.ir.values import Array, DType

__all__ = ["RELU", "RELU6", "Fn", "Function"]


class Fn(StrEnum):
    """Functions of one element. `a` and `b` are the parameters in `Function.params`."""

    ABS = "abs"
    NEG = "neg"
    SIGN = "sign"
    FLOOR = "floor"
    CEIL = "ceil"
    ROUND = "round"  # half to even
    SQUARE = "square"
    SQRT = "sqrt"
    RSQRT = "rsqrt"
    RECIPROCAL = "reciprocal"
    EXP = "exp"
    EXPM1 = "expm1"
    LOG = "log"
    LOG1P = "log1p"
    SIN = "sin"
    COS = "cos"
    TAN = "tan"
    ASIN = "asin"
    ACOS = "acos"
    ATAN = "atan"
    SINH = "sinh"
    COSH = "cosh"
    TANH = "tanh"
    ASINH = "asinh"
    ACOSH = "acosh"
    ATANH = "atanh"
    ERF = "erf"
    ERFC = "erfc"
    SIGMOID = "sigmoid"
    LOGICAL_NOT = "logical_not"
    IS_NAN = "is_nan"  # -> bool
    IS_INF = "is_inf"  # -> bool
    IS_FINITE = "is_finite"  # -> bool
    CLAMP = "clamp"  # min(max(x, a), b); NaN stays; relu is (0, inf), relu6 is (0, 6)
    LEAKY_RELU = "leaky_relu"  # x if x > 0 else a * x
    ELU = "elu"  # x if x > 0 else a * (exp(x) - 1)
    CELU = "celu"  # x if x > 0 else a * (exp(x / a) - 1)
    SELU = "selu"
    GELU = "gelu"  # exact, by erf
    GELU_TANH = "gelu_tanh"
    SILU = "silu"
    MISH = "mish"
    SOFTPLUS = "softplus"
    SOFTSIGN = "softsign"
    LOG_SIGMOID = "log_sigmoid"
    HARD_SIGMOID = "hard_sigmoid"  # clamp(x / 6 + 1 / 2, 0, 1)
    HARD_SILU = "hard_silu"  # x * hard_sigmoid(x)
    HARD_SHRINK = "hard_shrink"  # x if |x| > a else 0
    SOFT_SHRINK = "soft_shrink"
    TANH_SHRINK = "tanh_shrink"
    SQUARE_PLUS = "square_plus"  # (x + sqrt(x^2 + a)) / 2
    SPARSE_PLUS = "sparse_plus"
    THRESHOLD = "threshold"  # x if x > a else b
    LGAMMA = "lgamma"  # of the magnitude
    DIGAMMA = "digamma"
    ERFINV = "erfinv"
    NDTRI = "ndtri"  # the quantile of the normal distribution
    BESSEL_I0 = "bessel_i0"
    BESSEL_I0E = "bessel_i0e"  # times exp(-|x|)
    BESSEL_I1 = "bessel_i1"
    BESSEL_I1E = "bessel_i1e"


@dataclass(frozen=True)
class Function:
    """A function of one element with its parameters (`a`, `b`)."""

    kind: Fn
    params: tuple[float, ...] = ()


RELU = Function(Fn.CLAMP, (0.0, float("inf")))
RELU6 = Function(Fn.CLAMP, (0.0, 6.0))

_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_ALPHA = 1.6732632423543772848170429916717


def sigmoid(x: Array) -> Array:
    """Returns `1 / (1 + exp(-x))` without overflow."""
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1 / (1 + small), small / (1 + small)))


def _softplus(x: Array) -> Array:
    return np.asarray(np.logaddexp(0, x))


def _hard_sigmoid(x: Array) -> Array:
    return np.asarray(np.clip(x / 6 + 0.5, 0, 1))


def _soft_shrink(x: Array, a: float) -> Array:
    return np.asarray(np.where(x > a, x - a, np.where(x < -a, x + a, 0)))


def _square_plus(x: Array, a: float) -> Array:
    square = np.float32(x * x)  # which overflows where the kernel's does
    return np.asarray((x + np.sqrt(square + a)) / 2)


def _sparse_plus(x: Array) -> Array:
    return np.asarray(np.where(x <= -1, 0, np.where(x < 1, 0.25 * (x + 1) ** 2, x)))


def _gelu_tanh(x: Array) -> Array:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return np.asarray(0.5 * x * (1 + np.tanh(inner)))


_FUNCTIONS: dict[Fn, Callable[..., Any]] = {
    Fn.ABS: np.abs,
    Fn.NEG: np.negative,
    Fn.SIGN: np.sign,
    Fn.FLOOR: np.floor,
    Fn.CEIL: np.ceil,
    Fn.ROUND: np.rint,
    Fn.SQUARE: np.square,
    Fn.SQRT: np.sqrt,
    Fn.RSQRT: lambda x: 1 / np.sqrt(x),
    Fn.RECIPROCAL: lambda x: 1 / x,
    Fn.EXP: np.exp,
    Fn.EXPM1: np.expm1,
    Fn.LOG: np.log,
    Fn.LOG1P: np.log1p,
    Fn.SIN: np.sin,
    Fn.COS: np.cos,
    Fn.TAN: np.tan,
    Fn.ASIN: np.arcsin,
    Fn.ACOS: np.arccos,
    Fn.ATAN: np.arctan,
    Fn.SINH: np.sinh,
    Fn.COSH: np.cosh,
    Fn.TANH: np.tanh,
    Fn.ASINH: np.arcsinh,
    Fn.ACOSH: np.arccosh,
    Fn.ATANH: np.arctanh,
    Fn.ERF: special.erf,
    Fn.ERFC: special.erfc,
    Fn.SIGMOID: sigmoid,
    Fn.LOGICAL_NOT: np.logical_not,
    Fn.IS_NAN: np.isnan,
    Fn.IS_INF: np.isinf,
    Fn.IS_FINITE: np.isfinite,
    Fn.CLAMP: lambda x, a, b: np.minimum(np.maximum(x, a), b),
    Fn.LEAKY_RELU: lambda x, a: np.where(x > 0, x, a * x),
    Fn.ELU: lambda x, a: np.where(x > 0, x, a * np.expm1(x)),
    Fn.CELU: lambda x, a: np.where(x > 0, x, a * np.expm1(x / a)),
    Fn.SELU: lambda x: _SELU_SCALE * np.where(x > 0, x, _SELU_ALPHA * np.expm1(x)),
    Fn.GELU: lambda x: 0.5 * x * special.erfc(-x / math.sqrt(2)),
    Fn.GELU_TANH: _gelu_tanh,
    Fn.SILU: lambda x: x * sigmoid(x),
    Fn.MISH: lambda x: x * np.tanh(_softplus(x)),
    Fn.SOFTPLUS: _softplus,
    Fn.SOFTSIGN: lambda x: x / (1 + np.abs(x)),
    Fn.LOG_SIGMOID: lambda x: -_softplus(-x),
    Fn.HARD_SIGMOID: _hard_sigmoid,
    Fn.HARD_SILU: lambda x: x * _hard_sigmoid(x),
    Fn.HARD_SHRINK: lambda x, a: np.where(np.abs(x) > a, x, 0),
    Fn.SOFT_SHRINK: _soft_shrink,
    Fn.TANH_SHRINK: lambda x: x - np.tanh(x),
    Fn.SQUARE_PLUS: _square_plus,
    Fn.SPARSE_PLUS: _sparse_plus,
    Fn.THRESHOLD: lambda x, a, b: np.where(x > a, x, b),
    Fn.LGAMMA: special.log_gamma,
    Fn.DIGAMMA: special.digamma,
    Fn.ERFINV: special.inverse_erf,
    Fn.NDTRI: special.quantile,
    Fn.BESSEL_I0: lambda x: special.bessel(0, x),
    Fn.BESSEL_I0E: lambda x: special.scaled_bessel(0, x),
    Fn.BESSEL_I1: lambda x: special.bessel(1, x),
    Fn.BESSEL_I1E: lambda x: special.scaled_bessel(1, x),
}


def apply(function: Function, x: Array) -> Array:
    """Returns the function of every element."""
    return np.asarray(_FUNCTIONS[function.kind](x, *function.params))


def finish(result: Array, terms: Sequence[Array | None], activation: Function | None) -> Array:
    """Returns a sum with the terms that are there, and its activation."""
    for term in terms:
        if term is not None:
            result = result + term
    return result if activation is None else apply(activation, result)


def affine(result: Array, scale: Array | None, shift: Array | None) -> Array:
    """Returns `result * scale + shift`, of what is there."""
    result = result if scale is None else result * scale
    return result if shift is None else result + shift


# Of a function that has float32 alone, there is no row.
_TYPES: Mapping[Fn, frozenset[DType]] = {
    Fn.ABS: NUMBERS,
    Fn.NEG: NUMBERS,
    Fn.SIGN: SINGLE_AND_INTEGERS,
    Fn.ROUND: SINGLE | {DType.I64},
    Fn.SQUARE: NUMBERS,
    Fn.SQRT: FLOATS,
    Fn.RECIPROCAL: FLOATS,
    Fn.LOGICAL_NOT: BOOLS,
    Fn.IS_NAN: FLOATS,
    Fn.IS_INF: FLOATS,
    Fn.IS_FINITE: FLOATS,
}


def types_of(function: Function) -> frozenset[DType]:
    """Returns the element types for which the runtime has a function."""
    if function == RELU:
        return NUMBERS
    return _TYPES.get(function.kind, SINGLE)
