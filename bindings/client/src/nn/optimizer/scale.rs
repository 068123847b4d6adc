//! Scales of losses, for gradients of float16.

use tfp_core::{DataType, Error, Result};

use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::policy::{as_type, wide};
use crate::ops;

/// What a training multiplies the loss by before it computes gradients, and divides these by afterwards,
/// so that small ones are not zero in float16.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum LossScale {
    /// [`Self::KERAS`] if a layer has the policy
    /// [`MixedFloat16`](crate::nn::Policy::MixedFloat16), otherwise none.
    #[default]
    Auto,
    /// One.
    None,
    /// A scale that doubles after so many steps with finite gradients. A step in which a gradient is NaN
    /// or infinity changes no weight and nothing that the optimizer keeps, does not count for the
    /// optimizer, and halves the scale.
    Dynamic {
        /// The scale of the first step.
        initial: f32,
        /// The number of steps.
        growth_steps: u64,
    },
}

impl LossScale {
    /// Keras' numbers: 2^15 at first, and 2000 steps.
    pub const KERAS: Self = Self::Dynamic {
        initial: 32_768.0,
        growth_steps: 2000,
    };
}

/// The scale of the next step, and what it follows from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Scaling {
    pub growth_steps: u64,
    /// The scale of the first step.
    pub initial: f32,
    pub scale: f32,
    /// Steps with finite gradients since the scale has changed.
    pub finite: u64,
    /// Steps that changed nothing.
    pub skipped: u64,
}

impl Scaling {
    /// Begins a training, of a model that has gradients of float16 for float32 variables or not.
    pub fn new(scale: LossScale, is_mixed: bool) -> Result<Option<Self>> {
        let scale = match scale {
            LossScale::Auto if is_mixed => LossScale::KERAS,
            other => other,
        };
        let LossScale::Dynamic {
            initial,
            growth_steps,
        } = scale
        else {
            return Ok(None);
        };
        if !(initial > 0.0 && initial.is_finite() && growth_steps > 0) {
            return Err(Error::argument(format!(
                "a loss scale of {initial} that grows after {growth_steps} steps; expected a finite one \
                 above 0, and one step or more"
            )));
        }
        Ok(Some(Self {
            growth_steps,
            initial,
            scale: initial,
            finite: 0,
            skipped: 0,
        }))
    }

    /// Goes on after a step whose gradients were finite or not.
    pub fn step(&mut self, is_finite: bool) {
        if !is_finite {
            self.finite = 0;
            self.skipped += 1;
            self.scale *= 0.5;
        } else if self.finite + 1 >= self.growth_steps {
            self.finite = 0;
            self.scale *= 2.0;
        } else {
            self.finite += 1;
        }
    }
}

/// Divides gradients by a scale, and says whether all were finite: a boolean scalar.
pub(crate) fn unscaled(
    cx: &AnyContext,
    gradients: &[Option<AnyValue>],
    scale: &AnyValue,
) -> Result<(Vec<Option<AnyValue>>, AnyValue)> {
    let (mut found, mut finite) = (Vec::with_capacity(gradients.len()), Vec::new());
    for gradient in gradients {
        let Some(gradient) = gradient else {
            found.push(None);
            continue;
        };
        let dtype = wide(gradient.dtype());
        let flat = ops::reshape(cx, ops::is_finite(cx, gradient)?, [-1])?;
        finite.push(ops::all(cx, flat, [0], ops::AllOptions::default())?);
        let quotient = ops::div(
            cx,
            as_type(cx, gradient, dtype)?,
            as_type(cx, scale, dtype)?,
        )?;
        found.push(Some(as_type(cx, &quotient, gradient.dtype())?));
    }
    let finite = match finite.as_slice() {
        [] => ops::cast(cx, 1.0_f32, DataType::BOOL, ops::CastOptions::default())?,
        several => {
            let several = ops::pack(cx, several, ops::PackOptions::default())?;
            ops::all(cx, several, [0], ops::AllOptions::default())?
        }
    };
    Ok((found, finite))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaling(initial: f32, growth_steps: u64) -> Result<Option<Scaling>> {
        let scale = LossScale::Dynamic {
            initial,
            growth_steps,
        };
        Scaling::new(scale, false)
    }

    #[test]
    fn a_scale_doubles_after_finite_steps_and_halves_after_others() -> Result<()> {
        let mut scaling = scaling(8.0, 3)?.expect("a scale");
        let steps = [true, true, false, true, true, true, true, false, false];
        let expected = [8.0, 8.0, 4.0, 4.0, 4.0, 8.0, 8.0, 4.0, 2.0];
        for (is_finite, expected) in steps.into_iter().zip(expected) {
            scaling.step(is_finite);
            assert_eq!(scaling.scale, expected);
        }
        assert_eq!((scaling.finite, scaling.skipped), (0, 3));
        Ok(())
    }

    #[test]
    fn scales_are_for_models_that_need_one_and_for_plans_that_say_so() -> Result<()> {
        assert_eq!(Scaling::new(LossScale::Auto, false)?, None);
        assert_eq!(Scaling::new(LossScale::None, true)?, None);
        let found = Scaling::new(LossScale::Auto, true)?.expect("a scale");
        assert_eq!((found.scale, found.growth_steps), (32_768.0, 2000));
        for initial in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            assert!(scaling(initial, 1).is_err(), "{initial}");
        }
        assert!(scaling(1.0, 0).is_err());
        Ok(())
    }
}
