"""Sections about images: what training computes of convolutions, and other sizes."""

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from absl import flags

from tests.bench.arithmetic import limited
from tests.bench.library import (
    COPY,
    Library,
    Row,
    Shape,
    alternate,
    at_line,
    ours,
    timed,
    with_peak,
)

FLAGS = flags.FLAGS
BATCH = 16
# Convolutions of ResNet50's blocks.
TRAINING = [
    Shape(side, side, inputs, outputs, taps, taps, 1, True, 1)
    for side, inputs, outputs, taps in (
        (56, 64, 64, 3),
        (56, 64, 256, 1),
        (28, 128, 128, 3),
        (28, 512, 128, 1),
        (14, 256, 256, 3),
        (7, 512, 512, 3),
    )
]
# Sides before and after, channels.
RESIZES = [(224, 160, 3), (128, 256, 16), (64, 128, 64), (32, 64, 256)]


def _run(function: Callable[..., Any], *inputs: Any) -> None:
    function(*inputs)


def training_rows(library: Library, threads: int) -> Iterable[Row]:
    """Convolutions of batches with filters that change, and their gradients."""
    import tensorflow as tf

    rng = np.random.default_rng(1)
    for shape in limited(TRAINING):
        side = (shape.height, shape.width)
        x = at_line(rng.standard_normal((BATCH, *side, shape.in_channels), np.float32))
        taps = (shape.rows, shape.columns, shape.in_channels)
        scale = np.float32(1 / math.sqrt(math.prod(taps)))
        w = at_line(rng.standard_normal((*taps, shape.out_channels), np.float32) * scale)
        dy = at_line(rng.standard_normal((BATCH, *side, shape.out_channels), np.float32))
        tx, tw, tdy = tf.constant(x), tf.constant(w), tf.constant(dy)
        common = {"strides": [1, 1, 1, 1], "padding": "SAME"}
        functions = (
            partial(tf.nn.conv2d, tx, tw, 1, "SAME"),
            partial(
                tf.raw_ops.Conv2DBackpropInput,
                input_sizes=x.shape,
                filter=tw,
                out_backprop=tdy,
                **common,
            ),
            partial(
                tf.raw_ops.Conv2DBackpropFilter,
                input=tx,
                filter_sizes=w.shape,
                out_backprop=tdy,
                **common,
            ),
        )
        for direction, name in enumerate(("forward", "by the input", "by the filter")):
            arrays = [x, w, dy]
            # The output's place among input, filter and output.
            place = (2, 0, 1)[direction]
            out = at_line(np.zeros_like(arrays[place]))
            arrays[place] = out
            function = tf.function(functions[direction], autograph=False)
            calls = {
                **ours(
                    library,
                    partial(
                        Library.conv_training,
                        direction=direction,
                        shape=shape,
                        arrays=(arrays[0], arrays[1], arrays[2]),
                    ),
                ),
                "TensorFlow": timed(partial(_run, function)),
            }
            peak, seconds = with_peak(library, calls, FLAGS.rounds)
            expected = function().numpy()
            worst = np.abs(out - expected).max() / np.abs(expected).max()
            assert worst <= 1e-5, f"{shape.name()} {name}: {worst}"
            row = f"{shape.name()}, {name}"
            yield Row("training", row, threads, BATCH * shape.flops(), peak, seconds)


def resize_rows(library: Library, threads: int) -> Iterable[Row]:
    """Images in other sizes."""
    import tensorflow as tf

    rng = np.random.default_rng(1)
    for before, after, channels in limited(RESIZES):
        x = at_line(rng.standard_normal((1, before, before, channels), np.float32))
        y = at_line(np.zeros((1, after, after, channels), np.float32))
        half = (x.size + y.size) // 2
        source, target = (at_line(np.ones(half, np.float32)) for _ in range(2))
        tx = tf.constant(x)
        for bilinear, name, op in (
            (False, "nearest", tf.raw_ops.ResizeNearestNeighbor),
            (True, "bilinear", tf.raw_ops.ResizeBilinear),
        ):
            function = tf.function(
                partial(op, images=tx, size=[after, after], half_pixel_centers=True),
                autograph=False,
            )
            calls = {
                **ours(library, partial(Library.resize, bilinear=bilinear, x=x, y=y)),
                COPY: library.unary("copy", source, target),
                "TensorFlow": timed(partial(_run, function)),
            }
            seconds = alternate(calls, FLAGS.rounds)
            np.testing.assert_allclose(y, function().numpy(), rtol=1e-5, atol=1e-5)
            row = f"{name} {before}x{before}x{channels} -> {after}x{after}"
            yield Row("resize", row, threads, 0.0, 0.0, seconds, float(x.nbytes + y.nbytes))
