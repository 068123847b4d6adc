"""Inputs that the caller makes constants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from onnx import helper

from converters.tf.ir.interpret import interpret
from converters.tf.load.input_values import arrays_of
from converters.tf.load.model import LoadOptions, load
from converters.tf.tests.onnx_graphs import Dims, Network, saved
from converters.tf.tf2rust import graph_of
from tools.codegen.conversion import UnsupportedError, UsageError

_INPUTS = [
    ("rate", "int64", ()),
    ("training", "bool", ()),
    ("gain", "float32", (2, 2)),
    ("x", "float32", (None, 3)),
    ("names", "string", (1,)),
]


def test_values_of_all_types() -> None:
    found = arrays_of({"rate": "16000", "training": "False", "gain": "0.5"}, _INPUTS)
    assert found["rate"].dtype == np.int64
    assert found["rate"].shape == ()
    assert found["rate"] == 16000
    assert not found["training"]
    np.testing.assert_array_equal(found["gain"], np.full((2, 2), 0.5, np.float32))
    several = arrays_of({"gain": "1,2,-3,4e2"}, _INPUTS)["gain"]
    np.testing.assert_array_equal(several, np.array([[1, 2], [-3, 400]], np.float32))


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("rat", "1", "no input has this name; the inputs are rate, training, gain, x, names"),
        ("rate", "0.5", "expected values of int64"),
        ("rate", str(1 << 70), "expected values of int64"),
        ("training", "1", "expected values of bool"),
        ("gain", "1,2,3", "3 elements of 4"),
        ("x", "1", r"its shape, \[\?, 3\], is open; fix it by --input_shape or --batch"),
        ("gain", "nan", "expected values of float32"),
        ("gain", "1e39", "expected values of float32"),
        ("names", "a", "an input of string can't have a value"),
    ],
)
def test_wrong_values(name: str, text: str, why: str) -> None:
    with pytest.raises(UsageError, match=f"--input_value {name}={text}: {why}"):
        arrays_of({name: text}, _INPUTS)


def test_an_input_is_left() -> None:
    with pytest.raises(UsageError, match="no input would be left"):
        arrays_of({"rate": "1"}, _INPUTS[:1])


def _by_rate() -> Network:
    """Two layers, of which the sampling rate chooses one: that of the other needs other sizes."""
    net = Network(17)
    net("Equal", "rate", net.constant(np.array(16000, np.int64)))
    outputs = []
    for width in (6, 3):
        own = Network(17)
        made = own("MatMul", "x", own.weight(f"w{width}", width, 2))
        net.constants += own.constants
        result = [helper.make_empty_tensor_value_info(made)]
        outputs.append(helper.make_graph(own.nodes, f"by_{width}", [], result))
    then, other = outputs
    net("If", net.nodes[0].output[0], then_branch=then, else_branch=other)
    return net


@pytest.mark.parametrize(("rate", "width"), [(16000, 6), (8000, 3)])
def test_a_value_chooses_a_branch(rate: int, width: int, tmp_path: Path) -> None:
    net = _by_rate()
    dims: dict[str, Dims] = {"rate": [], "x": ["batch", width]}
    path = saved(net.model(dims, [net.nodes[-1].output[0]], [np.int64]), tmp_path)
    with pytest.raises(UnsupportedError, match=r"\(if an input chooses the branch, --input_value"):
        load(path, LoadOptions())
    loaded = load(path, LoadOptions(values={"rate": str(rate)}))
    graph = graph_of(loaded)
    assert [port.name for port in graph.inputs] == ["x"]
    x = np.random.default_rng(3).normal(size=(2, width)).astype(np.float32)
    weight = next(w for w in net.constants if w.name == f"w{width}")
    expected = x @ np.frombuffer(weight.raw_data, np.float32).reshape(width, 2)
    for found in (interpret(graph, {"x": x}), loaded.predict({"x": x})):
        (output,) = found.values()
        np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)


class _Gated(tf.Module):  # type: ignore[misc]  # TensorFlow has no types.
    """A flag chooses what is computed, as `phase_train` does in models of TensorFlow 1."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = tf.Variable(tf.ones([4, 2]))

    @tf.function(  # type: ignore[untyped-decorator]
        input_signature=[tf.TensorSpec([None, 4], name="x"), tf.TensorSpec([], tf.bool, "phase")]
    )
    def __call__(self, x: Any, phase: Any) -> Any:
        chosen = tf.cond(phase, lambda: x * 2.0, lambda: x - 1.0)
        return chosen @ self.weights


@pytest.mark.parametrize("phase", [False, True])
def test_saved_models_have_values_too(phase: bool, tmp_path: Path) -> None:
    model = _Gated()
    tf.saved_model.save(model, str(tmp_path / "m"))
    loaded = load(tmp_path / "m", LoadOptions(values={"phase": str(phase).lower()}))
    graph = graph_of(loaded)
    (port,) = graph.inputs
    assert port.name == "x"
    data = np.random.default_rng(3).normal(size=(2, 4)).astype(np.float32)
    expected = model(data, phase)
    for outputs in (interpret(graph, {"x": data}), loaded.predict({"x": data})):
        (found,) = outputs.values()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(UsageError, match="no input has this name; the inputs are phase, x"):
        load(tmp_path / "m", LoadOptions(values={"train": "false"}))
