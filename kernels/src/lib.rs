//! Tensor compute over slices: no TensorFlow type, no allocation, no thread of its own.
//!
//! Every op is one file named after it. It offers plain typed functions over slices, and a
//! [`def::KernelDef`] through which an adapter serves TensorFlow. Tensors are dense and row-major.
//! Threads are an argument ([`parallel::Parallel`]); SIMD bodies are chosen at one point
//! ([`level::level`]).
#![cfg_attr(not(feature = "std"), no_std)]
#![deny(
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks,
    missing_docs
)]
// An error carries two shapes by value, because there is no allocator to box them.
#![allow(clippy::result_large_err)]

pub mod adapt;
pub mod binary;
pub mod bitwise;
pub mod blocks;
mod body;
pub mod compare;
pub mod conv;
pub mod def;
pub mod division;
pub mod dtype;
pub mod error;
pub mod gemm;
pub mod gradient;
pub mod level;
pub mod logical;
pub mod map;
mod math;
pub mod parallel;
pub mod philox;
pub mod random;
pub mod reduce;
pub mod reductions;
pub mod shape;
pub mod simd;
mod split;
#[cfg(test)]
mod testing;
pub mod unary;
pub mod zip;

/// Every kernel that an adapter can register.
pub static KERNELS: &[&def::KernelDef] = &[
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
    &logical::IS_FINITE,
    &logical::IS_INF,
    &logical::IS_NAN,
    &logical::LOGICAL_AND,
    &logical::LOGICAL_NOT,
    &logical::LOGICAL_OR,
    &random::RANDOM_STANDARD_NORMAL,
    &random::RANDOM_UNIFORM,
    &random::RANDOM_UNIFORM_INT,
    &random::TRUNCATED_NORMAL,
    &reductions::ALL,
    &reductions::ANY,
    &reductions::MAX,
    &reductions::MEAN,
    &reductions::MIN,
    &reductions::PROD,
    &reductions::SUM,
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
