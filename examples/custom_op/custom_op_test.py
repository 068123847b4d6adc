"""The op on the device and on the CPU: values, shapes, gradients, and a layer that trains."""

from __future__ import annotations

import os
import pathlib
from typing import Any

os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(pathlib.Path("plugin/libtfp.so").absolute())

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from examples.custom_op import swiglu as example
from examples.custom_op.swiglu import swiglu

example.load(pathlib.Path(os.environ["CUSTOM_OP"]).absolute())
tf.config.set_soft_device_placement(False)

DEVICES = ("/device:TFP:0", "/device:CPU:0")
Array = np.ndarray[Any, Any]


def pair(shape: tuple[int, ...], dtype: Any) -> tuple[Array, Array]:
    rng = np.random.default_rng(5)
    return rng.normal(size=shape).astype(dtype) * 3, rng.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (2, 3, 5)])
def test_values(device: str, dtype: Any, shape: tuple[int, ...]) -> None:
    gate, up = pair(shape, dtype)
    with tf.device(device):
        y = swiglu(tf.constant(gate), tf.constant(up))
    assert y.device.endswith(device)
    exact = gate.astype(np.float64) / (1 + np.exp(-gate.astype(np.float64))) * up
    np.testing.assert_allclose(y.numpy(), exact, rtol=4 * np.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("device", DEVICES)
def test_the_gradient_is_the_derivative(device: str) -> None:
    with tf.device(device):
        inputs = [tf.constant(each) for each in pair((3, 4), np.float64)]
        exact, numeric = tf.test.compute_gradient(swiglu, inputs, delta=1e-5)
    for a, b in zip(exact, numeric, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-8)


def test_graphs_have_gradients_too() -> None:
    gate, up = (tf.constant(each) for each in pair((5,), np.float32))

    def gradients(gate: Any, up: Any) -> Any:
        with tf.device(DEVICES[0]), tf.GradientTape() as tape:
            tape.watch([gate, up])
            y = swiglu(gate, up)
        return tape.gradient(y, [gate, up])

    in_graph = tf.function(gradients, jit_compile=False)(gate, up)
    for a, b in zip(in_graph, gradients(gate, up), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_the_definition_is_what_the_library_says() -> None:
    for name, inputs in (("SwiGlu", ["gate", "up"]), ("SwiGluGrad", ["gate", "up", "dy"])):
        definition = op_def_registry.get(name)
        assert [each.name for each in definition.input_arg] == inputs
        assert not definition.is_commutative
        assert not definition.is_stateful
        assert not definition.is_aggregate


def test_shapes_are_known_before_anything_runs() -> None:
    found = []

    def build(gate: Any, up: Any) -> Any:
        found.append(swiglu(gate, up).shape.as_list())
        return gate

    for signature in (([None, 3], [2, None]), (None, [4]), ([2, 3], None)):
        specs = [tf.TensorSpec(shape, tf.float32) for shape in signature]
        tf.function(build, jit_compile=False).get_concrete_function(*specs)
    assert found == [[None, 3], [4], [2, 3]]


def test_shapes_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match=r"gate has shape \[2\], input 1 has \[3\]"):
        tf.function(swiglu, jit_compile=False)(tf.ones([2]), tf.ones([3]))
    for device in DEVICES:
        with (
            tf.device(device),
            pytest.raises(tf.errors.InvalidArgumentError, match=r"\[2\].*\[3\]: expected the same"),
        ):
            swiglu(tf.ones([2]), tf.ones([3]))


class GatedLayer(keras.layers.Layer):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.gate = keras.layers.Dense(16)
        self.up = keras.layers.Dense(16)

    def build(self, shape: Any) -> None:
        self.gate.build(shape)
        self.up.build(shape)

    def call(self, x: Any) -> Any:
        return swiglu(self.gate(x), self.up(x))


def test_a_layer_with_it_trains_as_on_the_cpu() -> None:
    x = np.random.default_rng(0).normal(size=(128, 8)).astype(np.float32)
    y = (x[:, :1] * x[:, 1:2]).astype(np.float32)
    losses = []
    # The input pipeline has to stay on the CPU.
    tf.config.set_soft_device_placement(True)
    for device in DEVICES:
        keras.utils.set_random_seed(1)
        with tf.device(device):
            model = keras.Sequential([keras.Input((8,)), GatedLayer(), keras.layers.Dense(1)])
            model.compile(keras.optimizers.Adam(3e-2), "mse", jit_compile=False)
            losses.append(model.fit(x, y, epochs=30, shuffle=False, verbose=0).history["loss"])
    assert losses[0][-1] < losses[0][0] / 3
    np.testing.assert_allclose(losses[0], losses[1], rtol=0, atol=1e-5)
