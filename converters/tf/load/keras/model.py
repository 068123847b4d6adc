"""Traces a Keras 3 model."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from converters.tf.ir import Array, Layer
from converters.tf.load.dense import check_dense
from converters.tf.load.port_names import input_names
from converters.tf.load.saved_model.captures import captured, held
from converters.tf.load.shapes import FixedShapes
from converters.tf.load.tracer import node_count, trace_function, uses_half
from converters.tf.lower.trace import Loaded, Trace, TraceInput
from tools.codegen.conversion import Problem, UnsupportedError

_SCOPE = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")
_NO_SCOPE = re.compile(r"[^A-Za-z0-9_.\\/>-]")


class _Recorder:
    """Notes which layer makes which node while a model is traced."""

    def __init__(self, graph: Any, root: Any) -> None:
        self.graph = graph
        self.root = root
        self.paths: dict[int, str] = {}
        self.layers: dict[str, str] = {}
        self.variables: dict[int, str] = {}
        self.weights: dict[str, list[str]] = {}
        self._stack: list[str] = []

    def call(self, original: Any, layer: Any, args: Any, kwargs: Any) -> Any:
        """Runs a layer and notes the nodes that it made, unless an inner layer did."""
        if layer is self.root:
            return original(layer, *args, **kwargs)
        self._stack.append(str(layer.name))
        path = "/".join(self._stack)
        self.layers.setdefault(path, type(layer).__name__)
        first = node_count(self.graph)
        try:
            return original(layer, *args, **kwargs)
        finally:
            for index in range(first, node_count(self.graph)):
                self.paths.setdefault(index, path)
            own = [*layer._trainable_variables, *layer._non_trainable_variables]
            for variable in own:
                self.variables.setdefault(id(variable._value), f"{path}/{variable.name}")
            names = [self.variables[id(v._value)] for v in own if v.name != "seed_generator_state"]
            if names:
                self.weights.setdefault(path, names)
            self._stack.pop()


@contextlib.contextmanager
def _recording(root: Any) -> Iterator[list[_Recorder]]:
    original = keras.layers.Layer.__call__
    recorders: list[_Recorder] = []

    def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
        if not recorders:
            recorders.append(_Recorder(tf.compat.v1.get_default_graph(), root))
        return recorders[0].call(original, layer, args, kwargs)

    scope = tf.name_scope
    keras.layers.Layer.__call__ = call
    # Layers may have any names; where a node comes from is known from the calls.
    tf.name_scope = lambda name: scope(_scope_name(name))
    try:
        yield recorders
    finally:
        keras.layers.Layer.__call__ = original
        tf.name_scope = scope


def _scope_name(name: Any) -> Any:
    """Returns a name that TensorFlow takes for a scope, also for the outermost one."""
    if not isinstance(name, str) or _SCOPE.fullmatch(name):
        return name
    return "n" + _NO_SCOPE.sub("_", name)


def named_inputs(model: Any) -> tuple[Any, list[tuple[str, Any]]]:
    """Returns the structure of a model's inputs, and each with its name, in order.

    Raises:
        UnsupportedError: They are not known.
    """
    structure = getattr(model, "_inputs_struct", None)
    if structure is None:
        inputs = getattr(model, "inputs", None)
        structure = inputs[0] if inputs is not None and len(inputs) == 1 else inputs
    if structure is None or not keras.tree.flatten(structure):
        raise UnsupportedError(
            Problem(
                f"model {model.name}",
                "its inputs are not known: it was never called or built",
                "call it once and save it again, or export it as a SavedModel",
            )
        )
    named = [
        (str(path[-1]) if path and isinstance(path[-1], str) else str(tensor.name), tensor)
        for path, tensor in keras.tree.flatten_with_path(structure)
    ]
    names = input_names([name for name, _ in named])
    return structure, [(name, tensor) for name, (_, tensor) in zip(names, named, strict=True)]


def _specs(
    model: Any, fixed: FixedShapes
) -> tuple[Any, list[Any], list[tuple[str, tuple[int | str | None, ...]]]]:
    """Returns the structure of the inputs, a spec for each, and their names and shapes."""
    structure, named = named_inputs(model)
    names = [name for name, _ in named]
    shapes = fixed.named([(name, tuple(tensor.shape)) for name, tensor in named])
    specs = [
        tf.TensorSpec(_known(shape), tensor.dtype, name=f"input_{i}")
        for i, (shape, (_, tensor)) in enumerate(zip(shapes, named, strict=True))
    ]
    return structure, specs, list(zip(names, shapes, strict=True))


def _known(shape: tuple[int | str | None, ...]) -> list[int | None]:
    """Returns a shape for TensorFlow, which has no names for what is open."""
    return [None if isinstance(d, str) else d for d in shape]


def _output_names(model: Any, outputs: Any) -> list[str]:
    known = list(getattr(model, "output_names", None) or ())
    flat = keras.tree.flatten_with_path(outputs)
    names = []
    for index, (path, _) in enumerate(flat):
        if path and isinstance(path[-1], str):
            names.append(path[-1])
        elif len(known) == len(flat):
            names.append(str(known[index]))
        else:
            names.append(f"output_{index}")
    return names


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    taken: set[str] = set()
    result = []
    for name in names:
        unique, count = name, 1
        while unique in taken:
            unique, count = f"{name}_{count}", count + 1
        taken.add(unique)
        result.append(unique)
    return tuple(result)


def trace_keras(model: Any, fixed: FixedShapes) -> Loaded:
    """Traces a built model in inference mode.

    Raises:
        UnsupportedError: Its inputs are not known, or a dimension other than the batch is not, or
            an output is not a tensor.
    """
    structure, specs, ports = _specs(model, fixed)
    output_names: list[str] = []

    def run(*flat: Any) -> Any:
        inputs = keras.tree.pack_sequence_as(structure, list(flat))
        outputs = model(inputs, training=False)
        names = _output_names(model, outputs)
        check_dense(zip(names, keras.tree.flatten(outputs), strict=True))
        output_names.extend(names)
        return [tf.convert_to_tensor(t) for t in keras.tree.flatten(outputs)]

    with _recording(model) as recorders:
        concrete = tf.function(run, autograph=False, jit_compile=False).get_concrete_function(
            *specs
        )
    recorder = recorders[0]
    graph = concrete.graph
    layer_of = {op.name: recorder.paths.get(i, "") for i, op in enumerate(graph.get_operations())}
    main, functions = trace_function(
        str(model.name), graph, graph.inputs[: len(specs)], graph.outputs, layer_of
    )
    inputs = tuple(
        TraceInput(name, node, str(spec.dtype.name), shape)
        for name, (_, shape), node, spec in zip(
            _unique([name for name, _ in ports]), ports, main.arguments, specs, strict=True
        )
    )
    outputs = _unique(output_names)
    trace = Trace(
        name=str(model.name),
        main=main,
        functions=functions,
        inputs=inputs,
        outputs=outputs,
        variables=captured(graph, _variable_names(model, recorder)),
        layers=tuple(Layer(path, kind) for path, kind in recorder.layers.items()),
        architecture=_architecture(model),
        half=uses_half([main, *functions.values()]),
        weights={path: tuple(names) for path, names in recorder.weights.items()},
    )

    def predict(arrays: Mapping[str, Array]) -> dict[str, Array]:
        flat = [
            tf.constant(arrays[p.name], spec.dtype) for p, spec in zip(inputs, specs, strict=True)
        ]
        return {n: np.asarray(t) for n, t in zip(outputs, concrete(*flat), strict=True)}

    return Loaded(trace, predict, held=held(graph))


def _variable_names(model: Any, recorder: _Recorder) -> dict[int, str]:
    names = {
        id(v._value.handle): str(v.path) for v in model.variables if hasattr(v._value, "handle")
    }
    for variable in model.variables:
        path = recorder.variables.get(id(variable._value))
        if path is not None and hasattr(variable._value, "handle"):
            names[id(variable._value.handle)] = path
    return names


def _architecture(model: Any) -> dict[str, Any]:
    try:
        config = model.get_config()
    except (NotImplementedError, TypeError, ValueError):
        return {}
    return {"class_name": type(model).__name__, "config": config}
