"""Nodes of a graph, made without what TensorFlow's functions do first.

Those look for functions that are defined anew, convert what they are given, and read the op's
definition in Python. For thousands of nodes that is two thirds of the time to make them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2

from converters.tf.ir import Array

# Without the check of deprecated arguments, which reads the function's signature for each node.
_create = getattr(tf.Graph.create_op, "__wrapped__", tf.Graph.create_op)


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
        graph = tf.compat.v1.get_default_graph()
        (result,) = _create(graph, name, list(given)).outputs
        return result

    return call


def placeholder(graph: tf.Graph, name: str, data: Array) -> Any:
    """Returns a placeholder for an array.

    Args:
        graph: The graph that gets the node.
        name: The whole name of the node, which no other node has.
        data: The array: its shape and element type are those of the placeholder.
    """
    shape = attr_value_pb2.AttrValue(shape=tf.TensorShape(data.shape).as_proto())
    kind = attr_value_pb2.AttrValue(type=tf.as_dtype(data.dtype).as_datatype_enum)
    # A name that ends with a slash is taken as it is.
    attrs = {"dtype": kind, "shape": shape}
    made = _create(graph, "Placeholder", [], name=f"{name}/", attrs=attrs)
    return made.outputs[0]
