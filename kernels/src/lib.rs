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
mod body;
pub mod compare;
pub mod def;
pub mod dtype;
pub mod error;
pub mod level;
pub mod map;
mod math;
pub mod parallel;
pub mod philox;
pub mod random;
pub mod reduce;
pub mod reductions;
pub mod shape;
mod split;
pub mod unary;
pub mod zip;

/// Every kernel that an adapter can register.
pub static KERNELS: &[&def::KernelDef] = &[
    &binary::ADD,
    &binary::ADD_V2,
    &binary::MUL,
    &binary::SUB,
    &compare::EQUAL,
    &compare::GREATER,
    &compare::GREATER_EQUAL,
    &compare::LESS,
    &compare::LESS_EQUAL,
    &compare::NOT_EQUAL,
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
    &unary::CEIL,
    &unary::FLOOR,
    &unary::NEG,
    &unary::RELU,
    &unary::SQUARE,
];
