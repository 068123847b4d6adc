"""Operators of onnxruntime's optimizers, against onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from converters.tf.load.onnx import fused
from converters.tf.tests.onnx_graphs import MICROSOFT, Body, Dims, Network, agree, checked

IMAGE: Dims = ["N", 4, 7, 6]
ROWS: Dims = ["N", 5, 8]
tested: set[str] = set()


def _check(folder: Path, dims: Dims, body: Body, dtype: Any = np.float32) -> None:
    tested.update(checked(folder, dims, body, 20, dtype))


ACTIVATIONS: list[tuple[str, list[float]]] = [
    ("Relu", []),
    ("Tanh", []),
    ("Sigmoid", []),
    ("LeakyRelu", [0.3]),
    ("Clip", [-0.2, 0.4]),
    ("Clip", [0.0, 6.0]),
    ("HardSigmoid", [0.2, 0.5]),
]


@pytest.mark.parametrize(("kind", "params"), ACTIVATIONS)
def test_products_with_activations(tmp_path: Path, kind: str, params: list[float]) -> None:
    attrs: dict[str, Any] = {"activation": kind}
    named: dict[str, Any] = dict(zip(("activation_alpha", "activation_beta"), params, strict=False))

    def body(net: Network, x: str) -> list[str]:
        operands = [net.weight("conv.weight", 4, 4, 3, 3), net.weight("conv.bias", 4)]
        options: dict[str, Any] = {"pads": [1] * 4, "kernel_shape": [3, 3], **attrs}
        if params:
            options["activation_params"] = params
        y = net(f"{MICROSOFT}FusedConv", x, *operands, **options)
        results = [y, net(f"{MICROSOFT}FusedConv", x, *operands, x, **options)]
        if kind != "Clip":
            rows = net("Flatten", net("GlobalAveragePool", x))
            results.append(net(f"{MICROSOFT}FusedGemm", rows, net.weight("fc.weight", 3, 4),
                               net.weight("fc.bias", 3), transB=1, **attrs, **named))  # fmt: skip
        return results

    _check(tmp_path, IMAGE, body)


def test_products(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        weights, other = net.weight("w", 8, 3), net.weight("v", 3, 8)
        turned = net("Transpose", x, perm=[0, 2, 1])
        return [
            net(f"{MICROSOFT}FusedMatMul", x, weights, alpha=0.5),
            net(f"{MICROSOFT}FusedMatMul", x, other, transB=1),
            net(f"{MICROSOFT}FusedMatMul", x, x, transB=1, alpha=0.125),
            net(f"{MICROSOFT}FusedMatMul", turned, weights, transA=1),
        ]

    _check(tmp_path, ROWS, body)


def test_functions(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        bias = net.weight("bias", 8)
        return [
            net(f"{MICROSOFT}Gelu", x),
            net(f"{MICROSOFT}BiasGelu", x, bias),
            net(f"{MICROSOFT}FastGelu", x),
            net(f"{MICROSOFT}FastGelu", x, bias),
            net(f"{MICROSOFT}QuickGelu", x),
            net(f"{MICROSOFT}QuickGelu", x, alpha=1.0),
        ]

    _check(tmp_path, ROWS, body)


def test_norms_of_sums(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        other = net("Relu", x)
        gamma, beta, bias = (net.weight(n, 8) for n in ("gamma", "beta", "bias"))
        skip, plain = (f"{MICROSOFT}Skip{n}LayerNormalization" for n in ("", "Simplified"))

        def both(op: str, *operands: str) -> list[str]:
            outputs = net.many(op, 4, *operands, epsilon=1e-5)
            node = net.nodes[-1]
            node.output[1], node.output[2] = "", ""
            return [outputs[0], outputs[3]]

        return [
            net(skip, x, other, gamma),
            net(skip, x, other, gamma, beta, epsilon=1e-3),
            *both(skip, x, other, gamma, beta, bias),
            net(plain, x, other, gamma),
            *both(plain, x, other, gamma, bias),
            net("SimplifiedLayerNormalization", x, gamma, axis=-1, epsilon=1e-5),
        ]

    _check(tmp_path, ROWS, body)


@pytest.mark.parametrize("masked", [False, True])
def test_attention(tmp_path: Path, masked: bool) -> None:
    def body(net: Network, x: str) -> list[str]:
        weights, bias = net.weight("qkv.weight", 8, 24), net.weight("qkv.bias", 24)
        first = net("Greater", net("ReduceSum", x, net.ints(2), keepdims=0),
                    net.constant(np.float32(-1)))  # fmt: skip
        mask = [net("Cast", first, to=onnx.TensorProto.INT32)] if masked else []
        scores = net.weight("scores", 1, 2, 5, 5)
        parts = [net("MatMul", x, net.weight(f"{n}.weight", 8, 8)) for n in "qkv"]
        results = [
            net(f"{MICROSOFT}Attention", x, weights, bias, *mask, num_heads=2),
            net(f"{MICROSOFT}Attention", x, weights, bias, "", "", scores, num_heads=2, scale=0.3),
            net(f"{MICROSOFT}MultiHeadAttention", *parts, num_heads=2),
            net(f"{MICROSOFT}MultiHeadAttention", *parts, bias, *mask, num_heads=4),
        ]
        if not masked:
            causal = net(f"{MICROSOFT}Attention", x, weights, bias, num_heads=4, unidirectional=1)
            results.append(causal)
        return results

    _check(tmp_path, ROWS, body)


def test_embeddings(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        tables = [net.weight("words", 9, 8), net.weight("places", 12, 8)]
        segments = net("Mod", x, net.constant(np.array(2, np.int32)))
        norm = [net.weight("gamma", 8), net.weight("beta", 8)]
        op = f"{MICROSOFT}EmbedLayerNormalization"
        return [
            net.many(op, 2, x, "", *tables, "", *norm)[0],
            net.many(op, 2, x, segments, *tables, net.weight("segments", 2, 8), *norm,
                     epsilon=1e-5)[0],
        ]  # fmt: skip

    _check(tmp_path, ["N", 6], body, np.int32)


@pytest.mark.parametrize("activation", ["Relu", "Sigmoid"])
def test_what_the_optimizer_writes(tmp_path: Path, activation: str) -> None:
    net = Network(17)
    x = net(activation, net.conv("x", (3, 8), 3, "/stem"))
    x = net("Transpose", net("Reshape", x, net.ints(0, 8, -1)), perm=[0, 2, 1])
    rows = net("Div", net("MatMul", x, net("Transpose", x, perm=[0, 2, 1])),
               net.constant(np.float32(4)))  # fmt: skip
    x = net("Add", net("MatMul", net("Softmax", rows, axis=-1), x), net.weight("b", 8))
    source = net.model({"x": ["N", 3, 4, 4]}, [x]).SerializeToString()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    agree(onnx.load(tmp_path / "optimized.onnx"), tmp_path)


def test_every_operator_was_tested() -> None:
    """Comes last."""
    assert fused.OPS.keys() <= tested
