"""Branches and loops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.load.onnx.context import Context, Handler, Result
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

    found = tf.cond(tf.reshape(ctx.form(0), []), run("then_branch"), run("else_branch"))
    first = shapes[0]
    if any(
        shape_of(a) != shape_of(b) for other in shapes for a, b in zip(first, other, strict=True)
    ):
        raise Refused("branches whose results have different shapes")
    found = found if isinstance(found, list | tuple) else [found]
    return [ctx.result(t, None, shape_of(v)) for t, v in zip(found, first, strict=True)]


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


def _stacked(ctx: Context, values: list[Value]) -> Tensor:
    shape = (len(values), *shape_of(values[0]))
    return ctx.result(tf.stack([ctx.formed(v) for v in values]), None, shape)


_MOST_TURNS = 64

OPS: Mapping[str, Handler] = {"If": _if, "Loop": _loop}
