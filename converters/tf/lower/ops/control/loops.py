"""Loops.

How often a loop runs, and the values of its counters in every turn, are found by running the
counters alone; everything else that a loop carries becomes carried values of `ir.Loop`, a list of
tensors by its stacked elements. Where the inputs decide when a loop ends, its counters are carried,
too, and so is the truth value of its condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind
from converters.tf.ir.build import Builder
from converters.tf.ir.expressions import is_open
from converters.tf.ir.symbolic import Symbol, add, multiply
from converters.tf.lower.graph import (
    POISON,
    Context,
    Handler,
    Lowering,
    Result,
    Tensor,
    Unsupported,
)
from converters.tf.lower.ops.shape.lists import GROWS, RESIZE, SET, lengthened
from converters.tf.lower.ops.shape.lists import OPS as LISTS
from converters.tf.lower.tensors import TensorList
from converters.tf.lower.trace import TensorRef, TraceFunction, TraceNode

# Turns after which a loop counts as endless, unless the inputs end it.
_MOST_TURNS = 100_000
_MOST_OPEN_TURNS = 2**31 - 1


@dataclass(frozen=True)
class _Counters:
    """The values of all counters: per turn, one more than turns, by place.

    With `open`, there are as many turns, and the values are those of the first ones.
    """

    turns: int
    values: dict[int, list[ir.Array]]
    open: ir.Dim | None = None

    @property
    def examples(self) -> ir.Dim | None:
        """Returns the turns of a loop that has one for every example."""
        return self.open if isinstance(self.open, ir.Batch) else None


def _returned(function: TraceFunction, ref: TensorRef) -> str:
    """Returns the node that a result comes from, identities left out."""
    node = function.nodes[ref.node]
    while node.op == "Identity":
        node = function.nodes[node.inputs[0].node]
    return node.name


def _invariants(body: TraceFunction) -> list[bool]:
    return [
        _returned(body, ref) == name for name, ref in zip(body.arguments, body.results, strict=True)
    ]


def _count(
    low: Lowering, condition: TraceFunction, body: TraceFunction, args: Sequence[Tensor]
) -> _Counters | None:
    """Runs what depends on numbers alone; returns nothing if the inputs decide when a loop ends."""
    state = [a if _is_scalar(a) else POISON for a in args]
    history = [list(state)]
    with low.apart():
        while True:
            (going,) = low.call(condition, state)
            if not isinstance(going, ir.Value) or going.data is None:
                return None
            if not bool(going.data):
                break
            if len(history) > _MOST_TURNS:
                raise Unsupported(f"a loop of more than {_MOST_TURNS} turns")
            state = [r if _is_scalar(r) else POISON for r in low.call(body, state)]
            history.append(state)
    values = {}
    for place in range(len(args)):
        column = [row[place] for row in history]
        known = [v.data for v in column if isinstance(v, ir.Value) and v.data is not None]
        if len(known) == len(history):
            values[place] = known
    return _Counters(len(history) - 1, values)


def _is_scalar(tensor: Tensor) -> bool:
    return isinstance(tensor, ir.Value) and tensor.data is not None and tensor.data.size == 1


def _counter(build: Builder, index: ir.Value, values: list[ir.Array]) -> ir.Value:
    """Returns a counter's value in the turn of a loop's body."""
    turns = np.stack(values[:-1])
    first = values[0]
    if np.all(turns == first):
        return ir.constant(first)
    step = turns[1] - turns[0]
    if first.ndim == 0 and np.all(np.diff(turns) == step) and first.dtype.kind in "iu":
        dtype = ir.DType.of(first.dtype)
        value = build.cast(index, dtype)
        if step != 1:
            value = build.binary(BinaryKind.MUL, value, build.scalar(int(step), dtype))
        if first != 0:
            value = build.binary(BinaryKind.ADD, value, build.scalar(int(first), dtype))
        return value
    return build.gather(ir.constant(turns), index, 0)


def _start(build: Builder, arg: Tensor, shape: ir.Shape | None) -> ir.Value:
    """Returns what a carried value is before the first turn."""
    if isinstance(arg, Symbol):
        known = arg.known()
        if known is None:
            raise Unsupported("a loop carries the batch size")
        return ir.constant(known)
    if isinstance(arg, TensorList):
        if arg.stacked is not None:
            return arg.stacked
        if shape is None:
            raise Unsupported("a list of tensors of unknown shape")
        zero = build.scalar(0, arg.dtype)
        return build.broadcast_to(zero, (arg.length, *shape))
    if isinstance(arg, ir.Value):
        return arg if shape is None else build.broadcast_to(arg, shape)
    raise Unsupported(f"a loop carries a {type(arg).__name__}")


def _shape_after(result: Tensor) -> ir.Shape | None:
    if isinstance(result, TensorList):
        return result.shape
    return result.shape if isinstance(result, ir.Value) else None


def _while(ctx: Context) -> Result:
    low = ctx.low
    condition = low.trace.functions[ctx.attr("cond").name]
    body = low.trace.functions[ctx.attr("body").name]
    args = list(ctx.args)
    counters = _count(low, condition, body, args)
    if counters is None:
        trips = _trips(low, condition, body, args)
        if trips is not None:
            return _counted(ctx, body, args, trips)
        return _open(ctx, condition, body, args)
    if counters.turns == 0:
        return tuple(args)
    args = _grown(low, body, args, counters)
    outputs, results, inner, starts = _carry(low, body, args, counters)
    graph = _graph(inner, outputs)
    finals = ctx.build.emit_many(
        ir.Loop(counters.turns, graph),
        list(starts.values()),
        [(v.dtype, v.shape) for v in outputs],
    )
    return _results(args, counters, dict(zip(starts, finals, strict=True)), results)


def _grown(
    low: Lowering, body: TraceFunction, args: list[Tensor], counters: _Counters
) -> list[Tensor]:
    """Gives lists that grow in a loop the length that they have after it."""
    places = dict(zip(body.arguments, range(len(args)), strict=True))
    found: dict[str, tuple[int, TensorRef]] = {}
    for node in body.nodes.values():
        if node.op == SET and node.attrs.get(RESIZE):
            place = places.get(_written_list(body, node))
            if place is not None:
                found[node.name] = (place, node.inputs[1])
    lengths = {place: [0] for place, _ in found.values()}
    asked = replace(
        body, name=f"{body.name}/places", results=tuple(ref for _, ref in found.values())
    )
    for turn in range(counters.turns if found else 0):
        state = [
            ir.constant(counters.values[i][turn]) if i in counters.values else POISON
            for i in range(len(args))
        ]
        with low.apart():
            indices = low.call(asked, state)
        for (place, _), index in zip(found.values(), indices, strict=True):
            if not isinstance(index, ir.Value) or index.data is None:
                raise Unsupported(GROWS)
            lengths[place].append(int(index.data) + 1)
    result = list(args)
    for place, needed in lengths.items():
        arg = args[place]
        if isinstance(arg, TensorList):
            grown = lengthened(low.build, arg, max(needed))
            result[place] = replace(grown, grows=True)
    return result


def _written_list(body: TraceFunction, node: TraceNode) -> str:
    """Returns the argument whose list a node writes, through others that write it before."""
    while node.name not in body.arguments:
        if node.op not in (SET, "Identity"):
            return ""
        node = body.nodes[node.inputs[0].node]
    return node.name


def _trips(
    low: Lowering, condition: TraceFunction, body: TraceFunction, args: list[Tensor]
) -> ir.Dim | None:
    """Returns how often a loop turns that a dimension ends, else nothing.

    It is one whose counters, from 0 on by 1, are all below that dimension.
    """
    places = {name: place for place, name in enumerate(condition.arguments)}
    steps, same = _steps(low, body, args), _invariants(body)
    found: set[ir.Dim] = set()
    waiting = [*condition.results]
    while waiting:
        node = condition.nodes[_returned(condition, waiting.pop())]
        if node.op == "LogicalAnd":
            waiting += node.inputs
            continue
        if node.op != "Less":
            return None
        counter, limit = (places.get(_returned(condition, ref), -1) for ref in node.inputs)
        arg = args[limit]
        if limit < 0 or not same[limit] or not isinstance(arg, Symbol) or arg.dims.size != 1:
            return None
        if [int(v) for v in steps.get(counter, ())] != [0, 1, 2]:
            return None
        dim = arg.dims.item()
        if not isinstance(dim, ir.Batch) and not is_open(dim):
            return None
        found.add(dim)
    return found.pop() if len(found) == 1 else None


def _steps(low: Lowering, body: TraceFunction, args: list[Tensor]) -> dict[int, list[ir.Array]]:
    """Returns the first values of what a body adds a number to in every turn, by place."""
    found = {}
    for place, (arg, ref) in enumerate(zip(args, body.results, strict=True)):
        node = body.nodes[_returned(body, ref)]
        if not isinstance(arg, ir.Value) or arg.data is None or arg.data.size != 1:
            continue
        before, after = (body.arguments[place], arg), node.name
        if node.op not in ("Add", "AddV2") or after == before[0]:
            continue
        if _returned(body, node.inputs[0]) != before[0]:
            continue
        added = replace(body, name=f"{body.name}/{place}", results=(node.inputs[1],))
        with low.apart():
            (step,) = low.call(added, [POISON] * len(args))
        if isinstance(step, ir.Value) and step.data is not None:
            found[place] = [np.asarray(arg.data + turn * step.data) for turn in range(3)]
    return found


def _counted(
    ctx: Context, body: TraceFunction, args: list[Tensor], trips: ir.Dim
) -> tuple[Tensor, ...]:
    """A loop over an open dimension; over the batch, it only maps lists, one turn an example."""
    low, same = ctx.low, _invariants(body)
    counters = _Counters(2, _steps(low, body, args), trips)
    for place, arg in enumerate(args):
        if place in counters.values or same[place] or not isinstance(trips, ir.Batch):
            continue
        if not isinstance(arg, TensorList) or arg.length != trips:
            raise Unsupported("a loop hands a tensor from example to example")
    outputs, results, inner, starts = _carry(low, body, args, counters)
    finals = ctx.build.emit_many(
        ir.Loop(trips, _graph(inner, outputs)),
        list(starts.values()),
        [(v.dtype, v.shape) for v in outputs],
    )
    for place, (first, second, _) in counters.values.items():
        last = np.empty((), object)
        last[()] = add(int(first), multiply(trips, int(second) - int(first)))
        args[place] = Symbol(last, first.dtype.name)
    return _results(args, _Counters(2, {}), dict(zip(starts, finals, strict=True)), results)


def _open(
    ctx: Context, condition: TraceFunction, body: TraceFunction, args: list[Tensor]
) -> tuple[Tensor, ...]:
    """A loop that ends when the model's inputs say so."""
    (first,) = ctx.low.call(condition, args, ctx.build.layer)
    counters = _Counters(0, {})
    outputs, results, inner, starts = _carry(ctx.low, body, args, counters, condition)
    for going in (first, outputs[-1]):
        if not isinstance(going, ir.Value) or (going.dtype, going.shape) != (ir.DType.BOOL, ()):
            raise Unsupported("a loop whose condition is not one truth value for all examples")
    assert isinstance(first, ir.Value)
    inner.inputs.append(ir.Value(ir.DType.BOOL, (), None, "going"))
    *finals, _ = ctx.build.emit_many(
        ir.Loop(_MOST_OPEN_TURNS, _graph(inner, outputs), len(starts)),
        [*starts.values(), first],
        [(v.dtype, v.shape) for v in outputs],
    )
    return _results(args, counters, dict(zip(starts, finals, strict=True)), results)


def _graph(inner: _Body, outputs: Sequence[ir.Value]) -> ir.Graph:
    return ir.Graph(
        "body",
        tuple(ir.Port(f"in_{i}", v) for i, v in enumerate(inner.inputs)),
        tuple(ir.Port(f"out_{i}", v) for i, v in enumerate(outputs)),
        tuple(inner.nodes),
    )


def _carry(
    low: Lowering,
    body: TraceFunction,
    args: list[Tensor],
    counters: _Counters,
    condition: TraceFunction | None = None,
) -> tuple[list[ir.Value], list[Tensor], _Body, dict[int, ir.Value]]:
    """Lowers a body.

    Returns:
        The carried values after a turn, with the condition's at the end if there is one; all that
        the body returns; its inputs and nodes; the carried values before the first turn, by place.
    """
    same = _invariants(body)
    carried = [
        place
        for place, arg in enumerate(args)
        if place not in counters.values and not _outside(arg, same[place])
    ]
    shapes = _probe(low, body, args, carried, same, counters)
    starts = {p: _start(low.build, args[p], shapes[p]) for p in carried}
    inner, results, going = _body(low, body, args, starts, counters, condition)
    outputs = [_carried(results[p]) for p in carried]
    for place, value in zip(carried, outputs, strict=True):
        if (value.shape, value.dtype) != (starts[place].shape, starts[place].dtype):
            raise Unsupported(
                f"a carried value changes from {ir.shape_text(starts[place].shape)} "
                f"to {ir.shape_text(value.shape)}"
            )
    outputs += [_carried(x) for x in going]
    return outputs, results, inner, starts


def _results(
    args: list[Tensor],
    counters: _Counters,
    finals: dict[int, ir.Value],
    inside: list[Tensor],
) -> tuple[Tensor, ...]:
    out: list[Tensor] = []
    for place, arg in enumerate(args):
        if place in counters.values:
            out.append(ir.constant(counters.values[place][-1]))
        elif place not in finals:
            out.append(arg)
        elif isinstance(arg, TensorList):
            shape = _shape_after(inside[place])
            out.append(TensorList(finals[place], arg.length, arg.dtype, shape))
        else:
            out.append(finals[place])
    return tuple(out)


def _outside(arg: Tensor, invariant: bool) -> bool:
    """Returns whether the body can use an argument as it is."""
    if not invariant:
        return False
    if isinstance(arg, TensorList):
        return arg.stacked is not None and arg.stacked.is_constant
    return not isinstance(arg, ir.Value) or arg.is_constant


def _carried(result: Tensor) -> ir.Value:
    if isinstance(result, TensorList) and result.stacked is not None:
        return result.stacked
    if isinstance(result, ir.Value):
        return result
    if result is POISON:
        raise Unsupported("a loop carries the result of a node that is not supported")
    raise Unsupported(f"a loop carries a {type(result).__name__}")


class _Body:
    """The inputs and nodes of a body."""

    def __init__(self) -> None:
        self.inputs: list[ir.Value] = []
        self.nodes: list[ir.Node] = []


def _body(
    low: Lowering,
    body: TraceFunction,
    args: list[Tensor],
    starts: dict[int, ir.Value],
    counters: _Counters,
    condition: TraceFunction | None = None,
) -> tuple[_Body, list[Tensor], list[Tensor]]:
    """Returns a body, all that it returns, and what the condition says of that."""
    inner = _Body()
    layer = low.build.layer
    with low.inside() as build:
        build.layer = layer
        index = ir.Value(ir.DType.I32, (), None, "turn")
        inner.inputs.append(index)
        local: list[Tensor] = []
        for place, arg in enumerate(args):
            if isinstance(arg, TensorList):
                arg = replace(arg, own=index if arg.length == counters.examples else None)
            if place in counters.values:
                local.append(_counter(build, index, counters.values[place]))
            elif place in starts:
                start = starts[place]
                value = ir.Value(start.dtype, start.shape, None, start.name)
                inner.inputs.append(value)
                if isinstance(arg, TensorList):
                    shape = start.shape[1:]
                    local.append(replace(arg, stacked=value, shape=shape))
                else:
                    local.append(value)
            else:
                local.append(arg)
        results = low.call(body, local, layer)
        going = low.call(condition, results, layer) if condition is not None else []
        inner.nodes = build.nodes
    return inner, results, going


def _probe(
    low: Lowering,
    body: TraceFunction,
    args: list[Tensor],
    carried: list[int],
    same: list[bool],
    counters: _Counters,
) -> dict[int, ir.Shape | None]:
    """Returns the shapes of carried values after a turn (a list: of its elements)."""
    open_lists = any(isinstance(args[p], TensorList) and not same[p] for p in carried)
    grown = [p for p in carried if isinstance(args[p], ir.Value) and not same[p]]
    if not open_lists and not grown:
        return dict.fromkeys(carried)
    with low.apart() as problems:
        starts = {}
        for place in carried:
            arg = args[place]
            if not isinstance(arg, TensorList) or arg.stacked is not None:
                starts[place] = _start(low.build, arg, None)
        _, results, _ = _body(low, body, args, starts, counters)
    shapes: dict[int, ir.Shape | None] = {p: _shape_after(results[p]) for p in carried}
    for place in carried:
        arg = args[place]
        if isinstance(arg, TensorList) and arg.stacked is not None:
            shapes[place] = None
    if problems:
        low.problems.extend(p for p in problems if p not in low.problems)
    return shapes


def _loop_of_tensorflow_1(ctx: Context) -> Result:
    raise Unsupported("a loop of TensorFlow 1; freeze the model with control flow v2")


OPS: dict[str, Handler] = {
    "While": _while,
    "StatelessWhile": _while,
    **LISTS,
    **dict.fromkeys(("Merge", "Switch", "Enter", "NextIteration"), _loop_of_tensorflow_1),
}
