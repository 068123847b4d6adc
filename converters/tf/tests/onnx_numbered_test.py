"""ONNX graphs that count the examples of a batch, against onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

from converters.tf.load.model import LoadOptions, load
from converters.tf.tests.onnx_graphs import Network, checked
from tools.codegen.conversion import UnsupportedError


def _numbers(net: Network, x: str, step: int, rank: int) -> str:
    """Returns `step` times the number of each example, with axes of 1 after it."""
    zero, one = (net.constant(np.array(i, np.int64)) for i in (0, step))
    batch = net("Gather", net("Shape", x), net.constant(np.array(0, np.int64)), axis=0)
    limit = net("Mul", batch, one) if step > 1 else batch
    numbers = net("Range", zero, limit, one)
    return net("Unsqueeze", numbers, net.ints(*range(1, rank))) if rank > 1 else numbers


@pytest.mark.parametrize("whole", [False, True])
def test_elements_of_strides(tmp_path: Path, whole: bool) -> None:
    """As PyTorch exports `as_strided`: all examples in a row, and indices into them."""

    def body(net: Network, x: str) -> list[str]:
        flat = net("Reshape", x, net.ints(-1))
        one = net.constant(np.array(12, np.int64))
        if whole:
            rows = net.constant(np.arange(12, dtype=np.int64).reshape(1, 12, 1))
        else:
            rows = net.constant(np.array([[[7], [0], [-0]], [[11], [3], [3]]], np.int64))
            rows = net("Reshape", rows, net.ints(1, 6, 1))
        third = net("Mul", _numbers(net, x, 1, 3), one)
        places = [net("Add", third, rows), net("Add", _numbers(net, x, 12, 3), rows)]
        places.append(net("Sub", places[0], net.ints(0)))
        wide = net("Cast", places[1], to=TensorProto.INT32)
        swapped = net("Reshape", wide, net.ints(0, 2, -1))
        return [net("Gather", flat, p) for p in (*places, wide, swapped, net("Identity", wide))]

    checked(tmp_path, ["N", 3, 4], body)


def test_elements_by_the_number_of_the_example(tmp_path: Path) -> None:
    """As transformers export masks of packed sequences."""

    def body(net: Network, x: str) -> list[str]:
        numbers = _numbers(net, x, 1, 4)
        other = net.constant(np.array([3, 0, -1, 1, 1], np.int64).reshape(1, 1, 5, 1))
        shape = net("Shape", net("Max", numbers, other))
        both = [net("Unsqueeze", net("Expand", v, shape), net.ints(4)) for v in (numbers, other)]
        pairs = net("Concat", *both, axis=-1)
        alike = net("Expand", net.ints(4, 2, 5, 1), net("Concat", net("Shape", x, end=1),
                                                        net.ints(4), axis=0))  # fmt: skip
        return [
            net("GatherND", x, pairs),
            net("GatherND", x, net("Reshape", pairs, net.ints(0, -1, 2))),
            net("GatherND", x, net("Reshape", _numbers(net, x, 1, 1), net.ints(-1, 1))),
            net("GatherND", alike, pairs),
            net("Sub", alike, net.ints(1)),
            net("Mul", net("Slice", alike, net.ints(1), net.ints(3), net.ints(1)), net.ints(2)),
            alike,
        ]

    checked(tmp_path, ["N", 4, 3], body)


def test_numbers_of_examples_are_nothing_to_compute_with(tmp_path: Path) -> None:
    net = Network(20)
    numbers = _numbers(net, "x", 1, 2)
    other = net("Gather", "x", net.constant(np.array([[0]], np.int64)), axis=0)
    path = tmp_path / "model.onnx"
    for result, what in (
        (numbers, "numbers of the batch elements"),
        (net("Mul", net("Cast", numbers, to=TensorProto.FLOAT), other), "but as indices"),
        (net("Gather", net("Reshape", "x", net.ints(-1)), numbers), "elements of other examples"),
    ):
        path.write_bytes(net.model({"x": ["N", 4]}, [result]).SerializeToString())
        with pytest.raises(UnsupportedError, match=what):
            load(path, LoadOptions())
