//! SavedModels whose variables can be trained, and the way back to files.

mod gradients;
mod load;
mod model_function;
mod proto;
mod rename;
mod save;
mod session;
mod structure;
mod tables;
mod trace;
mod write;

pub use load::Model;
pub use model_function::ModelFunction;
pub use session::SessionModel;
pub use structure::{PythonValue, Spec};
pub use write::ModelWriter;

/// The lists of variables that a root has in Keras.
const LISTS: &[&str] = &["variables", "trainable_variables"];
