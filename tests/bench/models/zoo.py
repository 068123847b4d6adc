"""The models of the benchmark: Keras models with random weights that are always the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Entry:
    """A model.

    Attributes:
        name: Its name in the table.
        make: Makes it.
    """

    name: str
    make: Callable[[], Any]


def _mlp(sizes: tuple[int, ...], last: str | None) -> Callable[[], Any]:
    def make() -> Any:
        import keras

        model = keras.Sequential([keras.Input((sizes[0],))])
        for units in sizes[1:-1]:
            model.add(keras.layers.Dense(units, activation="relu"))
        model.add(keras.layers.Dense(sizes[-1], activation=last))
        return model

    return make


def _text_cnn() -> Any:
    import keras
    from keras import layers

    x = keras.Input((100,), dtype="int32")
    e = layers.Embedding(5000, 64)(x)
    branches = [
        layers.GlobalMaxPooling1D()(layers.Conv1D(64, size, activation="relu")(e))
        for size in (3, 5)
    ]
    h = layers.Dense(64, activation="relu")(layers.Concatenate()(branches))
    return keras.Model(x, layers.Dense(2, activation="softmax")(h))


def _lstm() -> Any:
    import keras

    return keras.Sequential([keras.Input((100, 64)), keras.layers.LSTM(128), keras.layers.Dense(5)])


def _transformer() -> Any:
    import keras
    from keras import layers

    x = h = keras.Input((128, 256))
    for _ in range(4):
        h = layers.LayerNormalization()(h + layers.MultiHeadAttention(4, 64)(h, h))
        f = layers.Dense(256)(layers.Dense(1024, activation="gelu")(h))
        h = layers.LayerNormalization()(h + f)
    return keras.Model(x, layers.Dense(10)(layers.GlobalAveragePooling1D()(h)))


def _application(name: str) -> Callable[[], Any]:
    def make() -> Any:
        import keras

        shape = {"input_shape": (224, 224, 3)}
        return getattr(keras.applications, name)(weights=None, **shape)

    return make


ZOO = (
    Entry("MLP 6-64-8-4", _mlp((6, 64, 8, 4), "softmax")),
    Entry("MLP 784-512-512-10", _mlp((784, 512, 512, 10), "softmax")),
    Entry("TextCNN", _text_cnn),
    Entry("LSTM128, T=100", _lstm),
    Entry("Transformer 4x256, T=128", _transformer),
    Entry("MobileNetV3Small", _application("MobileNetV3Small")),
    Entry("MobileNetV2", _application("MobileNetV2")),
    Entry("EfficientNetB0", _application("EfficientNetB0")),
    Entry("DenseNet121", _application("DenseNet121")),
    Entry("ResNet50", _application("ResNet50")),
)


def make(entry: Entry) -> Any:
    """Returns the model with its weights."""
    import keras

    keras.utils.set_random_seed(5)
    return entry.make()


def sample(model: Any, batch: int = 1) -> Any:
    """Returns a batch of examples."""
    random = np.random.default_rng(3)
    tensor = model.inputs[0]
    shape = (batch, *tensor.shape[1:])
    if "int" in str(tensor.dtype):
        return random.integers(0, 5000, shape).astype(np.int32)
    return random.normal(size=shape).astype(np.float32)
