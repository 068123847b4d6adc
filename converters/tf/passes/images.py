"""Rules that recognise images made larger by repeating their pixels."""

from __future__ import annotations

from converters.tf import ir
from converters.tf.passes.rewrite import Match, Rules

_NEAREST = ir.Resize(ir.ResizeKind.NEAREST)


def _repeated(m: Match, node: ir.Node) -> ir.Value | None:
    """Makes the repetition of rows or columns, an axis of 1 made larger, a resize."""
    x, shape = node.input, node.output.shape
    if x.rank != len(shape):
        return None
    grown = [i for i, (a, b) in enumerate(zip(x.shape, shape, strict=True)) if a != b]
    if len(grown) != 1:
        return None
    (axis,) = grown
    rest = (*x.shape[:axis], *x.shape[axis + 1 :])
    factor = shape[axis]
    if len(rest) != 4 or axis not in (2, 3) or not isinstance(factor, int):
        return None
    size = rest[axis - 1]
    if not isinstance(size, int) or not isinstance(rest[0], ir.Batch) or x.is_constant:
        return None
    larger = (*rest[: axis - 1], size * factor, *rest[axis:])
    image = m.build.reshape(x, rest)
    return m.build.reshape(m.build.emit(_NEAREST, [image], larger), shape)


def _twice(m: Match, node: ir.Node) -> ir.Value | None:
    """Makes rows and columns larger in one step."""
    inner = m.made_by(node.input, ir.Resize)
    if inner is None or node.op != _NEAREST or inner.op != _NEAREST:
        return None
    if not m.used_once(node.input):
        return None
    sizes = zip(inner.input.shape[1:3], node.input.shape[1:3], node.output.shape[1:3], strict=True)
    for first, middle, last in sizes:
        if not (isinstance(first, int) and isinstance(middle, int) and isinstance(last, int)):
            return None
        if middle % first or last % middle:
            return None
    return m.build.emit(_NEAREST, [inner.input], node.output.shape)


RULES: Rules = {ir.BroadcastTo: [_repeated], ir.Resize: [_twice]}
