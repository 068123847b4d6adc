//! Lion: the sign of a momentum.

use tfp_core::{Context, Result};
use tfp_ops as ops;

use super::{Change, KerasRule, Rule, Slot, State, Update, take};

/// Lion (Chen et al., arXiv:2302.06675): `w -= rate * sign(beta_1 * m + (1 - beta_1) * g)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lion {
    /// The momentum's share in the step.
    pub beta_1: f32,
    /// The decay of the momentum.
    pub beta_2: f32,
}

impl Default for Lion {
    fn default() -> Self {
        Self {
            beta_1: 0.9,
            beta_2: 0.99,
        }
    }
}

impl Rule for Lion {
    fn keras(&self) -> Option<KerasRule> {
        Some(
            KerasRule::new("Lion", &[&[0]])
                .set("beta_1", self.beta_1)
                .set("beta_2", self.beta_2),
        )
    }

    fn default_rate(&self) -> f32 {
        0.001
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::zeros("momentum")]
    }

    fn update<C: Context + ?Sized>(
        &self,
        cx: &C,
        coefficients: &[C::Value],
        state: State<'_, C::Value>,
    ) -> Result<Update<C::Value>> {
        let [rate] = take(coefficients, "Lion", "coefficients")?;
        let [momentum] = take(state.slots, "Lion", "slots")?;
        let mix = |beta: f32| -> Result<C::Value> {
            let kept = ops::mul(cx, momentum, beta)?;
            ops::add_v2(cx, kept, ops::mul(cx, state.gradient, 1.0 - beta)?)
        };
        let direction = ops::sign(cx, mix(self.beta_1)?)?;
        Ok(Update {
            variable: Change::Subtract(ops::mul(cx, direction, rate)?),
            slots: vec![mix(self.beta_2)?],
        })
    }
}
