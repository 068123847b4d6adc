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

pub mod bias_add;
pub mod blocks;
pub mod conv;
pub mod conv2d;
pub mod def;
pub mod dtype;
pub mod error;
pub mod gemm;
pub mod level;
pub mod mat_mul;
pub mod parallel;
pub mod scratch;
pub mod shape;
pub mod simd;
#[cfg(test)]
mod testing;

/// Every kernel that an adapter can register.
#[rustfmt::skip] // One per line, sorted.
pub static KERNELS: &[&def::KernelDef] = &[
    &bias_add::DEF,
    &conv2d::DEF,
    &mat_mul::DEF,
];
