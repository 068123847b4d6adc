"""Loops and the lists of tensors that they read and write.

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
from converters.tf.build import Builder, static
from converters.tf.ir import BinaryKind
from converters.tf.lower import (
    POISON,
    Context,
    Handler,
    Lowering,
    Result,
    Tensor,
    Unsupported,
    element_type,
)
from converters.tf.symbolic import Symbol
from converters.tf.tensors import TensorList
from converters.tf.trace import TensorRef, TraceFunction, TraceNode

# Turns after which a loop counts as endless, unless the inputs end it.
_MOST_TURNS = 100_000
_MOST_OPEN_TURNS = 2**31 - 1
_SET = "TensorListSetItem"
# Says that a list grows if it is written past its end.
_RESIZE = "resize_if_index_out_of_bounds"
_GROWS = "a list that grows to a length that is not known"


@dataclass(frozen=True)
class _Counters:
    """The values of all counters: per turn, one more than turns, by place."""

    turns: int
    values: dict[int, list[ir.Array]]


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
        if node.op == _SET and node.attrs.get(_RESIZE):
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
                raise Unsupported(_GROWS)
            lengths[place].append(int(index.data) + 1)
    result = list(args)
    for place, needed in lengths.items():
        arg = args[place]
        if isinstance(arg, TensorList):
            grown = _lengthened(low.build, arg, max(arg.length, *needed))
            result[place] = replace(grown, grows=True)
    return result


def _written_list(body: TraceFunction, node: TraceNode) -> str:
    """Returns the argument whose list a node writes, through others that write it before."""
    while node.name not in body.arguments:
        if node.op not in (_SET, "Identity"):
            return ""
        node = body.nodes[node.inputs[0].node]
    return node.name


def _lengthened(build: Builder, known: TensorList, length: int) -> TensorList:
    """Returns a list with zeros at its end."""
    if known.stacked is None or length == known.length:
        return replace(known, length=length)
    rest = (length - known.length, *known.stacked.shape[1:])
    zeros = build.broadcast_to(build.scalar(0, known.dtype), rest)
    parts = [known.stacked, zeros] if known.length else [zeros]
    return replace(known, stacked=build.concat(parts, 0), length=length)


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
            if place in counters.values:
                local.append(_counter(build, index, counters.values[place]))
            elif place in starts:
                start = starts[place]
                value = ir.Value(start.dtype, start.shape, None, start.name)
                inner.inputs.append(value)
                if isinstance(arg, TensorList):
                    shape = start.shape[1:]
                    local.append(TensorList(value, arg.length, arg.dtype, shape, arg.grows))
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


def _shape_hint(ctx: Context, index: int) -> ir.Shape | None:
    """Returns the shape of a list's elements if it is known at once."""
    try:
        dims = ctx.dims(index).ravel()
    except Unsupported:
        return None
    if any(d == -1 for d in dims):
        return None
    return tuple(dims) if dims.size else None


def _reserve(ctx: Context) -> Result:
    dtype = element_type(ctx.attr("element_dtype"))
    return TensorList(None, ctx.integer(1), dtype, _shape_hint(ctx, 0))


def _from_tensor(ctx: Context) -> Result:
    x = ctx.value(0)
    length = static(x.shape[0], "the length of a list")
    return TensorList(x, length, x.dtype, x.shape[1:])


def _list(ctx: Context) -> TensorList:
    arg = ctx.args[0]
    if not isinstance(arg, TensorList):
        raise Unsupported("a list that is no list of tensors")
    return arg


def _stack(ctx: Context) -> Result:
    known = _list(ctx)
    if known.stacked is None:
        if known.shape is None:
            raise Unsupported("a list of tensors of unknown shape")
        return ctx.build.broadcast_to(
            ctx.build.scalar(0, known.dtype), (known.length, *known.shape)
        )
    return known.stacked


def _get(ctx: Context) -> Result:
    known = _list(ctx)
    if known.stacked is None:
        if known.shape is None:
            return POISON
        return ctx.build.broadcast_to(ctx.build.scalar(0, known.dtype), known.shape)
    index = ctx.value(1)
    if index.data is not None:
        part = ctx.build.part(known.stacked, 0, int(index.data), 1)
        return ctx.build.reshape(part, known.stacked.shape[1:])
    return ctx.build.gather(known.stacked, index, 0)


def _set(ctx: Context) -> Result:
    known, index, item = _list(ctx), ctx.value(1), ctx.value(2)
    if ctx.attr(_RESIZE) and not known.grows:
        if index.data is None:
            raise Unsupported(_GROWS)
        known = _lengthened(ctx.build, known, max(known.length, int(index.data) + 1))
    if known.stacked is None and known.shape is None and ctx.low.probing:
        return TensorList(None, known.length, known.dtype, item.shape, known.grows)
    stacked = known.stacked
    if stacked is None:
        zero = ctx.build.scalar(0, known.dtype)
        stacked = ctx.build.broadcast_to(zero, (known.length, *item.shape))
    index = ctx.build.cast(index, ir.DType.I32)
    stacked = ctx.build.emit(ir.Update(), [stacked, index, item], stacked.shape)
    return TensorList(stacked, known.length, known.dtype, item.shape, known.grows)


def _length(ctx: Context) -> Result:
    if _list(ctx).grows:
        raise Unsupported("a loop asks how long the list is that it writes")
    return ir.constant(np.asarray(_list(ctx).length, np.int32))


def _element_shape(ctx: Context) -> Result:
    known = _list(ctx)
    if known.shape is None:
        raise Unsupported("a list of tensors of unknown shape")
    dims = np.empty(len(known.shape), object)
    dims[:] = known.shape
    return Symbol(dims, ctx.attr("shape_type", "int32"))


def _loop_of_tensorflow_1(ctx: Context) -> Result:
    raise Unsupported("a loop of TensorFlow 1; freeze the model with control flow v2")


OPS: dict[str, Handler] = {
    "While": _while,
    "StatelessWhile": _while,
    "TensorListReserve": _reserve,
    "TensorListFromTensor": _from_tensor,
    "TensorListStack": _stack,
    "TensorListGetItem": _get,
    "TensorListSetItem": _set,
    "TensorListLength": _length,
    "TensorListElementShape": _element_shape,
    **dict.fromkeys(("Merge", "Switch", "Enter", "NextIteration"), _loop_of_tensorflow_1),
}
