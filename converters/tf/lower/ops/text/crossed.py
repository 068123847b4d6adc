"""Texts and numbers that are hashed together, as `tf.sparse.cross_hashed` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from converters.tf import ir
from converters.tf.ir import BinaryKind
from converters.tf.ir.build import Builder
from converters.tf.lower.graph import Context, Result, Tensor, Unsupported
from converters.tf.lower.ops.text.ragged import tokens_of
from converters.tf.lower.tensors import Crossed

# The factor of FarmHash that joins two fingerprints, as an int64.
_FACTOR = 0xC6A4A7935BD1E995 - (1 << 64)
# As many buckets as leave room to take a remainder of 64 bits in two steps.
_MOST_BUCKETS = 1 << 61
_I64 = ir.DType.I64


def _crossed(ctx: Context) -> Result:
    buckets = int(ctx.attr("num_buckets", 0))
    if ctx.attr("N", 0) or ctx.attr("sparse_types", ()) or not ctx.attr("hashed_output", False):
        raise Unsupported("features that are sparse, or crossed without a hash")
    if not 0 < buckets <= _MOST_BUCKETS:
        raise Unsupported(f"{buckets} buckets of a hash of crossed features")
    b = ctx.build
    total = b.scalar(_signed(int(ctx.attr("hash_key", 0))), _I64)
    for arg in ctx.args:
        part = _bits(ctx, arg)
        if part.rank != 2 or part.shape[1] != 1:
            raise Unsupported("several features of an example that are crossed")
        total = _joined(b, total, part)
    found = _remainder(b, total, buckets)
    return tuple(Crossed(found, form) for form in ("indices", "values", "shape"))


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >= 1 << 63 else bits


def _bits(ctx: Context, arg: Tensor) -> ir.Value:
    """Returns the 64 bits of each feature: a number is its own, a text has a fingerprint."""
    tokens = tokens_of(arg)
    if tokens is not None and tokens.texts.dtype is ir.DType.STR and not tokens.flat:
        op = ir.TextPrint(tokens.reading.changes)
        return ctx.build.emit(op, [tokens.texts], dtype=_I64)
    if isinstance(arg, ir.Value) and arg.dtype is _I64:
        return arg
    raise Unsupported("features that no input gives as text or as int64")


def _moved(b: Builder, x: ir.Value, by: int) -> ir.Value:
    """Returns bits moved to the right, with zeros before them."""
    moved = b.binary(BinaryKind.BIT_RIGHT, x, b.scalar(by, _I64))
    return b.binary(BinaryKind.BIT_AND, moved, b.scalar((1 << (64 - by)) - 1, _I64))


def _mixed(b: Builder, x: ir.Value) -> ir.Value:
    return b.binary(BinaryKind.BIT_XOR, x, _moved(b, x, 47))


def _joined(b: Builder, one: ir.Value, other: ir.Value) -> ir.Value:
    """Returns the fingerprint of two fingerprints.

    Source: `FingerprintCat64` of TensorFlow, the end of FarmHash for 16 bytes.
    """
    factor = b.scalar(_FACTOR, _I64)

    def times(x: ir.Value) -> ir.Value:
        return b.binary(BinaryKind.MUL, x, factor)

    found = b.binary(BinaryKind.BIT_XOR, one, factor)
    found = b.binary(BinaryKind.BIT_XOR, found, times(_mixed(b, times(other))))
    return _mixed(b, times(_mixed(b, times(found))))


def _remainder(b: Builder, x: ir.Value, by: int) -> ir.Value:
    """Returns the remainder of 64 bits without a sign, which int64 has not: half of them twice."""
    divisor = b.scalar(by, _I64)
    half = b.binary(BinaryKind.FLOOR_MOD, _moved(b, x, 1), divisor)
    last = b.binary(BinaryKind.BIT_AND, x, b.scalar(1, _I64))
    both = b.binary(BinaryKind.ADD, b.binary(BinaryKind.ADD, half, half), last)
    return b.binary(BinaryKind.FLOOR_MOD, both, divisor)


def _dense(ctx: Context) -> Result | None:
    """Gives each example its bucket."""
    parts = ctx.args[:3]
    forms = [part.form for part in parts if isinstance(part, Crossed)]
    if not forms:
        return None
    first = parts[0]
    if forms != ["indices", "shape", "values"] or not isinstance(first, Crossed):
        raise Unsupported("crossed features in another shape")
    if any(isinstance(part, Crossed) and part.values is not first.values for part in parts):
        raise Unsupported("crossed features of two crosses")
    return first.values


OPS: Mapping[str, Callable[[Context], Result | None]] = {
    "SparseCross": _crossed,
    "SparseToDense": _dense,
}
