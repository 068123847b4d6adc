//! Means of variables that move with the steps, as `use_ema` of Keras.

use tfp_core::{DataType, Result};

use super::Slot;
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::policy::as_type;
use crate::ops;

/// An exponential moving average of each variable: after each step `momentum * average + (1 - momentum) *
/// variable`; after the first one the variable itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MovingAverage {
    /// The share of the average that stays in a step.
    pub momentum: f32,
    /// After how many steps the variables become their averages, again and again; `None` for only after a
    /// training.
    pub every: Option<u64>,
}

impl Default for MovingAverage {
    /// As in Keras: a momentum of 0.99, and no variable changes before the end.
    fn default() -> Self {
        Self {
            momentum: 0.99,
            every: None,
        }
    }
}

impl MovingAverage {
    /// What is kept for each variable.
    pub(super) const SLOT: Slot = Slot::zeros("average");

    /// Returns the variable's new value and its average after step number `step`, a scalar that begins
    /// with 1.
    pub(super) fn update(
        self,
        cx: &AnyContext,
        value: AnyValue,
        average: &AnyValue,
        step: &AnyValue,
        dtype: DataType,
    ) -> Result<(AnyValue, AnyValue)> {
        let step = as_type(cx, step, DataType::FLOAT)?;
        let is_later = as_type(cx, &ops::greater(cx, &step, 1.0_f32)?, DataType::FLOAT)?;
        let momentum = ops::mul(cx, is_later, self.momentum)?;
        let rest = as_type(cx, &ops::sub(cx, 1.0_f32, &momentum)?, dtype)?;
        let momentum = as_type(cx, &momentum, dtype)?;
        let kept = ops::mul(cx, average, momentum)?;
        let average = ops::add_v2(cx, kept, ops::mul(cx, &value, rest)?)?;
        let value = match self.every {
            None => value,
            Some(every) => {
                let left = ops::floor_mod(cx, &step, every.max(1) as f32)?;
                let is_due = ops::equal(cx, left, 0.0_f32, ops::EqualOptions::default())?;
                ops::select_v2(cx, is_due, &average, value)?
            }
        };
        Ok((value, average))
    }
}
