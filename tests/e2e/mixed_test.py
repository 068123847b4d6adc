"""Keras models of mixed precision train on the device alone, as they do on the CPU."""

from __future__ import annotations

import functools
import os

import numpy as np
import pytest

from tests.e2e import child

os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(child.library())
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import tensorflow as tf
from tfp_plugin import check

from tests.e2e import models

DEVICE, CPU = "/device:TFP:0", "/device:CPU:0"

TOLERANCES = {"mixed_float16": 2e-3, "mixed_bfloat16": 2e-2}
"""Largest difference of the loss of a step. The CPU rounds the parts of a sum on the way."""

CASES = [(policy, name) for policy in TOLERANCES for name in ("cnn", "lstm", "transformer")]


def compiled(policy: str, name: str) -> keras.Model:
    keras.utils.set_random_seed(3)
    keras.config.set_dtype_policy(policy)
    try:
        model = models.build(name)
    finally:
        keras.config.set_dtype_policy("float32")
    model.compile(
        optimizer="adam",
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    return model


@functools.cache
def trained(policy: str, name: str, device: str) -> tuple[keras.Model, list[float]]:
    """Returns a model after ten steps, and the loss of each."""
    x, y = models.data(name)
    with tf.device(device):
        model = compiled(policy, name)
        found = [
            float(model.train_on_batch(x[at : at + 32], y[at : at + 32]))
            for at in [*range(0, 160, 32)] * 2
        ]
    assert all(weight.value.device.endswith(device) for weight in model.weights)
    return model, found


@pytest.mark.parametrize(("policy", "name"), CASES)
def test_the_loss_curve_is_the_cpu_s(policy: str, name: str) -> None:
    (_, found), (_, expected) = trained(policy, name, DEVICE), trained(policy, name, CPU)
    assert len(set(found)) > 5
    # A step that overflows is left out by both.
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCES[policy])


@pytest.mark.parametrize(("policy", "name"), CASES)
def test_no_node_of_a_step_is_left_to_the_cpu(policy: str, name: str) -> None:
    x, y = (tf.constant(part[:32]) for part in models.data(name))
    model, _ = trained(policy, name, DEVICE)
    with tf.device(DEVICE):

        def step() -> object:
            return model.train_step((x, y))

        graph = tf.function(step, jit_compile=False).get_concrete_function()
    operations = {operation.type for operation in graph.graph.get_operations()}
    assert "Cast" in operations
    assert check.fallbacks(graph) == ()
