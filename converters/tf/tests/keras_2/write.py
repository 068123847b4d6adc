"""Writes `models.zip`: models that Keras 2 wrote, with what it predicted.

Keras 2 is the package `tf_keras`, which this repository does not lock: install it into a folder of
its own, then run `PYTHONPATH=FOLDER python write.py models.zip`. Of every model there is a
SavedModel `NAME` or a file `NAME.h5`. Beside it, `NAME.npz` has its inputs by name and all its
outputs as `output_0`, `output_1` and so on. Weights are random.
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras as keras  # type: ignore[import-not-found]
from tf_keras import layers

_RANDOM = np.random.default_rng(7)


def words() -> Any:
    """A bidirectional LSTM over words, padding masked."""
    x = keras.Input((6,), dtype="int32", name="words")
    y = layers.Embedding(9, 4, mask_zero=True)(x)
    y = layers.Bidirectional(layers.LSTM(3, recurrent_activation="hard_sigmoid"))(y)
    return keras.Model(x, layers.Dense(2, activation="softmax", name="kind")(y))


def image() -> Any:
    """Convolutions with batch norm."""
    x = keras.Input((8, 8, 2), name="image")
    y = layers.Conv2D(4, 3, strides=2, padding="same", use_bias=False)(x)
    y = layers.ReLU(6.0)(layers.BatchNormalization()(y))
    y = layers.SeparableConv2D(3, 3, activation="swish")(y)
    y = layers.Dropout(0.3)(layers.Flatten()(y))
    return keras.Model(x, layers.Dense(3, activation="hard_sigmoid")(y))


class _Subclassed(keras.Model):  # type: ignore[misc]
    """A model that is code."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = [layers.Dense(5, activation="tanh") for _ in range(2)]
        self.norm = layers.LayerNormalization()
        self.attention = layers.MultiHeadAttention(2, 3)

    def call(self, x: Any, training: bool = False) -> Any:
        for block in self.blocks:
            x = block(x) + x
        return tf.reduce_mean(self.norm(self.attention(x, x)), axis=1)


def subclassed() -> Any:
    """A model that is code."""
    model = _Subclassed()
    model._set_save_spec(tf.TensorSpec((None, 4, 5), tf.float32, name="frames"))
    model(np.zeros((2, 4, 5), np.float32))
    return model


def nested() -> Any:
    """Models in a model, called more than once."""
    x = keras.Input((6,))
    inner = keras.Model(x, layers.Dense(6, activation="tanh")(x))
    plain = keras.Sequential([layers.Dense(6, activation="relu"), layers.Dense(6)])
    outer = keras.Sequential([keras.Input((6,)), inner, layers.Dense(4)])
    x = keras.Input((6,), name="x")
    y = layers.Add()([inner(x), plain(inner(inner(x)))])
    return keras.Model(x, [layers.Dense(2)(y), outer(plain(x))])


def ops() -> Any:
    """Functions of TensorFlow between layers, constants first and last."""
    x = keras.Input((5, 6), name="x")
    parts = tf.split(x, 2, axis=-1)
    outputs = [
        1 - x[:, 1:] * 2,
        x[..., ::2, tf.newaxis],
        tf.nn.relu(tf.concat([x, x * x], -1) @ tf.ones((12, 2))),
        tf.reshape(tf.reduce_mean(x, axis=1, keepdims=True) / 3.0, (-1, 6)),
        parts[0] - parts[1],
        tf.cast(tf.math.greater(x, tf.abs(parts[0][:, :, :1])), tf.float32),
    ]
    return keras.Model(x, outputs)


def sequences() -> Any:
    """Layers of sequences, each by itself."""
    x = keras.Input((5, 6), name="x")
    states = layers.LSTM(3, return_sequences=True, return_state=True)(x)
    outputs = [
        layers.LSTM(3)(states[0], initial_state=states[1:]),
        layers.GRU(3, reset_after=False, recurrent_activation="hard_sigmoid")(x),
        layers.Bidirectional(layers.GRU(3), merge_mode="mul")(layers.Masking()(x)),
        layers.RNN([layers.LSTMCell(3), layers.GRUCell(2)])(x),
        layers.MultiHeadAttention(2, 3)(x, x, use_causal_mask=True),
        layers.Attention(use_scale=True)([x, x]),
        layers.AdditiveAttention()([x, x]),
        layers.SeparableConv1D(3, 2, activation="hard_sigmoid")(x),
        layers.Conv1DTranspose(3, 2, strides=2)(x),
        layers.DepthwiseConv1D(2)(x),
        layers.Conv1D(3, 2, padding="causal", dilation_rate=2)(x),
        layers.SpatialDropout1D(0.2)(x) * 2.0,
        layers.LayerNormalization()(x),
        layers.BatchNormalization()(x),
        layers.LeakyReLU(alpha=0.1)(x),
        layers.LeakyReLU()(x),
        layers.ThresholdedReLU(0.3)(x),
        layers.PReLU()(x),
        layers.TimeDistributed(layers.Dense(2, activation="hard_sigmoid"))(x),
        layers.Activation("hard_sigmoid")(x),
    ]
    return keras.Model(x, outputs)


def images() -> Any:
    """Layers of images, each by itself."""
    x = keras.Input((3, 8, 6, 4), name="video")
    y = x[:, 0]
    outputs = [
        layers.ConvLSTM2D(2, 2)(x),
        layers.SeparableConv2D(3, 2)(y),
        layers.DepthwiseConv2D(2)(y),
        layers.Conv2DTranspose(3, 2, strides=2)(y),
        layers.Conv2D(4, 2, groups=2)(y),
        layers.UpSampling2D(2, interpolation="bilinear")(y),
        layers.Resizing(5, 9)(y),
        layers.RandomFlip()(y) * 2.0,
        layers.RandomRotation(0.2)(y) * 2.0,
        layers.RandomZoom(0.2)(y) * 2.0,
        layers.RandomTranslation(0.2, 0.2)(y) * 2.0,
        layers.RandomContrast(0.2)(y) * 2.0,
        layers.SpatialDropout2D(0.2)(y) * 2.0,
    ]
    return keras.Model(x, outputs)


SAVED = (words, image, subclassed)
FILES = (words, image, nested, ops, sequences, images)


def _arrays(model: Any) -> dict[str, Any]:
    specs = model.save_spec()[0][0]
    found = {}
    for spec in tf.nest.flatten(specs):
        shape = (3, *spec.shape[1:])
        whole = spec.dtype.is_integer
        data = _RANDOM.integers(0, 5, shape) if whole else _RANDOM.normal(0, 2, shape)
        found[spec.name] = data.astype(spec.dtype.as_numpy_dtype)
    return found


def main(target: str) -> None:
    """Writes the archive."""
    models = {make.__name__: make() for make in dict.fromkeys((*SAVED, *FILES))}
    with (
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(target, "w", zipfile.ZIP_LZMA) as archive,
    ):
        for name, model in models.items():
            for weight in model.weights:
                values = _RANDOM.normal(0, 0.5, weight.shape)
                positive = "variance" in weight.name or "gamma" in weight.name
                weight.assign(np.abs(values) + 0.5 if positive else values)
            arrays = _arrays(model)
            found = tf.nest.flatten(model(next(iter(arrays.values())), training=False))
            results = {f"output_{i}": np.asarray(y) for i, y in enumerate(found)}
            np.savez(Path(folder, f"{name}.npz"), **arrays, **results)  # type: ignore[arg-type]
            if name in {make.__name__ for make in SAVED}:
                model.save(Path(folder, name), save_format="tf", include_optimizer=False)
            if name in {make.__name__ for make in FILES}:
                model.save(Path(folder, f"{name}.h5"))
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder).as_posix())


if __name__ == "__main__":
    main(sys.argv[1])
