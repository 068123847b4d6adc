//! What every kernel stands on: shapes, types, definitions, errors, levels, threads, scratch
//! memory.

pub mod adapt;
pub(crate) mod chunks;
pub mod def;
pub mod dtype;
pub mod error;
pub mod half;
#[allow(unsafe_code)] // Lends a caller's closure to threads that others started.
#[cfg(feature = "std")]
pub mod helpers;
pub mod level;
pub mod narrow;
pub mod parallel;
pub(crate) mod rounds;
pub mod scratch;
pub mod shape;
#[cfg(feature = "std")]
pub(crate) mod tasks;
#[allow(unsafe_code)] // Lends a caller's closure to its workers.
#[cfg(feature = "std")]
pub mod threads;
pub(crate) mod worth;
