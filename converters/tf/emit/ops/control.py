"""Ops with a graph inside."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf import ir
from converters.tf.emit.context import Context, Emit
from converters.tf.emit.names import wishes
from converters.tf.emit.statements import Code, Part, call, code, lines
from converters.tf.ir.expressions import is_open
from converters.tf.plan.arena import Step


def _loop(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.Loop)
    turn, *carried = (port.value for port in op.body.inputs)
    slots = [c.name_slot(v, *wishes(v.name or node.layer, "carried")) for v in carried]
    c.carried.update(zip(node.outputs, carried, strict=True))
    starts = [
        call("layout::copy", c.source(start), slot)
        for start, slot in zip(node.present, slots, strict=True)
    ]
    counted = c.plan.places[turn].elements > 0
    inner = [call("layout::set", "turn", c.name_slot(turn, "turn"))] if counted else []
    for part in step.body:
        inner += c.statements(part)
    for port, value, slot in zip(op.body.outputs, carried, slots, strict=True):
        if c.plan.root(port.value) is not value:
            inner.append(call("layout::copy", c.source(port.value), slot))
    if op.going is not None:
        going = slots[op.going]
        inner.insert(0, code("if !layout::is_set(m, {})? { break; }", going, use=["layout"]))
    trips: Part
    if not isinstance(op.trips, ir.Batch) and not is_open(op.trips):
        trips = f"0..{op.trips}"
    else:
        trips = code("(0..i32::MAX).take({})", c.dim(op.trips))
    turns = code("for {} in {} {", "turn" if counted else "_", trips)
    # One statement, which nothing takes apart.
    return [*starts, lines([turns, *inner, code("}")])]


OPS: Mapping[type[ir.Op], Emit] = {ir.Loop: _loop}
