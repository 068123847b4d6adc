"""Trains a small classifier of digits, and records what it makes of some of them.

The digits are scikit-learn's, 8 x 8 pixels, because they need no download. Writes `mnist.keras`,
the same as a SavedModel (`tf_model/`) and `features.npz`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from absl import app, flags

_OUT = flags.DEFINE_string("out", None, "folder to write", required=True)
_EPOCHS = flags.DEFINE_integer("epochs", 12, "times to go through the digits")
_SAVED_MODEL = flags.DEFINE_bool("saved_model", True, "write a SavedModel, too")


def _main(_: Sequence[str]) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras
    from sklearn.datasets import load_digits

    keras.utils.set_random_seed(1)
    digits = load_digits()
    images = (digits.images[..., None] / 16).astype(np.float32)
    layers = keras.layers
    image = x = keras.Input((8, 8, 1), name="image")
    x = layers.Conv2D(16, 3, activation="relu", name="conv")(x)
    x = layers.BatchNormalization(name="norm")(x)
    x = layers.MaxPooling2D(name="pool")(x)
    x = layers.Flatten(name="flatten")(x)
    x = layers.Dropout(0.2, name="dropout")(x)
    x = layers.Dense(32, activation="relu", name="hidden")(x)
    model = keras.Model(image, layers.Dense(10, "softmax", name="digit")(x), name="mnist")
    model.compile(
        "adam", "sparse_categorical_crossentropy", metrics=["accuracy"], jit_compile=False
    )
    train, rest = images[:1500], images[1500:]
    model.fit(train, digits.target[:1500], epochs=_EPOCHS.value, verbose=0)
    accuracy = model.evaluate(rest, digits.target[1500:], verbose=0)[1]
    print(f"accuracy on {len(rest)} digits that it has not seen: {accuracy:.1%}")
    out = Path(_OUT.value)
    out.mkdir(parents=True, exist_ok=True)
    model.save(out / "mnist.keras")
    if _SAVED_MODEL.value:
        model.export(out / "tf_model", verbose=False)
    some = rest[:20]
    np.savez(out / "features.npz", image=some, predictions=model.predict(some, verbose=0))


if __name__ == "__main__":
    app.run(_main)
