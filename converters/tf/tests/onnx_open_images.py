"""ONNX models over images and signals of open size, as the exporters of detectors write them."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from converters.tf.tests.onnx_graphs import Dims, Network
from converters.tf.tests.onnx_open_models import SIDES, Case, dimension, listed

# Sides that are multiples of 4.
_MULTIPLES = ((4, 4), (8, 20), (32, 16))


def _conv(net: Network, x: str, ends: tuple[int, int], path: str, stride: int = 1) -> str:
    weight = net.weight(f"{path}.weight", ends[1], ends[0], 3, 3)
    return net("Relu", net("Conv", x, weight, pads=[1] * 4, strides=[stride] * 2))


def _sides(net: Network, x: str) -> str:
    """Adds the height and width of images."""
    return net("Slice", net("Shape", x), net.ints(2), net.ints(4), net.ints(0))


def pyramid() -> Case:
    """Scales that meet again, by every kind of resize: the sides have to be multiples of 4."""
    net = Network(17)
    first = _conv(net, "x", (3, 4), "first")
    second = _conv(net, first, (4, 4), "second", 2)
    third = _conv(net, second, (4, 4), "third", 2)
    double = net.constant(np.array([1, 1, 2, 2], np.float32))
    options = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"}
    y = net("Resize", third, "", double, nearest_mode="floor", **options)
    y = net("Add", y, second)
    weight = net.weight("up.weight", 4, 4, 2, 2)
    y = net("Add", net("ConvTranspose", y, weight, strides=[2, 2]), first)
    sides = net("Concat", listed(net, dimension(net, y, 0), 4), _sides(net, first), axis=0)
    z = net(
        *("Resize", third, "", "", sides),
        mode="linear",
        coordinate_transformation_mode="pytorch_half_pixel",
    )
    return Case(
        net.model({"x": ["batch", 3, "h", "w"]}, [net("Add", y, z)]), ("h", "w"), _MULTIPLES
    )


def resized() -> Case:
    """Sizes by factors, of two axes and of one, and sizes that were floats in between."""
    net = Network(17)
    half = net.constant(np.array([1, 1, 0.5, 3], np.float32))
    nearest = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"}
    y = net("Resize", "x", "", half, nearest_mode="floor", **nearest)
    y = net("Relu", y)
    linear = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    # PyTorch multiplies sizes as floats, and rounds them down.
    sides = net("Cast", _sides(net, "x"), to=TensorProto.FLOAT)
    sides = net("Floor", net("Mul", sides, net.constant(np.float32(2))))
    sides = net("Cast", sides, to=TensorProto.INT64)
    both = net("Concat", listed(net, dimension(net, "x", 0), 3), sides, axis=0)
    z = net("Resize", "x", "", "", both, **linear)
    line = net("ReduceMean", "x", axes=[2], keepdims=0)
    thrice = net.constant(np.array([1, 1, 3], np.float32))
    line = net("Resize", line, "", thrice, mode="linear")
    model = net.model({"x": ["batch", 3, "h", "w"]}, [y, z, line])
    return Case(model, ("h", "w"), ((2, 4), (8, 20), (6, 3)))


def windows() -> Case:
    """Windows without padding, means with padding, and a sequence of windows."""
    net = Network(17)
    pool: Any = {"kernel_shape": [3, 3], "strides": [2, 2]}
    y = net("AveragePool", "x", pads=[1] * 4, **pool)
    z = net("AveragePool", "x", pads=[1] * 4, count_include_pad=1, **pool)
    # As readers of text do: the height is gone, and the width becomes steps.
    best = net("MaxPool", net("Concat", y, z, axis=1), kernel_shape=[1, 2], strides=[1, 2])
    steps = net("Squeeze", net("ReduceMean", best, axes=[2], keepdims=1), net.ints(2))
    steps = net("Transpose", steps, perm=[0, 2, 1])
    steps = net("Reshape", steps, net.ints(0, -1, 6))
    model = net.model({"x": ["batch", 3, "?", "?"]}, [y, z, net("Softmax", steps, axis=-1)])
    return Case(model, ("height", "width"), ((8, 8), (9, 13), (32, 17)))


def padded() -> Case:
    """Padding that depends on whether sides are even: auto_pad, and windows beyond the end."""
    net = Network(17)
    same: Any = {"auto_pad": "SAME_UPPER", "strides": [2, 2]}
    results = [net("MaxPool", "x", kernel_shape=[n, 2], **same) for n in (2, 3)]
    results.append(net("AveragePool", "x", kernel_shape=[3, 2], **same))
    results.append(net("Conv", "x", net.weight("conv", 6, 4, 3, 2), **same))
    results.append(net("Conv", "x", net.weight("deep", 4, 1, 3, 3), group=4, **same))
    line = net("ReduceMean", "x", axes=[2], keepdims=0)
    options: Any = {"auto_pad": "SAME_UPPER", "strides": [3], "kernel_shape": [4]}
    results.append(net("MaxPool", line, **options))
    results.append(net("Conv", line, net.weight("line", 2, 4, 4), **options))
    beyond: Any = {"ceil_mode": 1, "strides": [2, 2], "kernel_shape": [3, 2]}
    results.append(net("MaxPool", "x", **beyond))
    results.append(net("AveragePool", "x", **beyond))
    beyond["kernel_shape"] = [3, 4]
    results.append(net("AveragePool", "x", pads=[1, 0, 1, 2], **beyond))
    results.append(net("AveragePool", "x", pads=[1, 0, 1, 2], count_include_pad=1, **beyond))
    model = net.model({"x": ["batch", 4, "h", "w"]}, results)
    return Case(model, ("h", "w"), ((8, 8), (9, 12), (11, 7), (10, 5)))


def anchors() -> Case:
    """Places of pixels as detectors count them: ranges of floats, and slices without an end."""
    net = Network(17)
    x = _conv(net, "x", (3, 4), "first", 2)
    numbers = []
    for axis in (2, 3):
        size = net("Cast", dimension(net, x, axis), to=TensorProto.FLOAT)
        zero, one = (net.constant(np.float32(n)) for n in (0, 1))
        numbers.append(net("Add", net("Range", zero, size, one), net.constant(np.float32(0.5))))
    rows = net("Unsqueeze", numbers[0], net.ints(1))
    grid = net("Unsqueeze", net("Mul", rows, numbers[1]), net.ints(0, 1))
    y = net("Mul", x, grid)
    ends = net.ints(10**9, (1 << 31) - 1, (1 << 63) - 1, 10**9)
    y = net("Slice", y, net.ints(0, 1, 0, 0), ends, net.ints(0, 1, 2, 3))
    batch = dimension(net, y, 0)
    flat = net("Reshape", y, listed(net, batch, 3, -1))
    return Case(net.model({"x": ["batch", 3, "h", "w"]}, [flat]), ("h", "w"), SIDES)


def frames() -> Case:
    """A recurrent layer whose steps are the first axis: nothing is a batch."""
    net = Network(17)
    dims: dict[str, Dims] = {"x": ["sequence_length", 5], "h": [1, 1, 4]}
    x = net("Unsqueeze", "x", net.ints(1))
    weights = [net.weight(f"gru.{part}", 1, 12, n) for part, n in (("w", 5), ("r", 4))]
    every, last = net.many("GRU", 2, x, *weights, "", "", "h", hidden_size=4)
    scores = net("ReduceMean", every, axes=[1, 2, 3], keepdims=0)
    return Case(net.model(dims, [scores, last]), ("sequence_length",), ((1,), (3,), (20,)))


def sounds() -> Case:
    """Signals of open length: mirrored ends, spectra of their frames, and one of a known length."""
    net = Network(17)
    wide = net("Pad", "x", net.ints(0, 20, 0, 20), mode="reflect")
    window = net.constant(np.hanning(16).astype(np.float32))
    frames = net("STFT", wide, net.ints(5), window)
    power = net("ReduceSumSquare", frames, axes=[-1], keepdims=0)
    deep = net("Unsqueeze", "x", net.ints(2))
    whole = net("STFT", deep, net.ints(8), "", net.ints(10), onesided=0)
    rest = net("Sub", net.ints(64), dimension(net, "x", 1))
    ends = net("Concat", net.ints(0, 0, 0), net("Reshape", rest, net.ints(1)), axis=0)
    filled = net("Pad", "x", ends, net.constant(np.float32(-2.5)))
    model = net.model({"x": ["batch", "n"]}, [power, whole, filled])
    return Case(model, ("n",), ((21,), (40,), (64,)))


def filled_up() -> Case:
    """Sides that are filled up to multiples of 8, and to a square."""
    net = Network(17)
    sides = [dimension(net, "x", axis) for axis in (2, 3)]
    eight = net.constant(np.array(8, np.int64))
    more = [net("Mod", net("Neg", side), eight) for side in sides]
    blocks = net("Pad", "x", net("Concat", net.ints(*[0] * 6), listed(net, *more), axis=0))
    longest = net("Max", *sides)
    rest = [net("Sub", longest, side) for side in sides]
    square = net("Pad", "x", net("Concat", net.ints(*[0] * 6), listed(net, *rest), axis=0))
    y = net("AveragePool", blocks, kernel_shape=[8, 8], strides=[8, 8])
    model = net.model({"x": ["batch", 3, "h", "w"]}, [y, square])
    return Case(model, ("h", "w"), ((8, 8), (9, 13), (32, 17)))


IMAGES = (pyramid, resized, windows, padded, anchors, frames, sounds, filled_up)
