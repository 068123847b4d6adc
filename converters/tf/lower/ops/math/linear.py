"""Matmuls."""

from __future__ import annotations

import string
from itertools import pairwise

import numpy as np

from converters.tf import ir
from converters.tf.ir.build import Builder, static
from converters.tf.ir.symbolic import product
from converters.tf.ir.values import EXACT
from converters.tf.lower.graph import Context, Handler, Result, Unsupported
from converters.tf.lower.ops.math.matrices import diagonal

# Terms of a sum of products of int8 that float32 holds whatever they are.
_EXACT_TERMS = EXACT // (128 * 128)


def _mat_mul(ctx: Context) -> Result:
    return _product(ctx, ctx.attr("transpose_a", False), ctx.attr("transpose_b", False))


def _batch_mat_mul(ctx: Context) -> Result:
    return _product(ctx, ctx.attr("adj_x", False), ctx.attr("adj_y", False))


def _product(ctx: Context, transpose_a: bool, transpose_b: bool) -> Result:
    a, b = ctx.value(0), ctx.value(1)
    if a.dtype is b.dtype is ir.DType.I8 and ctx.dtype("Tout") is ir.DType.I32:
        return _whole_product(ctx.build, a, b, (transpose_a, transpose_b))
    return ctx.build.mat_mul(a, b, transpose_a, transpose_b)


def _whole_product(
    build: Builder, a: ir.Value, b: ir.Value, transposed: tuple[bool, bool]
) -> ir.Value:
    """Multiplies int8 in float32, which is exact, and adds parts of long sums in int32."""
    axes = (a.rank - (2 if transposed[0] else 1), b.rank - (1 if transposed[1] else 2))
    size = static(a.shape[axes[0]], "the length of a sum")
    total = None
    for begin, count in _exact_parts(b, axes[1], size):
        left, right = (
            build.cast(build.part(side, axis, begin, count), ir.DType.F32)
            for side, axis in zip((a, b), axes, strict=True)
        )
        part = build.cast(build.mat_mul(left, right, *transposed), ir.DType.I32)
        total = part if total is None else build.binary(ir.BinaryKind.ADD, total, part)
    if total is None:
        raise Unsupported("a matmul without elements")
    return total


def _exact_parts(b: ir.Value, axis: int, size: int) -> list[tuple[int, int]]:
    """Returns where parts of a sum start, and their lengths: no sum of magnitudes is too large."""
    if b.data is None:
        return [(i, min(_EXACT_TERMS, size - i)) for i in range(0, size, _EXACT_TERMS)]
    most = np.moveaxis(np.abs(b.data.astype(np.int64)), axis, 0).reshape(size, -1)
    sums = np.cumsum(most, axis=0) * 128
    starts = [0]
    while starts[-1] < size:
        before = sums[starts[-1] - 1] if starts[-1] else 0
        fits = int(np.searchsorted((sums - before).max(axis=1, initial=0), EXACT, "right"))
        starts.append(fits)
    return [(i, j - i) for i, j in pairwise(starts)]


def _labels(equation: str, ranks: list[int]) -> tuple[list[str], str]:
    """Returns the labels of operands and result, an ellipsis spelt out."""
    left, _, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    free = [c for c in string.ascii_uppercase if c not in equation]
    widths = [r - len(t.replace("...", "")) for t, r in zip(terms, ranks, strict=True)]
    longest = max((w for t, w in zip(terms, widths, strict=True) if "..." in t), default=0)
    spelt = "".join(free[:longest])
    spelt_terms = [
        t.replace("...", spelt[longest - w :]) for t, w in zip(terms, widths, strict=True)
    ]
    return spelt_terms, right.replace("...", spelt)


def _einsum(ctx: Context) -> Result:
    values = ctx.values
    terms, out = _labels(ctx.attr("equation"), [v.rank for v in values])
    taken = [_diagonals(ctx.build, v, t) for v, t in zip(values, terms, strict=True)]
    values, terms = [v for v, _ in taken], [t for _, t in taken]
    if len(values) == 1:
        return _arrange(ctx, *_summed(ctx, values[0], terms[0], out), out)
    if len(values) != 2:
        raise Unsupported(f"einsum of {len(values)} tensors")
    (a, left), (b, right) = _narrowed(ctx, values, terms)
    a, left = _summed(ctx, a, left, right + out)
    b, right = _summed(ctx, b, right, left + out)
    shared = [c for c in out if c in left and c in right]
    summed = [c for c in left if c in right and c not in out]
    own = [c for c in out if c in left and c not in right]
    other = [c for c in out if c in right and c not in left]
    backwards = bool(own and other) and out.index(other[-1]) < out.index(own[0])
    if backwards and not a.is_constant and not b.is_constant:
        a, b, left, right, own, other = b, a, right, left, other, own
    if a.is_constant and not b.is_constant and not shared:
        a, b, left, right, own, other = b, a, right, left, other, own
    sizes = dict(zip(left, a.shape, strict=True)) | dict(zip(right, b.shape, strict=True))
    if b.is_constant and not shared:
        return _dense(ctx, (a, left), (b, right), (summed, own, other), sizes, out)
    return _batched(ctx, (a, left), (b, right), (shared, summed, own, other), sizes, out)


def _diagonals(build: Builder, x: ir.Value, term: str) -> tuple[ir.Value, str]:
    """Takes the elements at which the places of a repeated label agree."""
    for label in dict.fromkeys(term):
        while term.count(label) > 1:
            pair = [i for i, c in enumerate(term) if c == label][:2]
            rest = [i for i in range(len(term)) if i not in pair]
            x = diagonal(build, build.transpose(x, [*rest, *pair]))
            term = "".join(term[i] for i in rest) + label
    return x, term


def _narrowed(ctx: Context, values: list[ir.Value], terms: list[str]) -> list[tuple[ir.Value, str]]:
    """Takes axes of one element out of an operand if the other one has more of them."""
    sizes = [dict(zip(t, v.shape, strict=True)) for v, t in zip(values, terms, strict=True)]
    result = []
    for x, term, other in zip(values, terms, reversed(sizes), strict=True):
        kept = [c for c, d in zip(term, x.shape, strict=True) if d != 1 or other.get(c, 1) == 1]
        shape = tuple(d for c, d in zip(term, x.shape, strict=True) if c in kept)
        result.append((ctx.build.reshape(x, shape), "".join(kept)))
    for label in set(result[0][1]) & set(result[1][1]):
        if sizes[0][label] != sizes[1][label]:
            dims = [ir.shape_text(v.shape) for v in values]
            raise Unsupported(f"einsum of {' and '.join(dims)}, which do not fit for every batch")
    return result


def _summed(ctx: Context, x: ir.Value, term: str, keep: str) -> tuple[ir.Value, str]:
    """Sums the labels that nobody else has."""
    axes = [i for i, c in enumerate(term) if c not in keep]
    if not axes:
        return x, term
    rest = "".join(c for c in term if c in keep)
    return ctx.build.reduce(ir.ReduceKind.SUM, x, axes), rest


def _arrange(ctx: Context, x: ir.Value, term: str, out: str) -> ir.Value:
    return ctx.build.transpose(x, [term.index(c) for c in out])


def _dims(labels: list[str], sizes: dict[str, ir.Dim]) -> tuple[ir.Dim, ...]:
    return tuple(sizes[c] for c in labels)


def _dense(
    ctx: Context,
    a: tuple[ir.Value, str],
    b: tuple[ir.Value, str],
    groups: tuple[list[str], list[str], list[str]],
    sizes: dict[str, ir.Dim],
    out: str,
) -> Result:
    build = ctx.build
    summed, own, other = groups
    x = _arrange(ctx, *a, "".join(own + summed))
    kernel = _arrange(ctx, *b, "".join(summed + other))
    inner, outer = product(_dims(summed, sizes)), product(_dims(other, sizes))
    x = build.reshape(x, (*_dims(own, sizes), inner))
    result = build.mat_mul(x, build.reshape(kernel, (inner, outer)))
    result = build.reshape(result, (*_dims(own, sizes), *_dims(other, sizes)))
    return _arrange(ctx, result, "".join(own + other), out)


def _batched(
    ctx: Context,
    a: tuple[ir.Value, str],
    b: tuple[ir.Value, str],
    groups: tuple[list[str], list[str], list[str], list[str]],
    sizes: dict[str, ir.Dim],
    out: str,
) -> Result:
    build = ctx.build
    shared, summed, own, other = groups
    lead = _dims(shared, sizes)
    rows, columns = product(_dims(own, sizes)), product(_dims(other, sizes))
    inner = product(_dims(summed, sizes))
    left = build.reshape(_arrange(ctx, *a, "".join(shared + own + summed)), (*lead, rows, inner))
    transposed = bool(summed) and b[1].endswith(summed[-1])
    order = shared + (other + summed if transposed else summed + other)
    right = _arrange(ctx, *b, "".join(order))
    matrix = (columns, inner) if transposed else (inner, columns)
    right = build.reshape(right, (*lead, *matrix))
    result = build.mat_mul(left, right, False, transposed)
    result = build.reshape(result, (*lead, *_dims(own, sizes), *_dims(other, sizes)))
    return _arrange(ctx, result, "".join(shared + own + other), out)


OPS: dict[str, Handler] = {
    "MatMul": _mat_mul,
    "BatchMatMul": _batch_mat_mul,
    "BatchMatMulV2": _batch_mat_mul,
    "BatchMatMulV3": _batch_mat_mul,
    "Einsum": _einsum,
}
