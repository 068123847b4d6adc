//! Convolutions of one and two dimensions, forward and backward, channels last.
//!
//! No image is unfolded: the tiles of [`crate::gemm`] read the image itself, one run per tap.
//! What lies outside the image counts as 0, so that an infinite or NaN weight meets a 0 there.

pub mod attributes;
mod backward_filter;
mod backward_input;
pub mod depthwise;
pub mod filter;
mod forward;
pub mod geometry;
pub(crate) mod layout;
#[cfg(test)]
pub(crate) mod tests;

pub use backward_filter::BackwardFilter;
pub use backward_input::BackwardInput;
pub use filter::{Direction, Filter, PackedFilter};
pub use forward::Forward;
pub use geometry::{Conv, Padding, Window};
