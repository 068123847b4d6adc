//! The few protocol buffer messages that cross TensorFlow's C API, read and written without loss:
//! a field that a message type here does not name keeps its bytes, so that a graph of a newer
//! TensorFlow survives a round trip. (Libraries that decode into generated structs drop such
//! fields, which a graph optimizer must not do.)

pub mod attr;
pub mod graph;
pub mod opdef;
pub mod xspace;

/// The wire format: numbered fields, one after the other.
pub mod wire {
    #[doc(inline)]
    pub use tfp_wire::{Field, Reader, Value, Writer};
}
