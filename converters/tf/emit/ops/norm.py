"""Normalizations."""

from __future__ import annotations

import math
from collections.abc import Mapping

from converters.tf import ir
from converters.tf.emit.context import Context, Emit
from converters.tf.emit.functions import float_literal
from converters.tf.emit.ops.layers import shapes_text, weight_path
from converters.tf.emit.statements import LABEL, Code, Part, call, code, method
from converters.tf.ir.sizes import numbers
from converters.tf.plan.arena import Step


def _softmax(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.Softmax)
    function = "log_softmax" if node.op.log else "softmax"
    width = node.input.shape[-1]
    out = c.result(node, function)
    return [call(f"softmax::{function}", c.source(node.input), c.dim(width), out)]


def _norm(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.Norm)
    scale, shift = node.operand(1), node.operand(2)
    width = numbers(node.input.shape)[-1]
    parts: dict[str, Part] = {
        "name": LABEL,
        "kind": code("{}", f"Kind::{str(op.kind).capitalize()}", use=["norm::Kind"]),
        "width": width,
        "scale": c.optional_tensor(scale),
        "shift": c.optional_tensor(shift),
        "epsilon": float_literal(op.epsilon),
    }
    key = (op, scale, shift, width)
    path = weight_path(node, 1)
    layer = c.filled(node, "norm::Norm", path, parts, shapes_text(node), key)
    return [method(layer, "run", c.source(node.input), c.layer_result(node, layer))]


def _group_norm(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.GroupNorm)
    scale, shift = node.operand(1), node.operand(2)
    _, *positions, channels = numbers(node.input.shape)
    sizes = (math.prod(positions), channels, op.groups)
    parts: dict[str, Part] = {
        "name": LABEL,
        "sizes": sizes,
        "scale": c.optional_tensor(scale),
        "shift": c.optional_tensor(shift),
        "epsilon": float_literal(op.epsilon),
    }
    key = (op, scale, shift, sizes)
    path = weight_path(node, 1)
    layer = c.filled(node, "norm::GroupNorm", path, parts, shapes_text(node), key)
    return [method(layer, "run", c.source(node.input), c.layer_result(node, layer))]


OPS: Mapping[type[ir.Op], Emit] = {
    ir.GroupNorm: _group_norm,
    ir.Norm: _norm,
    ir.Softmax: _softmax,
}
