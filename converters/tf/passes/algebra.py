"""Rules that leave out what changes nothing and bring expressions into one form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind, CompareKind, Fn
from converters.tf.passes.patterns import is_number, number
from converters.tf.passes.rewrite import Match, Rules

_ORDERED = (BinaryKind.ADD, BinaryKind.MUL)
_FLOATS = (ir.DType.F32, ir.DType.F64)


def _reshape(m: Match, node: ir.Node) -> ir.Value | None:
    inner = m.made_by(node.input, ir.Reshape)
    if inner is not None:
        return m.build.reshape(inner.input, node.output.shape)
    repeated = m.made_by(node.input, ir.BroadcastTo)
    if repeated is not None and repeated.input.rank == 0:
        return m.build.broadcast_to(repeated.input, node.output.shape)
    return node.input if node.input.shape == node.output.shape else None


def _transpose(m: Match, node: ir.Node) -> ir.Value | None:
    assert isinstance(node.op, ir.Transpose)
    inner = m.made_by(node.input, ir.Transpose)
    if inner is None:
        return None
    assert isinstance(inner.op, ir.Transpose)
    return m.build.transpose(inner.input, [inner.op.perm[p] for p in node.op.perm])


def _slice(m: Match, node: ir.Node) -> ir.Value | None:
    """Merges a slice into the slice that it reads."""
    inner = m.made_by(node.input, ir.Slice)
    if inner is None:
        return None
    assert isinstance(node.op, ir.Slice)
    assert isinstance(inner.op, ir.Slice)
    begin = [
        b + s * o for b, s, o in zip(inner.op.begin, inner.op.strides, node.op.begin, strict=True)
    ]
    steps = [a * b for a, b in zip(inner.op.strides, node.op.strides, strict=True)]
    return m.build.slice(inner.input, begin, node.output.shape, steps)


def _neutral(m: Match, node: ir.Node) -> ir.Value | None:
    """Leaves out arithmetic such as `x + 0` and `x * 1` where the shape stays."""
    assert isinstance(node.op, ir.Binary)
    a, b = node.present
    kind = node.op.kind
    if node.op.activation is not None:
        return None
    right = {BinaryKind.ADD: 0, BinaryKind.SUB: 0, BinaryKind.MUL: 1, BinaryKind.DIV: 1}.get(kind)
    if kind is BinaryKind.POW and is_exactly(b, 1):
        return a if a.shape == node.output.shape else None
    if kind is BinaryKind.POW and is_exactly(b, 2) and a.shape == node.output.shape:
        return m.build.unary(Fn.SQUARE, a)
    if kind is BinaryKind.POW and is_exactly(b, 0.5) and a.shape == node.output.shape:
        return m.build.unary(Fn.SQRT, a)
    if right is not None and is_exactly(b, right) and a.shape == node.output.shape:
        return a
    return None


def _conjunction(m: Match, node: ir.Node) -> ir.Value | None:
    """Leaves out `true and`, also where it is repeated."""
    assert isinstance(node.op, ir.Binary)
    if node.op.kind is not BinaryKind.LOGICAL_AND:
        return None
    for a, b in (node.present, node.present[::-1]):
        inner = m.made_by(a, ir.BroadcastTo)
        if _all(a if inner is None else inner.input, True):
            return m.build.broadcast_to(b, node.output.shape)
    return None


def _transposed(m: Match, node: ir.Node) -> ir.Value | None:
    """Takes a transposition of a right-hand matrix into the product."""
    assert isinstance(node.op, ir.MatMul)
    a, b = node.present[:2]
    inner = m.made_by(b, ir.Transpose)
    if inner is None:
        return None
    assert isinstance(inner.op, ir.Transpose)
    rank = b.rank
    if inner.op.perm != (*range(rank - 2), rank - 1, rank - 2):
        return None
    op = replace(node.op, transpose_b=not node.op.transpose_b)
    return m.build.emit(op, [a, inner.input, *node.inputs[2:]], node.output.shape)


def _repeated(m: Match, node: ir.Node) -> ir.Value | None:
    """Repeats once what is repeated twice."""
    inner = m.made_by(node.input, ir.BroadcastTo)
    return None if inner is None else m.build.broadcast_to(inner.input, node.output.shape)


def _all(value: ir.Value, truth: bool) -> bool:
    data = value.data
    return data is not None and data.dtype == bool and bool(np.all(data == truth))


def is_exactly(value: ir.Value, wanted: float) -> bool:
    """Returns whether all elements of a constant are exactly a number."""
    found = number(value)
    return found is not None and found == wanted


def _constant_right(m: Match, node: ir.Node) -> ir.Value | None:
    """Brings a constant to the right, and differences and quotients into sums and products."""
    assert isinstance(node.op, ir.Binary)
    a, b = node.present
    kind = node.op.kind
    if node.op.activation is not None or a.dtype not in _FLOATS:
        return None
    if a.is_constant and not b.is_constant and kind in _ORDERED:
        return m.build.binary(kind, b, a)
    if b.data is None or a.is_constant:
        return None
    if kind is BinaryKind.SUB:
        return m.build.binary(BinaryKind.ADD, a, m.build.unary(Fn.NEG, b))
    if m.rounded(node.output):
        return None
    if kind is BinaryKind.DIV and bool(np.all(np.abs(b.data) > 1e-30)):
        return m.build.binary(BinaryKind.MUL, a, m.build.unary(Fn.RECIPROCAL, b))
    return None


def _chain(m: Match, node: ir.Node) -> ir.Value | None:
    """Joins the constants of `(x + a) + b` and `(x * a) * b`, and sorts `(x + a) * b`."""
    assert isinstance(node.op, ir.Binary)
    x, outer = node.present
    if node.op.kind not in _ORDERED or node.op.activation or not outer.is_constant:
        return None
    if m.rounded(node.output):
        return None
    inner = m.made_by(x, ir.Binary)
    if inner is None or not inner.present[1].is_constant or not m.used_once(x):
        return None
    assert isinstance(inner.op, ir.Binary)
    if inner.op.activation is not None or inner.present[0].shape != node.output.shape:
        return None
    source, constant = inner.present
    if inner.op.kind is node.op.kind:
        return m.build.binary(node.op.kind, source, m.build.binary(node.op.kind, constant, outer))
    if inner.op.kind is BinaryKind.ADD:
        product = m.build.binary(BinaryKind.MUL, source, outer)
        shift = m.build.binary(BinaryKind.MUL, constant, outer)
        return m.build.binary(BinaryKind.ADD, product, shift)
    return None


def _negated(m: Match, node: ir.Node) -> ir.Value | None:
    """Writes `-x * c` as `x * -c`, and `a + -b` as `a - b`."""
    assert isinstance(node.op, ir.Binary)
    if node.op.activation is not None:
        return None
    a, b = node.present
    for x, other in ((a, b), (b, a)):
        inner = m.made_by(x, ir.Unary)
        if inner is None:
            continue
        assert isinstance(inner.op, ir.Unary)
        if inner.op.function.kind is not Fn.NEG:
            continue
        if node.op.kind is BinaryKind.MUL and other.is_constant:
            negative = m.build.unary(Fn.NEG, other)
            return m.build.binary(BinaryKind.MUL, inner.input, negative)
        if node.op.kind is BinaryKind.ADD and not other.is_constant:
            return m.build.binary(BinaryKind.SUB, other, inner.input)
    return None


def _expanded(m: Match, node: ir.Node) -> ir.Value | None:
    """Leaves out a repetition that broadcasting does anyway."""
    operands = list(node.present)
    for index, operand in enumerate(operands):
        inner = m.made_by(operand, ir.BroadcastTo)
        if inner is None:
            continue
        operands[index] = inner.input
        others = [v.shape for v in operands]
        if _broadcasts(others, node.output.shape):
            return m.build.emit(node.op, operands, node.output.shape, node.output.dtype)
        operands[index] = operand
    return None


def _broadcasts(shapes: list[ir.Shape], target: ir.Shape) -> bool:
    for axis in range(-len(target), 0):
        dims = {s[axis] for s in shapes if len(s) >= -axis} - {1}
        if dims != ({target[axis]} - {1}):
            return False
    return True


def _select(m: Match, node: ir.Node) -> ir.Value | None:
    condition, then, other = node.present
    for truth, chosen in ((True, then), (False, other)):
        if _all(condition, truth):
            return m.build.broadcast_to(chosen, node.output.shape)
    return None


def _cast(m: Match, node: ir.Node) -> ir.Value | None:
    if node.input.dtype is node.output.dtype:
        return node.input
    if (node.input.dtype, node.output.dtype) == (ir.DType.F64, ir.DType.F32):
        return _single(m, node.input)
    return None


def _single(m: Match, x: ir.Value) -> ir.Value | None:
    """Returns a float64 in float32, if it is as good there as when it is rounded later.

    Products and quotients are: a factor that is rounded changes them by as much as their own
    rounding does.
    """
    node = m.producer(x)
    if node is None:
        return None
    if isinstance(node.op, ir.Cast):
        return node.input if node.input.dtype is ir.DType.F32 else None
    if not m.used_once(x):
        return None
    if isinstance(node.op, ir.Select):
        condition, then, other = node.present
        then, other = (m.build.cast(v, ir.DType.F32) for v in (then, other))
        return m.build.emit(node.op, [condition, then, other], x.shape, ir.DType.F32)
    scales = isinstance(node.op, ir.Binary) and node.op.kind in (BinaryKind.MUL, BinaryKind.DIV)
    if not scales or not all(_is_factor(m, v) for v in node.present):
        return None
    factors = [m.build.cast(v, ir.DType.F32) for v in node.present]
    return m.build.emit(node.op, factors, x.shape, ir.DType.F32)


def _is_factor(m: Match, x: ir.Value) -> bool:
    if x.data is not None:
        size = np.abs(x.data)
        least, most = np.finfo(np.float32).tiny, np.finfo(np.float32).max
        return bool(((size == 0) | ((size >= least) & (size <= most))).all())
    node = m.made_by(x, ir.Cast)
    return node is not None and node.input.dtype is ir.DType.F32


def _reversed(m: Match, node: ir.Node) -> ir.Value | None:
    """Leaves out the two ends of `not not x`."""
    assert isinstance(node.op, ir.Unary)
    inner = m.made_by(node.input, ir.Unary)
    if inner is None:
        return None
    assert isinstance(inner.op, ir.Unary)
    kinds = (node.op.function.kind, inner.op.function.kind)
    return inner.input if kinds in ((Fn.LOGICAL_NOT,) * 2, (Fn.NEG,) * 2) else None


def _wrapped_index(m: Match, node: ir.Node) -> ir.Value | None:
    """Takes `where(i < 0, i + n, i)` into the lookup that reads it."""
    assert isinstance(node.op, ir.Gather)
    params, indices = node.present
    select = m.made_by(indices, ir.Select)
    if select is None or node.op.wrap:
        return None
    condition, then, other = select.present
    less, plus = m.made_by(condition, ir.Compare), m.made_by(then, ir.Binary)
    if less is None or plus is None:
        return None
    assert isinstance(less.op, ir.Compare)
    assert isinstance(plus.op, ir.Binary)
    size = params.shape[node.op.axis]
    fits = (
        less.op.kind is CompareKind.LT
        and less.present[0] is other
        and is_number(less.present[1], 0)
        and plus.op.kind is BinaryKind.ADD
        and other in plus.present
        and isinstance(size, int)
        and any(is_number(v, size) for v in plus.present)
    )
    if not fits:
        return None
    op = ir.Gather(node.op.axis, node.op.batch_dims, True)
    return m.build.emit(op, [params, other], node.output.shape)


RULES: Rules = {
    ir.Reshape: [_reshape],
    ir.Transpose: [_transpose],
    ir.Slice: [_slice],
    ir.Binary: [_neutral, _constant_right, _chain, _negated, _conjunction, _expanded],
    ir.BroadcastTo: [_repeated],
    ir.MatMul: [_transposed],
    ir.Compare: [_expanded],
    ir.Select: [_select, _expanded],
    ir.Cast: [_cast],
    ir.Unary: [_reversed],
}
# No kernel counts from the end, so `narrow` takes these apart again.
WRAPPED: Rules = {ir.Gather: [_wrapped_index]}
