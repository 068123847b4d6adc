"""Sections that count bytes or calls: element-wise operations, rows, poolings, a perceptron."""

import itertools
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from absl import flags

from tests.bench.arithmetic import limited, onnx_model, session_of
from tests.bench.library import COPY, OURS, Library, Row, alternate, at_line, timed, with_peak

FLAGS = flags.FLAGS
# Elements of a vector that stays in the second cache, and of one that no cache holds.
LENGTHS = [1 << 16, 1 << 25]
# Rows and columns.
ROWS = [(64, 1000), (512, 512), (65536, 512)]
# Side, channels, window, stride; no cache holds the images of the last two.
POOLINGS = [
    (112, 64, 3, 2),
    (56, 256, 2, 2),
    (224, 64, 2, 2),
    (7, 2048, 7, 1),
    (1024, 64, 3, 2),
    (1024, 64, 2, 2),
]


def elementwise_rows(library: Library, threads: int) -> Iterable[Row]:
    """Operations on every element of a vector."""
    import tensorflow as tf

    peers: dict[str, tuple[Callable[..., Any] | None, Callable[..., Any]]] = {
        "relu": (lambda x, out: np.maximum(x, np.float32(0), out=out), tf.nn.relu),
        "exp": (np.exp, tf.math.exp),
        "tanh": (np.tanh, tf.math.tanh),
        "sigmoid": (None, tf.math.sigmoid),
        "erf": (None, tf.math.erf),
        "log": (np.log, tf.math.log),
        "gelu": (None, partial(tf.nn.gelu, approximate=False)),
        "add": (np.add, tf.math.add),
    }
    rng = np.random.default_rng(1)
    cached: dict[str, float] = {}
    for length in LENGTHS:
        x = at_line(np.abs(rng.standard_normal(length, np.float32)) + np.float32(0.01))
        y, z, w = at_line(x), at_line(x), at_line(x)
        # A copy that moves as much as an addition; of memory that nobody has written, the system
        # shows one page everywhere, which stays in the cache.
        source = np.ones(length * 3 // 2, np.float32)
        wide = (at_line(source), at_line(source))
        tx = tf.constant(x)
        for name, (numpy, tensorflow) in list(limited(list(peers.items()))):
            both = name == "add"
            function = tf.function(tensorflow, autograph=False)
            inputs, tensors = ((x, w), (tx, tx)) if both else ((x,), (tx,))
            source, target = wide if both else (x, z)
            calls = {
                OURS: library.add(x, w, y) if both else library.unary(name, x, y),
                COPY: library.unary("copy", source, target),
                "TensorFlow": timed(partial(_run, function, *tensors)),
            }
            if numpy is not None:
                calls["numpy"] = timed(partial(numpy, *inputs, out=z))
            seconds = alternate(calls, FLAGS.rounds)
            np.testing.assert_allclose(y, function(*tensors).numpy(), rtol=1e-5, atol=1e-6)
            moved = x.nbytes * (3 if both else 2)
            compute = cached.get(name, 0.0) * length
            row = Row("elementwise", f"{name} {length}", threads, 0.0, 0.0, seconds, moved, compute)
            cached.setdefault(name, row.median(OURS) / length)
            yield row


def _run(function: Callable[..., Any], *inputs: Any) -> None:
    function(*inputs)


def row_rows(library: Library, threads: int) -> Iterable[Row]:
    """Softmax and normalisations."""
    import tensorflow as tf
    from onnx import helper

    rng = np.random.default_rng(1)
    cached: dict[tuple[str, int], float] = {}
    for rows, width in limited(ROWS):
        x = at_line(rng.standard_normal((rows, width), np.float32))
        scale, shift = rng.standard_normal((2, width), np.float32)
        zero, one = np.zeros(width, np.float32), np.full(width, 1 - 1e-3, np.float32)
        y, z = at_line(x), at_line(x)
        tx, ts, tb = tf.constant(x), tf.constant(scale), tf.constant(shift)

        def layer(x: Any, s: Any, b: Any) -> Any:
            mean, variance = tf.nn.moments(x, [1], keepdims=True)
            return tf.nn.batch_normalization(x, mean, variance, b, s, 1e-3)

        weights = {"s": scale, "b": shift}
        for op, name, node, constants, compute, inputs in (
            (
                0,
                "softmax",
                helper.make_node("Softmax", ["x"], ["y"]),
                {},
                tf.nn.softmax,
                (tx,),
            ),
            (
                1,
                "layer norm",
                helper.make_node("LayerNormalization", ["x", "s", "b"], ["y"], epsilon=1e-3),
                weights,
                layer,
                (tx, ts, tb),
            ),
            (
                2,
                "batch norm",
                helper.make_node(
                    "BatchNormalization", ["x", "s", "b", "m", "v"], ["y"], epsilon=1e-3
                ),
                {**weights, "m": zero, "v": one},
                lambda x, s, b: x * s + b,
                (tx, ts, tb),
            ),
        ):
            session = session_of(onnx_model(node, {"x": x}, constants, y), threads)
            function = tf.function(compute, autograph=False)
            calls = {
                OURS: library.rows(op, x, scale, shift, y),
                COPY: library.unary("copy", x, z),
                "onnxruntime": timed(partial(session.run, None, {"x": x})),
                "TensorFlow": timed(partial(_run, function, *inputs)),
            }
            seconds = alternate(calls, FLAGS.rounds)
            np.testing.assert_allclose(y, session.run(None, {"x": x})[0], rtol=1e-4, atol=1e-5)
            shape = f"{name} {rows} x {width}"
            compute = cached.get((name, width), 0.0) * rows
            row = Row("rows", shape, threads, 0.0, 0.0, seconds, 2.0 * x.nbytes, compute)
            cached.setdefault((name, width), row.median(OURS) / rows)
            yield row


def pooling_rows(library: Library, threads: int) -> Iterable[Row]:
    """Poolings of one image; onnxruntime's is channels first."""
    import tensorflow as tf
    from onnx import helper

    rng = np.random.default_rng(1)
    cached: dict[tuple[str, ...], float] = {}
    for sizes in limited(POOLINGS):
        side, channels, window, stride = sizes
        x = at_line(rng.standard_normal((1, side, side, channels), np.float32))
        out = (side - window) // stride + 1
        y = at_line(np.zeros((1, out, out, channels), np.float32))
        first = at_line(x.transpose(0, 3, 1, 2))
        tx = tf.constant(x)
        # A copy that moves as much.
        half = (x.size + y.size) // 2
        source, target = (at_line(np.ones(half, np.float32)) for _ in range(2))
        for mean, op, compute in (
            (False, "MaxPool", tf.nn.max_pool2d),
            (True, "AveragePool", tf.nn.avg_pool2d),
        ):
            node = helper.make_node(
                op, ["x"], ["y"], kernel_shape=[window] * 2, strides=[stride] * 2
            )
            model = onnx_model(node, {"x": first}, {}, y.transpose(0, 3, 1, 2))
            session = session_of(model, threads)
            function = tf.function(
                partial(compute, ksize=window, strides=stride, padding="VALID"), autograph=False
            )
            calls = {
                OURS: library.pool(mean, sizes, x, y),
                COPY: library.unary("copy", source, target),
                "onnxruntime": timed(partial(session.run, None, {"x": first})),
                "TensorFlow": timed(partial(_run, function, tx)),
            }
            seconds = alternate(calls, FLAGS.rounds)
            expected = session.run(None, {"x": first})[0].transpose(0, 2, 3, 1)
            np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
            name = f"{op} {side}x{side}x{channels}, {window}x{window}/{stride}"
            moved = float(x.nbytes + y.nbytes)
            same = (op, *map(str, sizes[1:]))
            computing = cached.get(same, 0.0) * y.size
            row = Row("pooling", name, threads, 0.0, 0.0, seconds, moved, computing)
            cached.setdefault(same, row.median(OURS) / y.size)
            yield row


def mlp_rows(library: Library, threads: int) -> Iterable[Row]:
    """A tiny perceptron through plain calls: what a call costs."""
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal(6, np.float32), np.empty(4, np.float32)
    weights = rng.standard_normal(1004, np.float32)
    layers, at, value = (6, 64, 8, 4), 0, x
    pairs = []
    for rows, columns in itertools.pairwise(layers):
        w = weights[at : at + rows * columns].reshape(rows, columns)
        b = weights[at + rows * columns :][:columns]
        pairs.append((w, b))
        at += rows * columns + columns

    def numpy() -> Any:
        value = x
        for i, (w, b) in enumerate(pairs):
            value = value @ w + b
            if i < 2:
                value = np.maximum(value, np.float32(0))
        return value

    calls = {OURS: library.mlp(x, weights, y), "numpy": timed(numpy)}
    peak, seconds = with_peak(library, calls, FLAGS.rounds)
    value = numpy()
    np.testing.assert_allclose(y, value, rtol=1e-4, atol=1e-4)
    flops = 2.0 * sum(w.size for w, _ in pairs)
    yield Row("mlp", "6-64-8-4, one row", threads, flops, peak, seconds)
