"""From a TensorFlow function graph to plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import function_def_to_graph

from converters.tf.load.custom_ops import own_op
from converters.tf.lower.trace import (
    OWN,
    OWN_OP,
    Attr,
    FunctionName,
    TensorRef,
    TraceFunction,
    TraceNode,
)

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")


def node_count(graph: Any) -> int:
    """Returns how many nodes a `tf.Graph` has, in constant time: the list of them is a copy."""
    return int(graph.version)


def trace_function(
    name: str,
    graph: Any,
    arguments: Iterable[Any],
    results: Iterable[Any],
    layer_of: Mapping[str, str] | Callable[[str], str],
) -> tuple[TraceFunction, dict[str, TraceFunction]]:
    """Returns a function and all that it calls.

    Args:
        name: Name of the function.
        graph: A `tf.Graph`.
        arguments: Its placeholders (tensors).
        results: Its results (tensors).
        layer_of: Path of the layer of a node, by its name.
    """
    layer = layer_of if callable(layer_of) else lambda node: layer_of.get(node, "")
    library: dict[str, TraceFunction] = {}
    definitions = {f.signature.name: f for f in graph.as_graph_def().library.function}
    main = _function(name, graph, arguments, results, layer)
    _collect(main, definitions, library, layer, graph)
    return main, library


def _collect(
    function: TraceFunction,
    definitions: Mapping[str, Any],
    library: dict[str, TraceFunction],
    layer: Callable[[str], str],
    graph: Any,
) -> None:
    for node in function.nodes.values():
        for attr in node.attrs.values():
            names = [attr] if isinstance(attr, FunctionName) else []
            if isinstance(attr, tuple):
                names = [a for a in attr if isinstance(a, FunctionName)]
            for called in names:
                if called.name in library or called.name not in definitions:
                    continue
                body = _body(definitions[called.name], definitions, graph)
                inlined = node.op in _CALLS
                owner = layer if inlined else lambda _, path=node.layer: path
                converted = _function(called.name, body, body.inputs, body.outputs, owner)
                library[called.name] = converted
                _collect(converted, definitions, library, owner, graph)


def _body(definition: Any, definitions: Mapping[str, Any], graph: Any) -> Any:
    """Returns a function as a graph; `graph` knows the functions that it calls."""
    named = any(node.op in definitions for node in definition.node_def)
    with graph.as_default():
        return function_def_to_graph.function_def_to_graph(
            definition, include_library_functions=named
        )


def _function(
    name: str,
    graph: Any,
    arguments: Iterable[Any],
    results: Iterable[Any],
    layer: Callable[[str], str],
) -> TraceFunction:
    nodes = {}
    for op in graph.get_operations():
        nodes[op.name] = trace_node(op, layer(op.name))
    return TraceFunction(
        name,
        tuple(a.op.name for a in arguments),
        nodes,
        tuple(_ref(r) for r in results),
    )


def trace_node(op: Any, layer: str) -> TraceNode:
    """Returns a node of a `tf.Graph`, which belongs to a layer."""
    inputs = tuple(_ref(t) for t in op.inputs)
    attrs = {key: _attr(value) for key, value in op.node_def.attr.items() if key[0] != "_"}
    shape = op.outputs[0].shape if op.outputs else tf.TensorShape(None)
    dims = None if shape.rank is None else tuple(shape.as_list())
    after = tuple(before.name for before in op.control_inputs)
    kind = str(op.type)
    own = own_op(str(attrs.get("token"))) if kind == "PyFunc" else None
    if own is not None:
        kind, attrs[OWN] = OWN_OP, own
    return TraceNode(op.name, kind, inputs, attrs, layer, dims, after)


def uses_half(functions: Iterable[TraceFunction]) -> bool:
    """Returns whether a node computes in half precision."""
    kinds = ("float16", "bfloat16", "half")
    return any(n.attrs.get("T") in kinds for f in functions for n in f.nodes.values())


def _ref(tensor: Any) -> TensorRef:
    return TensorRef(tensor.op.name, tensor.value_index)


def _attr(value: Any) -> Attr:
    kind = value.WhichOneof("value")
    if kind == "list":
        parts: list[Attr] = []
        for field in ("i", "f", "b"):
            parts.extend(getattr(value.list, field))
        parts.extend(_text(s) for s in value.list.s)
        parts.extend(dtype_name(t) for t in value.list.type)
        parts.extend(_shape(s) for s in value.list.shape)
        parts.extend(FunctionName(f.name) for f in value.list.func)
        return tuple(parts)
    if kind in ("i", "f", "b"):
        return getattr(value, kind)
    if kind == "s":
        return _text(value.s)
    if kind == "type":
        return dtype_name(value.type)
    if kind == "shape":
        return _shape(value.shape)
    if kind == "tensor":
        return _array(value.tensor)
    if kind == "func":
        return FunctionName(value.func.name)
    return None


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def dtype_name(value: Any) -> str:
    """Returns the NumPy name of an element type, or TensorFlow's where NumPy has none."""
    return str(tf.dtypes.as_dtype(value).name)


def _shape(proto: Any) -> tuple[int | None, ...] | None:
    if proto.unknown_rank:
        return None
    return tuple(d.size if d.size >= 0 else None for d in proto.dim)


def _array(proto: Any) -> Attr:
    try:
        data = tf.make_ndarray(proto)
    except (TypeError, ValueError):
        return None
    return plain_array(data)


def plain_array(data: Any) -> Any:
    """Returns an array; half precision becomes float32."""
    array = np.asarray(data)
    if array.dtype.name in ("float16", "bfloat16"):
        return array.astype(np.float32)
    return array
