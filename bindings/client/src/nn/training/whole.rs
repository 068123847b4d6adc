//! A step as one function; that of several workers with the collective op in it.

use tfp_core::{Context, DataType, Error, Result, Shape, Tensor};

use super::job::{Given, Numbers};
use super::stepped::{Stepped, batch_arguments, number_arguments, split_batch, split_numbers};
use super::together::Together;
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::distribute::{MultiWorker, Packs};
use crate::function::GraphFunction;
use crate::nn::layer::Pass;
use crate::nn::optimizer::Rule;
use crate::ops;
use crate::variable::Variable;

/// A step of a worker: it measures its part of a batch and computes the gradients, adds them up with those of
/// the other workers, and changes the variables.
pub(super) struct Whole {
    /// Takes a batch, its number of samples, that of the first collective op, and the numbers of the step.
    step: GraphFunction,
    /// The step of a part without samples, whose gradients would be NaN. It takes all but the first two.
    empty: GraphFunction,
    workers: MultiWorker,
    /// How many collective ops it has.
    ops: usize,
}

/// What a worker adds to the sums of all, and what these become.
struct Parts<'a, R> {
    step: &'a Stepped<'a, R>,
    workers: &'a MultiWorker,
    moving: &'a [Variable],
    packs: Packs,
    measured: usize,
    has_gradient: Vec<bool>,
}

/// A step of one process: it measures a batch, computes the gradients and changes the variables.
pub(super) struct Alone {
    /// Takes a batch and the numbers of the step.
    step: GraphFunction,
}

impl Alone {
    pub(super) fn new<R: Rule>(step: &Stepped<'_, R>, given: &Given) -> Result<Self> {
        let mut arguments = batch_arguments(step.job, given);
        arguments.extend(number_arguments());
        let step = GraphFunction::trace(step.eager, "step", &arguments, |cx, values| {
            let (batch, numbers) = split_numbers(values)?;
            let (given, index) = split_batch(batch, given)?;
            let pass = Pass::training(cx).first_order().at_step(index);
            let mut measured = step.job.measured(&pass, &given)?;
            let found = step.gradients(cx, &measured, &numbers[2])?;
            measured.extend(step.change(cx, found, numbers)?);
            Ok(measured)
        })?;
        Ok(Self { step })
    }

    /// Makes the step, and returns what it measured.
    pub(super) fn run(
        &self,
        cx: &AnyContext,
        mut batch: Vec<AnyValue>,
        numbers: &Numbers<AnyValue>,
    ) -> Result<Vec<AnyValue>> {
        batch.extend_from_slice(numbers);
        self.step.call(cx, &batch)
    }
}

impl Whole {
    /// Traces the step. `None` if a shape is not known before it runs: then what workers have found can't
    /// be put together inside of a function.
    pub(super) fn new<R: Rule>(
        step: &Stepped<'_, R>,
        given: &Given,
        workers: &MultiWorker,
        moving: &[Variable],
    ) -> Result<Option<Self>> {
        let mut arguments = batch_arguments(step.job, given);
        let mut own = vec![(DataType::INT32, Shape::scalar())];
        own.extend(number_arguments());
        arguments.push((DataType::FLOAT, Shape::scalar()));
        arguments.extend(own.clone());
        let (mut parts, mut kinds, mut is_open) = (None, Vec::new(), false);
        let traced = GraphFunction::trace(step.eager, "step", &arguments, |cx, values| {
            let (rest, numbers) = split_numbers(values)?;
            let [batch @ .., samples, first] = rest else {
                return Err(Error::argument("a step has a number of samples"));
            };
            let weights = [samples, &numbers[2]];
            let (found, has_gradient, measured) = found_of(step, cx, batch, given, weights)?;
            let mut all = vec![samples.clone()];
            all.extend(found);
            for variable in moving {
                all.push(weighted(cx, &variable.read(cx)?, samples)?);
            }
            for value in &all {
                let shape = value.shape()?;
                match shape.dims() {
                    Some(dims) if dims.iter().all(|&dim| dim >= 0) => {
                        kinds.push((value.dtype(), dims.to_vec()));
                    }
                    _ => is_open = true,
                }
            }
            if is_open {
                return Err(Error::argument("a shape that is not known"));
            }
            let parts = parts.insert(Parts {
                step,
                workers,
                moving,
                packs: Packs::of(kinds.clone())?,
                measured,
                has_gradient,
            });
            parts.bring_together(cx, &all, first, numbers)
        });
        let traced = match traced {
            Err(_) if is_open => return Ok(None),
            other => other?,
        };
        let parts = parts.ok_or_else(|| Error::argument("a step without a loss"))?;
        let empty = GraphFunction::trace(step.eager, "empty", &own, |cx, values| {
            let ([first], numbers) = split_numbers(values)? else {
                return Err(Error::argument("a step has a rate and numbers"));
            };
            let nothing = kinds.iter().map(|(dtype, dims)| {
                let zero = ops::cast(cx, 0.0_f32, *dtype, ops::CastOptions::default())?;
                ops::fill(cx, &**dims, &zero)
            });
            let nothing = nothing.collect::<Result<Vec<_>>>()?;
            parts.bring_together(cx, &nothing, first, numbers)
        })?;
        Ok(Some(Self {
            step: traced,
            empty,
            workers: workers.clone(),
            ops: parts.packs.len(),
        }))
    }

    /// Makes the step: returns what all workers have measured; the variables are changed.
    pub(super) fn run(
        &self,
        cx: &AnyContext,
        batch: Vec<AnyValue>,
        samples: f32,
        numbers: &Numbers<AnyValue>,
    ) -> Result<Together> {
        let (function, mut arguments) = match samples > 0.0 {
            true => (&self.step, batch),
            false => (&self.empty, Vec::new()),
        };
        if samples > 0.0 {
            arguments.push(cx.constant(&Tensor::scalar(samples)?)?);
        }
        let mut results = self.workers.collective(self.ops, |first| {
            arguments.push(cx.constant(&Tensor::scalar(first)?)?);
            arguments.extend_from_slice(numbers);
            function.call(cx, &arguments)
        })?;
        let measured = results.split_off(1);
        let samples = results.first();
        let samples = samples.ok_or_else(|| Error::argument("a step returned nothing"))?;
        Ok(Together {
            measured,
            gradients: Vec::new(),
            samples: samples.handle()?.to_tensor()?.to_scalar()?,
        })
    }
}

/// What a part of a batch adds to the sums: losses by the number of samples, statistics, and gradients of
/// the loss by the number of samples.
fn found_of<R: Rule>(
    step: &Stepped<'_, R>,
    cx: &AnyContext,
    batch: &[AnyValue],
    given: &Given,
    [samples, scale]: [&AnyValue; 2],
) -> Result<(Vec<AnyValue>, Vec<bool>, usize)> {
    let (given, index) = split_batch(batch, given)?;
    let pass = Pass::training(cx).first_order().at_step(index);
    let mut found = step.job.measured(&pass, &given)?;
    let measured = found.len();
    let weigh = |found: &mut [AnyValue]| -> Result<()> {
        for loss in found.iter_mut().take(step.job.losses()) {
            *loss = weighted(cx, loss, samples)?;
        }
        Ok(())
    };
    let gradients = if step.job.is_scaled {
        // The number of samples is not part of the scale, which float16 is to hold.
        let gradients = step.gradients(cx, &found, scale)?.into_iter();
        weigh(&mut found)?;
        let weighted = |gradient| weighted(cx, &gradient, samples);
        let gradients = gradients.map(|one| one.map(weighted).transpose());
        gradients.collect::<Result<Vec<_>>>()?
    } else {
        weigh(&mut found)?;
        step.gradients(cx, &found, scale)?
    };
    let has_gradient = gradients.iter().map(Option::is_some).collect();
    found.extend(gradients.into_iter().flatten());
    Ok((found, has_gradient, measured))
}

fn weighted(cx: &AnyContext, value: &AnyValue, by: &AnyValue) -> Result<AnyValue> {
    let by = ops::cast(cx, by, value.dtype(), ops::CastOptions::default())?;
    ops::mul(cx, value, by)
}

impl<R: Rule> Parts<'_, R> {
    /// Adds up parts of all workers, changes the variables, and returns the number of samples, what was
    /// measured, and whether the gradients were finite if the loss has a scale.
    fn bring_together(
        &self,
        cx: &AnyContext,
        parts: &[AnyValue],
        first: &AnyValue,
        numbers: &Numbers<AnyValue>,
    ) -> Result<Vec<AnyValue>> {
        let sums = self.workers.sum_traced(cx, &self.packs, parts, first)?;
        let [samples, rest @ ..] = &*sums else {
            return Err(Error::argument("workers found too few values"));
        };
        // A product costs less than a quotient of each element.
        let share = ops::div_no_nan(cx, 1.0_f32, samples)?;
        let (measured, rest) = rest.split_at(self.measured);
        let losses = self.step.job.losses();
        let mut results = vec![samples.clone()];
        for (index, sum) in measured.iter().enumerate() {
            results.push(match index < losses {
                true => weighted(cx, sum, &share)?,
                false => sum.clone(),
            });
        }
        let mut rest = rest.iter();
        let mut found = Vec::with_capacity(self.has_gradient.len());
        for has in &self.has_gradient {
            let sum = if *has { rest.next() } else { None };
            found.push(sum.map(|sum| weighted(cx, sum, &share)).transpose()?);
        }
        for (variable, sum) in self.moving.iter().zip(rest) {
            variable.assign(cx, weighted(cx, sum, &share)?)?;
        }
        results.extend(self.step.change(cx, found, numbers)?);
        Ok(results)
    }
}
