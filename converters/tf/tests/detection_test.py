"""Boxes of which only the best of those that overlap are kept."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from converters.tf.tests.checks import checked, few
from tools.codegen.conversion import UnsupportedError


def _boxes(x: Any) -> Any:
    """Boxes of which some are the same, some turned around, and some without area."""
    corners = tf.round(x[..., :2] * 3.0) / 8.0
    return tf.concat([corners, corners + tf.round(x[..., 2:] * 3.0) / 4.0], -1)


@few
@given(
    st.integers(1, 12),
    st.integers(1, 3),
    st.booleans(),
    st.integers(1, 6),
    st.integers(1, 16),
    st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    st.sampled_from([float("-inf"), -0.5, 0.2]),
    st.booleans(),
    st.booleans(),
)
def test_boxes_of_classes(
    count: int,
    classes: int,
    shared: bool,
    per_class: int,
    total: int,
    overlap: float,
    least: float,
    padded: bool,
    clipped: bool,
) -> None:
    own = 1 if shared else classes

    def body(x: Any, scores: Any) -> list[Any]:
        options = (per_class, total, overlap, least, padded, clipped)
        return list(tf.image.combined_non_max_suppression(_boxes(x), scores, *options))

    checked([(count, own, 4), (count, classes)], body)


@few
@given(st.integers(1, 16), st.integers(1, 16), st.sampled_from([0.0, 0.5]))
def test_equal_scores_of_one_class(count: int, per_class: int, overlap: float) -> None:
    """As TensorFlow's heap leaves them."""

    def body(x: Any, scores: Any) -> list[Any]:
        scores = tf.round(scores)
        options = (per_class, 16, overlap, -3.0)
        return list(tf.image.combined_non_max_suppression(_boxes(x), scores, *options))

    checked([(count, 1, 4), (count, 1)], body)


@few
@given(st.integers(1, 40), st.integers(1, 50), st.sampled_from([0.0, 0.4, 1.0]))
def test_boxes_of_each_example(count: int, size: int, overlap: float) -> None:
    def body(x: Any, scores: Any) -> list[Any]:
        def each(given: Any) -> tuple[Any, ...]:
            boxes, score = _boxes(given[0]), tf.round(given[1] * 2.0)
            limits = {"iou_threshold": overlap, "score_threshold": -1.0}
            new = tf.raw_ops.NonMaxSuppressionV5(
                boxes=boxes,
                scores=score,
                max_output_size=size,
                soft_nms_sigma=0.0,
                pad_to_max_output_size=True,
                **limits,
            )
            old = tf.raw_ops.NonMaxSuppressionV4(
                boxes=boxes,
                scores=score,
                max_output_size=size,
                pad_to_max_output_size=True,
                **limits,
            )
            return (*new, *old)

        kinds = (tf.int32, tf.float32, tf.int32, tf.int32, tf.int32)
        return list(tf.map_fn(each, (x, scores), fn_output_signature=kinds))

    checked([(count, 4), (count,)], body)


def test_an_open_number_of_boxes_is_refused() -> None:
    def body(x: Any, scores: Any) -> Any:
        def each(given: Any) -> Any:
            return tf.reduce_sum(tf.image.non_max_suppression(given[0], given[1], 3))

        return tf.map_fn(each, (x, scores), fn_output_signature=tf.int32)

    with pytest.raises(UnsupportedError, match="differs from turn to turn of a loop"):
        checked([(5, 4), (5,)], body)
