//! Penalties of weights: `keras.regularizers`.

use tfp_core::Result;

use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::ops;

/// A penalty of a variable `w`, which is part of the loss: `l1 * sum(|w|) + l2 * sum(w * w)`. Names and
/// numbers are those of Keras 3, where `"l1"` and `"l2"` stand for a factor of 0.01.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Regularizer {
    /// The factor of the magnitudes.
    pub l1: f32,
    /// The factor of the squares.
    pub l2: f32,
}

impl Regularizer {
    /// A penalty of magnitudes, which makes many weights zero.
    #[must_use]
    pub const fn l1(factor: f32) -> Self {
        Self {
            l1: factor,
            l2: 0.0,
        }
    }

    /// A penalty of squares, which makes large weights small.
    #[must_use]
    pub const fn l2(factor: f32) -> Self {
        Self {
            l1: 0.0,
            l2: factor,
        }
    }

    /// Computes the penalty, a scalar, of a float32 tensor of any shape.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn penalty(self, cx: &AnyContext, w: &AnyValue) -> Result<AnyValue> {
        let w = ops::reshape(cx, w, [-1])?;
        let total = |x| ops::sum(cx, x, 0, ops::SumOptions::default());
        let squares = || ops::mul(cx, total(ops::square(cx, &w)?)?, self.l2);
        let magnitudes = || ops::mul(cx, total(ops::abs(cx, &w)?)?, self.l1);
        match (self.l1 == 0.0, self.l2 == 0.0) {
            (true, _) => squares(),
            (_, true) => magnitudes(),
            _ => ops::add_v2(cx, magnitudes()?, squares()?),
        }
    }
}
