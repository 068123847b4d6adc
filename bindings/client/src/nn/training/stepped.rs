//! What a step that is traced works on.

use tfp_core::{DataType, EagerContext, Error, Result, Shape, Value};

use super::job::{Given, Job, Numbers, batch_of, changed};
use super::plan::Plan;
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::distribute::MultiWorker;
use crate::gradient::gradients;
use crate::nn::optimizer::Rule;
use crate::variable::Variable;

/// What a step works on.
pub(super) struct Stepped<'a, R> {
    pub eager: &'a EagerContext,
    pub job: Job<'a>,
    pub plan: &'a Plan<R>,
    pub variables: &'a [Variable],
    pub slots: &'a [Vec<Variable>],
    /// The workers where there are several, and what a forward pass changes.
    pub workers: Option<(&'a MultiWorker, &'a [Variable])>,
}

impl<R: Rule> Stepped<'_, R> {
    /// Returns the gradients of the loss of what was measured, times a scale, by the variables.
    pub(super) fn gradients(
        &self,
        cx: &AnyContext,
        measured: &[AnyValue],
        scale: &AnyValue,
    ) -> Result<Vec<Option<AnyValue>>> {
        let loss = self.job.target(cx, measured, scale)?;
        let handles = self.variables.iter().map(|one| one.handle().clone());
        gradients(
            cx,
            std::slice::from_ref(&loss),
            &handles.collect::<Vec<_>>(),
        )
    }

    /// Changes the variables by gradients, which have the scale of the loss. Returns whether they were
    /// finite, if there is a scale; otherwise nothing changes.
    pub(super) fn change(
        &self,
        cx: &AnyContext,
        found: Vec<Option<AnyValue>>,
        [rate, number, scale]: &Numbers<AnyValue>,
    ) -> Result<Option<AnyValue>> {
        let (found, finite) = self.job.unscaled(cx, found, scale)?;
        let (optimizer, numbers) = (&self.plan.optimizer, [rate, number]);
        let all = self.variables;
        optimizer.apply_where(cx, all, &found, self.slots, numbers, finite.as_ref())?;
        let weights = self.job.model.weights();
        weights.constrained(cx, &changed(all, &found), finite.as_ref())?;
        Ok(finite)
    }
}

/// The types and shapes of the numbers of a step, as functions take them.
pub(super) fn number_arguments() -> Numbers<(DataType, Shape)> {
    std::array::from_fn(|_| (DataType::FLOAT, Shape::scalar()))
}

/// The numbers of a step among what a function is given: the last ones.
pub(super) fn split_numbers(values: &[AnyValue]) -> Result<(&[AnyValue], &Numbers<AnyValue>)> {
    let found = values.split_last_chunk();
    found.ok_or_else(|| Error::argument("a step has a rate and a number"))
}

/// The types and shapes of a batch and of the step's number, as functions take them.
pub(super) fn batch_arguments(job: Job<'_>, given: &Given) -> Vec<(DataType, Shape)> {
    let ports = job.model.inputs().iter().zip(&given.x);
    let mut arguments: Vec<(DataType, Shape)> = ports
        .map(|(port, x)| (Value::dtype(x), batch_of(&port.shape)))
        .collect();
    let others = given.truth.iter().chain(&given.weights);
    arguments.extend(others.map(|value| (Value::dtype(value), Shape::unknown())));
    arguments.push((DataType::INT64, Shape::scalar()));
    arguments
}

/// The values of these arguments.
pub(super) fn batch_values(given: Given, index: AnyValue) -> Vec<AnyValue> {
    let mut values = given.x;
    values.extend(given.truth);
    values.extend(given.weights);
    values.push(index);
    values
}

/// The batch and the number of the step from such values, which are as many as those of `given`.
pub(super) fn split_batch(values: &[AnyValue], given: &Given) -> Result<(Given, AnyValue)> {
    let Some((index, values)) = values.split_last() else {
        return Err(Error::argument("a step has a number"));
    };
    let (x, rest) = values.split_at(given.x.len());
    let (truth, weights) = rest.split_at(given.truth.len());
    let given = Given {
        x: x.to_vec(),
        truth: truth.to_vec(),
        weights: weights.to_vec(),
    };
    Ok((given, index.clone()))
}
