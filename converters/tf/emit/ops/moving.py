"""Ops that move elements; lookups in a constant table are layers."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf import ir
from converters.tf.emit.context import Context, Emit
from converters.tf.emit.functions import numbers_text, typed_literal
from converters.tf.emit.ops.layers import weight_path
from converters.tf.emit.statements import LABEL, Code, Part, call, code, lines, method
from converters.tf.plan.arena import Step


def _transpose(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.Transpose)
    out = c.result(node, "transposed")
    return [call("layout::transpose", c.shaped(node.input), numbers_text(node.op.perm), out)]


def _concat(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.Concat)
    outer = c.product(node.output.shape[: node.op.axis])
    out = c.result(node, "concat")
    return [call("layout::concat", c.sources(node.present), outer, out)]


def _slice(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.Slice)
    ranges = (numbers_text(node.op.begin), numbers_text(node.op.strides))
    out = (c.result(node, "slice"), c.dims(node.output.shape))
    return [call("layout::slice", c.shaped(node.input), ranges, out)]


def _pad(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.Pad)
    padding = code("&{}", list(node.op.padding))
    border = f"layout::Border::{str(node.op.mode).capitalize()}"
    if node.op.mode is ir.PadMode.CONSTANT:
        border += f"({typed_literal(node.op.value, node.input.dtype)})"
    out = c.result(node, "padded")
    return [call("layout::pad", c.shaped(node.input), padding, border, out)]


def _is_embedding(node: ir.Node) -> bool:
    """Returns whether a gather looks up rows of a constant table of f32."""
    op = node.op
    if not isinstance(op, ir.Gather) or op.axis != 0 or op.batch_dims != 0:
        return False
    table = node.input
    return table.data is not None and table.dtype is ir.DType.F32 and table.rank == 2


def _embedding(c: Context, step: Step) -> list[Code]:
    node = step.node
    indices = node.given(1)
    size: list[Part] = [c.dim(d) for d in node.input.shape]
    parts: dict[str, Part] = {"name": LABEL, "table": c.tensor(node.input), "size": size}
    doc = f"{ir.shape_text(indices.shape)} -> {ir.shape_text(node.output.shape)}"
    key = (node.op, node.input)
    layer = c.filled(node, "gather::Embedding", weight_path(node, 0), parts, doc, key)
    return [method(layer, "run", c.source(indices), c.layer_result(node, layer))]


def _gather(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.Gather)
    if _is_embedding(node):
        return _embedding(c, step)
    out = c.result(node, "gathered")
    x, indices = c.shaped(node.input), c.shaped(node.given(1))
    return [call("gather::gather", x, indices, (node.op.axis, node.op.batch_dims), out)]


def _chosen(c: Context, step: Step) -> list[Code]:
    node = step.node
    out = c.result(node, "places")
    parts = (c.dim(node.output.shape[0]), c.source(node.input), out)
    found = code("{} = chosen::places(m, {}, {})?;", *parts, use=["chosen"])
    return [lines([found, code("*s = s.counted()?;")])]


def _one_hot(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.OneHot)
    shape = node.output.shape
    inner = c.product(shape[node.op.axis + 1 :])
    dtype = node.output.dtype
    values = (typed_literal(node.op.on, dtype), typed_literal(node.op.off, dtype))
    sizes = (c.dim(shape[node.op.axis]), inner)
    out = c.result(node, "one_hot")
    return [call("gather::one_hot", c.source(node.input), sizes, values, out)]


def _tile(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.Tile)
    out = c.result(node, "tiled")
    return [call("layout::tile", c.shaped(node.input), numbers_text(node.op.multiples), out)]


def _broadcast(c: Context, step: Step) -> list[Code]:
    node = step.node
    out = (c.result(node, "broadcast"), c.dims(node.output.shape))
    return [call("layout::broadcast", c.shaped(node.input), out)]


def _update(c: Context, step: Step) -> list[Code]:
    node = step.node
    x, index, part = (c.source(node.given(i)) for i in range(3))
    out = c.result(node, "updated")
    if step.onto is not None:
        return [call("layout::update_in_place", index, part, out)]
    return [call("layout::update", x, index, part, out)]


def _scatter(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.Scatter)
    x, indices, updates = (node.given(i) for i in range(3))
    lead, depth = op.batch_dims, indices.shape[-1]
    assert isinstance(depth, int)
    groups = c.product(x.shape[:lead])
    limits = c.dims(x.shape[lead : lead + depth])
    template = "(Reduction::{}, {})"
    use = ["kernels::ops::moving::scatter::Reduction"]
    how = code(template, str(op.kind).capitalize(), op.skip, use=use)
    operands = (c.source(x), c.source(indices), c.source(updates))
    out = c.result(node, "scattered")
    return [call("scatter::scatter", how, (groups, limits), operands, out)]


OPS: Mapping[type[ir.Op], Emit] = {
    ir.BroadcastTo: _broadcast,
    ir.Chosen: _chosen,
    ir.Concat: _concat,
    ir.Gather: _gather,
    ir.OneHot: _one_hot,
    ir.Pad: _pad,
    ir.Scatter: _scatter,
    ir.Slice: _slice,
    ir.Tile: _tile,
    ir.Transpose: _transpose,
    ir.Update: _update,
}
