"""Ops that TensorFlow's kernels for the CPU compute on the device's tensors, inside of programs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.e2e import child

os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(child.library())
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf
from tensorflow.python.eager import context

DEVICE, CPU = "/device:TFP:0", "/device:CPU:0"
RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True, scope="module")
def _no_soft_placement() -> None:
    tf.config.set_soft_device_placement(False)


def normal(*shape: int) -> tf.Tensor:
    return tf.constant(RANDOM.normal(size=shape).astype(np.float32))


def video(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    y = tf.nn.conv3d(x, w, [1, 1, 2, 1, 1], "SAME")
    return tf.nn.avg_pool3d(tf.nn.max_pool3d(y, 2, 1, "SAME"), 2, 2, "VALID")


def attention(q: tf.Tensor, k: tf.Tensor) -> tf.Tensor:
    return tf.nn.softmax(tf.einsum("bqhd,bkhd->bhqk", q, k))


def norm(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    clipped, _ = tf.clip_by_global_norm([x, y], 1.0)
    return tf.reduce_sum(clipped[0]) + tf.reduce_sum(clipped[1])


def graph(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    nodes = tf.constant([0, 2, 2, 1], tf.int64)
    return tf.math.unsorted_segment_max(x, nodes, 3) + tf.math.unsorted_segment_mean(y, nodes, 3)


PROGRAMS: list[tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...], set[str]]] = [
    (video, (2, 4, 6, 4, 3), (2, 2, 2, 3, 4), {"Conv3D", "MaxPool3D", "AvgPool3D"}),
    (attention, (2, 3, 2, 4), (2, 5, 2, 4), {"Einsum"}),
    (norm, (3, 4), (5,), {"L2Loss"}),
    (graph, (4, 3), (4, 3), {"UnsortedSegmentMax"}),
]


@pytest.mark.parametrize(("program", "first", "second", "ops"), PROGRAMS)
def test_a_step_stays_on_the_device(
    program: Callable[..., Any], first: tuple[int, ...], second: tuple[int, ...], ops: set[str]
) -> None:
    """Its gradient is the CPU's, in a graph and at once."""
    inputs = [normal(*first), normal(*second)]

    def gradients(*inputs: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            value = program(*inputs)
            loss = tf.reduce_sum(value * value)
        return loss, tape.gradient(loss, inputs)

    def on(device: str, function: Callable[..., Any]) -> Any:
        with tf.device(device):
            return [t.numpy() for t in tf.nest.flatten(function(*inputs))]

    expected = on(CPU, gradients)
    context.enable_run_metadata()
    found = on(DEVICE, tf.function(gradients, jit_compile=False))
    graphs = context.export_run_metadata().partition_graphs
    context.disable_run_metadata()
    nodes = [node for graph in graphs for node in graph.node]
    assert ops <= {node.op for node in nodes if node.device.endswith(DEVICE)}
    for values in (found, on(DEVICE, gradients)):
        for a, b in zip(values, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * max(1.0, np.abs(b).max()))


def _first(x: tf.Tensor) -> tf.Tensor:
    return tf.transpose(x, [0, x.shape.rank - 1, *range(1, x.shape.rank - 1)])


def _last(x: tf.Tensor) -> tf.Tensor:
    return tf.transpose(x, [0, *range(2, x.shape.rank), 1])


def _pools(x: tf.Tensor, format: str) -> tf.Tensor:
    y = tf.nn.max_pool3d(x, [1, 2, 3], [1, 1, 2], "SAME", format)
    return tf.nn.avg_pool3d(y, [2, 1, 2], [2, 1, 1], "VALID", format)


def _blocks(x: tf.Tensor, format: str) -> tf.Tensor:
    return tf.nn.space_to_depth(tf.nn.depth_to_space(x, 2, format), 2, format) * x


def _images(x: tf.Tensor, format: str) -> tf.Tensor:
    weights = tf.reshape(tf.range(2 * 3 * 4 * 4, dtype=x.dtype) / 50.0, [2, 3, 4, 4])
    y = tf.nn.conv2d(x, weights, 1, "SAME", format)
    y = tf.nn.depthwise_conv2d(y, weights[..., :2], [1, 1, 1, 1], "SAME", format)
    y = tf.nn.max_pool2d(y, [2, 3], [1, 2], "SAME", format)
    return tf.nn.avg_pool2d(y, [3, 2], [2, 1], "VALID", format)


def _volumes(x: tf.Tensor, format: str) -> tf.Tensor:
    weights = tf.reshape(tf.range(2 * 2 * 3 * 3 * 4, dtype=x.dtype) / 50.0, [2, 2, 3, 3, 4])
    steps = [1, 1, 1, 2, 1] if format == "NCDHW" else [1, 1, 2, 1, 1]
    return tf.nn.conv3d(x, weights, steps, "SAME", format)


FIRST = [
    (_pools, (2, 4, 5, 6, 3), "NCDHW", kind) for kind in (tf.float32, tf.float16, tf.bfloat16)
] + [
    (_blocks, (2, 3, 2, 8), "NCHW", tf.float32),
    (_blocks, (2, 3, 2, 8), "NCHW", tf.float64),
    (_images, (2, 6, 7, 4), "NCHW", tf.float64),
    (_volumes, (2, 3, 4, 5, 3), "NCDHW", tf.float64),
]


@pytest.mark.parametrize(("program", "shape", "format", "kind"), FIRST)
def test_channels_may_come_first(
    program: Callable[..., Any], shape: tuple[int, ...], format: str, kind: tf.DType
) -> None:
    """TensorFlow's CPU computes these with channels last alone; gradients as well."""
    image = tf.constant(RANDOM.normal(size=shape).astype(kind.as_numpy_dtype))

    def both(x: tf.Tensor, format: str) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = program(x, format)
            loss = tf.reduce_sum(y * y)
        return y, tape.gradient(loss, x)

    narrow = kind in (tf.float16, tf.bfloat16)
    with tf.device(CPU):
        wide = tf.cast(image, tf.float32) if narrow else image
        expected = both(wide, "NDHWC" if len(shape) == 5 else "NHWC")
    with tf.device(DEVICE):
        found = both(_first(image), format)
        assert all(x.device.endswith(DEVICE) and x.dtype == kind for x in found)
        found = [_last(x) for x in found]
    tolerance = {tf.float16: 1e-2, tf.bfloat16: 8e-2}.get(kind, 1e-5)
    for a, b in zip(found, expected, strict=True):
        a, b = a.numpy().astype(np.float64), b.numpy().astype(np.float64)
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize("kind", [tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int64])
def test_the_largest_integer_of_a_window(kind: tf.DType) -> None:
    x = tf.constant(RANDOM.integers(0, 100, size=(2, 5, 6, 3)).astype(kind.as_numpy_dtype))
    window = {"strides": [1, 1, 2, 2], "padding": "SAME", "data_format": "NCHW"}
    with tf.device(CPU):
        expected = tf.nn.max_pool2d(x, 3, 2, "SAME")
        first = _first(x)
    with tf.device(DEVICE):
        found = tf.nn.max_pool2d(x, 3, 2, "SAME")
        turned = tf.raw_ops.MaxPool(input=first, ksize=[1, 1, 3, 3], **window)
    with tf.device(CPU):
        last = _last(turned)
    assert found.device.endswith(DEVICE) and turned.device.endswith(DEVICE)
    assert found.dtype == turned.dtype == kind
    np.testing.assert_array_equal(found.numpy(), expected.numpy())
    np.testing.assert_array_equal(last.numpy(), expected.numpy())


def test_patches_of_truth_values() -> None:
    x = tf.constant(RANDOM.integers(0, 2, size=(2, 5, 6, 3)).astype(bool))
    window = {"ksizes": [1, 2, 3, 1], "strides": [1, 2, 1, 1], "rates": [1] * 4}
    with tf.device(CPU):
        as_bytes = tf.image.extract_patches(
            tf.cast(x, tf.uint8),
            padding="SAME",
            **{{"ksizes": "sizes"}.get(name, name): value for name, value in window.items()},
        )
    with tf.device(DEVICE):
        found = tf.raw_ops.ExtractImagePatches(images=x, padding="SAME", **window)
    assert found.dtype == tf.bool and found.device.endswith(DEVICE)
    np.testing.assert_array_equal(found.numpy(), as_bytes.numpy().astype(bool))


def test_a_spectrum_stays_on_the_device() -> None:
    samples = normal(2, 256)

    def spectrum(samples: tf.Tensor) -> tf.Tensor:
        return tf.signal.irfft(tf.signal.rfft(samples) * tf.constant(0.5 + 1j, tf.complex64))

    with tf.device(CPU):
        expected = spectrum(tf.identity(samples))
    with tf.device(DEVICE):
        found = spectrum(tf.identity(samples))
        both = tf.abs(tf.signal.stft(samples, 64, 32))
    assert found.device.endswith(DEVICE) and both.device.endswith(DEVICE)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_what_the_kernel_refuses_is_a_clean_error() -> None:
    with tf.device(DEVICE), pytest.raises(tf.errors.InvalidArgumentError, match="invertible"):
        tf.linalg.inv(tf.zeros([3, 3]))


def test_what_an_op_is_given_stays_as_it_was() -> None:
    """The kernel of the CPU would write into an input that nobody else needs."""
    with tf.device(DEVICE):
        x = tf.constant([0.5, 1.5])
        y = tf.math.lgamma(x)
        assert x.numpy().tolist() == [0.5, 1.5]
        assert y.device.endswith(DEVICE)
        variable = tf.Variable([0.5, 1.5])
        tf.function(lambda: tf.math.lgamma(variable.read_value()))()
        assert variable.numpy().tolist() == [0.5, 1.5]


@pytest.mark.parametrize("in_graph", [True, False])
def test_a_loop_keeps_its_truth_values_on_the_device(in_graph: bool) -> None:
    """A masked recurrence, whose gradient takes every step's mask from a list."""
    steps = normal(5, 2, 3)
    mask = tf.constant(RANDOM.integers(0, 2, size=(5, 2, 1)).astype(bool))

    def gradient(steps: tf.Tensor, mask: tf.Tensor) -> Any:
        masks = tf.TensorArray(tf.bool, 5, clear_after_read=False).unstack(mask)
        kept = tf.TensorArray(tf.bool, 5, clear_after_read=False)
        with tf.GradientTape() as tape:
            tape.watch(steps)
            state = tf.zeros([2, 3])
            for i in tf.range(5):
                state = tf.where(masks.read(i), tf.tanh(state + steps[i]), state)
                kept = kept.write(i, tf.logical_not(masks.read(i)))
            loss = tf.reduce_sum(state * state)
        return tape.gradient(loss, steps), kept.stack(), kept.gather([4, 0])

    step = tf.function(gradient) if in_graph else gradient
    with tf.device(CPU):
        expected = gradient(tf.identity(steps), tf.identity(mask))
    context.enable_run_metadata()
    with tf.device(DEVICE):
        found = step(tf.identity(steps), tf.identity(mask))
    graphs = context.export_run_metadata().partition_graphs
    context.disable_run_metadata()
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=0, atol=1e-6)
    elsewhere = {node.op for graph in graphs for node in graph.node if node.device.endswith(CPU)}
    assert not {op for op in elsewhere if op.startswith("TensorList")}


def test_keras_trains_where_nothing_may_be_placed_elsewhere() -> None:
    """A loop of Keras hands over what a step gave as a value that may be missing."""
    child.check(
        child.run(
            """
            import keras, numpy
            model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
            model.compile("sgd", "mse", metrics=["mae"], jit_compile=False)
            x, y = numpy.ones((9, 4)), numpy.ones((9, 2))
            model.fit(x, y, batch_size=4, epochs=2, validation_split=0.3, verbose=0)
            model.evaluate(x, y, batch_size=4, verbose=0)
            assert model.predict(x, batch_size=4, verbose=0).shape == (9, 2)

            @tf.function
            def optional(number, text):
                make = tf.experimental.Optional.from_value
                return make({"n": number, "t": text}), make(number + 1.0)

            both, one = optional(tf.constant([1.5]), tf.constant("words"))
            assert both.has_value() and one.has_value()
            value = both.get_value()
            assert value["n"].numpy() == [1.5] and value["t"].numpy() == b"words"
            assert one.get_value().numpy() == [2.5]
            missing = tf.experimental.Optional.empty(tf.TensorSpec([]))
            assert not missing.has_value()
            """
        )
    )


def test_the_gradient_of_a_recurrence_keeps_its_shapes_in_the_host_s_memory() -> None:
    """They are int32; where the batch is open, every step of the loop has some."""
    weights = normal(3, 3)

    def gradient(steps: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(weights)
            state = tf.zeros_like(steps[0])
            for i in tf.range(tf.shape(steps)[0]):
                state = tf.tanh(tf.matmul(state, weights) + steps[i] * tf.reduce_sum(state, 0))
            loss = tf.reduce_sum(state * state)
        return tape.gradient(loss, weights)

    values = []
    signature = [tf.TensorSpec([None, None, 3])]
    step = tf.function(gradient, input_signature=signature, jit_compile=False)
    for device in (CPU, DEVICE):
        with tf.device(device):
            context.enable_run_metadata()
            values.append(step(tf.ones([6, 2, 3])).numpy())
            graphs = context.export_run_metadata().partition_graphs
            context.disable_run_metadata()
    np.testing.assert_allclose(values[1], values[0], rtol=0, atol=1e-5)
    graph = next(graph for graph in graphs if any(n.device.endswith(DEVICE) for n in graph.node))
    copied = [n for n in graph.node if n.op in ("_Send", "_HostSend")]
    sources = {n.input[0].partition(":")[0] for n in copied}
    ops = {n.op for n in graph.node if n.name in sources}
    assert "TensorListPopBack" in {n.op for n in graph.node}
    assert not ops & {"TensorListPopBack", "Shape"}
