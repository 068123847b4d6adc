"""Traces an ONNX model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import tensorflow as tf

from converters.tf.errors import FileError, sizes_advised
from converters.tf.ir import Batch, Dim, Shape
from converters.tf.ir.agreeing import differences
from converters.tf.ir.dimensions import Text, all_names, joined, parsed
from converters.tf.ir.expressions import Size
from converters.tf.ir.symbolic import Symbol, of_shape
from converters.tf.load.custom_ops import CustomOp
from converters.tf.load.input_values import arrays_of
from converters.tf.load.onnx.context import Handler, is_computed
from converters.tf.load.onnx.file import Graph, read_model
from converters.tf.load.onnx.guessed import Guess, guesses, holds, stated_outputs
from converters.tf.load.onnx.indexing import COUNTING
from converters.tf.load.onnx.inferred import Shapes
from converters.tf.load.onnx.own import handlers
from converters.tf.load.onnx.qdq import fused
from converters.tf.load.onnx.replay import Nodes
from converters.tf.load.onnx.values import Known, Numbered, Tensor, Value, stated
from converters.tf.load.onnx.words import Texts, standardized
from converters.tf.load.saved_model.replay import Port, Refused, Replay
from converters.tf.load.shapes import FixedShapes
from converters.tf.load.symbols import Named, opened
from converters.tf.lower.trace import Loaded
from tools.codegen.conversion import Problem, UnsupportedError

_NONE: Mapping[str, CustomOp] = MappingProxyType({})
_NO_VALUES: Mapping[str, str] = MappingProxyType({})
_NO_GUESS: Guess = MappingProxyType({})


def trace_onnx(
    path: Path,
    fixed: FixedShapes,
    ops: Mapping[str, CustomOp] = _NONE,
    integer: bool = True,
    values: Mapping[str, str] = _NO_VALUES,
) -> Loaded:
    """Traces a model file by replaying its nodes in TensorFlow's ops.

    Inputs and outputs have the shapes that the file says; images are channels last in between.

    Args:
        path: File.
        fixed: Dimensions that the file leaves open.
        ops: Operators of the user, by their names.
        integer: Whether layers between quantized numbers of 8 bits compute in integers.
        values: Inputs that become constants, by name: their elements as text.

    Raises:
        FileError: The file is damaged or unsafe.
        UsageError: The caller's shapes or values contradict the file.
        UnsupportedError: With every node that has no counterpart.
    """
    own = handlers(ops)
    model = read_model(path)
    said = model.facts
    model = fused(model) if integer else model
    if len(set(model.outputs)) != len(model.outputs):
        raise FileError(Problem(str(path), "two outputs have the same name"))
    shapes = opened(fixed, _named(model), channels_first=True)
    ports = [(p.name, p.dtype, shape) for p, shape in zip(model.inputs, shapes, strict=True)]
    constants = {name: Known(data, name) for name, data in arrays_of(values, ports).items()}
    source = _Source(path, model, own, integer, constants)
    while True:
        with differences() as found:
            try:
                return replace(_traced(source, shapes), facts=said)
            except UnsupportedError as err:
                again = joined(shapes, *found[0]) if found else shapes
                if again == shapes:
                    deciding = any(is_computed(problem.what) for problem in err.problems)
                    guess = _guessed(source, shapes) if deciding else None
                    if guess is None:
                        raise sizes_advised(err, all_names(shapes)) from err
                    return replace(guess, facts=said)
                shapes = again


@dataclass(frozen=True)
class _Source:
    """A model and how it is read.

    Attributes:
        path: Its file.
        model: What the file says.
        own: Operators of the user.
        integer: Whether layers between quantized numbers of 8 bits compute in integers.
        constants: Inputs that are constants, by name.
    """

    path: Path
    model: Graph
    own: Mapping[str, Handler]
    integer: bool
    constants: Mapping[str, Known]


def _guessed(source: _Source, shapes: Sequence[tuple[Text, ...]]) -> Loaded | None:
    """Returns the model for the only value of its inputs for which it gives what it states."""
    for some in (False, True):
        found = []
        for guess in guesses(source.model, some):
            try:
                found.append(_traced(source, shapes, guess))
            except (UnsupportedError, Refused):
                continue
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _traced(
    source: _Source, shapes: Sequence[tuple[Text, ...]], guess: Guess = _NO_GUESS
) -> Loaded:
    replay = Replay((Known, Symbol))
    model, constants = source.model, source.constants
    ports = [
        Port(port.name, port.dtype, shape)
        for port, shape in zip(model.inputs, shapes, strict=True)
        if port.name not in constants
    ]

    def run(inputs: list[Any]) -> list[Any]:
        nodes = Nodes(replay, own=source.own, integer=source.integer)
        dims = [tuple(map(_dim, p.shape)) for p in ports]
        counts = any(node.op in COUNTING for node in model.nodes)
        if counts or any(isinstance(d, Size) for shape in dims for d in shape):
            nodes.shapes = Shapes(replay.variables)
        nodes.places = _places(dims, inputs)
        args: dict[str, Value] = {**constants}
        for port, shape, tensor in zip(ports, dims, inputs, strict=True):
            nodes.state(tensor, shape)
            known = guess.get(port.name)
            made = Tensor(shape, {stated(len(shape)): tensor})
            args[port.name] = made if known is None else known
        results = nodes.run(model, [args[port.name] for port in model.inputs])
        replay.problems += [
            Problem(f"output {name}", "it depends on the numbers of the batch elements")
            for name, result in zip(model.outputs, results, strict=True)
            if isinstance(result, Numbered) and (result.scale is None or result.scale.any())
        ]
        if replay.problems:
            return []
        outputs = [_output(nodes, r) for r in results]
        return _agreeing(source, guess, inputs, outputs) if guess else outputs

    return replay.loaded(source.path.stem, ports, model.outputs, run)


def _agreeing(
    source: _Source, guess: Guess, inputs: Sequence[Any], outputs: Sequence[Any]
) -> list[Any]:
    """Returns outputs that a call has only if it gives what was guessed."""
    model = source.model
    shapes = stated_outputs(model)
    ports = [port for port in model.inputs if port.name not in source.constants]
    for name, output in zip(model.outputs, outputs, strict=True):
        if tuple(output.shape) != shapes[name]:
            what = f"its shape is {list(output.shape)}, not {list(shapes[name])}"
            raise UnsupportedError(Problem(f"output {name}", what))
    # There is one element: what takes the second one fails.
    place = tf.where(holds(guess, ports, inputs), 0, 1)
    return [tf.gather(output[None], place) for output in outputs]


def _dim(text: Text) -> Dim:
    if text is None:
        return Batch()
    return parsed(text) if isinstance(text, str) else text


def _places(dims: Sequence[Shape], inputs: Sequence[Any]) -> dict[str, tuple[Any, int]]:
    """Returns where the inputs have the open dimensions, by name; the batch has none."""
    found: dict[str, tuple[Any, int]] = {}
    for shape, tensor in zip(dims, inputs, strict=True):
        for axis, dim in enumerate(shape):
            if dim == Batch():
                found.setdefault("", (tensor, axis))
            elif isinstance(dim, Size) and dim.whole[0]:
                found.setdefault(dim.whole[0], (tensor, axis))
    return found


def _named(model: Graph) -> list[Named]:
    named = []
    for port in model.inputs:
        if port.shape is None:
            raise UnsupportedError(Problem(f"input {port.name}", "its rank is not known"))
        named.append(Named(port.name, port.shape))
    return named


def _output(nodes: Nodes, result: Any) -> Any:
    """Returns an output in ONNX's order."""
    if isinstance(result, Texts):
        try:
            return standardized(result)
        except Refused as err:
            raise UnsupportedError(Problem("output", str(err))) from err
    if isinstance(result, Tensor) and result.levels:
        whole = result.whole
        if whole is not None and whole.dtype == result.levels != "int8":
            return whole.form()
        return tf.cast(result.form(), result.levels)
    if isinstance(result, Tensor):
        return result.form()
    if isinstance(result, Symbol):
        return nodes.symbol(result)
    if isinstance(result, Numbered):
        shape = nodes.symbol(of_shape(result.shape))
        return tf.broadcast_to(tf.constant(result.offset), shape)
    assert isinstance(result, Known)
    return tf.constant(result.data)
