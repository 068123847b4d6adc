"""A short training run: handwritten digits, a small convolutional network, Adam."""

from __future__ import annotations

import dataclasses
import pathlib
import time

import keras
import numpy as np
import tensorflow as tf

EPOCHS = 5
"""Enough for about nine of ten digits that the model has not seen."""
TRAINED = 1437
"""How many of the 1797 digits the model learns from; the rest judge it."""
DIGITS = (
    pathlib.Path(__file__)
    .parents[3]
    .joinpath("pip_scikit_learn/site-packages/sklearn/datasets/data/digits.csv.gz")
)
"""scikit-learn's digits, a line each: 64 grey values from 0 to 16 and the digit."""


@dataclasses.dataclass(frozen=True)
class Course:
    """How a training went.

    Attributes:
        losses: Mean loss of each epoch.
        accuracy: Part of the unseen digits that the model gets right.
        seconds: Time of the epochs after the first, whose graphs are built meanwhile.
        devices: Devices that hold the weights, such as `TFP:0`.
    """

    losses: list[float]
    accuracy: float
    seconds: float
    devices: list[str]


def train(device: str) -> Course:
    """Trains from the same start as every call.

    Args:
        device: Device string such as `/device:TFP:0`.
    """
    keras.utils.set_random_seed(7)
    digits = np.loadtxt(DIGITS, delimiter=",")
    images = (digits[:, :64].reshape(-1, 8, 8, 1) / 16).astype(np.float32)
    labels = digits[:, 64].astype(np.int64)
    with tf.device(device):
        model = keras.Sequential(
            [
                keras.Input((8, 8, 1)),
                keras.layers.Conv2D(16, 3, activation="relu"),
                keras.layers.MaxPooling2D(),
                keras.layers.Flatten(),
                keras.layers.Dropout(0.1),
                keras.layers.Dense(10),
            ]
        )
        model.compile(
            optimizer=keras.optimizers.Adam(5e-3),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
            # XLA, which compiles for the CPU alone, draws other numbers for the dropout.
            jit_compile=False,
        )
        losses: list[float] = []
        for epoch in range(EPOCHS):
            if epoch == 1:
                start = time.perf_counter()
            history = model.fit(
                images[:TRAINED], labels[:TRAINED], batch_size=32, shuffle=False, verbose=0
            ).history
            losses += history["loss"]
        seconds = time.perf_counter() - start
        _, accuracy = model.evaluate(images[TRAINED:], labels[TRAINED:], verbose=0)
    held = {weight.value.device.rpartition("device:")[2] for weight in model.weights}
    return Course(losses, float(accuracy), seconds, sorted(held))


def problem(on_device: Course, on_cpu: Course, device: str, tolerance: float) -> str:
    """Says what is wrong with a training on the device; nothing if it went as on the CPU.

    Args:
        on_device: How it went there.
        on_cpu: How it went on the CPU.
        device: The device that should hold the weights, such as `TFP:0`.
        tolerance: Largest difference of an epoch's loss that is accepted.
    """
    if on_device.devices != [device]:
        return f"the weights are on {', '.join(on_device.devices)}, expected {device}"
    worst = max(abs(a - b) for a, b in zip(on_device.losses, on_cpu.losses, strict=True))
    if not worst <= tolerance:
        return f"an epoch's loss differs from the CPU's by {worst:.1e}, more than {tolerance:g}"
    return ""
