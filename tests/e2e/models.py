"""Small Keras models, and data to train them with."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import numpy.typing as npt

layers = keras.layers
WORDS, LENGTH, CLASSES = 20, 12, 10


def data(name: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Returns 160 inputs for the model called `name`, and their classes."""
    random = np.random.default_rng(0)
    if name in ("mlp", "cnn"):
        images = random.normal(size=(160, 8, 8, 1)).astype(np.float32)
        return images, (images.sum((1, 2, 3)) > 0).astype(np.int64)
    words = random.integers(0, WORDS, size=(160, LENGTH)).astype(np.int32)
    return words, (words.sum(1) % CLASSES).astype(np.int64)


def build(name: str) -> keras.Model:
    """Returns a new model with a number for each class as output."""
    models = {"mlp": _mlp, "cnn": _cnn, "lstm": _lstm, "transformer": _transformer}
    return models[name]()


def _mlp() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Flatten(),
            layers.Dense(32, activation="relu"),
            layers.Dense(CLASSES),
        ]
    )


def _cnn() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(8, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.BatchNormalization(),
            layers.Flatten(),
            layers.Dropout(0.2),
            layers.Dense(CLASSES),
        ]
    )


def _lstm() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((LENGTH,), dtype="int32"),
            layers.Embedding(WORDS, 8),
            layers.LSTM(16),
            layers.Dense(CLASSES),
        ]
    )


def _transformer() -> keras.Model:
    words = keras.Input((LENGTH,), dtype="int32")
    places = layers.Embedding(LENGTH, 16)(keras.ops.arange(LENGTH))
    x = layers.Embedding(WORDS, 16)(words) + places
    attention = layers.MultiHeadAttention(2, 8, dropout=0.1)(x, x)
    x = layers.LayerNormalization()(x + attention)
    y = layers.Dense(32, activation="gelu")(x)
    x = layers.LayerNormalization()(x + layers.Dense(16)(y))
    x = layers.Dropout(0.1)(layers.GlobalAveragePooling1D()(x))
    return keras.Model(words, layers.Dense(CLASSES)(x))
