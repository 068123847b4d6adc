//! Follow the regularized leader.

use tfp_core::{Context, Result};
use tfp_ops as ops;

use super::{Change, KerasRule, Rule, Slot, State, Update, take};

/// FTRL-Proximal (McMahan et al., 2013), with L1, L2 and shrinkage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ftrl {
    /// The power of the rate's decay: zero or below.
    pub power: f32,
    /// What the sum of squares is at first.
    pub initial: f32,
    /// The weight of the absolute values.
    pub l1: f32,
    /// The weight of the squares.
    pub l2: f32,
    /// The weight of the squares, applied to the gradient.
    pub l2_shrinkage: f32,
    /// The beta of the paper.
    pub beta: f32,
}

impl Default for Ftrl {
    fn default() -> Self {
        Self {
            power: -0.5,
            initial: 0.1,
            l1: 0.0,
            l2: 0.0,
            l2_shrinkage: 0.0,
            beta: 0.0,
        }
    }
}

impl Rule for Ftrl {
    fn keras(&self) -> Option<KerasRule> {
        Some(
            KerasRule::new("Ftrl", &[&[0, 1]])
                .set("learning_rate_power", self.power)
                .set("initial_accumulator_value", self.initial)
                .set("l1_regularization_strength", self.l1)
                .set("l2_regularization_strength", self.l2)
                .set("l2_shrinkage_regularization_strength", self.l2_shrinkage)
                .set("beta", self.beta),
        )
    }

    fn default_rate(&self) -> f32 {
        0.001
    }

    fn slots(&self) -> Vec<Slot> {
        vec![
            Slot::filled("accumulator", self.initial),
            Slot::zeros("linear"),
        ]
    }

    fn coefficients<C: Context + ?Sized>(
        &self,
        cx: &C,
        rate: &C::Value,
        _: &C::Value,
    ) -> Result<Vec<C::Value>> {
        let twice = ops::mul(cx, rate, 2.0)?;
        let l2 = ops::add_v2(cx, ops::div(cx, self.beta, twice)?, self.l2)?;
        Ok(vec![rate.clone(), ops::mul(cx, l2, 2.0)?])
    }

    fn update<C: Context + ?Sized>(
        &self,
        cx: &C,
        coefficients: &[C::Value],
        state: State<'_, C::Value>,
    ) -> Result<Update<C::Value>> {
        let [rate, twice_l2] = take(coefficients, "Ftrl", "coefficients")?;
        let [old, linear] = take(state.slots, "Ftrl", "slots")?;
        let shrinkage = ops::mul(cx, state.variable, 2.0 * self.l2_shrinkage)?;
        let gradient = ops::add_v2(cx, state.gradient, shrinkage)?;
        let sum = ops::add_v2(cx, old, ops::square(cx, state.gradient)?)?;
        let new_power = ops::pow(cx, &sum, -self.power)?;
        let sigma = ops::sub(cx, &new_power, ops::pow(cx, old, -self.power)?)?;
        let sigma = ops::mul(cx, ops::div(cx, sigma, rate)?, state.variable)?;
        let linear = ops::add_v2(cx, linear, ops::sub(cx, gradient, sigma)?)?;
        let quadratic = ops::add_v2(cx, ops::div(cx, new_power, rate)?, twice_l2)?;
        let clipped = ops::minimum(cx, ops::maximum(cx, &linear, -self.l1)?, self.l1)?;
        let variable = ops::div(cx, ops::sub(cx, clipped, &linear)?, quadratic)?;
        Ok(Update {
            variable: Change::Set(variable),
            slots: vec![sum, linear],
        })
    }
}
