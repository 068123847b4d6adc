"""Bits of integers that are moved or turned around."""

from __future__ import annotations

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind, CompareKind
from converters.tf.ir.build import Builder
from converters.tf.ir.ops.elementwise import BINARY
from converters.tf.lower.graph import Context, Handler, Result


def _shift(kind: BinaryKind) -> Handler:
    """Handles a shift of bits by at most as many as the type has."""

    def handler(ctx: Context) -> Result:
        x, amount = ctx.value(0), ctx.value(1)
        if x.data is not None and amount.data is not None:
            return ir.constant(BINARY[kind](x.data, amount.data).astype(x.dtype.numpy), x.name)
        b = ctx.build
        if x.dtype is ir.DType.U64:
            return _shift_64(b, kind, x, amount)
        if x.dtype not in (ir.DType.I32, ir.DType.I64):
            # They are computed in a type that has more bits.
            last = b.scalar(8 * x.dtype.bytes - 1, x.dtype)
            amount = b.binary(BinaryKind.MAX, amount, b.scalar(0, x.dtype))
            amount = b.binary(BinaryKind.MIN, amount, last)
        return b.binary(kind, x, amount)

    return handler


def _shift_64(b: Builder, kind: BinaryKind, x: ir.Value, amount: ir.Value) -> ir.Value:
    """Shifts the bits of uint64 as those of int64, without copies of the sign."""

    def known(number: int) -> ir.Value:
        return b.scalar(number, ir.DType.I64)

    bits, amount = b.cast(x, ir.DType.I64), b.cast(amount, ir.DType.I64)
    huge = b.compare(CompareKind.LT, amount, known(0))
    amount = b.select(huge, known(63), b.binary(BinaryKind.MIN, amount, known(63)))
    moved = b.binary(kind, bits, amount)
    if kind is BinaryKind.BIT_RIGHT:
        rest = b.binary(BinaryKind.SUB, known(63), amount)
        sign = b.binary(BinaryKind.BIT_LEFT, known(-1), rest)
        sign = b.binary(BinaryKind.BIT_LEFT, sign, known(1))
        moved = b.binary(BinaryKind.BIT_AND, moved, b.binary(BinaryKind.BIT_XOR, sign, known(-1)))
    return b.cast(moved, ir.DType.U64)


def _invert(ctx: Context) -> Result:
    x = ctx.value(0)
    limits = np.iinfo(x.dtype.numpy)
    ones = ctx.build.scalar(-1 if limits.min else int(limits.max), x.dtype)
    return ctx.build.binary(BinaryKind.BIT_XOR, x, ones)


OPS: dict[str, Handler] = {
    "Invert": _invert,
    "LeftShift": _shift(BinaryKind.BIT_LEFT),
    "RightShift": _shift(BinaryKind.BIT_RIGHT),
}
