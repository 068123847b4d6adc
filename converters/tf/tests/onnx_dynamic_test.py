"""Integer products against onnxruntime: of given levels, and of such by an example's range."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto

from converters.tf import ir
from converters.tf.emit.support import problems
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.lower.convert import convert
from converters.tf.tests.checks import few, inputs_for
from converters.tf.tests.onnx_graphs import MICROSOFT, Dims, Network, exact_sums, saved

_DYNAMIC = (ir.DynamicConv, ir.DynamicDense)


def _agree(model: Any, folder: Path, layers: int, batches: tuple[int, ...]) -> ir.Graph:
    """Compares integers exactly, and floats nearly; so many layers compute in integers."""
    path = saved(model, folder)
    loaded = load(path, LoadOptions())
    graph = convert(loaded.trace)
    assert problems(graph) == []
    assert sum(isinstance(node.op, _DYNAMIC) for node in graph.nodes) == layers
    apart = convert(load(path, LoadOptions(integer=False)).trace)
    assert not any(isinstance(node.op, _DYNAMIC) for node in apart.nodes)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    for batch in batches:
        arrays = inputs_for(graph, batch, 3)
        found, predicted = interpret(graph, arrays), loaded.predict(arrays)
        for name, expected in zip(names, session.run(None, arrays), strict=True):
            for own in (found[name], predicted[name]):
                if expected.dtype == np.float32:
                    near = 1e-6 * np.abs(expected).max()
                    np.testing.assert_allclose(own, expected, 0, near, err_msg=name)
                else:
                    np.testing.assert_array_equal(own, expected, name)
    return graph


def _taps(net: Network, kind: str, *shape: int) -> str:
    least, most = (-128, 128) if kind == "int8" else (0, 256)
    return net.constant(net.random.integers(least, most, shape).astype(kind))


_KINDS = st.sampled_from(["int8", "uint8"])
_MIDDLE = {"int8": 0, "uint8": 128}


@few
@given(kind=_KINDS, weights=_KINDS, sizes=st.sampled_from([(1, 4), (40, 17), (300, 16)]),
       lead=st.sampled_from([[], [3], [2, 3]]), zero=st.sampled_from([None, 0, 7]),
       many=st.booleans())  # fmt: skip
def test_products_of_given_levels(
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    weights: str,
    sizes: tuple[int, int],
    lead: list[int],
    zero: int | None,
    many: bool,
) -> None:
    net = Network(20)
    level = net.constant(np.array(zero or 0, kind))
    x = net("QuantizeLinear", "x", net.constant(np.float32(0.05)), level)
    # onnxruntime takes levels of 0 by column for int8 alone.
    count = (sizes[1],) if many and weights == "int8" else ()
    middle = net.constant(np.full(count, _MIDDLE[weights], weights))
    operands = [x, _taps(net, weights, *sizes), "" if zero is None else level, middle]
    y = net("MatMulInteger", *operands)
    dims: Dims = ["N", *lead, sizes[0]]
    model = net.model({"x": dims}, [y, net("Cast", y, to=TensorProto.FLOAT)])
    _agree(model, tmp_path_factory.mktemp("m"), 1, (1, 3))


@exact_sums
@few
@given(weights=_KINDS, channels=st.sampled_from([(1, 4), (3, 17), (20, 33)]),
       taps=st.sampled_from([(1, 1), (3, 3), (2, 5), (3,)]), stride=st.integers(1, 2),
       dilation=st.integers(1, 2), pads=st.tuples(*[st.integers(0, 2)] * 4),
       groups=st.integers(1, 2), dynamic=st.booleans())  # fmt: skip
def test_convolutions(
    tmp_path_factory: pytest.TempPathFactory,
    weights: str,
    channels: tuple[int, int],
    taps: tuple[int, ...],
    stride: int,
    dilation: int,
    pads: tuple[int, ...],
    groups: int,
    dynamic: bool,
) -> None:
    net = Network(21)
    groups = groups if len(taps) == 2 else 1
    inputs, outputs = (groups * c for c in channels)
    if dynamic:
        x, scale, zero = net.many("DynamicQuantizeLinear", 3, "x")
    else:
        scale, zero = net.constant(np.float32(0.05)), net.constant(np.array(101, np.uint8))
        x = net("QuantizeLinear", "x", scale, zero)
    attrs: dict[str, Any] = {
        "strides": [stride, 1][: len(taps)],
        "dilations": [1, dilation][: len(taps)],
        "pads": [*pads[: len(taps)], *pads[2 : 2 + len(taps)]],
        "group": groups,
    }
    middle = net.constant(np.array(_MIDDLE[weights], weights))
    kernel = _taps(net, weights, outputs, channels[0], *taps)
    y = net("ConvInteger", x, kernel, zero, middle, **attrs)
    z = net("Mul", net("Cast", y, to=TensorProto.FLOAT), scale)
    dims: Dims = ["N", inputs, 9, 11] if len(taps) == 2 else ["N", inputs, 13]
    model = net.model({"x": dims}, [y, z])
    _agree(model, tmp_path_factory.mktemp("m"), 1, (1,) if dynamic else (1, 3))


@exact_sums
@few
@given(sizes=st.sampled_from([(4, 1), (40, 17), (300, 16)]), lead=st.sampled_from([[], [3]]),
       many=st.booleans(), biased=st.booleans())  # fmt: skip
def test_products_of_ranges(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: tuple[int, int],
    lead: list[int],
    many: bool,
    biased: bool,
) -> None:
    net = Network(22)
    kernel = _taps(net, "int8", *sizes)
    count = (sizes[1],) if many else ()
    scale = net.constant(net.random.uniform(0.002, 0.01, count).astype(np.float32))
    middle = net.constant(np.zeros(count, np.int8))
    bias = [net.weight("bias", sizes[1])] if biased else []
    q, own, zero = net.many("DynamicQuantizeLinear", 3, "x")
    whole = net("MatMulInteger", q, kernel, zero, middle)
    factor = net("Mul", own, scale)
    results = [
        *(q, own, zero, whole),
        net("Mul", net("Cast", whole, to=TensorProto.FLOAT), factor),
        net(f"{MICROSOFT}DynamicQuantizeMatMul", "x", kernel, scale, middle, *bias),
        net(f"{MICROSOFT}MatMulIntegerToFloat", q, kernel, own, scale, zero, middle, *bias),
    ]
    dims: Dims = ["N", *lead, sizes[0]]
    # The last two are the same product.
    graph = _agree(net.model({"x": dims}, results), tmp_path_factory.mktemp("m"), 2, (1,))
    arrays = inputs_for(graph, 3, 3)
    together = interpret(graph, arrays)
    for i in range(3):
        alone = interpret(graph, {name: data[i : i + 1] for name, data in arrays.items()})
        for name, data in alone.items():
            np.testing.assert_array_equal(data[0], together[name][i], name)


def test_sums_are_those_of_integers(tmp_path: Path) -> None:
    """float32 has no sums of more than 2^24 exactly."""
    net = Network(23)
    kernel = net.constant(np.full((4001, 3), 127, np.int8))
    level = net.constant(np.array(0, np.uint8))
    one = net.constant(np.float32(1))
    y = net("MatMulInteger", net("QuantizeLinear", net("Abs", "x"), one, level), kernel, level)
    model = net.model({"x": ["N", 4001]}, [y])
    path = saved(model, tmp_path)
    loaded = load(path, LoadOptions())
    x = np.full((2, 4001), 255, np.float32)
    x[:, 0] = 254
    expected = [[(4000 * 255 + 254) * 127] * 3] * 2
    for found in (interpret(convert(loaded.trace), {"x": x}), loaded.predict({"x": x})):
        (own,) = found.values()
        assert own.tolist() == expected


def test_what_computes_in_float32(tmp_path: Path) -> None:
    """Weights that are computed, and a level of 0 with which weights are not int8."""
    net = Network(24)
    one, level = net.constant(np.float32(0.1)), net.constant(np.array(3, np.uint8))
    x = net("QuantizeLinear", "x", one, level)
    turned = net("Transpose", x, perm=[0, 2, 1])
    wide = net.constant(np.array(7, np.uint8))
    results = [
        net("MatMulInteger", x, turned, level, level),
        net("MatMulInteger", x, _taps(net, "uint8", 5, 3), level, wide),
    ]
    _agree(net.model({"x": ["N", 4, 5]}, results), tmp_path, 0, (1, 3))
