"""Branches and loops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.load.onnx.context import Context, Handler, Result, axis_of, fixed
from converters.tf.load.onnx.file import Graph
from converters.tf.load.onnx.values import Known, Tensor, Value, shape_of
from converters.tf.load.saved_model.replay import Refused


def _branch(ctx: Context, name: str) -> Graph:
    graph = ctx.attr(name)
    if not isinstance(graph, Graph):
        raise Refused(f"it has no {name}")
    return graph


def _if(ctx: Context) -> Result:
    condition = ctx.value(0)
    if isinstance(condition, Known):
        name = "then_branch" if bool(condition.data.ravel()[0]) else "else_branch"
        return ctx.session.body(_branch(ctx, name), [])
    shapes: list[list[Value]] = []

    def run(name: str) -> Any:
        def branch() -> Any:
            results = ctx.session.body(_branch(ctx, name), [])
            shapes.append(results)
            return [ctx.formed(r) for r in results]

        return branch

    # Branches without operands are constants, between which TensorFlow's op has nothing to choose.
    with_constants: list[list[Value]] = [
        ctx.session.body(_branch(ctx, name), []) if _closed(_branch(ctx, name)) else []
        for name in ("then_branch", "else_branch")
    ]
    if all(with_constants) and all(isinstance(v, Known) for r in with_constants for v in r):
        return [_chosen(ctx, *pair) for pair in zip(*with_constants, strict=True)]
    found = tf.cond(tf.reshape(ctx.form(0), []), run("then_branch"), run("else_branch"))
    first = shapes[0]
    if any(
        shape_of(a) != shape_of(b) for other in shapes for a, b in zip(first, other, strict=True)
    ):
        raise Refused("branches whose results have different shapes")
    found = found if isinstance(found, list | tuple) else [found]
    return [ctx.result(t, None, shape_of(v)) for t, v in zip(found, first, strict=True)]


def _closed(graph: Graph) -> bool:
    """Returns whether all that a graph's nodes read is made in it."""
    own = {name for node in graph.nodes for name in node.outputs} | set(graph.constants)
    return all(not node.inputs or own.issuperset(filter(None, node.inputs)) for node in graph.nodes)


def _chosen(ctx: Context, then: Value, other: Value) -> Tensor:
    if shape_of(then) != shape_of(other):
        raise Refused("branches whose results have different shapes")
    condition = tf.reshape(ctx.form(0), [1] * len(shape_of(then)))
    return ctx.result(tf.where(condition, ctx.formed(then), ctx.formed(other)))


def _loop(ctx: Context) -> Result:
    """A loop of a fixed number of turns, written out turn by turn."""
    body = _branch(ctx, "body")
    carried: list[Value] = [ctx.value(i) for i in range(2, len(ctx.args))]
    turns = ctx.ints(0)[0] if ctx.has(0) else None
    if turns is None or turns > _MOST_TURNS:
        raise Refused(f"a loop of more than {_MOST_TURNS} turns, or that the model ends")
    if ctx.has(1) and not bool(ctx.array(1).ravel()[0]):
        turns = 0
    scans: list[list[Value]] = []
    for turn in range(turns):
        index = Known(np.asarray(turn, np.int64))
        going, *results = ctx.session.body(body, [index, Known(np.asarray(True)), *carried])
        if not isinstance(going, Known):
            raise Refused("a loop that the model's inputs end")
        carried, scanned = results[: len(carried)], results[len(carried) :]
        scans.append(scanned)
        if not bool(going.data.ravel()[0]):
            break
    if not scans and len(body.outputs) > 1 + len(carried):
        raise Refused("a loop without turns")
    stacked = [
        _stacked(ctx, [s[i] for s in scans]) for i in range(len(body.outputs) - 1 - len(carried))
    ]
    return [*carried, *stacked]


def _stacked(ctx: Context, values: list[Value], axis: int = 0) -> Tensor:
    shape = list(shape_of(values[0]))
    shape.insert(axis, len(values))
    return ctx.result(tf.stack([ctx.formed(v) for v in values], axis), None, shape)


def _scan(ctx: Context) -> Result:
    """A loop over the places of an axis, written out turn by turn."""
    if ctx.node.version < 9:
        return _old_scan(ctx)
    body, count = _branch(ctx, "body"), int(ctx.attr("num_scan_inputs"))
    states: list[Value] = [ctx.value(i) for i in range(len(ctx.args) - count)]
    read = [ctx.value(i) for i in range(len(ctx.args) - count, len(ctx.args))]
    axes = _each(ctx, "scan_input_axes", count)
    axes = [axis_of(axis, len(shape_of(v))) for axis, v in zip(axes, read, strict=True)]
    back = _each(ctx, "scan_input_directions", count)
    states, written = _scanned(ctx, body, states, list(zip(read, axes, back, strict=True)))
    ends = _each(ctx, "scan_output_axes", len(written))
    turned = _each(ctx, "scan_output_directions", len(written))
    results: list[Value] = [*states]
    for values, axis, backwards in zip(written, ends, turned, strict=True):
        place = axis_of(axis, len(shape_of(values[0])) + 1)
        results.append(_stacked(ctx, values[::-1] if backwards else values, place))
    return results


def _each(ctx: Context, name: str, count: int) -> list[int]:
    values = [int(v) for v in ctx.attr(name) or (0,) * count]
    if len(values) != count:
        raise Refused(f"{name}={values} for {count}")
    return values


def _old_scan(ctx: Context) -> Result:
    """Before version 9 the first axis was the batch, of which each element has a loop."""
    body, count = _branch(ctx, "body"), int(ctx.attr("num_scan_inputs"))
    if ctx.has(0) or ctx.attr("directions"):
        raise Refused("lengths or directions before version 9")
    values = [ctx.value(i) for i in range(1, len(ctx.args))]
    batch = fixed(shape_of(values[0])[0], "the number of loops")
    found: list[list[Value]] = []
    for number in range(batch):
        own = [_part(ctx, v, 0, number) for v in values]
        read = [(v, 0, 0) for v in own[len(own) - count :]]
        states, written = _scanned(ctx, body, own[: len(own) - count], read)
        found.append([*states, *(_stacked(ctx, w) for w in written)])
    return [_stacked(ctx, list(column)) for column in zip(*found, strict=True)]


def _scanned(
    ctx: Context, body: Graph, states: list[Value], read: list[tuple[Value, int, int]]
) -> tuple[list[Value], list[list[Value]]]:
    """Returns the last states, and what each turn wrote."""
    lengths = {shape_of(value)[axis] for value, axis, _ in read}
    turns = fixed(lengths.pop(), "the number of turns")
    if lengths or not 0 < turns <= _MOST_TURNS:
        raise Refused(f"a loop of {turns} turns; 1 to {_MOST_TURNS} are supported")
    scans: list[list[Value]] = []
    for turn in range(turns):
        parts = [_part(ctx, v, a, turns - 1 - turn if back else turn) for v, a, back in read]
        results = ctx.session.body(body, [*states, *parts])
        states, written = results[: len(states)], results[len(states) :]
        scans.append(written)
    return states, [list(column) for column in zip(*scans, strict=True)]


def _part(ctx: Context, value: Value, axis: int, at: int) -> Value:
    """Returns a place of an axis."""
    if isinstance(value, Known):
        return Known(np.take(value.data, at, axis))
    shape = shape_of(value)
    part = ctx.formed(value)[(*(slice(None),) * axis, at)]
    return ctx.result(part, None, (*shape[:axis], *shape[axis + 1 :]))


_MOST_TURNS = 64

OPS: Mapping[str, Handler] = {"If": _if, "Loop": _loop, "Scan": _scan}
