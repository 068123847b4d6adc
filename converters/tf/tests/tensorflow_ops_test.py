"""Ops of TensorFlow that models call themselves, between layers of Keras and in their own."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from converters.tf.ir.interpret import interpret
from converters.tf.tests.checks import check, checked, model_of, ops
from tools.codegen.conversion import UnsupportedError


@pytest.mark.parametrize("rates", [1, 2])
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize(("size", "stride"), [(3, 1), (3, 2), (2, 2), (3, 3), (4, 3)])
def test_patches_of_images(size: int, stride: int, padding: str, rates: int) -> None:
    window, steps, spread = ([1, n, n, 1] for n in (size, stride, rates))

    def body(x: Any) -> Any:
        return tf.image.extract_patches(x, window, steps, spread, padding)

    graph = checked([(8, 11, 3)], body)
    assert not {"Conv", "Dense"} & set(ops(graph))
    if size == stride and padding == "VALID" and rates == 1:
        assert set(ops(graph)) <= {"Slice", "Transpose"}


@pytest.mark.parametrize(("size", "strides"), [(4, None), (3, 2), ((2, 3), None)])
def test_patches_of_keras(size: Any, strides: int | None) -> None:
    def body(x: Any) -> Any:
        return keras.ops.image.extract_patches(x, size, strides)

    graph = check(model_of([(8, 12, 3)], body))
    assert "Conv" not in ops(graph)


@pytest.mark.parametrize("offset", [-2, -1, 0, 1, 3])
def test_diagonals(offset: int) -> None:
    def body(x: Any) -> list[Any]:
        square = tf.linalg.diag(x, k=offset)
        part = tf.linalg.diag_part(square + 1.0, k=offset)
        return [square, part, tf.linalg.set_diag(square + x[:, :1, :1, None], part, k=offset)]

    checked([(2, 4)], body)


@pytest.mark.parametrize("sizes", [(4, 6), (6, 4), (4, 4)])
def test_diagonals_of_oblong_matrices(sizes: tuple[int, int]) -> None:
    def body(x: Any) -> list[Any]:
        matrix = tf.linalg.diag(x, num_rows=sizes[0], num_cols=sizes[1], padding_value=2.0)
        return [matrix, tf.linalg.diag_part(matrix), tf.linalg.diag_part(matrix, k=2)]

    checked([(4,)], body)


def test_identities_and_labels_that_repeat() -> None:
    def body(x: Any) -> list[Any]:
        eye = tf.eye(4, batch_shape=[tf.shape(x)[0]])
        traces = tf.einsum("bii->b", x), tf.einsum("bii->bi", x), tf.linalg.trace(x)
        return [x @ tf.eye(4), x + eye, tf.eye(4, 3) * x[:, :, :3], *traces]

    graph = checked([(4, 4)], body)
    assert "Dense" in ops(graph)


@pytest.mark.parametrize("sizes", [(1, 1), (1, 5), (5, 1), (5, 5)])
def test_products_repeat_axes_of_one_element(sizes: tuple[int, int]) -> None:
    shapes: list[tuple[int, ...]] = [(sizes[0], 3, 4), (sizes[1], 4, 2)]
    checked(shapes, lambda a, b: tf.einsum("b...ij,b...jk->b...ik", a, b))


def test_products_with_the_batch_repeated_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="do not fit for every batch"):
        checked([(3, 4)], lambda a: tf.einsum("...ij,...jk->...ik", a, tf.ones((2, 4, 2))))


def test_an_index_outside_of_its_own_axis_is_an_error() -> None:
    """It must not reach into the next row."""
    table = np.arange(12, dtype=np.float32).reshape(3, 4)

    def body(x: Any) -> Any:
        return tf.gather_nd(table, x)

    graph = checked([(5, 2)], body, ["int32"], whole=3)
    (port,) = graph.inputs
    for index in ([0, 4], [1, -1], [3, 0]):
        with pytest.raises(ValueError, match="an index is not below"):
            interpret(graph, {port.name: np.full((1, 5, 2), index, np.int32)})


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "uint32"])
def test_whole_numbers_of_other_sizes_wrap(kind: str) -> None:
    def body(x: Any, y: Any) -> list[Any]:
        size = 60 if tf.as_dtype(kind).size == 1 else 900
        a, b = (tf.cast(tf.abs(t) * size, tf.int32) for t in (x, y))
        a, b = tf.cast(a, kind), tf.cast(b, kind) + tf.cast(3, kind)
        results = [a + b, a * b * b, a - b, tf.maximum(a, b), a // b, a % b, tf.square(a)]
        results += [tf.bitwise.bitwise_and(a, b), tf.bitwise.bitwise_xor(a, b)]
        results += [tf.reduce_sum(a, 1), tf.reduce_max(b, 1), tf.sort(a, 1)]
        results += [tf.cast(a > b, kind), tf.cast(a, tf.float32), tf.where(a > b, a, b)]
        return [*results, tf.cast(a, tf.bool), tf.argmax(a, 1)]

    checked([(6,), (6,)], body)


def test_images_of_bytes() -> None:
    def body(x: Any) -> list[Any]:
        image = tf.image.convert_image_dtype(tf.sigmoid(x), tf.uint8)
        return [image, tf.cast(tf.argmax(x, -1), tf.uint8), tf.saturate_cast(x * 200, tf.int8)]

    checked([(4, 5, 3)], body)
    checked([(4, 5, 3)], lambda x: tf.cast(x, tf.bool), ["uint8"], whole=4)


_SEGMENTS = ("sum", "mean", "max", "min", "prod")


@pytest.mark.parametrize("kind", [*(f"unsorted_segment_{k}" for k in (*_SEGMENTS, "sqrt_n"))])
def test_segments_in_any_order(kind: str) -> None:
    """An empty one, and a row that belongs to none."""

    def body(x: Any) -> Any:
        rows = tf.transpose(x, [1, 0, 2])
        found = getattr(tf.math, kind)(rows, tf.constant([3, 0, 1, -1, 3, 4]), 6)
        return tf.transpose(found, [1, 0, 2])

    checked([(6, 4)], body)


@pytest.mark.parametrize("kind", _SEGMENTS)
def test_segments_in_order(kind: str) -> None:
    def body(x: Any) -> Any:
        rows = tf.transpose(x, [1, 0, 2])
        found = getattr(tf.math, f"segment_{kind}")(rows, tf.constant([0, 0, 1, 3, 3, 4]))
        return tf.transpose(found, [1, 0, 2])

    checked([(6, 4)], body)


def test_segments_of_the_batch_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="segments of the batch"):
        checked([(4,)], lambda x: tf.math.unsorted_segment_sum(x, tf.zeros([1], tf.int32), 2))


@pytest.mark.parametrize("axis", [1, 2])
def test_sequences_are_turned_around(axis: int) -> None:
    def body(x: Any, lengths: Any) -> Any:
        return tf.reverse_sequence(x, lengths, axis)

    checked([(5, 6, 2), ()], body, ["float32", "int32"])


def test_norms_of_channels_and_rows() -> None:
    def body(x: Any) -> list[Any]:
        local = tf.nn.local_response_normalization(x, 2, 1.5, 0.1, 0.7)
        wide = tf.nn.lrn(x)
        return [local, wide, tf.math.reduce_euclidean_norm(x, [1, 3], keepdims=True)]

    checked([(3, 4, 7)], body)


def test_angles_of_a_spectrum() -> None:
    checked([(64,)], lambda x: tf.math.angle(tf.signal.stft(x + 0.1, 16, 8))[:, :, 1:-1])


def test_a_known_mask_takes_elements() -> None:
    mask = np.array([1, 0, 1, 1, 0], bool)
    checked([(5, 2)], lambda x: tf.boolean_mask(x, mask, axis=1))
    with pytest.raises(UnsupportedError, match="give them all, with a mask"):
        checked([(5,)], lambda x: tf.reduce_sum(tf.where(x > 0)))


def test_a_function_that_is_vectorized_over_the_examples() -> None:
    def body(x: Any, matrix: Any, places: Any) -> list[Any]:
        product = tf.vectorized_map(
            lambda pair: tf.linalg.matvec(pair[1], pair[0], transpose_a=True), (x, matrix)
        )
        taken = tf.vectorized_map(lambda pair: tf.gather(*pair), (matrix, places))
        o = keras.ops
        soft = o.vectorized_map(lambda row: o.matmul(o.softmax(row), o.ones((3, 2))), matrix)
        return [product, taken, soft]

    checked([(4,), (4, 3), (2,)], body, ["float32", "float32", "int32"], whole=4)


def test_rows_of_a_flattened_batch_are_taken() -> None:
    """As masked language models find the tokens that they guess."""

    def body(x: Any, places: Any) -> list[Any]:
        flat = tf.reshape(x, [-1, 3])
        starts = tf.range(tf.shape(x)[0])[:, None] * 5
        one_by_one = tf.gather(flat, tf.reshape(places + starts, [-1]))
        return [
            keras.ops.take(flat, places + starts, axis=0),
            tf.reshape(one_by_one, [-1, 2, 3]),
        ]

    checked([(5, 3), (2,)], body, ["float32", "int32"])


def test_pixels_of_the_heads_of_a_batch_are_taken() -> None:
    """As deformable attention samples: heads are examples, and all are flattened."""

    def body(x: Any, places: Any) -> Any:
        heads = tf.reshape(tf.transpose(x, [0, 2, 1, 3]), [-1, 5, 3])
        count = tf.shape(heads)[0]
        starts = tf.reshape(tf.range(count) * tf.shape(heads)[1], [count, 1])
        places = tf.reshape(places, [count, 4])
        taken = keras.ops.take(tf.reshape(heads, [-1, 3]), places + starts, axis=0)
        return tf.reshape(taken, [-1, 2, 4, 3])

    checked([(5, 2, 3), (2, 4)], body, ["float32", "int32"])


def test_the_number_of_an_example_is_no_data() -> None:
    for body in (
        lambda x: x + tf.cast(tf.range(tf.shape(x)[0]), tf.float32)[:, None],
        lambda x: tf.where(tf.shape(x)[0] > 1, x, x * 2),
        lambda x: tf.gather(x, tf.where(tf.shape(x)[0] > 1, tf.range(tf.shape(x)[0]), 1)),
    ):
        with pytest.raises(UnsupportedError, match="batch"):
            checked([(4,)], body)


def test_parts_of_a_shape() -> None:
    def body(x: Any) -> Any:
        batch, height, width = tf.unstack(tf.shape(x))
        return tf.zeros([batch, height, width]) + tf.reshape(x, [batch, height, width])

    checked([(3, 4)], body)


def test_diagonals_of_keras() -> None:
    o = keras.ops

    def body(x: Any) -> list[Any]:
        return [o.diagonal(x, axis1=1, axis2=2), o.trace(x, axis1=1, axis2=2), o.tril(x) @ o.eye(4)]

    check(model_of([(4, 4)], body))


def test_the_largest() -> None:
    def body(x: Any) -> list[Any]:
        values, places = tf.nn.top_k(x, 3)
        most = tf.math.top_k(x, 1)
        return [values, places, *most, tf.gather(x, places, batch_dims=2)]

    graph = checked([(3, 7)], body)
    assert ops(graph).count("TopK") == 2
    largest = {"x": np.round(np.random.default_rng(1).normal(size=(3, 3, 7)))}
    name = graph.inputs[0].name
    found = interpret(graph, {name: largest["x"].astype(np.float32)})
    values, places = list(found.values())[:2]
    expected = tf.nn.top_k(largest["x"].astype(np.float32), 3)
    np.testing.assert_array_equal(values, expected.values)
    np.testing.assert_array_equal(places, expected.indices)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_sorting(dtype: str) -> None:
    def body(x: Any) -> list[Any]:
        falling = {"direction": "DESCENDING"}
        sorts = [
            f(x, axis=a, **d) for f in (tf.sort, tf.argsort) for a in (1, 2) for d in (falling, {})
        ]
        return [*sorts, tf.sort(x)[..., :2]]

    checked([(4, 5)], body, [dtype])


def test_an_open_order_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="top_k that leaves the order open"):
        checked([(5,)], lambda x: tf.nn.top_k(x, 2, sorted=False).values)


def test_experts_of_a_mixture() -> None:
    o = keras.ops

    def body(x: Any) -> Any:
        weights, chosen = o.top_k(o.softmax(layers.Dense(4)(x)), 2)
        share = o.sum(o.one_hot(chosen, 4) * (weights / o.sum(weights, -1, True))[..., None], -2)
        experts = o.stack([layers.Dense(5, "relu")(x) for _ in range(4)], -2)
        return o.sum(experts * share[..., None], -2)

    check(model_of([(6,)], body))


def test_products_of_float64_are_computed_in_float32() -> None:
    o, scale = keras.ops, np.sqrt(np.float64(8))

    def body(x: Any) -> list[Any]:
        scores = o.softmax(o.matmul(x, o.transpose(x, (0, 2, 1))) / scale)
        wide = o.cast(x, "float64")
        functions = [f(wide) for f in (o.exp, o.gelu, o.relu, o.tanh, o.sqrt, o.abs)]
        products = [o.matmul(scores, wide), o.einsum("bij,bkj->bik", wide, wide), wide**2.5]
        return [scores, *functions, *products, layers.Dense(3)(scores), o.mean(wide, axis=1)]

    graph = check(model_of([(4, 6)], body))
    assert "f64" in [str(port.value.dtype) for port in graph.outputs]


def test_numbers_of_numpy_leave_an_attention_one_op() -> None:
    o = keras.ops

    def body(x: Any) -> Any:
        scores = o.einsum("bqd,bkd->bqk", x, x) / np.sqrt(np.float64(8))
        scores = o.where(o.tril(o.ones((4, 4))) == 0, -1e9, scores)
        return layers.Dense(3)(o.einsum("bqk,bkd->bqd", o.softmax(scores), x))

    assert ops(check(model_of([(4, 6)], body))) == ["Attention", "Dense"]


@pytest.mark.parametrize("hides", [True, False])
@pytest.mark.parametrize("divides", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_ways_to_write_an_attention(hides: bool, divides: bool, known: bool) -> None:
    o = keras.ops

    def body(x: Any, y: Any) -> Any:
        scores = o.einsum("bqd,bkd->bqk", x, y)
        scores = scores / 2.5 if divides else scores * 0.4
        seen = o.tril(o.ones((4, 4))) > 0 if known else y[:, None, :, 0] > 0
        hidden = o.where(o.logical_not(seen), -1e9, scores)
        scores = hidden if hides else o.where(seen, scores, -1e9)
        return o.einsum("bqk,bkd->bqd", o.softmax(scores), y)

    assert "Attention" in ops(check(model_of([(4, 6), (4, 6)], body)))


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu", "softplus"])
def test_gradients_by_the_inputs(activation: str) -> None:
    def body(x: Any) -> list[Any]:
        net = [layers.Dense(7, activation), layers.Dense(7, activation), layers.Dense(1)]

        class Slope(layers.Layer):  # type: ignore[misc]
            def build(self, shape: Any) -> None:
                for layer, width in zip(net, (3, 7, 7), strict=True):
                    layer.build((None, width))
                self.net = net

            def call(self, x: Any) -> Any:
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = x
                    for layer in self.net:
                        y = layer(y)
                return y, tape.gradient(y, x)

        return list(Slope()(x))

    check(model_of([(3,)], body))
