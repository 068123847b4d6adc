"""Bits and matrices of whole numbers, histograms, and numbers rounded to few bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from converters.tf.tests.checks import checked
from tools.codegen.conversion import UnsupportedError


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
def test_shifts(dtype: str) -> None:
    limits = np.iinfo(dtype)
    few = [0, 1, 3, limits.bits - 1, limits.bits, 100]
    amounts = tf.constant([*few, *([-1, -100] if limits.min else [200, 255])], dtype)
    edges = tf.constant([limits.max, limits.min, limits.max // 3, 77], dtype)[:, None]

    def body(x: Any, y: Any) -> list[Any]:
        wide = tf.bitwise.bitwise_xor(tf.cast(x, dtype)[:, :, None, None], edges)
        own = tf.cast(y * 3, dtype)
        return [
            tf.bitwise.left_shift(wide, amounts),
            tf.bitwise.right_shift(tf.bitwise.invert(wide), amounts),
            tf.bitwise.right_shift(edges, own[:, None]),
            tf.bitwise.left_shift(edges, own[:, None]),
        ]

    checked([(3,), (5,)], body, ["int32", "int32"], whole=50)


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64"])
def test_products_of_matrices(dtype: str) -> None:
    large = np.random.default_rng(5).integers(-(1 << 14), 1 << 14, (2, 6, 4))

    def body(x: Any, y: Any) -> list[Any]:
        x, y = (tf.bitwise.left_shift(tf.cast(v, dtype), 7) - 1234 for v in (x, y))
        known = tf.constant(large, dtype)
        turned = tf.transpose(known, [0, 2, 1])
        pairs = {"bij,bkj->bki": (x, y), "bij,jk->bik": (x, known[1])}
        return [
            x @ known[0],
            tf.matmul(x[:, None], known),
            tf.matmul(x[:, None], turned, transpose_b=True),
            tf.matmul(known, x[:, None], True, True),
            tf.matmul(x, y, transpose_b=True),
            *(tf.einsum(e, *v) for e, v in pairs.items() if dtype != "int16"),
        ]

    checked([(5, 6), (3, 6)], body, ["int32", "int32"], whole=90)


def test_matrices_without_a_batch() -> None:
    def body(x: Any) -> Any:
        return tf.map_fn(lambda e: tf.linalg.matvec(tf.constant([[1, -2], [3, 4]]), e), x)

    checked([(2,)], body, ["int32"])


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_histograms_of_each_example(dtype: str) -> None:
    def body(x: Any) -> list[Any]:
        def count(e: Any) -> Any:
            e = tf.cast(e * 4.0, dtype)
            ends = tf.cast(tf.stack([-3, 5]), dtype)
            sizes = (16, 7, 1)
            return tf.concat([tf.histogram_fixed_width(e, ends, size) for size in sizes], 0)

        return [tf.map_fn(count, x, tf.int32)]

    checked([(30, 3)], body)


def test_a_histogram_of_the_batch_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="a histogram of the whole batch"):
        checked([(3,)], lambda x: tf.histogram_fixed_width(x, [-1.0, 1.0]))


@pytest.mark.parametrize("limits", [(-1.0, 1.0), (-0.5, 2.0), (-2.0, 0.5), (0.1, 2.0), (0.0, 0.0)])
@pytest.mark.parametrize("mode", ["HALF_TO_EVEN", "HALF_UP"])
def test_numbers_of_few_bits(limits: tuple[float, float], mode: str) -> None:
    low, high = limits
    lows, highs = tf.constant([low, low - 1, -0.2]), tf.constant([high, 0.3, high + 1])

    def body(x: Any) -> list[Any]:
        q = tf.quantization.quantize_and_dequantize_v2
        third, ends = tf.raw_ops.QuantizeAndDequantizeV3, (low, high)
        return [
            q(x, *ends, range_given=True, round_mode=mode),
            q(x, *ends, False, 8, True, mode),
            q(x, *ends, True, 5, True, mode, narrow_range=True),
            third(input=x, input_min=low, input_max=high, num_bits=4),
            third(input=x, input_min=lows, input_max=highs, num_bits=6, axis=2),
            tf.map_fn(lambda e: q(e, 0.0, 0.0, round_mode=mode, num_bits=5), x),
            tf.map_fn(lambda e: q(e, lows, highs, False, 4, axis=1, round_mode=mode), x),
        ]

    checked([(5, 3)], body)


def test_the_range_of_a_batch_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="the batch is reduced"):
        checked([(3,)], lambda x: tf.quantization.quantize_and_dequantize_v2(x, 0.0, 0.0))
