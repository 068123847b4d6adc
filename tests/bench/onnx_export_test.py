"""What is exported as ONNX for the peers comes back the same: tf2rust reads it again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest
from keras import layers

from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load, trace_model
from converters.tf.lower.convert import convert
from tests.bench.models.onnx_export import export


def _images() -> keras.Model:
    x = image = keras.Input((16, 16, 3))
    x = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu")(x)
    y = layers.BatchNormalization()(layers.DepthwiseConv2D(3, padding="same")(x))
    x = layers.Add()([x, layers.ReLU(6.0)(y)])
    x = layers.MaxPooling2D()(layers.Concatenate()([x, y]))
    return keras.Model(image, layers.Dense(5, "softmax")(layers.GlobalAveragePooling2D()(x)))


def _words() -> keras.Model:
    words = keras.Input((12,), dtype="int32")
    x = layers.LSTM(6, return_sequences=True)(layers.Embedding(50, 8)(words))
    x = layers.LayerNormalization()(x)
    return keras.Model(words, layers.Dense(2, "sigmoid")(layers.Flatten()(x)))


# Sequences of a batch are transposed for ONNX's LSTM, and back.
@pytest.mark.parametrize(
    ("make", "batch", "transposed"),
    [(_images, 1, 0), (_images, 3, 0), (_words, 1, 0), (_words, 3, 2)],
)
def test_round_trip(
    tmp_path: Path, make: Callable[[], keras.Model], batch: int, transposed: int
) -> None:
    keras.utils.set_random_seed(3)
    graph = convert(trace_model(make()).trace)
    path = tmp_path / "model.onnx"
    path.write_bytes(export(graph, batch).SerializeToString())
    again = convert(load(path, LoadOptions()).trace)
    (port,) = graph.inputs
    random = np.random.default_rng(5)
    shape = (batch, *(d for d in port.value.shape[1:] if isinstance(d, int)))
    data = random.integers(0, 50, shape) if len(shape) == 2 else random.normal(size=shape)
    arrays = {port.name: data.astype(port.value.dtype.numpy)}
    (expected,) = interpret(graph, arrays).values()
    (found,) = interpret(again, arrays).values()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    kinds = [type(node.op).__name__ for node in again.nodes]
    assert kinds.count("Transpose") == transposed
    assert kinds.count("Conv") == [type(n.op).__name__ for n in graph.nodes].count("Conv")
