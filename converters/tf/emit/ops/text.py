"""Texts: their tokens as values or counts.

What a model says of text becomes numbers here, never code: bytes are arrays, words are weights.
"""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf import ir
from converters.tf.emit.context import Context, Emit
from converters.tf.emit.ops.layers import weight_path
from converters.tf.emit.readings import changes_of, reading_of
from converters.tf.emit.statements import LABEL, Code, Name, Part, call, code, method
from converters.tf.plan.arena import Step


def _layer(c: Context, node: ir.Node) -> Name:
    op = node.op
    assert isinstance(op, ir.TokenValues | ir.TokenCounts)
    words: Part = "None"
    if node.operand(2) is not None:
        words = code("Some({})", (c.tensor(node.given(2)), c.tensor(node.given(3))))
    parts: dict[str, Part] = {
        "name": LABEL,
        "reading": reading_of(op.reading, op.rest),
        "words": words,
    }
    doc = f"{ir.shape_text(node.input.shape)} -> {ir.shape_text(node.output.shape)}"
    key = (op.reading, op.rest, node.operand(2))
    return c.filled(node, "text::Texts", weight_path(node, 2), parts, doc, key)


def _values(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.TokenValues)
    layer = _layer(c, node)
    out = c.layer_result(node, layer)
    if node.input.dtype is not ir.DType.STR:
        numbers = c.source(node.input)
        return [method(layer, "values_of_numbers", numbers, c.source(node.given(1)), out)]
    texts = (c.source(node.input), 1 if op.row is None else op.row)
    return [method(layer, "values", texts, c.source(node.given(1)), out)]


def _counts(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.TokenCounts)
    layer = _layer(c, node)
    bins = (c.source(node.given(1)), op.size, op.binary)
    return [method(layer, "counts", c.source(node.input), bins, c.layer_result(node, layer))]


def _same(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.SameText)
    sides = (c.source(node.input), c.source(node.given(1)))
    return [call("text::same", sides, node.op.differs, c.result(node, "same"))]


def _matches(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.TextMatch)
    texts = (c.source(node.input), changes_of(op.changes))
    table = (c.source(node.given(1)), c.source(node.given(2)))
    ends = (op.start, op.matching)
    return [call("text::matches", texts, table, ends, c.result(node, "matches"))]


def _prints(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.TextPrint)
    texts = (c.source(node.input), changes_of(op.changes))
    return [call("text::prints", texts, c.result(node, "prints"))]


OPS: Mapping[type[ir.Op], Emit] = {
    ir.SameText: _same,
    ir.TextMatch: _matches,
    ir.TextPrint: _prints,
    ir.TokenCounts: _counts,
    ir.TokenValues: _values,
}
