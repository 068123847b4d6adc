"""Texts: their tokens as values or counts.

What a model says of text becomes numbers here, never code: bytes are arrays, words are weights.
"""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf import ir
from converters.tf.emit.context import Context, Emit
from converters.tf.emit.ops.layers import weight_path
from converters.tf.emit.statements import LABEL, Code, Name, Part, code, method
from converters.tf.ir import Each, Every, Letters
from converters.tf.plan.arena import Step

_SPLITS = {"whole": "Whole", "space": "Whitespace", "characters": "Characters"}


def _bytes(content: bytes) -> str:
    return f"&[{', '.join(map(str, content))}]"


def _change(change: ir.Change) -> Code:
    use = ["kernels::text::changes::Change"]
    if isinstance(change, Letters):
        return code(f"Change::{str(change).capitalize()}", use=use)
    if isinstance(change, Every):
        return code("Change::Every({}, {})", _bytes(change.of), _bytes(change.becomes), use=use)
    assert isinstance(change, Each)
    bits = f"{sum(1 << character for character in change.of.ascii):#x}"
    template = "Change::Each(Set { ascii: {}, beyond: {} }, {})"
    parts = (bits, change.of.beyond, _bytes(change.becomes))
    return code(template, *parts, use=[*use, "kernels::text::changes::Set"])


def _rest(rest: ir.Rest) -> Code:
    use = ["kernels::text::finder::Rest"]
    if rest.buckets == 1:
        return code("Rest::One", use=use)
    if rest.key is None:
        return code("Rest::Farm({})", rest.buckets, use=use)
    key: list[Part] = [part % (1 << 64) for part in rest.key]
    return code("Rest::Sip({}, {})", rest.buckets, key, use=use)


def _reading(reading: ir.Reading, rest: ir.Rest) -> Code:
    split = reading.split
    kind = f"At({split.byte})" if split.at == "byte" else _SPLITS[split.at]
    use = ["kernels::text::tokens::Reading", "kernels::text::tokens::Split"]
    changes: list[Part] = [_change(change) for change in reading.changes]
    widths: list[Part] = list(reading.widths)
    return code(
        "Reading { changes: &{}, split: Split::{}, widths: &{}, between: {}, rest: {} }",
        changes,
        kind,
        widths,
        _bytes(reading.between),
        _rest(rest),
        use=use,
    )


def _layer(c: Context, node: ir.Node) -> Name:
    op = node.op
    assert isinstance(op, ir.TokenValues | ir.TokenCounts)
    words: Part = "None"
    if node.operand(2) is not None:
        words = code("Some({})", (c.tensor(node.given(2)), c.tensor(node.given(3))))
    parts: dict[str, Part] = {
        "name": LABEL,
        "reading": _reading(op.reading, op.rest),
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


OPS: Mapping[type[ir.Op], Emit] = {
    ir.TokenCounts: _counts,
    ir.TokenValues: _values,
}
