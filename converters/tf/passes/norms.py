"""Rules that recognise norms of rows and of groups of channels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind, Fn, ReduceKind
from converters.tf.passes.patterns import Const, Found, Pattern, add, find, fn, mul, number, sub
from converters.tf.passes.rewrite import Match, Rules

_INVERSE = fn(Fn.RSQRT, add("variance", Const("epsilon")))


def _spellings(inverse: Pattern, scaled: bool) -> Iterator[Pattern]:
    """Yields the ways to write `(x - mean) * inverse + shift`.

    `inverse` holds the scale already if `scaled`.
    """
    centered = sub("x", "mean")
    yield add(mul("x", inverse), sub(Const("shift"), mul("mean", inverse)))
    yield sub(mul("x", inverse), mul("mean", inverse))
    yield add(mul("x", inverse), mul(fn(Fn.NEG, "mean"), inverse))
    yield add(mul("x", inverse), add(mul(fn(Fn.NEG, "mean"), inverse), Const("shift")))
    yield mul(centered, inverse)
    if not scaled:
        yield mul("x", inverse)


def _patterns() -> tuple[Pattern, ...]:
    with_scale = mul(_INVERSE, Const("scale"))
    return (*_spellings(with_scale, True), *_spellings(_INVERSE, False))


_PATTERNS = _patterns()


def _reduced(m: Match, value: ir.Value, wanted: ir.Value | None) -> tuple[int, ...] | None:
    """Returns the axes if a value is a mean that keeps dimensions, of a wanted value if given."""
    node = m.made_by(value, ir.Reduce)
    if node is None:
        return None
    assert isinstance(node.op, ir.Reduce)
    if node.op.kind is not ReduceKind.MEAN or not node.op.keepdims:
        return None
    return node.op.axes if wanted is None or node.input is wanted else None


def _statistics(m: Match, found: Found) -> tuple[ir.NormKind, tuple[int, ...]] | None:
    """Returns which norm it is and the axes if the variance belongs to x."""
    x = found["x"]
    axes = _reduced(m, found["variance"], None)
    node = m.producer(found["variance"])
    if axes is None or node is None:
        return None
    squares = m.producer(node.input)
    if squares is None:
        return None
    mean = found.get("mean")
    if mean is None:
        if isinstance(squares.op, ir.Unary) and squares.op.function.kind is Fn.SQUARE:
            return (ir.NormKind.RMS, axes) if squares.input is x else None
        return None
    if _reduced(m, mean, x) != axes:
        return None
    if isinstance(squares.op, ir.Binary):
        spread = squares.op.kind is BinaryKind.SQUARED_DIFFERENCE
        if spread and set(squares.present) == {x, mean}:
            return ir.NormKind.LAYER, axes
    if isinstance(squares.op, ir.Unary) and squares.op.function.kind is Fn.SQUARE:
        centered = m.made_by(squares.input, ir.Binary)
        if centered is not None and centered.op == ir.Binary(BinaryKind.SUB):
            return (ir.NormKind.LAYER, axes) if centered.present == (x, mean) else None
    return None


def _norm(m: Match, node: ir.Node) -> ir.Value | None:
    assert isinstance(node.op, ir.Binary)
    if node.op.activation is not None or node.output.dtype is not ir.DType.F32:
        return None
    for pattern in _PATTERNS:
        found = find(m, pattern, node)
        if found is None:
            continue
        statistics = _statistics(m, found)
        epsilon = number(found["epsilon"])
        if statistics is None or epsilon is None or found["x"].shape != node.output.shape:
            continue
        kind, axes = statistics
        result = _rows(m, found, kind, axes, epsilon) or _groups(m, found, kind, axes, epsilon)
        if result is not None:
            return result
    return None


def _rows(
    m: Match, found: Found, kind: ir.NormKind, axes: tuple[int, ...], epsilon: float
) -> ir.Value | None:
    """Normalizes over the last axes."""
    x = found["x"]
    if axes != tuple(range(x.rank - len(axes), x.rank)):
        return None
    tail = tuple(d for d in x.shape[axes[0] :] if isinstance(d, int))
    if len(tail) < len(axes):
        return None
    width = int(np.prod(tail))
    constants = []
    for name in ("scale", "shift"):
        flat = _over(found.get(name), tail, x.rank)
        if flat is None and name in found:
            return None
        constants.append(flat)
    rows = m.build.reshape(x, (*x.shape[: axes[0]], width))
    result = m.build.emit(ir.Norm(kind, epsilon), [rows, *constants], rows.shape)
    return m.build.reshape(result, x.shape)


def _over(constant: ir.Value | None, tail: tuple[int, ...], rank: int) -> ir.Value | None:
    """Returns a constant spread over the last axes, flat."""
    if constant is None or constant.data is None:
        return None
    data = constant.data
    data = data.reshape((1,) * (rank - data.ndim) + data.shape)
    lead, inner = data.shape[: rank - len(tail)], data.shape[rank - len(tail) :]
    if any(d != 1 for d in lead):
        return None
    flat = np.broadcast_to(data.reshape(inner), tail).reshape(-1)
    return ir.constant(np.ascontiguousarray(flat), constant.name)


def _groups(
    m: Match, found: Found, kind: ir.NormKind, axes: tuple[int, ...], epsilon: float
) -> ir.Value | None:
    """Normalizes over all positions and the channels of a group."""
    x = found["x"]
    if kind is not ir.NormKind.LAYER or x.rank < 3:
        return None
    if axes != (*range(1, x.rank - 2), x.rank - 1):
        return None
    groups, inner = x.shape[-2:]
    if not isinstance(groups, int) or not isinstance(inner, int):
        return None
    constants = []
    for name in ("scale", "shift"):
        flat = _over(found.get(name), (groups, inner), x.rank)
        if flat is None and name in found:
            return None
        constants.append(flat)
    whole = m.build.reshape(x, (*x.shape[:-2], groups * inner))
    result = m.build.emit(ir.GroupNorm(groups, epsilon), [whole, *constants], whole.shape)
    return m.build.reshape(result, x.shape)


def _scaled(m: Match, node: ir.Node) -> ir.Value | None:
    """Takes a scale and a shift after a norm into it."""
    assert isinstance(node.op, ir.Binary)
    x, constant = node.present
    reshape = m.made_by(x, ir.Reshape)
    if reshape is not None and reshape.input.shape[-1:] == x.shape[-1:] != ():
        x = reshape.input
    norm = m.producer(x)
    if norm is None or not isinstance(norm.op, ir.Norm | ir.GroupNorm) or node.op.activation:
        return None
    unread = m.used_once(x) and m.used_once(node.present[0])
    if constant.data is None or node.output.shape != node.present[0].shape or not unread:
        return None
    width = x.shape[-1]
    if not isinstance(width, int):
        return None
    rank = node.output.rank
    flat = _over(constant, (width,), rank) if constant.rank <= rank else None
    if flat is None or flat.data is None:
        return None
    scale, shift = norm.operand(1), norm.operand(2)
    if node.op.kind is BinaryKind.ADD and shift is None:
        result = m.emit_at(norm, norm.op, [norm.input, scale, flat], x)
        return m.build.reshape(result, node.output.shape)
    if node.op.kind is BinaryKind.MUL and shift is None:
        if scale is not None and scale.data is not None:
            flat = ir.constant(scale.data * flat.data, scale.name)
        result = m.emit_at(norm, norm.op, [norm.input, flat], x)
        return m.build.reshape(result, node.output.shape)
    return None


RULES: Rules = {ir.Binary: [_norm, _scaled]}
