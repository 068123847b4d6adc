"""Functions of one or two elements in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from converters.tf.ir import Array, BinaryKind, CompareKind, Fn, Function
from converters.tf.ir.ops.special import SPECIAL

_erf: Any = np.vectorize(math.erf, otypes=[np.float64])
_erfc: Any = np.vectorize(math.erfc, otypes=[np.float64])

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
    Fn.ERF: _erf,
    Fn.ERFC: _erfc,
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
    Fn.GELU: lambda x: 0.5 * x * _erfc(-x / math.sqrt(2)),
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
    **SPECIAL,
}


def apply(function: Function, x: Array) -> Array:
    """Returns the function of every element."""
    return np.asarray(_FUNCTIONS[function.kind](x, *function.params))


def _whole(a: Array) -> bool:
    return bool(np.issubdtype(np.asarray(a).dtype, np.integer))


def _divide(a: Array, b: Array) -> Array:
    if not _whole(a):
        return np.asarray(np.true_divide(a, b))
    return np.asarray((a - np.fmod(a, b)) // b)


def _by_what_is_not_zero(function: Callable[[Array, Array], Any]) -> Callable[..., Any]:
    def divide(a: Array, b: Array) -> Any:
        if _whole(a) and not np.all(b) and np.broadcast(a, b).size:
            raise ZeroDivisionError("integer division by zero")
        return function(a, b)

    return divide


def _power(a: Array, b: Array) -> Any:
    if _whole(a) and np.any(b < 0):
        raise ArithmeticError("integers have no negative integer powers")
    return np.power(a, b)


def _amount(b: Array) -> Any:
    return np.clip(b, 0, 8 * b.dtype.itemsize - 1).astype(b.dtype)


BINARY: dict[BinaryKind, Callable[[Array, Array], Any]] = {
    BinaryKind.ADD: np.add,
    BinaryKind.SUB: np.subtract,
    BinaryKind.MUL: np.multiply,
    BinaryKind.DIV: _by_what_is_not_zero(_divide),
    BinaryKind.DIV_NO_NAN: lambda a, b: np.where(b == 0, 0, np.true_divide(a, b)),
    BinaryKind.MUL_NO_NAN: lambda a, b: np.where(b == 0, 0, np.multiply(a, b)),
    BinaryKind.MAX: np.maximum,
    BinaryKind.MIN: np.minimum,
    BinaryKind.POW: _power,
    BinaryKind.FLOOR_DIV: _by_what_is_not_zero(np.floor_divide),
    BinaryKind.FLOOR_MOD: _by_what_is_not_zero(np.mod),
    BinaryKind.TRUNC_MOD: _by_what_is_not_zero(np.fmod),
    BinaryKind.SQUARED_DIFFERENCE: lambda a, b: np.square(a - b),
    BinaryKind.ATAN2: np.arctan2,
    BinaryKind.PRELU: lambda a, b: np.where(a > 0, a, b * a),
    BinaryKind.LOGICAL_AND: np.logical_and,
    BinaryKind.LOGICAL_OR: np.logical_or,
    BinaryKind.LOGICAL_XOR: np.logical_xor,
    BinaryKind.BIT_AND: np.bitwise_and,
    BinaryKind.BIT_OR: np.bitwise_or,
    BinaryKind.BIT_XOR: np.bitwise_xor,
    BinaryKind.BIT_LEFT: lambda a, b: np.left_shift(a, _amount(b)),
    BinaryKind.BIT_RIGHT: lambda a, b: np.right_shift(a, _amount(b)),
}

COMPARE: dict[CompareKind, Callable[[Array, Array], Any]] = {
    CompareKind.EQ: np.equal,
    CompareKind.NE: np.not_equal,
    CompareKind.LT: np.less,
    CompareKind.LE: np.less_equal,
    CompareKind.GT: np.greater,
    CompareKind.GE: np.greater_equal,
}
