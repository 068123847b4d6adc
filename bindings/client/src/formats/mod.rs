//! Formats of files that other programs write: bytes in, facts out. Nothing here opens a file, and an
//! error does not name one: that is its caller's, who knows the path.

pub(crate) mod bytes;
pub(crate) mod hdf5;
pub(crate) mod hdf5_write;
pub(crate) mod json;
pub(crate) mod npy;
pub(crate) mod safetensors;
pub(crate) mod zip;
