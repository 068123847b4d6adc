//! What is applied to every element of a product.

use crate::base::chunks::{self, chunk_len};
use crate::base::parallel::Parallel;
use crate::frame::clamp::Clamp;
use crate::frame::map::map_in_place;

/// Elements of which a thread gets a multiple.
const UNIT: usize = 64;

/// What a function of an element costs, in additions.
const FUNCTION_COST: usize = 8;

/// What is applied to every element of a result.
#[derive(Clone, Copy, Debug, Default)]
pub enum Activation {
    /// Nothing.
    #[default]
    None,
    /// `min(max(x, low), high)`; NaN stays.
    Clamp(f32, f32),
    /// A function that works in place on each element, in pieces of any length.
    Map(fn(&mut [f32])),
}

impl Activation {
    /// `max(x, 0)`
    pub const RELU: Self = Self::Clamp(0.0, f32::INFINITY);
    /// `min(max(x, 0), 6)`
    pub const RELU6: Self = Self::Clamp(0.0, 6.0);

    /// Applies it to every element.
    pub fn apply(&self, values: &mut [f32], parallel: &dyn Parallel) {
        match *self {
            Self::None => {}
            Self::Clamp(low, high) => map_in_place(Clamp { low, high }, values, parallel),
            Self::Map(function) => {
                let chunk = chunk_len(parallel, values.len(), UNIT, FUNCTION_COST);
                chunks::for_each_chunk(parallel, values, chunk, &|_, part| function(part));
            }
        }
    }

    pub(crate) fn clamp(&self) -> Option<(f32, f32)> {
        match *self {
            Self::Clamp(low, high) => Some((low, high)),
            Self::None | Self::Map(_) => None,
        }
    }

    pub(crate) fn map(&self) -> Option<fn(&mut [f32])> {
        match *self {
            Self::Map(function) => Some(function),
            Self::None | Self::Clamp(..) => None,
        }
    }
}
