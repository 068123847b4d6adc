//! Gradient descent, with momentum.

use tfp_core::{Context, DataType, Result, Value as _};
use tfp_ops as ops;

use super::{Change, KerasRule, Rule, Slot, State, Update, take};

/// Gradient descent: `w -= rate * g`; with momentum `m = momentum * m - rate * g`, `w += m`, and
/// with Nesterov's form of it `w += momentum * m - rate * g`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sgd {
    /// How much of the last step is kept, between 0 and 1.
    pub momentum: f32,
    /// Whether the momentum is Nesterov's.
    pub nesterov: bool,
}

impl Rule for Sgd {
    fn keras(&self) -> Option<KerasRule> {
        Some(
            KerasRule::new("SGD", &[&[0]])
                .set("momentum", self.momentum)
                .set("nesterov", self.nesterov),
        )
    }

    fn default_rate(&self) -> f32 {
        0.01
    }

    fn slots(&self) -> Vec<Slot> {
        if self.momentum == 0.0 {
            Vec::new()
        } else {
            vec![Slot::zeros("momentum")]
        }
    }

    fn update<C: Context + ?Sized>(
        &self,
        cx: &C,
        coefficients: &[C::Value],
        state: State<'_, C::Value>,
    ) -> Result<Update<C::Value>> {
        let [rate] = take(coefficients, "Sgd", "coefficients")?;
        let step = ops::mul(cx, state.gradient, rate)?;
        let [momentum] = state.slots else {
            return Ok(Update {
                variable: Change::Subtract(step),
                slots: Vec::new(),
            });
        };
        // The slot has Keras' sign; what is subtracted is its negative.
        let kept = ops::sub(cx, ops::mul(cx, momentum, self.momentum)?, &step)?;
        let ahead = if self.nesterov {
            ops::sub(cx, ops::mul(cx, &kept, self.momentum)?, step)?
        } else {
            kept.clone()
        };
        Ok(Update {
            variable: Change::Set(ops::add_v2(cx, state.variable, ahead)?),
            slots: vec![kept],
        })
    }

    fn update_in_place<C: Context + ?Sized>(
        &self,
        cx: &C,
        coefficients: &[C::Value],
        state: State<'_, C::Value>,
    ) -> Result<Option<C::Operation>> {
        let [rate] = take(coefficients, "Sgd", "coefficients")?;
        let (variable, gradient) = (state.variable, state.gradient);
        if gradient.dtype() != DataType::FLOAT {
            return Ok(None);
        }
        let done = match state.slots {
            [momentum] => ops::resource_apply_keras_momentum(
                cx,
                variable,
                momentum,
                rate,
                gradient,
                self.momentum,
                ops::ResourceApplyKerasMomentumOptions {
                    use_locking: Some(true),
                    use_nesterov: Some(self.nesterov),
                },
            )?,
            _ => {
                let options = ops::ResourceApplyGradientDescentOptions {
                    use_locking: Some(true),
                };
                ops::resource_apply_gradient_descent(cx, variable, rate, gradient, options)?
            }
        };
        Ok(Some(done))
    }
}
