"""Replays the nodes of an ONNX graph as TensorFlow's, and collects what can't be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context as eager

from converters.tf.build import ShapeError
from converters.tf.errors import shortened
from converters.tf.ir import Array, Batch
from converters.tf.load.onnx_model.context import Context
from converters.tf.load.onnx_model.file import Graph, Node
from converters.tf.load.onnx_model.naming import Names
from converters.tf.load.onnx_model.registry import HANDLERS, REFUSED
from converters.tf.load.onnx_model.shape_data import DIMENSIONS, MOVING
from converters.tf.load.onnx_model.values import Known, Tensor, Unsupported, Value
from converters.tf.symbolic import NotSymbolicError, Symbol
from converters.tf.trace import Variable
from tools.codegen.conversion import Problem

# What TensorFlow's functions raise for operands that don't fit.
_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    tf.errors.OpError,
)
# They replay graphs, whose nodes see more than their operands.
_NOT_CONSTANT = frozenset(["If", "Loop"])


class _Poison:
    """The result of a node that is reported already, or comes after one."""


_POISON = _Poison()
Env = dict[str, "Value | _Poison"]


@dataclass
class Replay:
    """The state of a replay into one graph of TensorFlow.

    Attributes:
        graph: TensorFlow's graph.
        problems: What is not supported so far.
        weights: Placeholders of constants, by the name of their node.
        variables: The same constants, with their names.
        scopes: The layer of each scope of TensorFlow's nodes.
        layers: Layers in order.
        layer_weights: Names of weights by layer.
    """

    graph: Any
    problems: list[Problem] = field(default_factory=list)
    weights: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    scopes: dict[str, str] = field(default_factory=dict)
    layers: dict[str, str] = field(default_factory=dict)
    layer_weights: dict[str, list[str]] = field(default_factory=dict)
    batch: Any = None
    _names: Names = field(default_factory=Names)
    _envs: list[Env] = field(default_factory=list)
    _layer: str = ""
    _taken: set[str] = field(default_factory=set)

    def run(self, graph: Graph, args: Sequence[Value]) -> list[Value | None]:
        """Replays a graph; what is `None` was not possible, and is among the problems."""
        env: Env = {name: Known(data, name) for name, data in graph.constants.items()}
        env |= {port.name: value for port, value in zip(graph.inputs, args, strict=True)}
        self._envs.append(env)
        try:
            for node in graph.nodes:
                results = self._node(node)
                for name, result in zip(node.outputs, results, strict=False):
                    env[name] = result
            found = [self._find(name) for name in graph.outputs]
        finally:
            self._envs.pop()
        return [None if isinstance(value, _Poison) else value for value in found]

    def body(self, graph: Graph, args: Sequence[Value]) -> list[Value]:
        """Replays a graph inside of a node; it sees what the node's graph has.

        Raises:
            Unsupported: Something in it is not supported, and reported.
        """
        results = self.run(graph, args)
        if any(r is None for r in results):
            raise Unsupported("its body needs what is not supported")
        return [r for r in results if r is not None]

    def _find(self, name: str) -> Value | _Poison:
        for env in reversed(self._envs):
            if name in env:
                return env[name]
        return _POISON

    def _node(self, node: Node) -> Sequence[Value | _Poison]:
        failed = [_POISON] * len(node.outputs)
        found = [self._find(name) if name else None for name in node.inputs]
        if node.op not in HANDLERS:
            what = REFUSED.get(node.op, "there is no counterpart in TensorFlow's ops")
            self.problems.append(Problem(node.title, what))
            return failed
        if any(isinstance(value, _Poison) for value in found):
            return failed
        args = tuple(v for v in found if not isinstance(v, _Poison))
        before = self._layer
        self._layer = layer = self._names.layer(node, args)
        scope = self._scope(node, layer)
        try:
            with tf.name_scope(scope):
                results = self._results(Context(self, node, args))
            if any(isinstance(r, Tensor) for r in results):
                self.layers.setdefault(layer, node.op)
            if len(results) < len(node.outputs) and any(node.outputs[len(results) :]):
                raise Unsupported(f"{len(node.outputs)} results; {len(results)} are supported")
            return results
        except (Unsupported, ShapeError) as err:
            self.problems.append(Problem(node.title, str(err)))
        except NotSymbolicError as err:
            what = f"its result depends on the batch size as {err}"
            self.problems.append(Problem(node.title, what))
        except _ERRORS as err:
            what = f"its operands don't fit: {shortened(err)}"
            self.problems.append(Problem(node.title, what))
        finally:
            self._layer = before
        return failed

    def _results(self, ctx: Context) -> list[Value]:
        given = [v for v in ctx.args if v is not None]
        op = ctx.node.op
        if any(isinstance(v, Tensor) and v.levels for v in given) and op != "DequantizeLinear":
            raise Unsupported("quantized numbers; only DequantizeLinear may read them")
        open_dims = any(isinstance(v, Symbol) for v in given)
        known = all(isinstance(v, Symbol | Known) for v in given)
        about = isinstance(ctx.args[0], Symbol) if op in MOVING else open_dims
        if op in _SHAPES or (op in DIMENSIONS and about and known):
            result = DIMENSIONS[op](ctx)
            if result is not None:
                return [_plain(result)]
        if known and not open_dims and op not in _NOT_CONSTANT:
            with eager.eager_mode(), tf.device("/CPU:0"):
                results = _listed(HANDLERS[op](ctx))
            names = {v.name for v in given if isinstance(v, Known) and v.rank}
            name = names.pop() if len(names) == 1 else ""
            return [_constant(ctx, r, name) for r in results]
        return [_value(ctx, r) for r in _listed(HANDLERS[op](ctx))]

    def _scope(self, node: Node, layer: str) -> str:
        base = re.sub(r"[^A-Za-z0-9_.]", "_", layer or node.op).lstrip("_.") or "node"
        scope, count = base, 1
        while scope in self.scopes:
            scope, count = f"{base}_{count}", count + 1
        self.scopes[scope] = layer
        return f"{scope}/"

    def tensor(self, known: Known) -> Any:
        """Returns a constant as a tensor of TensorFlow; large ones as placeholders with a name."""
        if tf.executing_eagerly():
            return tf.constant(known.data)
        if known.data.size < 2 or (known.data.dtype.kind in "biu" and not known.name):
            return tf.constant(known.data)
        if known.tensor is None:
            name = self._weight_name(known)
            with self.graph.as_default(), tf.name_scope("weights/"):
                known.tensor = tf.compat.v1.placeholder(known.data.dtype, known.data.shape, "w")
            node = known.tensor.op.name
            self.weights[node] = known.tensor
            self.variables[node] = Variable(name, known.data)
            self.layer_weights.setdefault(self._layer, []).append(name)
        return known.tensor

    def _weight_name(self, known: Known) -> str:
        name = self._names.weight(self._layer, known)
        unique, count = name, 1
        while unique in self._taken:
            unique, count = f"{name}_{count}", count + 1
        self._taken.add(unique)
        return unique

    def symbol(self, symbol: Symbol) -> Any:
        """Returns dimensions as a tensor of TensorFlow."""
        known = symbol.known()
        if known is not None:
            return tf.constant(known)
        dtype = tf.dtypes.as_dtype(symbol.dtype)
        batch = tf.shape(self.batch, out_type=tf.int32)[0]
        parts = [
            tf.cast(batch * d.scale if isinstance(d, Batch) else tf.constant(d, tf.int32), dtype)
            for d in symbol.dims.flat
        ]
        if symbol.dims.ndim == 0:
            return parts[0]
        return tf.reshape(tf.stack(parts), symbol.dims.shape)


_SHAPES = frozenset(["Shape", "Size"])


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, list | tuple) else [results]


def _plain(value: Value) -> Value:
    """Returns a constant if no dimension depends on the batch."""
    known = value.known() if isinstance(value, Symbol) else None
    return value if known is None else Known(known)


def _array(value: Any) -> Array:
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def _constant(ctx: Context, result: Any, name: str) -> Value:
    if isinstance(result, Known | Symbol):
        return result
    if isinstance(result, Tensor):
        return Known(_array(result.form()), name)
    return Known(_array(result), name)


def _value(ctx: Context, result: Any) -> Value:
    if isinstance(result, Tensor | Known | Symbol):
        return result
    return ctx.result(result)
