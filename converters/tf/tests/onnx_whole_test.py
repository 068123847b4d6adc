"""Layers between quantized numbers compute in whole numbers: every level as onnxruntime's.

onnxruntime runs with its optimizer here, which makes operators on levels of those between
DequantizeLinear and QuantizeLinear.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from converters.tf import ir
from converters.tf.emit.support import problems
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.lower.convert import convert
from converters.tf.tests.checks import few, inputs_for
from converters.tf.tests.onnx_graphs import MICROSOFT, Dims, Network, exact_sums, saved

_WHOLE = (ir.QuantizedConv, ir.QuantizedDepthwise)


def _agree(model: Any, folder: Path, layers: int) -> ir.Graph:
    """Compares every output exactly; so many layers compute in whole numbers.

    Without `integer`, none does.
    """
    path = saved(model, folder)
    loaded = load(path, LoadOptions())
    graph = convert(loaded.trace)
    assert problems(graph) == []
    assert sum(isinstance(node.op, _WHOLE) for node in graph.nodes) == layers
    apart = convert(load(path, LoadOptions(integer=False)).trace)
    assert not any(isinstance(node.op, _WHOLE) for node in apart.nodes)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    for batch in (1, 3):
        arrays = inputs_for(graph, batch, 3)
        found, predicted = interpret(graph, arrays), loaded.predict(arrays)
        for name, expected in zip(names, session.run(None, arrays), strict=True):
            np.testing.assert_array_equal(found[name], expected, name)
            np.testing.assert_array_equal(predicted[name], expected, name)
    return graph


@dataclass(frozen=True)
class _Kind:
    """Types of levels and what stands for 0: of the input and result, and of weights."""

    levels: str
    zero: int
    weights: str
    middle: int


_KINDS = st.sampled_from(
    [
        _Kind("uint8", 121, "int8", 0),
        _Kind("uint8", 0, "uint8", 128),
        _Kind("int8", -7, "int8", 0),
        _Kind("int8", -128, "int8", 0),
    ]
)


class _Net(Network):
    """A graph whose tensors have levels."""

    def __init__(self, kind: _Kind) -> None:
        super().__init__(20)
        self.kind = kind

    def number(self, value: Any) -> str:
        return self.constant(np.float32(value))

    def level(self, value: int) -> str:
        return self.constant(np.array(value, self.kind.levels))

    def taps(self, *shape: int) -> str:
        """Adds levels of weights."""
        least, most = (-128, 128) if self.kind.weights == "int8" else (0, 256)
        levels = self.random.integers(least, most, shape)
        return self.constant(levels.astype(self.kind.weights))

    def scales(self, count: int) -> tuple[str, str]:
        """Adds scales and levels of 0 of weights."""
        many = self.random.uniform(0.002, 0.01, count).astype(np.float32)
        zeros = np.full(count, self.kind.middle, self.kind.weights)
        if count == 1:
            return self.constant(many[0]), self.constant(zeros[0])
        return self.constant(many), self.constant(zeros)

    def bias(self, count: int) -> str:
        return self.constant(self.random.integers(-4000, 4000, count).astype(np.int32))


_SIZES = st.sampled_from([(1, 4), (3, 17), (16, 16), (20, 33)])
_PADS = st.tuples(*[st.integers(0, 2)] * 4)


@exact_sums
@few
@given(kind=_KINDS, sizes=_SIZES, many=st.booleans(), biased=st.booleans(), pads=_PADS,
       taps=st.sampled_from([(1, 1), (3, 3), (2, 5)]), stride=st.integers(1, 2),
       dilation=st.integers(1, 2), group=st.sampled_from(["one", "two", "each"]))  # fmt: skip
def test_convolutions(
    tmp_path_factory: pytest.TempPathFactory,
    kind: _Kind,
    sizes: tuple[int, int],
    many: bool,
    biased: bool,
    pads: tuple[int, ...],
    taps: tuple[int, int],
    stride: int,
    dilation: int,
    group: str,
) -> None:
    inputs, outputs = sizes
    if group == "two":
        inputs, outputs = 2 * inputs, 2 * outputs
    elif group == "each":
        outputs = inputs
    groups = {"one": 1, "two": 2, "each": inputs}[group]
    net = _Net(kind)
    before, after, zero = net.number(0.05), net.number(0.11), net.level(kind.zero)
    last = net.level(3)
    attrs: dict[str, Any] = {"strides": [stride, 1], "pads": list(pads), "group": groups,
             "dilations": [1, dilation]}  # fmt: skip
    x = net("QuantizeLinear", "x", before, zero)
    weights = [net.taps(outputs, inputs // groups, *taps), *net.scales(outputs if many else 1)]
    more = [net.bias(outputs)] if biased else []
    y = net("QLinearConv", x, before, zero, *weights, after, last, *more, **attrs)
    point = [net.taps(5, outputs, 1, 1), *net.scales(1)]
    z = net("QLinearConv", y, after, last, *point, after, zero)
    dims: Dims = ["N", inputs, 9, 11]
    model = net.model({"x": dims}, [y, z, net("DequantizeLinear", z, after, zero)])
    _agree(model, tmp_path_factory.mktemp("m"), 2)


@few
@given(kind=_KINDS, sizes=_SIZES, many=st.booleans(), biased=st.booleans(), turned=st.booleans(),
       lead=st.sampled_from([[], [3], [2, 3]]))  # fmt: skip
def test_products(
    tmp_path_factory: pytest.TempPathFactory,
    kind: _Kind,
    sizes: tuple[int, int],
    many: bool,
    biased: bool,
    turned: bool,
    lead: list[int],
) -> None:
    inputs, outputs = sizes
    net = _Net(kind)
    before, after, zero = net.number(0.05), net.number(0.11), net.level(kind.zero)
    last, count = net.level(3), outputs if many else 1
    x = net("QuantizeLinear", "x", before, zero)
    weights = [net.taps(inputs, outputs), *net.scales(count)]
    results = [net("QLinearMatMul", x, before, zero, *weights, after, last)]
    if not lead:
        shape = (outputs, inputs) if turned else (inputs, outputs)
        operands = [net.taps(*shape), *net.scales(count), net.bias(outputs) if biased else ""]
        attrs: dict[str, Any] = {"transB": int(turned), "alpha": 0.7}
        y = net(f"{MICROSOFT}QGemm", x, before, zero, *operands, after, last, **attrs)
        results.append(y)
    model = net.model({"x": ["N", *lead, inputs]}, results)
    _agree(model, tmp_path_factory.mktemp("m"), len(results))


@exact_sums
def test_a_layer_in_a_branch_computes_in_float32(tmp_path: Path) -> None:
    net = _Net(_Kind("uint8", 121, "int8", 0))
    scale, zero = net.number(0.05), net.level(121)
    x = net("QuantizeLinear", "x", scale, zero)
    y = net("QLinearConv", x, scale, zero, net.taps(4, 3, 3, 3), *net.scales(1), scale, zero)
    point = [net.taps(4, 4, 1, 1), *net.scales(1)]

    def branch(name: str) -> Any:
        operands = [y, scale, zero, *point, scale, zero]
        nodes = [
            helper.make_node("QLinearConv", operands, [f"{name}_levels"]),
            helper.make_node("DequantizeLinear", [f"{name}_levels", scale, zero], [name]),
        ]
        output = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        return helper.make_graph(nodes, name, [], [output])

    condition = net("Greater", net("ReduceSum", "x", keepdims=0), net.number(0))
    z = net("If", condition, then_branch=branch("one"), else_branch=branch("other"))
    model = net.model({"x": [1, 3, 6, 7]}, [z])
    graph = convert(load(saved(model, tmp_path), LoadOptions()).trace)
    assert sum(isinstance(node.op, _WHOLE) for node in graph.nodes) == 1
    arrays = inputs_for(graph, 1)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, arrays)
    (found,) = interpret(graph, arrays).values()
    np.testing.assert_allclose(found, expected, 1e-5, 1e-5)


class _Samples(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self) -> None:
        random = np.random.default_rng(3)
        self.left = [random.normal(size=(2, 3, 8, 8)).astype(np.float32) for _ in range(3)]

    def get_next(self) -> dict[str, Any] | None:
        """Returns inputs, or nothing after the last ones."""
        return {"x": self.left.pop()} if self.left else None


@exact_sums
@pytest.mark.parametrize("form", list(QuantFormat))
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("kind", [QuantType.QInt8, QuantType.QUInt8])
def test_what_the_quantizer_writes(tmp_path: Path, form: Any, per_channel: bool, kind: Any) -> None:
    net = Network(17)
    x = net("Relu", net.conv("x", (3, 8), 3, "/stem", 2))
    y = net.conv(net("MaxPool", x, kernel_shape=[1, 1]), (8, 8), 3, "/dw", 1, 8)
    x = net("Add", x, net.conv(y, (8, 8), 1, "/point"))
    x = net("Flatten", net("MaxPool", x, kernel_shape=[4, 4]))
    x = net("MatMul", net.linear(x, (8, 12), "/fc1"), net.weight("fc2.weight", 12, 4))
    source, target = str(tmp_path / "float.onnx"), str(tmp_path / "quantized.onnx")
    onnx.save(net.model({"x": ["N", 3, 8, 8]}, [x]), source)
    quantize_static(source, target, _Samples(), quant_format=form, per_channel=per_channel,
                    activation_type=kind, weight_type=QuantType.QInt8)  # fmt: skip
    _agree(onnx.load(target), tmp_path, 5)
