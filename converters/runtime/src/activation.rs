//! Activations that layers apply last.

pub use crate::kernels::gemm::Activation;
use crate::kernels::map::{Map, map_in_place};
use crate::kernels::parallel::Serial;

/// Applies a function to every element, on the calling thread: the body of an
/// [`Activation::Map`].
pub fn apply<O: Map<f32, Out = f32>>(op: O, values: &mut [f32]) {
    map_in_place(op, values, &Serial);
}
