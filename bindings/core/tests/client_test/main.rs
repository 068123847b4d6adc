//! The client against the real TensorFlow, in one process.

#![allow(
    clippy::cloned_ref_to_slice_refs,
    reason = "lists of one are written as lists"
)]

mod aliases;
mod bad_input;
mod cancel;
mod contexts;
mod eager;
mod fences;
mod graphs;
#[cfg(feature = "ndarray")]
mod ndarrays;
mod sessions;
mod support;
mod tensors;
mod threads;
mod untrusted;
