"""Sections that count operations: products and convolutions."""

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from absl import flags

from tests.bench.library import Library, Row, Shape, at_line, fetched, ours, timed, with_peak

FLAGS = flags.FLAGS
# Rows and columns of the result, and what is summed.
GEMMS = [(size,) * 3 for size in (128, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)]
THIN = [(rows, size, size) for rows in (1, 4, 16, 64) for size in (512, 1024, 2048, 4096)]
MODELS = ["ResNet50", "MobileNetV2", "EfficientNetB0"]
# Convolutions of texts, series and sounds.
LINES = [
    Shape(1, steps, inputs, outputs, 1, taps, 1, same, 1)
    for steps, inputs, outputs, taps, same in (
        (100, 64, 64, 3, False),
        (100, 64, 64, 4, False),
        (100, 64, 64, 5, False),
        (100, 300, 100, 5, False),
        (128, 256, 256, 3, True),
        (1000, 64, 64, 3, True),
        (1000, 128, 128, 5, True),
        (16000, 32, 32, 3, True),
        (100, 64, 64, 7, True),
    )
]


def session_of(model: Any, threads: int) -> Any:
    """Returns a session of onnxruntime for a model."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def onnx_model(node: Any, inputs: dict[str, Any], weights: dict[str, Any], out: Any) -> Any:
    """Returns a model of one node, whose inputs and weights are arrays and whose output is `y`."""
    from onnx import TensorProto, helper, numpy_helper

    def value(name: str, array: Any) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape)

    graph = helper.make_graph(
        [node],
        "row",
        [value(name, array) for name, array in inputs.items()],
        [value("y", out)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def limited(rows: Sequence[Any]) -> Sequence[Any]:
    """Returns as many rows of a section as `--limit` allows."""
    return rows[: FLAGS.limit] if FLAGS.limit else rows


def gemm_rows(library: Library, threads: int) -> Iterable[Row]:
    """Square products."""
    return _products("gemm", GEMMS, library, threads)


def thin_rows(library: Library, threads: int) -> Iterable[Row]:
    """Products of few rows and a square matrix."""
    return _products("thin", THIN, library, threads)


def _products(
    section: str, sizes: Sequence[tuple[int, int, int]], library: Library, threads: int
) -> Iterable[Row]:
    import tensorflow as tf

    rng = np.random.default_rng(1)
    for m, n, k in limited(sizes):
        a = at_line(rng.standard_normal((m, k), np.float32))
        b = at_line(rng.standard_normal((k, n), np.float32))
        c, d = (at_line(np.zeros((m, n), np.float32)) for _ in range(2))
        ta, tb = tf.constant(a), tf.constant(b)
        multiply = tf.function(tf.matmul)
        calls = {
            **ours(library, partial(Library.gemm, a=a, b=b, c=c)),
            "OpenBLAS": timed(partial(np.matmul, a, b, out=d)),
            "TensorFlow": timed(partial(fetched, multiply, ta, tb)),
        }
        peak, seconds = with_peak(library, calls, FLAGS.rounds)
        np.testing.assert_allclose(c, d, rtol=1e-3, atol=1e-3)
        name = f"{m} x {k} x {n}"
        yield Row(section, name, threads, 2.0 * m * n * k, peak, seconds)


def conv_shapes() -> list[Shape]:
    """Every distinct convolution of the models."""
    import keras

    shapes: dict[Shape, None] = {}
    for name in MODELS:
        model = getattr(keras.applications, name)(weights=None)
        for layer in model.layers:
            depthwise = isinstance(layer, keras.layers.DepthwiseConv2D)
            if not depthwise and type(layer) is not keras.layers.Conv2D:
                continue
            _, height, width, channels = layer.input.shape
            shapes[
                Shape(
                    height,
                    width,
                    channels,
                    layer.output.shape[-1],
                    layer.kernel_size[0],
                    layer.kernel_size[1],
                    layer.strides[0],
                    layer.padding == "same",
                    channels if depthwise else 1,
                )
            ] = None
    return list(shapes)


def conv_rows(library: Library, threads: int) -> Iterable[Row]:
    """Convolutions of images."""
    return _convolutions("conv", conv_shapes(), library, threads)


def line_rows(library: Library, threads: int) -> Iterable[Row]:
    """Convolutions along one axis."""
    return _convolutions("conv1d", LINES, library, threads)


def _convolutions(
    section: str, shapes: Sequence[Shape], library: Library, threads: int
) -> Iterable[Row]:
    """Convolutions with a bias, batch 1, weights packed or constant."""
    import tensorflow as tf
    from onnx import helper

    rng = np.random.default_rng(1)
    for shape in limited(shapes):
        size = (1, shape.height, shape.width, shape.in_channels)
        x = at_line(rng.standard_normal(size, np.float32))
        depth = shape.in_channels // shape.groups
        w = rng.standard_normal(
            (shape.rows, shape.columns, depth, shape.out_channels), np.float32
        ) / np.float32(math.sqrt(shape.rows * shape.columns * depth))
        bias = rng.standard_normal(shape.out_channels, np.float32)
        y = at_line(np.zeros((1, *shape.output(), shape.out_channels), np.float32))

        node = helper.make_node(
            "Conv",
            ["x", "w", "bias"],
            ["y"],
            auto_pad="SAME_UPPER" if shape.same else "VALID",
            group=shape.groups,
            strides=[shape.stride, shape.stride],
        )
        first = at_line(x.transpose(0, 3, 1, 2))
        weights = np.ascontiguousarray(w.transpose(3, 2, 0, 1))
        model = onnx_model(
            node, {"x": first}, {"w": weights, "bias": bias}, y.transpose(0, 3, 1, 2)
        )
        session = session_of(model, threads)

        tx, tb = tf.constant(x), tf.constant(bias)
        padding = "SAME" if shape.same else "VALID"
        if shape.groups > 1:
            tw = tf.constant(w.transpose(0, 1, 3, 2))

            def compute(x: Any, w: Any, b: Any, s: int = shape.stride, p: str = padding) -> Any:
                return tf.nn.bias_add(tf.nn.depthwise_conv2d(x, w, [1, s, s, 1], p), b)
        else:
            tw = tf.constant(w)

            def compute(x: Any, w: Any, b: Any, s: int = shape.stride, p: str = padding) -> Any:
                return tf.nn.bias_add(tf.nn.conv2d(x, w, s, p), b)

        function = tf.function(compute, autograph=False)
        calls = {
            **ours(library, partial(Library.conv, shape=shape, x=x, w=w, bias=bias, y=y)),
            "onnxruntime": timed(partial(session.run, None, {"x": first})),
            "TensorFlow": timed(partial(fetched, function, tx, tw, tb)),
        }
        peak, seconds = with_peak(library, calls, FLAGS.rounds)
        expected = session.run(None, {"x": first})[0].transpose(0, 2, 3, 1)
        np.testing.assert_allclose(y, expected, rtol=1e-3, atol=1e-3)
        yield Row(section, shape.name(), threads, shape.flops(), peak, seconds)
