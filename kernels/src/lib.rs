//! Tensor compute over slices: no TensorFlow type, no allocation, no thread of its own.
//!
//! [`ops`] holds a file for each family of ops, in rooms: `ops/moving/tile.rs` is `Tile`. A file
//! offers plain typed functions over slices, and a [`base::def::KernelDef`] for each op, through
//! which an adapter serves TensorFlow. Tensors are dense and row-major.
//! Threads are an argument ([`base::parallel::Parallel`]); SIMD bodies are chosen at one point
//! ([`base::level::level`]).
#![cfg_attr(not(feature = "std"), no_std)]
#![deny(
    unsafe_code,
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks,
    missing_docs
)]
// An error carries two shapes by value, because there is no allocator to box them.
#![allow(clippy::result_large_err)]
// `without` names what a copy in a crate of tf2rust may leave out; no build sets it.
#![allow(unexpected_cfgs)]

pub mod base;
pub mod conv;
pub mod frame;
pub mod gemm;
mod math;
pub mod ops;
pub mod quantized;
#[allow(unsafe_code)] // Vectors, and the views of memory that they read and write.
pub mod simd;
#[cfg(test)]
mod testing;
pub mod text;
#[cfg(test)]
mod trial;

/// Every kernel that an adapter can register.
pub fn kernels() -> impl Iterator<Item = &'static base::def::KernelDef> {
    ops::KERNELS.iter().flat_map(|room| room.iter().copied())
}
