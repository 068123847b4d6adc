"""Functions that a loop maps over the examples of a batch, and lists of tensors beside loops."""

from __future__ import annotations

from typing import Any

import keras
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from converters.tf.tests.checks import checked, few, ops
from tools.codegen.conversion import UnsupportedError


def _steps(x: Any) -> Any:
    return tf.transpose(x, [1, 0, 2])


@few
@given(st.integers(1, 5), st.integers(1, 4), st.sampled_from(["float32", "int32", "bool"]))
def test_a_function_of_every_example(rows: int, columns: int, dtype: str) -> None:
    def body(x: Any, y: Any) -> list[Any]:
        def one(pair: Any) -> Any:
            matrix, other = pair
            flags = tf.reduce_any(other, 0) if dtype == "bool" else tf.reduce_max(other, 0)
            return tf.nn.softmax(matrix) * 2, tf.argmax(matrix, 0), flags

        kind = tf.as_dtype(dtype)
        return list(tf.map_fn(one, (x, y), fn_output_signature=(tf.float32, tf.int64, kind)))

    graph = checked([(rows, columns), (3, columns)], body, ["float32", dtype])
    assert "Loop" in ops(graph)


def test_layers_of_every_example() -> None:
    dense, conv = keras.layers.Dense(5, "tanh"), keras.layers.Conv2D(4, 3, activation="relu")
    dense.build((None, 4))
    conv.build((None, 6, 7, 3))

    def body(x: Any) -> list[Any]:
        sums = keras.ops.map(lambda image: dense(tf.reduce_mean(conv(image[None]), [1, 2]))[0], x)
        return [sums, tf.map_fn(lambda image: tf.image.resize(image, [3, 4]), x)]

    checked([(6, 7, 3)], body)


def test_branches_and_loops_of_every_example() -> None:
    def one(row: Any) -> Any:
        turned = tf.cond(row[0] > 0, lambda: row, lambda: -row)
        return tf.scan(lambda state, new: 0.5 * state + new, turned)

    checked([(4,)], lambda x: tf.map_fn(one, x))


def test_steps_of_every_example_together() -> None:
    """A list of as many elements as all examples have steps."""

    def body(x: Any) -> Any:
        rows = tf.map_fn(lambda row: tf.cumsum(row), tf.reshape(x, [-1, 3]))
        return tf.reshape(rows, tf.shape(x))

    checked([(5, 3)], body)


def test_what_is_known_beside_the_examples() -> None:
    def body(x: Any) -> Any:
        table = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        return tf.map_fn(lambda row: tf.linalg.matvec(table, row), x)

    checked([(2,)], body)


@pytest.mark.parametrize(
    "body",
    [
        lambda x: tf.scan(lambda state, row: state + row, x),
        lambda x: tf.foldl(lambda state, row: state + row, x),
        lambda x: tf.map_fn(lambda row: row - tf.reduce_mean(x), x),
        lambda x: tf.map_fn(lambda row: tf.reduce_sum(x * row, 1), x),
        lambda x: tf.TensorArray(tf.float32, tf.shape(x)[0]).unstack(x).read(0)[None],
    ],
)
def test_examples_do_not_reach_each_other(body: Any) -> None:
    with pytest.raises(UnsupportedError, match=r"batch|from example to example"):
        checked([(4,)], body)


def test_lists_beside_loops() -> None:
    def body(x: Any) -> list[Any]:
        rows = tf.TensorArray(tf.float32, 6).unstack(_steps(x))
        back = tf.TensorArray(tf.float32, 6).scatter([5, 4, 3, 2, 1, 0], _steps(x)).stack()
        columns = tf.TensorArray(tf.float32, 4).unstack(tf.transpose(x, [2, 1, 0])).concat()
        return [_steps(rows.gather([1, 3, 3])), rows.read(2), _steps(back), tf.transpose(columns)]

    def pieces(x: Any) -> Any:
        return tf.TensorArray(tf.float32, 6).unstack(_steps(x)).concat()

    checked([(6, 4)], body)
    with pytest.raises(UnsupportedError, match="joined along the batch"):
        checked([(6, 4)], pieces)


def test_lists_that_grow_at_their_end() -> None:
    raw = tf.raw_ops

    def body(x: Any) -> list[Any]:
        shape = tf.constant([-1, 4])
        rows = raw.EmptyTensorList(
            element_shape=shape, max_num_elements=9, element_dtype=tf.float32
        )
        for step in range(3):
            rows = raw.TensorListPushBack(input_handle=rows, tensor=x[:, step])
        rows, last = raw.TensorListPopBack(
            input_handle=rows, element_shape=shape, element_dtype=tf.float32
        )
        both = raw.TensorListStack(input_handle=rows, element_shape=shape, element_dtype=tf.float32)
        return [last, _steps(both)]

    checked([(6, 4)], body)
