"""Integers of sizes that have no arithmetic of their own compute in the next larger size.

A result loses its upper bits again, which is how sums and products wrap. Lookups that count from
the end of an axis become ones that don't. It is done last, so that all other rules see what the
model says.
"""

from __future__ import annotations

from collections.abc import Sequence

from converters.tf import ir
from converters.tf.passes.rewrite import Match, Rules

_I32, _I64 = ir.DType.I32, ir.DType.I64
# What bits of all sizes have, whether one of them is a sign or not.
_BITS = (ir.BinaryKind.BIT_AND, ir.BinaryKind.BIT_OR, ir.BinaryKind.BIT_XOR)
# In which size those compute that have no arithmetic.
_WIDER = {
    **dict.fromkeys((ir.DType.I8, ir.DType.I16, ir.DType.U8, ir.DType.U16), _I32),
    ir.DType.U32: _I64,
}


def _computed(m: Match, node: ir.Node) -> Sequence[ir.Value] | None:
    """Widens the operands, and narrows what has their size."""
    sizes = _WIDER
    if isinstance(node.op, ir.Binary) and node.op.kind in _BITS:
        sizes = _WIDER | {ir.DType.U64: _I64}
    if node.input.dtype not in sizes:
        return None
    if isinstance(node.op, ir.Reduce) and node.op.kind is ir.ReduceKind.MEAN:
        return None  # TensorFlow's sum wraps before it is divided.

    def wide(dtype: ir.DType) -> ir.DType:
        return sizes.get(dtype, dtype)

    operands = [None if v is None else m.build.cast(v, wide(v.dtype)) for v in node.inputs]
    kinds = [(wide(v.dtype), v.shape) for v in node.outputs]
    results = m.build.emit_many(node.op, operands, kinds)
    pairs = zip(results, node.outputs, strict=True)
    return [m.build.cast(found, wanted.dtype) for found, wanted in pairs]


def _cast(m: Match, node: ir.Node) -> ir.Value | None:
    """Goes from floats and truth values, and to them, by way of a size that has arithmetic."""
    source, target = node.input.dtype, node.output.dtype
    if source in _WIDER and not _is_whole(target):
        if source is ir.DType.U8 and target is not ir.DType.BOOL:
            return None
        return m.build.cast(m.build.cast(node.input, _WIDER[source]), target)
    if target in _WIDER and source in (ir.DType.F32, ir.DType.F64):
        return m.build.cast(m.build.cast(node.input, _WIDER[target]), target)
    return None


def _unwrapped(m: Match, node: ir.Node) -> ir.Value | None:
    """Counts negative places from the end of the axis before a lookup reads them."""
    assert isinstance(node.op, ir.Gather)
    x, places = node.present
    size = x.shape[node.op.axis]
    if not node.op.wrap or isinstance(size, ir.Batch):
        return None
    b = m.build
    negative = b.compare(ir.CompareKind.LT, places, b.scalar(0, places.dtype))
    other = b.binary(ir.BinaryKind.ADD, places, b.length(size, places.dtype))
    op = ir.Gather(node.op.axis, node.op.batch_dims)
    return b.emit(op, [x, b.select(negative, other, places)], node.output.shape)


def _is_whole(dtype: ir.DType) -> bool:
    return dtype.numpy.kind in "iu"


RULES: Rules = {
    **dict.fromkeys(
        (
            ir.ArgExtreme,
            ir.Binary,
            ir.Compare,
            ir.Cumulative,
            ir.Reduce,
            ir.Scatter,
            ir.TopK,
            ir.Unary,
            ir.WholeProduct,
        ),
        (_computed,),
    ),
    ir.Cast: (_cast,),
    ir.Gather: (_unwrapped,),
}
