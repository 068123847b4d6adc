"""Ops on int8 numbers that stand for real ones."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf import ir
from converters.tf.emit.context import Context, Emit
from converters.tf.emit.functions import float_literal
from converters.tf.emit.ops.layers import axis, shapes_text, weight_path
from converters.tf.emit.statements import LABEL, Code, Part, call, code, method
from converters.tf.ir.sizes import numbers
from converters.tf.plan.arena import Step


def _range(zero: int, low: int, high: int) -> Code:
    """Returns where results lie."""
    use = ["quantized::Range"]
    if (low, high) == (-128, 127):
        return code("Range::all({})", zero, use=use)
    return code("Range { zero: {}, low: {}, high: {} }", zero, low, high, use=use)


def _factor(multiplier: int, shift: int) -> Code:
    template = "Factor { multiplier: {}, shift: {} }"
    return code(template, multiplier, shift, use=["quantized::Factor"])


def _filtered(c: Context, step: Step, kind: str, outputs: int, words: str) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.QuantizedConv | ir.QuantizedDepthwise)
    *_, height, width, inputs = numbers(node.input.shape)
    axes = [
        axis(*sizes)
        for sizes in zip(
            (height, width), op.taps, op.strides, op.dilations, op.padding, strict=True
        )
    ]
    use = ["conv::Geometry"]
    if axes[0] == axes[1]:
        geometry = code("Geometry::square({}, {}, {})", axes[0], inputs, outputs, use=use)
    else:
        geometry = code("Geometry::new({}, {}, {}, {})", *axes, inputs, outputs, use=use)
    if isinstance(op, ir.QuantizedDepthwise):
        geometry = code("{}.groups({})", geometry, inputs)
    kernel, *others = (node.given(i) for i in range(1, 5))
    scale = code(
        "Scale { bias: {}, multiplier: {}, shift: {}, range: {}, rescaling: {} }",
        *(c.tensor(value) for value in others),
        _range(op.out_zero, op.low, op.high),
        code(f"Rescaling::{str(op.rescaling).capitalize()}", use=["quantized::Rescaling"]),
        use=["quantized::Scale"],
    )
    parts: dict[str, Part] = {
        "name": LABEL,
        "geometry": geometry,
        "filter": c.tensor(kernel),
        "zero": op.zero,
        "filter_zero": op.filter_zero,
        "scale": scale,
    }
    doc = shapes_text(node, words)
    key = (op, kernel, *others, tuple(numbers(node.input.shape)))
    layer = c.filled(node, f"quantized::{kind}", weight_path(node, 1), parts, doc, key)
    return [method(layer, "run", c.source(node.input), c.layer_result(node, layer))]


def _words(op: ir.QuantizedConv | ir.QuantizedDepthwise, more: str) -> str:
    """Returns a convolution in words: `3x3/2 depthwise, int8`."""
    words = "x".join(map(str, op.taps))
    if max(op.strides) > 1:
        words += f"/{'x'.join(map(str, dict.fromkeys(op.strides)))}"
    return f"{words}{more}, int8"


def _conv(c: Context, step: Step) -> list[Code]:
    op = step.node.op
    assert isinstance(op, ir.QuantizedConv)
    words = "int8" if op.rescaling is ir.Rescaling.ONCE else _words(op, "")
    return _filtered(c, step, "QuantizedConv", op.outputs, words)


def _depthwise(c: Context, step: Step) -> list[Code]:
    op = step.node.op
    assert isinstance(op, ir.QuantizedDepthwise)
    outputs = numbers(step.node.input.shape)[-1]
    return _filtered(c, step, "QuantizedDepthwise", outputs, _words(op, " depthwise"))


def _pair(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.QuantizedPair)
    factors = [_factor(*each) for each in zip(op.multipliers, op.shifts, strict=True)]
    use = ["quantized::Pair"]
    kind = code("Pair::Product", use=use)
    if op.kind is ir.QuantizedPairKind.SUM:
        kind = code("Pair::Sum({}, {})", *factors[:2], use=use)
    a, b = ((c.source(node.given(i)), op.zeros[i]) for i in (0, 1))
    ends = (factors[2], _range(op.zeros[2], op.low, op.high))
    return [call("quantized::pair", kind, a, b, ends, c.result(node, str(op.kind)))]


def _pool(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.QuantizedPool)
    _, *spatial, channels = numbers(node.input.shape)
    axes: list[Part] = [
        axis(size, taps, stride, 1, pad)
        for size, taps, stride, pad in zip(spatial, op.size, op.strides, op.padding, strict=True)
    ]
    kind = f"quantized::Kind::{''.join(part.capitalize() for part in op.kind.split('_'))}"
    rest = (channels, op.low, op.high)
    out = c.result(node, "pool")
    return [call("quantized::pool", kind, axes, rest, c.source(node.input), out)]


def _mean(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.QuantizedMean)
    sizes = tuple(c.dim(d) for d in node.input.shape[1:])
    ends = (_factor(op.multiplier, op.shift), _range(op.out_zero, -128, 127))
    x = (c.source(node.input), op.zero)
    return [call("quantized::mean", x, sizes, ends, c.result(node, "mean"))]


def _looked(c: Context, step: Step) -> list[Code]:
    node = step.node
    x, table = c.source(node.input), c.source(node.given(1))
    return [call("quantized::looked", x, table, c.result(node, "looked"))]


def _softmax(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.QuantizedSoftmax)
    ends = (float_literal(op.scale), _range(op.zero, -128, 127))
    x, table = (c.source(node.input), c.dim(node.input.shape[-1])), c.source(node.given(1))
    return [call("quantized::softmax", x, table, ends, c.result(node, "softmax"))]


def _quantize(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.Quantize)
    scale = (float_literal(op.scale), op.zero)
    return [call("quantized::quantize", c.source(node.input), scale, c.result(node, "quantized"))]


def _dequantize(c: Context, step: Step) -> list[Code]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.Dequantize)
    scale = (float_literal(op.scale), op.zero)
    return [call("quantized::dequantize", c.source(node.input), scale, c.result(node, "real"))]


OPS: Mapping[type[ir.Op], Emit] = {
    ir.Dequantize: _dequantize,
    ir.Looked: _looked,
    ir.Quantize: _quantize,
    ir.QuantizedConv: _conv,
    ir.QuantizedDepthwise: _depthwise,
    ir.QuantizedMean: _mean,
    ir.QuantizedPair: _pair,
    ir.QuantizedPool: _pool,
    ir.QuantizedSoftmax: _softmax,
}
