//! Convolutions of one and two dimensions, forward and backward, channels last.
//!
//! No image is unfolded: the tiles of [`crate::gemm`] read the image itself, one run per tap.
//! Where groups have few channels, vectors span several of them instead (`direct`).
//! What lies outside the image counts as 0, so that an infinite or NaN weight meets a 0 there.
//! Filters of 3 x 3 taps, and of 3 to 5 taps along a line, are transformed for minimal filtering
//! where that is faster: then the error is relative to the largest elements within 6 x 6 pixels, or
//! 8 along a line, and if the filter was packed before, a channel of the output whose filter holds
//! an infinity or NaN is not finite, but need not be the same infinity.

pub mod attributes;
mod backward_filter;
mod backward_input;
pub mod chain;
pub mod depthwise;
mod direct;
pub mod filter;
mod forward;
pub mod geometry;
pub(crate) mod layout;
mod outside;
#[cfg(test)]
pub(crate) mod tests;
mod winograd;

pub use backward_filter::BackwardFilter;
pub use backward_input::BackwardInput;
pub use chain::{Chain, Link};
pub use filter::{Direction, Filter, PackedFilter};
pub use forward::Forward;
pub use geometry::{Conv, Padding, Window};
