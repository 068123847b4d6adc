"""Models that leave dimensions open besides the batch, against Keras at several sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from converters.tf import ir
from converters.tf.describe.features import with_sizes
from converters.tf.errors import FeaturesError
from converters.tf.ir.expressions import size_at
from converters.tf.ir.fixed import multiples, open_dims
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load, trace_model
from converters.tf.load.shapes import FixedShapes
from converters.tf.lower.trace import Loaded
from converters.tf.plan.arena import plan_memory
from converters.tf.tests.checks import TOLERANCE
from converters.tf.tests.open_models import IMAGES, SEQUENCES, heard, ranked, two_inputs, u_net
from converters.tf.tf2rust import graph_of
from tools.codegen.conversion import UnsupportedError

LENGTHS = (1, 2, 7, 40)
SIDES = ((8, 8), (9, 13), (32, 17))


def _given(graph: ir.Graph, sizes: dict[str, int]) -> dict[str, ir.Array]:
    random = np.random.default_rng(sum(sizes.values()))
    arrays: dict[str, ir.Array] = {}
    for port in graph.inputs:
        shape = [3 if isinstance(d, ir.Batch) else size_at(d, sizes) for d in port.value.shape]
        kind = port.value.dtype.numpy
        data = random.normal(size=shape) if kind.kind == "f" else random.integers(0, 20, shape)
        arrays[port.name] = data.astype(kind)
    return arrays


def _agree(loaded: Loaded, graph: ir.Graph, given: dict[str, ir.Array]) -> None:
    expected = loaded.predict(given)
    found = interpret(graph, given)
    for name, data in expected.items():
        assert found[name].shape == data.shape
        scale = max(1.0, float(np.abs(data).max()))
        assert np.abs(found[name] - data).max() <= TOLERANCE * scale, name


@pytest.mark.parametrize("make", SEQUENCES, ids=lambda make: make.__name__)
def test_sequences(make: Callable[[], keras.Model]) -> None:
    loaded = trace_model(make())
    graph = graph_of(loaded)
    assert open_dims(graph) == ("steps",)
    assert plan_memory(graph).regions
    for steps in LENGTHS:
        _agree(loaded, graph, _given(graph, {"steps": steps}))


class _Spaced(layers.Layer):  # type: ignore[misc]  # Keras has no types.
    """Adds a number to each step: from -1 to 2, and to their number itself."""

    def call(self, x: Any) -> Any:
        """Returns the steps. Between the ends of `tf.linspace` has to be a number."""
        steps = tf.shape(x)[1]
        numbers = tf.linspace([-1.0, 0.0], [2.0, tf.cast(steps, tf.float32)], steps, axis=1)
        return x + tf.linspace(-1.0, 2.0, steps)[:, None] + tf.reduce_sum(numbers, 0)[:, None]


def _spaced() -> keras.Model:
    x = keras.Input((None, 3), name="x")
    return keras.Model(x, _Spaced()(x))


@pytest.mark.parametrize(("make", "least"), [(heard, 8), (ranked, 3), (_spaced, 3)])
def test_sequences_that_may_be_too_short(make: Callable[[], keras.Model], least: int) -> None:
    loaded = trace_model(make())
    graph = graph_of(loaded)
    for steps in (least, 11, 12, 57):
        _agree(loaded, graph, _given(graph, {"steps": steps}))


def test_a_layer_of_each_of_open_steps() -> None:
    """Keras computes as many steps as the batch has elements, and the converter refuses that."""
    x = keras.Input((None, 4))
    model = keras.Model(x, layers.TimeDistributed(layers.Dense(3))(x))
    with pytest.raises(UnsupportedError, match=r"used as data .* give .* with --input_shape"):
        graph_of(trace_model(model))
    loaded = trace_model(model, FixedShapes({"": (5, 4)}))
    graph = graph_of(loaded)
    _agree(loaded, graph, _given(graph, {}))


def test_a_window_longer_than_most_sequences_gets_one() -> None:
    """As of a model of sounds, whose first window has hundreds of samples."""
    x = keras.Input((None, 1))
    graph = graph_of(trace_model(keras.Model(x, layers.Conv1D(2, 600, strides=200)(x))))
    assert with_sizes(graph, None).inputs[0].value.shape[1:] == (1031, 1)
    x = keras.Input((None, 1))
    graph = graph_of(trace_model(keras.Model(x, layers.Conv1D(2, 20_000)(x))))
    with pytest.raises(FeaturesError, match=r"steps are 16411 \(.* give sizes by --input_shape"):
        with_sizes(graph, None)


@pytest.mark.parametrize("make", IMAGES, ids=lambda make: make.__name__)
def test_images(make: Callable[[], keras.Model]) -> None:
    loaded = trace_model(make(), FixedShapes({"": (None, None, 3)}))
    graph = graph_of(loaded)
    assert open_dims(graph) == ("height", "width")
    for height, width in SIDES:
        _agree(loaded, graph, _given(graph, {"height": height, "width": width}))


def test_scales_that_meet_again_need_multiples() -> None:
    loaded = trace_model(u_net(), FixedShapes({"": (None, None, 3)}))
    graph = graph_of(loaded)
    assert open_dims(graph) == ("height", "width")
    assert multiples(graph) == {"height": 4, "width": 4}
    (port,) = graph.inputs
    assert str(port.value.shape[1]) == "4*(height/4)"
    for height, width in ((4, 4), (8, 20), (32, 16)):
        _agree(loaded, graph, _given(graph, {"height": height, "width": width}))
    given = np.zeros((1, 8, 6, 3), np.float32)
    with pytest.raises(ValueError, match="width is 6, which is not a multiple of 4"):
        interpret(graph, {port.name: given})


def test_dimensions_that_have_to_be_the_same_become_one() -> None:
    loaded = trace_model(two_inputs())
    graph = graph_of(loaded)
    (name,) = open_dims(graph)
    for steps in LENGTHS:
        _agree(loaded, graph, _given(graph, {name: steps}))
    given = _given(graph, {name: 5})
    first, second = given
    given[second] = given[second][:, :4]
    with pytest.raises(ValueError, match=f"{name} is 5, and 4 in input {second}"):
        interpret(graph, {first: given[first], second: given[second]})


def test_dimensions_that_differ_stay_apart() -> None:
    x, y = keras.Input((None, 4)), keras.Input((None, 4))
    model = keras.Model([x, y], layers.MultiHeadAttention(2, 3)(x, y))
    loaded = trace_model(model)
    graph = graph_of(loaded)
    first, second = open_dims(graph)
    for sizes in ((1, 5), (6, 2), (3, 3)):
        _agree(loaded, graph, _given(graph, dict(zip((first, second), sizes, strict=True))))


def test_saved_models_leave_dimensions_open_too(tmp_path: Path) -> None:
    SEQUENCES[0]().export(tmp_path / "m", verbose=False)
    loaded = load(tmp_path / "m", LoadOptions())
    graph = graph_of(loaded)
    for steps in LENGTHS:
        _agree(loaded, graph, _given(graph, {"steps": steps}))


def test_parts_of_a_sequence_need_multiples() -> None:
    x = keras.Input((None, 4))
    for parts in ((-1, 3, 4), (-1, 6, 2)):
        graph = graph_of(loaded := trace_model(keras.Model(x, keras.ops.reshape(x, parts))))
        assert multiples(graph) == {"steps": 3}
        for steps in (3, 12):
            _agree(loaded, graph, _given(graph, {"steps": steps}))


def test_what_an_op_needs_to_know_is_refused_by_name() -> None:
    x = keras.Input((None, 4))
    model = keras.Model(x, keras.ops.reshape(x, (-1, 300, 4)))
    with pytest.raises(UnsupportedError, match=r"batch\*4\*steps / 1200 \(.*--input_shape\)"):
        graph_of(trace_model(model))


def test_what_keras_needs_to_know_is_said() -> None:
    x = keras.Input((None, None, 3))
    model = keras.Model(x, layers.UpSampling2D(interpolation="bilinear")(x))
    shapes = FixedShapes({"": (None, None, 3)})
    with pytest.raises(UnsupportedError, match=r"Keras can't trace it: .*--input_shape\)"):
        trace_model(model, shapes)


def test_a_fixed_dimension_is_fixed() -> None:
    graph = graph_of(trace_model(SEQUENCES[0](), FixedShapes({"": (5, 6)})))
    assert open_dims(graph) == ()


class _Meeting(layers.Layer):  # type: ignore[misc]  # Keras has no types.
    """Its examples meet each other."""

    def call(self, x: Any) -> Any:
        return x[:1] + keras.ops.mean(x) * keras.ops.cast(keras.ops.shape(x)[0], "float32")


@pytest.mark.parametrize("batch", [1, 3])
def test_examples_that_meet_each_other_need_a_fixed_batch(batch: int, tmp_path: Path) -> None:
    x = keras.Input((4,))
    model = keras.Model(x, layers.Dense(2)(_Meeting()(layers.Dense(3)(x))))
    with pytest.raises(UnsupportedError):
        graph_of(trace_model(model))
    model.export(tmp_path / "m", verbose=False)
    shapes = FixedShapes(batch=batch)
    given = {"": np.random.default_rng(1).normal(size=(batch, 4)).astype(np.float32)}
    for loaded in (trace_model(model, shapes), load(tmp_path / "m", LoadOptions(shapes))):
        graph = graph_of(loaded)
        (port,) = graph.inputs
        assert port.value.shape == (batch, 4)
        _agree(loaded, graph, {port.name: given[""]})
