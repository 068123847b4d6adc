"""Nodes of a graph, made without what TensorFlow's functions do first.

Those look for functions that are defined anew, and convert and check what they are given. They also
read the op's definition in Python, and keep the stack of calls. For thousands of nodes that is most
of the time to make them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, node_def_pb2
from tensorflow.core.framework.tensor_shape_pb2 import TensorShapeProto

from converters.tf.ir import Array

# Without the frame that shortens the traces of errors.
_create = inspect.unwrap(tf.__internal__.create_c_op)


def op(name: str) -> Callable[..., Any]:
    """Returns an op of TensorFlow as a function of its operands, in order.

    Args:
        name: An op of one result, whose attributes follow from its operands or have defaults.
    """
    made = getattr(tf.raw_ops, name)
    # Operands come first, then attributes.
    operands = list(inspect.signature(made).parameters)

    def call(*given: Any) -> Any:
        if tf.executing_eagerly() or not all(map(tf.is_tensor, given)):
            return made(**dict(zip(operands, given, strict=False)))
        return _result(tf.compat.v1.get_default_graph(), name, given)

    return call


def placeholder(graph: tf.Graph, name: str, data: Array) -> Any:
    """Returns a placeholder for an array.

    Args:
        graph: The graph that gets the node; not that of a function.
        name: The whole name of the node, which no other node has.
        data: The array: its shape and element type are those of the placeholder.
    """
    dims = [TensorShapeProto.Dim(size=size) for size in data.shape]
    shape = attr_value_pb2.AttrValue(shape=TensorShapeProto(dim=dims))
    kind = attr_value_pb2.AttrValue(type=tf.as_dtype(data.dtype).as_datatype_enum)
    return _result(graph, "Placeholder", (), name, {"dtype": kind, "shape": shape})


def _result(
    graph: tf.Graph,
    kind: str,
    given: Sequence[Any],
    name: str = "",
    attrs: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """Returns the only result of a new node.

    Args:
        graph: The graph that gets the node.
        kind: Its op.
        given: Its operands; those of a function may be of the graph around it.
        name: Its whole name; by default, one that is free in the scope at hand.
        attrs: Attributes that do not follow from the operands.
    """
    if type(graph) is not tf.Graph:  # That of a function makes its own what is of one around it.
        return graph.create_op(kind, list(given), attrs=dict(attrs)).outputs[0]
    node = node_def_pb2.NodeDef(op=kind, name=name or graph.unique_name(kind), attr=attrs)
    made = _create(graph, node, given, [], extract_traceback=False)
    return graph._create_op_from_tf_operation(made, compute_device=False).outputs[0]
