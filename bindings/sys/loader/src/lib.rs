//! Finds TensorFlow's shared libraries, resolves their C functions by name, and keeps what these throw
//! away from Rust ([`fenced`]).
//!
//! Nothing here links to TensorFlow. A [`Lookup`] answers "where is the function of this name":
//! [`Process`] asks the running process (a plug-in, which TensorFlow itself has loaded),
//! [`Libraries`] asks the two libraries of an installation (a program that uses TensorFlow).
//! [`resolve`] asks for a whole group of functions in one call and names everything that is missing.
//!
//! # Where libraries are looked for
//!
//! [`find`] tries, in this order:
//!
//! 1. the process itself, when TensorFlow is in it already (a second copy would not work);
//! 2. `TF_LIBRARY_PATH`: folders, or one of the library files; nothing else is tried when it is set;
//! 3. the `tensorflow` package of the running Python: `TFP_PYTHON`, the `python3` of
//!    `VIRTUAL_ENV`, `python3` and `python` on the path; TensorFlow is not imported for this;
//! 4. the folder of the program, `/usr/local/lib`, `/usr/lib` and `/usr/lib/x86_64-linux-gnu`.
//!
//! Linux x86-64 only.
#![deny(
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks,
    missing_docs
)]

mod dl;
mod error;
mod fence;
mod find;
mod lookup;
#[cfg(test)]
mod tests;

pub use error::{Error, Tried};
pub use fence::{Thrown, fenced};
pub use find::{Found, LIBRARY_PATH, PYTHON, find};
pub use lookup::{
    CC_LIBRARIES, FRAMEWORK_LIBRARY, Libraries, Lookup, Process, Symbol, check, check_version,
    missing, resolve,
};
