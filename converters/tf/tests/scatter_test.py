"""Slices written at places, and segments, that the model's inputs choose."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from converters.tf.ir.interpret import interpret
from converters.tf.tests.checks import checked, few, ops
from tools.codegen.conversion import UnsupportedError

_KINDS = ("update", "add", "sub", "max", "min")
_SEGMENTS = ("sum", "max", "min", "prod", "mean", "sqrt_n")


def _own(places: Any) -> Any:
    """Indices whose first number is that of the example."""
    shape = tf.shape(places)
    number = tf.reshape(tf.range(shape[0]), [-1] + [1] * (len(places.shape) - 1))
    return tf.stack([tf.broadcast_to(number, shape), places], -1)


@few
@given(
    st.sampled_from(_KINDS),
    st.integers(5, 8),
    st.integers(0, 4),
    st.lists(st.integers(1, 3), max_size=2),
    st.sampled_from(["float32", "int32", "int64"]),
)
def test_places_of_each_example(
    kind: str, rows: int, count: int, rest: list[int], dtype: str
) -> None:
    write = getattr(tf, f"tensor_scatter_nd_{kind}")

    def body(x: Any, places: Any, new: Any) -> list[Any]:
        in_one = tf.map_fn(
            lambda parts: write(parts[0], parts[1][:, None], parts[2]),
            (x, places, new),
            fn_output_signature=x.dtype,
        )
        return [write(x, _own(places), new), in_one]

    shapes: list[tuple[int, ...]] = [(rows, *rest), (count,), (count, *rest)]
    graph = checked(shapes, body, [dtype, "int32", dtype])
    assert "Scatter" in ops(graph)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_indices_of_two_axes(dtype: str) -> None:
    def body(pairs: Any, new: Any) -> list[Any]:
        return [
            tf.map_fn(
                lambda parts: tf.scatter_nd(
                    parts[0], parts[1], tf.constant([5, 6, 2], pairs.dtype)
                ),
                (pairs, new),
                fn_output_signature=tf.float32,
            ),
            tf.map_fn(
                lambda p: tf.scatter_nd(p, tf.ones(3), [5, 5]),
                tf.cast(pairs, tf.int32),
                dtype=tf.float32,
            ),
        ]

    checked([(3, 2), (3, 2)], body, [dtype, "float32"])


def test_truth_values_are_written() -> None:
    def body(x: Any, places: Any) -> Any:
        return tf.tensor_scatter_nd_update(x, _own(places), tf.ones_like(places, tf.bool))

    checked([(5,), (2,)], body, ["bool", "int32"])


def test_known_places() -> None:
    def body(x: Any) -> list[Any]:
        steps = tf.transpose(x, [1, 0, 2])
        ones = tf.ones([2, tf.shape(x)[0], 4])
        changed = [
            tf.tensor_scatter_nd_update(steps, [[1], [3]], ones),
            tf.tensor_scatter_nd_add(steps, [[1], [1]], steps[:2]),
            tf.scatter_nd([[1], [3], [1], [0], [2], [4]], steps, [7, tf.shape(x)[0], 4]),
            keras.ops.scatter_update(steps, [[2]], steps[:1] * 2),
        ]
        return [tf.transpose(part, [1, 0, 2]) for part in changed]

    checked([(6, 4)], body)


def test_elements_are_read_by_indices_of_each_example() -> None:
    checked([(5, 2), (4,)], lambda x, places: tf.gather_nd(x, _own(places)), ["float32", "int32"])


@few
@given(st.sampled_from(_SEGMENTS), st.integers(1, 7), st.booleans())
def test_segments_that_inputs_choose(kind: str, rows: int, matrix: bool) -> None:
    reduce = getattr(tf.math, f"unsorted_segment_{kind}")

    def body(x: Any, numbers: Any) -> Any:
        # Some rows belong to no segment, and some segments have no row.
        return tf.map_fn(
            lambda parts: reduce(parts[0], parts[1] - 1, 6), (x, numbers), dtype=tf.float32
        )

    shape: tuple[int, ...] = (rows, 3) if matrix else (rows,)
    checked([shape, (rows,)], body, ["float32", "int32"])


def test_segments_of_each_example_side_by_side() -> None:
    def body(x: Any, numbers: Any) -> Any:
        shifted = numbers + 4 * tf.range(tf.shape(numbers)[0])[:, None]
        flat, places = tf.reshape(x, [-1, 2]), tf.reshape(shifted, [-1])
        return tf.reshape(
            tf.math.unsorted_segment_sum(flat, places, 4 * tf.shape(x)[0]), [-1, 4, 2]
        )

    checked([(6, 2), (6,)], body, ["float32", "int32"], whole=4)


@pytest.mark.parametrize("place", [-1, 5])
def test_a_place_outside_is_an_error(place: int) -> None:
    def body(x: Any, places: Any) -> Any:
        return tf.tensor_scatter_nd_add(x, _own(places), tf.ones([tf.shape(x)[0], 2]))

    graph = checked([(5,), (2,)], body, ["float32", "int32"])
    x, places = graph.inputs
    with pytest.raises(ValueError, match="an index is not below"):
        interpret(
            graph,
            {x.name: np.zeros((1, 5), np.float32), places.name: np.full((1, 2), place, np.int32)},
        )


def test_a_segment_outside_is_an_error() -> None:
    def body(x: Any, numbers: Any) -> Any:
        return tf.map_fn(
            lambda p: tf.math.unsorted_segment_sum(*p, 5), (x, numbers), dtype=tf.float32
        )

    graph = checked([(3,), (3,)], body, ["float32", "int32"])
    x, numbers = graph.inputs
    given_ = {x.name: np.zeros((1, 3), np.float32)}
    with pytest.raises(ValueError, match="an index is not below"):
        interpret(graph, {**given_, numbers.name: np.full((1, 3), 5, np.int32)})
    (zeros,) = interpret(graph, {**given_, numbers.name: np.full((1, 3), -5, np.int32)}).values()
    assert not zeros.any()


def test_examples_are_not_written_by_index() -> None:
    for body in (
        lambda x, n: tf.tensor_scatter_nd_update(x, n[:, None], x),
        lambda x, n: tf.math.unsorted_segment_sum(x, n, 3),
        lambda x, n: tf.scatter_nd(tf.stack([n, n], -1), x[:, 0], [tf.shape(x)[0], 4]),
        lambda x, n: tf.math.segment_sum(tf.transpose(x), tf.range(4) + 0 * n[0]),
    ):
        with pytest.raises(UnsupportedError, match="batch"):
            checked([(4,), ()], body, ["float32", "int32"])


def test_segments_whose_number_is_open_are_refused() -> None:
    def body(x: Any, n: Any) -> Any:
        return tf.map_fn(lambda p: tf.reduce_sum(tf.math.segment_sum(*p)), (x, n), dtype=tf.float32)

    with pytest.raises(UnsupportedError, match=r"an op such as tf\.math\.unsorted_segment_sum"):
        checked([(4,), (4,)], body, ["float32", "int32"])
