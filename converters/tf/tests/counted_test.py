"""Results as large as the values say, against TensorFlow: the typed graph, and crates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from converters.tf import ir
from converters.tf.emit.crate import Features
from converters.tf.ir.bounds import most_of
from converters.tf.ir.expressions import OpenSizeError, unknown
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import trace_model
from converters.tf.load.shapes import FixedShapes
from converters.tf.lower.trace import Loaded
from converters.tf.tests.checks import TOLERANCE, difference, model_of
from converters.tf.tests.open_crates import Model, run
from converters.tf.tf2rust import graph_of
from tools.codegen.conversion import UnsupportedError

_EXAMPLES = 2


def masked(x: Any) -> list[Any]:
    """Rows that a mask keeps, whole and per example, and what is computed of them."""
    mask = x[..., 0] > 0.5
    rows = tf.boolean_mask(x, mask)
    first = tf.boolean_mask(x[0], mask[0])
    scores = tf.nn.softmax(tf.concat([rows, 2.0 * rows], 1))
    count = tf.cast(tf.shape(rows)[0], tf.float32)
    return [rows, tf.concat([first, rows], 0), scores, rows + count, first[:, 0] > 1.0]


def where(x: Any) -> list[Any]:
    """Places of what is not zero, of one axis and of three."""
    whole = tf.cast(x, tf.int32)
    return [tf.where(x > 1.0), tf.where(whole), tf.where(whole[0, :, 1])]


def suppressed(x: Any) -> list[Any]:
    """Boxes of which the best are kept, as many as are left."""
    boxes = tf.concat([tf.round(x[0] * 2.0), tf.round(x[0] * 2.0) + 3.0], -1)
    boxes = tf.gather(boxes, [0, 1, 3, 4], axis=-1)
    plain = tf.image.non_max_suppression(boxes, x[0, :, 0], 4, 0.4)
    kept, best = tf.image.non_max_suppression_with_scores(boxes, x[0, :, 0], 9, 0.4, 0.3)
    return [plain, tf.gather(boxes, kept), best, tf.reduce_sum(tf.gather(boxes, kept), 0)]


def unique(x: Any) -> list[Any]:
    """What there is of a list, where it is, and how often."""
    whole = tf.reshape(tf.cast(x * 2.0, tf.int32), [-1])
    found, index = tf.unique(whole)
    parts = tf.unique_with_counts(tf.round(x[0, :, 1]), tf.int64)
    return [found, index, *parts, tf.gather(found, index) - whole]


_BODIES = (masked, where, suppressed, unique)


class _Calls(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types.
    def __init__(self, body: Callable[[Any], list[Any]]) -> None:
        super().__init__()
        self.body = body

    def call(self, x: Any) -> Any:
        """Returns what the function does."""
        return self.body(x)


def _loaded(body: Callable[[Any], list[Any]]) -> Loaded:
    model = model_of([(7, 3)], lambda x: _Calls(body)(x))
    return trace_model(model, FixedShapes(batch=_EXAMPLES))


def _given(graph: ir.Graph) -> list[dict[str, ir.Array]]:
    """Returns inputs of which the last ones choose all, and nothing."""
    (port,) = graph.inputs
    shape = ir.shape_at(port.value.shape, _EXAMPLES)
    random = np.random.default_rng(5)
    arrays = [random.normal(size=shape) for _ in range(3)]
    arrays += [np.full(shape, 2.0), np.full(shape, -2.0)]
    return [{port.name: array.astype(np.float32)} for array in arrays]


@pytest.mark.parametrize("body", _BODIES, ids=lambda body: body.__name__)
def test_what_tensorflow_gives(body: Callable[[Any], list[Any]]) -> None:
    loaded = _loaded(body)
    graph = graph_of(loaded)
    for arrays in _given(graph):
        found, expected = interpret(graph, arrays), loaded.predict(arrays)
        for name, data in expected.items():
            assert difference(found[name], data) <= TOLERANCE, name


def test_crates(tmp_path: Path) -> None:
    models = []
    for body in _BODIES:
        loaded = _loaded(body)
        graph = graph_of(loaded)
        cases = [Features(arrays, loaded.predict(arrays)) for arrays in _given(graph)]
        models.append(Model(f"{body.__name__}_model", graph, cases))
    assert f"{len(models)} passed" in run(models, tmp_path, TOLERANCE)


def test_all_examples_together_are_refused() -> None:
    model = model_of([(7, 3)], lambda x: _Calls(masked)(x))
    with pytest.raises(UnsupportedError, match=r"the values of all examples \(.*--batch 1"):
        graph_of(trace_model(model))


def test_loops_are_refused() -> None:
    def body(x: Any) -> Any:
        def turn(row: Any) -> Any:
            return tf.reduce_sum(tf.boolean_mask(row, row[:, 0] > 0.0))

        return tf.map_fn(turn, x)

    model = model_of([(7, 3)], lambda x: _Calls(body)(x))
    with pytest.raises(UnsupportedError, match="from turn to turn of a loop"):
        graph_of(trace_model(model))


def test_the_most_that_a_size_can_be() -> None:
    steps = unknown("steps")
    count = unknown("count", 3 * steps)
    assert most_of(4 * count + 1) == 12 * steps + 1
    assert most_of((count + 1) // 2) == (3 * steps + 1) // 2
    assert most_of(steps - count) == steps
    assert most_of(7) == 7
    assert most_of(unknown("other", count)) == 3 * steps
    with pytest.raises(OpenSizeError):
        most_of(steps - (count + 1) // 2)
    # It may be 0, which an open dimension is not.
    assert steps >= 1
    assert count >= 0
    with pytest.raises(OpenSizeError):
        assert count >= 1
