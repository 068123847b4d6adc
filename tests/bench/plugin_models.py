"""The models that `plugin_vs_cpu` measures."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import keras
import numpy as np
import tensorflow as tf

from tests.bench.plugin_cases import indices, normal

Tensor = Any
Step = Callable[[], Tensor]


@dataclasses.dataclass(frozen=True)
class ModelCase:
    """A step of a model.

    Attributes:
        name: What the table says.
        make: Builds the model on the current device and returns its step.
        is_graph: Whether the step becomes a graph; else it calls graphs itself.
        rounds: Pairs of runs, at most: 0 for as many as asked for.
    """

    name: str
    make: Callable[[], Step]
    is_graph: bool = True
    rounds: int = 0


def _with_policy(policy: str, build: Callable[[], keras.Model]) -> keras.Model:
    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy(policy)
    try:
        return build()
    finally:
        keras.config.set_dtype_policy("float32")


def _trained(model: keras.Model) -> Callable[[Tensor, Tensor], Tensor]:
    """Returns the training step of a classifier, with Adam."""
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def step(x: Tensor, y: Tensor) -> Tensor:
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    return step


def _training(
    build: Callable[[], keras.Model],
    x: Callable[[], np.ndarray[Any, Any]],
    classes: int = 10,
    policy: str = "float32",
) -> Callable[[], Step]:
    """A training step on one batch."""

    def make() -> Step:
        step = _trained(_with_policy(policy, build))
        batch = x()
        inputs, labels = tf.constant(batch), tf.constant(indices(len(batch), classes))
        return lambda: step(inputs, labels)

    return make


def _mlp() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((784,)),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(10),
        ]
    )


def _cnn() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(64, 3, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(10),
        ]
    )


def _bert(layers: int) -> Callable[[], keras.Model]:
    """Layers as wide as those of BERT-base: 768 numbers a token, 12 heads, 3072 in the middle."""

    def build() -> keras.Model:
        tokens = keras.Input((128,), dtype="int32")
        y = keras.layers.Embedding(8000, 768)(tokens)
        for _ in range(layers):
            attention = keras.layers.MultiHeadAttention(12, 64)(y, y)
            y = keras.layers.LayerNormalization()(keras.layers.Add()([y, attention]))
            inner = keras.layers.Dense(768)(keras.layers.Dense(3072, activation="gelu")(y))
            y = keras.layers.LayerNormalization()(keras.layers.Add()([y, inner]))
        first = keras.layers.Dense(768, activation="tanh")(y[:, 0])
        return keras.Model(tokens, keras.layers.Dense(10)(first))

    return build


def _lstm() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((50, 64)),
            keras.layers.LSTM(128, return_sequences=True),
            keras.layers.LSTM(128),
            keras.layers.Dense(10),
        ]
    )


def _efficient() -> keras.Model:
    return keras.applications.EfficientNetB0(
        weights=None, input_shape=(128, 128, 3), classes=10, classifier_activation=None
    )


def _resnet(batch: int, policy: str = "float32") -> Callable[[], Step]:
    def make() -> Step:
        model = _with_policy(policy, lambda: keras.applications.ResNet50(weights=None))
        x = tf.constant(normal(batch, 224, 224, 3))
        return lambda: model(x, training=False)

    return make


BATCHES: Final = 16
"""Batches of the data that a pipeline prepares."""


def _beside_data() -> Step:
    """An epoch of training on images that a pipeline changes and batches meanwhile."""
    step = tf.function(_trained(_with_policy("float32", _cnn)), jit_compile=False)
    images, labels = normal(BATCHES * 32, 28, 28, 1), indices(BATCHES * 32, 10)

    def changed(image: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        image = tf.image.random_flip_left_right(image, seed=1)
        return tf.image.random_crop(tf.pad(image, [[2, 2], [2, 2], [0, 0]]), (28, 28, 1)), label

    home = tf.zeros([]).device
    with tf.device("/device:CPU:0"):
        data = tf.data.Dataset.from_tensor_slices((images, labels))
        data = data.shuffle(len(labels), seed=1).map(changed, tf.data.AUTOTUNE)
        data = data.batch(32).prefetch(2)

    def epoch() -> Tensor:
        loss = None
        # Data come from the CPU, whichever device trains.
        with tf.device("/device:CPU:0"):
            for x, y in data:
                with tf.device(home):
                    loss = step(x, y)
        return loss

    return epoch


MODELS: Final[tuple[ModelCase, ...]] = (
    ModelCase("MLP training step, batch 128", _training(_mlp, lambda: normal(128, 784))),
    ModelCase("CNN training step, batch 32", _training(_cnn, lambda: normal(32, 28, 28, 1))),
    ModelCase(
        "CNN training step, batch 32, mixed_bfloat16",
        _training(_cnn, lambda: normal(32, 28, 28, 1), policy="mixed_bfloat16"),
    ),
    ModelCase(
        "BERT-base training step, 2 of 12 layers, 4 x 128 tokens",
        _training(_bert(2), lambda: indices((4, 128), 8000)),
        rounds=7,
    ),
    ModelCase(
        "BERT-base training step, 2 of 12 layers, 4 x 128 tokens, mixed_bfloat16",
        _training(_bert(2), lambda: indices((4, 128), 8000), policy="mixed_bfloat16"),
        rounds=7,
    ),
    ModelCase(
        "LSTM training step, 2 layers of 128, 50 steps, batch 32",
        _training(_lstm, lambda: normal(32, 50, 64)),
    ),
    ModelCase(
        "EfficientNetB0 training step, 128 x 128, batch 4",
        _training(_efficient, lambda: normal(4, 128, 128, 3)),
        rounds=7,
    ),
    ModelCase(
        f"CNN training beside its data, {BATCHES} batches of 32", _beside_data, is_graph=False
    ),
    ModelCase("ResNet50 inference, batch 1", _resnet(1)),
    ModelCase("ResNet50 inference, batch 1, mixed_bfloat16", _resnet(1, "mixed_bfloat16")),
    ModelCase("ResNet50 inference, batch 8", _resnet(8)),
)
