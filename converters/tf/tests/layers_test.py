"""Every layer over random configurations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import assume, given
from hypothesis import strategies as st
from keras import layers

from converters.tf import tf2rust
from converters.tf.emit.options import Options
from converters.tf.emit.support import problems
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, trace_model
from converters.tf.lower.convert import convert
from converters.tf.lower.graph import Unsupported
from converters.tf.lower.ops.image.resampling import bicubic_matrix, filter_matrix
from converters.tf.tests.checks import check, few, inputs_for, model_of, ops
from tools.codegen.conversion import UnsupportedError

sizes = st.integers(1, 9)
channels = st.integers(1, 7)
flags = st.booleans()
paddings = st.sampled_from(["valid", "same"])

ACTIVATIONS = [
    "celu",
    "elu",
    "exponential",
    "gelu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "leaky_relu",
    "linear",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_shrink",
    "softmax",
    "softplus",
    "softsign",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "tanh",
    "tanh_shrink",
]
# A lookup that counts negative places from the end.
LOOKUP = ["Compare", "Binary", "Select", "Gather"]
FUSED = sorted(set(ACTIVATIONS) - {"linear", "log_softmax", "softmax", "sparse_sigmoid"})


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name: str) -> None:
    graph = check(model_of([(5, 8)], layers.Activation(name)))
    if name not in ("linear", "sparse_sigmoid"):
        assert len(ops(graph)) == 1


@pytest.mark.parametrize("name", sorted(set(ACTIVATIONS) - {"softmax", "log_softmax"}))
def test_activation_of_extreme_numbers(name: str) -> None:
    loaded = trace_model(model_of([(1,)], layers.Activation(name)))
    for number in (np.nan, np.inf, -np.inf, -0.0, 1e30, -1e30, 1e-40):
        x = np.full((1, 1), number, np.float32)
        with np.errstate(all="ignore"):
            check(loaded, given={loaded.trace.inputs[0].name: x})


@pytest.mark.parametrize("name", FUSED)
def test_activation_joins_the_layer_before(name: str) -> None:
    graph = check(model_of([(8,)], layers.Dense(5, activation=name)))
    assert ops(graph) == ["Dense"]


@few
@given(st.floats(0, 0.9), st.floats(0.5, 7) | st.none(), st.floats(0, 2))
def test_relu(slope: float, most: float | None, threshold: float) -> None:
    layer = layers.ReLU(max_value=most, negative_slope=slope, threshold=threshold)
    check(model_of([(4, 9)], layer))


@pytest.mark.parametrize(
    "layer",
    [
        layers.LeakyReLU(0.13),
        layers.ELU(0.7),
        layers.PReLU(),
        layers.PReLU(shared_axes=[1]),
        layers.Softmax(axis=1),
        layers.Softmax(axis=[1, 2]),
        layers.Activation("glu"),
    ],
    ids=lambda layer: layer.name,
)
def test_advanced_activation(layer: Any) -> None:
    check(model_of([(5, 4)], layer))


@few
@given(st.lists(sizes, min_size=1, max_size=3), channels, flags, st.sampled_from(FUSED))
def test_dense(shape: list[int], units: int, bias: bool, activation: str) -> None:
    layer = layers.Dense(units, use_bias=bias, activation=activation)
    graph = check(model_of([tuple(shape)], layer))
    assert ops(graph) == ["Dense"]


@pytest.mark.parametrize(
    ("equation", "shape", "bias"),
    [
        ("abc,cd->abd", (5, 3), "d"),
        ("abc,bcd->abd", (5, 3), "bd"),
        ("abc,cde->abde", (5, 3, 2), "de"),
        ("abc,cd->adb", (3, 5), "d"),
        ("...c,cd->...d", (3,), "d"),
    ],
)
def test_einsum_dense(equation: str, shape: tuple[int | None, ...], bias: str) -> None:
    check(model_of([(5, 4)], layers.EinsumDense(equation, shape, bias_axes=bias)))


@few
@given(st.data(), st.integers(1, 3), paddings | st.just("causal"), flags)
def test_conv(data: st.DataObject, rank: int, padding: str, bias: bool) -> None:
    if padding == "causal" and rank > 1:
        padding = "same"
    window = data.draw(st.tuples(*(st.integers(1, 4),) * rank))
    strides = data.draw(st.tuples(*(st.integers(1, 3),) * rank))
    groups = data.draw(st.integers(1, 3)) if rank < 3 else 1
    dilation = (1,) * rank
    if set(strides) == {1}:
        dilation = data.draw(st.tuples(*(st.integers(1, 3),) * rank))
    if padding == "causal":
        strides = strides if dilation == (1,) else (1,)
    shape = data.draw(st.tuples(*(st.integers(10, 13),) * rank))
    kind = [layers.Conv1D, layers.Conv2D, layers.Conv3D][rank - 1]
    layer = kind(
        2 * groups,
        window,
        strides,
        padding,
        dilation_rate=dilation,
        groups=groups,
        use_bias=bias,
        activation="relu",
    )
    graph = check(model_of([(*shape, 2 * groups)], layer), (1, 3))
    assert rank == 3 or ops(graph) == ["Conv"]


@few
@given(st.data(), st.integers(1, 2), paddings)
def test_depthwise_and_separable(data: st.DataObject, rank: int, padding: str) -> None:
    stride = data.draw(st.integers(1, 2))
    dilation = data.draw(st.integers(1, 3)) if stride == 1 else 1
    multiplier = data.draw(st.integers(1, 3))
    size = data.draw(st.integers(1, 3))
    shape = data.draw(st.tuples(*(st.integers(7, 11),) * rank))
    depthwise = [layers.DepthwiseConv1D, layers.DepthwiseConv2D][rank - 1]
    separable = [layers.SeparableConv1D, layers.SeparableConv2D][rank - 1]
    options = {"strides": stride, "padding": padding, "dilation_rate": dilation}
    body = depthwise(size, depth_multiplier=multiplier, activation="relu6", **options)
    graph = check(model_of([(*shape, 3)], body), (1, 3))
    assert ops(graph) == ["Conv"]
    check(model_of([(*shape, 3)], separable(4, size, depth_multiplier=multiplier, **options)), (3,))


@few
@given(st.data(), st.integers(1, 3), paddings)
def test_conv_transpose(data: st.DataObject, rank: int, padding: str) -> None:
    size = data.draw(st.tuples(*(st.integers(1, 4),) * rank))
    strides = data.draw(st.tuples(*(st.integers(1, 3),) * rank))
    shape = data.draw(st.tuples(*(st.integers(2, 5),) * rank))
    kind = [layers.Conv1DTranspose, layers.Conv2DTranspose, layers.Conv3DTranspose][rank - 1]
    layer = kind(3, size, strides, padding, activation="tanh")
    check(model_of([(*shape, 2)], layer), (1, 3))


@few
@given(st.data(), st.integers(1, 3), paddings, flags)
def test_pool(data: st.DataObject, rank: int, padding: str, largest: bool) -> None:
    size = data.draw(st.tuples(*(st.integers(1, 4),) * rank))
    strides = data.draw(st.tuples(*(st.integers(1, 3),) * rank))
    shape = data.draw(st.tuples(*(st.integers(5, 8),) * rank))
    kinds = (
        [layers.MaxPooling1D, layers.MaxPooling2D, layers.MaxPooling3D]
        if largest
        else [layers.AveragePooling1D, layers.AveragePooling2D, layers.AveragePooling3D]
    )
    check(model_of([(*shape, 3)], kinds[rank - 1](size, strides, padding)), (1, 3))


@few
@given(st.integers(1, 3), flags, flags)
def test_global_pool(rank: int, largest: bool, keepdims: bool) -> None:
    kinds = (
        [layers.GlobalMaxPooling1D, layers.GlobalMaxPooling2D, layers.GlobalMaxPooling3D]
        if largest
        else [
            layers.GlobalAveragePooling1D,
            layers.GlobalAveragePooling2D,
            layers.GlobalAveragePooling3D,
        ]
    )
    check(model_of([(*(3, 5, 4)[:rank], 6)], kinds[rank - 1](keepdims=keepdims)))


@few
@given(st.integers(1, 3), flags, flags)
def test_batch_norm(rank: int, center: bool, scale: bool) -> None:
    layer = layers.BatchNormalization(center=center, scale=scale)
    check(model_of([(*(3, 5, 4)[:rank], 6)], layer))
    if rank > 1:
        check(model_of([(*(3, 5, 4)[:rank], 6)], layers.BatchNormalization(axis=1)))


def test_batch_norm_joins_the_convolution_before() -> None:
    def body(x: Any) -> Any:
        x = layers.BatchNormalization()(layers.Conv2D(4, 3)(x))
        x = layers.ReLU(6.0)(layers.BatchNormalization()(layers.DepthwiseConv2D(3)(x)))
        y = layers.BatchNormalization()(layers.Conv2D(4, 1)(x))
        return layers.ReLU()(layers.Add()([x, y]))

    assert ops(check(model_of([(9, 8, 3)], body))) == ["Conv", "Conv", "Conv"]


@few
@given(st.integers(1, 3), flags, flags, st.sampled_from([1e-3, 1e-6]))
def test_layer_norm(rank: int, center: bool, scale: bool, epsilon: float) -> None:
    layer = layers.LayerNormalization(center=center, scale=scale, epsilon=epsilon)
    graph = check(model_of([(*(3, 5, 4)[:rank], 6)], layer))
    assert ops(graph) == ["Norm"]


@pytest.mark.parametrize(
    "layer",
    [
        layers.LayerNormalization(axis=[1, 2]),
        layers.RMSNormalization(),
        layers.GroupNormalization(3),
        layers.GroupNormalization(1),
        layers.GroupNormalization(-1),
        layers.GroupNormalization(2, center=False, scale=False),
    ],
    ids=lambda layer: layer.name,
)
def test_other_norms_are_one_op(layer: Any) -> None:
    assert len(ops(check(model_of([(5, 6)], layer)))) == 1


def test_a_filter_with_too_many_weights_is_refused() -> None:
    with pytest.raises(Unsupported, match="at most 16777216 weights"):
        bicubic_matrix(1 << 20, 1 << 20, align=False, half=True)
    with pytest.raises(Unsupported, match="at most 16777216 weights"):
        filter_matrix(1 << 20, 1 << 20, 1.0, 0.0, "lanczos3", smooth=True)


def test_merges_broadcast() -> None:
    check(model_of([(5, 6), (1, 6)], lambda a, b: layers.Multiply()([a, b])))
    check(model_of([(5, 6), (5, 1)], lambda a, b: layers.Add()([a, b])))


@few
@given(sizes, st.integers(5, 20), channels)
def test_embedding(length: int, words: int, width: int) -> None:
    graph = check(model_of([(length,)], layers.Embedding(words, width), ["int32"]))
    assert ops(graph) == LOOKUP


def test_a_masked_mean_ignores_padding() -> None:
    def body(x: Any) -> Any:
        return layers.GlobalAveragePooling1D()(layers.Embedding(5, 4, mask_zero=True)(x))

    check(model_of([(6,)], body, ["int32"]))


@few
@given(st.data(), st.booleans(), st.sampled_from(["int32", "int64"]))
def test_integer_lookup(data: st.DataObject, far: bool, dtype: str) -> None:
    most = np.iinfo(dtype).max
    numbers = st.integers(-most - 1, most) if far else st.integers(-30, 30)
    words = data.draw(
        st.lists(numbers.filter(lambda n: n != -1), min_size=1, max_size=40, unique=True)
    )
    layer = layers.IntegerLookup(vocabulary=words)
    near = [n for w in words for n in (w - 1, w, w + 1) if abs(n) <= most]
    asked = np.array([*near, -most - 1, most, 0], dtype)[None]
    model = model_of([asked.shape[1:]], layer, [dtype])
    check(model, given={"input": asked})


@few
@given(
    st.sampled_from(["one_hot", "multi_hot", "count"]),
    st.integers(1, 9),
    st.lists(st.integers(0, 8), min_size=1, max_size=9),
)
def test_category_encoding(mode: str, more: int, numbers: list[int]) -> None:
    count = max(numbers) + more
    asked = np.array([numbers, numbers[::-1]], np.int32)
    model = model_of([asked.shape[1:]], layers.CategoryEncoding(count, mode), ["int32"])
    check(model, given={"input": asked})


@few
@given(
    st.sampled_from(["int", "one_hot", "multi_hot", "count"]),
    st.lists(st.floats(-3, 3, width=32), min_size=1, max_size=9, unique=True),
    sizes,
)
def test_discretization(mode: str, boundaries: list[float], size: int) -> None:
    layer = layers.Discretization(sorted(boundaries), output_mode=mode)
    check(model_of([(size,)], layer))


@few
@given(st.integers(1, 300), st.integers(1, 300))
def test_spectrum(size: int, points: int) -> None:
    def body(x: Any) -> Any:
        return keras.ops.stack(keras.ops.rfft(x, fft_length=points), axis=-1)

    check(model_of([(2, size)], body), (1, 3))


@few
@given(sizes, sizes, st.integers(1, 4), st.integers(1, 4), st.floats(0, 9))
def test_equalization_by_tiles(
    height: int, width: int, rows: int, columns: int, limit: float
) -> None:
    for size, count in ((height, rows), (width, columns)):
        assume(-(-size // count) * count <= 2 * size)  # Keras mirrors an image once.
    layer = layers.ContrastLimitedAdaptiveHistogramEqualization(
        clip_limit=limit, tile_grid_size=(rows, columns)
    )
    images = np.random.default_rng(height).uniform(0, 255, (3, height, width, 2))
    model = model_of([images.shape[1:]], layer)
    check(model, given={"input": images.astype(np.float32)})


def test_functions_of_keras_ops() -> None:
    o = keras.ops

    def body(x: Any) -> list[Any]:
        y = o.matmul(x, o.transpose(x, (0, 2, 1)))
        return [
            o.mean(x, axis=1, keepdims=True) + x[:, ::2],
            o.softmax(y, axis=1),
            o.max(y, axis=-1),
            o.argmax(y, axis=-1),
            o.where(y > 0, y, -y),
            o.cumsum(y, axis=1),
            o.one_hot(o.argmin(y, axis=-1), 5),
            o.einsum("abc,adc->abd", x, x),
            o.split(x, 2, axis=-1)[1],
            o.stack([x, x + 1], axis=2),
            o.tile(x, (1, 2, 1)),
            o.clip(x, -0.5, 0.5),
            o.sqrt(o.abs(x)) ** 3,
            o.floor(x) // 2,
            o.logsumexp(x, axis=-1),
            o.var(x, axis=-1),
            o.take(x, [3, 0, 2], axis=1),
            o.flip(x, axis=1),
            o.pad(x, ((0, 0), (1, 2), (0, 0)), mode="reflect"),
            o.isnan(x),
            o.roll(x, 2, axis=1),
            layers.Lambda(lambda x: tf.roll(x, [-1, 7, 1], [1, 2, -2]))(x),
        ]

    check(model_of([(5, 4)], body))


def test_the_batch_is_not_rolled() -> None:
    model = model_of([(5, 4)], lambda x: keras.ops.roll(x, 2))
    with pytest.raises(UnsupportedError, match="the rolled axis depends on the batch size"):
        convert(trace_model(model).trace)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_functions_of_integers(dtype: str) -> None:
    o = keras.ops

    def body(x: Any, y: Any) -> list[Any]:
        two = o.cast(o.convert_to_tensor([2, 3, -1]), dtype)
        return [
            o.power(x, y),
            o.power(two, y),
            x**2,
            x**5,
            o.floor_divide(x, two),
            o.mod(x, two),
            layers.Lambda(lambda x: tf.truncatediv(x, two), (3,))(x),
            layers.Lambda(lambda x: tf.truncatemod(x, two), (3,))(x),
            o.roll(x, 1, axis=1),
        ]

    model = model_of([(3,), (3,)], body, [dtype, dtype])
    far = np.iinfo(dtype)
    x = np.array([[-7, 0, far.min], [7, far.max, 3], [1, -1, 46341]], dtype)
    y = np.array([[3, 0, 2], [0, 31, 41], [9, 5, 2]], dtype)
    check(model, given={"input": x, "input_2": y})


def test_what_whole_numbers_have_no_result_for() -> None:
    o = keras.ops
    model = model_of([(2,), (2,)], lambda x, y: [o.floor_divide(x, y), x**y], ["int32", "int32"])
    loaded = trace_model(model)
    graph = convert(loaded.trace)
    for divisor in (0, -1):
        divisors = np.array([[1, divisor]], "int32")
        arrays = {"input": np.ones((1, 2), "int32"), "input_2": divisors}
        with pytest.raises(tf.errors.InvalidArgumentError):
            loaded.predict(arrays)
        with pytest.raises(ArithmeticError):
            interpret(graph, arrays)
    never = layers.Lambda(lambda x: x + tf.constant([4, 4]) // tf.constant([2, 0]), (2,))
    constants = model_of([(2,)], never, ["int32"])
    assert "Binary" in ops(convert(trace_model(constants).trace))


def test_nan_and_infinity_pass_through() -> None:
    model = model_of([(4,)], lambda x: [layers.Activation(a)(x) for a in ("relu", "tanh", "gelu")])
    special = np.array([[np.nan, np.inf, -np.inf, 0.0]], "float32")
    check(model, given={"input": special})


@pytest.mark.parametrize("width", [1, 4, 9, 70])
def test_softmax_of_nan_and_infinity(width: int) -> None:
    def body(x: Any) -> list[Any]:
        functions = [tf.nn.softmax, tf.nn.log_softmax, keras.ops.softmax, keras.ops.log_softmax]
        return [layers.Softmax()(x), *(layers.Lambda(f)(x) for f in functions)]

    nan, up, down = np.nan, np.inf, -np.inf
    rows = [[nan], [up], [down], [nan, up], [nan, down], [down, up], [up, up], [nan, nan]]
    special = [
        [*row[:width], *[rest] * (width - len(row))] for row in rows for rest in (0.5, down, up)
    ]
    model = model_of([(width,)], body)
    check(model, given={"input": np.array(special, np.float32)})


@pytest.mark.parametrize(
    ("shape", "layer", "expected"),
    [
        ((3, 6), layers.Dense(5, "relu"), ["Dense"]),
        ((3, 4, 6), layers.Dense(5), ["Dense"]),
        ((3, 2, 6), layers.TimeDistributed(layers.Dense(4)), ["Dense"]),
        ((3, 8, 7, 3), layers.Conv2D(5, 3, padding="same", activation="gelu"), ["Conv"]),
        ((3, 8, 7, 3), layers.SeparableConv2D(4, 3), ["Conv", "Conv"]),
        ((3, 8, 7, 3), layers.MaxPooling2D(), ["Pool"]),
        ((3, 8, 2), layers.Flatten(), []),
        ((3, 5, 6), layers.LayerNormalization(), ["Norm"]),
        ((3, 5, 6), layers.GRU(4, return_sequences=True), ["Gru"]),
        ((3, 5, 6), layers.LSTM(4), ["Lstm"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_steps_become_examples(
    shape: tuple[int, ...], layer: keras.Layer, expected: list[str]
) -> None:
    assert ops(check(model_of([shape], layers.TimeDistributed(layer)))) == expected


def test_steps_of_a_model_become_examples() -> None:
    image = keras.Input((8, 8, 3))
    x = layers.BatchNormalization()(layers.Conv2D(4, 3, use_bias=False)(image))
    inner = keras.Model(image, layers.Dense(3)(layers.Flatten()(layers.ReLU()(x))))
    graph = check(model_of([(3, 8, 8, 3)], layers.TimeDistributed(inner)))
    assert ops(graph) == ["Conv", "Dense"]


def test_steps_of_large_images_stay_apart() -> None:
    """Four images of 512 KiB are one batch; of five, each is computed by itself."""
    layer = layers.TimeDistributed(layers.Conv2D(8, 1))
    for steps, products in ((4, 1), (5, 5)):
        graph = ops(check(model_of([(steps, 128, 128, 2)], layer), (1,)))
        assert graph.count("Conv") == products


def test_steps_that_a_model_stacks_itself() -> None:
    o, dense = keras.ops, layers.Dense(5, "tanh")

    def body(x: Any) -> Any:
        stacked = o.stack([dense(x[:, step]) for step in range(4)], axis=1)
        joined = o.concatenate([dense(x[:, i : i + 1]) for i in range(4)], axis=1)
        return [stacked, joined]

    assert ops(check(model_of([(4, 3)], body))) == ["Dense"]


def test_steps_of_which_one_is_another_stay_apart() -> None:
    one, two = layers.Dense(3), layers.Dense(3)
    orders = (
        lambda x: [one(x[:, 0]), two(x[:, 1])],
        lambda x: [one(x[:, 1]), one(x[:, 0])],
        lambda x: [one(x[:, 0]), one(x[:, 2])],
        lambda x: [one(x[:, 0]) + x[:, 2, :3], one(x[:, 1]) + x[:, 2, :3]],
        lambda x: [one(x[:, 0]), one(x[:, 0] + x[:, 1])],
    )
    for order in orders:

        def body(x: Any, order: Any = order) -> Any:
            return keras.ops.stack(order(x), axis=1)

        graph = check(model_of([(3, 4)], body))
        assert ops(graph).count("Dense") == 2


def test_steps_of_a_fixed_number_of_examples() -> None:
    for shape, layer in (((2, 3, 6), layers.Dense(5)), ((3, 3, 8, 8, 3), layers.Conv2D(4, 3))):
        x = keras.Input(batch_shape=shape)
        model = keras.Model(x, layers.TimeDistributed(layer)(x))
        assert len(ops(check(model, (shape[0],)))) == 1


def _attend(x: Any) -> Any:
    return layers.MultiHeadAttention(2, 3)(x, x)


def _there_and_back(x: Any) -> Any:
    layer = layers.ReversibleEmbedding(9, 6)
    return layer(layer(x), reverse=True)


@pytest.mark.parametrize("mode", ["int8", "int4"])
@pytest.mark.parametrize(
    ("shape", "dtype", "body"),
    [
        ((6,), "float32", lambda x: layers.Dense(3)(layers.Dense(5, "relu")(x))),
        ((4, 7), "float32", layers.Dense(4)),
        ((1500,), "float32", layers.Dense(3)),
        ((4, 6), "float32", layers.EinsumDense("abc,cde->abde", (None, 2, 3), bias_axes="de")),
        ((4, 6), "float32", _attend),
        ((4,), "int32", layers.Embedding(9, 6)),
        ((4,), "int32", _there_and_back),
    ],
    ids=["dense", "rows", "wide", "einsum", "attention", "embedding", "reversible"],
)
def test_quantized_models(mode: str, shape: tuple[int, ...], dtype: str, body: Any) -> None:
    body = body if not isinstance(body, keras.Layer) else type(body).from_config(body.get_config())
    model = model_of([shape], body, [dtype])
    model.quantize(mode)
    kinds = ops(check(model))
    assert "Cast" not in kinds
    if body is not _there_and_back and dtype == "int32":
        assert kinds == LOOKUP


@pytest.mark.parametrize("size", [1032, 1033, 3000])
def test_sums_of_int8_are_exact(size: int) -> None:
    model = model_of([(size,)], layers.Dense(4))
    model.quantize("int8")
    kernel = np.full((size, 4), 127, np.int8)
    kernel[:, 1] = -127
    kernel[::2, 2] = np.random.default_rng(size).integers(-127, 128, (size + 1) // 2)
    kernel[:, 3] = np.arange(size) % 255 - 127
    model.layers[-1]._kernel.assign(kernel)
    loaded = trace_model(model)
    graph = convert(loaded.trace)
    assert problems(graph) == []
    assert ops(graph).count("Dense") == -(-size * 127 * 128 // 2**24)
    x = np.ones((3, size), np.float32)
    x[1] = np.random.default_rng(2).normal(size=size)
    arrays = {graph.inputs[0].name: x}
    (found,), (expected,) = interpret(graph, arrays).values(), loaded.predict(arrays).values()
    np.testing.assert_array_equal(found, expected)


def test_a_generated_test_knows_what_a_rounding_is(tmp_path: Path) -> None:
    model = model_of([(6,)], layers.Dense(3))
    for name, largest in (("plain", b"1e-05"), ("int8", b"0.01")):
        if name == "int8":
            model.quantize("int8")
        path = tmp_path / f"{name}.keras"
        model.save(path)
        request = tf2rust.Request(path, Options(name, name), LoadOptions(), None, None, True)
        files = tf2rust.run(request).files
        assert b"Largest difference: " + largest in files["rust_generated_code/tests/golden.rs"]


def test_float8_is_refused() -> None:
    x = keras.Input((6,))
    model = keras.Model(x, layers.Dense(3)(x))
    model.layers[-1].quantize("float8")
    with pytest.raises(UnsupportedError, match=r"element type float8_e4m3fn \(take the model from"):
        convert(trace_model(model).trace)


def test_half_precision_is_computed_in_float32() -> None:
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model = model_of([(6,)], lambda x: layers.Dense(3)(layers.Dense(4)(x)))
    finally:
        keras.mixed_precision.set_global_policy("float32")
    loaded = trace_model(model)
    assert loaded.trace.half
    graph = convert(loaded.trace)
    arrays = inputs_for(graph, 3)
    (found,), (expected,) = interpret(graph, arrays).values(), loaded.predict(arrays).values()
    np.testing.assert_allclose(found, expected, rtol=2e-2, atol=2e-2)
