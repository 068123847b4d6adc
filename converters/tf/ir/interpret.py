"""The meaning of the graph in NumPy: slow, simple, and the oracle of the tests.

Every op computes in double precision and rounds its result once; the result of a function of two
elements is rounded before its activation, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from converters.tf import ir
from converters.tf.ir import Array
from converters.tf.ir.meaning.blocks import BLOCKS, SPATIAL
from converters.tf.ir.meaning.boxes import suppressed
from converters.tf.ir.meaning.functions import BINARY, COMPARE, apply
from converters.tf.ir.meaning.systems import SYSTEMS

_MANY = {**BLOCKS, **SYSTEMS}
# What a node's result becomes: for tests of how much depends on rounding.
Change = Callable[[ir.Node, Array], Array]


def interpret(
    graph: ir.Graph, inputs: Mapping[str, Array], change: Change | None = None
) -> dict[str, Array]:
    """Runs a graph.

    Args:
        graph: What to run.
        inputs: An array for every input; all agree about the batch size.
        change: Changes every result before it is read.

    Returns:
        An array for every output, by name.

    Raises:
        ValueError: An input is missing or has another shape, or an index is outside its axis.
    """
    batch = _batch(graph, inputs)
    values: dict[ir.Value, Array] = {}
    for port in graph.inputs:
        data = np.asarray(inputs[port.name], port.value.dtype.numpy)
        expected = ir.shape_at(port.value.shape, batch)
        if data.shape != expected:
            raise ValueError(f"input {port.name} has shape {data.shape}, not {expected}")
        values[port.value] = data
    run_nodes(graph, values, batch, change)
    return {port.name: _read(port.value, values) for port in graph.outputs}


def _batch(graph: ir.Graph, inputs: Mapping[str, Array]) -> int:
    for port in graph.inputs:
        if port.name not in inputs:
            raise ValueError(f"input {port.name} is missing; there are {', '.join(inputs)}")
        for dim, size in zip(port.value.shape, np.shape(inputs[port.name]), strict=False):
            if isinstance(dim, ir.Batch):
                return int(size) // dim.scale
    return 1


def _read(value: ir.Value, values: Mapping[ir.Value, Array]) -> Array:
    return value.data if value.data is not None else values[value]


def run_nodes(
    graph: ir.Graph,
    values: dict[ir.Value, Array],
    batch: int,
    change: Change | None = None,
) -> None:
    """Adds the results of all nodes to `values`, which holds the graph's inputs."""
    for node in graph.nodes:
        operands = [None if v is None else _read(v, values) for v in node.inputs]
        results = evaluate(node, operands, batch, change)
        for value, data in zip(node.outputs, results, strict=True):
            values[value] = data if change is None else change(node, data)


def evaluate(
    node: ir.Node,
    operands: list[Array | None],
    batch: int = 1,
    change: Change | None = None,
) -> list[Array]:
    """Returns the results of one node."""
    shapes = [ir.shape_at(v.shape, batch) for v in node.outputs]
    op = node.op
    with np.errstate(all="ignore"):
        if isinstance(op, ir.Loop):
            results = _loop(op, [_present(o) for o in operands], batch, change)
        elif type(op) in _MANY:
            results = _MANY[type(op)](op, [_wide(o) for o in operands])
        elif type(op) in SPATIAL:
            wide = [_wide(o) for o in operands]
            results = [SPATIAL[type(op)](op, wide, shapes[0][1:-1])]
        else:
            results = [_SIMPLE[type(op)](op, [_present(o) for o in operands], shapes[0])]
    out = []
    for value, shape, data in zip(node.outputs, shapes, results, strict=True):
        array = np.asarray(data)
        if array.shape != shape:
            raise ValueError(f"{node.op} of {node.layer} gives {array.shape}, not {shape}")
        out.append(np.asarray(array.astype(value.dtype.numpy)))
    return out


def _present(data: Array | None) -> Array:
    if data is None:
        raise ValueError("an operand is left out that the op needs")
    return data


def _wide(data: Array | None) -> Array | None:
    return data.astype(np.float64) if data is not None and data.dtype == np.float32 else data


def _loop(op: ir.Loop, carried: list[Array], batch: int, change: Change | None) -> list[Array]:
    (trips,) = ir.shape_at((op.trips,), batch)
    for turn in range(trips):
        if op.going is not None and not carried[op.going]:
            break
        turns: list[Array] = [np.asarray(turn, np.int32), *carried]
        values = {p.value: v for p, v in zip(op.body.inputs, turns, strict=True)}
        run_nodes(op.body, values, batch, change)
        carried = [_read(port.value, values) for port in op.body.outputs]
    return carried


def _double(x: Array) -> Array:
    return x.astype(np.float64) if x.dtype == np.float32 else x


def _unary(op: ir.Unary, x: list[Array], _: tuple[int, ...]) -> Array:
    return apply(op.function, _double(x[0]))


def _binary(op: ir.Binary, x: list[Array], _: tuple[int, ...]) -> Array:
    result = np.asarray(BINARY[op.kind](_double(x[0]), _double(x[1])))
    if op.activation is None:
        return result
    # Its first rounding can decide where a function that jumps ends up.
    return apply(op.activation, _double(result.astype(x[0].dtype)))


def _scale_shift(op: ir.ScaleShift, x: list[Array], _: tuple[int, ...]) -> Array:
    result = _double(x[0]) * x[1] + x[2]
    return result if op.activation is None else apply(op.activation, result)


def _cast(op: ir.Cast, x: list[Array], _: tuple[int, ...]) -> Array:
    return x[0]


_REDUCE: dict[ir.ReduceKind, Callable[..., Any]] = {
    ir.ReduceKind.SUM: np.sum,
    ir.ReduceKind.MEAN: np.mean,
    ir.ReduceKind.MAX: np.max,
    ir.ReduceKind.MIN: np.min,
    ir.ReduceKind.PROD: np.prod,
    ir.ReduceKind.ALL: np.all,
    ir.ReduceKind.ANY: np.any,
}


def _reduce(op: ir.Reduce, x: list[Array], _: tuple[int, ...]) -> Array:
    return np.asarray(_REDUCE[op.kind](_double(x[0]), axis=op.axes, keepdims=op.keepdims))


def _arg(op: ir.ArgExtreme, x: list[Array], _: tuple[int, ...]) -> Array:
    return np.asarray((np.argmin if op.smallest else np.argmax)(x[0], axis=op.axis))


def _top_k(_: ir.TopK, x: list[Array], shape: tuple[int, ...]) -> Array:
    turned = np.flip(x[0], -1)
    order = turned.shape[-1] - 1 - np.flip(np.argsort(turned, axis=-1, kind="stable"), -1)
    if x[0].dtype.kind == "f":
        unknown = np.take_along_axis(np.isnan(x[0]), order, -1)
        order = np.take_along_axis(order, np.argsort(unknown, axis=-1, kind="stable"), -1)
    return np.asarray(order[..., : shape[-1]])


def _cumulative(op: ir.Cumulative, x: list[Array], _: tuple[int, ...]) -> Array:
    data = np.flip(x[0], op.axis) if op.reverse else x[0]
    result = (np.cumprod if op.product else np.cumsum)(_double(data), axis=op.axis)
    if op.exclusive:
        result = np.roll(result, 1, op.axis)
        first = [slice(None)] * result.ndim
        first[op.axis] = slice(0, 1)
        result[tuple(first)] = 1 if op.product else 0
    return np.flip(result, op.axis) if op.reverse else result


def _slice(op: ir.Slice, x: list[Array], shape: tuple[int, ...]) -> Array:
    result = x[0]
    for axis, (begin, stride, count) in enumerate(zip(op.begin, op.strides, shape, strict=True)):
        result = np.take(result, begin + stride * np.arange(count), axis=axis)
    return result


_PAD = {ir.PadMode.REFLECT: "reflect", ir.PadMode.SYMMETRIC: "symmetric"}


def _pad(op: ir.Pad, x: list[Array], _: tuple[int, ...]) -> Array:
    if op.mode is ir.PadMode.CONSTANT:
        return np.pad(x[0], op.padding, constant_values=op.value)
    mode: Any = _PAD[op.mode]
    return np.pad(x[0], op.padding, mode=mode)


def _gather(op: ir.Gather, x: list[Array], shape: tuple[int, ...]) -> Array:
    params, indices = x
    lead, axis = op.batch_dims, op.axis
    groups = int(np.prod(params.shape[:lead]))
    flat = params.reshape(groups, *params.shape[lead:])
    places = indices.reshape(groups, *indices.shape[lead:])
    if op.wrap:
        places = np.where(places < 0, places + params.shape[axis], places)
    if places.size and (places.min() < 0 or places.max() >= params.shape[axis]):
        raise ValueError(f"an index is not below {params.shape[axis]}")
    taken = [np.take(p, i, axis=axis - lead) for p, i in zip(flat, places, strict=True)]
    return np.asarray(taken, params.dtype).reshape(shape)


def _one_hot(op: ir.OneHot, x: list[Array], shape: tuple[int, ...]) -> Array:
    hits = np.expand_dims(x[0], op.axis)
    places = np.arange(shape[op.axis]).reshape(
        [-1 if i == op.axis else 1 for i in range(len(shape))]
    )
    return np.where(hits == places, op.on, op.off)


def _update(op: ir.Update, x: list[Array], _: tuple[int, ...]) -> Array:
    result = x[0].copy()
    result[int(x[1])] = x[2]
    return result


_SCATTER: dict[ir.ScatterKind, Any] = {
    ir.ScatterKind.ADD: np.add,
    ir.ScatterKind.SUB: np.subtract,
    ir.ScatterKind.MUL: np.multiply,
    ir.ScatterKind.MIN: np.minimum,
    ir.ScatterKind.MAX: np.maximum,
}


def _scatter(op: ir.Scatter, x: list[Array], shape: tuple[int, ...]) -> Array:
    data, indices, updates = x
    lead, depth = op.batch_dims, indices.shape[-1]
    groups = int(np.prod(shape[:lead]))
    limits, rest = shape[lead : lead + depth], shape[lead + depth :]
    result = _double(data).reshape(groups, *limits, *rest).copy()
    places = indices.reshape(groups, -1, depth)
    parts = updates.reshape(*places.shape[:2], *rest)
    for group in range(groups):
        kept = np.all(places[group] >= 0, -1) if op.skip else np.full(places.shape[1], True)
        index, part = places[group][kept], parts[group][kept]
        if index.size and (index.min() < 0 or np.any(index >= limits)):
            raise ValueError(f"an index is not below {limits}")
        where = (group, *index.T)
        if op.kind is ir.ScatterKind.UPDATE:
            for place, new in zip(index, part, strict=True):
                result[(group, *place)] = new
        else:
            _SCATTER[op.kind].at(result, where, part)
    return np.asarray(result.reshape(shape))


_SIMPLE: dict[type, Callable[[Any, list[Array], tuple[int, ...]], Array]] = {
    ir.Unary: _unary,
    ir.Binary: _binary,
    ir.Compare: lambda op, x, _: COMPARE[op.kind](x[0], x[1]),
    ir.WholeProduct: lambda op, x, _: np.matmul(x[0], x[1]),
    ir.Suppress: suppressed,
    ir.Select: lambda op, x, _: np.where(x[0].astype(bool), x[1], x[2]),
    ir.Cast: _cast,
    ir.ScaleShift: _scale_shift,
    ir.Reduce: _reduce,
    ir.ArgExtreme: _arg,
    ir.TopK: _top_k,
    ir.Cumulative: _cumulative,
    ir.Transpose: lambda op, x, _: np.transpose(x[0], op.perm),
    ir.Reshape: lambda op, x, shape: x[0].reshape(shape),
    ir.Concat: lambda op, x, _: np.concatenate(x, axis=op.axis),
    ir.Slice: _slice,
    ir.Pad: _pad,
    ir.Gather: _gather,
    ir.OneHot: _one_hot,
    ir.Tile: lambda op, x, _: np.tile(x[0], op.multiples),
    ir.BroadcastTo: lambda op, x, shape: np.broadcast_to(x[0], shape),
    ir.Update: _update,
    ir.Scatter: _scatter,
}
