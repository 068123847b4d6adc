"""Rules that put bias, scale, residual, activation and padding into the op before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind, Fn
from converters.tf.passes.rewrite import Match, Rule, Rules

# Functions whose result is no f32.
_NOT_FUSED = (Fn.LOGICAL_NOT, Fn.IS_NAN, Fn.IS_INF, Fn.IS_FINITE)

_Product = ir.Dense | ir.Conv | ir.ConvTranspose | ir.MatMul
_Finished = _Product | ir.Binary | ir.ScaleShift


def _product(m: Match, value: ir.Value) -> ir.Node | None:
    """Returns the product that gives a value which nobody else reads, with nothing after it."""
    node = m.producer(value)
    if node is None or not m.used_once(value):
        return None
    if not isinstance(node.op, _Product) or node.op.activation is not None:
        return None
    return node


def _per_channel(constant: ir.Value, like: ir.Value) -> ir.Array | None:
    """Returns a constant as one number per channel if broadcasting uses it so."""
    if constant.data is None or constant.dtype is not ir.DType.F32 or not like.rank:
        return None
    channels = like.shape[-1]
    if constant.data.size == 1 and isinstance(channels, int):
        return np.full(channels, constant.data.reshape(()), np.float32)
    if constant.rank > like.rank or constant.data.size != channels:
        return None
    if constant.shape[-1] != channels:
        return None
    return np.asarray(constant.data.reshape(-1))


def _bias(m: Match, node: ir.Node) -> ir.Value | None:
    assert isinstance(node.op, ir.Binary)
    x, constant = node.present
    if node.op.kind is not BinaryKind.ADD or node.op.activation or x.shape != node.output.shape:
        return None
    product = _product(m, x)
    shift = _per_channel(constant, x)
    if product is None or shift is None:
        return None
    old = product.operand(2)
    name = constant.name
    if old is not None:
        if old.data is None:
            return None
        shift, name = shift + old.data, old.name
    bias = ir.constant(shift, name)
    return m.emit_at(product, product.op, [*product.inputs[:2], bias, product.operand(3)], x)


def _scale(m: Match, node: ir.Node) -> ir.Value | None:
    """Takes a factor per channel into constant weights."""
    assert isinstance(node.op, ir.Binary)
    x, constant = node.present
    if node.op.kind is not BinaryKind.MUL or node.op.activation or x.shape != node.output.shape:
        return None
    product = _product(m, x)
    factor = _per_channel(constant, x)
    if m.rounded(node.output):
        return None
    if product is None or factor is None or product.operand(3) is not None:
        return None
    weights, bias = product.operand(1), product.operand(2)
    if weights is None or weights.data is None or (bias is not None and bias.data is None):
        return None
    if isinstance(product.op, ir.MatMul):
        return None
    if isinstance(product.op, ir.ConvTranspose):
        scaled = weights.data * factor.reshape(-1, 1) if product.op.groups == 1 else None
    else:
        scaled = weights.data * factor
    if scaled is None:
        return None
    operands: list[ir.Value | None] = [
        product.input,
        ir.constant(scaled.astype(np.float32), weights.name),
        None,
    ]
    if bias is not None and bias.data is not None:
        operands[2] = ir.constant(bias.data * factor, bias.name)
    return m.emit_at(product, product.op, operands, x)


def _residual(m: Match, node: ir.Node) -> ir.Value | None:
    assert isinstance(node.op, ir.Binary)
    if node.op.kind is not BinaryKind.ADD or node.op.activation is not None:
        return None
    a, b = node.present
    if a.shape != b.shape or a.is_constant or b.is_constant or a is b:
        return None
    for x, other in ((b, a), (a, b)):
        reshape = m.made_by(x, ir.Reshape) if m.used_once(x) else None
        source = x if reshape is None else reshape.input
        product = _product(m, source)
        if product is None or not isinstance(product.op, ir.Dense | ir.Conv):
            continue
        if product.operand(3) is None:
            operands = [product.operand(i) for i in range(3)]
            residual = m.build.reshape(other, source.shape)
            total = m.emit_at(product, product.op, [*operands, residual], source)
            return total if reshape is None else m.emit_at(reshape, reshape.op, [total], x)
    return None


def _activation(m: Match, node: ir.Node) -> ir.Value | None:
    assert isinstance(node.op, ir.Unary)
    before = m.producer(node.input)
    if before is None or not m.used_once(node.input) or node.input.dtype is not ir.DType.F32:
        return None
    if not isinstance(before.op, _Finished) or before.op.activation is not None:
        return None
    if node.op.function.kind in _NOT_FUSED:
        return None
    op = replace(before.op, activation=node.op.function)
    return m.emit_at(before, op, before.inputs, node.output)


def _padding(m: Match, node: ir.Node) -> ir.Value | None:
    """Takes zeros around the image into the convolution."""
    assert isinstance(node.op, ir.Conv)
    pad = m.made_by(node.input, ir.Pad)
    if pad is None:
        return None
    assert isinstance(pad.op, ir.Pad)
    both = _padded(pad.op, node.op.padding)
    if both is None:
        return None
    op = replace(node.op, padding=both)
    return m.build.emit(op, [pad.input, *node.inputs[1:]], node.output.shape)


def _padded(pad: ir.Pad, padding: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...] | None:
    """Returns the padding of an image with zeros around it, unless there is something else."""
    if pad.mode is not ir.PadMode.CONSTANT or pad.value != 0 or len(pad.padding) < 3:
        return None
    first, *spatial, last = pad.padding
    if sum(first) or sum(last):
        return None
    return tuple((a + c, b + d) for (a, b), (c, d) in zip(padding, spatial, strict=True))


def _through_reshape(m: Match, node: ir.Node) -> ir.Value | None:
    """Moves a sum or product with a constant, or a function, in front of a reshape."""
    constant = node.operand(1)
    reshape = m.made_by(node.input, ir.Reshape)
    if reshape is None or not m.used_once(node.input):
        return None
    source = reshape.input
    if _product(m, source) is None:
        return None
    if isinstance(node.op, ir.Unary):
        if node.op.function.kind in _NOT_FUSED:
            return None
        moved = m.emit_at(node, node.op, [source], source)
        return m.build.reshape(moved, node.output.shape)
    if not isinstance(node.op, ir.Binary) or node.op.kind not in (BinaryKind.ADD, BinaryKind.MUL):
        return None
    if constant is None or constant.data is None or node.op.activation is not None:
        return None
    if node.output.shape != node.input.shape:
        return None
    flat = _merged_constant(constant.data, node.input.shape, source.shape[-1])
    if flat is None:
        return None
    moved = m.emit_at(node, node.op, [source, ir.constant(flat, constant.name)], source)
    return m.build.reshape(moved, node.output.shape)


def _merged_constant(data: ir.Array, shape: ir.Shape, channels: ir.Dim) -> ir.Array | None:
    """Returns the constant over the axes that make up the channels before the reshape."""
    count, axis = 1, len(shape)
    while axis > 0 and count != channels:
        axis -= 1
        dim = shape[axis]
        if not isinstance(dim, int):
            return None
        count *= dim
    tail = tuple(d for d in shape[axis:] if isinstance(d, int))
    if count != channels or data.size > count or data.ndim > len(shape):
        return None
    inner = data.shape[max(0, data.ndim - len(tail)) :]
    if int(np.prod(inner)) != data.size:
        return None
    return np.ascontiguousarray(np.broadcast_to(data.reshape(inner), tail)).reshape(-1)


def _affine(m: Match, node: ir.Node) -> ir.Value | None:
    """Makes a batch norm that has no convolution before it one op."""
    assert isinstance(node.op, ir.Binary)
    x, shift = node.present
    if node.op.kind is not BinaryKind.ADD or node.op.activation or x.shape != node.output.shape:
        return None
    inner = m.made_by(x, ir.Binary)
    if inner is None or not m.used_once(x) or x.rank < 2:
        return None
    assert isinstance(inner.op, ir.Binary)
    source, scale = inner.present
    if inner.op.kind is not BinaryKind.MUL or inner.op.activation or source.shape != x.shape:
        return None
    factors, terms = _per_channel(scale, x), _per_channel(shift, x)
    if factors is None or terms is None:
        return None
    names = (f"{node.layer}/scale", f"{node.layer}/shift") if node.layer else ("", "")
    operands = [source, ir.constant(factors, names[0]), ir.constant(terms, names[1])]
    return m.emit_at(node, ir.ScaleShift(), operands, x)


def _limited_factor(m: Match, node: ir.Node) -> ir.Value | None:
    """Makes a factor per channel and the range that follows one op."""
    assert isinstance(node.op, ir.Unary)
    inner = m.made_by(node.input, ir.Binary)
    if inner is None or not m.used_once(node.input) or node.input.rank < 2:
        return None
    assert isinstance(inner.op, ir.Binary)
    source, scale = inner.present
    if (
        inner.op.kind is not BinaryKind.MUL
        or inner.op.activation
        or source.shape != node.input.shape
    ):
        return None
    factors = _per_channel(scale, node.input)
    if factors is None or scale.rank == 0 or node.op.function.kind is not Fn.CLAMP:
        return None
    names = (f"{inner.layer}/scale", f"{inner.layer}/shift") if inner.layer else ("", "")
    shift = ir.constant(np.zeros_like(factors), names[1])
    operands = [source, ir.constant(factors, names[0]), shift]
    return m.emit_at(inner, ir.ScaleShift(node.op.function), operands, node.output)


def _pool_padding(m: Match, node: ir.Node) -> ir.Value | None:
    """Takes zeros around an image into a maximum: what is not negative hides them.

    Only NaN tells them apart: a window at the border that sees nothing else gives the least
    number, as windows inside do, and no zero.
    """
    assert isinstance(node.op, ir.Pool)
    pad = m.made_by(node.input, ir.Pad)
    if pad is None or node.op.kind is not ir.PoolKind.MAX:
        return None
    assert isinstance(pad.op, ir.Pad)
    both = _padded(pad.op, node.op.padding)
    if both is None or not _is_never_negative(m, pad.input):
        return None
    # A window that sees no pixel would have seen zeros.
    if any(
        before >= k or after >= k for (before, after), k in zip(both, node.op.size, strict=True)
    ):
        return None
    op = replace(node.op, padding=both)
    return m.build.emit(op, [pad.input], node.output.shape)


def _is_never_negative(m: Match, value: ir.Value) -> bool:
    before = m.producer(value)
    if before is None:
        return False
    last = before.op.function if isinstance(before.op, ir.Unary) else None
    if isinstance(before.op, _Finished):
        last = before.op.activation
    return last is not None and last.kind is Fn.CLAMP and last.params[0] >= 0


def _unless_scalar(rule: Rule) -> Rule:
    """Leaves numbers alone: they may be part of a function that is recognised later."""

    def guarded(m: Match, node: ir.Node) -> ir.Value | Sequence[ir.Value] | None:
        constant = node.operand(1)
        if constant is not None and constant.is_constant and constant.rank == 0:
            return None
        return rule(m, node)

    return guarded


FOLD: Rules = {
    ir.Binary: [_unless_scalar(rule) for rule in (_bias, _scale, _through_reshape)],
    ir.Conv: [_padding],
}
"""Constants into weights; before functions are recognised."""

FUSE: Rules = {
    ir.Binary: [_bias, _scale, _through_reshape, _affine, _residual],
    ir.Unary: [_limited_factor, _activation, _through_reshape],
    ir.Conv: [_padding],
    ir.Pool: [_pool_padding],
}
"""What is left, after functions are recognised."""
