//! Optimizers for loops of your own.

use tfp_core::{Error, Result, TensorHandle};

use super::{Optimizer, Rule};
use crate::context::any::{AnyContext, Mode as _};
use crate::context::tape::Tape;
use crate::context::value::AnyValue;
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
        })
    }

    /// Changes the variables by the gradients of a loss that a tape has recorded.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a loss that depends on none of the
    /// variables, and what TensorFlow says.
    pub fn minimize(&mut self, tape: &Tape, loss: &TensorHandle) -> Result<()> {
        let handles = self.variables.iter().map(|one| one.handle().handle());
        let handles = handles.collect::<Result<Vec<_>>>()?;
        let found = tape.gradients(&[loss], &handles)?;
        if found.iter().all(Option::is_none) {
            return Err(Error::argument(
                "the loss depends on none of the optimizer's variables by what the tape recorded",
            ));
        }
        self.apply(&found)
    }

    /// Changes the variables by gradients, in the order of the variables; one without stays as it is.
    ///
    /// # Errors
    /// As for [`Optimizer::apply`].
    pub fn apply(&mut self, gradients: &[Option<TensorHandle>]) -> Result<()> {
        let found = gradients.iter();
        let found: Vec<Option<AnyValue>> =
            found.map(|one| one.as_ref().map(AnyValue::from)).collect();
        let (rate, step) = self.optimizer.numbers(self.step)?;
        let cx = &self.context;
        let constant = |tensor| tfp_core::Context::constant(cx, tensor);
        let (rate, step) = (constant(&rate)?, constant(&step)?);
        self.optimizer
            .apply(cx, &self.variables, &found, &self.slots, &rate, &step)?;
        self.step += 1;
        Ok(())
    }

    /// Returns how many steps were made.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Returns the optimizer's own variables, those of each variable in the order of the rule's slots: a
    /// [`Checkpoint`](crate::Checkpoint) saves them.
    #[must_use]
    pub fn slots(&self) -> &[Vec<Variable>] {
        &self.slots
    }
}
