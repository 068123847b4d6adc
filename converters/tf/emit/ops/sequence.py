"""Layers over sequences: attention and recurrent layers."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf import ir
from converters.tf.emit.context import Context, Emit
from converters.tf.emit.functions import float_literal
from converters.tf.emit.ops.layers import shapes_text, weight_path
from converters.tf.emit.statements import (
    LABEL,
    PARALLEL,
    WEIGHTS,
    Code,
    Name,
    Part,
    code,
    method,
)
from converters.tf.ir.expressions import is_open
from converters.tf.ir.sizes import numbers
from converters.tf.plan.arena import Step


def _attention(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.Attention)
    q, k, v, mask = node.given(0), node.given(1), node.given(2), node.operand(3)
    _, heads, queries, depth = numbers(q.shape)
    _, _, keys, width = numbers(v.shape)
    if op.beside:
        heads, queries, keys = queries, heads, numbers(v.shape)[1]
    parts: dict[str, Part] = {
        "name": LABEL,
        "heads": heads,
        "queries": queries,
        "keys": keys,
        "depth": depth,
        "width": width,
        "scale": float_literal(op.scale),
        "causal": op.causal,
    }
    key = (op, heads, queries, keys, depth, width)
    path = f"{node.layer}/attention" if node.layer else "attention"
    layer = c.filled(node, "attention::Attention", path, parts, shapes_text(node), key)
    out = c.layer_result(node, layer)
    ends = (out, c.scratch(step))
    if op.beside:
        sides: list[Part] = [_lines(c, side) for side in (q, k, v)]
        return [method(layer, "run_beside", sides, *ends)]
    operands = c.sources([q, k, v])
    if mask is None:
        return [method(layer, "run", operands, *ends)]
    dims: list[Part] = [c.dim(d) for d in (1,) * (4 - mask.rank) + mask.shape]
    masked = (code("{}.into()", c.source(mask)), dims)
    return [method(layer, "run_masked", operands, masked, *ends)]


def _lines(c: Context, side: ir.Value) -> Code:
    """Returns the lines of heads that lie side by side, from a column on."""
    *_, heads, depth = numbers(side.shape)
    first, row = c.plan.columns.get(side, (0, heads * depth))
    whole = c.plan.root(side) if side in c.plan.columns else side
    return code("Lines::of{}", (c.source(whole), first, row), use=["attention::Lines"])


def _order(node: ir.Node, op: ir.Lstm | ir.Gru | ir.SimpleRnn) -> Code:
    _, steps, inputs = numbers(node.input.shape)
    steps = 0 if is_open(steps) else steps
    text = f"Order::new({steps}, {inputs}, {_units(node)})"
    text += ".reversed()" if op.reverse else ""
    text += ".zero_masked()" if op.zero_masked else ""
    return code("{}", text, use=["recurrent::Order"])


def _units(node: ir.Node) -> int:
    return numbers(node.given(2).shape)[0]


def _operands(c: Context, node: ir.Node, **places: int) -> Code:
    """Returns what a recurrent layer reads, by the place of each operand that may be there."""
    text = code("Operands::of({})", c.source(node.input), use=["recurrent::Operands"])
    for name, index in places.items():
        value = node.operand(index)
        if value is not None:
            text = code(f"{{}}.{name}({{}})", text, c.source(value))
    return text


def _states(c: Context, node: ir.Node, layer: Name, *words: str) -> list[Part]:
    names: list[Part] = []
    for value, word in zip(node.outputs, words, strict=True):
        base = f"{layer.name}_{word}"
        names.append(c.name_slot(value, base, base))
    return names


def _field(
    c: Context, node: ir.Node, kind: str, parts: list[Part], key: tuple[object, ...]
) -> Name:
    doc = shapes_text(node, f"{_units(node)} units")
    return c.made(node, f"recurrent::{kind}", weight_path(node, 1), parts, doc, key)


def _lstm(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.Lstm)
    kernel, recurrent, bias = node.given(1), node.given(2), node.operand(3)
    order = _order(node, op)
    both: list[Part] = [c.tensor(kernel), c.tensor(recurrent)]
    parts: list[Part] = [LABEL, WEIGHTS, order, both, c.optional_tensor(bias), PARALLEL]
    layer = _field(c, node, "Lstm", parts, (op, kernel, recurrent, bias, order))
    operands = _operands(c, node, hidden=4, cell=5, mask=6)
    sequence, *states = _states(c, node, layer, "sequence", "hidden", "cell")
    return [method(layer, "run", operands, sequence, states, c.scratch(step))]


def _gru(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.Gru)
    kernel, recurrent = node.given(1), node.given(2)
    bias, again = node.operand(3), node.operand(4)
    order = _order(node, op)
    both: list[Part] = [c.tensor(kernel), c.tensor(recurrent)]
    biases: list[Part] = [c.optional_tensor(bias), c.optional_tensor(again)]
    parts: list[Part] = [LABEL, WEIGHTS, order, both, biases, op.reset_after, PARALLEL]
    layer = _field(c, node, "Gru", parts, (op, kernel, recurrent, bias, again, order))
    operands = _operands(c, node, hidden=5, mask=6)
    sequence, hidden = _states(c, node, layer, "sequence", "hidden")
    return [method(layer, "run", operands, sequence, hidden, c.scratch(step))]


def _simple_rnn(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.SimpleRnn)
    kernel, recurrent, bias = node.given(1), node.given(2), node.operand(3)
    order = _order(node, op)
    both: list[Part] = [c.tensor(kernel), c.tensor(recurrent)]
    ends = (c.optional_tensor(bias), c.activation(op.activation))
    parts: list[Part] = [LABEL, WEIGHTS, order, both, *ends, PARALLEL]
    layer = _field(c, node, "SimpleRnn", parts, (op, kernel, recurrent, bias, order))
    operands = _operands(c, node, hidden=4, mask=5)
    sequence, hidden = _states(c, node, layer, "sequence", "hidden")
    return [method(layer, "run", operands, sequence, hidden, c.scratch(step))]


OPS: Mapping[type[ir.Op], Emit] = {
    ir.Attention: _attention,
    ir.Gru: _gru,
    ir.Lstm: _lstm,
    ir.SimpleRnn: _simple_rnn,
}
