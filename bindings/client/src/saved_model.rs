//! SavedModels whose variables can be trained, and the way back to files.

mod load;
mod proto;
mod rename;
mod save;
mod structure;

pub use load::{Model, ModelFunction};
pub use structure::Spec;
