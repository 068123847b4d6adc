//! Optimizers for loops of your own.

use tfp_core::{Context, Error, Result, Tensor, TensorHandle};

use super::{LossScale, Optimizer, Rule, Scaling, unscaled};
use crate::context::any::{AnyContext, Mode as _};
use crate::context::tape::Tape;
use crate::context::value::AnyValue;
use crate::nn::policy::{as_type, wide};
use crate::ops;
use crate::variable::Variable;

/// An optimizer with the variables that it changes, what it keeps for them, and the number of its steps,
/// in eager mode.
#[derive(Debug)]
pub struct Minimizer<R> {
    optimizer: Optimizer<R>,
    context: AnyContext,
    variables: Vec<Variable>,
    slots: Vec<Vec<Variable>>,
    step: u64,
    scaling: Option<Scaling>,
}

impl<R: Rule> Minimizer<R> {
    /// Makes an optimizer's slots for variables of an eager context.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for variables in a graph, and as for
    /// [`Optimizer::slots`].
    pub fn new(optimizer: Optimizer<R>, variables: &[Variable]) -> Result<Self> {
        let first = variables
            .first()
            .ok_or_else(|| Error::argument("an optimizer without a variable"))?;
        let handle = first.handle().handle().map_err(|_| {
            Error::argument(format!(
                "'{}' is a variable in a graph; there Optimizer::apply makes the operations",
                first.name()
            ))
        })?;
        let context = handle.context().any();
        Ok(Self {
            slots: optimizer.slots(&context, variables)?,
            optimizer,
            context,
            variables: variables.to_vec(),
            step: 0,
            scaling: None,
        })
    }

    /// Scales losses, as [`Plan::loss_scale`](crate::nn::training::Plan::loss_scale) does: models that
    /// compute in float16 need it. The loss should be of outputs that were cast to float32, as a large scale
    /// is infinite in float16. [`LossScale::Auto`] is [`LossScale::KERAS`] here.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a scale that is not finite and above 0.
    pub fn loss_scale(self, scale: LossScale) -> Result<Self> {
        Ok(Self {
            scaling: Scaling::new(scale, true)?,
            ..self
        })
    }

    /// Changes the variables by the gradients of a loss that a tape has recorded. With a loss scale, a step
    /// whose gradients are not finite changes nothing and halves the scale.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a loss that depends on none of the
    /// variables, and what TensorFlow says.
    pub fn minimize(&mut self, tape: &Tape, loss: &TensorHandle) -> Result<()> {
        let handles = self.variables.iter().map(|one| one.handle().handle());
        let handles = handles.collect::<Result<Vec<_>>>()?;
        let found = tape.gradients(&[&self.scaled(tape, loss)?], &handles)?;
        if found.iter().all(Option::is_none) {
            return Err(Error::argument(
                "the loss depends on none of the optimizer's variables by what the tape recorded",
            ));
        }
        self.apply(&found)
    }

    /// Returns the loss times the scale of the next step, float32 or wider, or the loss itself without a
    /// scale: [`Self::apply`] takes gradients of this.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn scaled(&self, tape: &Tape, loss: &TensorHandle) -> Result<TensorHandle> {
        let Some(scaling) = &self.scaling else {
            return Ok(loss.clone());
        };
        let loss = as_type(tape, loss, wide(loss.dtype()))?;
        ops::mul(tape, loss, scaling.scale)
    }

    /// Changes the variables by gradients, in the order of the variables; one without stays as it is. With
    /// a loss scale, they are gradients of what [`Self::scaled`] returns.
    ///
    /// # Errors
    /// As for [`Optimizer::apply`].
    pub fn apply(&mut self, gradients: &[Option<TensorHandle>]) -> Result<()> {
        let found = gradients.iter();
        let mut found: Vec<Option<AnyValue>> =
            found.map(|one| one.as_ref().map(AnyValue::from)).collect();
        let cx = &self.context;
        let constant = |tensor: &Tensor| cx.constant(tensor);
        let number = self.step - self.skipped();
        let mut is_finite = true;
        if let Some(scaling) = &self.scaling {
            let scale = Tensor::scalar(scaling.scale)?;
            let scale = constant(&scale)?;
            let (without, finite) = unscaled(cx, &found, &scale)?;
            found = without;
            is_finite = finite.handle()?.to_tensor()?.to_scalar()?;
        }
        if is_finite {
            let (rate, step) = self.optimizer.numbers(number)?;
            let (rate, step) = (constant(&rate)?, constant(&step)?);
            self.optimizer
                .apply(cx, &self.variables, &found, &self.slots, &rate, &step)?;
        }
        if let Some(scaling) = &mut self.scaling {
            scaling.step(is_finite);
        }
        self.step += 1;
        Ok(())
    }

    /// Returns how many steps were made, with those that changed nothing.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Returns how many steps changed nothing, because their gradients were not finite.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.scaling.map_or(0, |scaling| scaling.skipped)
    }

    /// Returns the loss scale of the next step; none without one.
    #[must_use]
    pub fn scale(&self) -> Option<f32> {
        self.scaling.map(|scaling| scaling.scale)
    }

    /// Returns the optimizer's own variables, those of each variable in the order of the rule's slots: a
    /// [`Checkpoint`](crate::Checkpoint) saves them.
    #[must_use]
    pub fn slots(&self) -> &[Vec<Variable>] {
        &self.slots
    }
}
