"""Layers of float32 that multiply int8 numbers: levels as onnxruntime's, and near the model's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from converters.tf import ir
from converters.tf.ir.interpret import interpret
from converters.tf.passes.dynamic import is_quantized, quantized
from converters.tf.tests.checks import few
from converters.tf.tests.crates.graphs import Sketch

B = ir.Batch()
_DYNAMIC = (ir.DynamicConv, ir.DynamicDense)


def _levels(x: ir.Array, axes: int) -> tuple[ir.Array, ir.Array]:
    """Returns what `ir.DynamicLevels` gives."""
    graph = Sketch("levels")
    value = graph.input("x", (B, *x.shape[1:]))
    op = ir.DynamicLevels(axes)
    shapes = op.shapes([value.shape])
    both = (ir.Value(ir.DType.I8, shapes[0]), ir.Value(ir.DType.F32, shapes[1]))
    graph.nodes.append(ir.Node(op, (value,), both))
    graph.outputs += [ir.Port(name, v) for name, v in zip(("q", "ends"), both, strict=True)]
    found = interpret(graph.graph(), {"x": x})
    return found["q"], found["ends"]


def _session() -> onnxruntime.InferenceSession:
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "scale", "zero"])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N"])
    kinds = {"y": TensorProto.UINT8, "scale": TensorProto.FLOAT, "zero": TensorProto.UINT8}
    outputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in kinds.items()]
    graph = helper.make_graph([node], "g", [x], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return onnxruntime.InferenceSession(model.SerializeToString())


_SESSION = _session()


@given(
    seed=st.integers(0, 1 << 30),
    each=st.integers(1, 70),
    low=st.sampled_from([-3.0, 0.0, 1.0, -1e-3]),
    width=st.sampled_from([0.0, 1.0, 6.0, 1e4]),
)
def test_levels_are_those_of_onnxruntime(seed: int, each: int, low: float, width: float) -> None:
    x = np.random.default_rng(seed).uniform(low, low + width, (3, each)).astype(np.float32)
    levels, ends = _levels(x, 1)
    for i, row in enumerate(x):
        y, scale, zero = _SESSION.run(None, {"x": row})
        np.testing.assert_array_equal(levels[i].astype(int) + 128, y)
        assert [float(scale), float(zero) - 128] == ends[i].tolist()


def test_numbers_that_are_not_finite_are_not_hidden() -> None:
    x = np.ones((4, 6), np.float32)
    x[1:, 3] = [np.nan, np.inf, -np.inf]
    levels, ends = _levels(x, 1)
    assert levels.tolist() == [[127] * 6, *[[0] * 6] * 3]
    assert np.isnan(ends[1:, 0]).all()
    assert ends[0].tolist() == [np.float32(1) / np.float32(255), -128]


def _layers(seed: int) -> ir.Graph:
    """Returns matmuls and convolutions with large weights: of rows, lines and images."""
    s = Sketch("layers")
    s.random = np.random.default_rng(seed)
    rows = s.input("rows", (B, 7, 40))
    y = s.op(ir.Dense(ir.RELU), [rows, s.weight(40, 33), s.weight(33)], (B, 7, 33), name="dense")
    s.op(ir.Dense(), [y, s.weight(33, 40), None, rows], (B, 7, 40), name="onto")
    image = s.input("image", (B, 9, 8, 5))
    window = ((2, 1), (1, 1), ((1, 0), (1, 1)))
    conv = ir.Conv(*window, 1, ir.RELU6)
    y = s.op(conv, [image, s.weight(3, 3, 5, 20), s.weight(20)], (B, 4, 8, 20), name="conv")
    s.op(ir.Conv((1, 1), (1, 1), ((0, 0),) * 2), [y, s.weight(1, 1, 20, 16)], (B, 4, 8, 16))
    line = s.input("line", (B, 12, 16))
    s.op(ir.Conv((1,), (2,), ((1, 1),)), [line, s.weight(3, 16, 9)], (B, 10, 9), name="along")
    return s.graph()


def _inputs(graph: ir.Graph, seed: int, batch: int) -> dict[str, ir.Array]:
    random = np.random.default_rng(seed)
    shapes = {port.name: ir.shape_at(port.value.shape, batch) for port in graph.inputs}
    return {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


@few
@given(seed=st.integers(0, 1 << 30))
def test_layers_are_near_those_of_float32(seed: int) -> None:
    graph = _layers(seed)
    whole = quantized(graph)
    # The pointwise convolution has 20 rows: too few for factors of their own.
    assert sum(isinstance(node.op, _DYNAMIC) for node in whole.nodes) == 4
    assert is_quantized(whole)
    assert not is_quantized(graph)
    inputs = _inputs(graph, seed, 3)
    found = interpret(whole, inputs)
    for name, expected in interpret(graph, inputs).items():
        assert found[name].shape == expected.shape
        apart = np.abs(found[name] - expected).max() / np.abs(expected).max()
        assert apart < 0.05, name
        assert apart > 0 or name == "pointwise"
    for i in range(3):
        alone = interpret(whole, {name: data[i : i + 1] for name, data in inputs.items()})
        for name, data in alone.items():
            np.testing.assert_array_equal(data[0], found[name][i], name)


def test_what_several_layers_read_becomes_levels_once() -> None:
    s = Sketch("shared")
    x = s.input("x", (B, 40))
    kernel = s.weight(40, 30)
    for i in range(3):
        s.op(ir.Dense(), [x, kernel, s.weight(30)], (B, 30), name=f"dense_{i}")
    whole = quantized(s.graph())
    assert sum(isinstance(node.op, ir.DynamicLevels) for node in whole.nodes) == 1
    kernels = {node.given(2) for node in whole.nodes if isinstance(node.op, ir.DynamicDense)}
    assert len(kernels) == 1
    constants = [v.data for v in whole.constants()]
    assert sum(data.size for data in constants if data is not None and data.dtype == np.int8) == (
        40 * 32
    )


def _stays(op: ir.Op, x: ir.Shape, kernel: ir.Array, y: ir.Shape) -> bool:
    s = Sketch("one")
    operands: Sequence[ir.Value] = [s.input("x", x), ir.constant(kernel.astype(np.float32), "k")]
    s.op(op, operands, y)
    return not is_quantized(quantized(s.graph()))


def test_what_stays_in_float32() -> None:
    random = np.random.default_rng(5)
    whole = random.integers(-127, 128, (40, 30))
    assert _stays(ir.Dense(), (B, 40), whole, (B, 30))
    assert not _stays(ir.Dense(), (B, 40), whole / 3, (B, 30))
    assert _stays(ir.Dense(), (B, 31), random.normal(size=(31, 30)), (B, 30))
    assert _stays(ir.Dense(), (B, 40), random.normal(size=(40, 3)), (B, 3))
    plain = ((1, 1), (1, 1), ((0, 0), (0, 0)))
    kernel = random.normal(size=(3, 3, 8, 32))
    assert _stays(ir.Conv(*plain, 4), (B, 5, 5, 32), kernel, (B, 3, 3, 32))
    assert not _stays(ir.Conv(*plain), (B, 5, 5, 8), kernel, (B, 3, 3, 32))


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_an_odd_number_reaches_its_own_row_alone(odd: float) -> None:
    s = Sketch("odd")
    x = s.input("x", (B, 40))
    s.op(ir.Dense(), [x, s.weight(40, 30)], (B, 30), name="y")
    data = np.random.default_rng(6).normal(size=(2, 40)).astype(np.float32)
    data[1, 7] = odd
    (y,) = interpret(quantized(s.graph()), {"x": data}).values()
    assert np.isfinite(y[0]).all()
    assert np.isnan(y[1]).all()
