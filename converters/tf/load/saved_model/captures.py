"""What a function graph captured from outside: variables and constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from converters.tf.ir import Array
from converters.tf.load.tracer import plain_array
from converters.tf.lower.trace import Variable

_FIND = "LookupTableFindV2"


def captured(graph: Any, names: Mapping[int, str]) -> dict[str, Variable]:
    """Returns the captured tensors of a graph by placeholder.

    Args:
        graph: A function graph.
        names: Names of variables by the identity of their handles.
    """
    known = _by_handle(graph)
    tables = _table_types(graph)
    result = {}
    for outer, inner in graph.captures:
        node = str(inner.op.name)
        variable = known.get(id(outer))
        if variable is not None:
            name = names.get(id(outer), str(variable.name).split(":")[0])
            result[node] = Variable(name, plain_array(variable.numpy()))
        elif outer.dtype == tf.resource:
            result[node] = Variable(node, None, _entries(outer, tables))
        elif hasattr(outer, "numpy"):
            result[node] = Variable(node, plain_array(outer.numpy()))
    return result


def held(graph: Any) -> dict[str, Any]:
    """Returns TensorFlow's variables that a graph captured, by placeholder."""
    known = _by_handle(graph)
    return {
        str(inner.op.name): known[id(outer)]
        for outer, inner in graph.captures
        if id(outer) in known
    }


def _by_handle(graph: Any) -> dict[int, Any]:
    return {id(v.handle): v for v in graph.variables if hasattr(v, "handle")}


def _table_types(graph: Any) -> list[tuple[Any, Any]]:
    """Returns the types of keys and values of the tables that a graph reads."""
    definition = graph.as_graph_def()
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    found = {(n.attr["Tin"].type, n.attr["Tout"].type) for n in nodes if n.op == _FIND}
    return sorted(found)


def _entries(handle: Any, types: Sequence[tuple[Any, Any]]) -> tuple[Array, Array] | None:
    """Returns the keys and values of a table, or nothing if the resource is none."""
    for keys, values in types:
        try:
            found = tf.raw_ops.LookupTableExportV2(table_handle=handle, Tkeys=keys, Tvalues=values)
        except (tf.errors.OpError, ValueError):
            continue
        return plain_array(found.keys.numpy()), plain_array(found.values.numpy())
    return None
