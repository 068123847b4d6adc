"""ONNX graphs that tests write by hand, as exporters write them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from converters.tf import ir
from converters.tf.emit.support import problems
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.load.shapes import FixedShapes
from converters.tf.lower.convert import convert
from converters.tf.tests.checks import TOLERANCE, difference, inputs_for
from converters.tf.tests.processor import processor_flags

Dims = Sequence[int | str | None]
# How the registry's names of operators of the other domain start.
LEARNED = "ai.onnx.ml."
# And of those of onnxruntime's own.
MICROSOFT = "com.microsoft."
# How the learned ones' own names start.
_NAMES = """
    ArrayFeature FeatureVectorizer Imputer LabelEncoder Linear Normalizer OneHotEncoder SVM Scaler
    TreeEnsemble
"""
_LEARNED = tuple(_NAMES.split())


class Network:
    """A growing graph; every call adds a node and returns the names of its results."""

    def __init__(self, opset: int = 20) -> None:
        self.opset = opset
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.random = np.random.default_rng(11)

    def weight(self, name: str, *shape: int) -> str:
        """Adds random weights."""
        fan = float(np.prod(shape[1:])) if len(shape) > 1 else 4.0
        return self.constant(self.random.normal(size=shape).astype(np.float32) / fan**0.5, name)

    def constant(self, data: Any, name: str = "") -> str:
        """Adds a constant."""
        name = name or f"onnx::Constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(data), name))
        return name

    def ints(self, *numbers: int) -> str:
        """Adds a constant list of integers."""
        return self.constant(np.array(numbers, np.int64))

    def many(self, op: str, count: int, *inputs: str, name: str = "", **attrs: Any) -> list[str]:
        """Adds a node of several results."""
        index = len(self.nodes)
        outputs = [f"{name or '/' + op}_output_{index}_{i}" for i in range(count)]
        domain = "ai.onnx.ml" if op.startswith(_LEARNED) else ""
        if op.startswith(MICROSOFT):
            domain, op = MICROSOFT[:-1], op.removeprefix(MICROSOFT)
        node = helper.make_node(op, inputs, outputs, name=name, domain=domain, **attrs)
        self.nodes.append(node)
        return outputs

    def __call__(self, op: str, *inputs: str, name: str = "", **attrs: Any) -> str:
        """Adds a node of one result."""
        return self.many(op, 1, *inputs, name=name, **attrs)[0]

    def conv(
        self, x: str, ends: tuple[int, int], size: int, path: str, stride: int = 1, group: int = 1
    ) -> str:
        """Adds a convolution that keeps the size, as PyTorch exports it with its norm folded."""
        module = path[1:].replace("/", ".")
        inputs, outputs = ends
        weight = self.weight(f"{module}.weight", outputs, inputs // group, size, size)
        return self(
            "Conv",
            x,
            weight,
            self.weight(f"{module}.bias", outputs),
            name=f"{path}/Conv",
            pads=[(size - 1) // 2] * 4,
            strides=[stride] * 2,
            kernel_shape=[size] * 2,
            dilations=[1, 1],
            group=group,
        )

    def linear(self, x: str, ends: tuple[int, int], path: str) -> str:
        """Adds a dense layer."""
        module = path[1:].replace("/", ".")
        weight = self.weight(f"{module}.weight", ends[1], ends[0])
        bias = self.weight(f"{module}.bias", ends[1])
        return self("Gemm", x, weight, bias, name=f"{path}/Gemm", transB=1, alpha=1.0, beta=1.0)

    def model(
        self, inputs: dict[str, Dims], outputs: Sequence[str], dtypes: Sequence[Any] = ()
    ) -> Any:
        """Returns the model; inputs are float32 unless `dtypes` says another type."""
        kinds = [*dtypes, *(np.float32,) * (len(inputs) - len(dtypes))]
        given = [
            helper.make_tensor_value_info(name, _element(kind), dims)
            for (name, dims), kind in zip(inputs.items(), kinds, strict=True)
        ]
        results = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph(self.nodes, "graph", given, results, self.constants)
        versions = [helper.make_opsetid("", self.opset)]
        domains = {node.domain for node in self.nodes}
        if LEARNED[:-1] in domains:
            versions.append(helper.make_opsetid(LEARNED[:-1], 3))
        if MICROSOFT[:-1] in domains:
            versions.append(helper.make_opsetid(MICROSOFT[:-1], 1))
        return helper.make_model(graph, opset_imports=versions, ir_version=9)


def trees(net: Network, kind: str, columns: Sequence[int], mode: str = "BRANCH_LEQ") -> Any:
    """Returns attributes of three random trees, of which one is a leaf."""
    nodes: list[tuple[int, int, str, int, float, int, int]] = []
    leaves: list[tuple[int, int, int, float]] = []

    def grow(tree: int, number: int, depth: int) -> int:
        """Adds a node and what is below it; returns the number after the last one."""
        if depth == 0 or (depth < 3 and net.random.random() < 0.3):
            nodes.append((tree, number, "LEAF", 0, 0.0, 0, 0))
            leaves.extend((tree, number, c, float(net.random.random())) for c in columns)
            return number + 1
        index = len(nodes)
        nodes.append((tree, number, mode, 0, 0.0, 0, 0))
        second = grow(tree, number + 1, depth - 1)
        after = grow(tree, second, depth - 1)
        place = (int(net.random.integers(5)), float(np.float32(net.random.normal())))
        nodes[index] = (tree, number, mode, *place, number + 1, second)
        return after

    for tree, depth in enumerate((4, 0, 3)):
        grow(tree, 0, depth)
    names = ("tree", "node", "mode", "feature", "value", "truenode", "falsenode")
    ends = ("ids", "ids", "s", "ids", "s", "ids", "ids")
    attrs: dict[str, Any] = {
        f"nodes_{name}{end}": list(column)
        for name, end, column in zip(names, ends, zip(*nodes, strict=True), strict=True)
    }
    for name, column in zip(
        ("treeids", "nodeids", "ids", "weights"), zip(*leaves, strict=True), strict=True
    ):
        attrs[f"{kind}_{name}"] = list(column)
    return attrs


def _element(kind: Any) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(kind)))


def saved(model: Any, folder: Path) -> Path:
    """Writes a model."""
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


# Adds nodes after an input; returns the names of the results.
Body = Callable[["Network", str], "str | Sequence[str]"]


exact_sums = pytest.mark.skipif(
    processor_flags().isdisjoint({"avx512_vnni", "avx_vnni"}),
    reason="onnxruntime cuts sums of uint8 by int8 at 16 bits on processors without VNNI",
)
"""Marks a test whose products of 8 bits are compared with those of onnxruntime."""


def agree(
    model: Any,
    folder: Path,
    batches: Sequence[int] = (1, 3),
    whole: int = 3,
    shapes: dict[str, tuple[int, ...]] | None = None,
) -> ir.Graph:
    """Converts a model and compares every output with onnxruntime for several batch sizes."""
    loaded = load(saved(model, folder), LoadOptions(FixedShapes(shapes or {})))
    graph = convert(loaded.trace)
    assert problems(graph) == []
    # Its optimizer rounds what meets quantized weights.
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [o.name for o in session.get_outputs()]
    assert [p.name for p in graph.outputs] == names
    for batch in batches:
        arrays = inputs_for(graph, batch, whole)
        found, predicted = interpret(graph, arrays), loaded.predict(arrays)
        for name, expected in zip(names, session.run(None, arrays), strict=True):
            assert difference(found[name], expected) <= TOLERANCE, name
            assert difference(predicted[name], expected) <= TOLERANCE, name
    return graph


def checked(
    folder: Path,
    dims: Dims,
    body: Body,
    opset: int = 20,
    dtype: Any = np.float32,
    batches: Sequence[int] = (1, 3),
) -> set[str]:
    """Compares what a body adds to a graph of the input `x`; returns the operators that it has."""
    net = Network(opset)
    results = body(net, "x")
    outputs = [results] if isinstance(results, str) else list(results)
    agree(net.model({"x": dims}, outputs, [dtype]), folder, batches)
    return {f"{n.domain}.{n.op_type}" if n.domain else n.op_type for n in net.nodes}
