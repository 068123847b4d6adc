"""Random numbers."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf import ir
from converters.tf.emit.context import Context, Emit
from converters.tf.emit.statements import Code, call
from converters.tf.plan.arena import Step


def _random(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.Random)
    function = f"random::{node.op.distribution.value}"
    return [call(function, c.source(node.input), c.result(node, "random"))]


OPS: Mapping[type[ir.Op], Emit] = {
    ir.Random: _random,
}
