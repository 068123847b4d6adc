//! What everything stands on: types of elements, shapes, descriptions of ops, errors, TensorFlow's
//! library and what it lends.

pub(crate) mod api;
pub(crate) mod buffer;
pub(crate) mod config;
pub(crate) mod device;
pub(crate) mod error;
pub(crate) mod fence;
pub(crate) mod library;
pub(crate) mod names;
pub mod op;
pub(crate) mod place;
pub(crate) mod shape;
pub(crate) mod small_vec;

#[cfg(test)]
mod dtype_test;
#[cfg(test)]
mod status_test;
