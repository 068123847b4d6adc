"""Functions of one element."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

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
