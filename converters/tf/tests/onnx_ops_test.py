"""Every operator of ONNX that is supported, against onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from converters.tf.load.onnx import fused, quantized
from converters.tf.load.onnx.registry import HANDLERS
from converters.tf.tests.onnx_cases import cases
from converters.tf.tests.onnx_graphs import (
    LEARNED,
    MICROSOFT,
    Body,
    Dims,
    Network,
    agree,
    checked,
)
from tools.codegen.conversion import UnsupportedError

tested: set[str] = set()


def _check(folder: Path, dims: Dims, body: Body, opset: int = 20, dtype: Any = np.float32) -> None:
    tested.update(checked(folder, dims, body, opset, dtype))


def _op(op: str, *more: str, **attrs: Any) -> Body:
    return lambda net, x: net(op, x, *more, **attrs)


IMAGE: Dims = ["N", 4, 9, 7]
ROWS: Dims = ["N", 5]

UNARY = [
    "Abs",
    "Atan",
    "Ceil",
    "Celu",
    "Cos",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "IsInf",
    "IsNaN",
    "LeakyRelu",
    "Mish",
    "Neg",
    "Relu",
    "Round",
    "Selu",
    "Sigmoid",
    "Sign",
    "Sin",
    "Softplus",
    "Softsign",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Sinh",
    "Cosh",
    "Asinh",
    "Shrink",
    "Reciprocal",
    "LpNormalization",
    "Swish",
]


@pytest.mark.parametrize("op", UNARY)
def test_functions(tmp_path: Path, op: str) -> None:
    opset = 24 if op == "Swish" else 22
    _check(tmp_path, IMAGE, _op(op), opset)


@pytest.mark.parametrize("op", ["Log", "Sqrt", "Acosh", "Asin", "Acos", "Atanh"])
def test_functions_of_some_numbers(tmp_path: Path, op: str) -> None:
    def body(net: Network, x: str) -> str:
        inside = net("Sigmoid", x)
        one = net.constant(np.float32(1))
        return net(op, net("Add", inside, one) if op == "Acosh" else inside)

    _check(tmp_path, ROWS, body)


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("Celu", {"alpha": 0.7}),
        ("Elu", {"alpha": 0.5}),
        ("Gelu", {"approximate": "tanh"}),
        ("HardSigmoid", {"alpha": 1 / 6, "beta": 0.5}),
        ("LeakyRelu", {"alpha": 0.3}),
        ("Selu", {"alpha": 1.2, "gamma": 1.1}),
        ("Shrink", {"bias": 0.2, "lambd": 0.4}),
        ("ThresholdedRelu", {"alpha": 0.3}),
        ("LpNormalization", {"axis": 1, "p": 1}),
        ("Softmax", {"axis": 1}),
        ("Softmax", {"axis": -1}),
        ("LogSoftmax", {"axis": 2}),
        ("Hardmax", {"axis": 1}),
        ("IsInf", {"detect_negative": 0}),
        ("CumSum", {}),
    ],
)
def test_functions_with_attributes(tmp_path: Path, op: str, attrs: dict[str, Any]) -> None:
    if op == "CumSum":
        _check(tmp_path, IMAGE, lambda net, x: net(op, x, net.ints(1), reverse=1, exclusive=1))
    else:
        _check(tmp_path, IMAGE, _op(op, **attrs))


def test_softmax_before_version_13_is_over_all_axes_from_one(tmp_path: Path) -> None:
    _check(tmp_path, IMAGE, _op("Softmax"), 11)
    _check(tmp_path, IMAGE, _op("LogSoftmax", axis=2), 11)
    _check(tmp_path, ROWS, _op("Softmax"), 11)


@pytest.mark.parametrize("kind", [np.uint8, np.uint32])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_shifts(tmp_path: Path, kind: Any, direction: str) -> None:
    net = Network(18)
    known = net("BitShift", "x", net.constant(np.array([0, 1, 7, 3, 5], kind)), direction=direction)
    numbers = net.constant(np.array([1, 3, 9, 77, 255], kind))
    given = net("BitShift", numbers, "x", direction=direction)
    inputs: dict[str, Dims] = {"x": ROWS}
    agree(net.model(inputs, [known, given], [kind]), tmp_path, whole=8)
    tested.add("BitShift")


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.uint8, np.int64])
def test_bits(tmp_path: Path, kind: Any) -> None:
    def body(net: Network, x: str) -> list[str]:
        other = net.constant(np.array([1, 6, 12, 3, 127], kind))
        pairs = [net(f"Bitwise{op}", x, other) for op in ("And", "Or", "Xor")]
        return [*pairs, net("BitwiseNot", x)]

    _check(tmp_path, ROWS, body, 18, kind)


ARITHMETIC = ["Add", "Sub", "Mul", "Div", "Max", "Min", "Mean", "Sum", "Mod"]


@pytest.mark.parametrize("op", ARITHMETIC)
def test_arithmetic(tmp_path: Path, op: str) -> None:
    attrs: dict[str, Any] = {"fmod": 1} if op == "Mod" else {}
    _check(tmp_path, IMAGE, lambda n, x: n(op, x, n.weight("w", 4, 1, 7), **attrs))
    _check(tmp_path, IMAGE, lambda n, x: n(op, n.weight("w", 1, 4, 1, 1), x, **attrs))
    _check(tmp_path, IMAGE, lambda n, x: n(op, _conv(n, x), x, **attrs))


def test_sums_of_many(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        more = _conv(net, x), net.weight("w", 7)
        return [net(op, x, *more) for op in ("Max", "Mean", "Sum")]

    _check(tmp_path, IMAGE, body)


def _conv(net: Network, x: str) -> str:
    """Returns an image that is held channels last."""
    return net.conv(x, (4, 4), 3, f"/c{len(net.nodes)}")


def test_whole_numbers(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        three = net.constant(np.array(3, np.int64))
        moved = net("Sub", x, net.constant(np.array([5, 4, 1], np.int64)))
        return [
            net("Div", moved, three),
            net("Mod", moved, three),
            net("Mod", moved, three, fmod=1),
            net("Abs", moved),
            net("Sign", moved),
            net("Cast", moved, to=TensorProto.FLOAT),
        ]

    _check(tmp_path, ["N", 3], body, dtype=np.int64)


@pytest.mark.parametrize("op", ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
def test_comparisons(tmp_path: Path, op: str) -> None:
    _check(tmp_path, IMAGE, lambda n, x: n(op, x, n.constant(np.float32(0.2))))


def test_logic(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        a = net("Greater", x, net.constant(np.float32(0.0)))
        b = net("Less", x, net.weight("w", 5))
        chosen = net("Where", net("Xor", a, b), x, net.weight("v", 5))
        return [net("And", a, b), net("Or", a, b), net("Not", a), chosen]

    _check(tmp_path, ROWS, body)


def test_powers_and_bounds(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        def number(value: float) -> str:
            return net.constant(np.float32(value))

        return [
            net("Pow", x, number(2)),
            net("Pow", net("Abs", x), number(0.5)),
            net("Pow", net("Abs", x), number(1.7)),
            net("Pow", x, net.constant(np.array([3], np.int64))),
            net("Clip", x, number(-0.5), number(0.5)),
            net("Clip", x, number(0), number(6)),
            net("Clip", x, number(0)),
            net("Clip", x, "", number(0.1)),
            net("PRelu", x, net.weight("slope", 4, 1, 1)),
            net("PRelu", x, number(0.25)),
        ]

    _check(tmp_path, IMAGE, body)
    _check(tmp_path, IMAGE, _op("Clip", min=-0.1, max=0.3), 7)


def test_integers_to_the_power_of_floats(tmp_path: Path) -> None:
    """Their fractions are cut off, not those of the exponents."""

    def body(net: Network, x: str) -> list[str]:
        exponents = [0.5, 1.5, 2.0, 3.0, 2.5]
        y = net("Cast", net("Abs", x), to=TensorProto.FLOAT)
        return [
            *(net("Pow", x, net.constant(np.float32(p))) for p in exponents),
            net("Pow", x, net.constant(np.array(exponents, np.float32))),
            net("Pow", x, net("Div", y, net.constant(np.float32(2)))),
        ]

    net = Network(20)
    outputs = body(net, "x")
    agree(net.model({"x": ROWS}, outputs, [np.int32]), tmp_path, whole=12)


def test_casts_and_dropout(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        half = net("Cast", x, to=TensorProto.INT32)
        like = net("CastLike", half, x)
        return [net("Cast", x, to=TensorProto.BOOL), like, net("Dropout", like)]

    _check(tmp_path, ROWS, body)
    _check(tmp_path, ROWS, _op("Dropout", ratio=0.5), 7)


POOLS = [
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    {"kernel_shape": [2, 3], "strides": [1, 2]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0, 1, 1, 0], "ceil_mode": 1},
    {"kernel_shape": [3, 2], "strides": [2, 3], "auto_pad": "SAME_UPPER"},
    {"kernel_shape": [2, 3], "strides": [1, 1], "auto_pad": "SAME_LOWER"},
    {"kernel_shape": [2, 2], "auto_pad": "VALID"},
]


@pytest.mark.parametrize("attrs", POOLS)
def test_pools(tmp_path: Path, attrs: dict[str, Any]) -> None:
    _check(tmp_path, IMAGE, _op("MaxPool", **attrs))
    _check(tmp_path, IMAGE, _op("AveragePool", **attrs))
    if attrs.get("ceil_mode") is None:
        _check(tmp_path, IMAGE, _op("AveragePool", count_include_pad=1, **attrs))


def test_pools_over_other_axes(tmp_path: Path) -> None:
    line: Dims = ["N", 3, 11]
    deep: Dims = ["N", 2, 5, 6, 4]
    _check(tmp_path, line, _op("MaxPool", kernel_shape=[3], strides=[2], pads=[1, 1]))
    _check(tmp_path, line, _op("AveragePool", kernel_shape=[4], strides=[3], pads=[2, 0]))
    _check(tmp_path, deep, _op("MaxPool", kernel_shape=[2, 3, 2], pads=[1, 1, 0, 0, 1, 1]))
    _check(tmp_path, deep, _op("AveragePool", kernel_shape=[2, 3, 2], strides=[2, 1, 2]))
    _check(tmp_path, IMAGE, _op("MaxPool", kernel_shape=[3, 2], dilations=[2, 3], pads=[1] * 4))
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        _check(tmp_path, IMAGE, _op(op))
        _check(tmp_path, line, _op(op))


CONVOLUTIONS: list[tuple[Sequence[int], int, dict[str, Any]]] = [
    ((3, 3), 1, {"pads": [1, 1, 1, 1]}),
    ((3, 2), 1, {"strides": [2, 1], "pads": [0, 1, 2, 0]}),
    ((3, 3), 1, {"dilations": [2, 1], "pads": [2, 0, 2, 2]}),
    ((3, 3), 2, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ((2, 3), 1, {"auto_pad": "SAME_LOWER", "strides": [2, 1]}),
    ((3, 3), 4, {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((3, 3), 4, {"strides": [2, 1], "pads": [1, 1, 1, 1]}),
    ((3, 3), 4, {"dilations": [2, 2], "pads": [2, 2, 2, 2]}),
    ((1, 1), 1, {}),
]


@pytest.mark.parametrize(("size", "group", "attrs"), CONVOLUTIONS)
@pytest.mark.parametrize("bias", [True, False])
def test_convolutions(
    tmp_path: Path, size: Sequence[int], group: int, attrs: dict[str, Any], bias: bool
) -> None:
    def body(net: Network, x: str) -> str:
        more = [net.weight("c.bias", 8)] if bias else []
        weight = net.weight("c.weight", 8, 4 // group, *size)
        return net("Conv", x, weight, *more, group=group, **attrs)

    _check(tmp_path, IMAGE, body)


def test_convolutions_over_other_axes(tmp_path: Path) -> None:
    def line(group: int, **attrs: Any) -> Body:
        return lambda n, x: n("Conv", x, n.weight("w", 6, 6 // group, 3), group=group, **attrs)

    dims: Dims = ["N", 6, 11]
    _check(tmp_path, dims, line(1, pads=[2, 0], dilations=[2]))
    _check(tmp_path, dims, line(6, strides=[2], pads=[1, 1]))
    _check(tmp_path, dims, line(3, strides=[2]))
    _check(
        tmp_path,
        ["N", 3, 5, 6, 4],
        lambda n, x: n("Conv", x, n.weight("w", 4, 3, 2, 3, 3), pads=[0, 1, 1, 1, 1, 1]),
    )
    _check(
        tmp_path,
        ["N", 4, 3, 4, 3],
        lambda n, x: n("Conv", x, n.weight("w", 6, 2, 2, 3, 3), group=2),
    )


TRANSPOSED: list[tuple[Sequence[int], dict[str, Any]]] = [
    ((2, 2), {"strides": [2, 2]}),
    ((3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
    ((4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((3, 2), {"strides": [2, 3], "pads": [0, 1, 1, 0], "dilations": [2, 1]}),
    ((3, 3), {"strides": [2, 2], "group": 2}),
    ((2, 2), {"strides": [3, 3], "output_padding": [2, 1]}),
    ((3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ((3, 3), {"strides": [2, 2], "output_shape": [10, 9]}),
]


@pytest.mark.parametrize(("size", "attrs"), TRANSPOSED)
def test_transposed_convolutions(
    tmp_path: Path, size: Sequence[int], attrs: dict[str, Any]
) -> None:
    def body(net: Network, x: str) -> str:
        group = attrs.get("group", 1)
        weight = net.weight("up.weight", 4, 3, *size)
        return net("ConvTranspose", x, weight, net.weight("up.bias", 3 * group), **attrs)

    _check(tmp_path, ["N", 4, 5, 4], body)


def test_transposed_convolutions_over_other_axes(tmp_path: Path) -> None:
    _check(
        tmp_path,
        ["N", 4, 6],
        lambda n, x: n("ConvTranspose", x, n.weight("w", 4, 3, 4), strides=[2], pads=[1, 1]),
    )
    _check(
        tmp_path,
        ["N", 2, 3, 4, 3],
        lambda n, x: n(
            "ConvTranspose", x, n.weight("w", 2, 3, 2, 3, 3), strides=[2] * 3, pads=[0, 1] * 3
        ),
    )


def test_norms(tmp_path: Path) -> None:
    def batch(net: Network, x: str) -> str:
        variance = net.constant(np.abs(net.random.normal(size=4)).astype(np.float32) + 0.5)
        more = [net.weight(f"bn.{i}", 4) for i in range(3)]
        return net("BatchNormalization", x, *more, variance, epsilon=1e-4)

    def group(net: Network, x: str) -> str:
        return net("GroupNormalization", x, net.weight("s", 4), net.weight("b", 4), num_groups=2)

    shapes: list[Dims] = [IMAGE, ["N", 4], ["N", 4, 6]]
    for dims in shapes:
        _check(tmp_path, dims, batch)
    _check(tmp_path, IMAGE, group, 21)
    for op, count in (("InstanceNormalization", 2), ("LRN", 0), ("MeanVarianceNormalization", 0)):

        def norm(net: Network, x: str, op: str = op, count: int = count) -> str:
            attrs: dict[str, Any] = {"size": 3} if op == "LRN" else {}
            attrs |= {"axes": [2, 3]} if op.startswith("Mean") else {}
            return net(op, x, *(net.weight(f"n.{i}", 4) for i in range(count)), **attrs)

        _check(tmp_path, IMAGE, norm)


def test_norms_of_rows(tmp_path: Path) -> None:
    dims: Dims = ["N", 6, 8]
    _check(
        tmp_path,
        dims,
        lambda n, x: n("LayerNormalization", x, n.weight("w", 8), n.weight("b", 8), axis=-1),
    )
    _check(tmp_path, dims, lambda n, x: n("LayerNormalization", x, n.weight("w", 6, 8), axis=1))
    _check(tmp_path, dims, lambda n, x: n("RMSNormalization", x, n.weight("w", 8)), 23)


def test_products(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        w, b = net.weight("w", 6, 5), net.weight("b", 1, 6)
        return [
            net("Gemm", x, w, b, transB=1, alpha=0.5, beta=2.0),
            net("Gemm", x, net.weight("v", 5, 6)),
            net("MatMul", x, net.weight("u", 5, 3)),
            net("MatMul", x, net.weight("r", 5)),
        ]

    _check(tmp_path, ROWS, body)

    def batched(net: Network, x: str) -> list[str]:
        swapped = net("Transpose", x, perm=[0, 1, 3, 2])
        wide = net("MatMul", net.weight("l", 3, 9), x)
        equation = "nchw,nchv->ncwv"
        return [net("MatMul", swapped, x), wide, net("Einsum", x, x, equation=equation)]

    _check(tmp_path, IMAGE, batched)


REDUCTIONS = [
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
]


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_reductions(tmp_path: Path, op: str, keepdims: int) -> None:
    def body(net: Network, x: str) -> list[str]:
        x = net("Sigmoid", _conv(net, x)) if op == "ReduceLogSum" else _conv(net, x)
        return [net(op, x, net.ints(*axes), keepdims=keepdims) for axes in ((2, 3), (1,), (-1,))]

    _check(tmp_path, IMAGE, body)
    if op != "ReduceSum":
        _check(
            tmp_path,
            IMAGE,
            lambda n, x: n(op, n("Exp", x), axes=[1, 3], keepdims=keepdims),
            11,
        )


def test_reductions_of_nothing(tmp_path: Path) -> None:
    _check(tmp_path, ROWS, _op("ReduceSum", noop_with_empty_axes=1))


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_places(tmp_path: Path, op: str) -> None:
    def body(net: Network, x: str) -> list[str]:
        held = net("Round", _conv(net, x))
        return [
            net(op, held, axis=1, keepdims=0),
            net(op, held, axis=2),
            net(op, held, axis=-1, select_last_index=1, keepdims=0),
        ]

    _check(tmp_path, IMAGE, body)


@pytest.mark.parametrize("held", [False, True])
def test_moved_elements(tmp_path: Path, held: bool) -> None:
    def body(net: Network, x: str) -> list[str]:
        x = _conv(net, x) if held else x
        a, b, c = net.many("Split", 3, x, net.ints(1, 1, 2), axis=1)
        narrow = net("Squeeze", a, net.ints(1))
        return [
            net("Concat", x, b, c, axis=1),
            net("Concat", x, x, axis=2),
            net("Slice", x, net.ints(1, -5), net.ints(3, 1 << 62), net.ints(1, 3)),
            net("Slice", x, net.ints(-1), net.ints(-(1 << 62)), net.ints(2), net.ints(-2)),
            net("Flatten", x),
            net("Reshape", x, net.ints(0, -1, 9)),
            net("Reshape", x, net.ints(-1, 4, 63)),
            net("Transpose", x, perm=[0, 2, 3, 1]),
            net("Transpose", x, perm=[0, 3, 1, 2]),
            narrow,
            net("Unsqueeze", narrow, net.ints(1, -1)),
            net("Expand", b, net.ints(1, 6, 1, 1)),
            net("Tile", b, net.ints(1, 2, 1, 3)),
            net("Gather", x, net.constant(np.array(-1, np.int64)), axis=1),
            net("Gather", x, net.ints(2, 0), axis=1),
            net("Gather", x, net.constant(np.array([[1], [-2]], np.int64)), axis=2),
        ]

    _check(tmp_path, IMAGE, body)


PADS: list[tuple[str, Sequence[int]]] = [
    ("constant", (0, 1, 2, 0, 0, 0, 1, 3)),
    ("constant", (0, 0, -1, 2, 0, 0, 1, -2)),
    ("reflect", (0, 0, 2, 3, 0, 0, 1, 1)),
    ("edge", (0, 0, 2, 0, 0, 1, 1, 3)),
    ("wrap", (0, 0, 2, 0, 0, 0, 1, 3)),
]


@pytest.mark.parametrize(("mode", "pads"), PADS)
def test_pads(tmp_path: Path, mode: str, pads: Sequence[int]) -> None:
    def body(net: Network, x: str) -> list[str]:
        more = [net.constant(np.float32(0.5))] if mode == "constant" else []
        return [net("Pad", v, net.ints(*pads), *more, mode=mode) for v in (x, _conv(net, x))]

    _check(tmp_path, IMAGE, body)


def test_old_forms(tmp_path: Path) -> None:
    """Axes, starts and the like were attributes once."""

    def body(net: Network, x: str) -> list[str]:
        a, b = net.many("Split", 2, x, axis=1)
        part = net("Slice", x, axes=[2], starts=[1], ends=[2])
        return [
            net("Squeeze", part, axes=[2]),
            net("Unsqueeze", a, axes=[2]),
            net("Pad", b, pads=[0, 0, 1, 1, 0, 0, 0, 2], value=2.0),
            net("ReduceSum", x, axes=[1], keepdims=0),
            net("Upsample", x, net.constant(np.array([1, 1, 2, 3], np.float32))),
        ]

    _check(tmp_path, IMAGE, body, 9)


RESIZES: list[tuple[dict[str, Any], Sequence[float] | None, Sequence[int] | None]] = [
    ({"mode": "nearest", "coordinate_transformation_mode": "asymmetric",
      "nearest_mode": "floor"}, (1, 1, 2, 2), None),
    ({"mode": "nearest"}, (1, 1, 2, 3), None),
    ({"mode": "nearest", "nearest_mode": "ceil"}, None, (5, 11)),
    ({"mode": "nearest", "coordinate_transformation_mode": "align_corners",
      "nearest_mode": "round_prefer_ceil"}, None, (5, 11)),
    ({"mode": "linear"}, (1, 1, 2, 2), None),
    ({"mode": "linear"}, None, (5, 4)),
    ({"mode": "linear", "coordinate_transformation_mode": "align_corners"}, None, (17, 13)),
    ({"mode": "linear", "coordinate_transformation_mode": "asymmetric"}, (1, 1, 2, 2), None),
    ({"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"}, None, (18, 14)),
    ({"mode": "linear"}, (1, 1, 1.7, 0.6), None),
    ({"mode": "cubic"}, None, (18, 14)),
    ({"mode": "cubic", "coordinate_transformation_mode": "align_corners",
      "cubic_coeff_a": -0.5}, None, (12, 5)),
    ({"mode": "cubic", "exclude_outside": 1}, (1, 1, 2, 2), None),
]  # fmt: skip


@pytest.mark.parametrize(("attrs", "scales", "sizes"), RESIZES)
def test_resizes(
    tmp_path: Path,
    attrs: dict[str, Any],
    scales: Sequence[float] | None,
    sizes: Sequence[int] | None,
) -> None:
    def body(net: Network, x: str) -> str:
        if scales is not None:
            return net("Resize", x, "", net.constant(np.array(scales, np.float32)), **attrs)
        shape = net("Slice", net("Shape", x), net.ints(0), net.ints(2))
        full = net("Concat", shape, net.ints(*(sizes or ())), axis=0)
        return net("Resize", x, "", "", full, **attrs)

    _check(tmp_path, IMAGE, body)


def test_indices(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        table = net.weight("embedding.weight", 10, 6)
        found = net("Gather", table, x)
        values = net.constant(np.array([0.5, 2.0], np.float32))
        depth = net.constant(np.array(4, np.int64))
        places = net("Slice", x, net.ints(0), net.ints(1), net.ints(1))
        return [
            found,
            net("OneHot", x, depth, values),
            net("OneHot", x, depth, values, axis=1),
            net("GatherElements", net("Cast", x, to=TensorProto.FLOAT), x, axis=1),
            net("GatherND", net.weight("g", 4, 3), net.constant(np.array([[1], [-1]], np.int64))),
            net("GatherND", net("Cast", x, to=TensorProto.FLOAT), places, batch_dims=1),
        ]

    _check(tmp_path, ["N", 5], body, dtype=np.int64)


def test_blocks_of_pixels(tmp_path: Path) -> None:
    dims: Dims = ["N", 8, 4, 6]
    for mode in ("DCR", "CRD"):
        _check(tmp_path, dims, _op("DepthToSpace", blocksize=2, mode=mode))
    _check(tmp_path, dims, _op("SpaceToDepth", blocksize=2))


def test_constants(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        steps = net("Range", *(net.constant(np.float32(v)) for v in (0, 5, 1)))
        eye = net("EyeLike", net.weight("e", 5, 5))
        ones = net("ConstantOfShape", net("Shape", x), value=_tensor([1.0]))
        return [
            net("Add", x, steps),
            net("MatMul", x, net("Trilu", eye, net.constant(np.array(1, np.int64)), upper=0)),
            net("Add", x, ones),
            net("Add", x, net("Constant", value_float=2.5)),
            net("Add", x, net("Constant", value=_tensor([1.0, 2.0, 3.0, 4.0, 5.0]))),
            net("Reshape", x, net("Constant", value_ints=[0, 1, -1])),
        ]

    _check(tmp_path, ROWS, body)
    _check(tmp_path, IMAGE, lambda n, x: n("Trilu", x, n.constant(np.array(-1, np.int64))))


def _tensor(numbers: Sequence[float]) -> Any:
    from onnx import helper

    return helper.make_tensor("t", TensorProto.FLOAT, [len(numbers)], numbers)


def test_operators_that_onnx_says_in_others(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> str:
        q, k, v = net.many("Split", 3, x, net.ints(8, 8, 8), axis=2)
        angle = net.random.normal(size=(5, 2)).astype(np.float32)
        cos, sin = net.constant(np.cos(angle)), net.constant(np.sin(angle))
        places = net("Cast", net("Mul", net("ReduceSum", q, net.ints(2), keepdims=0),
                                 net.constant(np.float32(0))), to=TensorProto.INT64)  # fmt: skip
        q = net("RotaryEmbedding", q, cos, sin, places, num_heads=2)
        return net("Attention", q, k, v, q_num_heads=2, kv_num_heads=2)

    _check(tmp_path, ["N", 5, 24], body, 23)


@pytest.mark.parametrize("softcap", [-1.0, 0.0, 0.5])
def test_scores_are_capped_by_a_positive_number(softcap: float, tmp_path: Path) -> None:
    def body(net: Network, x: str) -> str:
        return net("Attention", x, x, x, q_num_heads=2, kv_num_heads=2, softcap=softcap)

    _check(tmp_path, ["N", 5, 24], body, 23)


def test_the_statistics_of_a_layer_norm(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        scale, shift = net.weight("s", 9, 7), net.weight("t", 9, 7)
        return net.many("LayerNormalization", 3, x, scale, shift, axis=-2, epsilon=1e-3)

    _check(tmp_path, IMAGE, body, 17)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_pools_of_powers(tmp_path: Path, power: int) -> None:
    attrs: dict[str, Any] = {"p": power, "kernel_shape": [3, 2], "strides": [2, 1]}
    _check(tmp_path, IMAGE, _op("LpPool", **attrs, pads=[1, 0, 1, 1]), 18)


@pytest.mark.parametrize("reduction", ["add", "max", "min"])
def test_what_is_written_together_with_computed_tensors(tmp_path: Path, reduction: str) -> None:
    def body(net: Network, x: str) -> str:
        rows = net.constant(np.array([[2], [-1], [2]], np.int64))
        updates = net("Neg", net("Gather", x, net.ints(0, 1, 2)))
        return net("ScatterND", x, rows, updates, reduction=reduction)

    tested.update(checked(tmp_path, [4, 5], body, 18, batches=(1,)))


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("given", [False, True])
def test_recurrent_layers(tmp_path: Path, op: str, direction: str, given: bool) -> None:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    ways = 2 if direction == "bidirectional" else 1
    units, steps, inputs = 6, 5, 3

    def layer(net: Network, x: str, **attrs: Any) -> list[str]:
        weights = [
            net.weight(f"rnn.w{len(net.nodes)}", ways, gates * units, inputs),
            net.weight(f"rnn.r{len(net.nodes)}", ways, gates * units, units),
            net.weight(f"rnn.b{len(net.nodes)}", ways, 2 * gates * units),
        ]
        count = 2 if op == "LSTM" else 1
        states = []
        if given:
            row = net("Slice", x, net.ints(0), net.ints(ways), net.ints(1))
            wide = net("MatMul", row, net.weight(f"first{len(net.nodes)}", inputs, units))
            states = [net("Transpose", wide, perm=[1, 0, 2])] * count
        swapped = net("Transpose", x, perm=[1, 0, 2])
        attrs |= {"hidden_size": units, "direction": direction}
        y, *ends = net.many(op, 1 + count, swapped, *weights, "", *states, **attrs)
        return [net("Transpose", y, perm=[2, 0, 1, 3]), *(
            net("Transpose", end, perm=[1, 0, 2]) for end in ends
        )]  # fmt: skip

    def body(net: Network, x: str) -> list[str]:
        if op != "GRU":
            return layer(net, x)
        return [y for after in (0, 1) for y in layer(net, x, linear_before_reset=after)]

    _check(tmp_path, ["N", steps, inputs], body, 14)


@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("largest", [0, 1])
def test_the_first_of_an_order(tmp_path: Path, axis: int, largest: int) -> None:
    def body(net: Network, x: str) -> list[str]:
        whole = net("Cast", net("Mul", x, net.constant(np.float32(3))), to=TensorProto.INT32)
        attrs: dict[str, Any] = {"axis": axis, "largest": largest}
        return [
            *net.many("TopK", 2, x, net.ints(3), **attrs),
            *net.many("TopK", 2, whole, net.ints(4), **attrs),
        ]

    _check(tmp_path, IMAGE, body)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_what_is_written_to_constants(tmp_path: Path, reduction: str) -> None:
    def body(net: Network, x: str) -> list[str]:
        data = net.weight("d", 4, 5)
        rows = net.constant(np.array([[1], [-1], [1]], np.int64))
        spots = net.constant(np.array([[0, -1, 2, 0, 1], [3, 3, 3, -4, 2]], np.int64))
        attrs = {"reduction": reduction}
        nd = net("ScatterND", data, rows, net.weight("u", 3, 5), **attrs)
        one = net("ScatterElements", data, spots, net.weight("v", 2, 5), axis=0, **attrs)
        return [net("MatMul", x, net("Transpose", y, perm=[1, 0])) for y in (nd, one)]

    _check(tmp_path, ROWS, body)


def test_what_is_written_to_computed_tensors(tmp_path: Path) -> None:
    """As PyTorch exports `x[:, 1:3] = y`: the axis first, rows of it, and back."""

    def body(net: Network, x: str) -> list[str]:
        first = net("Transpose", x, perm=[2, 0, 1, 3])
        rows = net.constant(np.array([[5], [-9], [5]], np.int64))
        updates = net("Neg", net("Gather", first, net.ints(1, 2, 3)))
        swapped = net("Transpose", net("ScatterND", first, rows, updates), perm=[1, 2, 0, 3])
        pairs = net.constant(np.array([[[0, 2]], [[8, 3]]], np.int64))
        both = net("Transpose", x, perm=[2, 1, 0, 3])
        part = net("Slice", x, net.ints(0), net.ints(2), net.ints(2))
        part = net("Slice", part, net.ints(0), net.ints(1), net.ints(1))
        part = net("Transpose", part, perm=[2, 1, 0, 3])
        image = net.conv(x, (4, 4), 3, "/conv")
        turned = net("Transpose", image, perm=[1, 0, 2, 3])
        last = net("ScatterND", turned, net.constant(np.array([[3]], np.int64)),
                   net("Slice", turned, net.ints(0), net.ints(1), net.ints(0)))  # fmt: skip
        return [
            swapped,
            net("Transpose", net("ScatterND", both, pairs, part), perm=[2, 1, 0, 3]),
            net("Transpose", last, perm=[1, 0, 2, 3]),
        ]

    _check(tmp_path, IMAGE, body)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("outside", ["zeros", "border"])
@pytest.mark.parametrize("ends", [0, 1])
def test_pixels_at_computed_places(tmp_path: Path, mode: str, outside: str, ends: int) -> None:
    def body(net: Network, x: str) -> str:
        some = net("Slice", x, net.ints(0), net.ints(2), net.ints(1))
        grid = net("Mul", net("Transpose", some, perm=[0, 2, 3, 1]), net.constant(np.float32(0.7)))
        return net("GridSample", x, grid, mode=mode, padding_mode=outside, align_corners=ends)

    _check(tmp_path, IMAGE, body)


def test_every_operator_was_tested() -> None:
    """Comes last: what is in the registry and in no test above, nor in a file of its own."""
    plain = {op for op in HANDLERS if not op.startswith((LEARNED, MICROSOFT))}
    of_suite = {case.operator for case in cases("node")}
    # `onnx_still_test.py` has the operator that the suite has only as a type of inputs.
    elsewhere = {"Optional"}
    others = quantized.OPS.keys() | fused.OPS.keys() | tested | of_suite | elsewhere
    assert plain - others == set()


@pytest.mark.parametrize(
    ("op", "attribute"),
    [
        ("ReduceMean", "keepdims"),
        ("ReduceProd", "keepdims"),
        ("ArgMax", "keepdims"),
        ("ArgMin", "select_last_index"),
        ("IsInf", "detect_positive"),
    ],
)
def test_truth_values_are_0_or_1(tmp_path: Path, op: str, attribute: str) -> None:
    """Runtimes take another number for either."""
    with pytest.raises(UnsupportedError, match=f"{attribute} is 2, expected 0 or 1"):
        _check(tmp_path, ROWS, _op(op, **{attribute: 2}))
