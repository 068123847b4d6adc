"""Keras models train on the device as they do on the CPU."""

from __future__ import annotations

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

TOLERANCE = 1e-5
"""Largest difference of the loss of a step."""


class Losses(keras.callbacks.Callback):  # type: ignore[misc]
    """Keeps the loss of every step."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[float] = []

    def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
        self.values.append(logs["loss"])


def mlp() -> list[Any]:
    return [
        keras.layers.Flatten(),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(10),
    ]


def cnn() -> list[Any]:
    return [
        keras.layers.Conv2D(8, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.BatchNormalization(),
        keras.layers.Flatten(),
        keras.layers.Dropout(0.2),
        keras.layers.Dense(10),
    ]


def train(layers: Callable[[], list[Any]], optimizer: str, device: str) -> list[float]:
    keras.utils.set_random_seed(3)
    x = np.random.default_rng(0).normal(size=(160, 8, 8, 1)).astype(np.float32)
    y = (x.sum((1, 2, 3)) > 0).astype(np.int64)
    losses = Losses()
    with tf.device(device):
        model = keras.Sequential([keras.Input((8, 8, 1)), *layers()])
        model.compile(
            optimizer=optimizer,
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            jit_compile=False,
        )
        model.fit(x, y, batch_size=32, epochs=2, verbose=0, shuffle=False, callbacks=[losses])
    assert all(weight.value.device.endswith(device) for weight in model.weights)
    return losses.values


@pytest.mark.parametrize(
    ("layers", "optimizer"), [(mlp, "sgd"), (mlp, "adam"), (cnn, "adam")], ids=lambda v: str(v)
)
def test_the_loss_curve_is_the_cpu_s(layers: Callable[[], list[Any]], optimizer: str) -> None:
    found = train(layers, optimizer, "/device:TFP:0")
    expected = train(layers, optimizer, "/device:CPU:0")
    assert len(found) == 10
    assert len(set(found)) > 5
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)
