"""Rules that recognise scaled dot-product attention."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind
from converters.tf.passes.patterns import number
from converters.tf.passes.rewrite import Match, Rules

# Numbers below this hide a key for every score that a model computes.
_HIDDEN = -1e9
# Added to a score, it leaves nothing of it: a query that sees no key takes all alike.
_FAR = -(2.0**100)
_SWAPPED = (0, 2, 1, 3)


@dataclass
class _Scores:
    """What lies between the product of queries and keys and the softmax.

    Attributes:
        scale: A factor.
        mask: What is added.
        causal: Whether keys after the query are hidden.
        turned: Whether the product is one of keys and queries, turned after it.
        seen: What the mask was made from.
    """

    scale: float = 1.0
    mask: ir.Value | None = None
    causal: bool = False
    turned: bool = False
    seen: ir.Value | None = None


def _turned(rank: int) -> list[int]:
    """Returns the order of axes that turns matrices."""
    return [*range(rank - 2), rank - 1, rank - 2]


def _attention(m: Match, node: ir.Node) -> ir.Value | None:
    assert isinstance(node.op, ir.MatMul)
    if node.op != ir.MatMul() or node.operand(2) is not None:
        return None
    weights, values = node.present
    weights, seen = _kept(m, weights)
    softmax = m.made_by(weights, ir.Softmax)
    if softmax is None or softmax.op != ir.Softmax() or not m.used_once(weights):
        return None
    found = _scores(m, softmax.input)
    if found is None:
        return None
    product, scores = found
    if seen is not None and scores.seen is not seen:
        return None
    assert isinstance(product.op, ir.MatMul)
    queries, keys = product.present
    if not product.op.transpose_b:
        keys = m.build.transpose(keys, _turned(keys.rank))
    if scores.turned:
        queries, keys = keys, queries
    if not queries.shape[:-2] == keys.shape[:-2] == values.shape[:-2]:
        return None
    if queries.rank not in (3, 4):
        return None
    heads = [_with_heads(m, x) for x in (queries, keys, values)]
    mask = scores.mask
    if mask is not None:
        lead = (1,) * (queries.rank - mask.rank)
        mask = m.build.reshape(mask, (*lead, *mask.shape))
        mask = _with_heads(m, mask)
    shape = (*heads[0].shape[:3], heads[2].shape[3])
    op = ir.Attention(scores.scale, scores.causal)
    result = m.build.emit(op, [*heads, mask], shape)
    return m.build.reshape(result, node.output.shape)


def _kept(m: Match, weights: ir.Value) -> tuple[ir.Value, ir.Value | None]:
    """Returns the weights before hidden ones were set to the 0 that they are, and what is seen.

    Where every query sees a key, the softmax leaves exactly 0 for a hidden score.
    """
    select = m.made_by(weights, ir.Select)
    if select is None or not m.used_once(weights):
        return weights, None
    seen, kept, hidden = select.present
    known = seen.data is not None and bool(seen.data.any(axis=-1).all())
    if not known or number(hidden) != 0 or kept.shape != select.output.shape:
        return weights, None
    return kept, seen


def _with_heads(m: Match, x: ir.Value) -> ir.Value:
    """Returns a tensor with an axis of heads."""
    return x if x.rank == 4 else m.build.reshape(x, (x.shape[0], 1, *x.shape[1:]))


def _scores(m: Match, value: ir.Value) -> tuple[ir.Node, _Scores] | None:
    """Returns the product under scales and at most one mask."""
    scores = _Scores()
    while True:
        node = m.producer(value)
        if node is None or not m.used_once(value):
            return None
        if isinstance(node.op, ir.MatMul):
            plain = not node.op.transpose_a and node.op.activation is None
            return (node, scores) if plain and node.operand(2) is None else None
        if isinstance(node.op, ir.Transpose):
            if scores.turned or list(node.op.perm) != _turned(node.output.rank):
                return None
            scores.turned, value = True, node.input
            continue
        if scores.turned:
            return None
        inner = _unscaled(node, scores) or _unmasked(m, node, scores)
        if inner is None:
            return None
        value = inner


def _unscaled(node: ir.Node, scores: _Scores) -> ir.Value | None:
    if not isinstance(node.op, ir.Binary) or node.op.activation is not None:
        return None
    x, constant = node.present
    factor = number(constant)
    if factor is None or x.shape != node.output.shape:
        return None
    if node.op.kind is BinaryKind.DIV and factor:
        scores.scale /= factor
    elif node.op.kind is BinaryKind.MUL:
        scores.scale *= factor
    else:
        return None
    return x


def _unmasked(m: Match, node: ir.Node, scores: _Scores) -> ir.Value | None:
    if scores.mask is not None or scores.causal or scores.scale != 1.0:
        return None
    if isinstance(node.op, ir.Select):
        condition, x, other = node.present
        turned = number(x) is not None
        if turned:
            x, other = other, x
        bound = number(other)
        if bound is None or bound > _HIDDEN or x.shape != node.output.shape:
            return None
        scores.seen = None if turned else condition
        known = condition.data is not None and _is_causal(condition.data != turned)
        if known or (not turned and _counts_to_own(m, condition)):
            scores.causal = True
            return x
        parts = [m.build.scalar(0, x.dtype), m.build.scalar(min(bound, _FAR), x.dtype)]
        scores.mask = m.build.select(condition, *(parts[::-1] if turned else parts))
        return x
    if not isinstance(node.op, ir.Binary) or node.op.kind is not BinaryKind.ADD:
        return None
    if node.op.activation is not None:
        return None
    a, b = node.present
    for x, mask in ((a, b), (b, a)):
        inner = m.producer(x)
        below = inner is not None and isinstance(inner.op, ir.MatMul | ir.Binary)
        if x.shape == node.output.shape and below and _is_mask(mask, x):
            scores.mask = mask
            return x
    return None


def _is_mask(mask: ir.Value, scores: ir.Value) -> bool:
    return mask.rank <= scores.rank and all(
        d in (1, s) for d, s in zip(mask.shape[::-1], scores.shape[::-1], strict=False)
    )


def _is_causal(seen: ir.Array) -> bool:
    if seen.ndim < 2 or seen.size != seen.shape[-1] * seen.shape[-2]:
        return False
    queries, keys = int(seen.shape[-2]), int(seen.shape[-1])
    square = seen.reshape(queries, keys)
    return bool(np.array_equal(square, np.tri(queries, keys, keys - queries, dtype=bool)))


def _counts_to_own(m: Match, seen: ir.Value) -> bool:
    """Returns whether places of keys are compared with the query's own, where both are open."""
    sizes = seen.shape[-2:]
    if len(sizes) < 2 or sizes[0] != sizes[1] or any(d != 1 for d in seen.shape[:-2]):
        return False
    node = m.producer(seen)
    while node is not None and isinstance(node.op, ir.Reshape | ir.BroadcastTo | ir.Select):
        if isinstance(node.op, ir.Select):
            then, other = (v.data for v in node.present[1:])
            if then is None or other is None or not then.all() or other.any():
                return False
        node = m.producer(node.input)
    if node is None or node.op != ir.Compare(ir.CompareKind.LE):
        return False
    key, query = node.present
    shapes = ((1, sizes[1]), (sizes[0], 1))
    return (key.shape, query.shape) == shapes and _counts(m, key) and _counts(m, query)


def _counts(m: Match, places: ir.Value) -> bool:
    """Returns whether elements are their places: running sums of ones."""
    node = m.producer(places)
    if node is not None and isinstance(node.op, ir.Reshape):
        node = m.producer(node.input)
    if node is None or node.op != ir.Cumulative(0, exclusive=True):
        return False
    ones = m.made_by(node.input, ir.BroadcastTo)
    return ones is not None and number(ones.input) == 1


def _beside(m: Match, node: ir.Node) -> ir.Value | None:
    """Leaves heads side by side that were moved apart for an attention and together after it."""
    assert isinstance(node.op, ir.Transpose)
    inner = m.made_by(node.input, ir.Attention)
    if inner is None or node.op.perm != _SWAPPED or not m.used_once(node.input):
        return None
    assert isinstance(inner.op, ir.Attention)
    if inner.op.beside or inner.operand(3) is not None:
        return None
    sides = []
    for value in inner.present:
        moved = m.made_by(value, ir.Transpose)
        if moved is None or moved.op != node.op:
            return None
        sides.append(moved.input)
    return m.emit_at(inner, replace(inner.op, beside=True), sides, node.output)


RULES: Rules = {ir.MatMul: [_attention], ir.Transpose: [_beside]}
