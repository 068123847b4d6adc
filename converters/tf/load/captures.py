"""What a function graph captured from outside: variables and constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from converters.tf.load.tracer import plain_array
from converters.tf.trace import Variable


def captured(graph: Any, names: Mapping[int, str]) -> dict[str, Variable]:
    """Returns the captured tensors of a graph by placeholder.

    Args:
        graph: A function graph.
        names: Names of variables by the identity of their handles.
    """
    known = {id(v.handle): v for v in graph.variables if hasattr(v, "handle")}
    result = {}
    for outer, inner in graph.captures:
        node = str(inner.op.name)
        variable = known.get(id(outer))
        if variable is not None:
            name = names.get(id(outer), str(variable.name).split(":")[0])
            result[node] = Variable(name, plain_array(variable.numpy()))
        elif outer.dtype == tf.resource:
            result[node] = Variable(node, None)
        elif hasattr(outer, "numpy"):
            result[node] = Variable(node, plain_array(outer.numpy()))
    return result
