"""Keras models train on the device as they do on the CPU."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn import datasets

from tests.e2e import child

os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(child.library())
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import tensorflow as tf

from tests.e2e import models

Array = npt.NDArray[Any]
DEVICE, CPU = "/device:TFP:0", "/device:CPU:0"
TOLERANCE = 1e-5
"""Largest difference of the loss of a step, of an evaluation, and of a prediction."""

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: keras.optimizers.SGD(0.05),
    "momentum": lambda: keras.optimizers.SGD(0.02, momentum=0.9, nesterov=True),
    "adam": lambda: keras.optimizers.Adam(),
    "adamw": lambda: keras.optimizers.AdamW(),
    "rmsprop": lambda: keras.optimizers.RMSprop(),
}


class Losses(keras.callbacks.Callback):  # type: ignore[misc]
    """Keeps the loss of every step."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[float] = []

    def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
        self.values.append(logs["loss"])


@dataclasses.dataclass(frozen=True)
class Run:
    """What a training gave: the loss of each step, an evaluation, and predictions."""

    losses: list[float]
    evaluation: list[float]
    predictions: Array


def train(name: str, optimizer: str, device: str) -> Run:
    keras.utils.set_random_seed(3)
    x, y = models.data(name)
    losses = Losses()
    with tf.device(device):
        model = models.build(name)
        model.compile(
            optimizer=OPTIMIZERS[optimizer](),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
            jit_compile=False,
        )
        model.fit(x, y, batch_size=32, epochs=2, verbose=0, shuffle=False, callbacks=[losses])
        evaluation = model.evaluate(x, y, verbose=0)
        predictions = model.predict(x[:40], verbose=0)
    assert all(weight.value.device.endswith(device) for weight in model.weights)
    return Run(losses.values, evaluation, predictions)


CASES = [
    *(("mlp", optimizer) for optimizer in OPTIMIZERS),
    ("cnn", "adam"),
    ("cnn", "momentum"),
    ("lstm", "sgd"),
    ("lstm", "adamw"),
    ("lstm", "rmsprop"),
    ("transformer", "adam"),
    ("transformer", "sgd"),
]


@pytest.mark.parametrize(("name", "optimizer"), CASES)
def test_the_loss_curve_is_the_cpu_s(name: str, optimizer: str) -> None:
    found, expected = train(name, optimizer, DEVICE), train(name, optimizer, CPU)
    assert len(found.losses) == 10
    assert len(set(found.losses)) > 5
    np.testing.assert_allclose(found.losses, expected.losses, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(found.evaluation, expected.evaluation, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(found.predictions, expected.predictions, rtol=0, atol=TOLERANCE)


def digits(device: str) -> float:
    """Returns the share of unseen digits that a model trained on the device knows."""
    keras.utils.set_random_seed(1)
    images, labels = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images = (images[order] / 16.0).astype(np.float32).reshape(-1, 8, 8, 1)
    labels = labels[order]
    with tf.device(device):
        model = keras.Sequential(
            [
                keras.Input((8, 8, 1)),
                keras.layers.Conv2D(16, 3, activation="relu"),
                keras.layers.BatchNormalization(),
                keras.layers.MaxPooling2D(),
                keras.layers.Flatten(),
                keras.layers.Dropout(0.2),
                keras.layers.Dense(10),
            ]
        )
        model.compile(
            optimizer=keras.optimizers.Adam(0.003),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
            jit_compile=False,
        )
        model.fit(images[:1400], labels[:1400], batch_size=70, epochs=12, verbose=0)
        accuracy: float = model.evaluate(images[1400:], labels[1400:], verbose=0)[1]
    return accuracy


def test_digits_are_learned_as_on_the_cpu() -> None:
    """Within four of the 397 unseen images: rounding grows over 240 steps."""
    found, expected = digits(DEVICE), digits(CPU)
    assert expected > 0.9
    assert abs(found - expected) < 4.5 / 397


PLACEMENT = """
import keras
from tests.e2e import models
# The orthogonal initializer of an LSTM runs on the CPU, once.
tf.config.set_soft_device_placement(True)
tf.debugging.set_log_device_placement(True)
x, y = models.data({name!r})
with tf.device("/device:TFP:0"):
    model = models.build({name!r})
    model.compile(
        optimizer={optimizer!r},
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=False,
    )
    x, y = tf.constant(x[:32]), tf.constant(y[:32])
    print("BEGIN", flush=True)
    for _ in range(2):
        model.train_on_batch(x, y)
    model.test_on_batch(x, y)
    model.predict_on_batch(x)
"""

PLACED = re.compile(r"^(\S+): \((\w+)\): \S*/device:(\w+:\d+)$", re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [("cnn", "adam"), ("lstm", "sgd"), ("transformer", "adamw")],
)
def test_every_node_is_on_the_device(name: str, optimizer: str) -> None:
    """Counted from TensorFlow's placement log, without an input pipeline.

    An int32 tensor that a step is called with is where TensorFlow keeps all of them, on the host.
    """
    process = child.run(PLACEMENT.format(name=name, optimizer=optimizer))
    log = child.check(process).split("BEGIN\n", 1)[1]
    nodes = [(op, device) for _, op, device in PLACED.findall(log)]
    assert len(nodes) > 500
    elsewhere = [op for op, device in nodes if device != "TFP:0" and op != "_Arg"]
    assert elsewhere == []
    assert sum(device != "TFP:0" for _, device in nodes) <= 4
