"""Loops and boxes whose number the inputs decide, against onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from converters.tf import ir
from converters.tf.emit.support import problems
from converters.tf.ir import Array
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.lower.convert import convert
from converters.tf.tests.onnx_graphs import saved
from tools.codegen.conversion import UnsupportedError

_TOLERANCE = 1e-5
_ENDLESS = np.array(np.iinfo(np.int64).max)
_YES = np.array(True)


def _loop(scanned: int | None, shape: list[int], known: Mapping[str, Array]) -> Any:
    """Returns a model that halves `x` until its sum is at most `least`, or `turns` times.

    Args:
        scanned: The number of rows that the file states for what each turn writes, or no rows.
        shape: The shape of `x`.
        known: Constants, among `turns`, `going` and `least`.
    """
    state = helper.make_tensor_value_info("s", TensorProto.FLOAT, shape)
    index = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    going = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    nodes = [
        helper.make_node("Mul", ["s", "half"], ["t"]),
        helper.make_node("ReduceSum", ["t"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "least"], ["on"]),
        helper.make_node("CastLike", ["i", "t"], ["number"]),
        helper.make_node("Add", ["t", "number"], ["row"]),
    ]
    half = numpy_helper.from_array(np.float32(0.5), "half")
    outs = [("on", TensorProto.BOOL), ("t", TensorProto.FLOAT), ("row", TensorProto.FLOAT)]
    results = [helper.make_empty_tensor_value_info(name) for name, _ in outs]
    for info, (_, kind) in zip(results, outs, strict=True):
        info.type.tensor_type.elem_type = kind
    count = 3 if scanned is not None else 2
    body = helper.make_graph(nodes, "body", [index, going, state], results[:count], [half])
    node = helper.make_node("Loop", ["turns", "going", "x"], ["y", "rows"][: count - 1], body=body)
    kinds = {"turns": TensorProto.INT64, "going": TensorProto.BOOL, "least": TensorProto.FLOAT}
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    inputs += [helper.make_tensor_value_info(n, k, []) for n, k in kinds.items() if n not in known]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)]
    if scanned is not None:
        rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, [scanned, *shape])
        outputs.append(rows)
    constants = [numpy_helper.from_array(np.asarray(a), n) for n, a in known.items()]
    graph = helper.make_graph([node], "g", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _converted(model: Any, folder: Path) -> ir.Graph:
    graph = convert(load(saved(model, folder), LoadOptions()).trace)
    assert problems(graph) == []
    return graph


def _agree(model: Any, graph: ir.Graph, fed: Mapping[str, Array]) -> None:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    expected = session.run(None, dict(fed))
    found = interpret(graph, {port.name: fed[port.name] for port in graph.inputs})
    for array, wanted in zip(found.values(), expected, strict=True):
        assert array.shape == wanted.shape
        np.testing.assert_allclose(array, wanted, _TOLERANCE, _TOLERANCE)


_X = np.array([3.0, 5.0], np.float32)


def _fed(turns: int, going: bool, least: float) -> dict[str, Array]:
    return {
        "x": _X,
        "turns": np.array(turns, np.int64),
        "going": np.array(going),
        "least": np.array(least, np.float32),
    }


def test_a_call_says_how_often_a_loop_turns(tmp_path: Path) -> None:
    model = _loop(None, [2], {})
    graph = _converted(model, tmp_path)
    for turns in (0, 1, 7, 200):
        for going in (False, True):
            _agree(model, graph, _fed(turns, going, 0.3))


@pytest.mark.parametrize("turns", [np.array(5), np.array(100), _ENDLESS])
def test_a_value_ends_a_loop(turns: Array, tmp_path: Path) -> None:
    """Few turns, more than are written out, and a loop of `while`."""
    model = _loop(None, [2], {"turns": turns, "going": _YES})
    graph = _converted(model, tmp_path)
    for least in (9.0, 1.0, 1e-4):
        fed = _fed(0, True, least)
        _agree(model, graph, {"x": fed["x"], "least": fed["least"]})


def test_a_loop_of_many_turns(tmp_path: Path) -> None:
    known: dict[str, Array] = {
        "turns": np.array(70),
        "going": _YES,
        "least": np.array(-1, np.float32),
    }
    model = _loop(None, [2], known)
    _agree(model, _converted(model, tmp_path), {"x": _X})


def test_rows_of_as_many_turns_as_the_file_states(tmp_path: Path) -> None:
    model = _loop(3, [2], {})
    graph = _converted(model, tmp_path)
    # The sums are 4, 2, 1 and 0.5.
    for turns, least in ((3, 0.1), (3, 1.0), (9, 1.5)):
        _agree(model, graph, _fed(turns, True, least))
    for turns, going, least in ((2, True, 0.1), (4, True, 0.1), (3, False, 0.1), (9, True, 2.5)):
        with pytest.raises(ValueError, match="an index is not below"):
            interpret(graph, _fed(turns, going, least))


def test_rows_of_a_loop_over_a_large_input(tmp_path: Path) -> None:
    known = {"turns": _ENDLESS, "going": _YES, "least": np.array(10, np.float32)}
    model = _loop(4, [5, 8], known)
    # The sum of the fourth turn is the first one of at most 10.
    x = np.full((5, 8), 3.0, np.float32)
    _agree(model, _converted(model, tmp_path), {"x": x})


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        ({"going": _YES}, "operand 0 is computed from the model's inputs"),
        ({"turns": np.array(5), "going": _YES}, "rows .* of a number that nothing states"),
        ({"turns": np.array(65), "going": _YES, "least": np.array(-1, np.float32)}, "rows of more"),
    ],
)
def test_rows_that_nothing_counts_are_refused(
    known: Mapping[str, Array], reason: str, tmp_path: Path
) -> None:
    model = _loop(3, [2], known)
    model.graph.output[1].type.tensor_type.shape.dim[0].dim_param = "n"
    with pytest.raises(UnsupportedError, match=reason):
        _converted(model, tmp_path)


_LIMITS: dict[str, Array] = {
    "most": np.array([2], np.int64),
    "overlap": np.array([0.4], np.float32),
    "least": np.array([0.3], np.float32),
}


def _boxes(batch: int, classes: int, count: int, constants: list[str], centers: int) -> Any:
    shapes = {"boxes": [batch, count, 4], "scores": [batch, classes, count]}
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]
    for name, array in _LIMITS.items():
        if name not in constants:
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            inputs.append(helper.make_tensor_value_info(name, kind, [1]))
    operands = ["boxes", "scores", *_LIMITS]
    node = helper.make_node("NonMaxSuppression", operands, ["kept"], center_point_box=centers)
    kept = helper.make_tensor_value_info("kept", TensorProto.INT64, ["n", 3])
    known = [numpy_helper.from_array(_LIMITS[name], name) for name in constants]
    graph = helper.make_graph([node], "g", inputs, [kept], known)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("constants", [[], ["most"], ["overlap"], ["least"], ["overlap", "least"]])
@pytest.mark.parametrize(("batch", "classes", "count", "centers"), [(1, 1, 1, 0), (2, 3, 17, 1)])
def test_a_call_says_which_boxes_are_kept(
    batch: int, classes: int, count: int, centers: int, constants: list[str], tmp_path: Path
) -> None:
    """Some boxes are the same, some have no area, and some scores are equal."""
    model = _boxes(batch, classes, count, constants, centers)
    graph = _converted(model, tmp_path)
    random = np.random.default_rng(3)
    others = ((2, 0.4, 0.3), (0, 0.4, 0.3), (50, 0.0, -1.0), (5, 1.0, 0.5), (9, 0.25, 2.0))
    for most, overlap, least in others:
        limits: dict[str, Array] = {
            "most": np.array([most], np.int64),
            "overlap": np.array([overlap], np.float32),
            "least": np.array([least], np.float32),
        }
        corners = random.integers(0, 4, (batch, count, 2)) / 4
        sizes = random.integers(0, 4, (batch, count, 2)) / 4
        boxes = np.concatenate([corners, sizes if centers else corners + sizes], -1)
        fed = {
            "boxes": boxes.astype(np.float32),
            "scores": (random.integers(0, 8, (batch, classes, count)) / 8).astype(np.float32),
        }
        fed |= {name: array for name, array in limits.items() if name not in constants}
        _agree(model, graph, fed)


@pytest.mark.parametrize("ends", [0, 1])
@pytest.mark.parametrize(
    ("dims", "rank"),
    [
        (["N", 3, 5, 6], 2),
        (["N", 3, "h", "w"], 2),
        ([2, 1, 4, 5, 6], 3),
        (["N", 3, 4, "h", "w"], 3),
        (["N", 3, 1, 6], 2),
    ],
)
def test_grids_of_an_open_batch_and_open_images(
    dims: list[Any], rank: int, ends: int, tmp_path: Path
) -> None:
    nodes = [
        helper.make_node("Shape", ["image"], ["size"]),
        helper.make_node("AffineGrid", ["theta", "size"], ["grid"], align_corners=ends),
    ]
    inputs = [
        helper.make_tensor_value_info("image", TensorProto.FLOAT, dims),
        helper.make_tensor_value_info("theta", TensorProto.FLOAT, [dims[0], rank, rank + 1]),
    ]
    output = helper.make_empty_tensor_value_info("grid")
    output.type.tensor_type.elem_type = TensorProto.FLOAT
    graph = helper.make_graph(nodes, "g", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    converted = _converted(model, tmp_path)
    random = np.random.default_rng(5)
    for sizes in ({"N": 2, "h": 7, "w": 4}, {"N": 1, "h": 2, "w": 3}):
        shape = [sizes.get(d, d) for d in dims]
        theta = random.normal(size=(shape[0], rank, rank + 1)).astype(np.float32)
        fed = {"image": np.zeros(shape, np.float32), "theta": theta}
        (expected,) = ReferenceEvaluator(model).run(None, fed)
        found = interpret(converted, {port.name: fed[port.name] for port in converted.inputs})
        np.testing.assert_allclose(found["grid"], expected, _TOLERANCE, _TOLERANCE)
