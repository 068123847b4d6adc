"""Rows that are repeated, put together and told apart by known places."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from converters.tf.tests.checks import checked
from tools.codegen.conversion import UnsupportedError


@pytest.mark.parametrize("repeats", [[1, 2, 0, 1, 3, 1], [0, 0, 1, 0, 0, 0], [2] * 6, 3])
def test_repeated_parts(repeats: list[int] | int) -> None:
    def body(x: Any, y: Any) -> list[Any]:
        known = tf.repeat(tf.range(6.0), repeats)
        return [
            tf.repeat(x, repeats, 1),
            tf.repeat(y, repeats, axis=2),
            tf.repeat(tf.transpose(y, [2, 0, 1, 3]), repeats, axis=0),
            keras.ops.repeat(x, repeats, 1),
            known + x[:, :1],
        ]

    checked([(6,), (2, 6, 3)], body)


def test_a_mask_that_all_examples_share() -> None:
    def body(x: Any) -> Any:
        mask = tf.tile(tf.constant([[True, False, True]]), [tf.shape(x)[0], 1])
        return tf.reshape(tf.boolean_mask(x, mask), [-1, 2, 4])

    checked([(3, 4)], body)


def test_rows_put_together() -> None:
    def body(x: Any, y: Any) -> list[Any]:
        turned, other = tf.transpose(x), tf.transpose(y, [1, 2, 0])
        even = tf.dynamic_stitch([[0, 2, 4], [1, 3, 5]], [turned[:3], turned[3:]])
        twice = tf.dynamic_stitch([[0, 1], [[1, 0], [2, 3]], []], [turned[:2], other, turned[:0]])
        return [tf.transpose(even), tf.transpose(twice)]

    checked([(6,), (2, 2)], body)


def test_a_place_that_nothing_fills_is_refused() -> None:
    def body(x: Any) -> Any:
        return tf.transpose(tf.dynamic_stitch([[0, 2]], [tf.transpose(x)]))

    with pytest.raises(UnsupportedError, match="nothing is put at place 1"):
        checked([(2,)], body)


def test_rows_told_apart() -> None:
    def body(x: Any, y: Any) -> list[Any]:
        rows = tf.dynamic_partition(tf.transpose(x), [0, 1, 0, 1, 1, 0], 3)
        pairs = tf.dynamic_partition(tf.transpose(y, [1, 2, 0]), [[1, 0], [1, 1]], 2)
        return [tf.transpose(part) for part in (*rows[:2], *pairs)]

    checked([(6,), (2, 2)], body)


def test_orders_turned_around() -> None:
    order = np.array([3, 0, 2, 1])

    def body(x: Any) -> Any:
        return tf.gather(x, tf.math.invert_permutation(order), axis=1)

    checked([(4,)], body)
