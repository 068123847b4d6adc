"""Diagonals of matrices."""

from __future__ import annotations

from converters.tf import ir
from converters.tf.ir.build import Builder, static
from converters.tf.ir.expressions import is_open, maximum, minimum
from converters.tf.lower.graph import Context, Handler, Result, Unsupported


def diagonal(build: Builder, x: ir.Value, offset: int = 0) -> ir.Value:
    """Returns a diagonal of the last two axes; `offset` is that of its columns."""
    rows, columns = (static(d, "a matrix") for d in x.shape[-2:])
    first = max(-offset, 0) * columns + max(offset, 0)
    count = maximum(0, minimum(rows + min(offset, 0), columns - max(offset, 0)))
    lead = x.shape[:-2]
    flat = build.reshape(x, (*lead, rows * columns))
    if is_open(rows) or is_open(columns):
        # Rows that are longer by one element begin with the next one of the diagonal each.
        flat = build.part(flat, len(lead), first, rows * columns - first)
        flat = build.pad(flat, [*[(0, 0)] * len(lead), (0, rows + first)])
        longer = build.reshape(flat, (*lead, rows, columns + 1))
        found = build.slice(longer, [0] * (len(lead) + 2), (*lead, count, 1))
        return build.reshape(found, (*lead, count))
    begin, steps = [0] * len(lead) + [first], [1] * len(lead) + [columns + 1]
    return build.slice(flat, begin, (*lead, count), steps)


def _offset(ctx: Context, index: int) -> int:
    """Returns which diagonal is meant; the main one if the op is of the first version."""
    if len(ctx.args) <= index:
        return 0
    offsets = set(ctx.ints(index))
    if len(offsets) != 1:
        raise Unsupported("several diagonals in one call")
    return offsets.pop()


def _spread(
    build: Builder, x: ir.Value, offset: int, sizes: tuple[int, int]
) -> tuple[ir.Value, ir.Value]:
    """Returns where a diagonal lies, and its elements in a shape that broadcasts to the matrix."""
    rows, columns = sizes
    across = build.reshape(build.numbers(columns, ir.DType.I32), (1, columns))
    down = build.reshape(build.numbers(rows, ir.DType.I32), (rows, 1))
    places = build.compare(
        ir.CompareKind.EQ,
        build.binary(ir.BinaryKind.SUB, across, down),
        build.scalar(offset, ir.DType.I32),
    )
    axis = x.rank - 1
    size = rows if offset >= 0 else columns
    x = build.pad(x, [*[(0, 0)] * axis, (0, size - static(x.shape[axis], "a diagonal"))])
    wide = (*x.shape[:-1], size, 1) if offset >= 0 else (*x.shape[:-1], 1, size)
    return places, build.reshape(x, wide)


def _diag(ctx: Context) -> Result:
    x, offset = ctx.value(0), _offset(ctx, 1)
    size = static(x.shape[-1], "a diagonal") + abs(offset)
    given = [ctx.dims(i).item() if len(ctx.args) > i else -1 for i in (2, 3)]
    known = [static(size, "a matrix") for size in given]
    rows, columns = (size if n < 0 else n for n in known)
    if known[0] < 0 <= known[1]:
        rows = size - abs(offset) - min(offset, 0)
    if known[1] < 0 <= known[0]:
        columns = size - abs(offset) + max(offset, 0)
    rest = ctx.value(4) if len(ctx.args) > 4 else ctx.build.scalar(0, x.dtype)
    places, spread = _spread(ctx.build, x, offset, (rows, columns))
    return ctx.build.select(places, spread, rest)


def _diag_part(ctx: Context) -> Result:
    return diagonal(ctx.build, ctx.value(0), _offset(ctx, 1))


def _set_diag(ctx: Context) -> Result:
    x = ctx.value(0)
    rows, columns = (static(d, "a matrix") for d in x.shape[-2:])
    places, spread = _spread(ctx.build, ctx.value(1), _offset(ctx, 2), (rows, columns))
    return ctx.build.select(places, spread, x)


OPS: dict[str, Handler] = {
    **dict.fromkeys(("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3"), _diag),
    **dict.fromkeys(("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3"), _diag_part),
    **dict.fromkeys(("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3"), _set_diag),
}
