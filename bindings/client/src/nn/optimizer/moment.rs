//! Rules with a running mean of the gradient: Adam and its relatives.

use tfp_core::{Context, DataType, Result, Tensor, Value as _};
use tfp_ops as ops;

use super::{Change, KerasRule, Rule, Slot, State, Update, take};

/// `old + (new - old) * share`, a running mean.
pub(super) fn mean<C: Context + ?Sized>(
    cx: &C,
    old: &C::Value,
    new: &C::Value,
    share: f32,
) -> Result<C::Value> {
    ops::add_v2(cx, old, ops::mul(cx, ops::sub(cx, new, old)?, share)?)
}

/// `1 - beta^step`
fn bias<C: Context + ?Sized>(cx: &C, beta: f32, step: &C::Value) -> Result<C::Value> {
    ops::sub(cx, 1.0_f32, ops::pow(cx, beta, step)?)
}

/// Adam (Kingma and Ba, arXiv:1412.6980), with AMSGrad as an option, and AdamW (Loshchilov and
/// Hutter, arXiv:1711.05101) as [`Adam::w`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// The decay of the gradients' mean.
    pub beta_1: f32,
    /// The decay of the squares' mean.
    pub beta_2: f32,
    /// Added to the root.
    pub epsilon: f32,
    /// Whether the squares' mean never falls (Reddi et al., arXiv:1904.09237).
    pub amsgrad: bool,
    /// The weight decay that is used unless another is asked for.
    pub decay: Option<f32>,
}

impl Default for Adam {
    fn default() -> Self {
        Self {
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-7,
            amsgrad: false,
            decay: None,
        }
    }
}

impl Adam {
    /// AdamW: a weight decay of 0.004 that does not pass through the moments.
    #[must_use]
    pub fn w() -> Self {
        Self {
            decay: Some(0.004),
            ..Self::default()
        }
    }
}

impl Rule for Adam {
    fn keras(&self) -> Option<KerasRule> {
        Some(
            KerasRule::new("Adam", &[&[0, 1], &[2]])
                .set("beta_1", self.beta_1)
                .set("beta_2", self.beta_2)
                .set("epsilon", self.epsilon)
                .set("amsgrad", self.amsgrad),
        )
    }

    fn default_rate(&self) -> f32 {
        0.001
    }

    fn default_decay(&self) -> Option<f32> {
        self.decay
    }

    fn slots(&self) -> Vec<Slot> {
        let mut slots = vec![Slot::zeros("momentum"), Slot::zeros("velocity")];
        if self.amsgrad {
            slots.push(Slot::zeros("velocity_hat"));
        }
        slots
    }

    fn coefficients<C: Context + ?Sized>(
        &self,
        cx: &C,
        rate: &C::Value,
        step: &C::Value,
    ) -> Result<Vec<C::Value>> {
        let root = ops::sqrt(cx, bias(cx, self.beta_2, step)?)?;
        let scaled = ops::mul(cx, rate, root)?;
        let mut found = vec![ops::div(cx, scaled, bias(cx, self.beta_1, step)?)?];
        // What the op in place takes beside the rate.
        for number in [0.0, self.beta_1, self.beta_2, self.epsilon] {
            found.push(cx.constant(&Tensor::scalar(number)?)?);
        }
        Ok(found)
    }

    fn update<C: Context + ?Sized>(
        &self,
        cx: &C,
        coefficients: &[C::Value],
        state: State<'_, C::Value>,
    ) -> Result<Update<C::Value>> {
        let [rate] = take(coefficients, "Adam", "coefficients")?;
        let [momentum, velocity] = take(state.slots, "Adam", "slots")?;
        let gradient = state.gradient;
        let momentum = mean(cx, momentum, gradient, 1.0 - self.beta_1)?;
        let square = ops::square(cx, gradient)?;
        let velocity = mean(cx, velocity, &square, 1.0 - self.beta_2)?;
        let mut slots = vec![momentum, velocity];
        if self.amsgrad {
            let [_, _, largest] = take(state.slots, "Adam", "slots")?;
            slots.push(ops::maximum(cx, largest, &slots[1])?);
        }
        let root = ops::sqrt(cx, &slots[slots.len() - 1])?;
        let step = ops::mul(cx, &slots[0], rate)?;
        let step = ops::div(cx, step, ops::add_v2(cx, root, self.epsilon)?)?;
        Ok(Update {
            variable: Change::Subtract(step),
            slots,
        })
    }

    fn update_in_place<C: Context + ?Sized>(
        &self,
        cx: &C,
        coefficients: &[C::Value],
        state: State<'_, C::Value>,
    ) -> Result<Option<C::Operation>> {
        // The op computes one minus a decay, which narrow types round.
        if self.amsgrad || state.gradient.dtype() != DataType::FLOAT {
            return Ok(None);
        }
        let [rate, zero, beta_1, beta_2, epsilon] = take(coefficients, "Adam", "coefficients")?;
        let [momentum, velocity] = take(state.slots, "Adam", "slots")?;
        // The rate has the powers of the decays in it, so they are zero here.
        let done = ops::resource_apply_adam(
            cx,
            state.variable,
            momentum,
            velocity,
            zero,
            zero,
            rate,
            beta_1,
            beta_2,
            epsilon,
            state.gradient,
            ops::ResourceApplyAdamOptions {
                use_locking: Some(true),
                ..Default::default()
            },
        )?;
        Ok(Some(done))
    }
}

/// Adamax: Adam with the largest gradient in place of the root (Kingma and Ba, section 7).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adamax {
    /// The decay of the gradients' mean.
    pub beta_1: f32,
    /// The decay of the largest gradient.
    pub beta_2: f32,
    /// Added to the largest gradient.
    pub epsilon: f32,
}

impl Default for Adamax {
    fn default() -> Self {
        Self {
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-7,
        }
    }
}

impl Rule for Adamax {
    fn keras(&self) -> Option<KerasRule> {
        Some(
            KerasRule::new("Adamax", &[&[0, 1]])
                .set("beta_1", self.beta_1)
                .set("beta_2", self.beta_2)
                .set("epsilon", self.epsilon),
        )
    }

    fn default_rate(&self) -> f32 {
        0.001
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::zeros("momentum"), Slot::zeros("norm")]
    }

    fn coefficients<C: Context + ?Sized>(
        &self,
        cx: &C,
        rate: &C::Value,
        step: &C::Value,
    ) -> Result<Vec<C::Value>> {
        Ok(vec![rate.clone(), bias(cx, self.beta_1, step)?])
    }

    fn update<C: Context + ?Sized>(
        &self,
        cx: &C,
        coefficients: &[C::Value],
        state: State<'_, C::Value>,
    ) -> Result<Update<C::Value>> {
        let [rate, bias] = take(coefficients, "Adamax", "coefficients")?;
        let [momentum, norm] = take(state.slots, "Adamax", "slots")?;
        let momentum = mean(cx, momentum, state.gradient, 1.0 - self.beta_1)?;
        let kept = ops::mul(cx, norm, self.beta_2)?;
        let norm = ops::maximum(cx, kept, ops::abs(cx, state.gradient)?)?;
        let above = ops::mul(cx, rate, &momentum)?;
        let below = ops::add_v2(cx, &norm, self.epsilon)?;
        let below = ops::mul(cx, bias, below)?;
        Ok(Update {
            variable: Change::Subtract(ops::div(cx, above, below)?),
            slots: vec![momentum, norm],
        })
    }
}

/// Nadam: Adam with Nesterov's momentum (Dozat, 2015).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nadam {
    /// The decay of the gradients' mean.
    pub beta_1: f32,
    /// The decay of the squares' mean.
    pub beta_2: f32,
    /// Added to the root.
    pub epsilon: f32,
}

impl Default for Nadam {
    fn default() -> Self {
        Self {
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-7,
        }
    }
}

impl Nadam {
    /// The momentum of a step: `beta_1 * (1 - 0.96^step / 2)`.
    fn momentum<C: Context + ?Sized>(&self, cx: &C, step: &C::Value) -> Result<C::Value> {
        let power = ops::pow(cx, 0.96_f32, step)?;
        let share = ops::sub(cx, 1.0_f32, ops::mul(cx, power, 0.5)?)?;
        ops::mul(cx, share, self.beta_1)
    }
}

impl Rule for Nadam {
    fn keras(&self) -> Option<KerasRule> {
        Some(
            KerasRule::new("Nadam", &[&[0, 1]])
                .set("beta_1", self.beta_1)
                .set("beta_2", self.beta_2)
                .set("epsilon", self.epsilon),
        )
    }

    fn default_rate(&self) -> f32 {
        0.001
    }

    fn slots(&self) -> Vec<Slot> {
        vec![
            Slot::zeros("momentum"),
            Slot::zeros("velocity"),
            Slot::scalar("u_product", 1.0),
        ]
    }

    fn coefficients<C: Context + ?Sized>(
        &self,
        cx: &C,
        rate: &C::Value,
        step: &C::Value,
    ) -> Result<Vec<C::Value>> {
        let next = ops::add_v2(cx, step, 1.0_f32)?;
        Ok(vec![
            rate.clone(),
            self.momentum(cx, step)?,
            self.momentum(cx, &next)?,
            bias(cx, self.beta_2, step)?,
        ])
    }

    fn update<C: Context + ?Sized>(
        &self,
        cx: &C,
        coefficients: &[C::Value],
        state: State<'_, C::Value>,
    ) -> Result<Update<C::Value>> {
        let [rate, now, next, bias] = take(coefficients, "Nadam", "coefficients")?;
        let [momentum, velocity, product] = take(state.slots, "Nadam", "slots")?;
        let product = ops::mul(cx, product, now)?;
        let product_ahead = ops::mul(cx, &product, next)?;
        let momentum = mean(cx, momentum, state.gradient, 1.0 - self.beta_1)?;
        let square = ops::square(cx, state.gradient)?;
        let velocity = mean(cx, velocity, &square, 1.0 - self.beta_2)?;

        let ahead = ops::mul(cx, next, &momentum)?;
        let ahead = ops::div(cx, ahead, ops::sub(cx, 1.0_f32, product_ahead)?)?;
        let present = ops::mul(cx, ops::sub(cx, 1.0_f32, now)?, state.gradient)?;
        let present = ops::div(cx, present, ops::sub(cx, 1.0_f32, &product)?)?;
        let estimate = ops::add_v2(cx, ahead, present)?;
        let root = ops::sqrt(cx, ops::div(cx, &velocity, bias)?)?;
        let step = ops::div(
            cx,
            ops::mul(cx, estimate, rate)?,
            ops::add_v2(cx, root, self.epsilon)?,
        )?;
        Ok(Update {
            variable: Change::Subtract(step),
            slots: vec![momentum, velocity, product],
        })
    }
}
