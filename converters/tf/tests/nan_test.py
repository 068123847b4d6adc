"""NaN among what is compared: found, counted and sorted as by TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from converters.tf.ir.interpret import interpret
from converters.tf.tests.checks import checked

_NAN = float("nan")
_WIDTH = 24


def _rows() -> Any:
    """NaN and infinities among numbers, and rows of nothing but these."""
    random = np.random.default_rng(3)
    x = random.normal(size=(9, _WIDTH)).astype(np.float32)
    x[random.random(x.shape) < 0.3] = _NAN
    x[1, ::3], x[2, ::4] = np.inf, -np.inf
    x[3, :12], x[4], x[5], x[6] = _NAN, _NAN, np.inf, -np.inf
    x[7] = np.where(np.arange(_WIDTH) % 2, -np.inf, _NAN)
    x[8] = np.where(np.arange(_WIDTH) % 2, np.inf, _NAN)
    return x


def _checked(body: Callable[[Any], Any]) -> None:
    checked([(_WIDTH,)], body, given={"input": _rows()})


@pytest.mark.parametrize("find", [tf.argmax, tf.argmin])
def test_the_place_of_the_largest_or_smallest(find: Callable[..., Any]) -> None:
    """NaN is never chosen, and nothing but NaN gives place 0."""

    def body(x: Any) -> list[Any]:
        boxes = tf.reshape(x, [-1, 4, 6])
        return [find(x, 1), find(boxes, 1), find(boxes, 2, output_type=tf.int32)]

    _checked(body)


def test_a_maximum_of_windows_leaves_nan_out() -> None:
    def body(x: Any) -> list[Any]:
        images, lines = tf.reshape(x, [-1, 4, 6, 1]), tf.reshape(x, [-1, 12, 2])
        return [
            tf.nn.max_pool2d(images, 2, 2, "VALID"),
            tf.nn.max_pool2d(images, 3, 1, "SAME"),
            tf.nn.max_pool1d(lines, 2, 2, "VALID"),
        ]

    _checked(body)


def test_extremes_with_nan_are_nan() -> None:
    def body(x: Any) -> list[Any]:
        boxes = tf.reshape(x, [-1, 4, 6])
        turned = x[:, ::-1]
        return [
            *(tf.reduce_max(boxes, 1), tf.reduce_min(boxes, 2), tf.maximum(x, turned)),
            *(tf.minimum(turned, x), tf.maximum(0.0, x), tf.nn.relu(x)),
            tf.clip_by_value(x, -0.5, 0.5),
        ]

    _checked(body)


def test_what_is_written_as_nan_is_no_maximum() -> None:
    def body(x: Any) -> list[Any]:
        places = np.arange(_WIDTH)[:, None] // 4

        def each(row: Any) -> tuple[Any, Any]:
            start = tf.constant([0.0, _NAN, 9.0, -9.0, 0.0, 0.0, 0.0])
            return (
                tf.tensor_scatter_nd_max(start, places, row),
                tf.tensor_scatter_nd_min(start, places, row),
            )

        return list(tf.map_fn(each, x, fn_output_signature=(tf.float32, tf.float32)))

    _checked(body)


def test_nan_is_in_the_last_bucket() -> None:
    def body(x: Any) -> list[Any]:
        layer = keras.layers.Discretization([-1.0, 0.0, 0.5])
        return [layer(x), keras.ops.digitize(x, np.array([-1.0, 0.0, 1.0]))]

    _checked(body)


def test_nan_is_sorted_last() -> None:
    """In TensorFlow its place depends on how many are sorted."""
    x = np.array([[_NAN, 2.0, -np.inf, _NAN, 1.0, 2.0]], np.float32)
    usual = np.arange(6, dtype=np.float32)[None]

    def body(x: Any) -> list[Any]:
        return [*tf.math.top_k(x, 6), tf.argsort(x, 1), tf.sort(x, 1)]

    graph = checked([(6,)], body, given={"input": usual})
    _, places, rising, numbers = interpret(graph, {"input": x}).values()
    assert places.tolist() == [[1, 5, 4, 2, 0, 3]]
    assert rising.tolist() == [[2, 4, 1, 5, 0, 3]]
    assert np.array_equal(numbers, [[-np.inf, 1.0, 2.0, 2.0, _NAN, _NAN]], equal_nan=True)
