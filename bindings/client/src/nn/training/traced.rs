//! Steps of eager mode as functions that are traced once, as `tf.function` does in Python.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tfp_core::{DataType, Error, Result, Shape, Value};

use super::job::{Given, Numbers};
use super::stepped::{Stepped, batch_arguments, number_arguments, split_batch, split_numbers};
use super::whole::{Alone, Whole};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::function::GraphFunction;
use crate::nn::layer::Pass;
use crate::nn::optimizer::Rule;

/// The functions of a training, by the types of what a batch gives.
#[derive(Default)]
pub(super) struct Traces {
    known: Mutex<HashMap<Vec<DataType>, Arc<Traced>>>,
}

/// The functions of a step.
pub(super) enum Traced {
    /// One.
    Alone(Alone),
    /// One, which also brings together what workers found.
    Whole(Whole),
    /// Two, between which workers bring together what they found.
    Halves(Halves),
}

/// A step as two functions.
pub(super) struct Halves {
    /// What is measured of a batch, then the gradients that there are.
    found: GraphFunction,
    measured: usize,
    /// Which of the variables have a gradient.
    has_gradient: Vec<bool>,
    /// Changes the variables by these gradients.
    apply: GraphFunction,
}

impl Traces {
    /// Returns the functions for a batch, which are traced when its types come first.
    pub(super) fn of<R: Rule>(&self, step: &Stepped<'_, R>, given: &Given) -> Result<Arc<Traced>> {
        let all = given.x.iter().chain(&given.truth).chain(&given.weights);
        let types: Vec<DataType> = all.map(Value::dtype).collect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(traced) = known.get(&types) {
            return Ok(Arc::clone(traced));
        }
        let traced = Arc::new(match step.workers {
            None => Traced::Alone(Alone::new(step, given)?),
            Some((workers, moving)) => match Whole::new(step, given, workers, moving)? {
                Some(whole) => Traced::Whole(whole),
                None => Traced::Halves(Halves::new(step, given)?),
            },
        });
        known.insert(types, Arc::clone(&traced));
        Ok(traced)
    }
}

impl Halves {
    fn new<R: Rule>(step: &Stepped<'_, R>, given: &Given) -> Result<Self> {
        let (job, eager) = (step.job, step.eager);
        let mut arguments = batch_arguments(job, given);
        arguments.push((DataType::FLOAT, Shape::scalar()));
        let (mut measured, mut has_gradient) = (0, Vec::new());
        let found = GraphFunction::trace(eager, "measure", &arguments, |cx, values| {
            let Some((scale, batch)) = values.split_last() else {
                return Err(Error::argument("a step has a scale"));
            };
            let (given, index) = split_batch(batch, given)?;
            let pass = Pass::training(cx).first_order().at_step(index);
            let mut results = job.measured(&pass, &given)?;
            measured = results.len();
            let gradients = step.gradients(cx, &results, scale)?;
            has_gradient = gradients.iter().map(Option::is_some).collect();
            results.extend(gradients.into_iter().flatten());
            Ok(results)
        })?;
        let with_gradient = step.variables.iter().zip(&has_gradient);
        let with_gradient = with_gradient.filter(|(_, has)| **has);
        let mut arguments: Vec<(DataType, Shape)> = with_gradient
            .map(|(variable, _)| (variable.dtype(), variable.shape().clone()))
            .collect();
        arguments.extend(number_arguments());
        let apply = GraphFunction::trace(eager, "apply", &arguments, |cx, values| {
            let (gradients, numbers) = split_numbers(values)?;
            let mut left = gradients.iter();
            let gradients: Vec<Option<AnyValue>> = has_gradient
                .iter()
                .map(|has| if *has { left.next().cloned() } else { None })
                .collect();
            Ok(step.change(cx, gradients, numbers)?.into_iter().collect())
        })?;
        Ok(Self {
            found,
            measured,
            has_gradient,
            apply,
        })
    }

    /// Returns what is measured of a batch, and the gradients.
    pub(super) fn measure(
        &self,
        cx: &AnyContext,
        mut batch: Vec<AnyValue>,
        scale: &AnyValue,
    ) -> Result<(Vec<AnyValue>, Vec<Option<AnyValue>>)> {
        batch.push(scale.clone());
        let mut measured = self.found.call(cx, &batch)?;
        let mut gradients = measured.split_off(self.measured).into_iter();
        let gradients = self
            .has_gradient
            .iter()
            .map(|has| if *has { gradients.next() } else { None });
        let gradients = gradients.collect();
        Ok((measured, gradients))
    }

    /// Changes the variables. Returns whether the gradients were finite, if the loss has a scale.
    pub(super) fn apply(
        &self,
        cx: &AnyContext,
        gradients: &[Option<AnyValue>],
        numbers: &Numbers<AnyValue>,
    ) -> Result<Option<AnyValue>> {
        let mut arguments: Vec<AnyValue> = gradients.iter().flatten().cloned().collect();
        arguments.extend_from_slice(numbers);
        Ok(self.apply.call(cx, &arguments)?.pop())
    }
}
