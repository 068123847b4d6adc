"""Convolutions: layers with a filter, and chains of such layers."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf import ir
from converters.tf.emit.context import Context, Emit
from converters.tf.emit.functions import activation_words
from converters.tf.emit.ops.layers import (
    axis,
    copied_residual,
    dense_parts,
    run_onto,
    shapes_text,
    weight_path,
)
from converters.tf.emit.ops.matrix import dense_field
from converters.tf.emit.statements import (
    LABEL,
    PARALLEL,
    WEIGHTS,
    Code,
    Name,
    Part,
    call,
    code,
    method,
)
from converters.tf.ir.expressions import OpenSizeError
from converters.tf.ir.ops.conv import is_depthwise, is_pointwise_sum
from converters.tf.ir.sizes import has_open, numbers
from converters.tf.plan.arena import Step


def _geometry(
    op: ir.Conv | ir.ConvTranspose, image: ir.Value, taps: list[int], ends: tuple[int, int]
) -> Code:
    """Returns the sizes of a convolution over `image`, with `ends` channels at both sides.

    Where the image is open, they are those of the smallest: a call gives others.
    """
    spatial = numbers(image.shape)[1:-1]
    padding = op.padding
    if has_open(image.shape):
        spatial = [(size - 1) * step + 1 for size, step in zip(taps, op.dilations, strict=True)]
        padding = ((0, 0),) * len(spatial)
    axes = [
        axis(*sizes) for sizes in zip(spatial, taps, op.strides, op.dilations, padding, strict=True)
    ]
    use = ["conv::Geometry"]
    if len(axes) == 1:
        text = code("&Geometry::line({}, {}, {})", axes[0], *ends, use=use)
    elif axes[0] == axes[1]:
        text = code("&Geometry::square({}, {}, {})", axes[0], *ends, use=use)
    else:
        text = code("&Geometry::new({}, {}, {}, {})", *axes, *ends, use=use)
    return text if op.groups == 1 else code("{}.groups({})", text, op.groups)


def _conv(c: Context, step: Step) -> list[Code]:
    node = step.node
    residual = node.operand(3)
    if is_pointwise_sum(node):
        return _pointwise(c, step)
    layer = _conv_field(c, node)
    x, out = c.source(node.input), c.layer_result(node, layer)
    if has_open(node.input.shape):
        parts = [
            _call_axes(node, node.input),
            x,
            *([] if residual is None else [c.source(residual)]),
            out,
        ]
        name = "run" if residual is None else "run_add"
        if step.scratch.elements:
            return [method(layer, f"{name}_with_over", *parts, c.scratch(step))]
        return [method(layer, f"{name}_over", *parts)]
    if residual is not None:
        scratch = c.scratch(step)
        return [method(layer, "run_add", x, c.source(residual), out, scratch)]
    if step.scratch.elements:
        return [method(layer, "run_with", x, out, c.scratch(step))]
    return [method(layer, "run", x, out)]


def _chain(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.Chain)
    if isinstance(node.op.links[0].op, ir.Dense):
        first, second = (dense_field(c, link) for link in node.op.links)
        ends = (c.source(node.input), c.layer_result(node, second))
        next_layer = code("&{}", second)
        return [method(first, "run_then", next_layer, *ends, c.scratch(step))]
    names = [_conv_field(c, link) for link in node.op.links]
    layers = code("&{}", [code("&{}", name) for name in names])
    ends = (c.source(node.input), c.layer_result(node, names[-1]))
    return [call("chain::run", layers, *ends, c.scratch(step))]


def _conv_field(c: Context, node: ir.Node) -> Name:
    """Returns the field of a convolution, made on its first use."""
    assert isinstance(node.op, ir.Conv)
    kernel, bias = node.given(1), node.operand(2)
    *taps, _, outputs = numbers(kernel.shape)
    inputs = numbers(node.input.shape)[-1]
    geometry = _geometry(node.op, node.input, taps, (inputs, outputs))
    weights: list[Part] = [
        *(c.tensor(kernel), c.optional_tensor(bias)),
        c.activation(node.op.activation),
    ]
    doc = shapes_text(node, _words(node.op, taps, is_depthwise(node)))
    key = (node.op, kernel, bias, tuple(numbers(node.input.shape)))
    if has_open(node.output.shape) and not has_open(node.input.shape):
        raise OpenSizeError("the padding of a fixed image is open")
    path = weight_path(node, 1)
    if is_depthwise(node) and node.operand(3) is None:
        parts = [LABEL, geometry, *weights]
        return c.made(node, "conv::DepthwiseConv", path, parts, doc, key)
    parts = [LABEL, WEIGHTS, geometry, *weights, PARALLEL]
    return c.made(node, "conv::Conv", path, parts, doc, key)


def _call_axes(node: ir.Node, image: ir.Value) -> Part:
    """Returns the axes of a convolution over `image`, which is open, as they are in a call."""
    assert isinstance(node.op, ir.Conv | ir.ConvTranspose)
    op = node.op
    *taps, _, _ = numbers(node.given(1).shape)
    sizes = zip(numbers(image.shape)[1:-1], taps, op.strides, op.dilations, op.padding, strict=True)
    axes: list[Part] = [axis(*each) for each in sizes]
    return axes if len(axes) > 1 else [axis(1, 1, 1, 1, (0, 0)), *axes]


def _words(op: ir.Conv | ir.ConvTranspose, taps: list[int], depthwise: bool) -> str:
    """Returns a convolution in words: `3x3/2 depthwise, relu6`."""
    words = "x".join(str(t) for t in taps) if len(taps) > 1 else f"width {taps[0]}"
    if any(s != 1 for s in op.strides):
        words += f"/{'x'.join(str(s) for s in dict.fromkeys(op.strides))}"
    if depthwise:
        words += " depthwise"
    if any(d != 1 for d in op.dilations):
        words += f", dilated by {'x'.join(str(d) for d in dict.fromkeys(op.dilations))}"
    if op.groups != 1 and not depthwise:
        words += f", {op.groups} groups"
    activation = activation_words(op.activation)
    return f"{words}, {activation}" if activation else words


def _pointwise(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.Conv)
    kernel, bias = node.given(1), node.operand(2)
    parts = dense_parts(c, node, node.op.activation)
    doc = shapes_text(node, _words(node.op, [1, 1], False))
    key = (node.op, kernel, bias)
    layer = c.made(node, "dense::Dense", weight_path(node, 1), parts, doc, key)
    out = c.layer_result(node, layer)
    first = copied_residual(c, step, out)
    return [*first, run_onto(c, step, layer, c.source(node.input), out)]


def _conv_transpose(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.ConvTranspose)
    kernel, bias = node.given(1), node.operand(2)
    *taps, _, inputs = numbers(kernel.shape)
    outputs = numbers(node.output.shape)[-1]
    geometry = _geometry(node.op, node.output, taps, (outputs, inputs))
    weights = (c.tensor(kernel), c.optional_tensor(bias), c.activation(node.op.activation))
    parts = [LABEL, WEIGHTS, geometry, *weights, PARALLEL]
    doc = shapes_text(node, _words(node.op, taps, False))
    key = (node.op, kernel, bias, tuple(numbers(node.output.shape)))
    layer = c.made(node, "conv::ConvTranspose", weight_path(node, 1), parts, doc, key)
    out = c.layer_result(node, layer)
    ends: list[Part] = [c.source(node.input), out]
    over = ""
    if has_open(node.output.shape):
        over, ends = "_over", [_call_axes(node, node.output), *ends]
    if step.scratch.elements:
        return [method(layer, f"run_with{over}", *ends, c.scratch(step))]
    return [method(layer, f"run{over}", *ends)]


OPS: Mapping[type[ir.Op], Emit] = {
    ir.Chain: _chain,
    ir.Conv: _conv,
    ir.ConvTranspose: _conv_transpose,
}
