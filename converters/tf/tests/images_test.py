"""Boxes of images, projections and colors."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from converters.tf.ir.interpret import interpret
from converters.tf.tests.checks import checked, few
from tools.codegen.conversion import UnsupportedError

_SIZES = st.integers(1, 9)


def _boxes(y: Any, parts: int) -> Any:
    """Boxes of all directions, partly outside: numbers that no rounding moves over an edge."""
    return tf.round(tf.sigmoid(y) * 1.5 * parts) / parts - 0.246


@few
@given(
    _SIZES, _SIZES, st.integers(1, 6), st.integers(1, 6), st.sampled_from(["bilinear", "nearest"])
)
def test_boxes_of_images(rows: int, columns: int, tall: int, wide: int, method: str) -> None:
    def body(x: Any, y: Any) -> list[Any]:
        number, boxes = tf.range(tf.shape(x)[0]), _boxes(y, 37)

        def crop(image: Any, some: Any, places: Any) -> Any:
            return tf.image.crop_and_resize(image, some, places, [tall, wide], method, 0.25)

        many = crop(x, tf.reshape(boxes, [-1, 4]), tf.repeat(number, 3))
        one = tf.map_fn(
            lambda pair: crop(pair[0][None], pair[1], tf.zeros(3, tf.int32)),
            (x, boxes),
            dtype=x.dtype,
        )
        return [crop(x, boxes[:, 1], number), tf.reshape(many, [-1, 3, tall, wide, 2]), one]

    checked([(rows, columns, 2), (3, 4)], body)


@pytest.mark.parametrize("place", ["align_corners", "half_pixel_centers", ""])
def test_the_nearest_pixels(place: str) -> None:
    """A half goes up where the corners meet, and places are those of float32."""

    def body(x: Any) -> list[Any]:
        flags = {place: True} if place else {}
        return [
            tf.raw_ops.ResizeNearestNeighbor(images=x, size=[size, 9], **flags)
            for size in (1, 3, 5, 13, 27, 41)
        ]

    checked([(8, 6, 1)], body)


def test_boxes_that_are_no_numbers_read_nothing() -> None:
    def body(x: Any, boxes: Any) -> Any:
        return tf.image.crop_and_resize(x, boxes, tf.range(tf.shape(x)[0]), [2, 2])

    graph = checked([(4, 5, 1), (4,)], body)
    image, boxes = graph.inputs
    for bad in (np.nan, np.inf, -np.inf, 1e38):
        arrays = {image.name: np.ones((1, 4, 5, 1)), boxes.name: np.full((1, 4), bad)}
        (found,) = interpret(graph, {n: a.astype(np.float32) for n, a in arrays.items()}).values()
        assert not found.any()


def test_boxes_of_other_examples_are_refused() -> None:
    def body(x: Any, boxes: Any) -> Any:
        return tf.image.crop_and_resize(x, boxes, tf.zeros_like(boxes[:, 0], tf.int32), [2, 2])

    with pytest.raises(UnsupportedError, match="boxes of images that the inputs choose"):
        checked([(4, 5, 1), (4,)], body)


@pytest.mark.parametrize("border", ["constant", "nearest", "reflect", "wrap"])
@pytest.mark.parametrize("method", ["nearest", "bilinear"])
def test_projections(border: str, method: str) -> None:
    def body(x: Any, y: Any) -> list[Any]:
        own = tf.constant([1.0, 0.1, -3.1, -0.2, 0.9, 1.3, 0.01, 0.02])
        each = own + tf.concat([0.11 * y, tf.zeros_like(y[:, :2])], 1)
        transform = keras.ops.image.affine_transform
        return [
            transform(x, each, method, border, fill_value=0.5),
            transform(x, tf.tile(own[None], [tf.shape(x)[0], 1]), method, border),
        ]

    checked([(6, 7, 2), (6,)], body, whole=3)


def test_four_points() -> None:
    def body(x: Any) -> Any:
        corners = np.array([[0.0, 0.0], [0.0, 9.0], [8.0, 0.0], [8.0, 9.0]], np.float32)
        ends = np.array([[1.0, 0.0], [0.0, 8.0], [8.0, 1.0], [7.0, 9.0]], np.float32)
        return keras.ops.image.perspective_transform(x, corners, ends)

    checked([(9, 10, 3)], body)


def test_colors() -> None:
    def body(x: Any) -> list[Any]:
        colors, image = tf.sigmoid(x), tf.image
        gray = tf.concat([colors[..., :1]] * 3, -1)
        return [
            image.rgb_to_hsv(colors),
            image.rgb_to_hsv(gray),
            image.rgb_to_hsv(colors * 0.0),
            image.hsv_to_rgb(colors),
            image.adjust_contrast(colors, 1.7),
            image.adjust_saturation(colors, 1.6),
            image.adjust_hue(colors, 0.3),
            image.adjust_hue(colors, -0.7),
            keras.ops.image.rgb_to_hsv(colors),
            keras.ops.image.hsv_to_rgb(colors),
        ]

    checked([(4, 5, 3)], body)


@few
@given(_SIZES, _SIZES, _SIZES, st.sampled_from(["area", "gaussian"]), st.booleans())
def test_other_ways_to_resize(rows: int, tall: int, wide: int, method: str, smooth: bool) -> None:
    def body(x: Any) -> Any:
        return tf.image.resize(x, [tall, wide], method, antialias=smooth)

    checked([(rows, 5, 2)], body)
