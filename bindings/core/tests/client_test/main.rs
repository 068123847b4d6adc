//! The client against the real TensorFlow, in one process.

mod contexts;
mod support;
