//! What a model converted by tf2rust runs on: weights, memory and layers.
//!
//! A layer is a struct that holds its weights, or a function for an operation without any. Both
//! read and write tensors in the model's [`memory`], where every tensor has a fixed place
//! ([`memory::Slot`]) that the converter planned. All arithmetic is in [`kernels`].
//!
//! A converted model either links this crate or carries those files of it that it needs.
#![cfg_attr(not(feature = "std"), no_std)]
#![deny(
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks,
    missing_docs
)]
// An error carries two shapes by value, because there is no allocator to box them.
#![allow(clippy::result_large_err)]
// `without` names what a copy in a crate of tf2rust may leave out, such as the packing of weights that
// then stay where they are; no build sets it.
#![allow(unexpected_cfgs)]

pub use tfp_kernels as kernels;

pub mod activation;
pub mod attention;
pub mod bytes;
pub mod chain;
pub mod chosen;
pub mod confidence;
pub mod conv;
pub mod custom;
pub mod dense;
pub mod dtype;
pub mod elementwise;
#[cfg(feature = "std")]
pub mod engine;
pub mod error;
pub mod gather;
pub mod layout;
pub mod linear_system;
pub mod mat_mul;
pub mod memory;
pub mod norm;
#[cfg(target_has_atomic = "8")]
pub mod once;
pub mod origin;
pub mod pool;
pub mod ports;
pub mod quantized;
pub mod random;
pub mod recurrent;
pub mod reduce;
pub mod resize;
pub mod scatter;
pub mod shapes;
pub mod softmax;
#[cfg(feature = "std")]
pub mod stored;
pub mod sums;
pub mod suppress;
pub mod text;
pub mod top;
pub mod weights;
pub mod whole;
#[cfg(feature = "std")]
pub mod written;
