"""Writes a small Keras model with random weights that are always the same."""

from __future__ import annotations

import os
from collections.abc import Sequence

from absl import app, flags

_OUT = flags.DEFINE_string("out", None, "the .keras file to write", required=True)


def _main(_: Sequence[str]) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras

    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            keras.layers.Conv2D(4, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(8, 3, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(2, activation="softmax"),
        ],
        name="mnist",
    )
    model.save(_OUT.value)


if __name__ == "__main__":
    app.run(_main)
