"""Large windows are joined from smaller ones; windows over nothing are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from converters.tf.emit.support import problems
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.lower.convert import convert
from converters.tf.tests.onnx_graphs import Dims, Network, agree, saved
from tools.codegen.conversion import UnsupportedError

IMAGE: Dims = ["N", 2, 70, 90]
# A window of 4,800 elements, also with gaps, steps and borders.
LARGE: list[dict[str, Any]] = [
    {"kernel_shape": [60, 80]},
    {"kernel_shape": [60, 80], "strides": [3, 2], "pads": [10, 7, 4, 30]},
    {"kernel_shape": [23, 17], "dilations": [3, 5], "strides": [2, 1]},
]


@pytest.mark.parametrize("attrs", LARGE)
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_the_largest_of_large_windows(tmp_path: Path, attrs: dict[str, Any], dtype: Any) -> None:
    net = Network(20)
    model = net.model({"x": IMAGE}, [net("MaxPool", "x", **attrs)], [dtype])
    assert len(agree(model, tmp_path).nodes) < 100


@pytest.mark.parametrize("attrs", LARGE)
def test_means_of_large_windows(tmp_path: Path, attrs: dict[str, Any]) -> None:
    net = Network(20)
    model = net.model({"x": IMAGE}, [net("AveragePool", "x", **attrs)])
    assert len(agree(model, tmp_path).nodes) < 100


@pytest.mark.parametrize("order", [0, 1])
def test_places_in_large_windows(tmp_path: Path, order: int) -> None:
    """Of equal elements, of which few integers give many, the first one counts, by rows."""
    dims: Dims = [2, 2, 30, 40]
    net = Network(20)
    attrs: dict[str, Any] = {"kernel_shape": [9, 11], "strides": [2, 3], "pads": [3, 2, 1, 4]}
    y = net.many("MaxPool", 2, "x", storage_order=order, **attrs)
    for dtype in (np.float32, np.int8):
        assert len(agree(net.model({"x": dims}, y, [dtype]), tmp_path, [2]).nodes) < 200


@pytest.mark.parametrize("size", [5, 6, 31, 1 << 40])
def test_local_response_over_many_channels(tmp_path: Path, size: int) -> None:
    """Beyond the channels there is nothing to sum."""
    net = Network(20)
    y = net("LRN", "x", size=size, alpha=0.5, beta=0.75, bias=2.0)
    model = net.model({"x": ["N", 24, 2, 3]}, [y])
    graph = (
        agree(model, tmp_path)
        if size % 2
        else convert(load(saved(model, tmp_path), LoadOptions()).trace)
    )
    assert len(graph.nodes) < 40


POOLS: list[tuple[str, dict[str, Any]]] = [
    ("MaxPool", {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]}),
    ("AveragePool", {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]}),
    ("LpPool", {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]}),
    ("GlobalMaxPool", {}),
    ("GlobalAveragePool", {}),
]


@pytest.mark.parametrize(("op", "attrs"), POOLS)
def test_images_without_pixels(tmp_path: Path, op: str, attrs: dict[str, Any]) -> None:
    """So does onnxruntime."""
    net = Network(20)
    path = saved(net.model({"x": [2, 2, 0, 5]}, [net(op, "x", **attrs)]), tmp_path)
    with pytest.raises(UnsupportedError, match="images without pixels"):
        load(path, LoadOptions())


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_places_of_nothing(tmp_path: Path, op: str) -> None:
    """Along an axis without elements there is no place; other axes may have none."""
    for axis in range(3):
        net = Network(20)
        path = saved(net.model({"x": [2, 0, 2]}, [net(op, "x", axis=axis)]), tmp_path)
        graph = convert(load(path, LoadOptions()).trace)
        if axis == 1:
            ((_, reason),) = problems(graph)
            assert reason == "the place of the largest or smallest of no elements"
        else:
            assert not problems(graph)
            (y,) = interpret(graph, {"x": np.zeros((2, 0, 2), np.float32)}).values()
            assert y.shape == ((1, 0, 2) if axis == 0 else (2, 0, 1))


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_extremes_of_nothing(tmp_path: Path, op: str) -> None:
    net = Network(20)
    axes = net.constant(np.array([1], np.int64))
    path = saved(net.model({"x": [2, 0, 2]}, [net(op, "x", axes, keepdims=0)]), tmp_path)
    graph = convert(load(path, LoadOptions()).trace)
    (y,) = interpret(graph, {"x": np.zeros((2, 0, 2), np.float32)}).values()
    assert np.array_equal(y, np.full((2, 2), -np.inf if op == "ReduceMax" else np.inf))
