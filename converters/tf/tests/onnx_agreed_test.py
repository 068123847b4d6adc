"""Axes and sizes that a call gives, where the file states the shape of the result."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from converters.tf import ir
from converters.tf.emit.support import problems
from converters.tf.ir import Array
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.lower.convert import convert
from converters.tf.tests.onnx_crates import failures
from tools.codegen.conversion import UnsupportedError

_TOLERANCE = 1e-5
_RANDOM = np.random.default_rng(7)


def _data(*shape: int) -> Array:
    return _RANDOM.normal(size=shape).astype(np.float32)


def _ints(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def _model(
    op: str, given: Mapping[str, Array | None], results: Sequence[Sequence[int]], **attrs: Any
) -> onnx.ModelProto:
    """Returns a model of one node all of whose operands are inputs; `None` is left out."""
    attrs = dict(attrs)
    version = attrs.pop("version", 20)
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in given.items()
        if array is not None
    ]
    kind = attrs.pop("kind", TensorProto.FLOAT)
    kinds = [kind, *[TensorProto.INT64 if op == "TopK" else kind] * (len(results) - 1)]
    outputs = [
        helper.make_tensor_value_info(f"y{i}", kinds[i], shape) for i, shape in enumerate(results)
    ]
    names = [name if array is not None else "" for name, array in given.items()]
    node = helper.make_node(op, names, [o.name for o in outputs], **attrs)
    graph = helper.make_graph([node], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])


def _converted(model: onnx.ModelProto, tmp_path: Path) -> ir.Graph:
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    graph = convert(load(path, LoadOptions()).trace)
    assert problems(graph) == []
    return graph


def _agree(model: onnx.ModelProto, graph: ir.Graph, given: Mapping[str, Array | None]) -> None:
    fed = {name: array for name, array in given.items() if array is not None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = ReferenceEvaluator(model).run(None, fed)
    found = interpret(graph, {port.name: fed[port.name] for port in graph.inputs})
    for array, wanted in zip(found.values(), expected, strict=True):
        assert array.shape == wanted.shape
        np.testing.assert_allclose(array, wanted, _TOLERANCE, _TOLERANCE)


_CUBE = _data(2, 3, 3)
# An operator, its operands, the stated results, attributes, other values of operands that agree
# with these, and values that contradict them.
_CASES: dict[str, tuple[Any, ...]] = {
    "sum": (
        "ReduceSum",
        {"x": _CUBE, "axes": _ints(1)},
        [[2, 3]],
        {"keepdims": 0},
        [{"axes": _ints(-1)}, {"axes": _ints(2)}],
        [{"axes": _ints(0)}, {"axes": _ints(3)}, {"axes": _ints(-4)}],
    ),
    "largest of kept axes": (
        "ReduceMax",
        {"x": _CUBE, "axes": _ints(0, 2)},
        [[1, 3, 1]],
        {},
        [{"axes": _ints(2, 0)}, {"axes": _ints(-1, -3)}],
        [{"axes": _ints(0, 1)}, {"axes": _ints(2, 2)}],
    ),
    "running sum": (
        "CumSum",
        {"x": _CUBE, "axis": np.array(1, np.int64)},
        [[2, 3, 3]],
        {"reverse": 1},
        [{"axis": np.array(i, np.int64)} for i in (-3, 0, 2, -1)],
        [{"axis": np.array(3, np.int64)}, {"axis": np.array(-4, np.int64)}],
    ),
    "transform": (
        "DFT",
        {"x": _data(1, 4, 4, 2), "length": None, "axis": np.array(1, np.int64)},
        [[1, 4, 4, 2]],
        {},
        [{"axis": np.array(i, np.int64)} for i in (2, -2, -3)],
        [{"axis": np.array(4, np.int64)}, {"axis": np.array(3, np.int64)}],
    ),
    "new axes": (
        "Unsqueeze",
        {"x": _data(3, 4), "axes": _ints(0, 2)},
        [[1, 3, 1, 4]],
        {},
        [{"axes": _ints(-2, -4)}],
        [{"axes": _ints(0, 1)}, {"axes": _ints(0, 4)}],
    ),
    "axes of size 1": (
        "Squeeze",
        {"x": _data(1, 3, 1), "axes": _ints(2)},
        [[1, 3]],
        {},
        [{"axes": _ints(-1)}],
        [{"axes": _ints(0)}, {"axes": _ints(1)}],
    ),
    "another shape": (
        "Reshape",
        {"x": _data(2, 3, 4), "shape": _ints(2, 12)},
        [[2, 12]],
        {},
        [{"shape": _ints(-1, 12)}, {"shape": _ints(0, -1)}, {"shape": _ints(2, -1)}],
        [{"shape": _ints(3, 8)}, {"shape": _ints(-1, -1)}, {"shape": _ints(2, 0)}],
    ),
    "broadcast": (
        "Expand",
        {"x": _data(3, 1), "shape": _ints(2, 1, 4)},
        [[2, 3, 4]],
        {},
        [{"shape": _ints(2, 3, 4)}],
        [{"shape": _ints(1, 3, 4)}, {"shape": _ints(2, 3, 1)}],
    ),
    "filled": (
        "ConstantOfShape",
        {"shape": _ints(2, 3)},
        [[2, 3]],
        {},
        [],
        [{"shape": _ints(3, 2)}],
    ),
    "repeated": (
        "Tile",
        {"x": _data(2, 3), "repeats": _ints(2, 1)},
        [[4, 3]],
        {},
        [],
        [{"repeats": _ints(1, 2)}],
    ),
    "best": (
        "TopK",
        {"x": _data(3, 5), "k": _ints(2)},
        [[3, 2], [3, 2]],
        {},
        [],
        [{"k": _ints(3)}],
    ),
    "parts": (
        "Split",
        {"x": _data(2, 5), "split": _ints(2, 3)},
        [[2, 2], [2, 3]],
        {"axis": 1},
        [],
        [{"split": _ints(3, 2)}],
    ),
    "range": (
        "Range",
        {name: np.array(n, np.float32) for name, n in (("a", 1.0), ("b", 5.0), ("c", 2.0))},
        [[2]],
        {},
        [{"b": np.array(4.5, np.float32)}, {"a": np.array(1.5, np.float32)}],
        [{"b": np.array(5.5, np.float32)}, {"c": np.array(-2, np.float32)}],
    ),
    "columns": (
        "Col2Im",
        {"x": _data(1, 4, 9), "image": _ints(4, 4), "block": _ints(2, 2)},
        [[1, 1, 4, 4]],
        {},
        [],
        [{"block": _ints(1, 4)}, {"block": _ints(4, 1)}, {"image": _ints(2, 8)}],
    ),
    "part": (
        "Slice",
        {"x": _data(5, 6), "starts": _ints(1, 0), "ends": _ints(3, 6)},
        [[2, 6]],
        {},
        [{"starts": _ints(3, -9), "ends": _ints(99, 99)}, {"starts": _ints(-4, 0)}],
        [{"starts": _ints(0, 0)}, {"ends": _ints(3, 5)}],
    ),
    "part of named axes": (
        "Slice",
        {
            "x": _data(5, 6),
            "starts": _ints(4),
            "ends": _ints(0),
            "axes": _ints(1),
            "steps": _ints(-2),
        },
        [[5, 2]],
        {},
        [
            {"starts": _ints(-1), "ends": _ints(2)},
            {"starts": _ints(99), "ends": _ints(2)},
            {"starts": _ints(1), "ends": _ints(4), "axes": _ints(-1), "steps": _ints(2)},
            {"starts": _ints(2), "ends": _ints(-(1 << 63)), "steps": _ints(-2)},
        ],
        [{"axes": _ints(0)}, {"axes": _ints(2)}, {"steps": _ints(0)}, {"steps": _ints(-1)}],
    ),
    **{
        f"padding, {mode}": (
            "Pad",
            {"x": _data(3, 4), "pads": _ints(1, 2, 1, 0), "value": None},
            [[5, 6]],
            {"mode": mode},
            [{"pads": _ints(2, 0, 0, 2)}, {"pads": _ints(0, 1, 2, 1)}],
            [{"pads": _ints(1, 1, 1, 0)}, {"pads": _ints(2, 1, 1, 1)}],
        )
        for mode in ("constant", "reflect", "edge", "wrap")
    },
    "grid": (
        "AffineGrid",
        {"theta": _data(2, 2, 3), "size": _ints(2, 3, 5, 6)},
        [[2, 5, 6, 2]],
        {"align_corners": 1},
        [{"size": _ints(2, 7, 5, 6)}],
        [{"size": _ints(2, 3, 6, 5)}, {"size": _ints(1, 3, 5, 6)}],
    ),
    "bands": (
        "MelWeightMatrix",
        {
            "bands": np.array(8, np.int32),
            "length": np.array(16, np.int32),
            "rate": np.array(8192, np.int32),
            "low": np.array(0, np.float32),
            "high": np.array(4096, np.float32),
        },
        [[9, 8]],
        {},
        [
            {"length": np.array(17, np.int32)},
            {"rate": np.array(16000, np.int32)},
            {"low": np.array(450, np.float32), "high": np.array(3000, np.float32)},
        ],
        [
            {"bands": np.array(7, np.int32)},
            {"length": np.array(18, np.int32)},
            {"high": np.array(1e6, np.float32)},
        ],
    ),
    "padding of named axes": (
        "Pad",
        {
            "x": _data(3, 4),
            "pads": _ints(1, 1),
            "value": np.array(7, np.float32),
            "axes": _ints(1),
        },
        [[3, 6]],
        {},
        [{"pads": _ints(2, 0), "value": np.array(-1, np.float32)}, {"axes": _ints(-1)}],
        [{"axes": _ints(0)}, {"pads": _ints(3, 0)}],
    ),
}


@pytest.mark.parametrize("name", _CASES)
def test_what_agrees_is_computed_and_what_does_not_fails(name: str, tmp_path: Path) -> None:
    op, given, results, attrs, fine, wrong = _CASES[name]
    model = _model(op, given, results, **attrs)
    graph = _converted(model, tmp_path)
    for other in ({}, *fine):
        _agree(model, graph, {**given, **other})
    for other in wrong:
        fed = {port.name: {**given, **other}[port.name] for port in graph.inputs}
        with pytest.raises(ValueError, match="an index is not below"):
            interpret(graph, fed)


_RESIZES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "nearest": ("nearest", {"nearest_mode": "floor"}),
    "nearest, the upper": ("nearest", {"nearest_mode": "round_prefer_ceil"}),
    "linear": ("linear", {}),
    "linear over corners": ("linear", {"coordinate_transformation_mode": "align_corners"}),
    "linear from the corner": ("linear", {"coordinate_transformation_mode": "asymmetric"}),
    "linear without edges": ("linear", {"antialias": 1}),
    "cubic": ("cubic", {"cubic_coeff_a": -0.5}),
    "cubic inside": ("cubic", {"exclude_outside": 1}),
    "symmetric": ("linear", {"coordinate_transformation_mode": "half_pixel_symmetric"}),
}


@pytest.mark.parametrize("name", _RESIZES)
def test_scales_of_a_call(name: str, tmp_path: Path) -> None:
    mode, attrs = _RESIZES[name]
    shape, full = (1, 2, 5, 4), [1, 2, 3, 7]
    x = _data(*shape)
    given = {"x": x, "roi": None, "scales": np.array([1, 1, 0.6, 1.75], np.float32)}
    model = _model("Resize", given, [full], version=19, mode=mode, **attrs)
    graph = _converted(model, tmp_path)
    for last in (1.75, 1.9):
        scales = np.array([1, 1, 0.7, last], np.float32)
        _agree(model, graph, {**given, "scales": scales})
    wrong = {"x": x, "scales": np.array([1, 1, 0.5, 2], np.float32)}
    with pytest.raises(ValueError, match="an index is not below"):
        interpret(graph, wrong)


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
def test_sizes_of_a_call(policy: str, tmp_path: Path) -> None:
    sizes = {"stretch": (7, 8), "not_larger": (6, 9), "not_smaller": (2, 6)}[policy]
    full = {"stretch": [7, 8], "not_larger": [6, 6], "not_smaller": [6, 6]}[policy]
    x = _data(1, 1, 4, 4)
    given = {"x": x, "roi": None, "scales": None, "sizes": _ints(*sizes)}
    attrs = {"keep_aspect_ratio_policy": policy, "axes": [2, 3], "mode": "cubic"}
    model = _model("Resize", given, [[1, 1, *full]], version=19, **attrs)
    graph = _converted(model, tmp_path)
    _agree(model, graph, given)
    with pytest.raises(ValueError, match="an index is not below"):
        interpret(graph, {"x": x, "sizes": _ints(5, 5)})


def test_a_size_inside_of_a_model(tmp_path: Path) -> None:
    """Nothing states the shape of the range inside; the output's decides the number of steps."""
    given = {"size": np.array(10, np.int64)}
    model = _model("HannWindow", given, [[10]], version=20)
    graph = _converted(model, tmp_path)
    _agree(model, graph, given)
    with pytest.raises(ValueError, match="an index is not below"):
        interpret(graph, {"size": np.array(9, np.int64)})


def _sized(outputs: Sequence[str]) -> onnx.ModelProto:
    """Returns a model that adds an image of zeros, and gives the channels of its size, too."""
    nodes = [
        helper.make_node("Split", ["size"], ["n", "c", "h", "w"], num_outputs=4),
        helper.make_node("Concat", ["n", "h", "w"], ["shape"], axis=0),
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
        helper.make_node("Add", ["x", "zeros"], ["y"]),
        helper.make_node("Identity", ["c"], ["z"]),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 1, 1]),
        helper.make_tensor_value_info("size", TensorProto.INT64, [4]),
    ]
    known = {
        "y": helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 5, 6]),
        "z": helper.make_tensor_value_info("z", TensorProto.INT64, [1]),
    }
    graph = helper.make_graph(nodes, "g", inputs, [known[name] for name in outputs])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


def test_an_element_that_nothing_needs_may_be_any(tmp_path: Path) -> None:
    model = _sized(["y"])
    graph = _converted(model, tmp_path)
    x = _data(2, 1, 1)
    for channels in (1, 2, 64):
        _agree(model, graph, {"x": x, "size": _ints(2, channels, 5, 6)})
    for wrong in ((2, 3, 6, 5), (1, 3, 5, 6), (2, 0, 5, 6), (2, -1, 5, 6)):
        with pytest.raises(ValueError, match="an index is not below"):
            interpret(graph, {"x": x, "size": _ints(*wrong)})


def test_an_element_that_a_result_needs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="operand 0 is computed from the model's inputs"):
        _converted(_sized(["y", "z"]), tmp_path)


def test_what_the_file_does_not_state_is_refused(tmp_path: Path) -> None:
    model = _model("ReduceSum", {"x": _CUBE, "axes": _ints(1)}, [[2, 3]], keepdims=0)
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_param = "n"
    with pytest.raises(UnsupportedError, match="operand 1 is computed from the model's inputs"):
        _converted(model, tmp_path)
    model = _model("ReduceSum", {"x": _CUBE, "axes": _ints(1)}, [[3, 2]], keepdims=0)
    with pytest.raises(UnsupportedError, match="0 ways to compute what the file states"):
        _converted(model, tmp_path)


def test_crates_agree(tmp_path: Path) -> None:
    """Each operator once, as a crate whose own test compares it with its meaning."""
    models = []
    for op, given, results, attrs, _, _ in _CASES.values():
        graph = _converted(_model(op, given, results, **attrs), tmp_path)
        models.append((graph, {port.name: given[port.name] for port in graph.inputs}))
    for mode in ("nearest", "linear", "cubic"):
        scales = np.array([1, 1, 0.6, 1.75], np.float32)
        given = {"x": _data(1, 2, 5, 4), "roi": None, "scales": scales}
        model = _model("Resize", given, [[1, 2, 3, 7]], version=19, mode=mode)
        models.append((_converted(model, tmp_path), {"x": given["x"], "scales": scales}))
    assert failures(models) == {}
