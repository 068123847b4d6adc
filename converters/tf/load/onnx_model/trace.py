"""Traces an ONNX model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from converters.tf.errors import FileError
from converters.tf.ir import Array, Batch, Layer
from converters.tf.load.onnx_model.file import Graph, read_model
from converters.tf.load.onnx_model.replay import Replay
from converters.tf.load.onnx_model.values import Known, Tensor
from converters.tf.load.replay import evaluated
from converters.tf.load.shapes import FixedShapes
from converters.tf.load.tracer import trace_function
from converters.tf.symbolic import Symbol
from converters.tf.trace import Loaded, Trace, TraceInput
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
    inputs = _inputs(model, fixed)
    graph = tf.Graph()
    with graph.as_default():
        placeholders = [
            tf.compat.v1.placeholder(p.dtype, p.shape, f"input_{i}") for i, p in enumerate(inputs)
        ]
        replay = Replay(graph)
        replay.batch = next((t for t in placeholders if t.shape.rank), None)
        args = [
            Tensor(
                tuple(Batch() if d is None else d for d in p.shape),
                {tuple(range(len(p.shape))): t},
            )
            for p, t in zip(inputs, placeholders, strict=True)
        ]
        results = replay.run(model, args)
        replay.problems += [
            Problem(f"output {name}", "quantized numbers")
            for name, result in zip(model.outputs, results, strict=True)
            if isinstance(result, Tensor) and result.levels
        ]
        if replay.problems:
            raise UnsupportedError.of(replay.problems)
        outputs = [_output(replay, r) for r in results]
    return _loaded(path, graph, replay, model, inputs, placeholders, outputs)


def _inputs(model: Graph, fixed: FixedShapes) -> list[TraceInput]:
    fixed.check([port.name for port in model.inputs])
    if not model.inputs:
        raise UnsupportedError(Problem("model", "it has no input"))
    inputs = []
    for index, port in enumerate(model.inputs):
        if port.shape is None:
            raise UnsupportedError(Problem(f"input {port.name}", "its rank is not known"))
        shape = fixed.resolve(port.name, port.shape)
        inputs.append(TraceInput(port.name, f"input_{index}", port.dtype, shape))
    return inputs


def _output(replay: Replay, result: Any) -> Any:
    """Returns an output in ONNX's order, as a node of its own."""
    if isinstance(result, Tensor):
        return tf.identity(result.form(), "output")
    if isinstance(result, Symbol):
        return replay.symbol(result)
    assert isinstance(result, Known)
    return tf.constant(result.data, name="output")


def _loaded(
    path: Path,
    graph: Any,
    replay: Replay,
    model: Graph,
    inputs: list[TraceInput],
    placeholders: list[Any],
    outputs: list[Any],
) -> Loaded:
    arguments = [*placeholders, *replay.weights.values()]

    def layer(node: str) -> str:
        return replay.scopes.get(node.split("/")[0], "")

    main, functions = trace_function(path.stem, graph, arguments, outputs, layer)
    if len(set(model.outputs)) != len(model.outputs):
        raise FileError(Problem(str(path), "two outputs have the same name"))
    trace = Trace(
        name=path.stem,
        main=main,
        functions=functions,
        inputs=tuple(inputs),
        outputs=model.outputs,
        variables=replay.variables,
        layers=tuple(Layer(name, kind) for name, kind in replay.layers.items()),
        weights={name: tuple(weights) for name, weights in replay.layer_weights.items()},
    )

    def predict(arrays: Mapping[str, Array]) -> dict[str, Array]:
        given = {t: replay.variables[node].data for node, t in replay.weights.items()}
        given |= {t: arrays[p.name] for p, t in zip(inputs, placeholders, strict=True)}
        return dict(zip(trace.outputs, evaluated(graph, outputs, given), strict=True))

    return Loaded(trace, predict)
