"""Ops on real numbers that become int8 by their range at run time."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf import ir
from converters.tf.emit.context import Context, Emit
from converters.tf.emit.functions import activation_words
from converters.tf.emit.ops.layers import axis, shapes_text, weight_path
from converters.tf.emit.statements import LABEL, Code, Part, call, code, method
from converters.tf.ir.expressions import OpenSizeError
from converters.tf.ir.sizes import has_open, numbers
from converters.tf.plan.arena import Step


def _levels(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.DynamicLevels)
    each = c.product(node.input.shape[node.input.rank - node.op.axes :])
    levels, ends = (
        c.named(value, node, name)
        for value, name in zip(node.outputs, ("levels", "ends"), strict=True)
    )
    return [call("quantized::levels", c.source(node.input), each, (levels, ends))]


def _rows(c: Context, node: ir.Node) -> Code:
    """Returns the sizes of a product of rows, of which examples have one or more."""
    assert isinstance(node.op, ir.DynamicDense)
    levels, ends = node.input, node.given(1)
    (inputs,) = numbers(levels.shape[-1:])
    rows = c.product(levels.shape[ends.rank - 1 : -1]) if ends.rank > 1 else 1
    use = ["conv::Geometry"]
    one = code("Axis::UNIT", use=["conv::Axis"]) if rows == 1 else _line(rows)
    return code("Geometry::line({}, {}, {})", one, inputs, node.op.outputs, use=use)


def _line(rows: Part) -> Code:
    return code("Axis::new({}, 1)", rows, use=["conv::Axis"])


def _geometry(c: Context, node: ir.Node) -> Code:
    if isinstance(node.op, ir.DynamicDense):
        return _rows(c, node)
    op = node.op
    assert isinstance(op, ir.DynamicConv)
    if has_open(node.input.shape):
        raise OpenSizeError("the size of an image must be known")
    _, *spatial, inputs = numbers(node.input.shape)
    axes = [
        axis(*sizes)
        for sizes in zip(spatial, op.taps, op.strides, op.dilations, op.padding, strict=True)
    ]
    use = ["conv::Geometry"]
    ends = (inputs, op.outputs)
    if len(axes) == 1:
        return code("Geometry::line({}, {}, {})", axes[0], *ends, use=use)
    if axes[0] == axes[1]:
        return code("Geometry::square({}, {}, {})", axes[0], *ends, use=use)
    return code("Geometry::new({}, {}, {}, {})", *axes, *ends, use=use)


def _product(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.DynamicConv | ir.DynamicDense)
    kernel, totals, factors, bias, residual = (node.operand(i) for i in range(2, 7))
    geometry = _geometry(c, node)
    parts: dict[str, Part] = {
        "name": LABEL,
        "geometry": geometry,
        "filter": c.tensor(kernel),
        "totals": c.tensor(totals),
    }
    key = (op, kernel, totals, factors, bias, repr(geometry))
    words = "" if isinstance(op, ir.DynamicDense) else f"{'x'.join(map(str, op.taps))}, "
    path = weight_path(node, 2)
    x = (c.source(node.input), c.source(node.given(1)))
    if factors is None:
        doc = shapes_text(node, f"{words}int8, sums")
        layer = c.filled(node, "quantized::IntegerSums", path, parts, doc, key)
        return [method(layer, "run", x, c.layer_result(node, layer))]
    names = ", ".join(f"{name}: {{}}" for name in parts)
    sums = code(f"IntegerSums {{ {names} }}", *parts.values(), use=["quantized::IntegerSums"])
    parts = {
        "sums": sums,
        "factors": c.tensor(factors),
        "bias": c.optional_tensor(bias),
        "activation": c.activation(op.activation),
    }
    more = activation_words(op.activation)
    doc = shapes_text(node, f"{words}int8{f', {more}' if more else ''}")
    layer = c.filled(node, "quantized::DynamicLayer", path, parts, doc, key)
    out = c.layer_result(node, layer)
    if residual is not None:
        return [method(layer, "run_add", x, c.source(residual), out)]
    return [method(layer, "run", x, out)]


OPS: Mapping[type[ir.Op], Emit] = {
    ir.DynamicConv: _product,
    ir.DynamicDense: _product,
    ir.DynamicLevels: _levels,
}
