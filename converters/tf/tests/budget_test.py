"""Models whose constants take too long to compute are refused.

The graph that all formats are lowered to computes them, and for ONNX TensorFlow before that.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import tensorflow as tf
from onnx import TensorProto, helper

from converters.tf import tf2rust
from converters.tf.emit.options import Options
from converters.tf.errors import FeaturesError, FileError
from converters.tf.ir import budget
from tools.codegen.conversion import Problem

# Side of the constants, and how many of them are made of the one before.
_SIDE = 64
_LINKS = 300


def _chained(x: tf.Tensor) -> tf.Tensor:
    """Returns an input plus a number that a chain of ops on constants gives."""
    table = tf.reshape(tf.range(_SIDE * _SIDE, dtype=tf.float32), [_SIDE, _SIDE]) / 9000.0
    for _ in range(_LINKS):
        table = tf.sin(table)
    return x + tf.reduce_sum(table)


def _frozen(path: Path) -> Path:
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None, 3], "x")
        tf.identity(_chained(x), "y")
    file = path / "model.pb"
    file.write_bytes(graph.as_graph_def().SerializeToString())
    return file


def _saved_model(path: Path) -> Path:
    module = tf.Module()
    spec = tf.TensorSpec([None, 3], tf.float32)
    module.f = tf.function(_chained, input_signature=[spec])
    tf.saved_model.save(module, str(path / "saved"), signatures=module.f)
    return path / "saved"


def _onnx(path: Path) -> Path:
    nodes = [helper.make_node("Sin", [f"c{i}"], [f"c{i + 1}"]) for i in range(_LINKS)]
    nodes.append(helper.make_node("ReduceSum", [f"c{_LINKS}"], ["sum"], keepdims=0))
    nodes.append(helper.make_node("Add", ["x", "sum"], ["y"]))
    table = np.linspace(0, 1, _SIDE * _SIDE, dtype=np.float32).reshape(_SIDE, _SIDE)
    kinds = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 3]) for n in "xy"]
    graph = helper.make_graph(
        nodes, "g", kinds[:1], kinds[1:], [onnx.numpy_helper.from_array(table, "c0")]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    file = path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    return file


@pytest.mark.parametrize("make", [_frozen, _saved_model, _onnx])
def test_one_budget_for_all_constants(
    make: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No constant is large; together they are, for a model that may compute less."""
    request = tf2rust.Request(make(tmp_path), Options("Chained", "chained"), crate_only=True)
    assert tf2rust.run(request).files
    monkeypatch.setattr(budget, "_FREE", _SIDE * _SIDE * _LINKS)
    monkeypatch.setattr(budget, "_PER_BYTE", 0)
    with pytest.raises(FileError) as caught:
        tf2rust.run(request)
    assert "computing its constants passes the limit for a model of its size" in str(caught.value)
    assert "let the program that exports the model compute its constants" in str(caught.value)


def test_what_a_file_stores_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A larger file may compute more."""
    request = tf2rust.Request(_onnx(tmp_path), Options("Chained", "chained"), crate_only=True)
    monkeypatch.setattr(budget, "_FREE", 0)
    monkeypatch.setattr(budget, "_PER_BYTE", 2 * _LINKS)
    assert tf2rust.run(request).files


def test_small_constants_cost_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time follows the number of nodes where constants are small."""
    monkeypatch.setattr(budget, "_FREE", 10_000)
    with budget.limited(0, lambda where: FileError(Problem(where, "too much"))):
        for _ in range(10):
            budget.spend(1, "layer")
        with pytest.raises(FileError, match="layer"):
            budget.spend(1, "layer")
    budget.spend(1 << 60, "outside of a budget")


def test_a_conversion_without_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: object) -> None:
        raise MemoryError("Unable to allocate 288. GiB")

    monkeypatch.setattr(tf2rust, "load", load)
    path = tmp_path / "m.onnx"
    path.write_bytes(b"x")
    with pytest.raises(FileError, match="more memory than there is: Unable to allocate 288"):
        tf2rust.run(tf2rust.Request(path, Options("net", "m.onnx")))


@pytest.mark.parametrize("size", [2**31 - 1, 2**53])
def test_an_input_that_is_too_large_to_make(tmp_path: Path, size: int) -> None:
    graph = tf.Graph()
    with graph.as_default():
        tf.identity(tf.compat.v1.placeholder(tf.float32, [None, size, 4], "x"), "y")
    path = tmp_path / "m.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    with pytest.raises(FeaturesError, match="too much to make"):
        tf2rust.run(tf2rust.Request(path, Options("net", "m.pb")))
