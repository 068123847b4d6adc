//! Optimizers: update rules, learning-rate schedules, clipping and weight decay.
//!
//! A [`Rule`] is a pure function of values, so it serves graphs and eager execution, and every device. On
//! a CPU or a GPU it may name an op of TensorFlow that does the same in the variable's memory
//! ([`Rule::update_in_place`]). The formulas are those of Keras 3.
//!
//! A row of an embedding that a batch uses several times has one gradient, the sum. Keras on JAX has
//! the same; Keras on TensorFlow leaves the parts of the sum apart, and a rule that squares gradients,
//! as Adam and RMSprop do, squares each: there a step with such a row differs.

mod adaptive;
mod apply;
mod average;
mod clip;
mod described;
mod ftrl;
mod lion;
mod minimize;
mod moment;
mod scale;
mod schedule;
mod sgd;

use tfp_core::{Context, Error, Result};

pub use adaptive::{Adadelta, Adagrad, RmsProp};
pub use apply::Optimizer;
pub use average::MovingAverage;
pub use clip::Clip;
pub use described::KerasRule;
pub use ftrl::Ftrl;
pub use lion::Lion;
pub use minimize::Minimizer;
pub use moment::{Adam, Adamax, Nadam};
pub use scale::LossScale;
pub(crate) use scale::{Scaling, unscaled};
pub use schedule::{RateFunction, Schedule};
pub use sgd::Sgd;

/// A value that a rule keeps for each variable between steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slot {
    /// Its name in checkpoints, as Keras has it.
    pub name: &'static str,
    /// What all its elements are at first.
    pub initial: f32,
    /// Whether it is one number instead of one per element of the variable.
    pub is_scalar: bool,
}

impl Slot {
    /// A slot with the variable's shape, zero at first.
    #[must_use]
    pub const fn zeros(name: &'static str) -> Self {
        Self::filled(name, 0.0)
    }

    /// A slot with the variable's shape.
    #[must_use]
    pub const fn filled(name: &'static str, initial: f32) -> Self {
        Self {
            name,
            initial,
            is_scalar: false,
        }
    }

    /// A slot of one number.
    #[must_use]
    pub const fn scalar(name: &'static str, initial: f32) -> Self {
        Self {
            name,
            initial,
            is_scalar: true,
        }
    }
}

/// How a variable changes in a step.
#[derive(Clone, Debug)]
pub enum Change<V> {
    /// The value to subtract.
    Subtract(V),
    /// The new value.
    Set(V),
}

/// What a rule says about one variable in one step.
#[derive(Clone, Debug)]
pub struct Update<V> {
    /// How the variable changes.
    pub variable: Change<V>,
    /// The new values of the slots, in their order.
    pub slots: Vec<V>,
}

/// The variable, its gradient and its slots: same element type, and same shape unless a slot is a scalar.
#[derive(Clone, Copy, Debug)]
pub struct State<'a, V> {
    /// The variable's value.
    pub variable: &'a V,
    /// The gradient, after clipping.
    pub gradient: &'a V,
    /// The slots' values, in their order.
    pub slots: &'a [V],
}

/// An optimizer's rule.
pub trait Rule {
    /// Returns the learning rate that is used unless another is asked for.
    fn default_rate(&self) -> f32;

    /// Returns the weight decay that is used unless another is asked for.
    fn default_decay(&self) -> Option<f32> {
        None
    }

    /// Returns how Keras' files describe the rule; none for one that Keras does not have.
    fn keras(&self) -> Option<KerasRule> {
        None
    }

    /// Returns the slots of each variable.
    fn slots(&self) -> Vec<Slot>;

    /// Computes what the updates of all variables share from the learning rate and from the number
    /// of this step, which begins with 1. Both are float32 scalars. By default it is the rate alone.
    ///
    /// # Errors
    /// What TensorFlow says.
    fn coefficients<C: Context + ?Sized>(
        &self,
        _cx: &C,
        rate: &C::Value,
        _step: &C::Value,
    ) -> Result<Vec<C::Value>> {
        Ok(vec![rate.clone()])
    }

    /// Computes one variable's update.
    ///
    /// # Errors
    /// What TensorFlow says, as for a gradient of another shape.
    fn update<C: Context + ?Sized>(
        &self,
        cx: &C,
        coefficients: &[C::Value],
        state: State<'_, C::Value>,
    ) -> Result<Update<C::Value>>;

    /// Updates one variable and its slots by an op that changes them where they are, and returns the op's
    /// operation; none, if there is not such an op. The numbers are those of [`Self::update`] within
    /// rounding. In `state`, the variable and its slots are resource handles. The op should lock them:
    /// workers may change a variable at the same time.
    ///
    /// An [`Optimizer`] asks for it where variables are on a CPU or a GPU, and a step changes them in any
    /// case and keeps no moving average.
    ///
    /// # Errors
    /// What TensorFlow says, as for a gradient of another shape.
    fn update_in_place<C: Context + ?Sized>(
        &self,
        _cx: &C,
        _coefficients: &[C::Value],
        _state: State<'_, C::Value>,
    ) -> Result<Option<C::Operation>> {
        Ok(None)
    }
}

/// Returns the first `N` values that a rule was given.
fn take<'a, V, const N: usize>(values: &'a [V], rule: &str, what: &str) -> Result<&'a [V; N]> {
    values.first_chunk().ok_or_else(|| {
        let found = values.len();
        Error::argument(format!("{rule} got {found} {what}, expected {N}"))
    })
}
