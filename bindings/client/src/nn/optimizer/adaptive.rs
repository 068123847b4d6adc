//! Rules that scale each element's rate by its past gradients.

use tfp_core::{Context, Error, Result};
use tfp_ops as ops;

use super::{Change, KerasRule, Rule, Slot, State, Update, take};

/// `share * old + (1 - share) * new`
fn decay<C: Context + ?Sized>(
    cx: &C,
    old: &C::Value,
    new: &C::Value,
    share: f32,
) -> Result<C::Value> {
    let kept = ops::mul(cx, old, share)?;
    ops::add_v2(cx, kept, ops::mul(cx, new, 1.0 - share)?)
}

/// Adagrad (Duchi et al., 2011): `a += g^2`, `w -= rate * g / sqrt(a + epsilon)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adagrad {
    /// What the sum of squares is at first.
    pub initial: f32,
    /// Added below the root.
    pub epsilon: f32,
}

impl Default for Adagrad {
    fn default() -> Self {
        Self {
            initial: 0.1,
            epsilon: 1e-7,
        }
    }
}

impl Rule for Adagrad {
    fn keras(&self) -> Option<KerasRule> {
        Some(
            KerasRule::new("Adagrad", &[&[0]])
                .set("initial_accumulator_value", self.initial)
                .set("epsilon", self.epsilon),
        )
    }

    fn default_rate(&self) -> f32 {
        0.001
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::filled("accumulator", self.initial)]
    }

    fn update<C: Context + ?Sized>(
        &self,
        cx: &C,
        coefficients: &[C::Value],
        state: State<'_, C::Value>,
    ) -> Result<Update<C::Value>> {
        let [rate] = take(coefficients, "Adagrad", "coefficients")?;
        let [sum] = take(state.slots, "Adagrad", "slots")?;
        let sum = ops::add_v2(cx, sum, ops::square(cx, state.gradient)?)?;
        let root = ops::sqrt(cx, ops::add_v2(cx, &sum, self.epsilon)?)?;
        let step = ops::div(cx, ops::mul(cx, state.gradient, rate)?, root)?;
        Ok(Update {
            variable: Change::Subtract(step),
            slots: vec![sum],
        })
    }
}

/// Adadelta (Zeiler, arXiv:1212.5701).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adadelta {
    /// The decay of both means.
    pub rho: f32,
    /// Added below both roots.
    pub epsilon: f32,
}

impl Default for Adadelta {
    fn default() -> Self {
        Self {
            rho: 0.95,
            epsilon: 1e-7,
        }
    }
}

impl Rule for Adadelta {
    fn keras(&self) -> Option<KerasRule> {
        Some(
            KerasRule::new("Adadelta", &[&[0, 1]])
                .set("rho", self.rho)
                .set("epsilon", self.epsilon),
        )
    }

    fn default_rate(&self) -> f32 {
        0.001
    }

    fn slots(&self) -> Vec<Slot> {
        vec![
            Slot::zeros("accumulated_grad"),
            Slot::zeros("accumulated_delta_var"),
        ]
    }

    fn update<C: Context + ?Sized>(
        &self,
        cx: &C,
        coefficients: &[C::Value],
        state: State<'_, C::Value>,
    ) -> Result<Update<C::Value>> {
        let [rate] = take(coefficients, "Adadelta", "coefficients")?;
        let [gradients, deltas] = take(state.slots, "Adadelta", "slots")?;
        let root =
            |x: &C::Value| -> Result<C::Value> { ops::sqrt(cx, ops::add_v2(cx, x, self.epsilon)?) };
        let square = ops::square(cx, state.gradient)?;
        let gradients = decay(cx, gradients, &square, self.rho)?;
        let scaled = ops::mul(cx, root(deltas)?, state.gradient)?;
        let delta = ops::div(cx, scaled, root(&gradients)?)?;
        let deltas = decay(cx, deltas, &ops::square(cx, &delta)?, self.rho)?;
        Ok(Update {
            variable: Change::Subtract(ops::mul(cx, delta, rate)?),
            slots: vec![gradients, deltas],
        })
    }
}

/// RMSprop (Hinton, 2012), plain or centered, with momentum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsProp {
    /// The decay of the squares' mean.
    pub rho: f32,
    /// How much of the last step is kept.
    pub momentum: f32,
    /// Added below the root.
    pub epsilon: f32,
    /// Whether the gradients' variance takes the place of the squares' mean.
    pub centered: bool,
}

impl Default for RmsProp {
    fn default() -> Self {
        Self {
            rho: 0.9,
            momentum: 0.0,
            epsilon: 1e-7,
            centered: false,
        }
    }
}

impl Rule for RmsProp {
    fn keras(&self) -> Option<KerasRule> {
        Some(
            KerasRule::new("RMSprop", &[&[0], &[1], &[2]])
                .set("rho", self.rho)
                .set("momentum", self.momentum)
                .set("epsilon", self.epsilon)
                .set("centered", self.centered),
        )
    }

    fn default_rate(&self) -> f32 {
        0.001
    }

    fn slots(&self) -> Vec<Slot> {
        let mut slots = vec![Slot::zeros("velocity")];
        if self.momentum > 0.0 {
            slots.push(Slot::zeros("momentum"));
        }
        if self.centered {
            slots.push(Slot::zeros("average_gradient"));
        }
        slots
    }

    fn update<C: Context + ?Sized>(
        &self,
        cx: &C,
        coefficients: &[C::Value],
        state: State<'_, C::Value>,
    ) -> Result<Update<C::Value>> {
        let [rate] = take(coefficients, "RmsProp", "coefficients")?;
        let (velocity, mut others) = match state.slots.split_first() {
            Some((velocity, others)) => (velocity, others.iter()),
            None => return Err(missing(0)),
        };
        let missing = || missing(state.slots.len());
        let momentum = if self.momentum > 0.0 {
            Some(others.next().ok_or_else(missing)?)
        } else {
            None
        };
        let square = ops::square(cx, state.gradient)?;
        let velocity = decay(cx, velocity, &square, self.rho)?;
        let mut below = ops::add_v2(cx, &velocity, self.epsilon)?;
        let mut average = None;
        if self.centered {
            let kept = others.next().ok_or_else(missing)?;
            let new = decay(cx, kept, state.gradient, self.rho)?;
            let variance = ops::sub(cx, &velocity, ops::square(cx, &new)?)?;
            below = ops::add_v2(cx, variance, self.epsilon)?;
            average = Some(new);
        }
        let step = ops::mul(cx, state.gradient, rate)?;
        let mut step = ops::div(cx, step, ops::sqrt(cx, below)?)?;
        let mut slots = vec![velocity];
        if let Some(momentum) = momentum {
            let kept = ops::mul(cx, momentum, self.momentum)?;
            step = ops::add_v2(cx, kept, step)?;
            slots.push(step.clone());
        }
        slots.extend(average);
        Ok(Update {
            variable: Change::Subtract(step),
            slots,
        })
    }
}

fn missing(found: usize) -> Error {
    Error::argument(format!(
        "RmsProp got {found} slots, expected as many as it names"
    ))
}
