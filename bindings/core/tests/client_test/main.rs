//! The client against the real TensorFlow, in one process.

mod bad_input;
mod contexts;
mod eager;
mod graphs;
mod sessions;
mod support;
mod tensors;
mod threads;
