"""Random numbers of a seed that is an input, against TensorFlow's stateless ops."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from converters.tf.emit.support import problems
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import trace_model
from converters.tf.lower.convert import convert
from converters.tf.tests.checks import TOLERANCE, difference
from tools.codegen.conversion import UnsupportedError

_SEEDS = ([0, 0], [7, -3], [-1, 2**31 - 1], [-(2**31), 12345])


class Sampling(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types.
    """What a variational autoencoder does between its halves."""

    def call(self, mean: Any, seed: Any) -> list[Any]:
        """Returns samples, uniform numbers, and such of another range and of a fixed shape."""
        shape = tf.shape(mean)
        noise = tf.random.stateless_normal(shape, seed)
        uniform = tf.random.stateless_uniform(shape, seed + 1)
        other = tf.random.stateless_uniform([3, 5], seed, -2.0, 3.0)
        return [mean + 0.5 * noise, uniform * mean, other, noise]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("width", [1, 6])
def test_samples(dtype: str, width: int) -> None:
    mean = keras.Input((width,))
    seed = keras.Input(batch_shape=(2,), dtype=dtype)
    loaded = trace_model(keras.Model([mean, seed], Sampling()(mean, seed)))
    graph = convert(loaded.trace)
    assert problems(graph) == []
    first, second = (port.name for port in graph.inputs)
    for batch, numbers in zip((1, 2, 3, 17), _SEEDS, strict=True):
        x = np.random.default_rng(batch).normal(size=(batch, width)).astype(np.float32)
        arrays = {first: x, second: np.array(numbers, dtype)}
        found, expected = interpret(graph, arrays), loaded.predict(arrays)
        for name, data in expected.items():
            assert difference(found[name], data) <= TOLERANCE, name


def test_a_seed_of_the_model_is_refused() -> None:
    class Fixed(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x + tf.random.stateless_normal(tf.shape(x), [1, 2])

    x = keras.Input((3,))
    with pytest.raises(UnsupportedError, match=r"random numbers \(.*seed"):
        convert(trace_model(keras.Model(x, Fixed()(x))).trace)
