"""Quantized numbers, as onnxruntime's quantizer writes them, against onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

from converters.tf.load.model import LoadOptions, load
from converters.tf.load.onnx import quantized
from converters.tf.tests.checks import few
from converters.tf.tests.onnx_graphs import (
    MICROSOFT,
    Body,
    Dims,
    Network,
    agree,
    checked,
    exact_sums,
    saved,
)
from tools.codegen.conversion import UnsupportedError

IMAGE: Dims = ["N", 4, 7, 6]
ROWS: Dims = ["N", 5]
tested: set[str] = set()


def _check(
    folder: Path, dims: Dims, body: Body, dtype: Any = np.float32, batches: tuple[int, ...] = (1, 3)
) -> None:
    tested.update(checked(folder, dims, body, 20, dtype, batches))


class Levels:
    """Names of constants that say what levels stand for."""

    def __init__(self, net: Network, dtype: str, zero: int, scale: float = 0.05) -> None:
        self.scale = net.constant(np.float32(scale))
        self.zero = net.constant(np.array(zero, dtype))

    def of(self, net: Network, x: str) -> str:
        """Returns levels of a tensor."""
        return net("QuantizeLinear", x, self.scale, self.zero)

    def real(self, net: Network, x: str) -> str:
        """Returns what levels stand for."""
        return net("DequantizeLinear", x, self.scale, self.zero)


def _weights(net: Network, *shape: int) -> str:
    return net.constant(net.random.integers(-128, 127, shape).astype(np.int8))


def _shown(net: Network, *results: str) -> list[str]:
    """Returns levels as numbers, which crates give."""
    return [net("Cast", y, to=TensorProto.FLOAT) for y in results]


def _scales(net: Network, count: int) -> str:
    many = net.random.uniform(0.002, 0.01, count).astype(np.float32)
    return net.constant(many if count > 1 else many[0])


_KINDS = st.sampled_from([("uint8", 121), ("uint8", 0), ("int8", -7), ("int8", 0)])


@exact_sums
@few
@given(kind=_KINDS, many=st.booleans(), group=st.sampled_from([1, 2, 4]), biased=st.booleans(),
       stride=st.integers(1, 2), pads=st.tuples(*[st.integers(0, 2)] * 4))  # fmt: skip
def test_convolutions(
    tmp_path_factory: pytest.TempPathFactory,
    kind: tuple[str, int],
    many: bool,
    group: int,
    biased: bool,
    stride: int,
    pads: tuple[int, ...],
) -> None:
    def body(net: Network, x: str) -> list[str]:
        before, after = Levels(net, *kind), Levels(net, kind[0], 3, 0.02)
        weights, count = _weights(net, 8, 4 // group, 3, 2), 8 if many else 1
        zero = net.constant(np.zeros(count if many else (), np.int8))
        bias = net.constant(net.random.integers(-4000, 4000, 8).astype(np.int32)) if biased else ""
        attrs: dict[str, Any] = {"strides": [stride, 1], "pads": list(pads), "group": group}
        operands = [before.of(net, x), before.scale, before.zero, weights, _scales(net, count)]
        operands += [zero, after.scale, after.zero, *([bias] if bias else [])]
        y = net("QLinearConv", *operands, **attrs)
        results = [*_shown(net, y), after.real(net, y)]
        if kind[0] == "uint8":
            own = net.constant(np.zeros((), np.int8))
            whole = net("ConvInteger", operands[0], weights, before.zero, own, **attrs)
            results += [whole, *_shown(net, whole)]
        return results

    _check(tmp_path_factory.mktemp("m"), IMAGE, body)


@few
@given(kind=_KINDS, many=st.booleans(), turned=st.booleans(), biased=st.booleans())
def test_products(
    tmp_path_factory: pytest.TempPathFactory,
    kind: tuple[str, int],
    many: bool,
    turned: bool,
    biased: bool,
) -> None:
    def body(net: Network, x: str) -> list[str]:
        before, after = Levels(net, *kind), Levels(net, kind[0], 3, 0.02)
        count = 3 if many else 1
        scales, levels = _scales(net, count), before.of(net, x)
        zeros = net.constant(np.arange(3, dtype=np.int8) if many else np.array(1, np.int8))
        weights = _weights(net, 5, 3)
        y = net("QLinearMatMul", levels, before.scale, before.zero, weights, scales, zeros,
                after.scale, after.zero)  # fmt: skip
        whole = net("MatMulInteger", levels, weights, before.zero, zeros)
        square = net("MatMul", before.real(net, levels), net("DequantizeLinear", weights, scales,
                                                             zeros, axis=1))  # fmt: skip
        rows = _weights(net, *((3, 5) if turned else (5, 3)))
        none = net.constant(np.zeros(count if many else (), np.int8))
        bias = net.constant(net.random.integers(-4000, 4000, 3).astype(np.int32)) if biased else ""
        gemm = [levels, before.scale, before.zero, rows, scales, none, bias]
        attrs: dict[str, Any] = {"transB": int(turned)}
        results = [*_shown(net, y, whole), after.real(net, y), square]
        results += _shown(net, net(f"{MICROSOFT}QGemm", *gemm, after.scale, after.zero, **attrs))
        return [*results, net(f"{MICROSOFT}QGemm", *gemm, **attrs)]

    _check(tmp_path_factory.mktemp("m"), ROWS, body)


@few
@given(kind=_KINDS)
def test_functions_of_elements(
    tmp_path_factory: pytest.TempPathFactory, kind: tuple[str, int]
) -> None:
    def body(net: Network, x: str) -> list[str]:
        one, two = Levels(net, *kind), Levels(net, kind[0], 9, 0.031)
        end = Levels(net, kind[0], 5, 0.083)
        a, b = one.of(net, x), two.of(net, net("Mul", x, net.weight("w", 4, 1, 1)))
        pair = [a, one.scale, one.zero, b, two.scale, two.zero]
        narrow = Levels(net, kind[0], 0 if kind[0] == "uint8" else -128, 1 / 256)
        single = [a, one.scale, one.zero, end.scale, end.zero]
        leaky: dict[str, Any] = {"alpha": 0.3}
        results = [
            net(f"{MICROSOFT}QLinearAdd", *pair, end.scale, end.zero),
            net(f"{MICROSOFT}QLinearMul", *pair, end.scale, end.zero),
            net(f"{MICROSOFT}QLinearConcat", end.scale, end.zero, *pair, axis=1),
            net(f"{MICROSOFT}QLinearSigmoid", *single[:3], narrow.scale, narrow.zero),
            net(f"{MICROSOFT}QLinearLeakyRelu", *single, **leaky),
            net(f"{MICROSOFT}QLinearGlobalAveragePool", *single, channels_last=0),
            net(f"{MICROSOFT}QuantizeLinear", x, one.scale, one.zero),
        ]
        real = net(f"{MICROSOFT}DequantizeLinear", a, one.scale, one.zero)
        return [real, *_shown(net, *results)]

    _check(tmp_path_factory.mktemp("m"), IMAGE, body)


def test_levels_are_moved(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        levels = Levels(net, "uint8", 100)
        q = levels.of(net, x)
        image = net("MaxPool", q, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        parts = net.many("Split", 2, image, net.ints(1, 3), axis=1)
        flat = net("Flatten", net("Transpose", parts[1], perm=[0, 2, 1, 3]))
        first = net("Gather", flat, net.ints(3, 0), axis=1)
        cut = net("Slice", flat, net.ints(1), net.ints(5), net.ints(1))
        rows = net("Reshape", net("Unsqueeze", net("Squeeze", parts[0], net.ints(1)), net.ints(1)),
                   net.ints(0, -1))  # fmt: skip
        return [
            levels.real(net, net("Concat", first, cut, rows, axis=1)),
            *_shown(net, first, net("Identity", first)),
            net("Cast", first, to=TensorProto.INT32),
        ]

    _check(tmp_path, IMAGE, body)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
def test_levels_as_outputs(tmp_path: Path, dtype: str) -> None:
    net = Network(21)
    levels = Levels(net, dtype, 100).of(net, "x")
    agree(net.model({"x": ["N", 4]}, [levels, net("Identity", levels)]), tmp_path)


def test_arithmetic_with_levels_is_refused(tmp_path: Path) -> None:
    net = Network(20)
    levels = Levels(net, "uint8", 100).of(net, "x")
    model = net.model({"x": ["N", 4]}, [net("Neg", levels)])
    with pytest.raises(UnsupportedError, match="export them with QuantizeLinear") as found:
        load(saved(model, tmp_path), LoadOptions())
    assert [p.where for p in found.value.problems] == ["node /Neg_output_1_0 (Neg)"]


def test_ranges_of_examples(tmp_path: Path) -> None:
    """ONNX takes the range of the batch, and this one that of each example."""

    def body(net: Network, x: str) -> list[str]:
        weights, scale = _weights(net, 6, 3), _scales(net, 1)
        zero = net.constant(np.array(2, np.int8))
        q, own, middle = net.many("DynamicQuantizeLinear", 3, x)
        whole = net("MatMulInteger", q, weights, middle, zero)
        y = net("Mul", net("Cast", whole, to=TensorProto.FLOAT), net("Mul", own, scale))
        image = net("Reshape", x, net.ints(0, 4, 7, 6))
        levels, factor, none = net.many("DynamicQuantizeLinear", 3, net("Relu", image))
        taps = _weights(net, 5, 4, 3, 3)
        z = net("ConvInteger", levels, taps, none, net.constant(np.array(0, np.int8)))
        z = net("Mul", net("Cast", z, to=TensorProto.FLOAT), net("Mul", factor, scale))
        bias = net.weight("bias", 3)
        return [
            y,
            z,
            net(f"{MICROSOFT}DynamicQuantizeMatMul", x, weights, scale, zero, bias),
            net(f"{MICROSOFT}MatMulIntegerToFloat", q, weights, own, scale, middle, zero, bias),
        ]

    _check(tmp_path, ["N", 28, 6], body, batches=(1,))


def test_quantized_weights(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        levels = net.constant(net.random.integers(-128, 127, (5, 3)).astype(np.int8), "q.weight")
        scale = net.constant(np.array([0.01, 0.02, 0.03], np.float32))
        zero = net.constant(np.array([0, 3, -4], np.int8))
        weight = net("DequantizeLinear", levels, scale, zero, axis=1)
        one = net.constant(np.float32(0.05))
        middle = net.constant(np.array(120, np.uint8))
        rounded = net("DequantizeLinear", net("QuantizeLinear", x, one, middle), one, middle)
        return [net("MatMul", x, weight), rounded]

    _check(tmp_path, ["N", 5], body)


class _Samples(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self) -> None:
        random = np.random.default_rng(3)
        self.left = [random.normal(size=(2, 3, 8, 8)).astype(np.float32) for _ in range(3)]

    def get_next(self) -> dict[str, Any] | None:
        """Returns inputs, or nothing after the last ones."""
        return {"x": self.left.pop()} if self.left else None


def _network() -> Any:
    net = Network(17)
    x = net("Relu", net.conv("x", (3, 8), 3, "/stem", 2))
    y = net("Sigmoid", net.conv(net("MaxPool", x, kernel_shape=[1, 1]), (8, 8), 3, "/dw", 1, 8))
    x = net("Add", x, net("Mul", x, y))
    x = net("Concat", x, y, axis=1)
    x = net("Flatten", net("GlobalAveragePool", x))
    x = net("Relu", net.linear(x, (16, 12), "/fc1"))
    x = net("Softmax", net("MatMul", x, net.weight("fc2.weight", 12, 4)), axis=-1)
    return net.model({"x": ["N", 3, 8, 8]}, [x])


@exact_sums
@pytest.mark.parametrize("form", list(QuantFormat))
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("kind", [QuantType.QInt8, QuantType.QUInt8])
def test_what_the_quantizer_writes(tmp_path: Path, form: Any, per_channel: bool, kind: Any) -> None:
    source, target = str(tmp_path / "float.onnx"), str(tmp_path / "quantized.onnx")
    onnx.save(_network(), source)
    quantize_static(source, target, _Samples(), quant_format=form, per_channel=per_channel,
                    activation_type=kind, weight_type=QuantType.QInt8)  # fmt: skip
    model = onnx.load(target)
    tested.update(f"{n.domain}.{n.op_type}" if n.domain else n.op_type for n in model.graph.node)
    agree(model, tmp_path)


@pytest.mark.parametrize("per_channel", [False, True])
def test_what_the_quantizer_writes_for_ranges_of_calls(tmp_path: Path, per_channel: bool) -> None:
    source, target = str(tmp_path / "float.onnx"), str(tmp_path / "quantized.onnx")
    onnx.save(_network(), source)
    quantize_dynamic(source, target, per_channel=per_channel)
    agree(onnx.load(target), tmp_path, batches=(1,))


@exact_sums
def test_every_operator_was_tested() -> None:
    """Comes last."""
    assert quantized.OPS.keys() - tested == {f"{MICROSOFT}QLinearAveragePool"}
