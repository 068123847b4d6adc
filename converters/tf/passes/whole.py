"""Rules for models whose weights are integers: products that float32 computes exactly, tables.

A product of such numbers is exact as long as no sum of magnitudes exceeds 2^24, whatever the order
of its terms. So integers in between change nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind, Fn
from converters.tf.ir.values import EXACT
from converters.tf.passes.rewrite import Match, Rules

_ROUNDED = (Fn.ROUND, Fn.FLOOR, Fn.CEIL)
_MOVED = (ir.Reshape, ir.Slice, ir.Transpose)
_WHOLE = (ir.DType.I8, ir.DType.I16, ir.DType.I32)

# Rows of a table.
_LOOKUPS = (ir.Gather(0), ir.Gather(0, wrap=True))

# The least and the largest that an element can be.
Bounds: TypeAlias = tuple[float, float]


def _there_and_back(m: Match, node: ir.Node) -> ir.Value | None:
    """Leaves out a conversion to integers and back that changes no element."""
    inner = m.made_by(node.input, ir.Cast)
    if inner is None or node.output.dtype is not ir.DType.F32:
        return None
    if inner.input.dtype is not ir.DType.F32 or node.input.dtype not in _WHOLE:
        return None
    bounds = _bounds(m, inner.input)
    least = np.iinfo(node.input.dtype.numpy)
    if bounds is None or bounds[0] < least.min or bounds[1] > least.max:
        return None
    return inner.input


def _moved(m: Match, node: ir.Node) -> ir.Value | None:
    """Converts before elements move, if they were converted just before."""
    inner = m.producer(node.input)
    if inner is None or not isinstance(inner.op, _MOVED) or not m.used_once(node.input):
        return None
    if m.made_by(inner.input, ir.Cast) is None:
        return None
    return m.build.emit(inner.op, [m.build.cast(inner.input, node.output.dtype)], node.output.shape)


def _table(m: Match, node: ir.Node) -> ir.Value | None:
    """Converts a table instead of what is looked up in it."""
    inner = m.made_by(node.input, ir.Gather)
    if inner is None or not inner.input.is_constant:
        return None
    table = m.build.cast(inner.input, node.output.dtype)
    return m.build.emit(inner.op, [table, *inner.inputs[1:]], node.output.shape)


def _columns(m: Match, node: ir.Node) -> ir.Value | None:
    """Takes columns of a table instead of columns of what is looked up in it."""
    assert isinstance(node.op, ir.Gather)
    inner = m.made_by(node.input, ir.Gather)
    if inner is None or node.op.batch_dims or not node.present[1].is_constant:
        return None
    table, places = inner.present
    axis = node.op.axis - places.rank + 1
    if inner.op not in _LOOKUPS or not table.is_constant or axis < 1:
        return None
    shape = (*table.shape[:axis], *node.present[1].shape, *table.shape[axis + 1 :])
    columns = m.build.emit(replace(node.op, axis=axis), [table, node.present[1]], shape)
    return m.build.emit(inner.op, [columns, places], node.output.shape)


def _tables(m: Match, node: ir.Node) -> ir.Value | None:
    """Combines two tables instead of what is looked up in both at the same places."""
    assert isinstance(node.op, ir.Binary)
    first, second = (_looked_up(m, v) for v in node.present)
    if first is None or second is None or node.op.activation is not None:
        return None
    (left, lookup), (right, other) = first, second
    places = lookup.present[1]
    if lookup.op != other.op or other.present[1] is not places:
        return None
    if left.rank != right.rank or left.shape[0] != right.shape[0]:
        return None
    table = m.build.binary(node.op.kind, left, right)
    return m.build.emit(lookup.op, [table, places], node.output.shape)


def _looked_up(m: Match, value: ir.Value) -> tuple[ir.Value, ir.Node] | None:
    """Returns a table and where rows of it were looked up, each perhaps with another axis of 1."""
    node, tail = m.producer(value), False
    if node is not None and isinstance(node.op, ir.Reshape):
        tail = node.output.shape == (*node.input.shape, 1)
        node = m.producer(node.input) if tail else None
    if node is None or node.op not in _LOOKUPS or not node.input.is_constant:
        return None
    table = node.input
    return (m.build.reshape(table, (*table.shape, 1)) if tail else table), node


def _bounds(m: Match, value: ir.Value) -> Bounds | None:
    """Returns the bounds of elements that are integers, perhaps infinite; else nothing."""
    if value.data is not None:
        return _of_constant(value.data)
    node = m.producer(value)
    if node is None:
        return None
    op = node.op
    if isinstance(op, _MOVED):
        return _bounds(m, node.input)
    if isinstance(op, ir.Cast) and node.input.dtype in _WHOLE:
        of = np.iinfo(node.input.dtype.numpy)
        return (of.min, of.max)
    if isinstance(op, ir.Unary):
        return _of_function(m, op.function, node.input)
    if isinstance(op, ir.Binary) and op.activation is None:
        sides = [_bounds(m, v) for v in node.present]
        chosen = {BinaryKind.MAX: max, BinaryKind.MIN: min}.get(op.kind)
        if chosen is None or sides[0] is None or sides[1] is None:
            return None
        return (chosen(sides[0][0], sides[1][0]), chosen(sides[0][1], sides[1][1]))
    if isinstance(op, ir.Dense) and len(node.present) == 2 and op.activation is None:
        return _of_product(m, *node.present)
    return None


def _of_constant(data: ir.Array) -> Bounds | None:
    if data.size == 0 or not np.isfinite(data).all() or (data != np.rint(data)).any():
        return None
    return (float(data.min()), float(data.max()))


def _of_function(m: Match, function: ir.Function, x: ir.Value) -> Bounds | None:
    if function.kind in _ROUNDED:
        return (-math.inf, math.inf)
    bounds = _bounds(m, x)
    if function.kind is not Fn.CLAMP or bounds is None:
        return None
    low, high = function.params
    if any(math.isfinite(p) and p != math.floor(p) for p in (low, high)):
        return None
    return (min(max(bounds[0], low), high), min(max(bounds[1], low), high))


def _of_product(m: Match, x: ir.Value, kernel: ir.Value) -> Bounds | None:
    bounds = _bounds(m, x)
    if bounds is None or kernel.data is None or _of_constant(kernel.data) is None:
        return None
    largest = max(abs(bounds[0]), abs(bounds[1]))
    most = largest * float(np.abs(kernel.data.astype(np.float64)).sum(axis=0).max(initial=0))
    return (-most, most) if most <= EXACT else None


RULES: Rules = {
    ir.Cast: [_there_and_back, _moved, _table],
    ir.Binary: [_tables],
    ir.Gather: [_columns],
}
