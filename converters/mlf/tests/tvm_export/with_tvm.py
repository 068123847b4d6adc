"""Runs where TVM is: ONNX models -> archive -> crate -> the outputs of onnxruntime."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from converters.mlf.convert import Request, convert
from converters.mlf.tests.build import build, run_rust
from converters.mlf.tvm_export_lower import load_model, plan_module
from converters.mlf.tvm_export_plan import archive_files, archive_tar

onnx: Any = importlib.import_module("onnx")
onnxruntime: Any = importlib.import_module("onnxruntime")
helper = onnx.helper
RNG = np.random.default_rng(7)


def tensor(name: str, values: np.ndarray) -> Any:
    """Returns an ONNX initializer."""
    return onnx.numpy_helper.from_array(values, name)


def save(path: Path, nodes: list[Any], inputs: Any, outputs: Any, weights: list[Any]) -> None:
    """Writes a checked ONNX model of float inputs and outputs."""

    def infos(items: Any) -> list[Any]:
        kind = onnx.TensorProto.FLOAT
        return [helper.make_tensor_value_info(n, kind, s) for n, s in items]

    graph = helper.make_graph(nodes, "g", infos(inputs), infos(outputs), weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    onnx.save(model, str(path))


def weights(*shape: int) -> np.ndarray:
    """Returns reproducible random float32 values."""
    return (RNG.standard_normal(shape) * 0.3).astype(np.float32)


def mlp(path: Path) -> None:
    """Dense, relu, dense, softmax."""
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w2", "b2"], ["l"]),
        helper.make_node("Softmax", ["l"], ["y"], axis=1),
    ]
    values = {"w1": weights(8, 16), "b1": weights(16), "w2": weights(16, 4), "b2": weights(4)}
    items = [tensor(n, v) for n, v in values.items()]
    save(path, nodes, [("x", [1, 8])], [("y", [1, 4])], items)


def conv(path: Path) -> None:
    """Convolution, pooling, reshape, dense; two outputs."""
    nodes = [
        helper.make_node("Conv", ["x:0", "k"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "w"], ["y"]),
    ]
    items = [tensor("k", weights(4, 3, 3, 3)), tensor("w", weights(64, 5))]
    save(path, nodes, [("x:0", [1, 3, 8, 8])], [("y", [1, 5]), ("f", [1, 64])], items)


def int8_qdq(path: Path) -> None:
    """A dense layer between quantize and dequantize, as quantizers write it."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "z"], ["qx"]),
        helper.make_node("DequantizeLinear", ["qx", "sx", "z"], ["dx"]),
        helper.make_node("DequantizeLinear", ["qw", "sw", "z"], ["dw"]),
        helper.make_node("MatMul", ["dx", "dw"], ["m"]),
        helper.make_node("QuantizeLinear", ["m", "sy", "z"], ["qy"]),
        helper.make_node("DequantizeLinear", ["qy", "sy", "z"], ["y"]),
    ]
    items = [
        tensor("sx", np.array(0.05, np.float32)),
        tensor("sw", np.array(0.02, np.float32)),
        tensor("sy", np.array(0.125, np.float32)),
        tensor("z", np.array(0, np.int8)),
        tensor("qw", RNG.integers(-127, 128, (8, 4)).astype(np.int8)),
    ]
    save(path, nodes, [("x", [1, 8])], [("y", [1, 4])], items)


@pytest.mark.parametrize("make", [mlp, conv, int8_qdq])
def test_equals_onnxruntime(make: Any, tmp_path: Path) -> None:
    """Archive, crate and run give what onnxruntime gives."""
    path = tmp_path / "model.onnx"
    make(path)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feeds = {i.name: weights(*i.shape) * 4 for i in session.get_inputs()}
    wanted = session.run(None, feeds)
    plan = plan_module(load_model(path), "net")
    files = archive_files(plan)
    assert archive_tar(files) == archive_tar(files)
    (tmp_path / "net.tar").write_bytes(archive_tar(files))
    golden = {
        f"net_input_{t.name}": v for t, v in zip(plan.inputs, feeds.values(), strict=True)
    } | {f"net_output_{t.name}": v for t, v in zip(plan.outputs, wanted, strict=True)}
    np.savez(tmp_path / "golden.npz", allow_pickle=False, **golden)
    result = convert(Request(mlf=tmp_path / "net.tar", golden=tmp_path / "golden.npz"))
    built = build(result, tmp_path / "crate")
    output = run_rust(built, built.folder / "tests" / "golden.rs", test=True)
    assert "1 passed" in output
    print(make.__name__, "workspace", plan.workspace_size, "constants", len(plan.constants))
