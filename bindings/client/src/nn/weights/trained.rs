//! What training does with variables: which it changes, their penalties and constraints.

use std::sync::Arc;

use tfp_core::{Operation, Result};

use super::sharing::lock;
use super::{Weights, is_below};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::{ConstraintFunction, Regularizer, RegularizerFunction};
use crate::ops;
use crate::variable::Variable;

impl Weights {
    /// Returns the variables that training changes: without those that are frozen.
    #[must_use]
    pub fn trainables(&self) -> Vec<Variable> {
        self.trained(self.variables())
    }

    /// Leaves those of some variables that training changes.
    pub(crate) fn trained(&self, mut variables: Vec<Variable>) -> Vec<Variable> {
        let shared = lock(&self.shared);
        variables.retain(|one| one.is_trainable() && !shared.is_frozen(one.name()));
        variables
    }

    /// Sets whether training leaves the variables below a path as they are, as those of a layer.
    pub(crate) fn set_frozen(&self, path: &str, frozen: bool) {
        let mut shared = lock(&self.shared);
        shared.frozen.retain(|(one, _)| !is_below(one, path));
        shared.frozen.push((path.to_owned(), frozen));
    }

    /// Whether training leaves a variable or a layer of this name as it is.
    pub(crate) fn is_frozen_at(&self, name: &str) -> bool {
        lock(&self.shared).is_frozen(name)
    }

    /// Makes training leave this layer as it is.
    pub(crate) fn freeze(&self) {
        self.set_frozen(self.prefix.trim_end_matches('/'), true);
    }

    /// Whether training leaves this layer as it is.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        lock(&self.shared).is_frozen(&self.prefix)
    }

    /// Makes a penalty of a variable part of the loss of training and evaluation.
    pub fn penalize(&self, variable: &Variable, regularizer: Regularizer) {
        self.penalize_by(variable, Arc::new(regularizer));
    }

    /// Makes a penalty of a variable, which may be your own, part of the loss.
    pub fn penalize_by(&self, variable: &Variable, regularizer: Arc<dyn RegularizerFunction>) {
        if !self.sharing.is_taking() {
            let mut shared = lock(&self.shared);
            shared.penalties.push((variable.stored(), regularizer));
        }
    }

    /// Makes a variable fulfil a constraint after each step of training.
    pub fn constrain(&self, variable: &Variable, constraint: Arc<dyn ConstraintFunction>) {
        if !self.sharing.is_taking() {
            let mut shared = lock(&self.shared);
            shared.constraints.push((variable.stored(), constraint));
        }
    }

    /// Makes some variables fulfil their constraints, in a context in which the step is done.
    /// Where a boolean scalar is false they stay.
    ///
    /// # Errors
    /// As for [`ConstraintFunction::constrain`].
    pub(crate) fn constrained(
        &self,
        cx: &AnyContext,
        of: &[Variable],
        finite: Option<&AnyValue>,
    ) -> Result<Vec<Operation>> {
        let mut operations = Vec::new();
        for (variable, constraint) in lock(&self.shared).constraints.clone() {
            if of.iter().any(|other| other.handle() == variable.handle()) {
                let old = variable.read(cx)?;
                let kept = constraint.constrain(cx, &old)?;
                operations.extend(variable.assign_if(cx, finite, kept, &old)?);
            }
        }
        Ok(operations)
    }

    /// Whether no variable has a constraint.
    pub(crate) fn is_free(&self) -> bool {
        lock(&self.shared).constraints.is_empty()
    }

    /// Computes the sum of all penalties, a scalar; none if there are none. Frozen variables have none.
    ///
    /// # Errors
    /// As for [`Regularizer::penalty`].
    pub fn penalty(&self, cx: &AnyContext) -> Result<Option<AnyValue>> {
        self.penalty_of(cx, &self.variables())
    }

    /// Computes the sum of the penalties of some variables.
    pub(crate) fn penalty_of(&self, cx: &AnyContext, of: &[Variable]) -> Result<Option<AnyValue>> {
        let shared = lock(&self.shared);
        let mut penalties = shared.penalties.clone();
        penalties.retain(|(one, _)| {
            let is_one = |other: &Variable| other.handle() == one.handle();
            of.iter().any(is_one) && !shared.is_frozen(one.name())
        });
        drop(shared);
        let mut sum = None;
        for (variable, regularizer) in penalties {
            let one = regularizer.penalty(cx, &variable.read(cx)?)?;
            sum = Some(match sum {
                Some(sum) => ops::add_v2(cx, sum, one)?,
                None => one,
            });
        }
        Ok(sum)
    }
}
