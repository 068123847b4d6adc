"""The models whose training steps are timed, and a batch for each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np

CLASSES = 10
layers = keras.layers


class Case(NamedTuple):
    """A model and its batch.

    Attributes:
        build: makes the model, whose outputs are logits `[batch, CLASSES]`.
        shape: the shape of an example.
        batch: the number of examples.
        modes: how it is trained.
        share: the part of the steps of a round that is made.
        tokens: the number of tokens if examples are int32, else 0.
    """

    build: Callable[[], keras.Model]
    shape: tuple[int, ...]
    batch: int = 32
    modes: tuple[str, ...] = ("graph",)
    share: float = 1.0
    tokens: int = 0

    def examples(self) -> np.ndarray:
        """Returns a batch: numbers from 0 to 1, or tokens."""
        count = self.batch * int(np.prod(self.shape))
        numbers = np.arange(count) * 37 % 101
        if self.tokens:
            return (numbers % self.tokens).astype(np.int32).reshape(self.batch, *self.shape)
        scaled = numbers.astype(np.float32) / np.float32(101)
        return scaled.reshape(self.batch, *self.shape)

    def write(self, folder: Path) -> None:
        """Writes the model and the batch, as both sides read them."""
        keras.utils.set_random_seed(1)
        folder.mkdir(parents=True)
        self.build().save(folder / "model.keras")
        truth = np.arange(self.batch) % CLASSES
        np.savez(folder / "batch.npz", x=self.examples(), truth=truth)


def _mlp() -> keras.Model:
    hidden = [layers.Dense(64, activation="relu") for _ in range(2)]
    return keras.Sequential([keras.Input((64,)), *hidden, layers.Dense(CLASSES)])


def _cnn() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(2),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dense(CLASSES),
        ]
    )


def _lstm() -> keras.Model:
    return keras.Sequential([keras.Input((50, 32)), layers.LSTM(64), layers.Dense(CLASSES)])


def _transformer() -> keras.Model:
    tokens = keras.Input((64,), dtype="int32")
    x = layers.Embedding(1000, 128)(tokens)
    for _ in range(2):
        seen = layers.MultiHeadAttention(4, 32)(x, x)
        x = layers.LayerNormalization()(x + seen)
        wide = layers.Dense(512, activation="gelu")(x)
        x = layers.LayerNormalization()(x + layers.Dense(128)(wide))
    x = layers.GlobalAveragePooling1D()(x)
    return keras.Model(tokens, layers.Dense(CLASSES)(x))


def _efficientnet() -> keras.Model:
    body = keras.applications.EfficientNetB0(
        weights=None, classes=CLASSES, classifier_activation=None
    )
    return keras.Model(body.inputs, body.outputs)


CASES = {
    "mlp": Case(_mlp, (64,), modes=("graph", "eager")),
    "cnn": Case(_cnn, (28, 28, 1), modes=("graph", "eager")),
    "lstm": Case(_lstm, (50, 32)),
    "transformer": Case(_transformer, (64,), share=0.25, tokens=1000),
    "efficientnet": Case(_efficientnet, (224, 224, 3), batch=8, share=0.25),
}
