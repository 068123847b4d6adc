"""Traces of SavedModels and frozen graphs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.errors import FileError, shortened
from converters.tf.ir import Array
from converters.tf.load.dense import check_dense
from converters.tf.load.effects import check_graph, check_saved_model
from converters.tf.load.outputs import FLAG
from converters.tf.load.port_names import in_order, input_names
from converters.tf.load.saved_model.captures import captured, held
from converters.tf.load.saved_model.pruned import pruned
from converters.tf.load.saved_model.replay import evaluated
from converters.tf.load.saved_model.slots import without_slots
from converters.tf.load.shapes import FixedShapes
from converters.tf.load.tracer import trace_function, uses_half
from converters.tf.lower.trace import Loaded, Trace, TraceInput
from tools.codegen.conversion import ConversionError, Problem, UnsupportedError, UsageError

_DEFAULT = "serving_default"
# What TensorFlow says of an op that it does not know.
_UNKNOWN_OP = re.compile(r"Op type not registered '([^']+)'")
# Ops that give nothing a caller could want.
_NO_OUTPUTS = ("NoOp", "Assert", "Const", "Placeholder", "PrintV2")
# Ops whose results after the first one are for training.
_FIRST_ONLY = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")


def trace_saved_model(
    path: Path, signature: str, fixed: FixedShapes, trusted: bool = False
) -> Loaded:
    """Traces a signature of a SavedModel.

    Args:
        path: Folder.
        signature: Its name; empty for the default or only one.
        fixed: Dimensions that the signature leaves open.
        trusted: Whether ops of any kind may run.

    Raises:
        FileError: The folder is damaged, has no such signature, or has ops with effects.
        UnsupportedError: An input is not a tensor of known rank, or an output is not a tensor.
    """
    if not trusted:
        check_saved_model(path)
    folder = path
    try:
        with without_slots(path) as folder:
            loaded = tf.saved_model.load(str(folder))
    except Exception as err:  # TensorFlow raises whatever the damaged part made it raise.
        raise FileError(_explained(path, "can't be loaded", err, folder)) from err
    concrete = _signature(path, loaded, signature)
    graph = concrete.graph
    names = list(concrete.structured_input_signature[1])
    placeholders = {t.op.name: t for t in graph.inputs}
    ordered = in_order(_ordered(names, concrete, placeholders))
    keys = [name for name, _ in ordered]
    arguments = [tensor for _, tensor in ordered]
    inputs = _inputs(list(zip(input_names(keys), arguments, strict=True)), fixed)
    outputs = sorted(concrete.structured_outputs)
    check_dense((name, concrete.structured_outputs[name]) for name in outputs)
    results = list(concrete.outputs)
    if len(outputs) != len(results):
        what = (
            f"the signature names {len(outputs)} outputs, but its function returns {len(results)}:"
            " the file is damaged"
        )
        raise FileError(Problem(str(path), what))
    variables = captured(graph, _variable_names(loaded))
    arguments += [t for t in graph.inputs if t.op.name in variables]
    layer = scope_layers(v.name for v in variables.values())
    main, functions = trace_function(path.name, graph, arguments, results, layer)
    trace = Trace(
        name=path.name,
        main=main,
        functions=functions,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        variables=variables,
        half=uses_half([main, *functions.values()]),
    )

    def predict(arrays: Mapping[str, Array]) -> dict[str, Array]:
        given = {
            key: tf.constant(arrays[p.name], p.dtype) for key, p in zip(keys, inputs, strict=True)
        }
        results = concrete(**given)
        return {name: np.asarray(results[name]) for name in outputs}

    return Loaded(trace, predict, held=held(graph))


def _explained(path: Path, what: str, err: Exception, loaded: Path | None = None) -> Problem:
    """Returns what TensorFlow says of a file, or of a copy of it."""
    unknown = _UNKNOWN_OP.search(str(err))
    reason = (
        f"it needs the op {unknown[1]!r}, which is not part of TensorFlow"
        if unknown is not None
        else shortened(err).replace(str(loaded or path), str(path))
    )
    return Problem(str(path), f"{what}: {reason}")


def _signature(path: Path, loaded: Any, wanted: str) -> Any:
    available = {name: function for name, function in loaded.signatures.items() if name[:2] != "__"}
    names = ", ".join(available) or "none"
    if wanted:
        if wanted not in available:
            what = f"no signature {wanted!r}; available: {names}"
            raise FileError(Problem(str(path), what))
        return available[wanted]
    if _DEFAULT in available:
        return available[_DEFAULT]
    if len(available) == 1:
        return next(iter(available.values()))
    raise FileError(
        Problem(str(path), f"no default signature; available: {names}", "give --signature")
    )


def _ordered(
    names: list[str], concrete: Any, placeholders: dict[str, Any]
) -> list[tuple[str, Any]]:
    """Returns the inputs in the order of the signature's arguments."""
    specs = concrete.structured_input_signature[1]
    # A file of TensorFlow 1 may call its inputs otherwise than their placeholders.
    keywords = getattr(concrete, "_arg_keywords", None) or ()
    flat = dict(zip(keywords, concrete.graph.inputs, strict=False))
    result = []
    for name in names:
        wanted = specs[name].name
        tensor = flat.get(name, placeholders.get(wanted, placeholders.get(name)))
        if tensor is None:
            raise UnsupportedError(Problem(f"input {name}", "it is not a tensor"))
        result.append((name, tensor))
    order = {t.op.name: i for i, t in enumerate(concrete.graph.inputs)}
    return sorted(result, key=lambda item: order[item[1].op.name])


def _inputs(named: Sequence[tuple[str, Any]], fixed: FixedShapes) -> list[TraceInput]:
    unknown = [name for name, tensor in named if tensor.shape.rank is None]
    if unknown:
        raise UnsupportedError.of(
            Problem(f"input {name}", "its rank is not known") for name in unknown
        )
    shapes = fixed.named([(name, tuple(tensor.shape.as_list())) for name, tensor in named])
    return [
        TraceInput(name, str(tensor.op.name), str(tensor.dtype.name), shape)
        for (name, tensor), shape in zip(named, shapes, strict=True)
    ]


def _variable_names(loaded: Any) -> dict[int, str]:
    """Returns names by handle: where a variable hangs, which is unique, if it has no path."""
    names: dict[int, str] = {}
    variables = getattr(loaded, "variables", None) or ()
    for variable in variables:
        if hasattr(variable, "handle"):
            names[id(variable.handle)] = str(variable.name).split(":")[0]
    plain = list(names.values())
    if len(set(plain)) == len(plain):
        return names
    seen: dict[str, int] = {}
    for handle, name in names.items():
        count = seen.get(name, 0)
        seen[name] = count + 1
        names[handle] = f"{name}_{count}" if count else name
    return names


def scope_layers(variables: Iterable[str]) -> Callable[[str], str]:
    """Returns a function that guesses the layer of a node from the scopes in its name.

    Args:
        variables: Names of variables, whose scopes are layers.
    """
    known = {tuple(name.split("/")[:-1]) for name in variables if "/" in name}
    known.discard(())

    def layer(node: str) -> str:
        scopes = node.split("/")[:-1]
        best: tuple[str, ...] = ()
        for first in range(len(scopes)):
            for last in range(len(scopes), first, -1):
                part = tuple(scopes[first:last])
                if part in known and len(part) > len(best):
                    best = part
        if best:
            return "/".join(best)
        own = [s for s in scopes if s[:1].islower() and "Partitioned" not in s]
        return "/".join(own[1:2] or own[:1])

    return layer


def trace_graph_def(
    path: Path, fixed: FixedShapes, trusted: bool = False, outputs: Sequence[str] = ()
) -> Loaded:
    """Traces a frozen graph: its placeholders are inputs, what nobody reads are outputs.

    Args:
        path: File.
        fixed: Dimensions that the graph leaves open.
        trusted: Whether ops of any kind may run.
        outputs: Nodes or tensors that are the outputs instead; nothing else is looked at.

    Raises:
        FileError: It is not a graph, or has ops with effects.
        UsageError: It has no such node.
        UnsupportedError: It has no input or no output.
    """
    definition = tf.compat.v1.GraphDef()
    graph = tf.Graph()
    try:
        definition.ParseFromString(path.read_bytes())
        if outputs:
            definition = pruned(definition, outputs)
        if not trusted:
            check_graph(path, definition)
        with graph.as_default():
            tf.import_graph_def(definition, name="")
    except ConversionError:
        raise
    except Exception as err:  # As above.
        raise FileError(_explained(path, "no graph", err)) from err
    operations = graph.get_operations()
    placeholders = [op.outputs[0] for op in operations if op.type == "Placeholder"]
    results = _last(operations) if not outputs else _named(path, graph, outputs)
    if not placeholders or not results:
        what = f"{len(placeholders)} placeholders and {len(results)} results"
        raise UnsupportedError(Problem(str(path), what, "a model needs one of each"))
    inputs = _inputs([(str(t.op.name), t) for t in placeholders], fixed)
    layer = scope_layers(())
    main, functions = trace_function(path.stem, graph, placeholders, results, layer)
    # The second result of `best` is `best:1` to TensorFlow, too.
    names = tuple(str(t.name).removesuffix(":0") for t in results)
    trace = Trace(
        name=path.stem,
        main=main,
        functions=functions,
        inputs=tuple(inputs),
        outputs=names,
        variables={},
        half=uses_half([main, *functions.values()]),
    )

    def predict(arrays: Mapping[str, Array]) -> dict[str, Array]:
        given = {t: arrays[t.op.name] for t in placeholders}
        return dict(zip(names, evaluated(graph, results, given), strict=True))

    return Loaded(trace, predict)


def _last(operations: Sequence[Any]) -> list[Any]:
    """Returns the tensors that nobody reads."""
    read = {t.op.name for op in operations for t in op.inputs}
    return [
        tensor
        for op in operations
        if op.name not in read and op.type not in _NO_OUTPUTS
        for tensor in op.outputs[: 1 if op.type in _FIRST_ONLY else None]
    ]


def _named(path: Path, graph: Any, names: Sequence[str]) -> list[Any]:
    """Returns tensors by their names, or by those of their nodes, each once.

    Raises:
        UsageError: A node has no such result.
    """
    found: dict[str, Any] = {}
    for name in names:
        node, _, place = name.partition(":")
        results = graph.get_operation_by_name(node).outputs
        if not (place or "0").isdecimal() or int(place or 0) >= len(results):
            what = f"the node has {len(results)} results, from {node}:0 on"
            raise UsageError(Problem(f"{FLAG} {name}", f"{path}: {what}"))
        tensor = results[int(place or 0)]
        found[tensor.name] = tensor
    return list(found.values())
