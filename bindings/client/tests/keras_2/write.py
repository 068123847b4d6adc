"""Writes models of Keras 2 as `.h5` files, and some as `.keras`, into the folder of this file.

Keras 2 is the package `tf_keras`, which this repository does not lock: install it into a folder of
its own, then run `PYTHONPATH=FOLDER python write.py [MODEL..]`.

`NAME.npz` has what Keras 2 computes: the inputs `x0` and so on, the outputs `y0` of `NAME.h5` and
the truths `truth0`. It also has the loss of a step with a rate of 0.05, and the outputs `after0`
after that step. Weights are random.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras as keras  # type: ignore[import-not-found]
from tf_keras import layers

_FOLDER = Path(__file__).parent
_RANDOM = np.random.default_rng(11)


def words() -> Any:
    """Recurrent layers over words, padding masked."""
    x = keras.Input((6,), dtype="int32", name="words")
    y = layers.Embedding(9, 4, mask_zero=True)(x)
    both = layers.Bidirectional(layers.LSTM(3, recurrent_activation="hard_sigmoid"))(y)
    back = layers.Bidirectional(layers.GRU(3), backward_layer=layers.GRU(3, go_backwards=True))(y)
    return keras.Model(x, layers.Dense(2, activation="softmax")(layers.Concatenate()([both, back])))


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
        layers.LayerNormalization()(x),
        layers.SpatialDropout1D(0.0)(layers.BatchNormalization()(x)),
        layers.LeakyReLU(alpha=0.1)(x),
        layers.ThresholdedReLU(0.3)(x),
        layers.PReLU()(x),
        layers.TimeDistributed(layers.Dense(2, activation="hard_sigmoid"))(x),
        layers.Dense(2, activation=layers.LeakyReLU(alpha=0.3), kernel_regularizer="l2")(x),
        layers.Dense(2, kernel_constraint=keras.constraints.MaxNorm(0.5))(x),
        layers.Activation("hard_sigmoid")(x),
    ]
    return keras.Model(x, outputs)


def image() -> Any:
    """A sequence of layers of images; one of them is frozen."""
    frozen = layers.BatchNormalization(trainable=False)
    return keras.Sequential(
        [
            layers.Conv2D(4, 3, 2, padding="same", use_bias=False, input_shape=(8, 8, 2)),
            layers.BatchNormalization(),
            layers.ReLU(6.0),
            layers.SeparableConv2D(3, 3, activation="swish"),
            layers.DepthwiseConv2D(2, padding="same"),
            layers.Conv2DTranspose(3, 2, strides=2),
            frozen,
            layers.UpSampling2D(2, interpolation="bilinear"),
            layers.AveragePooling2D(),
            layers.Dropout(0.0),
            layers.Flatten(),
            layers.Dense(3, activation="tanh"),
        ]
    )


def nested() -> Any:
    """Models in a model, called more than once, with states before other weights.

    A mean that several calls move depends on their order, so those of shared models don't move.
    """
    x = keras.Input((6,))
    y = layers.BatchNormalization(momentum=1.0)(layers.Dense(6, activation="tanh")(x))
    inner = keras.Model(x, layers.Dense(6)(y))
    plain = keras.Sequential(
        [
            layers.Dense(6, activation="relu"),
            layers.BatchNormalization(momentum=1.0),
            layers.Dense(6),
        ]
    )
    frozen = keras.Sequential([keras.Input((6,)), layers.Dense(4), layers.BatchNormalization()])
    frozen.trainable = False
    x = keras.Input((6,), name="x")
    y = layers.Add()([inner(x), plain(inner(inner(x)))])
    return keras.Model(x, [layers.Dense(2)(y), frozen(plain(x)), inner(y)])


def frames() -> Any:
    """Models that compute each step of a sequence."""
    frame = keras.Input((5, 5, 2))
    y = layers.Flatten()(layers.Conv2D(3, 3, strides=2, activation="relu")(frame))
    eye = keras.Model(frame, layers.Dense(4)(layers.BatchNormalization(momentum=1.0)(y)))
    row = keras.Sequential([keras.Input((4,)), layers.Dense(3, activation="hard_sigmoid")])
    x = keras.Input((3, 5, 5, 2), name="x")
    y = layers.TimeDistributed(eye)(x)
    return keras.Model(x, layers.GRU(2)(layers.TimeDistributed(row)(y)))


def mixed() -> Any:
    """Layers that compute in float16 with float32 weights, and a last one in float32."""
    before = keras.mixed_precision.global_policy()
    keras.mixed_precision.set_global_policy("mixed_float16")
    x = keras.Input((6, 4), name="x")
    y = layers.Conv1D(5, 3, padding="same", activation="relu")(x)
    y = layers.LayerNormalization()(layers.BatchNormalization()(y))
    y = layers.Dense(4, activation="tanh")(layers.Bidirectional(layers.LSTM(3))(y))
    model = keras.Model(x, layers.Dense(2, dtype="float32")(y))
    keras.mixed_precision.set_global_policy(before)
    return model


def lambdas() -> Any:
    """Functions between layers, which are not layers themselves."""
    x = keras.Input((4,), name="x")
    y = layers.Dense(3)(tf.nn.relu(x) * 2.0)
    return keras.Model(x, layers.Lambda(lambda z: z + 1.0)(y))


def _arrays(model: Any) -> list[Any]:
    """Random inputs."""
    found = []
    for spec in tf.nest.flatten(model.save_spec()[0][0]):
        shape = (4, *spec.shape[1:])
        whole = spec.dtype.is_integer
        data = _RANDOM.integers(0, 5, shape) if whole else _RANDOM.normal(0, 1, shape)
        found.append(data.astype(spec.dtype.as_numpy_dtype))
    return found


def _numbered(name: str, arrays: Any) -> dict[str, Any]:
    return {f"{name}{i}": np.asarray(array) for i, array in enumerate(tf.nest.flatten(arrays))}


def _write(make: Callable[[], Any]) -> None:
    name, model = make.__name__, make()
    for weight in model.weights:
        values = _RANDOM.normal(0, 0.5, weight.shape)
        positive = "variance" in weight.name or "gamma" in weight.name
        weight.assign(np.abs(values) + 0.5 if positive else values)
    model.save(_FOLDER / f"{name}.h5", include_optimizer=False)
    if make is lambdas:
        return
    if make in (sequences, nested, frames, mixed):
        model.save(_FOLDER / f"{name}.keras")
    if make in (nested, mixed):
        model.save_weights(_FOLDER / f"{name}_weights.h5")
    x = _arrays(model)
    y = model(x[0], training=False)
    truth = [_RANDOM.normal(0, 1, one.shape).astype("f") for one in tf.nest.flatten(y)]
    arrays = _numbered("x", x) | _numbered("y", y) | _numbered("truth", truth)
    model.compile(keras.optimizers.SGD(0.05), "mse")
    losses = model.train_on_batch(x[0], truth)
    arrays["loss"] = np.float32(tf.nest.flatten(losses)[0])
    arrays |= _numbered("after", model(x[0], training=False))
    np.savez(_FOLDER / f"{name}.npz", **arrays)


def main(names: Sequence[str]) -> None:
    """Writes the files, or those of some models."""
    for make in (words, sequences, image, nested, frames, mixed, lambdas):
        if not names or make.__name__ in names:
            _write(make)


if __name__ == "__main__":
    main(sys.argv[1:])
