"""Functions of one and two elements in the words of the kernels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from converters.tf import ir


@dataclass(frozen=True)
class Kernel:
    """A type of the kernels that is an operation.

    Attributes:
        path: Its path below `kernels`.
        value: The expression that makes one; `{a}` and `{b}` are parameters.
        types: Element types that it takes.
        named: Parameters for which the type has a constant, and its name.
    """

    path: str
    value: str = ""
    types: frozenset[ir.DType] = frozenset([ir.DType.F32])
    named: tuple[tuple[tuple[float, ...], str], ...] = ()

    def expression(self, params: tuple[float, ...] = ()) -> str:
        """Returns the expression, with the parameters filled in."""
        for known, constant in self.named:
            if params == known:
                return f"{self.name}::{constant}"
        text = self.value or self.name
        for letter, param in zip("ab", params, strict=False):
            text = text.replace(f"@{letter}", float_literal(param))
        return text

    @property
    def name(self) -> str:
        """Returns the type's name."""
        return self.path.rpartition("::")[2]


def float_literal(value: float) -> str:
    """Returns a float32 as a Rust literal that reads back as the same bits."""
    if math.isnan(value):
        return "f32::NAN"
    if math.isinf(value):
        return "f32::INFINITY" if value > 0 else "f32::NEG_INFINITY"
    text = str(np.float32(value))
    return text if "." in text or "e" in text else f"{text}.0"


_F = frozenset([ir.DType.F32])
_FF = frozenset([ir.DType.F32, ir.DType.F64])
_FI = frozenset([ir.DType.F32, ir.DType.F64, ir.DType.I64, ir.DType.I32])
_FW = frozenset([ir.DType.F32, ir.DType.I64, ir.DType.I32])
_EQ = frozenset([ir.DType.F32, ir.DType.F64, ir.DType.I64, ir.DType.I32, ir.DType.BOOL])
_BOOL = frozenset([ir.DType.BOOL])
_I = frozenset([ir.DType.I64, ir.DType.I32])

_RELUS = ((ir.RELU.params, "RELU"), (ir.RELU6.params, "RELU6"))
ADD_CLAMP = Kernel("clamp::AddClamp", "AddClamp { low: @a, high: @b }", named=_RELUS)

UNARY: Mapping[ir.Fn, Kernel] = {
    ir.Fn.ABS: Kernel("unary::Abs", types=_FI),
    ir.Fn.NEG: Kernel("unary::Neg", types=_FI),
    ir.Fn.SIGN: Kernel("unary::Sign", types=frozenset([*_F, ir.DType.I64, ir.DType.I32])),
    ir.Fn.FLOOR: Kernel("unary::Floor"),
    ir.Fn.CEIL: Kernel("unary::Ceil"),
    ir.Fn.ROUND: Kernel("unary::Round", types=frozenset([*_F, ir.DType.I64])),
    ir.Fn.SQUARE: Kernel("unary::Square", types=_FI),
    ir.Fn.SQRT: Kernel("unary::Sqrt", types=_FF),
    ir.Fn.RSQRT: Kernel("unary::Rsqrt"),
    ir.Fn.RECIPROCAL: Kernel("unary::Reciprocal", types=_FF),
    ir.Fn.EXP: Kernel("unary::Exp"),
    ir.Fn.EXPM1: Kernel("unary::Expm1"),
    ir.Fn.LOG: Kernel("unary::Log"),
    ir.Fn.LOG1P: Kernel("unary::Log1p"),
    ir.Fn.SIN: Kernel("unary::Sin"),
    ir.Fn.COS: Kernel("unary::Cos"),
    ir.Fn.TAN: Kernel("unary::Tan"),
    ir.Fn.ASIN: Kernel("unary::Asin"),
    ir.Fn.ACOS: Kernel("unary::Acos"),
    ir.Fn.ATAN: Kernel("unary::Atan"),
    ir.Fn.SINH: Kernel("unary::Sinh"),
    ir.Fn.COSH: Kernel("unary::Cosh"),
    ir.Fn.TANH: Kernel("unary::Tanh"),
    ir.Fn.ASINH: Kernel("unary::Asinh"),
    ir.Fn.ACOSH: Kernel("unary::Acosh"),
    ir.Fn.ATANH: Kernel("unary::Atanh"),
    ir.Fn.ERF: Kernel("unary::Erf"),
    ir.Fn.ERFC: Kernel("unary::Erfc"),
    ir.Fn.SIGMOID: Kernel("unary::Sigmoid"),
    ir.Fn.LOGICAL_NOT: Kernel("logical::LogicalNot", types=_BOOL),
    ir.Fn.IS_NAN: Kernel("logical::IsNan", types=_FF),
    ir.Fn.IS_INF: Kernel("logical::IsInf", types=_FF),
    ir.Fn.IS_FINITE: Kernel("logical::IsFinite", types=_FF),
    ir.Fn.CLAMP: Kernel("clamp::Clamp", "Clamp { low: @a, high: @b }", named=_RELUS),
    ir.Fn.LEAKY_RELU: Kernel("leaky_relu::LeakyRelu", "LeakyRelu { alpha: @a }"),
    ir.Fn.ELU: Kernel("activation::Elu", "Elu { alpha: @a }"),
    ir.Fn.CELU: Kernel("activation::Celu", "Celu { alpha: @a }"),
    ir.Fn.SELU: Kernel("unary::Selu"),
    ir.Fn.GELU: Kernel("activation::Gelu", "Gelu {}"),
    ir.Fn.GELU_TANH: Kernel("activation::GeluTanh", "GeluTanh {}"),
    ir.Fn.SILU: Kernel("activation::Silu", "Silu {}"),
    ir.Fn.MISH: Kernel("activation::Mish", "Mish {}"),
    ir.Fn.SOFTPLUS: Kernel("unary::Softplus"),
    ir.Fn.SOFTSIGN: Kernel("unary::Softsign"),
    ir.Fn.LOG_SIGMOID: Kernel("activation::LogSigmoid", "LogSigmoid {}"),
    ir.Fn.HARD_SIGMOID: Kernel("activation::HardSigmoid", "HardSigmoid {}"),
    ir.Fn.HARD_SILU: Kernel("activation::HardSilu", "HardSilu {}"),
    ir.Fn.HARD_SHRINK: Kernel("activation::HardShrink", "HardShrink { threshold: @a }"),
    ir.Fn.SOFT_SHRINK: Kernel("activation::SoftShrink", "SoftShrink { threshold: @a }"),
    ir.Fn.TANH_SHRINK: Kernel("activation::TanhShrink", "TanhShrink {}"),
    ir.Fn.SQUARE_PLUS: Kernel("activation::SquarePlus", "SquarePlus { b: @a }"),
    ir.Fn.SPARSE_PLUS: Kernel("activation::SparsePlus", "SparsePlus {}"),
    ir.Fn.THRESHOLD: Kernel("activation::Threshold", "Threshold { threshold: @a, default: @b }"),
    ir.Fn.LGAMMA: Kernel("special::Lgamma"),
    ir.Fn.DIGAMMA: Kernel("special::Digamma"),
    ir.Fn.ERFINV: Kernel("special::Erfinv"),
    ir.Fn.NDTRI: Kernel("special::Ndtri"),
    ir.Fn.BESSEL_I0: Kernel("special::BesselI0"),
    ir.Fn.BESSEL_I0E: Kernel("special::BesselI0e"),
    ir.Fn.BESSEL_I1: Kernel("special::BesselI1"),
    ir.Fn.BESSEL_I1E: Kernel("special::BesselI1e"),
}

#: Functions that end a layer and have a kernel for the values that it has just written.
IN_PLACE: Mapping[ir.Fn, Kernel] = {
    ir.Fn.GELU: Kernel("activation::in_place::gelu"),
    ir.Fn.HARD_SIGMOID: Kernel("activation::in_place::hard_sigmoid"),
    ir.Fn.HARD_SILU: Kernel("activation::in_place::hard_silu"),
    ir.Fn.SILU: Kernel("activation::in_place::silu"),
}

BINARY: Mapping[ir.BinaryKind, Kernel] = {
    ir.BinaryKind.ADD: Kernel("binary::Add", types=_FI),
    ir.BinaryKind.SUB: Kernel("binary::Sub", types=_FI),
    ir.BinaryKind.MUL: Kernel("binary::Mul", types=_FI),
    ir.BinaryKind.DIV: Kernel("division::Div", types=_FI),
    ir.BinaryKind.DIV_NO_NAN: Kernel("binary::DivNoNan", types=_FF),
    ir.BinaryKind.MUL_NO_NAN: Kernel("binary::MulNoNan", types=_FF),
    ir.BinaryKind.MAX: Kernel("binary::Maximum", types=_FI),
    ir.BinaryKind.MIN: Kernel("binary::Minimum", types=_FI),
    ir.BinaryKind.POW: Kernel("division::Pow", types=_FW),
    ir.BinaryKind.FLOOR_DIV: Kernel("division::FloorDiv", types=_FW),
    ir.BinaryKind.FLOOR_MOD: Kernel("division::FloorMod", types=_FI),
    ir.BinaryKind.TRUNC_MOD: Kernel("division::TruncateMod", types=_FI),
    ir.BinaryKind.SQUARED_DIFFERENCE: Kernel("binary::SquaredDifference", types=_FI),
    ir.BinaryKind.PRELU: Kernel("leaky_relu::PRelu", types=_FF),
    ir.BinaryKind.ATAN2: Kernel("binary::Atan2"),
    ir.BinaryKind.LOGICAL_AND: Kernel("logical::LogicalAnd", types=_BOOL),
    ir.BinaryKind.LOGICAL_OR: Kernel("logical::LogicalOr", types=_BOOL),
    ir.BinaryKind.LOGICAL_XOR: Kernel("compare::NotEqual", types=_BOOL),
    ir.BinaryKind.BIT_AND: Kernel("bitwise::BitwiseAnd", types=_I),
    ir.BinaryKind.BIT_OR: Kernel("bitwise::BitwiseOr", types=_I),
    ir.BinaryKind.BIT_XOR: Kernel("bitwise::BitwiseXor", types=_I),
    ir.BinaryKind.BIT_LEFT: Kernel("shift::ShiftLeft", types=_I),
    ir.BinaryKind.BIT_RIGHT: Kernel("shift::ShiftRight", types=_I),
}

COMPARE: Mapping[ir.CompareKind, Kernel] = {
    ir.CompareKind.EQ: Kernel("compare::Equal", types=_EQ),
    ir.CompareKind.NE: Kernel("compare::NotEqual", types=_EQ),
    ir.CompareKind.LT: Kernel("compare::Less", types=_FI),
    ir.CompareKind.LE: Kernel("compare::LessEqual", types=_FI),
    ir.CompareKind.GT: Kernel("compare::Greater", types=_FI),
    ir.CompareKind.GE: Kernel("compare::GreaterEqual", types=_FI),
}

REDUCE: Mapping[ir.ReduceKind, Kernel] = {
    ir.ReduceKind.SUM: Kernel("reductions::Sum", types=_FI),
    ir.ReduceKind.MEAN: Kernel("reductions::Mean", types=_FF),
    ir.ReduceKind.MAX: Kernel("reductions::Max", types=_FI),
    ir.ReduceKind.MIN: Kernel("reductions::Min", types=_FI),
    ir.ReduceKind.PROD: Kernel("reductions::Prod", types=_FI),
    ir.ReduceKind.ALL: Kernel("reductions::All", types=_BOOL),
    ir.ReduceKind.ANY: Kernel("reductions::Any", types=_BOOL),
}


def unary(function: ir.Function, dtype: ir.DType) -> Kernel:
    """Returns the kernel of a function, for the parameters that have one of their own."""
    if function.kind is ir.Fn.CLAMP:
        if function.params == (0.0, math.inf) and dtype is not ir.DType.F32:
            return Kernel(
                "unary::Relu", types=frozenset([ir.DType.F64, ir.DType.I64, ir.DType.I32])
            )
        return UNARY[ir.Fn.CLAMP]
    return UNARY[function.kind]


def activation_words(function: ir.Function | None) -> str:
    """Returns a function as people name it: `relu`, `leaky_relu(0.3)`."""
    if function is None:
        return ""
    if function.kind is ir.Fn.CLAMP:
        low, high = function.params
        if low == 0.0:
            return "relu" if math.isinf(high) else f"relu{float_literal(high).removesuffix('.0')}"
    params = ", ".join(float_literal(p) for p in function.params)
    return f"{function.kind}({params})" if params else str(function.kind)
