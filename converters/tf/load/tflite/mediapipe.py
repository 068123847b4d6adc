"""MediaPipe's custom operators, whose options are the bytes of a struct of TFLite's C API."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import tensorflow as tf

from converters.tf.load.saved_model.replay import Refused, Tensor
from converters.tf.load.tflite.call import Call, Handler
from converters.tf.load.tflite.windows import padding, pair

# The first members of the structs, all int32, by the names that the schema has for builtin ones.
_TRANSPOSED = ("padding", "strideW", "strideH")
_POOL = (*_TRANSPOSED, "filterWidth", "filterHeight", "fusedActivationFunction")
# TfLitePadding by the schema's numbers; 0 is unknown in it.
_PADDING = {1: 0, 2: 1}
_LOWEST = np.finfo(np.float32).min
# Places of a window, of which each is some nodes.
_MOST_PLACES = 256


def _known(call: Call, names: Sequence[str]) -> Call:
    """Returns a call with the options that its bytes hold.

    Raises:
        Refused: They hold none, or one that no window has.
    """
    content = call.operator.custom_options
    if len(content) < 4 * len(names):
        raise Refused(f"options of {len(content)} bytes; {4 * len(names)} are known")
    options = dict(zip(names, struct.unpack_from(f"<{len(names)}i", content), strict=True))
    sizes = [n for name, n in options.items() if name[:6] in ("stride", "filter")]
    if options["padding"] not in _PADDING or min(sizes) < 1:
        raise Refused(f"options that no window has: {options}")
    options["padding"] = _PADDING[options["padding"]]
    return replace(call, operator=replace(call.operator, options=options))


def _window(call: Call) -> list[int]:
    """Returns the height and the width of a pool's window.

    Raises:
        Refused: It is too large.
    """
    window = pair(call, "filterHeight", "filterWidth")
    if window[0] * window[1] > _MOST_PLACES:
        raise Refused(f"a window of {window}; at most {_MOST_PLACES} places are known")
    return window


def _sides(x: Tensor) -> list[int]:
    """Returns the height and the width of an image.

    Raises:
        Refused: The file leaves them open.
    """
    if x.shape.rank != 4 or None in x.shape[1:]:
        raise Refused(f"an image of the shape {x.shape}; its size must be known")
    return [int(d) for d in x.shape[1:3]]


def _transposed(call: Call) -> Tensor:
    """The least result whose strided convolution is as large as the operand."""
    call = _known(call, _TRANSPOSED)
    x, kernel = call.tensor(0), call.tensor(1, "kernel", (1, 2, 0, 3))
    strides, sides = pair(call, "strideH", "strideW"), []
    for size, window, stride in zip(_sides(x), kernel.shape[:2], strides, strict=True):
        rest = (size - 1) % stride + 1
        last = min(window, rest) if padding(call) == "SAME" else window
        sides.append(stride * (size - 1) + last)
    shape = tf.stack([tf.shape(x)[0], *sides, kernel.shape[2]])
    return call.biased(tf.nn.conv2d_transpose(x, kernel, shape, strides, padding(call)), 2)


def _max_pool(call: Call) -> list[Tensor]:
    """The second result is the place of each maximum in its window, as float32, and 0.1."""
    call = _known(call, _POOL)
    x, sides, window = call.tensor(0), _sides(call.tensor(0)), _window(call)
    strides = pair(call, "strideH", "strideW")
    values = tf.nn.max_pool2d(x, window, strides, padding(call))
    before, counts = [], [int(d) for d in values.shape[1:3]]
    for size, filled, stride, count in zip(sides, window, strides, counts, strict=True):
        missing = max(0, stride * (count - 1) + filled - size)
        before.append((missing // 2, missing - missing // 2))
    padded = tf.pad(x, [(0, 0), *before, (0, 0)], constant_values=_LOWEST)
    seen = []
    for start in np.ndindex(*window):
        rows, columns = (
            slice(first, first + stride * (count - 1) + 1, stride)
            for first, stride, count in zip(start, strides, counts, strict=True)
        )
        seen.append(padded[:, rows, columns, :])
    most, places = seen[0], tf.zeros_like(seen[0])
    for place, found in enumerate(seen[1:], 1):
        more = found > most
        places = tf.where(more, tf.fill(tf.shape(found), float(place)), places)
        most = tf.where(more, found, most)
    return [call.activated(values), places + 0.1]


def _max_unpool(call: Call) -> Tensor:
    """Each number goes where its window had it, into zeros; windows must not overlap."""
    call = _known(call, _POOL)
    x, places, window = call.tensor(0), tf.floor(call.tensor(1)), _window(call)
    if window != pair(call, "strideH", "strideW"):
        raise Refused(f"windows of {window} that overlap or leave gaps")
    sides = [size * filled for size, filled in zip(_sides(x), window, strict=True)]
    y, x_places = (np.arange(size) % filled for size, filled in zip(sides, window, strict=True))
    own = (y[:, None] * window[1] + x_places).astype(np.float32)[None, :, :, None]
    large, chosen = (
        tf.raw_ops.ResizeNearestNeighbor(images=t, size=sides, align_corners=False)
        for t in (x, places)
    )
    return tf.where(tf.equal(chosen, own), large, tf.zeros_like(large))


OPS: dict[str, Handler] = {
    "Convolution2DTransposeBias": _transposed,
    "MaxPoolingWithArgmax2D": _max_pool,
    "MaxUnpooling2D": _max_unpool,
}
