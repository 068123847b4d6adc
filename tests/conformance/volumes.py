"""Calls of convolutions of three axes, and what they are where TensorFlow's CPU has no groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tests.conformance.cases import Call, values

Types = Mapping[str, np.dtype[Any]]

CASES = (
    ((2, 4, 5, 3, 2), (2, 3, 2, 2, 3), (1, 2, 1), "SAME"),
    ((1, 5, 6, 5, 4), (3, 3, 3, 2, 6), (2, 1, 2), "SAME"),
    ((2, 3, 5, 4, 6), (2, 2, 3, 1, 6), (1, 1, 1), "VALID"),
)
"""Shapes of the input and of the filter, with channels last; strides; padding."""


def _size(input: int, filter: int, stride: int, padding: str) -> int:
    return -(-input // stride) if padding == "SAME" else (input - filter) // stride + 1


def _made(op: str) -> Callable[[Types], Iterator[Call]]:
    def calls(types: Types) -> Iterator[Call]:
        dtype = types["T"]
        for image, kernel, strides, padding in CASES:
            # TensorFlow's own kernel computes those of float64: it has no groups.
            if dtype == np.float64 and image[4] != kernel[3]:
                continue
            sizes = [
                _size(*axis, padding) for axis in zip(image[1:4], kernel[:3], strides, strict=True)
            ]
            product = values((image[0], *sizes, kernel[4]), dtype, 3, -2, 2)
            x, w = values(image, dtype, 1, -2, 2), values(kernel, dtype, 2, -2, 2)
            attributes = {
                "strides": [1, *strides, 1],
                "dilations": [1] * 5,
                "padding": padding,
                "data_format": "NDHWC",
            }
            if op == "Conv3D":
                yield Call({"input": x, "filter": w}, attributes)
            elif op == "Conv3DBackpropInputV2":
                index = types.get("Tshape", np.dtype(np.int32))
                inputs = {"input_sizes": np.array(image, index), "filter": w}
                yield Call({**inputs, "out_backprop": product}, attributes)
            else:
                inputs = {"input": x, "filter_sizes": np.array(kernel, np.int32)}
                yield Call({**inputs, "out_backprop": product}, attributes)

    return calls


CALLS: Mapping[str, Callable[[Types], Iterator[Call]]] = {
    op: _made(op) for op in ("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2")
}
"""Calls by op."""


def _parts(x: tf.Tensor, groups: int) -> list[tf.Tensor]:
    return list(tf.split(x, groups, axis=4))


def conv_3d(input: tf.Tensor, filter: tf.Tensor, **attributes: Any) -> tf.Tensor:
    """`Conv3D` of each group."""
    groups = input.shape[4] // filter.shape[3]
    sides = zip(_parts(input, groups), _parts(filter, groups), strict=True)
    return tf.concat([tf.raw_ops.Conv3D(input=x, filter=w, **attributes) for x, w in sides], 4)


def conv_3d_input(
    input_sizes: tf.Tensor, filter: tf.Tensor, out_backprop: tf.Tensor, **attributes: Any
) -> tf.Tensor:
    """`Conv3DBackpropInputV2` of each group."""
    groups = int(input_sizes[4]) // filter.shape[3]
    sizes = tf.concat([input_sizes[:4], [input_sizes[4] // groups]], 0)
    sides = zip(_parts(filter, groups), _parts(out_backprop, groups), strict=True)
    gradient = tf.raw_ops.Conv3DBackpropInputV2
    parts = [gradient(input_sizes=sizes, filter=w, out_backprop=g, **attributes) for w, g in sides]
    return tf.concat(parts, 4)


def conv_3d_filter(
    input: tf.Tensor, filter_sizes: tf.Tensor, out_backprop: tf.Tensor, **attributes: Any
) -> tf.Tensor:
    """`Conv3DBackpropFilterV2` of each group."""
    groups = input.shape[4] // int(filter_sizes[3])
    sizes = tf.concat([filter_sizes[:4], [filter_sizes[4] // groups]], 0)
    sides = zip(_parts(input, groups), _parts(out_backprop, groups), strict=True)
    gradient = tf.raw_ops.Conv3DBackpropFilterV2
    parts = [gradient(input=x, filter_sizes=sizes, out_backprop=g, **attributes) for x, g in sides]
    return tf.concat(parts, 4)
