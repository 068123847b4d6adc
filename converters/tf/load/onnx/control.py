"""Branches and loops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.load.onnx.agreed import confirmed, is_given, wanted
from converters.tf.load.onnx.context import Context, Handler, Result, axis_of, fixed
from converters.tf.load.onnx.file import Graph
from converters.tf.load.onnx.mapped import mapped
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
            results = _of_choice(ctx, name)
            shapes.append(results)
            return [ctx.formed(r) for r in results]

        return branch

    # Branches without operands are constants, between which TensorFlow's op has nothing to choose.
    with_constants: list[list[Value]] = [
        _of_choice(ctx, name) if _closed(_branch(ctx, name)) else []
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


def _of_choice(ctx: Context, name: str) -> list[Value]:
    """Returns the results of a branch that each call chooses.

    Raises:
        Refused: It needs what is not supported.
    """
    try:
        return ctx.session.body(_branch(ctx, name), [])
    except Refused as err:
        advice = "if an input chooses the branch, --input_value makes that input a constant"
        raise Refused(f"{err} ({advice})") from err


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
    """A loop: its turns are written out if their number is known, or if the file states it."""
    body = _branch(ctx, "body")
    carried: list[Value] = [ctx.value(i) for i in range(2, len(ctx.args))]
    found = _written_out(ctx, body, carried)
    if found is not None:
        return found
    written = len(body.outputs) - 1 - len(carried)
    return _stated(ctx, body, carried) if written else _turning(ctx, body, carried)


def _written_out(ctx: Context, body: Graph, carried: list[Value]) -> Result | None:
    """Returns the results of a loop with few iterations; nothing if the model's inputs end it."""
    if not ctx.has(0) or not all(isinstance(ctx.value(i), Known) for i in (0, 1) if ctx.has(i)):
        return None
    turns = ctx.ints(0)[0]
    if ctx.has(1) and not bool(ctx.array(1).ravel()[0]):
        turns = 0
    if turns > _MOST_TURNS:
        return None
    count, scans = len(carried), []
    for turn in range(turns):
        going, carried, scanned = _turn(ctx, body, turn, carried)
        scans.append(scanned)
        if not isinstance(going, Known):
            return None
        if not bool(going.data.ravel()[0]):
            break
    if not scans and len(body.outputs) > 1 + count:
        raise Refused("a loop without turns")
    return [*carried, *(_stacked(ctx, list(column)) for column in zip(*scans, strict=True))]


def _turn(
    ctx: Context, body: Graph, turn: int, carried: list[Value]
) -> tuple[Value, list[Value], list[Value]]:
    """Returns whether a loop goes on after a turn, what it carries, and what it wrote."""
    index, going = Known(np.asarray(turn, np.int64)), Known(np.asarray(True))
    after, *results = ctx.session.body(body, [index, going, *carried])
    return after, results[: len(carried)], results[len(carried) :]


def _stated(ctx: Context, body: Graph, carried: list[Value]) -> Result:
    """Writes out as many turns as the file states rows; a call of another number fails."""
    shapes = ctx.node.shapes[len(carried) :]
    if not is_given(ctx, 0) and (not shapes or shapes[0] is None):
        raise Refused(f"rows of more than {_MOST_TURNS} turns, or of a number that nothing states")
    turns = wanted(ctx, 0, len(carried))[0]
    if not 0 < turns <= _MOST_TURNS:
        raise Refused(f"a loop with {turns} iterations; 1 to {_MOST_TURNS} are supported")
    before: Any = tf.reshape(ctx.form(1), []) if ctx.has(1) else tf.constant(True)
    holds, scans = before, []
    for turn in range(turns):
        holds = tf.logical_and(holds, before)
        going, carried, scanned = _turn(ctx, body, turn, carried)
        before = tf.reshape(ctx.formed(going), [])
        scans.append(scanned)
    limit = _limit(ctx)
    ends = tf.logical_not(before)
    if limit is not None:
        ends = tf.logical_or(tf.equal(limit, turns), tf.logical_and(limit > turns, ends))
    rows = [_stacked(ctx, list(column)) for column in zip(*scans, strict=True)]
    return [
        confirmed(ctx, ctx.result(ctx.formed(value)), tf.logical_and(holds, ends))
        for value in (*carried, *rows)
    ]


def _limit(ctx: Context) -> Any:
    """Returns the most turns of a loop, if there are."""
    return tf.reshape(tf.cast(ctx.form(0), tf.int64), []) if ctx.has(0) else None


def _turning(ctx: Context, body: Graph, carried: list[Value]) -> Result:
    """A loop with many iterations, or one that the model's inputs end."""
    shapes, limit = [shape_of(v) for v in carried], _limit(ctx)

    def goes_on(turn: Any, going: Any, *state: Any) -> Any:
        del state
        return going if limit is None else tf.logical_and(turn < limit, going)

    def run(turn: Any, going: Any, *state: Any) -> list[Any]:
        del going
        values = [ctx.result(t, None, shape) for t, shape in zip(state, shapes, strict=True)]
        index = ctx.result(turn, None, ())
        after, *results = ctx.session.body(body, [index, Known(np.asarray(True)), *values])
        if [shape_of(v) for v in results] != shapes:
            raise Refused("a loop that carries values of other shapes from turn to turn")
        return [turn + 1, tf.reshape(ctx.formed(after), []), *map(ctx.formed, results)]

    first = tf.reshape(ctx.form(1), []) if ctx.has(1) else tf.constant(True)
    start = [tf.zeros([], tf.int64), first, *map(ctx.formed, carried)]
    _, _, *found = tf.while_loop(goes_on, run, start)
    return [ctx.result(t, None, shape) for t, shape in zip(found, shapes, strict=True)]


def _stacked(ctx: Context, values: list[Value], axis: int = 0) -> Tensor:
    shape = list(shape_of(values[0]))
    shape.insert(axis, len(values))
    return ctx.result(tf.stack([ctx.formed(v) for v in values], axis), None, shape)


def _scan(ctx: Context) -> Result:
    """A loop over the places of an axis: one pass if no iteration needs another one.

    Else each iteration is written out.
    """
    if ctx.node.version < 9:
        return _old_scan(ctx)
    body, count = _branch(ctx, "body"), int(ctx.attr("num_scan_inputs"))
    states: list[Value] = [ctx.value(i) for i in range(len(ctx.args) - count)]
    read = [ctx.value(i) for i in range(len(ctx.args) - count, len(ctx.args))]
    axes = _each(ctx, "scan_input_axes", count)
    axes = [axis_of(axis, len(shape_of(v))) for axis, v in zip(axes, read, strict=True)]
    back = _each(ctx, "scan_input_directions", count)
    count = len(body.outputs) - len(states)
    ends = _each(ctx, "scan_output_axes", count)
    turned = _each(ctx, "scan_output_directions", count)
    if not any(back) and not any(turned):
        found = _at_once(ctx, body, states, list(zip(read, axes, strict=True)), ends)
        if found is not None:
            return found
    states, written = _scanned(ctx, body, states, list(zip(read, axes, back, strict=True)))
    results: list[Value] = [*states]
    for values, axis, backwards in zip(written, ends, turned, strict=True):
        place = axis_of(axis, len(shape_of(values[0])) + 1)
        results.append(_stacked(ctx, values[::-1] if backwards else values, place))
    return results


def _at_once(
    ctx: Context, body: Graph, states: list[Value], read: list[tuple[Value, int]], ends: list[int]
) -> Result | None:
    """Returns the results of turns that do not know of each other, else nothing."""
    if len({shape_of(value)[axis] for value, axis in read}) != 1:
        return None
    ranks = [len(shape_of(v)) for v in states] + [len(shape_of(v)) - 1 for v, _ in read]
    graph = mapped(body, len(states), ranks)
    if graph is None:
        return None
    found = ctx.session.body(graph, [*states, *(_moved(v, axis, 0) for v, axis in read)])
    places = (axis_of(end, len(shape_of(v))) for v, end in zip(found, ends, strict=True))
    return [*states, *(_moved(v, 0, place) for v, place in zip(found, places, strict=True))]


def _moved(value: Value, axis: int, place: int) -> Value:
    """Returns a value with an axis at another place."""
    if axis == place:
        return value
    if isinstance(value, Known):
        return Known(np.moveaxis(value.data, axis, place))
    if not isinstance(value, Tensor):
        raise Refused("a loop over sizes")
    order = list(range(value.rank))
    order.insert(place, order.pop(axis))
    return value.transposed(order)


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
        raise Refused(f"a loop with {turns} iterations; 1 to {_MOST_TURNS} are supported")
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


def _optional(ctx: Context) -> Result:
    """A value that may be absent and is there."""
    if not ctx.has(0):
        raise Refused("values that may be absent")
    return ctx.value(0)


def _is_there(ctx: Context) -> Result:
    return Known(np.asarray(ctx.has(0)))


OPS: Mapping[str, Handler] = {
    "If": _if,
    "Loop": _loop,
    "Optional": _optional,
    "OptionalGetElement": _optional,
    "OptionalHasElement": _is_there,
    "Scan": _scan,
}
