"""uint64, with which no kernel computes: by the bits of int64."""

from __future__ import annotations

from converters.tf import ir
from converters.tf.ir import BinaryKind, CompareKind, DType
from converters.tf.ir.build import Builder

_FLOATS = frozenset([DType.F32, DType.F64])
# Operations whose bits are those of int64.
_SAME_BITS = frozenset(
    [
        *(BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL),
        *(BinaryKind.BIT_AND, BinaryKind.BIT_OR, BinaryKind.BIT_XOR),
    ]
)
_DIVISIONS = frozenset(
    [BinaryKind.DIV, BinaryKind.FLOOR_DIV, BinaryKind.FLOOR_MOD, BinaryKind.TRUNC_MOD]
)
_LAST = -(1 << 63)


def cast(b: Builder, x: ir.Value, dtype: DType) -> ir.Value:
    """Returns numbers in another type; integers that do not fit lose their upper bits."""
    if x.dtype in _FLOATS and dtype is DType.U64 and not x.is_constant:
        return _float_to_u64(b, x)
    if x.dtype is DType.U64 and dtype in (*_FLOATS, DType.BOOL) and not x.is_constant:
        bits = b.cast(x, DType.I64)
        return b.cast(bits, dtype) if dtype is DType.BOOL else _u64_to_float(b, bits, dtype)
    return b.cast(x, dtype)


def _float_to_u64(b: Builder, x: ir.Value) -> ir.Value:
    half = b.scalar(2.0**63, x.dtype)
    large = b.compare(CompareKind.GE, x, half)
    low = b.cast(b.select(large, b.binary(BinaryKind.SUB, x, half), x), DType.I64)
    bits = b.select(large, b.binary(BinaryKind.BIT_XOR, low, _int(b, _LAST)), low)
    return b.cast(bits, DType.U64)


def _u64_to_float(b: Builder, bits: ir.Value, dtype: DType) -> ir.Value:
    """Halves numbers that are negative as int64; the bit that is lost decides how it is rounded."""
    odd = b.binary(BinaryKind.BIT_AND, bits, _int(b, 1))
    half = b.binary(BinaryKind.BIT_OR, _shifted(b, bits), odd)
    halved = b.cast(half, dtype)
    doubled = b.binary(BinaryKind.ADD, halved, halved)
    negative = b.compare(CompareKind.LT, bits, _int(b, 0))
    return b.select(negative, doubled, b.cast(bits, dtype))


def _int(b: Builder, number: int) -> ir.Value:
    return b.scalar(number, DType.I64)


def _shifted(b: Builder, bits: ir.Value) -> ir.Value:
    """Returns bits a place further right, 0 first."""
    moved = b.binary(BinaryKind.BIT_RIGHT, bits, _int(b, 1))
    return b.binary(BinaryKind.BIT_AND, moved, _int(b, (1 << 63) - 1))


def _unsigned(b: Builder, kind: CompareKind, x: ir.Value, y: ir.Value) -> ir.Value:
    """Compares bits of int64 as numbers of uint64."""
    if kind in (CompareKind.EQ, CompareKind.NE):
        return b.compare(kind, x, y)
    turned = [b.binary(BinaryKind.BIT_XOR, v, _int(b, _LAST)) for v in (x, y)]
    return b.compare(kind, *turned)


def _divided(b: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Returns the quotient of bits of int64 as numbers of uint64."""
    quotient = b.binary(BinaryKind.DIV, _shifted(b, x), _positive(b, y))
    quotient = b.binary(BinaryKind.BIT_LEFT, quotient, _int(b, 1))
    rest = b.binary(BinaryKind.SUB, x, b.binary(BinaryKind.MUL, quotient, y))
    more = b.cast(_unsigned(b, CompareKind.GE, rest, y), DType.I64)
    ordinary = b.binary(BinaryKind.ADD, quotient, more)
    large = b.cast(_unsigned(b, CompareKind.GE, x, y), DType.I64)
    return b.select(b.compare(CompareKind.LT, y, _int(b, 0)), large, ordinary)


def _positive(b: Builder, y: ir.Value) -> ir.Value:
    """Returns divisors of which those of 2^63 and more, for which nobody asks, are 1."""
    return b.select(b.compare(CompareKind.LT, y, _int(b, 0)), _int(b, 1), y)


def binary(b: Builder, kind: BinaryKind, x: ir.Value, y: ir.Value) -> ir.Value | None:
    """Returns what an operation gives for uint64, or nothing if it has another way."""
    if x.dtype is not DType.U64 or (x.is_constant and y.is_constant):
        return None
    p, q = (b.cast(v, DType.I64) for v in (x, y))
    if kind in _SAME_BITS:
        return b.cast(b.binary(kind, p, q), DType.U64)
    if kind in (BinaryKind.MAX, BinaryKind.MIN):
        order = CompareKind.GE if kind is BinaryKind.MAX else CompareKind.LE
        return b.cast(b.select(_unsigned(b, order, p, q), p, q), DType.U64)
    if kind in _DIVISIONS:
        quotient = _divided(b, p, q)
        if kind in (BinaryKind.DIV, BinaryKind.FLOOR_DIV):
            return b.cast(quotient, DType.U64)
        rest = b.binary(BinaryKind.SUB, p, b.binary(BinaryKind.MUL, quotient, q))
        return b.cast(rest, DType.U64)
    return None


def compare(b: Builder, kind: CompareKind, x: ir.Value, y: ir.Value) -> ir.Value | None:
    """Returns what a comparison gives for uint64, or nothing for other types."""
    if x.dtype is not DType.U64 or (x.is_constant and y.is_constant):
        return None
    return _unsigned(b, kind, b.cast(x, DType.I64), b.cast(y, DType.I64))
