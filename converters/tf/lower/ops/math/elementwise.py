"""Ops that work element by element."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind, CompareKind, Fn
from converters.tf.ir.expressions import OpenSizeError, is_open
from converters.tf.ir.symbolic import (
    Symbol,
    add,
    divide,
    larger,
    map_dims,
    multiply,
    remainder,
    smaller,
    subtract,
)
from converters.tf.lower.graph import Context, Handler, Result, Unsupported
from converters.tf.lower.ops.control import examples
from converters.tf.lower.ops.math import integers
from converters.tf.lower.tensors import Bits, Complex, Rows, Several

_UNARY = {
    "Abs": Fn.ABS,
    "Neg": Fn.NEG,
    "Sign": Fn.SIGN,
    "Floor": Fn.FLOOR,
    "Ceil": Fn.CEIL,
    "Round": Fn.ROUND,
    "Rint": Fn.ROUND,
    "Square": Fn.SQUARE,
    "Sqrt": Fn.SQRT,
    "Rsqrt": Fn.RSQRT,
    "Inv": Fn.RECIPROCAL,
    "Reciprocal": Fn.RECIPROCAL,
    "Exp": Fn.EXP,
    "Expm1": Fn.EXPM1,
    "Log": Fn.LOG,
    "Log1p": Fn.LOG1P,
    "Sin": Fn.SIN,
    "Cos": Fn.COS,
    "Tan": Fn.TAN,
    "Asin": Fn.ASIN,
    "Acos": Fn.ACOS,
    "Atan": Fn.ATAN,
    "Sinh": Fn.SINH,
    "Cosh": Fn.COSH,
    "Tanh": Fn.TANH,
    "Asinh": Fn.ASINH,
    "Acosh": Fn.ACOSH,
    "Atanh": Fn.ATANH,
    "Erf": Fn.ERF,
    "Erfc": Fn.ERFC,
    "Sigmoid": Fn.SIGMOID,
    "LogicalNot": Fn.LOGICAL_NOT,
    "IsNan": Fn.IS_NAN,
    "IsInf": Fn.IS_INF,
    "IsFinite": Fn.IS_FINITE,
    "Softplus": Fn.SOFTPLUS,
    "Softsign": Fn.SOFTSIGN,
    "Selu": Fn.SELU,
    "Lgamma": Fn.LGAMMA,
    "Digamma": Fn.DIGAMMA,
    "Erfinv": Fn.ERFINV,
    "Ndtri": Fn.NDTRI,
    "BesselI0": Fn.BESSEL_I0,
    "BesselI0e": Fn.BESSEL_I0E,
    "BesselI1": Fn.BESSEL_I1,
    "BesselI1e": Fn.BESSEL_I1E,
}
# Functions that leave integers as they are.
_WHOLE = frozenset(("Floor", "Ceil", "Round", "Rint"))

_BINARY = {
    "Add": BinaryKind.ADD,
    "AddV2": BinaryKind.ADD,
    "Sub": BinaryKind.SUB,
    "Mul": BinaryKind.MUL,
    "RealDiv": BinaryKind.DIV,
    "Div": BinaryKind.DIV,
    "TruncateDiv": BinaryKind.DIV,
    "DivNoNan": BinaryKind.DIV_NO_NAN,
    "MulNoNan": BinaryKind.MUL_NO_NAN,
    "Maximum": BinaryKind.MAX,
    "Minimum": BinaryKind.MIN,
    "Pow": BinaryKind.POW,
    "FloorDiv": BinaryKind.FLOOR_DIV,
    "FloorMod": BinaryKind.FLOOR_MOD,
    "Mod": BinaryKind.TRUNC_MOD,
    "TruncateMod": BinaryKind.TRUNC_MOD,
    "SquaredDifference": BinaryKind.SQUARED_DIFFERENCE,
    "Atan2": BinaryKind.ATAN2,
    "LogicalAnd": BinaryKind.LOGICAL_AND,
    "LogicalOr": BinaryKind.LOGICAL_OR,
}

_COMPARE = {
    "Equal": CompareKind.EQ,
    "NotEqual": CompareKind.NE,
    "Less": CompareKind.LT,
    "LessEqual": CompareKind.LE,
    "Greater": CompareKind.GT,
    "GreaterEqual": CompareKind.GE,
}

_DIMS: dict[BinaryKind, Callable[..., ir.Dim]] = {
    BinaryKind.ADD: add,
    BinaryKind.SUB: subtract,
    BinaryKind.MUL: multiply,
    BinaryKind.DIV: divide,
    BinaryKind.FLOOR_DIV: divide,
    BinaryKind.FLOOR_MOD: remainder,
    BinaryKind.MAX: larger,
    BinaryKind.MIN: smaller,
}


def _unary(kind: Fn, *params: float) -> Handler:
    def handler(ctx: Context) -> Result:
        if kind is Fn.NEG and isinstance(ctx.args[0], Symbol):
            return _symbolic(ctx, lambda dim: subtract(0, dim), 1)
        x = ctx.value(0)
        if ctx.node.op in _WHOLE and x.dtype not in (ir.DType.F32, ir.DType.F64):
            return x
        return ctx.build.unary(kind, x, *params)

    return handler


def _binary(kind: BinaryKind) -> Handler:
    def handler(ctx: Context) -> Result:
        if any(map(examples.is_open, ctx.args)):
            return examples.binary(ctx, kind)
        if ctx.symbolic and kind in _DIMS:
            return _symbolic(ctx, _DIMS[kind])
        x, y = ctx.value(0), ctx.value(1)
        found = integers.binary(ctx.build, kind, x, y)
        return ctx.build.binary(kind, x, y) if found is None else found

    return handler


def _symbolic(ctx: Context, function: Callable[..., ir.Dim], operands: int = 2) -> Result:
    dims = map_dims(function, *map(ctx.dims, range(operands)))
    return simplified(Symbol(dims, ctx.attr("T", "int32")))


def simplified(symbol: Symbol) -> Result:
    """Returns a constant if nothing depends on the batch."""
    known = symbol.known()
    return symbol if known is None else ir.constant(known)


def _compare(kind: CompareKind) -> Handler:
    def handler(ctx: Context) -> Result:
        if ctx.symbolic:
            return _compare_dims(ctx, kind)
        if any(map(examples.is_open, ctx.args)):
            return examples.compare(ctx, kind)
        bits = ctx.args[0]
        if isinstance(bits, Bits) and kind is CompareKind.LT and not ctx.array(1).any():
            return _sign_bit(ctx, bits.source)
        x, y = ctx.value(0), ctx.value(1)
        found = integers.compare(ctx.build, kind, x, y)
        return ctx.build.compare(kind, x, y) if found is None else found

    return handler


def _bitcast(ctx: Context) -> Result:
    x, dtype = ctx.value(0), ctx.dtype("type")
    if x.dtype is dtype:
        return x
    if "f" not in (x.dtype.numpy.kind, dtype.numpy.kind) and x.dtype.bytes == dtype.bytes:
        return ctx.build.cast(x, dtype)
    if x.dtype is not ir.DType.F32 or dtype is not ir.DType.I32:
        raise Unsupported(f"the bits of {x.dtype} as {dtype}")
    return Bits(x)


def _bitwise_and(ctx: Context) -> Result:
    bits = ctx.args[0]
    if isinstance(bits, Bits) and (ctx.array(1) == np.iinfo(np.int32).min).all():
        return bits
    return _binary(BinaryKind.BIT_AND)(ctx)


def _sign_bit(ctx: Context, x: ir.Value) -> ir.Value:
    """Returns where a float is negative, -0 included."""
    b, zero = ctx.build, ctx.build.scalar(0, x.dtype)
    below = b.compare(CompareKind.LT, x, zero)
    inverse = b.compare(CompareKind.LT, b.unary(Fn.RECIPROCAL, x), zero)
    minus_zero = b.binary(BinaryKind.LOGICAL_AND, b.compare(CompareKind.EQ, x, zero), inverse)
    return b.binary(BinaryKind.LOGICAL_OR, below, minus_zero)


def _compare_dims(ctx: Context, kind: CompareKind) -> Result:
    """Compares dimensions where the answer is the same for every batch size from 1 on.

    One that depends on an open dimension is computed at the call.
    """
    left, right = np.broadcast_arrays(ctx.dims(0), ctx.dims(1))
    single = kind is CompareKind.GT and left.ndim == 0
    if single and left.item() == ir.Batch() and right.item() == 1:
        return Several()
    answers = np.empty(left.shape, bool)
    try:
        for index in np.ndindex(left.shape):
            answers[index] = _compared(kind, left[index], right[index])
    except OpenSizeError:
        sides = [dim.item() for dim in (left, right)] if not left.ndim else []
        if not sides or any(isinstance(dim, ir.Batch) for dim in sides):
            raise
        return ctx.build.compare(kind, *(ctx.build.length(dim, ir.DType.I32) for dim in sides))
    return ir.constant(answers)


def _compared(kind: CompareKind, a: Any, b: Any) -> bool:
    known = {
        CompareKind.EQ: a == b,
        CompareKind.NE: a != b,
        CompareKind.LE: a == b,
        CompareKind.GE: a == b,
        CompareKind.LT: False,
        CompareKind.GT: False,
    }
    if not isinstance(a, ir.Batch) and not isinstance(b, ir.Batch) and (is_open(a) or is_open(b)):
        return _compared_open(kind, a, b)
    both = isinstance(a, ir.Batch) == isinstance(b, ir.Batch)
    if a == b or (both and kind in (CompareKind.EQ, CompareKind.NE)):
        return bool(known[kind])
    x, y = (d.scale if isinstance(d, ir.Batch) else int(d) for d in (a, b))
    if both or (isinstance(a, ir.Batch) and x > y) or (isinstance(b, ir.Batch) and x < y):
        return kind is CompareKind.NE or (
            kind in (CompareKind.LT, CompareKind.LE) if x < y else kind in _GREATER
        )
    raise Unsupported(f"it depends on the batch size whether {a} {kind} {b}")


def _compared_open(kind: CompareKind, a: int, b: int) -> bool:
    """Compares sizes of which one is open, where the answer is the same for every call."""
    if kind in (CompareKind.EQ, CompareKind.NE):
        return (a == b or not (a > b or a < b)) is (kind is CompareKind.EQ)
    answer: bool = _ORDERS[kind](a, b)
    return answer


_ORDERS = {
    CompareKind.LT: operator.lt,
    CompareKind.LE: operator.le,
    CompareKind.GT: operator.gt,
    CompareKind.GE: operator.ge,
}
_GREATER = (CompareKind.GT, CompareKind.GE)


def _identity(ctx: Context) -> Result:
    return ctx.args[0]


def _read(ctx: Context) -> Result:
    return ctx.value(0)


def _assign(ctx: Context) -> Result:
    """Returns what the variable holds afterwards, as `lower.assigned` wants it."""
    return ctx.value(1)


def _assign_sum(kind: BinaryKind) -> Handler:
    def handler(ctx: Context) -> Result:
        return ctx.build.binary(kind, ctx.value(0), ctx.value(1))

    return handler


def _identities(ctx: Context) -> Result:
    return ctx.args


def _const(ctx: Context) -> Result:
    data, stated = ctx.attr("value"), ctx.attr("dtype")
    if data is None:
        raise Unsupported(f"a constant of type {stated}")
    is_text = data.dtype.kind in "SOU"
    found = "string" if is_text else data.dtype.name
    # Half precision is read as float32, and types without one of NumPy as records.
    widened = found == "float32" and stated in ("half", "float16", "bfloat16")
    if found != stated and stated is not None and not widened and data.dtype.kind != "V":
        raise Unsupported(f"a constant of type {stated} whose value is of type {found}")
    if data.dtype.kind == "c":
        return Complex(ir.constant(np.real(data)), ir.constant(np.imag(data)))
    if is_text:
        return ir.constant(data.astype(object))
    return ctx.low.literal(ctx.node, data)


def _cast(ctx: Context) -> Result:
    arg = ctx.args[0]
    if isinstance(arg, Symbol) and ctx.attr("DstT") in ("int32", "int64"):
        return Symbol(arg.dims, ctx.attr("DstT"))
    if isinstance(arg, Rows) and ctx.dtype("DstT") in (ir.DType.I32, ir.DType.I64):
        return replace(arg, offset=ctx.build.cast(arg.offset, ctx.dtype("DstT")))
    return integers.cast(ctx.build, ctx.value(0), ctx.dtype("DstT"))


def _bias_add(ctx: Context) -> Result:
    x, bias = ctx.value(0), ctx.value(1)
    if ctx.attr("data_format", "NHWC") == "NCHW" and x.rank > 2:
        bias = ctx.build.reshape(bias, (*bias.shape, *(1,) * (x.rank - 2)))
    return ctx.build.binary(BinaryKind.ADD, x, bias)


def _add_n(ctx: Context) -> Result:
    total, *rest = ctx.values
    for term in rest:
        total = ctx.build.binary(BinaryKind.ADD, total, term)
    return total


def _select(ctx: Context) -> Result:
    if isinstance(ctx.args[0], Several):
        return examples.of_several(ctx)
    condition = ctx.value(0)
    if condition.data is not None and condition.rank == 0:
        return ctx.args[1] if bool(condition.data) else ctx.args[2]
    if ctx.symbolic and condition.data is not None and ctx.node.op != "Select":
        dims = map_dims(lambda c, x, y: x if c else y, condition.data, ctx.dims(1), ctx.dims(2))
        return simplified(Symbol(dims, ctx.attr("T", "int32")))
    then, other = ctx.value(1), ctx.value(2)
    if ctx.node.op == "Select" and condition.rank == 1 and then.rank > 1:
        condition = ctx.build.reshape(condition, (*condition.shape, *(1,) * (then.rank - 1)))
    return ctx.build.select(condition, then, other)


def _clip(ctx: Context) -> Result:
    x, low, high = ctx.values
    bounds = (low.data, high.data)
    if x.dtype is ir.DType.F32 and low.rank == high.rank == 0 and None not in bounds:
        return ctx.build.unary(Fn.CLAMP, x, *(float(b) for b in bounds if b is not None))
    return ctx.build.binary(BinaryKind.MIN, ctx.build.binary(BinaryKind.MAX, x, low), high)


def _leaky_relu(ctx: Context) -> Result:
    return ctx.build.unary(Fn.LEAKY_RELU, ctx.value(0), ctx.attr("alpha", 0.2))


def _relu(ctx: Context) -> Result:
    x = ctx.value(0)
    if x.dtype is not ir.DType.F32:
        return ctx.build.binary(BinaryKind.MAX, x, ctx.build.scalar(0, x.dtype))
    return ctx.build.unary(Fn.CLAMP, x, 0.0, float("inf"))


def _x_log_y(ctx: Context) -> Result:
    b = ctx.build
    x, y = ctx.values
    zero = b.scalar(0, x.dtype)
    logarithm = b.unary(Fn.LOG1P if ctx.node.op == "Xlog1py" else Fn.LOG, y)
    product = b.binary(BinaryKind.MUL, x, logarithm)
    return b.select(b.compare(CompareKind.EQ, x, zero), zero, product)


def _bucketize(ctx: Context) -> Result:
    """Counts the boundaries that an element reaches; NaN reaches all."""
    b, x = ctx.build, ctx.value(0)
    boundaries = np.asarray(ctx.attr("boundaries"), x.dtype.numpy)
    wide = b.reshape(x, (*x.shape, 1))
    below = b.compare(CompareKind.LT, wide, ir.constant(boundaries))
    reached = b.unary(Fn.LOGICAL_NOT, below)
    return b.reduce(ir.ReduceKind.SUM, b.cast(reached, ir.DType.I32), [x.rank])


def _nothing(ctx: Context) -> Result:
    return ()


OPS: dict[str, Handler] = {
    **{op: _unary(kind) for op, kind in _UNARY.items()},
    **{op: _binary(kind) for op, kind in _BINARY.items()},
    **{op: _compare(kind) for op, kind in _COMPARE.items()},
    "Relu": _relu,
    "Relu6": _unary(Fn.CLAMP, 0.0, 6.0),
    "Elu": _unary(Fn.ELU, 1.0),
    "LeakyRelu": _leaky_relu,
    "Xlogy": _x_log_y,
    "Xlog1py": _x_log_y,
    "Const": _const,
    "Identity": _identity,
    "StopGradient": _identity,
    "PreventGradient": _identity,
    "Snapshot": _identity,
    "CheckNumerics": _identity,
    "EnsureShape": _identity,
    "PlaceholderWithDefault": _identity,
    "ReadVariableOp": _read,
    "AssignVariableOp": _assign,
    "AssignAddVariableOp": _assign_sum(BinaryKind.ADD),
    "AssignSubVariableOp": _assign_sum(BinaryKind.SUB),
    "IdentityN": _identities,
    "NoOp": _nothing,
    "Bitcast": _bitcast,
    "BitwiseAnd": _bitwise_and,
    "BitwiseOr": _binary(BinaryKind.BIT_OR),
    "BitwiseXor": _binary(BinaryKind.BIT_XOR),
    "Bucketize": _bucketize,
    "Cast": _cast,
    "BiasAdd": _bias_add,
    "AddN": _add_n,
    "Select": _select,
    "SelectV2": _select,
    "ClipByValue": _clip,
}
