"""What ops compute that TensorFlow's CPU lacks, such as the plug-in's own, in ops that it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from tests.conformance import recurrent, volumes

_ACTIVATIONS = {
    "": tf.identity,
    "Elu": tf.nn.elu,
    "Relu": tf.nn.relu,
    "Relu6": tf.nn.relu6,
    "Selu": tf.nn.selu,
    "Sigmoid": tf.sigmoid,
    "Softplus": tf.nn.softplus,
    "Softsign": tf.nn.softsign,
    "Tanh": tf.tanh,
}


def _activate(x: tf.Tensor, activation: str, alpha: float) -> tf.Tensor:
    if activation == "LeakyRelu":
        return tf.nn.leaky_relu(x, alpha)
    return _ACTIVATIONS[activation](x)


def _mat_mul(
    a: tf.Tensor,
    b: tf.Tensor,
    bias: tf.Tensor,
    activation: str,
    alpha: float,
    **attributes: Any,
) -> tf.Tensor:
    product = tf.raw_ops.MatMul(a=a, b=b, **attributes)
    return _activate(tf.nn.bias_add(product, bias), activation, alpha)


def _conv_2d(
    input: tf.Tensor,
    filter: tf.Tensor,
    bias: tf.Tensor,
    residual: list[tf.Tensor],
    activation: str,
    alpha: float,
    **attributes: Any,
) -> tf.Tensor:
    kind = input.dtype
    wide = tf.cast(input, filter.dtype)
    product = tf.raw_ops.Conv2D(input=wide, filter=filter, **attributes)
    more = [tf.cast(value, filter.dtype) for value in residual]
    total = tf.add_n([tf.nn.bias_add(product, bias), *more])
    return tf.cast(_activate(total, activation, alpha), kind)


def _scale_shift(x: tf.Tensor, scale: tf.Tensor, shift: tf.Tensor, activation: str) -> tf.Tensor:
    wide = tf.cast(x, scale.dtype)
    return tf.cast(_ACTIVATIONS[activation](wide * scale + shift), x.dtype)


def _scatter(
    tensor: tf.Tensor, indices: tf.Tensor, updates: tf.Tensor, reduction: str, nd: bool
) -> tf.Tensor:
    variable = tf.Variable(tensor)
    if nd:
        definition = getattr(tf.raw_ops, f"ResourceScatterNd{reduction.capitalize()}")
        definition(ref=variable.handle, indices=indices, updates=updates)
    else:
        definition = getattr(tf.raw_ops, f"ResourceScatter{reduction.capitalize()}")
        definition(resource=variable.handle, indices=indices, updates=updates)
    return variable.read_value()


EXPRESSION_OPS = (
    "Abs", "Elu", "Erf", "Erfc", "Exp", "Log", "Log1p", "Neg", "Reciprocal", "Relu", "Relu6",
    "Rsqrt", "Selu", "Sigmoid", "Sign", "Softplus", "Sqrt", "Square", "Tanh", "Add", "AddV2",
    "DivNoNan", "Maximum", "Minimum", "Mul", "RealDiv", "SquaredDifference", "Sub", "EluGrad",
    "ReluGrad", "Relu6Grad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad", "Pow", "Cast",
)  # fmt: skip
"""The steps of `TfpExpression` in float32, by number."""

STEP_TYPES = (tf.float32, tf.float16, tf.bfloat16)
"""What the steps round to: the types of all of `EXPRESSION_OPS`, one after the other."""


def _expression(
    inputs: list[tf.Tensor], program: list[int], results: list[int], **others: Any
) -> list[tf.Tensor]:
    values = [tf.cast(value, tf.float32) for value in inputs]
    for at in range(0, len(program), 3):
        kind, number = divmod(program[at], len(EXPRESSION_OPS))
        op = EXPRESSION_OPS[number]
        if op == "Cast":
            value = values[program[at + 1]]
        else:
            definition = getattr(tf.raw_ops, op)
            names = [name for name in definition.__signature__.parameters if name != "name"]
            operands = [values[place] for place in program[at + 1 : at + 1 + len(names)]]
            value = definition(**dict(zip(names, operands, strict=True)))
        values.append(tf.cast(tf.cast(value, STEP_TYPES[kind]), tf.float32))
    outputs = [values[-1], *(values[len(inputs) + step] for step in results)]
    return [tf.cast(value, others["T"]) for value in outputs]


def _identity(x: Any) -> tf.Tensor:
    return tf.identity(x)


REFERENCES: Mapping[str, Callable[..., tf.Tensor | list[tf.Tensor]]] = {
    "Conv3D": volumes.conv_3d,
    "Conv3DBackpropFilterV2": volumes.conv_3d_filter,
    "Conv3DBackpropInputV2": volumes.conv_3d_input,
    "TfpExpression": _expression,
    "TfpFusedConv2D": _conv_2d,
    "TfpFusedMatMul": _mat_mul,
    "TfpScaleShift": _scale_shift,
    "TfpScatter": _scatter,
    "TfpToDevice": _identity,
    "TfpToHost": _identity,
    **recurrent.REFERENCES,
}
"""By op; called on the CPU with the op's inputs and attributes."""
