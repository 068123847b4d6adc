//! What TensorFlow's C API takes as bytes and numbers, for the SDK and for the client.
//!
//! - A [`Reader`] and a [`Writer`] know the wire format of protocol buffers, not its messages. What is
//!   read is checked, and a field can be written as it was read: a graph of a newer TensorFlow
//!   survives a round trip.
//! - A [`DataType`] is the type of a tensor's elements.
#![deny(missing_docs, unsafe_code)]

mod data_type;
mod error;
mod reader;
mod type_set;
mod varint;
mod writer;

#[cfg(test)]
mod tests;

pub use data_type::DataType;
pub use error::{Error, Result};
pub use reader::{Field, Reader, Value};
pub use type_set::TypeSet;
pub use varint::{push_varint, take_varint};
pub use writer::Writer;
