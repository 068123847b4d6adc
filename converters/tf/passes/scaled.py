"""Factors per channel that products apply to their operand as they read it.

Only products with packed weights can, so this is not part of the pipeline: the plan of a crate that
packs them asks for it.
"""

from __future__ import annotations

import math

from converters.tf import ir
from converters.tf.ir import BinaryKind, Fn
from converters.tf.passes.rewrite import Match, Rules, rewrite


def with_scaled_products(graph: ir.Graph) -> ir.Graph:
    """Returns a graph whose products scale their operand themselves where they can."""
    return rewrite(graph, _RULES)


def _scaled(m: Match, node: ir.Node) -> ir.Value | None:
    x, kernel = node.input, node.operand(1)
    assert isinstance(node.op, ir.Dense | ir.Conv)
    if kernel is None or kernel.data is None or not m.used_once(x):
        return None
    if isinstance(node.op, ir.Conv) and not _is_product(node.op, kernel):
        return None
    # A single row is multiplied in another way.
    if x.rank < 3 or math.prod(d for d in x.shape[1:-1] if isinstance(d, int)) <= 1:
        return None
    before = m.producer(x)
    if before is None or not isinstance(x.shape[-1], int):
        return None
    found = _affine(before) or _by_factor(before)
    if found is None:
        return None
    source, scale, shift, bounds = found
    op = ir.ScaledDense(bounds, node.op.activation)
    operands = [source, kernel, node.operand(2), node.operand(3), scale, shift]
    return m.build.emit(op, operands, node.output.shape)


def _is_product(op: ir.Conv, kernel: ir.Value) -> bool:
    return (
        op.groups == 1
        and all(d == 1 for d in kernel.shape[:-2])
        and all(s == 1 for s in op.strides)
        and all(p == (0, 0) for p in op.padding)
    )


_Found = tuple[ir.Value, ir.Value, ir.Value | None, ir.Function | None]


def _affine(node: ir.Node) -> _Found | None:
    op = node.op
    if not isinstance(op, ir.ScaleShift):
        return None
    if op.activation is not None and op.activation.kind is not Fn.CLAMP:
        return None
    x, scale, shift = node.present
    return x, scale, shift, op.activation


def _by_factor(node: ir.Node) -> _Found | None:
    op = node.op
    if op != ir.Binary(BinaryKind.MUL) or node.output.dtype is not ir.DType.F32:
        return None
    a, b = node.present
    for x, scale in ((a, b), (b, a)):
        # A factor may have fewer axes than what it scales; that has three or more.
        if x.shape != node.output.shape or x.is_constant:
            continue
        first, *rest = x.shape
        inside = (*(1 for _ in rest[:-1]), rest[-1])
        if isinstance(first, ir.Batch) and scale.shape == (first, *inside):
            return x, scale, None, None
    return None


_RULES: Rules = {ir.Conv: [_scaled], ir.Dense: [_scaled]}
