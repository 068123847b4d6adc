"""The meaning of the graph in NumPy: slow, simple, and the oracle of the tests.

Every op computes in double precision and rounds its result once; the result of a function of two
elements is rounded before its activation, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from converters.tf import ir
from converters.tf.ir import Array
from converters.tf.ir.fixed import counted_node, fixed, sizes_of
from converters.tf.ir.operands import Operands

# What a node's result becomes: for tests of how much depends on rounding.
Change = Callable[[ir.Node, Array], Array]


def interpret(
    graph: ir.Graph, inputs: Mapping[str, Array], change: Change | None = None
) -> dict[str, Array]:
    """Runs a graph.

    Args:
        graph: What to run.
        inputs: An array for every input; all agree about the batch and other open dimensions.
        change: Changes every result before it is read.

    Returns:
        An array for every output, by name.

    Raises:
        ValueError: An input is missing or has another shape, or an index is outside its axis.
    """
    batch = _batch(graph, inputs)
    graph = fixed(graph, sizes_of(graph, inputs))
    values: dict[ir.Value, Array] = {}
    for port in graph.inputs:
        data = np.asarray(inputs[port.name], port.value.dtype.numpy)
        expected = ir.shape_at(port.value.shape, batch)
        if data.shape != expected:
            raise ValueError(f"input {port.name} has shape {data.shape}, not {expected}")
        values[port.value] = data
    run_nodes(graph, values, batch, change)
    return {port.name: port.spelled(_read(port.value, values)) for port in graph.outputs}


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
    counted: dict[str, int] = {}
    for node in graph.nodes:
        operands = [None if v is None else _read(v, values) for v in node.inputs]
        if isinstance(node.op, ir.Chosen):
            results = [np.asarray(data) for data in node.op.meaning(Operands(operands), ())]
            counted[node.op.name] = len(results[0])
        else:
            results = evaluate(counted_node(node, counted), operands, batch, change)
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
    op, x = node.op, Operands(operands)
    with np.errstate(all="ignore"):
        if isinstance(op, ir.Loop):
            results: Sequence[Array] = _loop(op, x.every(), batch, change)
        else:
            results = op.meaning(x, shapes[0])
    out = []
    for value, shape, data in zip(node.outputs, shapes, results, strict=True):
        array = np.asarray(data)
        if array.shape != shape:
            raise ValueError(f"{node.op} of {node.layer} gives {array.shape}, not {shape}")
        out.append(np.asarray(array.astype(value.dtype.numpy)))
    return out


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
