"""Rules that recognise functions of one element in the expressions that frameworks spell out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind, CompareKind, Fn, Function
from converters.tf.passes.patterns import (
    Const,
    Found,
    Pattern,
    add,
    find,
    fn,
    mul,
    number,
    sub,
    where,
)
from converters.tf.passes.patterns import Op as P
from converters.tf.passes.rewrite import Match, Rules

_INF = float("inf")
_SQRT_HALF = math.sqrt(0.5)
_CDF_TANH = math.sqrt(2 / math.pi)
_POSITIVE = Function(Fn.CLAMP, (0.0, _INF))
_NEGATIVE = Function(Fn.CLAMP, (-_INF, 0.0))
_SIX = Function(Fn.CLAMP, (0.0, 6.0))
_ONE = Function(Fn.CLAMP, (0.0, 1.0))
_RELU = fn(_POSITIVE, "x")

Params = Callable[[Found], tuple[float, ...] | None]


def _none(_: Found) -> tuple[float, ...]:
    return ()


def _numbers(*names: str) -> Params:
    def read(found: Found) -> tuple[float, ...] | None:
        values = [number(found[n]) for n in names]
        return None if None in values else tuple(v for v in values if v is not None)

    return read


def _mirrored(found: Found) -> tuple[float, ...] | None:
    """Returns `a` of four constants a, a, -a, -a."""
    a, b, c, d = (number(found[n]) for n in ("a", "b", "c", "d"))
    if a is None or b is None or c is None or d is None or not a == b == -c == -d:
        return None
    return (a,)


@dataclass(frozen=True)
class _Known:
    """A function, the way it is spelt, and how its parameters are read."""

    kind: Fn
    pattern: Pattern
    params: Params = _none


def _erfc(x: Pattern) -> tuple[Pattern, ...]:
    return (
        fn(Fn.ERFC, mul(x, -_SQRT_HALF)),
        add(fn(Fn.ERF, mul(x, _SQRT_HALF)), 1.0),
    )


def _halves(x: Pattern, factor: Pattern) -> tuple[Pattern, ...]:
    """Returns the ways to write `0.5 * x * factor`."""
    return (
        mul(mul(x, 0.5), factor),
        mul(mul(x, factor), 0.5),
        mul(x, mul(factor, 0.5)),
    )


_CUBE = (P(BinaryKind.POW, ("x", 3.0)), mul("x", fn(Fn.SQUARE, "x")), mul("x", mul("x", "x")))
_TANH_CDF = tuple(
    add(fn(Fn.TANH, mul(add("x", mul(cube, 0.044715)), _CDF_TANH)), 1.0) for cube in _CUBE
)
_HARD_SIGMOIDS = (
    mul(fn(_SIX, add("x", 3.0)), 1 / 6),
    fn(_ONE, add(mul("x", 1 / 6), 0.5)),
)

_PRODUCTS = (
    *(_Known(Fn.GELU, p) for cdf in _erfc("x") for p in _halves("x", cdf)),
    *(_Known(Fn.GELU_TANH, p) for cdf in _TANH_CDF for p in _halves("x", cdf)),
    _Known(Fn.SILU, mul("x", fn(Fn.SIGMOID, "x"))),
    _Known(Fn.HARD_SIGMOID, _HARD_SIGMOIDS[0]),
    _Known(Fn.HARD_SILU, mul("x", fn(Fn.HARD_SIGMOID, "x"))),
    _Known(Fn.HARD_SILU, mul(mul("x", fn(_SIX, add("x", 3.0))), 1 / 6)),
    _Known(Fn.MISH, mul("x", fn(Fn.TANH, fn(Fn.SOFTPLUS, "x")))),
    _Known(
        Fn.SQUARE_PLUS,
        mul(add("x", fn(Fn.SQRT, add(fn(Fn.SQUARE, "x"), Const("b")))), 0.5),
        _numbers("b"),
    ),
)
_SUMS = (
    _Known(Fn.ELU, add(_RELU, fn(Fn.EXPM1, fn(_NEGATIVE, "x"))), lambda _: (1.0,)),
    _Known(
        Fn.ELU,
        add(_RELU, mul(fn(Fn.EXPM1, fn(_NEGATIVE, "x")), Const("a"))),
        _numbers("a"),
    ),
    _Known(Fn.TANH_SHRINK, sub("x", fn(Fn.TANH, "x"))),
)
_UNARIES = (
    _Known(Fn.HARD_SIGMOID, _HARD_SIGMOIDS[1]),
    _Known(Fn.LOG_SIGMOID, fn(Fn.NEG, fn(Fn.SOFTPLUS, fn(Fn.NEG, "x")))),
)
# A slope for what is negative, times minus one; and as it is.
_SLOPES = (
    (add(_RELU, mul(fn(_POSITIVE, fn(Fn.NEG, "x")), Const("a"))), True),
    (sub(_RELU, mul(fn(_POSITIVE, fn(Fn.NEG, "x")), Const("a"))), False),
)
_GT, _LT, _LE = CompareKind.GT, CompareKind.LT, CompareKind.LE
_SELECTS = (
    _Known(
        Fn.ELU,
        where(P(_GT, ("x", 0.0)), fn(Fn.ELU, "x"), mul(fn(Fn.ELU, "x"), Const("a"))),
        _numbers("a"),
    ),
    _Known(
        Fn.SOFT_SHRINK,
        where(
            P(_GT, ("x", Const("a"))),
            add("x", Const("c")),
            where(P(_LT, ("x", Const("d"))), add("x", Const("b")), 0.0),
        ),
        _mirrored,
    ),
    _Known(
        Fn.HARD_SHRINK,
        where(P(_GT, (fn(Fn.ABS, "x"), Const("a"))), "x", 0.0),
        _numbers("a"),
    ),
    _Known(
        Fn.SPARSE_PLUS,
        where(
            P(_LE, ("x", -1.0)),
            0.0,
            where(P(_LT, ("x", 1.0)), mul(fn(Fn.SQUARE, add("x", 1.0)), 0.25), "x"),
        ),
    ),
    _Known(Fn.THRESHOLD, where(P(_GT, ("x", Const("a"))), "x", Const("b")), _numbers("a", "b")),
)


def _recognised(table: tuple[_Known, ...]) -> Callable[[Match, ir.Node], ir.Value | None]:
    def rule(m: Match, node: ir.Node) -> ir.Value | None:
        if node.output.dtype is not ir.DType.F32:
            return None
        for known in table:
            found = find(m, known.pattern, node)
            if found is None or found["x"].shape != node.output.shape:
                continue
            params = known.params(found)
            if params is not None:
                return m.build.unary(known.kind, found["x"], *params)
        return None

    return rule


def _prelu(m: Match, node: ir.Node) -> ir.Value | None:
    """Makes two ramps, one of them with a slope of its own, one op."""
    if node.output.dtype is not ir.DType.F32:
        return None
    for pattern, negative in _SLOPES:
        found = find(m, pattern, node)
        if found is None or found["x"].shape != node.output.shape:
            continue
        x, slope = found["x"], found["a"]
        if negative:
            slope = m.build.unary(Fn.NEG, slope)
        same = number(slope)
        if same is not None:
            return m.build.unary(Fn.LEAKY_RELU, x, same)
        return m.build.binary(BinaryKind.PRELU, x, slope)
    return None


def _clamp(m: Match, node: ir.Node) -> ir.Value | None:
    """Makes a maximum or minimum with a number a clamp."""
    assert isinstance(node.op, ir.Binary)
    if node.op.kind not in (BinaryKind.MAX, BinaryKind.MIN) or node.op.activation is not None:
        return None
    for x, constant in (node.present, node.present[::-1]):
        bound = number(constant)
        if bound is None or x.is_constant or x.shape != node.output.shape:
            continue
        if x.dtype is not ir.DType.F32 or np.isnan(bound):
            continue
        low, high = (bound, _INF) if node.op.kind is BinaryKind.MAX else (-_INF, bound)
        return m.build.unary(Fn.CLAMP, x, low, high)
    return None


def _clamps(m: Match, node: ir.Node) -> ir.Value | None:
    """Joins two clamps."""
    assert isinstance(node.op, ir.Unary)
    inner = m.made_by(node.input, ir.Unary)
    if node.op.function.kind is not Fn.CLAMP or inner is None or not m.used_once(node.input):
        return None
    assert isinstance(inner.op, ir.Unary)
    if inner.op.function.kind is not Fn.CLAMP:
        return None
    low, high = node.op.function.params
    bounds = [min(max(b, low), high) for b in inner.op.function.params]
    return m.build.unary(Fn.CLAMP, inner.input, *bounds)


RULES: Rules = {
    ir.Binary: [_clamp, _recognised(_PRODUCTS), _recognised(_SUMS), _prelu],
    ir.Unary: [_clamps, _recognised(_UNARIES)],
    ir.Select: [_recognised(_SELECTS)],
}
