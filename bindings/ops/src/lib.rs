//! Every op of TensorFlow as a Rust function.
//!
//! The build script has generated everything below from the ops of the TensorFlow that it found.
//! One function serves graphs and eager execution: its first argument is the context, which adds a
//! node or executes. Inputs are values of the context, tensors or literals; required attributes
//! are arguments; optional ones are fields of an options struct, `None` for TensorFlow's own
//! default; types and lengths follow from the inputs.
//!
//! Each group of ops is a module and a Cargo feature; all are on by default.

include!(concat!(env!("OUT_DIR"), "/items.rs"));
