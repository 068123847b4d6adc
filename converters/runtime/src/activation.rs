//! Activations that layers apply last.

use crate::kernels::base::parallel::Serial;
use crate::kernels::frame::map::{Map, map_in_place};
pub use crate::kernels::gemm::Activation;

/// Applies a function to every element, on the calling thread: the body of an
/// [`Activation::Map`].
pub fn apply<O: Map<f32, Out = f32>>(op: O, values: &mut [f32]) {
    map_in_place(op, values, &Serial);
}
