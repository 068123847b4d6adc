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

pub mod def;
pub mod dtype;
pub mod error;
pub mod level;
pub mod parallel;
pub mod shape;

/// Every kernel that an adapter can register.
pub static KERNELS: &[&def::KernelDef] = &[];
