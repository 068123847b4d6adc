"""Functions of one and two elements in the words of the kernels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from converters.tf import ir
from converters.tf.emit.statements import Code, code


@dataclass(frozen=True)
class Kernel:
    """A type of the kernels that is an operation.

    Attributes:
        path: Its path below `kernels`.
        value: The expression that makes one; `{a}` and `{b}` are parameters.
        named: Parameters for which the type has a constant, and its name.
    """

    path: str
    value: str = ""
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


def typed_literal(value: float, dtype: ir.DType) -> str:
    """Returns a number as a literal of a type."""
    if dtype in (ir.DType.F32, ir.DType.F64):
        text = float_literal(value)
        return text.replace("f32::", "f64::") if dtype is ir.DType.F64 else text
    return str(int(value))


def numbers_text(numbers: Iterable[int]) -> Code:
    """Returns integers as a slice."""
    return code("&{}", list(numbers))


_RELUS = ((ir.RELU.params, "RELU"), (ir.RELU6.params, "RELU6"))
ADD_CLAMP = Kernel("frame::clamp::AddClamp", "AddClamp { low: @a, high: @b }", named=_RELUS)

UNARY: Mapping[ir.Fn, Kernel] = {
    ir.Fn.ABS: Kernel("ops::elementwise::unary::Abs"),
    ir.Fn.NEG: Kernel("ops::elementwise::unary::Neg"),
    ir.Fn.SIGN: Kernel("ops::elementwise::unary::Sign"),
    ir.Fn.FLOOR: Kernel("ops::elementwise::unary::Floor"),
    ir.Fn.CEIL: Kernel("ops::elementwise::unary::Ceil"),
    ir.Fn.ROUND: Kernel("ops::elementwise::unary::Round"),
    ir.Fn.SQUARE: Kernel("ops::elementwise::unary::Square"),
    ir.Fn.SQRT: Kernel("ops::elementwise::unary::Sqrt"),
    ir.Fn.RSQRT: Kernel("ops::elementwise::unary::Rsqrt"),
    ir.Fn.RECIPROCAL: Kernel("ops::elementwise::unary::Reciprocal"),
    ir.Fn.EXP: Kernel("ops::elementwise::unary::Exp"),
    ir.Fn.EXPM1: Kernel("ops::elementwise::unary::Expm1"),
    ir.Fn.LOG: Kernel("ops::elementwise::unary::Log"),
    ir.Fn.LOG1P: Kernel("ops::elementwise::unary::Log1p"),
    ir.Fn.SIN: Kernel("ops::elementwise::unary::Sin"),
    ir.Fn.COS: Kernel("ops::elementwise::unary::Cos"),
    ir.Fn.TAN: Kernel("ops::elementwise::unary::Tan"),
    ir.Fn.ASIN: Kernel("ops::elementwise::unary::Asin"),
    ir.Fn.ACOS: Kernel("ops::elementwise::unary::Acos"),
    ir.Fn.ATAN: Kernel("ops::elementwise::unary::Atan"),
    ir.Fn.SINH: Kernel("ops::elementwise::unary::Sinh"),
    ir.Fn.COSH: Kernel("ops::elementwise::unary::Cosh"),
    ir.Fn.TANH: Kernel("ops::elementwise::unary::Tanh"),
    ir.Fn.ASINH: Kernel("ops::elementwise::unary::Asinh"),
    ir.Fn.ACOSH: Kernel("ops::elementwise::unary::Acosh"),
    ir.Fn.ATANH: Kernel("ops::elementwise::unary::Atanh"),
    ir.Fn.ERF: Kernel("ops::elementwise::unary::Erf"),
    ir.Fn.ERFC: Kernel("ops::elementwise::unary::Erfc"),
    ir.Fn.SIGMOID: Kernel("ops::elementwise::unary::Sigmoid"),
    ir.Fn.LOGICAL_NOT: Kernel("ops::elementwise::logical::LogicalNot"),
    ir.Fn.IS_NAN: Kernel("ops::elementwise::logical::IsNan"),
    ir.Fn.IS_INF: Kernel("ops::elementwise::logical::IsInf"),
    ir.Fn.IS_FINITE: Kernel("ops::elementwise::logical::IsFinite"),
    ir.Fn.CLAMP: Kernel("frame::clamp::Clamp", "Clamp { low: @a, high: @b }", named=_RELUS),
    ir.Fn.LEAKY_RELU: Kernel("ops::elementwise::leaky_relu::LeakyRelu", "LeakyRelu { alpha: @a }"),
    ir.Fn.ELU: Kernel("ops::elementwise::activation::Elu", "Elu { alpha: @a }"),
    ir.Fn.CELU: Kernel("ops::elementwise::activation::Celu", "Celu { alpha: @a }"),
    ir.Fn.SELU: Kernel("ops::elementwise::unary::Selu"),
    ir.Fn.GELU: Kernel("ops::elementwise::activation::Gelu", "Gelu {}"),
    ir.Fn.GELU_TANH: Kernel("ops::elementwise::activation::GeluTanh", "GeluTanh {}"),
    ir.Fn.SILU: Kernel("ops::elementwise::activation::Silu", "Silu {}"),
    ir.Fn.MISH: Kernel("ops::elementwise::activation::Mish", "Mish {}"),
    ir.Fn.SOFTPLUS: Kernel("ops::elementwise::unary::Softplus"),
    ir.Fn.SOFTSIGN: Kernel("ops::elementwise::unary::Softsign"),
    ir.Fn.LOG_SIGMOID: Kernel("ops::elementwise::activation::LogSigmoid", "LogSigmoid {}"),
    ir.Fn.HARD_SIGMOID: Kernel("ops::elementwise::activation::HardSigmoid", "HardSigmoid {}"),
    ir.Fn.HARD_SILU: Kernel("ops::elementwise::activation::HardSilu", "HardSilu {}"),
    ir.Fn.HARD_SHRINK: Kernel(
        "ops::elementwise::activation::HardShrink", "HardShrink { threshold: @a }"
    ),
    ir.Fn.SOFT_SHRINK: Kernel(
        "ops::elementwise::activation::SoftShrink", "SoftShrink { threshold: @a }"
    ),
    ir.Fn.TANH_SHRINK: Kernel("ops::elementwise::activation::TanhShrink", "TanhShrink {}"),
    ir.Fn.SQUARE_PLUS: Kernel("ops::elementwise::activation::SquarePlus", "SquarePlus { b: @a }"),
    ir.Fn.SPARSE_PLUS: Kernel("ops::elementwise::activation::SparsePlus", "SparsePlus {}"),
    ir.Fn.THRESHOLD: Kernel(
        "ops::elementwise::activation::Threshold", "Threshold { threshold: @a, default: @b }"
    ),
    ir.Fn.LGAMMA: Kernel("ops::elementwise::special::Lgamma"),
    ir.Fn.DIGAMMA: Kernel("ops::elementwise::special::Digamma"),
    ir.Fn.ERFINV: Kernel("ops::elementwise::special::Erfinv"),
    ir.Fn.NDTRI: Kernel("ops::elementwise::special::Ndtri"),
    ir.Fn.BESSEL_I0: Kernel("ops::elementwise::special::BesselI0"),
    ir.Fn.BESSEL_I0E: Kernel("ops::elementwise::special::BesselI0e"),
    ir.Fn.BESSEL_I1: Kernel("ops::elementwise::special::BesselI1"),
    ir.Fn.BESSEL_I1E: Kernel("ops::elementwise::special::BesselI1e"),
}

#: Functions that end a layer and have a kernel for the values that it has just written.
IN_PLACE: Mapping[ir.Fn, Kernel] = {
    ir.Fn.GELU: Kernel("ops::elementwise::activation::in_place::gelu"),
    ir.Fn.HARD_SIGMOID: Kernel("ops::elementwise::activation::in_place::hard_sigmoid"),
    ir.Fn.HARD_SILU: Kernel("ops::elementwise::activation::in_place::hard_silu"),
    ir.Fn.SILU: Kernel("ops::elementwise::activation::in_place::silu"),
}

BINARY: Mapping[ir.BinaryKind, Kernel] = {
    ir.BinaryKind.ADD: Kernel("ops::elementwise::binary::Add"),
    ir.BinaryKind.SUB: Kernel("ops::elementwise::binary::Sub"),
    ir.BinaryKind.MUL: Kernel("ops::elementwise::binary::Mul"),
    ir.BinaryKind.DIV: Kernel("ops::elementwise::division::Div"),
    ir.BinaryKind.DIV_NO_NAN: Kernel("ops::elementwise::binary::DivNoNan"),
    ir.BinaryKind.MUL_NO_NAN: Kernel("ops::elementwise::binary::MulNoNan"),
    ir.BinaryKind.MAX: Kernel("ops::elementwise::binary::Maximum"),
    ir.BinaryKind.MIN: Kernel("ops::elementwise::binary::Minimum"),
    ir.BinaryKind.POW: Kernel("ops::elementwise::division::Pow"),
    ir.BinaryKind.FLOOR_DIV: Kernel("ops::elementwise::division::FloorDiv"),
    ir.BinaryKind.FLOOR_MOD: Kernel("ops::elementwise::division::FloorMod"),
    ir.BinaryKind.TRUNC_MOD: Kernel("ops::elementwise::division::TruncateMod"),
    ir.BinaryKind.SQUARED_DIFFERENCE: Kernel("ops::elementwise::binary::SquaredDifference"),
    ir.BinaryKind.PRELU: Kernel("ops::elementwise::leaky_relu::PRelu"),
    ir.BinaryKind.ATAN2: Kernel("ops::elementwise::binary::Atan2"),
    ir.BinaryKind.LOGICAL_AND: Kernel("ops::elementwise::logical::LogicalAnd"),
    ir.BinaryKind.LOGICAL_OR: Kernel("ops::elementwise::logical::LogicalOr"),
    ir.BinaryKind.LOGICAL_XOR: Kernel("ops::elementwise::compare::NotEqual"),
    ir.BinaryKind.BIT_AND: Kernel("ops::elementwise::bitwise::BitwiseAnd"),
    ir.BinaryKind.BIT_OR: Kernel("ops::elementwise::bitwise::BitwiseOr"),
    ir.BinaryKind.BIT_XOR: Kernel("ops::elementwise::bitwise::BitwiseXor"),
    ir.BinaryKind.BIT_LEFT: Kernel("ops::elementwise::shift::ShiftLeft"),
    ir.BinaryKind.BIT_RIGHT: Kernel("ops::elementwise::shift::ShiftRight"),
}

COMPARE: Mapping[ir.CompareKind, Kernel] = {
    ir.CompareKind.EQ: Kernel("ops::elementwise::compare::Equal"),
    ir.CompareKind.NE: Kernel("ops::elementwise::compare::NotEqual"),
    ir.CompareKind.LT: Kernel("ops::elementwise::compare::Less"),
    ir.CompareKind.LE: Kernel("ops::elementwise::compare::LessEqual"),
    ir.CompareKind.GT: Kernel("ops::elementwise::compare::Greater"),
    ir.CompareKind.GE: Kernel("ops::elementwise::compare::GreaterEqual"),
}

REDUCE: Mapping[ir.ReduceKind, Kernel] = {
    ir.ReduceKind.SUM: Kernel("ops::reduction::reductions::Sum"),
    ir.ReduceKind.MEAN: Kernel("ops::reduction::reductions::Mean"),
    ir.ReduceKind.MAX: Kernel("ops::reduction::reductions::Max"),
    ir.ReduceKind.MIN: Kernel("ops::reduction::reductions::Min"),
    ir.ReduceKind.PROD: Kernel("ops::reduction::reductions::Prod"),
    ir.ReduceKind.ALL: Kernel("ops::reduction::reductions::All"),
    ir.ReduceKind.ANY: Kernel("ops::reduction::reductions::Any"),
}


def unary(function: ir.Function, dtype: ir.DType) -> Kernel:
    """Returns the kernel of a function, for the parameters that have one of their own."""
    if function.kind is ir.Fn.CLAMP:
        if function.params == (0.0, math.inf) and dtype is not ir.DType.F32:
            return Kernel(
                "ops::elementwise::unary::Relu",
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
