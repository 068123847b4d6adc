"""Replays the nodes of an ONNX graph as TensorFlow's, and collects what can't be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context as eager

from converters.tf import ir
from converters.tf.ir import Array, Batch, Dim, DType, Op, Shape, budget
from converters.tf.ir.expressions import Above, Floor, Size, counted
from converters.tf.ir.operands import Operands
from converters.tf.ir.symbolic import Symbol
from converters.tf.load.onnx import numbered, quantized, words
from converters.tf.load.onnx.context import Context, Handler, bounded
from converters.tf.load.onnx.file import Graph, Node
from converters.tf.load.onnx.inferred import Shapes
from converters.tf.load.onnx.naming import Names
from converters.tf.load.onnx.old import AXIS
from converters.tf.load.onnx.registry import HANDLERS, REFUSED, computed
from converters.tf.load.onnx.shape_data import DIMENSIONS, MOVING, as_floats, whole_again
from converters.tf.load.onnx.values import Known, Numbered, Tensor, Value
from converters.tf.load.saved_model.replay import MISSING, Missing, Refused, Replay, Step

# They replay graphs, whose nodes see more than their operands.
_NOT_CONSTANT = frozenset(["If", "Loop", "Scan"])


Env = dict[str, "Value | Missing"]


@dataclass
class Nodes:
    """The nodes of a file while they are replayed.

    Attributes:
        replay: What they become.
        places: An input's tensor and its axis by the open dimension that it has; no name is the
            batch.
        shapes: Shapes of tensors, if more than the batch is open.
        counted: The same as `places` of what a call counts.
        own: What replays operators of the user, by their names.
        integer: Whether layers between levels of 8 bits compute in integers.
    """

    replay: Replay
    places: Mapping[str, tuple[Any, int]] = field(default_factory=dict)
    shapes: Shapes | None = None
    counted: dict[str, tuple[Any, int]] = field(default_factory=dict)
    own: Mapping[str, Handler] = field(default_factory=dict)
    integer: bool = True
    _names: Names = field(default_factory=Names)
    _envs: list[Env] = field(default_factory=list)
    _layer: str = ""

    def run(self, graph: Graph, args: Sequence[Value]) -> list[Value | None]:
        """Replays a graph; what is `None` was not possible, and is among the problems."""
        env: Env = {name: Known(data, name) for name, data in graph.constants.items()}
        env |= {port.name: value for port, value in zip(graph.inputs, args, strict=True)}
        self._envs.append(env)
        try:
            for node in graph.nodes:
                env.update(zip(node.outputs, self._node(node), strict=False))
            found = [self._find(name) for name in graph.outputs]
        finally:
            self._envs.pop()
        return [None if isinstance(value, Missing) else value for value in found]

    def body(self, graph: Graph, args: Sequence[Value]) -> list[Value]:
        """Replays a graph inside of a node; it sees what the node's graph has.

        Raises:
            Refused: Something in it is not supported, and reported.
        """
        results = self.run(graph, args)
        if any(r is None for r in results):
            raise Refused("its body needs what is not supported")
        return [r for r in results if r is not None]

    @property
    def whole(self) -> bool:
        """Returns whether levels are computed in integers here: not in loops and branches."""
        return self.integer and not self.replay.inside and not tf.executing_eagerly()

    def weight(self, role: str, data: Array) -> Any:
        """Returns a weight of the node's layer as a tensor of TensorFlow."""
        return self.replay.weight(self._layer, role, data)

    def _find(self, name: str) -> Value | Missing:
        for env in reversed(self._envs):
            if name in env:
                return env[name]
        return MISSING

    def _node(self, node: Node) -> Sequence[Value | Missing]:
        found = [self._find(name) if name else None for name in node.inputs]
        count = len(node.outputs)
        if node.op not in HANDLERS and node.op not in self.own:
            what = REFUSED.get(node.op, "there is no counterpart in TensorFlow's ops")
            if node.op not in REFUSED and "." in node.op:
                what += "; --custom_op takes one of your own"
            return self.replay.refused(Step(node.title, node.op, node.op, "", count), what)
        args = tuple(v for v in found if not isinstance(v, Missing))
        if len(args) < len(found):
            return [MISSING] * count
        before = self._layer
        self._layer = layer = self._names.layer(node, args)

        def run() -> list[Value]:
            results = self._results(Context(self, node, args))
            if any(node.outputs[len(results) :]):
                raise Refused(f"{count} results; {len(results)} are supported")
            return results

        try:
            return self.replay.step(Step(node.title, layer or node.op, node.op, layer, count), run)
        finally:
            self._layer = before

    def _results(self, ctx: Context) -> list[Value]:
        if ctx.node.op in self.own:
            return self._own(ctx)
        ctx = _aligned(ctx)
        given = [v for v in ctx.args if v is not None]
        for value in given:
            if isinstance(value, Tensor):  # Many operators make constants of its size.
                bounded(value.shape)
        op = ctx.node.op
        if any(isinstance(v, words.Texts) for v in given):
            if op in words.OF_TEXTS:
                return [words.OF_TEXTS[op](ctx)]
            tensors = (words.finished(v) if isinstance(v, words.Texts) else v for v in ctx.args)
            return self._results(replace(ctx, args=tuple(tensors)))
        levels = {v.levels for v in given if isinstance(v, Tensor) and v.levels}
        if levels and op not in quantized.OPS:
            return self._moved(ctx, levels)
        if any(isinstance(v, Numbered) for v in given) and op not in _SHAPES:
            result = numbered.OPS[op](ctx) if op in numbered.OPS else None
            if result is not None:
                return [result]
            args = (numbered.spread(ctx, v) if isinstance(v, Numbered) else v for v in ctx.args)
            ctx = Context(self, ctx.node, tuple(args))
            given = [v for v in ctx.args if v is not None]
        open_dims = any(isinstance(v, Symbol) for v in given)
        known = all(isinstance(v, Symbol | Known) for v in given)
        about = isinstance(ctx.args[0], Symbol) if op in MOVING else open_dims
        if op in _SHAPES or (op in DIMENSIONS and about and known):
            dims = DIMENSIONS[op](ctx)
            if dims is not None:
                return [_plain(found) for found in _listed(dims)]
        if known and not open_dims and op not in _NOT_CONSTANT:
            with eager.eager_mode(), tf.device("/CPU:0"):
                results = _listed(HANDLERS[op](ctx))
            names = {v.name for v in given if isinstance(v, Known) and v.rank}
            name = names.pop() if len(names) == 1 else ""
            made = [_constant(ctx, r, name) for r in results]
            constants = (v.data.size for v in (*given, *made) if isinstance(v, Known))
            budget.spend(sum(constants), ctx.node.title)
            return made
        if (sizes := whole_again(ctx)) is not None:
            return [sizes]
        values = [_value(ctx, r) for r in _listed(computed(ctx))]
        held = as_floats(ctx)
        if held is not None and isinstance(values[0], Tensor):
            values[0].sizes = held
        return values

    def _own(self, ctx: Context) -> list[Value]:
        """Returns the results of an operator of the user."""
        handler = self.own[ctx.node.op]
        if all(isinstance(v, Known) for v in ctx.args):
            with eager.eager_mode(), tf.device("/CPU:0"):
                return [_constant(ctx, r, "") for r in _listed(handler(ctx))]
        return [_value(ctx, r) for r in _listed(handler(ctx))]

    def _moved(self, ctx: Context, levels: set[str]) -> list[Value]:
        """Returns the results of an operator that leaves quantized numbers as they are."""
        op = ctx.node.op
        if op in quantized.CASTS:
            return _listed(quantized.CASTS[op](ctx))
        if op in _SHAPES:
            return [_plain(found) for found in _listed(DIMENSIONS[op](ctx)) if found is not None]
        if op not in quantized.MOVING or len(levels) > 1:
            raise Refused("quantized numbers; export them with QuantizeLinear and DequantizeLinear")
        kind = levels.pop()
        args = (
            v.view("float", lambda a: a.astype(np.float32))
            if isinstance(v, Known) and v.dtype == kind
            else v
            for v in ctx.args
        )
        results = [
            _value(ctx, r) for r in _listed(HANDLERS[op](Context(self, ctx.node, tuple(args))))
        ]
        for result in results:
            if isinstance(result, Tensor):
                result.levels = kind
        return results

    def tensor(self, known: Known) -> Any:
        """Returns a constant as a tensor of TensorFlow; large ones as placeholders with a name."""
        if tf.executing_eagerly():
            return tf.constant(known.data)
        if known.data.size < 2 or (known.data.dtype.kind in "biu" and not known.name):
            return tf.constant(known.data)
        if known.tensor is None:
            known.tensor = self.replay.weight(self._layer, self._names.weight(known), known.data)
        return known.tensor

    def typed(self, op: Op, operands: Sequence[Any], dtype: DType) -> Any:
        """Returns what an op of the typed graph gives, which TensorFlow has no counterpart of."""
        (found,) = self.typed_all(op, operands, [dtype])
        return found

    def typed_all(self, op: Op, operands: Sequence[Any], dtypes: Sequence[DType]) -> list[Any]:
        """As `typed`, of an op with a result for each of the element types."""
        if not tf.executing_eagerly():
            return self.replay.typed_all(op, operands, dtypes)
        arrays = Operands([np.asarray(operand.numpy()) for operand in operands])
        shapes = op.shapes([tuple(operand.shape) for operand in operands]) or ((),)
        results = op.meaning(arrays, ir.shape_at(shapes[0], 1))
        pairs = zip(results, dtypes, strict=True)
        return [tf.constant(np.asarray(data, dtype.numpy)) for data, dtype in pairs]

    def symbol(self, symbol: Symbol) -> Any:
        """Returns dimensions as a tensor of TensorFlow."""
        known = symbol.known()
        if known is not None:
            return tf.constant(known)
        dtype = tf.dtypes.as_dtype(symbol.dtype)
        parts = [tf.cast(self._dimension(d), dtype) for d in symbol.dims.flat]
        if symbol.dims.ndim == 0:
            return parts[0]
        return tf.reshape(tf.stack(parts), symbol.dims.shape)

    def _dimension(self, dim: Dim) -> Any:
        """Returns a dimension as a tensor."""
        if isinstance(dim, Batch):
            return self._size("") * self._dimension(dim.scale)
        if not isinstance(dim, Size):
            return tf.constant(dim, tf.int32)
        total = None
        for atoms, factor in dim.terms:
            part = tf.constant(factor, tf.int32) if factor != 1 or not atoms else None
            for atom in atoms:
                if isinstance(atom, Floor):
                    size = self._dimension(atom.of) // atom.by
                elif isinstance(atom, Above):
                    size = tf.maximum(self._dimension(atom.of), 0)
                else:
                    size = self._size(atom.name) // atom.by
                part = size if part is None else part * size
            total = part if total is None else total + part
        return total

    def _size(self, name: str) -> Any:
        place = self.counted.get(name) or self.places.get(name)
        if place is None:
            raise Refused(f"a size, {name}, that nothing says")
        tensor, axis = place
        return tf.shape(tensor, out_type=tf.int32)[axis]

    def shape(self, tensor: Any) -> Shape | None:
        """Returns the shape of a tensor of TensorFlow, where TensorFlow can't say it."""
        rank = tensor.shape.rank
        if self.shapes is None or rank is None or None not in tensor.shape.as_list():
            return None
        return self.shapes.of(tensor)

    def state(self, tensor: Any, shape: Shape) -> None:
        """Takes the shape of a tensor of TensorFlow."""
        for axis, dim in enumerate(shape):
            if isinstance(dim, Size) and dim.name and counted(dim):
                self.counted.setdefault(dim.name, (tensor, axis))
        if self.shapes is not None and not tf.executing_eagerly():
            self.shapes.state(tensor, shape)


def _aligned(ctx: Context) -> Context:
    """Returns a node whose second operand has the axes to broadcast as NumPy does."""
    axis = ctx.attr(AXIS)
    if axis is None:
        return ctx
    rank, shape = ctx.rank(0), ctx.shape(1)
    after = rank - int(axis) % max(rank, 1) - len(shape)
    if after <= 0:
        return ctx
    wide = (*shape, *(1,) * after)
    second = ctx.value(1)
    if isinstance(second, Known):
        known = second.view(("old", after), lambda a: a.reshape(*a.shape, *(1,) * after))
        return replace(ctx, args=(ctx.value(0), known))
    return replace(ctx, args=(ctx.value(0), ctx.reshape(1, wide)))


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
    if isinstance(result, Known | Symbol | Numbered):
        return result
    if isinstance(result, Tensor):
        return Known(_array(result.form()), name)
    return Known(_array(result), name)


def _value(ctx: Context, result: Any) -> Value:
    if isinstance(result, Tensor | Known | Symbol | Numbered):
        return result
    return ctx.result(result)
