//! Eager execution: a context, handles of tensors, and the execution of calls.

mod cancel;
mod cluster;
mod context;
mod executor;
mod handle;
mod places;
mod pool;
mod shared;

pub use cancel::Cancellation;
pub use context::{EagerContext, EagerOptions, PlacementPolicy, WeakEagerContext};
pub use executor::Executor;
pub use handle::TensorHandle;
