"""Operators of the user's own: calls of functions of `src/custom`."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf import ir
from converters.tf.emit.context import Context, Emit
from converters.tf.emit.functions import float_literal
from converters.tf.emit.statements import Code, Part, code
from converters.tf.plan.arena import Step
from tools.codegen.rust import string_literal


def _custom(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.Custom)
    own = node.op.own
    given: list[Part] = [
        code("(r.read({}.into())?, {})", c.source(value), c.dims(value.shape))
        for value in node.present
    ]
    slots: list[Part] = [c.named(value, node, own.function) for value in node.outputs]
    results = ", ".join(f"y{number}" for number in range(len(slots)))
    places = [
        code(f"(y{number}, {{}})", c.dims(value.shape)) for number, value in enumerate(node.outputs)
    ]
    parts = [*given, *map(_literal, own.arguments), *places]
    called = code(
        f"crate::custom::{own.module}::{own.function}({', '.join(['{}'] * len(parts))})", *parts
    )
    reader = "r" if given else "_"
    names = (string_literal(node.layer or own.name), string_literal(own.name))
    template = (
        f"{{ let ({reader}, [{results}]) = m.write_many({{}})?; {{}}.map_err(refused{{}})?; }}"
    )
    return [code(template, slots, called, names, use=["custom::refused"])]


def _literal(value: ir.Argument) -> str:
    """Returns an argument as a literal: a truth value, a number, a text, or a slice of them."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return float_literal(value)
    if isinstance(value, str):
        return string_literal(value)
    return f"&[{', '.join(map(_literal, value))}]"


OPS: Mapping[type[ir.Op], Emit] = {
    ir.Custom: _custom,
}
