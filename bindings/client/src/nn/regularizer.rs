//! Penalties of weights: `keras.regularizers` and your own.

use std::fmt::Debug;

use tfp_core::{Error, Result};

use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::ops;

/// A penalty of a weight, which is part of the loss. [`Regularizer`] has those of Keras.
pub trait RegularizerFunction: Debug + Send + Sync {
    /// Returns the penalty of Keras that it is, for its files.
    fn as_regularizer(&self) -> Option<Regularizer> {
        None
    }

    /// Refuses what makes no penalty, when a layer is built.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument), as for a factor that is NaN.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Computes the penalty, a scalar, of a float32 weight of any shape.
    ///
    /// # Errors
    /// What TensorFlow says.
    fn penalty(&self, cx: &AnyContext, w: &AnyValue) -> Result<AnyValue>;
}

impl RegularizerFunction for Regularizer {
    fn as_regularizer(&self) -> Option<Regularizer> {
        Some(*self)
    }

    fn check(&self) -> Result<()> {
        let Self { l1, l2 } = *self;
        let fits = |factor: f32| factor.is_finite() && factor >= 0.0;
        if fits(l1) && fits(l2) {
            return Ok(());
        }
        Err(Error::argument(format!(
            "a regularizer with factors {l1} and {l2}; expected 0 or more"
        )))
    }

    fn penalty(&self, cx: &AnyContext, w: &AnyValue) -> Result<AnyValue> {
        Regularizer::penalty(*self, cx, w)
    }
}

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
