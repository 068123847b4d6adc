"""A small language for shapes of expressions.

A pattern is one of

* a name: matches any value; the same name matches the same value everywhere,
* a number: matches a constant all of whose elements are that number (to float32 precision),
* `Const(name)`: matches a constant,
* `Op(kind, a, b)`: matches what a node of that kind computes from operands that match; operands of
  a sum, product, maximum and minimum match in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind, CompareKind, Fn
from converters.tf.passes.rewrite import Match

_ANY_ORDER = (BinaryKind.ADD, BinaryKind.MUL, BinaryKind.MAX, BinaryKind.MIN)
_CLOSE = 1e-6


Kind: TypeAlias = BinaryKind | CompareKind | Fn | ir.Function | type


@dataclass(frozen=True)
class Op:
    """An expression of a function and its operands."""

    kind: Kind
    args: tuple[Pattern, ...]


@dataclass(frozen=True)
class Const:
    """A constant, kept under a name."""

    name: str


Pattern: TypeAlias = str | float | Op | Const
Found: TypeAlias = Mapping[str, ir.Value]


def add(a: Pattern, b: Pattern) -> Op:
    """Matches a sum."""
    return Op(BinaryKind.ADD, (a, b))


def sub(a: Pattern, b: Pattern) -> Op:
    """Matches a difference."""
    return Op(BinaryKind.SUB, (a, b))


def mul(a: Pattern, b: Pattern) -> Op:
    """Matches a product."""
    return Op(BinaryKind.MUL, (a, b))


def div(a: Pattern, b: Pattern) -> Op:
    """Matches a quotient."""
    return Op(BinaryKind.DIV, (a, b))


def where(condition: Pattern, then: Pattern, other: Pattern) -> Op:
    """Matches a selection."""
    return Op(ir.Select, (condition, then, other))


def fn(kind: Fn | ir.Function, x: Pattern) -> Op:
    """Matches a function, with whatever parameters if only its kind is given."""
    return Op(kind, (x,))


def find(match: Match, pattern: Pattern, node: ir.Node) -> Found | None:
    """Returns what the names of a pattern stand for in what a node computes, or nothing."""
    if not isinstance(pattern, Op) or not _fits(pattern, node):
        return None
    return next(_found_op(match, pattern, node, {}), None)


def _found(match: Match, pattern: Pattern, value: ir.Value, so_far: Found) -> Iterator[Found]:
    if isinstance(pattern, str):
        if so_far.get(pattern, value) is value:
            yield {**so_far, pattern: value}
    elif isinstance(pattern, Const):
        if value.is_constant and so_far.get(pattern.name, value) is value:
            yield {**so_far, pattern.name: value}
    elif isinstance(pattern, Op):
        node = match.producer(value)
        if node is not None and _fits(pattern, node):
            yield from _found_op(match, pattern, node, so_far)
    elif is_number(value, float(pattern)):
        yield so_far


def _fits(pattern: Op, node: ir.Node) -> bool:
    """Returns whether a node is of the kind; its operands are not looked at."""
    return _is(node.op, pattern.kind) and len(node.present) == len(pattern.args)


def _found_op(match: Match, pattern: Op, node: ir.Node, so_far: Found) -> Iterator[Found]:
    """Yields what the names stand for in a node that fits."""
    orders = [node.present]
    if pattern.kind in _ANY_ORDER:
        orders.append((node.present[1], node.present[0]))
    for operands in orders:
        if not all(map(partial(_may_be, match), pattern.args, operands)):
            continue
        found: list[Found] = [so_far]
        for arg, operand in zip(pattern.args, operands, strict=False):
            found = [more for so_far in found for more in _found(match, arg, operand, so_far)]
        yield from found


def _may_be(match: Match, pattern: Pattern, value: ir.Value) -> bool:
    """Returns whether a value is of the kind of a pattern; what it is made of is not looked at."""
    if isinstance(pattern, Op):
        node = match.producer(value)
        return node is not None and _fits(pattern, node)
    return isinstance(pattern, str) or value.is_constant


def _is(op: ir.Op, kind: Kind) -> bool:
    if isinstance(kind, CompareKind):
        return isinstance(op, ir.Compare) and op.kind is kind
    if isinstance(kind, ir.Function):
        return isinstance(op, ir.Unary) and op.function == kind
    if isinstance(kind, BinaryKind):
        return isinstance(op, ir.Binary) and op.kind is kind and op.activation is None
    if isinstance(kind, Fn):
        return isinstance(op, ir.Unary) and op.function.kind is kind
    return isinstance(op, kind)


def is_number(value: ir.Value, number: float) -> bool:
    """Returns whether a value is a constant all of whose elements are about a number."""
    data, near = value.data, _CLOSE * max(1.0, abs(number))
    if data is None or data.dtype.kind not in "fiu" or data.size == 0:
        return False
    # Most constants are told apart by an element, in a fraction of the time.
    return bool(abs(data.flat[0] - number) <= near and np.all(np.abs(data - number) <= near))


def number(value: ir.Value) -> float | None:
    """Returns the number that all elements of a constant are."""
    data = value.data
    if data is None or data.dtype.kind not in "fiu" or data.size == 0:
        return None
    first, last = data.flat[0], data.flat[-1]
    return float(first) if bool(first == last and np.all(data == first)) else None
