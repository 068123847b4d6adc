"""Measures how long tf2rust takes for graphs of thousands of nodes.

tools/bazel run //tests/bench:large_graphs -- --nodes=8000 --nodes=20000
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import onnx
import tensorflow as tf
from absl import app, flags
from onnx import TensorProto, helper, numpy_helper

from converters.tf.emit.options import Options, RuntimeMode
from converters.tf.tf2rust import Request, run
from tests.bench.machine import processor

_NODES = flags.DEFINE_multi_integer("nodes", [8000, 20000], "nodes of a graph")
_KINDS = flags.DEFINE_multi_enum("kind", ["onnx", "frozen"], ["onnx", "frozen"], "kinds of files")
_TIMES = flags.DEFINE_integer("times", 3, "conversions, of which the fastest counts", 1)

_UNARY = ("Relu", "Tanh", "Sigmoid", "Abs", "Neg")
_BINARY = ("Add", "Mul", "Sub", "Max")
# Elements of a row of the input, and of a weight.
_WIDTH = 8


def _onnx(count: int, path: Path) -> None:
    """Writes a chain of operators, every second of which has a weight."""
    random = np.random.default_rng(0)
    nodes, weights = [], []
    for number in range(count):
        operands = ["x" if number == 0 else f"t{number - 1}"]
        kind = _UNARY[number // 2 % len(_UNARY)]
        if number % 2:
            kind = _BINARY[number // 2 % len(_BINARY)]
            weight = random.normal(size=_WIDTH).astype(np.float32)
            weights.append(numpy_helper.from_array(weight, f"w{number}"))
            operands.append(weights[-1].name)
        nodes.append(helper.make_node(kind, operands, [f"t{number}"], f"n{number}"))
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", _WIDTH])
        for name in ("x", f"t{count - 1}")
    ]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], weights)
    sets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=8), str(path))


def _frozen(count: int, path: Path) -> None:
    """Writes a chain of nodes, of which constants are a third."""
    random = np.random.default_rng(0)
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, _WIDTH], "x")
        for _ in range((count - 1) // 3):
            x = tf.nn.relu(x + tf.constant(random.normal(size=_WIDTH).astype(np.float32)))
    path.write_bytes(graph.as_graph_def().SerializeToString())


def _seconds(path: Path) -> tuple[float, float]:
    """Returns the seconds of the processor and of the clock that a conversion takes."""
    used, now = time.process_time(), time.perf_counter()
    run(Request(path, Options("net", path.name, runtime=RuntimeMode.CRATE)))
    return time.process_time() - used, time.perf_counter() - now


def main(argv: Sequence[str]) -> int:
    """Prints a line for each graph."""
    del argv
    print(f"{processor()}; other work on the machine: {os.getloadavg()[0]:.1f}")
    write = {"onnx": _onnx, "frozen": _frozen}
    with tempfile.TemporaryDirectory() as folder:
        for kind in _KINDS.value:
            end = "onnx" if kind == "onnx" else "pb"
            small = Path(folder) / f"small.{end}"
            write[kind](50, small)
            _seconds(small)
            for count in _NODES.value:
                path = Path(folder) / f"large.{end}"
                write[kind](count, path)
                found = [_seconds(path) for _ in range(_TIMES.value)]
                used, clock = map(min, zip(*found, strict=True))
                text = f"{kind}, {count:,} nodes: {used:.2f} s of the processor, {clock:.2f} s"
                print(text, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(app.run(main))
