"""ONNX models whose results no input decides, and operands that must leave a result as it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from converters.tf import ir
from converters.tf.emit.support import problems
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.lower.convert import convert
from converters.tf.tests.onnx_crates import failures
from tools.codegen.conversion import UnsupportedError

_TOLERANCE = 1e-6
_FLOAT, _BOOL = TensorProto.FLOAT, TensorProto.BOOL


def _model(nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def _converted(model: Any, folder: Path) -> ir.Graph:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    graph = convert(load(path, LoadOptions()).trace)
    assert problems(graph) == []
    return graph


def _constants() -> Any:
    """Returns a model without inputs: numbers that are computed of constants, and a truth value."""
    data = numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3))
    sizes = numpy_helper.from_array(np.array([2, 2], np.int64))
    nodes = [
        helper.make_node("Constant", [], ["data"], value=data),
        helper.make_node("Constant", [], ["sizes"], value=sizes),
        helper.make_node("Sqrt", ["data"], ["roots"]),
        helper.make_node("ConstantOfShape", ["sizes"], ["zeros"]),
        helper.make_node("OptionalHasElement", [], ["there"]),
    ]
    outputs = [
        helper.make_tensor_value_info("roots", _FLOAT, [2, 3]),
        helper.make_tensor_value_info("zeros", _FLOAT, [2, 2]),
        helper.make_tensor_value_info("there", _BOOL, []),
    ]
    return _model(nodes, [], outputs)


def test_a_model_without_inputs(tmp_path: Path) -> None:
    model = _constants()
    graph = _converted(model, tmp_path)
    assert graph.inputs == ()
    found = interpret(graph, {})
    for array, wanted in zip(found.values(), ReferenceEvaluator(model).run(None, {}), strict=True):
        assert array.shape == wanted.shape
        np.testing.assert_allclose(array, wanted, _TOLERANCE, _TOLERANCE)
    assert failures([(graph, {})]) == {}


def _dropout(ratio: float | None, training: bool | None, batch: Any = "batch") -> Any:
    """Returns a dropout whose ratio and mode are constants, or inputs if they are not given."""
    inputs = [helper.make_tensor_value_info("x", _FLOAT, [batch, 3])]
    constants = []
    operands: list[tuple[str, Any, Any]] = [
        ("ratio", np.float32, ratio),
        ("training", np.bool_, training),
    ]
    for name, kind, value in operands:
        if value is None:
            code = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
            inputs.append(helper.make_tensor_value_info(name, code, []))
        else:
            constants.append(numpy_helper.from_array(np.asarray(value, kind), name))
    outputs = [
        helper.make_tensor_value_info("y", _FLOAT, [batch, 3]),
        helper.make_tensor_value_info("mask", _BOOL, [batch, 3]),
    ]
    model = _model(
        [helper.make_node("Dropout", ["x", "ratio", "training"], ["y", "mask"])], inputs, outputs
    )
    model.graph.initializer.extend(constants)
    return model


@pytest.mark.parametrize("ratio", [None, 0.0, 0.25])
@pytest.mark.parametrize("training", [None, False, True])
def test_dropout_whose_operands_are_inputs(
    ratio: float | None, training: bool | None, tmp_path: Path
) -> None:
    model = _dropout(ratio, training)
    if ratio and training:
        with pytest.raises(UnsupportedError, match="dropout in training mode"):
            _converted(model, tmp_path)
        return
    graph = _converted(model, tmp_path)
    x = np.random.default_rng(3).normal(size=(2, 3)).astype(np.float32)
    for own in [ratio] if ratio is not None else [0.0, 0.5]:
        for mode in [training] if training is not None else [False, True]:
            every = {"x": x, "ratio": np.float32(own), "training": np.bool_(mode)}
            fed: dict[str, Any] = {port.name: np.asarray(every[port.name]) for port in graph.inputs}
            if own and mode:
                with pytest.raises(ValueError, match="an index is not below"):
                    interpret(graph, fed)
                continue
            found = interpret(graph, fed)
            for name, wanted in zip(found, ReferenceEvaluator(model).run(None, fed), strict=True):
                np.testing.assert_array_equal(found[name], wanted)


def test_crates_of_dropout_agree(tmp_path: Path) -> None:
    graph = _converted(_dropout(None, None, 2), tmp_path)
    fed = {"x": np.ones((2, 3), np.float32), "ratio": np.float32(0.5), "training": np.bool_(False)}
    assert failures([(graph, {name: np.asarray(data) for name, data in fed.items()})]) == {}


def test_a_value_that_is_there(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Optional", ["x"], ["held"]),
        helper.make_node("OptionalHasElement", ["held"], ["there"]),
        helper.make_node("OptionalGetElement", ["held"], ["taken"]),
        helper.make_node("Neg", ["taken"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info("x", _FLOAT, ["batch", 3])]
    outputs = [
        helper.make_tensor_value_info("y", _FLOAT, ["batch", 3]),
        helper.make_tensor_value_info("there", _BOOL, []),
    ]
    graph = _converted(_model(nodes, inputs, outputs), tmp_path)
    found = interpret(graph, {"x": np.ones((2, 3), np.float32)})
    np.testing.assert_array_equal(found["y"], np.full((2, 3), -1, np.float32))
    assert found["there"].shape == ()
    assert bool(found["there"])


def test_a_value_that_is_absent_is_refused(tmp_path: Path) -> None:
    kind = helper.make_tensor_type_proto(_FLOAT, [3])
    nodes = [
        helper.make_node("Optional", [], ["held"], type=kind),
        helper.make_node("OptionalHasElement", ["held"], ["there"]),
    ]
    model = _model(nodes, [], [helper.make_tensor_value_info("there", _BOOL, [])])
    with pytest.raises(UnsupportedError, match="values that may be absent"):
        _converted(model, tmp_path)
