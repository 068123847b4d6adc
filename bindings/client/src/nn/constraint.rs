//! Constraints: what weights are made to fulfil after each step, `keras.constraints` and your own.

use std::fmt::Debug;

use tfp_core::{Error, Result};

use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::ops;

/// What keeps a quotient by a norm finite: `keras.config.epsilon()`.
const EPSILON: f32 = 1e-7;

/// A constraint: a function of a weight that gives the weight its value after each step of training.
/// [`Constraint`] has those of Keras.
pub trait ConstraintFunction: Debug + Send + Sync {
    /// Returns the constraint of Keras that it is, for its files.
    fn as_constraint(&self) -> Option<Constraint> {
        None
    }

    /// Refuses what no weight can fulfil, when a layer is built.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument), as for a norm that is NaN.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Computes what a float32 weight becomes, of the same shape.
    ///
    /// # Errors
    /// What TensorFlow says, as for an axis that the weight lacks.
    fn constrain(&self, cx: &AnyContext, w: &AnyValue) -> Result<AnyValue>;
}

/// A constraint of `keras.constraints`. Norms are the roots of sums of squares over axes; Keras' own
/// choice is axis 0, over the inputs of each unit of a Dense layer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Constraint {
    /// Norms are at most a number. Keras' default is 2.
    MaxNorm {
        /// The largest norm.
        max: f32,
        /// The axes of a norm.
        axes: Vec<i64>,
    },
    /// Norms move into a range. Keras' defaults are 0, 1 and a rate of 1.
    MinMaxNorm {
        /// The smallest norm.
        min: f32,
        /// The largest norm.
        max: f32,
        /// How much of the way a step goes: 1 goes all of it.
        rate: f32,
        /// The axes of a norm.
        axes: Vec<i64>,
    },
    /// Negative elements become zero.
    NonNegative,
    /// Norms are one.
    UnitNorm {
        /// The axes of a norm.
        axes: Vec<i64>,
    },
}

impl Constraint {
    /// Norms over axis 0 of at most a number.
    #[must_use]
    pub fn max_norm(max: f32) -> Self {
        Self::MaxNorm { max, axes: vec![0] }
    }

    /// Norms of one over axis 0.
    #[must_use]
    pub fn unit_norm() -> Self {
        Self::UnitNorm { axes: vec![0] }
    }
}

impl ConstraintFunction for Constraint {
    fn as_constraint(&self) -> Option<Constraint> {
        Some(self.clone())
    }

    fn check(&self) -> Result<()> {
        let is_norm = |number: f32| number.is_finite() && number >= 0.0;
        let fits = match *self {
            Self::MaxNorm { max, .. } => is_norm(max),
            Self::MinMaxNorm { min, max, rate, .. } => {
                is_norm(min) && is_norm(max) && min <= max && (0.0..=1.0).contains(&rate)
            }
            Self::NonNegative | Self::UnitNorm { .. } => true,
        };
        if fits {
            return Ok(());
        }
        Err(Error::argument(format!(
            "{self:?}: expected finite norms from 0 on in ascending order, and a rate from 0 to 1"
        )))
    }

    fn constrain(&self, cx: &AnyContext, w: &AnyValue) -> Result<AnyValue> {
        match self {
            Self::MaxNorm { max, axes } => {
                let norms = norms(cx, w, axes)?;
                let wanted = ops::minimum(cx, &norms, *max)?;
                scaled(cx, w, wanted, norms)
            }
            Self::MinMaxNorm {
                min,
                max,
                rate,
                axes,
            } => {
                let norms = norms(cx, w, axes)?;
                let clipped = ops::minimum(cx, ops::maximum(cx, &norms, *min)?, *max)?;
                let wanted = ops::add_v2(
                    cx,
                    ops::mul(cx, clipped, *rate)?,
                    ops::mul(cx, &norms, 1.0 - rate)?,
                )?;
                scaled(cx, w, wanted, norms)
            }
            Self::NonNegative => {
                let zero = ops::zeros_like(cx, w)?;
                ops::select_v2(cx, ops::greater_equal(cx, w, &zero)?, w, &zero)
            }
            Self::UnitNorm { axes } => {
                let norms = norms(cx, w, axes)?;
                ops::div(cx, w, ops::add_v2(cx, norms, EPSILON)?)
            }
        }
    }
}

/// Norms over axes, which stay with a size of one.
fn norms(cx: &AnyContext, w: &AnyValue, axes: &[i64]) -> Result<AnyValue> {
    let options = ops::SumOptions {
        keep_dims: Some(true),
    };
    ops::sqrt(cx, ops::sum(cx, ops::square(cx, w)?, axes, options)?)
}

/// Weights of such norms with others.
fn scaled(cx: &AnyContext, w: &AnyValue, wanted: AnyValue, norms: AnyValue) -> Result<AnyValue> {
    let factors = ops::div(cx, wanted, ops::add_v2(cx, norms, EPSILON)?)?;
    ops::mul(cx, w, factors)
}
