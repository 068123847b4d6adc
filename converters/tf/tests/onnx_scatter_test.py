"""Operators of ONNX that write at places that are computed, against onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from converters.tf.tests.onnx_graphs import Dims, Network, checked
from tools.codegen.conversion import UnsupportedError

_ROWS: Dims = ["N", 4, 5]


@pytest.mark.parametrize("reduction", ["none", "add", "max", "min"])
@pytest.mark.parametrize(("axis", "count"), [(1, 3), (2, 2), (-1, 5)])
def test_elements_at_computed_places(tmp_path: Path, axis: int, count: int, reduction: str) -> None:
    """Places counted from the end, and such that come twice."""

    def body(net: Network, x: str) -> list[str]:
        values, places = net.many("TopK", 2, x, net.ints(count), axis=axis)
        size = net.constant(np.array([5 if axis != 1 else 4], np.int64))
        below = net("Sub", places, size)
        double = net("Mul", x, net.constant(np.float32(2)))
        written = net("ScatterElements", double, below, values, axis=axis, reduction=reduction)
        if reduction == "none":
            return [written]
        twice = net("Div", places, net.constant(np.array([2], np.int64)))
        return [
            written,
            net("ScatterElements", x, twice, values, axis=axis, reduction=reduction),
        ]

    checked(tmp_path, _ROWS, body)


def test_the_largest_alone_are_kept(tmp_path: Path) -> None:
    """As a mixture of experts chooses some of them."""

    def body(net: Network, x: str) -> str:
        values, places = net.many("TopK", 2, x, net.ints(2), axis=-1)
        zeros = net("Mul", x, net.constant(np.float32(0)))
        share = net("Softmax", values, axis=-1)
        return net("ScatterElements", zeros, places, share, axis=-1)

    checked(tmp_path, _ROWS, body)


def test_what_is_not_written_inside_of_each_example_is_refused(tmp_path: Path) -> None:
    def batch(net: Network, x: str) -> str:
        _, places = net.many("TopK", 2, x, net.ints(2), axis=1)
        return net("ScatterElements", x, places, net("Neg", x), axis=0)

    def product(net: Network, x: str) -> str:
        values, places = net.many("TopK", 2, x, net.ints(2), axis=1)
        return net("ScatterElements", x, places, values, axis=1, reduction="mul")

    for body, reason in ((batch, "places along the batch"), (product, "mul")):
        with pytest.raises(UnsupportedError, match=reason):
            checked(tmp_path, _ROWS, body)
