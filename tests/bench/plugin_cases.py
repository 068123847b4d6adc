"""The ops that `plugin_vs_cpu` measures, at a tiny and a large size."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import tensorflow as tf

Tensor = Any
Array = np.ndarray[Any, Any]

Inputs = Sequence[Array]


@dataclasses.dataclass(frozen=True)
class OpCase:
    """An op with the inputs of both sizes.

    Attributes:
        name: What the table says.
        call: Adds the op, from its inputs.
        tiny: Inputs whose compute is nothing beside the call.
        large: Inputs that fill caches and threads.
    """

    name: str
    call: Callable[..., Tensor]
    tiny: Inputs
    large: Inputs


def normal(*shape: int) -> Array:
    """Returns the same numbers each time, float32."""
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def _positive(*shape: int) -> Array:
    return np.abs(normal(*shape)) + np.float32(0.5)


def indices(shape: int | tuple[int, ...], limit: int) -> Array:
    """Returns the same numbers from 0 to below a limit each time, int32."""
    return np.random.default_rng(2).integers(0, limit, shape).astype(np.int32)


LARGE: Final = (1024, 1024)
_RAW = tf.raw_ops


def _bfloat16(*shape: int) -> Array:
    return normal(*shape).astype(tf.bfloat16.as_numpy_dtype)


def _unary(name: str, op: Callable[..., Tensor], make: Callable[..., Array] = normal) -> OpCase:
    return OpCase(name, op, [make(8)], [make(*LARGE)])


def _binary(name: str, op: Callable[..., Tensor], make: Callable[..., Array] = normal) -> OpCase:
    return OpCase(name, op, [make(8), make(8)], [make(*LARGE), make(*LARGE)])


def _conv(x: Tensor, w: Tensor) -> Tensor:
    return tf.nn.conv2d(x, w, 1, "SAME")


def _conv_filter(x: Tensor, w: Tensor, dy: Tensor) -> Tensor:
    return _RAW.Conv2DBackpropFilter(
        input=x,
        filter_sizes=w.shape.as_list(),
        out_backprop=dy,
        strides=[1, 1, 1, 1],
        padding="SAME",
    )


def _conv_input(x: Tensor, w: Tensor, dy: Tensor) -> Tensor:
    return _RAW.Conv2DBackpropInput(
        input_sizes=x.shape.as_list(),
        filter=w,
        out_backprop=dy,
        strides=[1, 1, 1, 1],
        padding="SAME",
    )


def _max_pool_grad(x: Tensor, y: Tensor, dy: Tensor) -> Tensor:
    return _RAW.MaxPoolGrad(
        orig_input=x,
        orig_output=y,
        grad=dy,
        ksize=[1, 2, 2, 1],
        strides=[1, 2, 2, 1],
        padding="VALID",
    )


def _pooled(x: Array) -> Array:
    n, h, w, c = x.shape
    pooled: Array = x.reshape(n, h // 2, 2, w // 2, 2, c).max((2, 4))
    return pooled


def _pool_inputs(*shape: int) -> Inputs:
    x = normal(*shape)
    y = _pooled(x)
    return [x, y, normal(*y.shape)]


def _loss(logits: Tensor, labels: Tensor) -> Tensor:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def _uniform(like: Tensor) -> Tensor:
    return tf.random.stateless_uniform(like.shape, [1, 2])


OPS: Final[tuple[OpCase, ...]] = (
    _binary("AddV2", lambda a, b: a + b),
    _binary("Mul", lambda a, b: a * b),
    _binary("Sub", lambda a, b: a - b),
    _binary("RealDiv", lambda a, b: a / b, _positive),
    _binary("Maximum", tf.maximum),
    _binary("Pow", tf.pow, _positive),
    _binary("SquaredDifference", tf.math.squared_difference),
    _binary("GreaterEqual", lambda a, b: a >= b),
    OpCase("AddV2, one row", lambda a, b: a + b, [normal(2, 4), normal(4)],
           [normal(*LARGE), normal(LARGE[1])]),
    _unary("Relu", tf.nn.relu),
    _binary("ReluGrad", lambda dy, x: _RAW.ReluGrad(gradients=dy, features=x)),
    _unary("Sigmoid", tf.sigmoid),
    _unary("Tanh", tf.tanh),
    _unary("Exp", tf.exp),
    _unary("Log", tf.math.log, _positive),
    _unary("Sqrt", tf.sqrt, _positive),
    _unary("Rsqrt", tf.math.rsqrt, _positive),
    _unary("Square", tf.square),
    _unary("Neg", tf.negative),
    _unary("Erf", tf.math.erf),
    _unary("Cast to int32", lambda x: tf.cast(x, tf.int32)),
    OpCase("Softmax", tf.nn.softmax, [normal(2, 4)], [normal(*LARGE)]),
    OpCase("SparseSoftmaxCrossEntropy", _loss, [normal(2, 4), indices(2, 4)],
           [normal(*LARGE), indices(LARGE[0], LARGE[1])]),
    OpCase("Sum, rows", lambda x: tf.reduce_sum(x, 1), [normal(2, 4)], [normal(*LARGE)]),
    OpCase("Mean, columns", lambda x: tf.reduce_mean(x, 0), [normal(2, 4)], [normal(*LARGE)]),
    OpCase("Max, all", tf.reduce_max, [normal(2, 4)], [normal(*LARGE)]),
    OpCase("ArgMax", lambda x: tf.argmax(x, 1), [normal(2, 4)], [normal(*LARGE)]),
    OpCase("BiasAdd", tf.nn.bias_add, [normal(2, 4), normal(4)],
           [normal(*LARGE), normal(LARGE[1])]),
    OpCase("BiasAddGrad", lambda x: _RAW.BiasAddGrad(out_backprop=x), [normal(2, 4)],
           [normal(*LARGE)]),
    OpCase("Transpose", tf.transpose, [normal(2, 4)], [normal(*LARGE)]),
    OpCase("ConcatV2", lambda a, b: tf.concat([a, b], 1), [normal(2, 2), normal(2, 2)],
           [normal(*LARGE), normal(*LARGE)]),
    OpCase("Split", lambda x: tf.split(x, 2, 1)[0], [normal(2, 4)], [normal(*LARGE)]),
    OpCase("Tile", lambda x: tf.tile(x, [2, 1]), [normal(2, 4)], [normal(*LARGE)]),
    OpCase("Pad", lambda x: tf.pad(x, [[1, 1], [1, 1]]), [normal(2, 4)], [normal(*LARGE)]),
    OpCase("StridedSlice", lambda x: x[1:, ::2], [normal(2, 4)], [normal(*LARGE)]),
    OpCase("GatherV2", tf.gather, [normal(4, 4), indices(2, 4)],
           [normal(*LARGE), indices(2048, 1024)]),
    OpCase("OneHot", lambda x: tf.one_hot(x, 1000), [indices(2, 1000)], [indices(1024, 1000)]),
    OpCase("SelectV2", lambda a, b: tf.where(a > 0, a, b), [normal(8), normal(8)],
           [normal(*LARGE), normal(*LARGE)]),
    OpCase("MatMul", tf.matmul, [normal(2, 4), normal(4, 2)], [normal(512, 512)] * 2),
    OpCase("MatMul, bfloat16", tf.matmul, [_bfloat16(2, 4), _bfloat16(4, 2)],
           [_bfloat16(512, 768), _bfloat16(768, 3072)]),
    OpCase("MatMul, bfloat16, transposed", lambda a, b: tf.matmul(a, b, transpose_a=True),
           [_bfloat16(4, 2), _bfloat16(4, 2)], [_bfloat16(512, 768), _bfloat16(512, 768)]),
    OpCase("MatMul, batch 1", tf.matmul, [normal(1, 4), normal(4, 2)],
           [normal(1, 1024), normal(*LARGE)]),
    OpCase("BatchMatMulV2", tf.matmul, [normal(2, 2, 4), normal(2, 4, 2)],
           [normal(16, 128, 64), normal(16, 64, 128)]),
    OpCase("Conv2D 3x3", _conv, [normal(1, 4, 4, 1), normal(3, 3, 1, 2)],
           [normal(8, 56, 56, 64), normal(3, 3, 64, 64)]),
    OpCase("Conv2D 1x1", _conv, [normal(1, 4, 4, 1), normal(1, 1, 1, 2)],
           [normal(8, 28, 28, 128), normal(1, 1, 128, 256)]),
    OpCase("Conv2DBackpropFilter", _conv_filter,
           [normal(1, 4, 4, 1), normal(3, 3, 1, 2), normal(1, 4, 4, 2)],
           [normal(8, 28, 28, 64), normal(3, 3, 64, 64), normal(8, 28, 28, 64)]),
    OpCase("Conv2DBackpropInput", _conv_input,
           [normal(1, 4, 4, 1), normal(3, 3, 1, 2), normal(1, 4, 4, 2)],
           [normal(8, 28, 28, 64), normal(3, 3, 64, 64), normal(8, 28, 28, 64)]),
    OpCase("DepthwiseConv2d", lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"),
           [normal(1, 4, 4, 1), normal(3, 3, 1, 1)],
           [normal(8, 56, 56, 64), normal(3, 3, 64, 1)]),
    OpCase("MaxPool", lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), [normal(1, 4, 4, 1)],
           [normal(8, 56, 56, 64)]),
    OpCase("AvgPool", lambda x: tf.nn.avg_pool2d(x, 2, 2, "VALID"), [normal(1, 4, 4, 1)],
           [normal(8, 56, 56, 64)]),
    OpCase("MaxPoolGrad", _max_pool_grad, _pool_inputs(1, 4, 4, 1), _pool_inputs(8, 56, 56, 64)),
    OpCase("StatelessRandomUniform", _uniform, [normal(8)], [normal(*LARGE)]),
)  # fmt: skip
