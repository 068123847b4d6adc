"""Operators of ONNX in forms of their own: losses, shifts of all bits, sequences of lengths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.lower.convert import convert
from converters.tf.tests.onnx_graphs import Dims, Network, agree, checked, saved


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_shifts_by_all_bits(tmp_path: Path, direction: str) -> None:
    """ONNX's own tests shift all bits out; onnxruntime leaves it to the machine."""
    net = Network(18)
    y = net("BitShift", net.constant(np.array([-9, 9], np.int32)), "x", direction=direction)
    path = saved(net.model({"x": ["N", 2]}, [y], [np.int32]), tmp_path)
    graph = convert(load(path, LoadOptions()).trace)
    given = np.array([[0, 1], [31, 31], [32, 99], [-1, -32]], np.int32)
    expected = {
        "LEFT": [[-9, 18], [-(1 << 31), -(1 << 31)], [0, 0], [0, 0]],
        "RIGHT": [[-9, 4], [-1, 0], [-1, 0], [-1, 0]],
    }
    assert interpret(graph, {"x": given})[y].tolist() == expected[direction]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(TensorProto.INT4, [7, -8, -1, 0, 7, -8]), (TensorProto.UINT4, [7, 8, 15, 0, 7, 8])],
)
def test_casts_to_four_bits_lose_the_upper_ones(
    tmp_path: Path, kind: int, expected: list[int]
) -> None:
    net = Network(21)
    wide = net("Cast", net("Cast", "x", to=kind), to=TensorProto.FLOAT)
    path = saved(net.model({"x": ["N", 6]}, [wide]), tmp_path)
    graph = convert(load(path, LoadOptions()).trace)
    given = np.array([[-9, -8, -1, 0, 7, 8]], np.float32)
    assert interpret(graph, {"x": given})[wide].tolist() == [expected]


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses(tmp_path: Path, reduction: str, weighted: bool) -> None:
    """Said in other operators by onnx itself, one of them twice."""

    def body(net: Network, x: str) -> list[str]:
        labels = net.constant(np.array([[0, 4, 1], [2, 2, 3]], np.int64))
        weights = [net("Abs", net.weight("w", 5))] if weighted else []
        attrs: dict[str, Any] = {"reduction": reduction, "ignore_index": 2}
        scores = net("LogSoftmax", x, axis=1)
        return [
            *net.many("SoftmaxCrossEntropyLoss", 2, x, labels, *weights, **attrs),
            net("NegativeLogLikelihoodLoss", scores, labels, *weights, **attrs),
        ]

    checked(tmp_path, [2, 5, 3], body, 13, batches=(1,))


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_sequences_of_different_lengths(tmp_path: Path, op: str, direction: str) -> None:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    ways = 2 if direction == "bidirectional" else 1
    net = Network(14)
    weights = [
        net.weight("w", ways, gates * 6, 3),
        net.weight("r", ways, gates * 6, 6),
        net.weight("b", ways, 2 * gates * 6),
    ]
    attrs: dict[str, Any] = {"hidden_size": 6, "direction": direction}
    if op == "GRU":
        attrs["linear_before_reset"] = 1
    count = 3 if op == "LSTM" else 2
    swapped = net("Transpose", "x", perm=[1, 0, 2])
    y, *ends = net.many(op, count, swapped, *weights, "lengths", **attrs)
    outputs = [net("Transpose", y, perm=[2, 0, 1, 3])]
    outputs += [net("Transpose", end, perm=[1, 0, 2]) for end in ends]
    inputs: dict[str, Dims] = {"x": ["N", 5, 3], "lengths": ["N"]}
    model = net.model(inputs, outputs, [np.float32, np.int32])
    graph = agree(model, tmp_path, batches=(1, 4, 17), whole=6)
    kinds = [type(node.op).__name__.upper() for node in graph.nodes]
    assert kinds.count({"RNN": "SIMPLERNN"}.get(op, op)) == ways
    assert "LOOP" not in kinds


def test_constant_lengths_of_sequences(tmp_path: Path) -> None:
    net = Network(14)
    weights = [net.weight("w", 1, 24, 3), net.weight("r", 1, 24, 6), net.weight("b", 1, 48)]
    lengths = net.constant(np.array([2, 5, 1], np.int32))
    y, end, _ = net.many("LSTM", 3, "x", *weights, lengths, hidden_size=6)
    model = net.model({"x": [5, 3, 3]}, [y, end])
    agree(model, tmp_path, batches=(1,))
