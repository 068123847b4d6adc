"""Products of matrices."""

from __future__ import annotations

import string

from converters.tf import ir
from converters.tf.lower import Context, Handler, Result, Unsupported
from converters.tf.symbolic import product


def _mat_mul(ctx: Context) -> Result:
    a, b = ctx.value(0), ctx.value(1)
    return ctx.build.mat_mul(a, b, ctx.attr("transpose_a", False), ctx.attr("transpose_b", False))


def _batch_mat_mul(ctx: Context) -> Result:
    a, b = ctx.value(0), ctx.value(1)
    return ctx.build.mat_mul(a, b, ctx.attr("adj_x", False), ctx.attr("adj_y", False))


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
    if any(len(set(t)) != len(t) for t in terms):
        raise Unsupported(f"einsum {ctx.attr('equation')} with a repeated label")
    if len(values) == 1:
        return _arrange(ctx, *_summed(ctx, values[0], terms[0], out), out)
    if len(values) != 2:
        raise Unsupported(f"einsum of {len(values)} tensors")
    (a, b), (left, right) = values, terms
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
