"""Ops of TensorFlow that are made of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from converters.tf.tests.checks import checked


def test_cross_products() -> None:
    checked([(4, 3), (4, 3)], tf.linalg.cross)


def test_slices_of_each_example() -> None:
    """`batch_dims=1` numbers the examples itself."""

    def body(x: Any, i: Any) -> list[Any]:
        places = tf.stack([i, (i + 1) % 5], -1)
        pairs = tf.gather_nd(x, places, batch_dims=1)
        return [pairs, tf.gather_nd(x, i[..., None], 1), tf.gather_nd(x, i[:, :1], batch_dims=1)]

    checked([(6, 5, 2), (4,)], body, ["float32", "int32"])


@pytest.mark.parametrize("side", ["left", "right"])
def test_places_in_sorted_rows(side: str) -> None:
    """Equal elements decide between the sides."""
    known = tf.constant([-1.0, 0.0, 0.0, 2.0])

    def body(x: Any, y: Any) -> list[Any]:
        rows, values = tf.sort(tf.round(x * 2)), tf.round(y * 2)
        far = tf.fill([tf.shape(x)[0], 1], 1e9)
        inside = tf.searchsorted(tf.tile(known[None], [tf.shape(x)[0], 1]), values, side)
        found = tf.searchsorted(rows, tf.concat([values, -far, far], 1), side, tf.int64)
        return [found, inside, tf.searchsorted(known, tf.reshape(values, [-1]), side)]

    checked([(9,), (5,)], body)


@pytest.mark.parametrize("k", [1, 3, 9])
def test_targets_among_the_largest(k: int) -> None:
    def body(x: Any, y: Any) -> list[Any]:
        odd = tf.where(x > 1.5, np.inf, tf.where(x < -1.5, np.nan, x))
        return [tf.math.in_top_k(t, p, k) for t in (y, y - 1, y + 9) for p in (x, tf.round(x), odd)]

    checked([(7,), ()], body, ["float32", "int32"])


@pytest.mark.parametrize("limits", [(-1.0, 1.0), (0.0, 2.5), (0.5, 2.0), (-3.0, -1.0), (0.0, 0.0)])
def test_numbers_in_steps(limits: tuple[float, float]) -> None:
    low, high = limits
    own = [low - 0.25, low, low - 1.0], [high, high + 0.5, high + 2.0]

    def body(x: Any) -> list[Any]:
        q = tf.quantization
        rows = q.fake_quant_with_min_max_vars_per_channel(x * 2, *map(tf.constant, own), 6)
        return [
            rows,
            q.fake_quant_with_min_max_vars(x * 2, low, high),
            q.fake_quant_with_min_max_vars(x * 2, low, high, 4, True),
            q.fake_quant_with_min_max_args(x * 2, low, high + 1, 7, True),
        ]

    checked([(5, 3)], body)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
def test_logarithms_of_running_sums(exclusive: bool, reverse: bool) -> None:
    def body(x: Any) -> list[Any]:
        rows = tf.math.cumulative_logsumexp(x * 30, 1, exclusive, reverse)
        columns = tf.math.cumulative_logsumexp(x, -1, exclusive, reverse)
        return [rows, columns]

    checked([(6, 4)], body)
