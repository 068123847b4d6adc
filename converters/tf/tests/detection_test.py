"""Boxes of which only the best of those that overlap are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from converters.tf.ir.ops import introsort
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
@given(
    st.integers(1, 300),
    st.integers(1, 6),
    st.integers(1, 310),
    st.integers(1, 400),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from([1.0, 4.0]),
    st.sampled_from([-10.0, -1.0, 0.0]),
)
def test_equal_scores(
    count: int,
    classes: int,
    per_class: int,
    total: int,
    overlap: float,
    levels: float,
    least: float,
) -> None:
    """As TensorFlow's heap of a class leaves them, and then its sort of all classes."""

    def body(x: Any, scores: Any) -> list[Any]:
        scores = tf.round(scores * levels)
        options = (per_class, total, overlap, least)
        return list(tf.image.combined_non_max_suppression(_boxes(x), scores, *options))

    checked([(count, 1, 4), (count, classes)], body)


@pytest.mark.parametrize("count", [16, 17, 20, 33, 64, 150])
@pytest.mark.parametrize("classes", [1, 3])
def test_all_boxes_of_equal_scores(count: int, classes: int) -> None:
    """Whose order is that of the sort alone."""

    def body(x: Any, scores: Any) -> list[Any]:
        options = (count, count * classes, 1.0, -9.0)
        return list(tf.image.combined_non_max_suppression(x, tf.round(scores), *options))

    checked([(count, 1, 4), (count, classes)], body)


def test_scores_on_which_the_quicksort_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heap sort orders the rest. Each class has one box, so the scores may be in any order."""
    scores = _killer(120)
    heaps = []
    by_heap = introsort._Row._by_heap

    def counted(row: Any, heap: list[int]) -> list[int]:
        heaps.append(len(heap))
        return by_heap(row, heap)

    monkeypatch.setattr(introsort._Row, "_by_heap", counted)

    def body(x: Any) -> list[Any]:
        given = tf.broadcast_to(tf.constant(scores), [tf.shape(x)[0], 1, scores.size])
        return list(tf.image.combined_non_max_suppression(x, given, 1, scores.size, 0.5, -1.0))

    checked([(1, 1, 4)], body)
    assert heaps


def _killer(count: int) -> Any:
    """Scores of which each cut finds few larger ones: an adversary sets them while it is asked."""
    known: dict[int, int] = {}
    latest = [0]

    class Asked(float):
        place: int

        def __gt__(self, other: Any) -> bool:
            a, b = self.place, other.place
            if a not in known and b not in known:
                known[a if a == latest[0] else b] = len(known)
            if a not in known:
                latest[0] = a
            elif b not in known:
                latest[0] = b
            return known.get(a, count) < known.get(b, count)

    row = [Asked() for _ in range(count)]
    for place, element in enumerate(row):
        element.place = place
    introsort.sorted_places(row)
    return np.array([(count - 1 - known.get(i, count - 1)) // 2 for i in range(count)], np.float32)


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
