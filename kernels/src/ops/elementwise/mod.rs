//! Functions of the elements at one place: unary, binary, casts, gradients, and chains of them.

pub mod activation;
pub mod add_n;
pub mod binary;
pub mod bitwise;
pub mod cast;
pub mod clip;
pub mod compare;
pub mod division;
pub mod expression;
pub mod gradient;
pub mod int32;
pub mod leaky_relu;
pub mod logical;
pub mod scale_shift;
pub mod select;
pub mod shift;
pub mod special;
pub mod unary;
pub mod whole;

use crate::base::def::KernelDef;

/// The kernels of this room.
pub static KERNELS: &[&KernelDef] = &[
    &add_n::ADD_N,
    &binary::ADD,
    &binary::ADD_V2,
    &binary::ATAN2,
    &binary::DIV_NO_NAN,
    &binary::MAXIMUM,
    &binary::MINIMUM,
    &binary::MUL,
    &binary::MUL_NO_NAN,
    &binary::REAL_DIV,
    &binary::SQUARED_DIFFERENCE,
    &binary::SUB,
    &binary::XDIVY,
    &binary::XLOG1PY,
    &binary::XLOGY,
    &bitwise::BITWISE_AND,
    &bitwise::BITWISE_OR,
    &bitwise::BITWISE_XOR,
    &cast::CAST,
    &clip::CLIP_BY_VALUE,
    &compare::EQUAL,
    &compare::GREATER,
    &compare::GREATER_EQUAL,
    &compare::LESS,
    &compare::LESS_EQUAL,
    &compare::NOT_EQUAL,
    &division::DIV,
    &division::FLOOR_DIV,
    &division::FLOOR_MOD,
    &division::MOD,
    &division::POW,
    &division::TRUNCATE_DIV,
    &division::TRUNCATE_MOD,
    &expression::DEF,
    &gradient::ELU_GRAD,
    &gradient::INV_GRAD,
    &gradient::RECIPROCAL_GRAD,
    &gradient::RELU6_GRAD,
    &gradient::RELU_GRAD,
    &gradient::RSQRT_GRAD,
    &gradient::SELU_GRAD,
    &gradient::SIGMOID_GRAD,
    &gradient::SOFTPLUS_GRAD,
    &gradient::SOFTSIGN_GRAD,
    &gradient::SQRT_GRAD,
    &gradient::TANH_GRAD,
    &leaky_relu::LEAKY_RELU,
    &leaky_relu::LEAKY_RELU_GRAD,
    &logical::IS_FINITE,
    &logical::IS_INF,
    &logical::IS_NAN,
    &logical::LOGICAL_AND,
    &logical::LOGICAL_NOT,
    &logical::LOGICAL_OR,
    &scale_shift::DEF,
    &select::SELECT,
    &select::SELECT_V2,
    &unary::ABS,
    &unary::ACOS,
    &unary::ACOSH,
    &unary::ASIN,
    &unary::ASINH,
    &unary::ATAN,
    &unary::ATANH,
    &unary::CEIL,
    &unary::COS,
    &unary::COSH,
    &unary::ELU,
    &unary::ERF,
    &unary::ERFC,
    &unary::EXP,
    &unary::EXPM1,
    &unary::FLOOR,
    &unary::INV,
    &unary::LOG,
    &unary::LOG1P,
    &unary::NEG,
    &unary::RECIPROCAL,
    &unary::RELU,
    &unary::RELU6,
    &unary::RINT,
    &unary::ROUND,
    &unary::RSQRT,
    &unary::SELU,
    &unary::SIGMOID,
    &unary::SIGN,
    &unary::SIN,
    &unary::SINH,
    &unary::SOFTPLUS,
    &unary::SOFTSIGN,
    &unary::SQRT,
    &unary::SQUARE,
    &unary::TAN,
    &unary::TANH,
];
