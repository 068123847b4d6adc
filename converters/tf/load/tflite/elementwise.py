"""Operators on every element."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from converters.tf.load.saved_model.replay import Refused, Tensor
from converters.tf.load.tflite.call import Call, Constant, Handler, Value


def _unary(function: Callable[[Tensor], Tensor]) -> Handler:
    return lambda call: function(call.tensor(0))


def _binary(function: Callable[[Tensor, Tensor], Tensor]) -> Handler:
    return lambda call: function(call.tensor(0), call.tensor(1))


def _fused(function: Callable[[Tensor, Tensor], Tensor]) -> Handler:
    def computed(call: Call) -> Tensor:
        a, b = call.tensor(0), call.tensor(1)
        return call.activated(function(_with_ones(a, b), _with_ones(b, a)))

    return computed


def _with_ones(x: Tensor, other: Tensor) -> Tensor:
    """Returns an operand as it was before it lost a first axis of one, if the other has one too.

    TFLite's converter drops that axis of a recurrent layer's products for one example.
    """
    if x.op.type != "Reshape" or x.shape.rank is None or other.shape.rank != x.shape.rank + 1:
        return x
    whole = x.op.inputs[0]
    return whole if whole.shape == [1, *x.shape] and x.shape.is_fully_defined() else x


def _quotient(a: Tensor, b: Tensor) -> Tensor:
    return tf.truncatediv(a, b) if a.dtype.is_integer else tf.realdiv(a, b)


def _prelu(call: Call) -> Tensor:
    x, alpha = call.tensor(0), call.tensor(1, "alpha")
    return tf.nn.relu(x) - alpha * tf.nn.relu(-x)


def _softmax(call: Call) -> Tensor:
    x, beta = call.tensor(0), float(call.option("beta", 1.0))
    return tf.nn.softmax(x if beta == 1.0 else x * beta)


def _cast(call: Call) -> Tensor:
    return tf.cast(call.tensor(0), call.results[0].dtype)


def _dequantize(call: Call) -> Value:
    """Numbers that stand for real ones are these already, wherever they are read."""
    value = call.value(0)
    if isinstance(value, Constant):
        return Constant(value.data.astype("float32"))
    return tf.cast(value, tf.float32)


def _select(call: Call) -> Tensor:
    condition, a, b = (call.tensor(i) for i in range(3))
    return tf.raw_ops.Select(condition=condition, x=a, y=b)


def _bitcast(call: Call) -> Tensor:
    return tf.bitcast(call.tensor(0), call.results[0].dtype)


def _fake_quant(call: Call) -> Tensor:
    raise Refused("numbers are rounded as in training for int8")


OPS: dict[str, Handler] = {
    "ABS": _unary(tf.abs),
    "ADD": _fused(tf.add),
    "ADD_N": lambda call: tf.add_n(call.tensors()),
    "ATAN2": _binary(tf.atan2),
    "BITCAST": _bitcast,
    "BITWISE_XOR": _binary(tf.bitwise.bitwise_xor),
    "CAST": _cast,
    "CEIL": _unary(tf.math.ceil),
    "COMPLEX_ABS": _unary(tf.abs),
    "COS": _unary(tf.cos),
    "DENSIFY": lambda call: call.value(0),
    "DEQUANTIZE": _dequantize,
    "DIV": _fused(_quotient),
    "ELU": _unary(tf.nn.elu),
    "EQUAL": _binary(tf.equal),
    "EXP": _unary(tf.exp),
    "FAKE_QUANT": _fake_quant,
    "FLOOR": _unary(tf.floor),
    "FLOOR_DIV": _binary(tf.math.floordiv),
    "FLOOR_MOD": _binary(tf.math.floormod),
    "GELU": lambda call: tf.nn.gelu(call.tensor(0), bool(call.option("approximate"))),
    "GREATER": _binary(tf.greater),
    "GREATER_EQUAL": _binary(tf.greater_equal),
    "HARD_SWISH": _unary(lambda x: x * (tf.nn.relu6(x + 3.0) * (1 / 6))),
    "IMAG": _unary(tf.math.imag),
    "LEAKY_RELU": lambda call: tf.nn.leaky_relu(call.tensor(0), float(call.option("alpha"))),
    "LESS": _binary(tf.less),
    "LESS_EQUAL": _binary(tf.less_equal),
    "LOG": _unary(tf.math.log),
    "LOGICAL_AND": _binary(tf.logical_and),
    "LOGICAL_NOT": _unary(tf.logical_not),
    "LOGICAL_OR": _binary(tf.logical_or),
    "LOGISTIC": _unary(tf.sigmoid),
    "LOG_SOFTMAX": _unary(tf.nn.log_softmax),
    "MAXIMUM": _binary(tf.maximum),
    "MINIMUM": _binary(tf.minimum),
    "MUL": _fused(tf.multiply),
    "NEG": _unary(tf.negative),
    "NOT_EQUAL": _binary(tf.not_equal),
    "POW": _binary(tf.pow),
    "PRELU": _prelu,
    # What integers would stand for is what they are here.
    "QUANTIZE": _unary(tf.identity),
    "REAL": _unary(tf.math.real),
    "RELU": _unary(tf.nn.relu),
    "RELU6": _unary(tf.nn.relu6),
    "RELU_0_TO_1": _unary(lambda x: tf.clip_by_value(x, 0.0, 1.0)),
    "RELU_N1_TO_1": _unary(lambda x: tf.clip_by_value(x, -1.0, 1.0)),
    "RIGHT_SHIFT": _binary(tf.bitwise.right_shift),
    "ROUND": _unary(tf.round),
    "RSQRT": _unary(tf.math.rsqrt),
    "SELECT": _select,
    "SELECT_V2": lambda call: tf.raw_ops.SelectV2(
        condition=call.tensor(0), t=call.tensor(1), e=call.tensor(2)
    ),
    "SIGN": _unary(tf.sign),
    "SIN": _unary(tf.sin),
    "SOFTMAX": _softmax,
    "SQRT": _unary(tf.sqrt),
    "SQUARE": _unary(tf.square),
    "SQUARED_DIFFERENCE": _binary(tf.math.squared_difference),
    "SUB": _fused(tf.subtract),
    "TANH": _unary(tf.tanh),
    "ZEROS_LIKE": _unary(tf.zeros_like),
}
