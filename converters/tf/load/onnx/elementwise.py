"""Operators that work element by element; they leave their operands in the order they have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.load.nodes import op as _op
from converters.tf.load.onnx.agreed import confirmed, is_given
from converters.tf.load.onnx.context import Context, Handler, Result
from converters.tf.load.onnx.file import dtype_of
from converters.tf.load.onnx.float_bits import BITS as _BITS
from converters.tf.load.onnx.narrow import is_narrow, narrowed
from converters.tf.load.onnx.values import Known
from converters.tf.load.saved_model.replay import Refused

Function = Callable[..., Any]


def unary(function: Function) -> Handler:
    """Returns the handler of a function of one tensor."""
    return lambda ctx: ctx.elementwise(function, 0)


def _nary(function: Function) -> Handler:
    """Returns the handler of a function of two tensors that takes any number of them."""

    def handler(ctx: Context) -> Result:
        result = ctx.value(0)
        for index in range(1, len(ctx.args)):
            result = ctx.combined(function, [result, ctx.value(index)])
        return result

    return handler


def _binary(function: Function) -> Handler:
    def handler(ctx: Context) -> Result:
        if ctx.attr("broadcast"):
            raise Refused("broadcast=1 of operators before version 7")
        return ctx.elementwise(function, 0, 1)

    return handler


def _bit_shift(ctx: Context) -> Result:
    """An amount beyond the bits of the type shifts all of them out; TensorFlow's takes the last."""
    left = ctx.text("direction", "", ["LEFT", "RIGHT"]) == "LEFT"
    amount = ctx.value(1)
    shift = tf.bitwise.left_shift if left else tf.bitwise.right_shift

    def shifted(x: Any, by: Any) -> Any:
        found = shift(x, by)
        bits = 8 * x.dtype.size
        if isinstance(amount, Known) and np.all((amount.data >= 0) & (amount.data < bits)):
            return found
        zero = tf.zeros([], x.dtype)
        out = zero if left or x.dtype.is_unsigned else shift(x, tf.constant(bits - 1, x.dtype))
        there = by < tf.constant(bits, by.dtype)
        there = there if by.dtype.is_unsigned else tf.logical_and(there, by >= 0)
        return tf.where(there, found, out)

    return ctx.elementwise(shifted, 0, 1)


_REAL_DIV = _op("RealDiv")


def _divide(a: Any, b: Any) -> Any:
    """Divides; by a root as TensorFlow's norms do, which the passes recognise."""
    if a.dtype.is_integer:
        return tf.truncatediv(a, b)
    if not tf.executing_eagerly() and b.op.type == "Sqrt":
        return a * tf.math.rsqrt(b.op.inputs[0])
    return _REAL_DIV(a, b)


def _mod(ctx: Context) -> Result:
    return ctx.elementwise(tf.truncatemod if ctx.attr("fmod", 0) else tf.math.floormod, 0, 1)


# Powers of integers are multiplied by it before their fractions are cut off: rounding must not make
# 124 of the cube of 5.
_ABOVE = 1 + 2.0**-21


def _pow(a: Any, b: Any) -> Any:
    return tf.pow(a, b if b.dtype == a.dtype else tf.cast(b, a.dtype))


def _real_pow(a: Any, b: Any) -> Any:
    """Returns a power; of integers to the power of floats, the fraction is cut off."""
    if not (a.dtype.is_integer and b.dtype.is_floating):
        return _pow(a, b)
    return tf.cast(tf.pow(tf.cast(a, b.dtype), b) * tf.cast(_ABOVE, b.dtype), a.dtype)


def _power(ctx: Context) -> Result:
    exponent = ctx.value(1)
    whole = isinstance(exponent, Known) and bool(np.all(exponent.data == np.trunc(exponent.data)))
    if isinstance(exponent, Known) and exponent.data.size == 1 and exponent.rank <= ctx.rank(0):
        power = float(exponent.data.ravel()[0])
        if power == 2.0:
            return ctx.elementwise(tf.square, 0)
        if power == 0.5:
            return ctx.elementwise(lambda x: tf.sqrt(x) if x.dtype.is_floating else _root(x), 0)
    return ctx.elementwise(_pow if whole else _real_pow, 0, 1)


def _root(x: Any) -> Any:
    return _real_pow(x, tf.constant(0.5, tf.float32))


def _mean(ctx: Context) -> Result:
    total = _nary(_op("AddV2"))(ctx)
    return ctx.combined(lambda x: x / len(ctx.args), [total])


def _clip(ctx: Context) -> Result:
    if ctx.node.version < 11:
        low, high = ctx.attr("min"), ctx.attr("max")
        bounds = [None if v is None else np.float32(v) for v in (low, high)]
    else:
        bounds = [ctx.form(i) if ctx.has(i) else None for i in (1, 2)]
        known = [ctx.array(i).ravel()[0] if ctx.has(i) and _is_known(ctx, i) else None
                 for i in (1, 2)]  # fmt: skip
        bounds = [k if k is not None else b for k, b in zip(known, bounds, strict=True)]
    lowest, highest = bounds

    def clip(x: Any) -> Any:
        if lowest is not None and highest is None and _number(lowest) == 0:
            return tf.nn.relu(x)
        if _number(lowest) == 0 and _number(highest) == 6 and x.dtype.is_floating:
            return tf.nn.relu6(x)
        if lowest is not None:
            x = tf.maximum(x, tf.cast(lowest, x.dtype))
        return x if highest is None else tf.minimum(x, tf.cast(highest, x.dtype))

    return ctx.elementwise(clip, 0)


def _is_known(ctx: Context, index: int) -> bool:
    value = ctx.value(index)
    return isinstance(value, Known) and value.data.size == 1


def _number(bound: Any) -> float | None:
    return float(bound) if isinstance(bound, np.generic) else None


def _leaky_relu(ctx: Context) -> Result:
    return ctx.elementwise(lambda x: tf.nn.leaky_relu(x, ctx.attr("alpha", 0.01)), 0)


def _prelu(ctx: Context) -> Result:
    x, slope = ctx.value(0), ctx.value(1)
    if isinstance(slope, Known) and slope.data.size == 1:
        alpha = float(slope.data.ravel()[0])
        return ctx.elementwise(lambda v: tf.nn.leaky_relu(v, alpha), 0)
    return ctx.combined(lambda v, a: tf.nn.relu(v) - a * tf.nn.relu(-v), [x, slope])


def _elu(ctx: Context) -> Result:
    alpha = float(ctx.attr("alpha", 1.0))
    if alpha == 1.0:
        return ctx.elementwise(tf.nn.elu, 0)
    return ctx.elementwise(lambda x: tf.where(x > 0, x, alpha * tf.math.expm1(x)), 0)


def _selu(ctx: Context) -> Result:
    alpha = float(ctx.attr("alpha", 1.6732632423543772))
    gamma = float(ctx.attr("gamma", 1.0507009873554805))
    if abs(alpha - 1.6732632) < 1e-6 and abs(gamma - 1.0507010) < 1e-6:
        return ctx.elementwise(tf.nn.selu, 0)
    return ctx.elementwise(lambda x: gamma * tf.where(x > 0, x, alpha * tf.math.expm1(x)), 0)


def _celu(ctx: Context) -> Result:
    alpha = float(ctx.attr("alpha", 1.0))
    if alpha == 1.0:
        return ctx.elementwise(tf.nn.elu, 0)
    return ctx.elementwise(lambda x: tf.where(x > 0, x, alpha * tf.math.expm1(x / alpha)), 0)


def _gelu(ctx: Context) -> Result:
    kind = ctx.text("approximate", "none", ["none", "tanh"])
    return ctx.elementwise(lambda x: tf.nn.gelu(x, approximate=kind == "tanh"), 0)


def _hard_sigmoid(ctx: Context) -> Result:
    alpha, beta = float(ctx.attr("alpha", 0.2)), float(ctx.attr("beta", 0.5))
    return ctx.elementwise(lambda x: tf.clip_by_value(x * alpha + beta, 0.0, 1.0), 0)


def _hard_swish(x: Any) -> Any:
    return x * (tf.nn.relu6(x + 3.0) * (1.0 / 6.0))


def _mish(x: Any) -> Any:
    return x * tf.tanh(tf.nn.softplus(x))


def _swish(ctx: Context) -> Result:
    alpha = float(ctx.attr("alpha", 1.0))
    if alpha == 1.0:
        return ctx.elementwise(tf.nn.silu, 0)
    return ctx.elementwise(lambda x: x * tf.sigmoid(alpha * x), 0)


def _thresholded_relu(ctx: Context) -> Result:
    alpha = float(ctx.attr("alpha", 1.0))
    return ctx.elementwise(lambda x: tf.where(x > alpha, x, tf.zeros_like(x)), 0)


def _shrink(ctx: Context) -> Result:
    bias, bound = float(ctx.attr("bias", 0.0)), float(ctx.attr("lambd", 0.5))

    def shrink(x: Any) -> Any:
        high = tf.where(x > bound, x - bias, tf.zeros_like(x))
        return tf.where(x < -bound, x + bias, high)

    return ctx.elementwise(shrink, 0)


def _where(ctx: Context) -> Result:
    return ctx.elementwise(tf.where, 0, 1, 2)


def _cast(ctx: Context) -> Result:
    return _cast_to(ctx, int(ctx.attr("to")))


def _cast_like(ctx: Context) -> Result:
    number = ctx.node.kinds[1] if len(ctx.node.kinds) > 1 else 0
    if number:
        return _cast_to(ctx, number)
    dtype = ctx.value(1).dtype
    return ctx.elementwise(lambda x: tf.cast(x, dtype), 0)


def _cast_to(ctx: Context, number: int) -> Result:
    """Returns numbers in the element type of a number of ONNX's."""
    if is_narrow(number):
        saturate = bool(ctx.attr("saturate", 1))
        mode = ctx.text("round_mode", "up", ["up", "down", "nearest"])
        return ctx.elementwise(lambda x: narrowed(x, number, saturate, mode), 0)
    dtype = dtype_of(number)
    if dtype.startswith(("string", "complex")):
        raise Refused(f"a cast to {dtype}")
    return ctx.elementwise(lambda x: x if x.dtype.name == dtype else tf.cast(x, dtype), 0)


def _bit_cast(ctx: Context) -> Result:
    """Reads bits as another type of as many."""
    dtype = dtype_of(int(ctx.attr("to")))
    source = ctx.value(0).dtype
    if (source, dtype) in _BITS:
        return ctx.elementwise(_BITS[source, dtype], 0)
    if "f" in (np.dtype(source).kind, np.dtype(dtype).kind) and source != dtype:
        raise Refused(f"the bits of {source} as {dtype}")
    return ctx.elementwise(lambda x: x if x.dtype.name == dtype else tf.cast(x, dtype), 0)


def _is_inf(ctx: Context) -> Result:
    positive, negative = ctx.attr("detect_positive", 1), ctx.attr("detect_negative", 1)
    if positive and negative:
        return ctx.elementwise(tf.math.is_inf, 0)

    def one_side(x: Any) -> Any:
        side = x > 0 if positive else x < 0
        return tf.logical_and(tf.math.is_inf(x), side)

    return ctx.elementwise(one_side, 0)


def _same(ctx: Context) -> Result:
    return ctx.value(0)


def _dropout(ctx: Context) -> Result:
    """Nothing is dropped outside of training, or at a ratio of 0; a call that would drop fails."""
    known = [ctx.has(i) and _is_known(ctx, i) for i in range(3)]
    idle = (known[1] and not ctx.array(1).any()) or (known[2] and not ctx.array(2).any())
    masked = len(ctx.node.outputs) > 1 and bool(ctx.node.outputs[1])
    mask = [ctx.elementwise(lambda x: tf.ones_like(x, tf.bool), 0)] if masked else []
    if idle or not ctx.has(2):
        return [ctx.value(0), *mask]
    keeps = []
    if is_given(ctx, 1):
        keeps.append(tf.equal(tf.reshape(ctx.form(1), []), 0))
    if is_given(ctx, 2):
        keeps.append(tf.logical_not(tf.reshape(ctx.form(2), [])))
    if not keeps:
        raise Refused("dropout in training mode, which draws random numbers")
    return [confirmed(ctx, ctx.value(0), tf.reduce_any(tf.stack(keeps))), *mask]


def _softmax(function: Function) -> Handler:
    """Before version 13, all axes from the one that is named make one."""

    def handler(ctx: Context) -> Result:
        shape = ctx.shape(0)
        old = ctx.node.version < 13
        axis = ctx.axis(len(shape), "axis", 1 if old else -1)
        if old and any(d != 1 for d in shape[axis + 1 :]):
            flat = (*shape[:axis], -1)
            tensor = function(ctx.reshape(0, flat).form(), -1)
            inner = Context(ctx.session, ctx.node, (ctx.result(tensor),))
            return inner.reshape(0, shape)
        order = ctx.order(0)
        return ctx.result(function(ctx.form(0, order), order.index(axis)), order)

    return handler


def _hardmax(ctx: Context) -> Result:
    rank = ctx.rank(0)
    axis = ctx.axis(rank, "axis", 1 if ctx.node.version < 13 else -1)
    if ctx.node.version < 13 and axis != rank - 1:
        raise Refused("a hardmax over several axes")
    x = ctx.form(0)
    depth = x.shape[axis]
    return ctx.result(tf.one_hot(tf.argmax(x, axis), depth, axis=axis, dtype=x.dtype))


OPS: Mapping[str, Handler] = {
    **{
        op: unary(function)
        for op, function in {
            "Abs": _op("Abs"),
            "Acos": tf.acos,
            "Acosh": tf.acosh,
            "Asin": tf.asin,
            "Asinh": tf.asinh,
            "Atan": tf.atan,
            "Atanh": tf.atanh,
            "BitwiseNot": tf.bitwise.invert,
            "Ceil": _op("Ceil"),
            "Cos": _op("Cos"),
            "Cosh": tf.cosh,
            "Erf": _op("Erf"),
            "Exp": _op("Exp"),
            "Floor": _op("Floor"),
            "HardSwish": _hard_swish,
            "IsNaN": tf.math.is_nan,
            "Log": _op("Log"),
            "Mish": _mish,
            "Neg": _op("Neg"),
            "Not": _op("LogicalNot"),
            "Reciprocal": _op("Reciprocal"),
            "Relu": _op("Relu"),
            "Round": tf.round,
            "Sigmoid": _op("Sigmoid"),
            "Sign": _op("Sign"),
            "Sin": _op("Sin"),
            "Sinh": tf.sinh,
            "Softplus": _op("Softplus"),
            "Softsign": tf.nn.softsign,
            "Sqrt": _op("Sqrt"),
            "Tan": tf.tan,
            "Tanh": _op("Tanh"),
        }.items()
    },
    **{
        op: _binary(function)
        for op, function in {
            "Add": _op("AddV2"),
            "And": _op("LogicalAnd"),
            "BitwiseAnd": tf.bitwise.bitwise_and,
            "BitwiseOr": tf.bitwise.bitwise_or,
            "BitwiseXor": tf.bitwise.bitwise_xor,
            "Div": _divide,
            "Equal": _op("Equal"),
            "Greater": _op("Greater"),
            "GreaterOrEqual": _op("GreaterEqual"),
            "Less": _op("Less"),
            "LessOrEqual": _op("LessEqual"),
            "Mul": _op("Mul"),
            "Or": _op("LogicalOr"),
            "Sub": _op("Sub"),
            "Xor": tf.not_equal,
        }.items()
    },
    "BitCast": _bit_cast,
    "BitShift": _bit_shift,
    "Cast": _cast,
    "CastLike": _cast_like,
    "Celu": _celu,
    "Clip": _clip,
    "Dropout": _dropout,
    "Elu": _elu,
    "Gelu": _gelu,
    "HardSigmoid": _hard_sigmoid,
    "Hardmax": _hardmax,
    "Identity": _same,
    "IsInf": _is_inf,
    "LeakyRelu": _leaky_relu,
    "LogSoftmax": _softmax(tf.nn.log_softmax),
    "Max": _nary(_op("Maximum")),
    "Mean": _mean,
    "Min": _nary(_op("Minimum")),
    "Mod": _mod,
    "PRelu": _prelu,
    "Pow": _power,
    "Selu": _selu,
    "Shrink": _shrink,
    "Softmax": _softmax(tf.nn.softmax),
    "Sum": _nary(_op("AddV2")),
    "Swish": _swish,
    "ThresholdedRelu": _thresholded_relu,
    "Where": _where,
}
