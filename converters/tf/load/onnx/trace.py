"""Traces an ONNX model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tensorflow as tf

from converters.tf.errors import FileError
from converters.tf.ir import Batch
from converters.tf.ir.symbolic import Symbol, of_shape
from converters.tf.load.onnx.file import Graph, read_model
from converters.tf.load.onnx.replay import Nodes
from converters.tf.load.onnx.values import Known, Numbered, Tensor, stated
from converters.tf.load.saved_model.replay import Port, Replay
from converters.tf.load.shapes import FixedShapes
from converters.tf.lower.trace import Loaded
from tools.codegen.conversion import Problem, UnsupportedError


def trace_onnx(path: Path, fixed: FixedShapes) -> Loaded:
    """Traces a model file by replaying its nodes in TensorFlow's ops.

    Inputs and outputs have the shapes that the file says; images are channels last in between.

    Raises:
        FileError: The file is damaged or unsafe.
        UsageError: A dimension other than the batch stays open.
        UnsupportedError: With every node that has no counterpart.
    """
    model = read_model(path)
    ports = _ports(model, fixed)
    if len(set(model.outputs)) != len(model.outputs):
        raise FileError(Problem(str(path), "two outputs have the same name"))
    replay = Replay((Known, Symbol))

    def run(inputs: list[Any]) -> list[Any]:
        nodes = Nodes(replay, next((t for t in inputs if t.shape.rank), None))
        args = [
            Tensor(tuple(Batch() if d is None else d for d in p.shape), {stated(len(p.shape)): t})
            for p, t in zip(ports, inputs, strict=True)
        ]
        results = nodes.run(model, args)
        replay.problems += [
            Problem(f"output {name}", "it depends on the numbers of the batch's examples")
            for name, result in zip(model.outputs, results, strict=True)
            if isinstance(result, Numbered) and (result.scale is None or result.scale.any())
        ]
        return [] if replay.problems else [_output(nodes, r) for r in results]

    return replay.loaded(path.stem, ports, model.outputs, run)


def _ports(model: Graph, fixed: FixedShapes) -> list[Port]:
    if not model.inputs:
        raise UnsupportedError(Problem("model", "it has no input"))
    named = []
    for port in model.inputs:
        if port.shape is None:
            raise UnsupportedError(Problem(f"input {port.name}", "its rank is not known"))
        named.append((port.name, port.shape))
    shapes = fixed.resolved(named)
    return [
        Port(port.name, port.dtype, shape) for port, shape in zip(model.inputs, shapes, strict=True)
    ]


def _output(nodes: Nodes, result: Any) -> Any:
    """Returns an output in ONNX's order."""
    if isinstance(result, Tensor):
        return tf.cast(result.form(), result.levels) if result.levels else result.form()
    if isinstance(result, Symbol):
        return nodes.symbol(result)
    if isinstance(result, Numbered):
        shape = nodes.symbol(of_shape(result.shape))
        return tf.broadcast_to(tf.constant(result.offset), shape)
    assert isinstance(result, Known)
    return tf.constant(result.data)
