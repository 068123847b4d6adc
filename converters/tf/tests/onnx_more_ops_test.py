"""Operators of ONNX in forms of their own: losses, shifts of all bits, sequences of lengths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from converters.tf import ir
from converters.tf.emit.support import problems
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.lower.convert import convert
from converters.tf.tests.onnx_graphs import Dims, Network, agree, checked, saved
from tools.codegen.conversion import UnsupportedError


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


def test_losses_of_a_later_operator_set(tmp_path: Path) -> None:
    """Their words are those of an earlier set than the model's."""

    def body(net: Network, x: str) -> list[str]:
        labels = net.constant(np.array([[0, 4, 1], [2, 2, 3]], np.int64))
        return [net("SoftmaxCrossEntropyLoss", x, labels, reduction="sum")]

    checked(tmp_path, [2, 5, 3], body, 21, batches=(1,))


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


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [(np.float32, TensorProto.INT32), (np.float32, TensorProto.UINT32),
     (np.float64, TensorProto.INT64), (np.float64, TensorProto.UINT64)],
)  # fmt: skip
def test_bits_of_floats(tmp_path: Path, dtype: Any, bits: int) -> None:
    """There and back: all powers of two, the smallest numbers, infinity and both zeros."""
    limits = np.finfo(dtype)
    powers = np.exp2(np.arange(limits.minexp, limits.maxexp, dtype=dtype))
    odd = np.array([0.0, -0.0, np.inf, -np.inf, limits.smallest_subnormal, limits.max, 1 / 3])
    given = np.concatenate([powers, -powers * 1.2, odd, -odd / 7, powers[:30] / 9]).astype(dtype)
    net = Network(26)
    whole = net("BitCast", "x", to=bits)
    back = net("BitCast", whole, to=int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype))))
    model = net.model({"x": ["N", given.size]}, [whole, back], [dtype])
    graph = convert(load(saved(model, tmp_path), LoadOptions()).trace)
    assert problems(graph) == []
    found = interpret(graph, {"x": given[None]})
    integer = helper.tensor_dtype_to_np_dtype(bits)
    assert np.array_equal(found[whole][0], given.view(integer))
    assert np.array_equal(found[back][0].view(integer), given.view(integer))


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Mod", "Max", "Min"])
def test_arithmetic_of_uint64(tmp_path: Path, op: str) -> None:
    last = 1 << 64
    ends = np.array([0, 1, 2, 7, 1 << 32, last // 2 - 1, last // 2, last - 2, last - 1], np.uint64)
    a, b = (x.ravel() for x in np.meshgrid(ends, ends[1:]))
    net = Network(18)
    y = net(op, "a", "b")
    small, wide = net("Less", "a", "b"), net("Cast", "a", to=TensorProto.DOUBLE)
    inputs: dict[str, Dims] = {"a": ["N", a.size], "b": ["N", a.size]}
    model = net.model(inputs, [y, small, wide], [np.uint64, np.uint64])
    graph = convert(load(saved(model, tmp_path), LoadOptions()).trace)
    assert problems(graph) == []
    found = interpret(graph, {"a": a[None], "b": b[None]})
    numpy = {
        "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.floor_divide,
        "Mod": np.mod, "Max": np.maximum, "Min": np.minimum,
    }  # fmt: skip
    assert np.array_equal(found[y][0], numpy[op](a, b))
    assert np.array_equal(found[small][0], a < b)
    assert np.array_equal(found[wide][0], a.astype(np.float64))


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_computed_weights(tmp_path: Path, op: str, groups: int) -> None:
    net = Network(18)
    shape = (2 * groups, 4 // groups, 3, 2) if op == "Conv" else (4, 3, 3, 2)
    weights = net("Mul", net.weight("w", *shape), "factor")
    options: dict[str, Any] = {
        "strides": [2, 1],
        "dilations": [1, 2],
        "pads": [1, 0, 2, 1],
        "group": groups,
    }
    y = net(op, "x", weights, **options)
    inputs: dict[str, Dims] = {"x": ["N", 4, 7, 6], "factor": [1]}
    model = net.model(inputs, [y], [np.float32, np.float32])
    graph = agree(model, tmp_path, batches=(1, 3))
    assert not any(isinstance(node.op, ir.Conv | ir.ConvTranspose) for node in graph.nodes)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_negative_indices_of_the_model(tmp_path: Path, axis: int) -> None:
    """A lookup that counts from the end is none that a kernel has."""
    net = Network(18)
    table = net.weight("table", 5, 5)
    y = net("Gather", table, "at", axis=axis)
    elements = net("GatherElements", "x", "at", axis=1)
    inputs: dict[str, Dims] = {"x": ["N", 5], "at": ["N", 3]}
    model = net.model(inputs, [y, elements], [np.float32, np.int64])
    graph = convert(load(saved(model, tmp_path), LoadOptions()).trace)
    assert problems(graph) == []
    assert not any(isinstance(node.op, ir.Gather) and node.op.wrap for node in graph.nodes)
    x, at = np.arange(10, dtype=np.float32).reshape(2, 5), np.array([[-1, -5, 4], [0, -2, 1]])
    found = interpret(graph, {"x": x, "at": at})
    weights = _constant(model, "table")
    assert np.array_equal(found[y], np.take(weights, at, axis=axis))
    assert np.array_equal(found[elements], np.take_along_axis(x, at, 1))


def _constant(model: Any, name: str) -> Any:
    """Returns a constant of a model."""
    return numpy_helper.to_array(next(t for t in model.graph.initializer if t.name == name))


@pytest.mark.parametrize("ordered", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -3])
def test_slices_of_which_each_comes_once(tmp_path: Path, axis: int, ordered: int) -> None:
    dims = [6, 6, 2]
    net = Network(18)
    names = net.many("Unique", 4, "x", axis=axis, sorted=ordered)
    model = net.model({"x": dims}, names)
    graph = convert(load(saved(model, tmp_path), LoadOptions()).trace)
    assert problems(graph) == []
    session = onnxruntime.InferenceSession(model.SerializeToString())
    random = np.random.default_rng(4)
    for most in (1, 2, 3):
        few = random.integers(0, 3, 6) if most > 1 else np.zeros(6, np.int64)
        x = np.take(random.integers(0, most, dims), few, axis).astype(np.float32)
        found = interpret(graph, {"x": x})
        for name, expected in zip(names, session.run(None, {"x": x}), strict=True):
            assert np.array_equal(found[name], expected), name


def test_too_many_slices_are_refused(tmp_path: Path) -> None:
    net = Network(18)
    path = saved(net.model({"x": [3000, 2]}, net.many("Unique", 1, "x", axis=0)), tmp_path)
    with pytest.raises(UnsupportedError, match="3000 slices of 2 elements"):
        load(path, LoadOptions())
