"""What the graph optimizer makes of 16-bit floats and of the casts in models of mixed precision."""

from __future__ import annotations

import collections
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.e2e import child

os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(child.library())
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import tensorflow as tf
from tensorflow.python.eager import context

DEVICE, CPU = "/device:TFP:0", "/device:CPU:0"
RANDOM = np.random.default_rng(0)
HALVES = [tf.float16, tf.bfloat16]
TOLERANCES = {tf.float16: 1e-3, tf.bfloat16: 8e-3}
"""Distance of two neighbours near 1: what one rounding of a result may cost."""


@pytest.fixture(autouse=True, scope="module")
def _no_soft_placement() -> None:
    tf.config.set_soft_device_placement(False)


def normal(kind: tf.DType, *shape: int) -> tf.Tensor:
    return tf.constant(RANDOM.normal(size=shape).astype(kind.as_numpy_dtype))


def graph_of(
    function: Callable[..., Any], *inputs: tf.Tensor
) -> tuple[Any, collections.Counter[str]]:
    """Returns what a function gives as a graph on the device, and the ops that ran there."""

    def pinned(*arguments: tf.Tensor) -> Any:
        with tf.device(DEVICE):
            return function(*arguments)

    context.enable_run_metadata()
    found = tf.function(pinned, jit_compile=False)(*inputs)
    graphs = context.export_run_metadata().partition_graphs
    context.disable_run_metadata()
    ops = [
        collections.Counter(node.op for node in graph.node if node.device.endswith(DEVICE))
        for graph in graphs
    ]
    # Functions that ran before may be among them.
    return found, next(ops for ops in reversed(ops) if ops["_Retval"])


def check_near(found: tf.Tensor, wide: tf.Tensor, kind: tf.DType) -> None:
    """Asserts that a result is what float32 gives, but for one rounding."""
    assert found.dtype == kind
    a, b = tf.cast(found, tf.float32).numpy(), wide.numpy()
    np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCES[kind] * max(1.0, np.abs(b).max()))


def check_bits(function: Callable[..., Any], *inputs: tf.Tensor) -> collections.Counter[str]:
    """Asserts that a graph gives the bits of its ops one by one; returns the ops of the graph."""
    found, ops = graph_of(function, *inputs)
    with tf.device(DEVICE):
        expected = function(*inputs)
    for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        assert a.dtype == b.dtype
        assert a.numpy().tobytes() == b.numpy().tobytes()
    return ops


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("activation", [tf.nn.relu, tf.tanh, tf.nn.leaky_relu, None])
def test_a_layer_is_one_kernel_and_rounds_once(
    kind: tf.DType, activation: Callable[..., Any] | None
) -> None:
    def dense(x: tf.Tensor, w: tf.Tensor, b: tf.Tensor) -> Any:
        y = tf.nn.bias_add(tf.matmul(x, w), b)
        return activation(y) if activation else y

    def image(x: tf.Tensor, w: tf.Tensor, b: tf.Tensor) -> Any:
        y = tf.nn.bias_add(tf.nn.conv2d(x, w, 1, "SAME"), b)
        return activation(y) if activation else y

    cases = (
        (dense, "TfpFusedMatMul", ((33, 20), (20, 50), (50,))),
        (image, "TfpFusedConv2D", ((2, 9, 8, 3), (3, 3, 3, 7), (7,))),
    )
    for layer, op, shapes in cases:
        inputs = [normal(kind, *shape) for shape in shapes]
        found, ops = graph_of(layer, *inputs)
        assert ops[op] == 1, ops
        assert not {"MatMul", "Conv2D", "BiasAdd", "Relu", "Tanh", "LeakyRelu"} & set(ops), ops
        with tf.device(CPU):
            check_near(found, layer(*(tf.cast(x, tf.float32) for x in inputs)), kind)


@pytest.mark.parametrize("kind", HALVES)
def test_a_chain_has_the_bits_of_its_ops(kind: tf.DType) -> None:
    """Each step rounds to its type, whichever types its neighbours have."""

    def narrow(x: tf.Tensor, y: tf.Tensor) -> Any:
        return tf.nn.relu(tf.tanh(x * y + x) - tf.constant(0.3, kind))

    def between(x: tf.Tensor, y: tf.Tensor) -> Any:
        wide = tf.cast(x, tf.float32) * 1.7 + tf.cast(y, tf.float32)
        return tf.cast(tf.exp(-tf.abs(wide)), kind) * x

    def unit(x: tf.Tensor, y: tf.Tensor) -> Any:
        return tf.nn.gelu(x, approximate=True) + tf.nn.silu(y)

    for shape in ((7,), (3, 5), (40, 96), (2, 0), (2, 3, 700)):
        x, y = normal(kind, *shape), normal(kind, *shape)
        for function in (narrow, between, unit):
            ops = check_bits(function, x, y)
            if x.shape.num_elements():
                assert ops["TfpExpression"] == 1, ops
                assert not {"Mul", "Tanh", "AddV2", "Relu", "Exp"} & set(ops), ops
        row = normal(kind, shape[-1])
        check_bits(narrow, x, row)


def test_what_a_cast_cuts_off_is_not_there_afterwards() -> None:
    """A number as the sum of two of 16 bits: the second one is what the first one has lost."""

    def parts(x: tf.Tensor) -> Any:
        first = tf.cast(x, tf.bfloat16)
        rest = x - tf.cast(first, tf.float32)
        return first, tf.cast(rest * 256.0, tf.bfloat16)

    x = normal(tf.float32, 40, 30)
    check_bits(parts, x)
    first, rest = graph_of(parts, x)[0]
    total = tf.cast(first, tf.float32) + tf.cast(rest, tf.float32) / 256.0
    np.testing.assert_allclose(total.numpy(), x.numpy(), rtol=1e-4, atol=1e-6)
    assert np.abs(rest.numpy().astype(np.float32)).max() > 0.1


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize(("side", "folded"), [(20, True), (3, False)])
@pytest.mark.parametrize("mixed", [False, True])
def test_a_batch_norm_of_16_bits_is_no_kernel_of_its_own(
    kind: tf.DType, side: int, folded: bool, mixed: bool
) -> None:
    """In a model of mixed precision it computes in float32 between two casts."""
    of_norm = tf.float32 if mixed else kind
    x, w, b = normal(kind, 2, side, side, 8), normal(kind, 3, 3, 8, 8), normal(kind, 8)
    scale, shift = normal(of_norm, 8), normal(of_norm, 8)

    def block(x: tf.Tensor, w: tf.Tensor, b: tf.Tensor, scale: tf.Tensor, shift: tf.Tensor) -> Any:
        y = tf.nn.bias_add(tf.nn.conv2d(x, w, 1, "SAME"), b)
        y = tf.cast(tf.cast(y, scale.dtype) * scale + shift, x.dtype)
        return tf.nn.relu(y + x)

    found, ops = graph_of(block, x, w, b, scale, shift)
    assert ops["TfpFusedConv2D"] == 1, ops
    # The convolution adds the residual, unless the norm lies between them.
    assert ops["TfpScaleShift"] == (not folded), ops
    if folded:
        assert not {"AddN", "Relu", "TfpScaleShift"} & set(ops), ops
    assert ops["BiasAdd"] == ops["Mul"] == ops["AddV2"] == 0, ops
    with tf.device(CPU):
        check_near(found, block(*(tf.cast(t, tf.float32) for t in (x, w, b, scale, shift))), kind)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_a_keras_model_of_mixed_precision_is_fused(policy: str) -> None:
    keras.utils.set_random_seed(3)
    keras.config.set_dtype_policy(policy)
    try:
        with tf.device(DEVICE):
            inputs = keras.Input((16, 16, 8))
            y = keras.layers.Conv2D(8, 3, padding="same")(inputs)
            y = keras.layers.ReLU()(keras.layers.BatchNormalization()(y))
            y = keras.layers.BatchNormalization()(keras.layers.Conv2D(8, 1)(y))
            y = keras.layers.ReLU()(keras.layers.Add()([inputs, y]))
            y = keras.layers.Dense(5, "gelu")(keras.layers.GlobalAveragePooling2D()(y))
            model = keras.Model(inputs, y)
            for number, weight in enumerate(model.weights):
                shape = weight.shape
                weight.assign(tf.random.stateless_uniform(shape, [number, 1], 0.5, 1.5) / 5.0)
    finally:
        keras.config.set_dtype_policy("float32")
    x = normal(tf.float32, 4, 16, 16, 8)
    found, ops = graph_of(lambda x: model(x, training=False), x)
    assert (ops["TfpFusedConv2D"], ops["TfpFusedMatMul"]) == (2, 1), ops
    assert not {"Conv2D", "MatMul", "BiasAdd", "Relu", "TfpScaleShift"} & set(ops), ops
    with tf.device(DEVICE):
        apart = model(x, training=False)
    largest = np.abs(apart.numpy().astype(np.float32)).max()
    gap = np.abs(found.numpy().astype(np.float32) - apart.numpy().astype(np.float32)).max()
    # The ops apart round some ten times between input and output.
    assert gap <= 8 * TOLERANCES[found.dtype] * largest


@pytest.mark.parametrize("kind", HALVES)
def test_a_norm_has_the_bits_of_its_ops(kind: tf.DType) -> None:
    """Where all inputs are the mean, product and shift cancel; a sum rounded once leaves a rest."""

    def norm(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor) -> Any:
        mean, variance = tf.nn.moments(x, [1, 2], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)

    def affine(x: tf.Tensor, scale: tf.Tensor, shift: tf.Tensor) -> Any:
        return tf.nn.relu6(x * scale + shift)

    row = tf.constant([0.9, 1.1, 1.2], kind)
    constant = tf.fill([1, 30, 40, 3], tf.constant(10.1, kind))
    for x in (constant, normal(kind, 1, 30, 40, 3) / 64 + constant):
        ops = check_bits(norm, x, row, tf.zeros_like(row))
        assert ops["TfpScaleShift"] == 1, ops
    ops = check_bits(affine, normal(kind, 5, 700), normal(kind, 700), normal(kind, 700))
    assert ops["TfpScaleShift"] == 1, ops
