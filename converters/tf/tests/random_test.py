"""Random numbers of a seed that is an input or a state, against TensorFlow's stateless ops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from converters.tf.emit.support import problems
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load, trace_model
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


class Draws(keras.layers.Layer):  # type: ignore[misc]
    """The sampling of Keras' own example of a variational autoencoder: its seed is a variable."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seed_generator = keras.random.SeedGenerator(1337)

    def call(self, inputs: Any) -> Any:
        """Returns a sample for each mean and logarithm of a variance."""
        mean, log_variance = inputs
        noise = keras.random.normal(keras.ops.shape(mean), seed=self.seed_generator)
        return mean + keras.ops.exp(0.5 * log_variance) * noise


def _autoencoder() -> Any:
    x = keras.Input((6,), name="x")
    hidden = keras.layers.Dense(5, activation="relu")(x)
    mean, log_variance = keras.layers.Dense(2)(hidden), keras.layers.Dense(2)(hidden)
    decoded = keras.layers.Dense(6, activation="sigmoid")(Draws()([mean, log_variance]))
    return keras.Model(x, [decoded, mean])


def _in_training() -> Any:
    x = keras.Input((6,), name="x")
    noisy = keras.layers.GaussianNoise(0.5, seed=3)(x, training=True)
    return keras.Model(x, keras.layers.Dropout(0.4, seed=4)(noisy, training=True))


@pytest.mark.parametrize("make", [_autoencoder, _in_training])
def test_layers_with_seeds_of_their_own(make: Callable[[], Any], tmp_path: Path) -> None:
    """Their seeds go on from call to call; a call that begins anew would draw the same again."""
    model = make()
    model.export(tmp_path / "m", verbose=False)
    saved = tf.saved_model.load(tmp_path / "m")
    with pytest.raises(UnsupportedError, match=r"a seed that is the same .* \(pass --stateful if"):
        convert(load(tmp_path / "m", LoadOptions()).trace)
    loaded = load(tmp_path / "m", LoadOptions(stateful=True))
    graph = convert(loaded.trace)
    assert problems(graph) == []
    state = {s.given: s.first for s in loaded.states}
    (name,) = [port.name for port in graph.inputs if port.name not in state]
    x = np.random.default_rng(2).normal(size=(3, 6)).astype(np.float32)
    firsts = []
    for _ in range(3):
        found = interpret(graph, {name: x, **state})
        expected = tf.nest.flatten(saved.serve(x))
        outputs = [port.name for port in graph.outputs][: len(expected)]
        for output, data in zip(outputs, expected, strict=True):
            assert difference(found[output], np.asarray(data)) <= TOLERANCE
        firsts.append(found[outputs[0]])
        state = {s.given: found[s.following] for s in loaded.states}
    assert difference(firsts[1], firsts[0]) > TOLERANCE
    assert difference(firsts[2], firsts[1]) > TOLERANCE


def test_a_seed_of_the_model_is_refused() -> None:
    class Fixed(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x + tf.random.stateless_normal(tf.shape(x), [1, 2])

    x = keras.Input((3,))
    with pytest.raises(UnsupportedError, match=r"the same in every call \(.*seed an input"):
        convert(trace_model(keras.Model(x, Fixed()(x))).trace)
