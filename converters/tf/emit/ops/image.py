"""Ops on images and on boxes in them."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf import ir
from converters.tf.emit.context import Context, Emit
from converters.tf.emit.functions import float_literal
from converters.tf.emit.ops.layers import axis
from converters.tf.emit.statements import Code, call, code
from converters.tf.ir.sizes import numbers
from converters.tf.plan.arena import Step


def _pool(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.Pool)
    _, *spatial, channels = numbers(node.input.shape)
    axes = [
        axis(size, taps, stride, 1, pad)
        for size, taps, stride, pad in zip(spatial, op.size, op.strides, op.padding, strict=True)
    ]
    if len(axes) == 1:
        axes.insert(0, axis(1, 1, 1, 1, (0, 0)))
    both = code("[{}; 2]", axes[0]) if axes[0] == axes[1] else code("{}", [*axes])
    kind = f"pool::Kind::{str(op.kind).capitalize()}"
    out = c.result(node, "pool")
    return [call("pool::pool", kind, both, channels, c.source(node.input), out)]


def _resize(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.Resize)
    template = "resize::Corners { align: {}, half_pixel: {} }"
    corners = code(template, op.align_corners, op.half_pixel)
    out = (c.result(node, "resized"), c.dims(node.output.shape))
    return [call(f"resize::{op.kind}", c.shaped(node.input), corners, out)]


def _suppress(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.Suppress)
    boxes, scores = node.given(0), node.given(1)
    limits = code(
        "Limits { overlap: {}, score: {}, in_order: {} }",
        *(float_literal(op.overlap), float_literal(op.score), op.in_order),
        use=["kernels::ops::image::suppress::Limits"],
    )
    rows = (c.source(scores), c.dim(scores.shape[-1]))
    out = (c.result(node, "chosen"), c.scratch(step))
    return [call("suppress::suppress", c.source(boxes), rows, limits, out)]


OPS: Mapping[type[ir.Op], Emit] = {
    ir.Pool: _pool,
    ir.Resize: _resize,
    ir.Suppress: _suppress,
}
