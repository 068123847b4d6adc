"""Trains on the installed device as a user would, and prints what it saw as JSON.

Runs in an environment of its own, on any TensorFlow that the plug-in serves.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tfp_plugin

STEPS = 10


class Losses(keras.callbacks.Callback):  # type: ignore[misc]
    """Keeps the loss of every step."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[float] = []

    def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
        """Keeps it."""
        self.values.append(float(logs["loss"]))


def mlp() -> list[Any]:
    """Two dense layers."""
    return [
        keras.layers.Flatten(),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(10),
    ]


def cnn() -> list[Any]:
    """Convolution, pooling, normalization, dropout."""
    return [
        keras.layers.Conv2D(8, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.BatchNormalization(),
        keras.layers.Flatten(),
        keras.layers.Dropout(0.2),
        keras.layers.Dense(10),
    ]


def grouped() -> list[Any]:
    """Convolutions in groups, which Keras compiles with XLA whatever it is told."""
    return [
        keras.layers.Conv2D(8, 3, activation="relu"),
        keras.layers.Conv2D(8, 3, groups=4, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(10),
    ]


def train(layers: Callable[[], list[Any]], optimizer: str, device: str) -> tuple[Any, Any]:
    """Trains a model without a word on XLA; returns its losses and predictions."""
    keras.utils.set_random_seed(3)
    x = np.random.default_rng(0).normal(size=(160, 8, 8, 1)).astype(np.float32)
    y = (x.sum((1, 2, 3)) > 0).astype(np.int64)
    losses = Losses()
    # XLA draws other random numbers for Dropout than TensorFlow's kernels do.
    reference = {"jit_compile": False} if "CPU" in device else {}
    with tf.device(device):
        model = keras.Sequential([keras.Input((8, 8, 1)), *layers()])
        model.predict(x[:32], verbose=0)  # not compiled yet
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer=optimizer, loss=loss, **reference)
        model.fit(x, y, batch_size=32, epochs=2, verbose=0, shuffle=False, callbacks=[losses])
        predicted = model.predict(x, verbose=0)
    where = {weight.value.device.rpartition("/device:")[2] for weight in model.weights}
    assert where == {device.rpartition("/device:")[2]}, where
    assert len(losses.values) == STEPS, losses.values
    return np.asarray(losses.values), predicted


def main() -> None:
    """Trains twice each and compares."""
    names = [each.name.partition(":")[2] for each in tf.config.list_physical_devices("TFP")]
    worst = 0.0
    for layers, optimizer in ((mlp, "sgd"), (mlp, "adam"), (cnn, "adam"), (grouped, "adam")):
        found, predicted = train(layers, optimizer, "/device:" + names[0])
        expected, on_cpu = train(layers, optimizer, "/device:CPU:0")
        worst = max(worst, float(np.abs(found - expected).max()))
        assert np.abs(predicted - on_cpu).max() < 1e-3
    assert tfp_plugin.enable() == tfp_plugin.enable() == names, names
    with tf.device("/device:" + names[0]):
        variable = tf.Variable([1.0, 2.0])
        for _ in range(100):
            variable.assign_add(tf.nn.relu(tf.constant([1.0, -1.0])))
    assert variable.numpy().tolist() == [101.0, 2.0], variable.numpy()
    json.dump(
        {
            "tensorflow": tf.__version__,
            "keras": keras.__version__,
            "devices": names,
            "loss_difference": worst,
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
