//! The optimizer: a rule with its rate, its clipping and its variables.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use tfp_core::{DataType, Error, Operation, Result, Tensor};

use super::{Change, Clip, MovingAverage, Rule, Schedule, Slot, State};
use crate::context::any::{AnyContext, Mode};
use crate::context::value::AnyValue;
use crate::nn::Initializer;
use crate::nn::policy::{as_type, wide};
use crate::ops;
use crate::variable::{Variable, VariableOptions};

/// The rate, and what a rule computes of it and the step, of the type of a variable.
struct Numbers {
    rate: AnyValue,
    coefficients: Vec<AnyValue>,
}

/// A rule with its learning rate, weight decay and clipping.
#[derive(Clone, Debug)]
pub struct Optimizer<R> {
    /// How variables change.
    pub rule: R,
    /// How fast.
    pub rate: Schedule,
    /// The share of a variable that each step takes away, times the rate.
    pub decay: Option<f32>,
    /// How gradients are limited.
    pub clip: Clip,
    /// Means of variables that move with the steps, which a training ends with.
    pub average: Option<MovingAverage>,
}

impl<R: Rule> Optimizer<R> {
    /// A rule with its own rate and weight decay.
    #[must_use]
    pub fn new(rule: R) -> Self {
        Self {
            rate: rule.default_rate().into(),
            decay: rule.default_decay(),
            clip: Clip::None,
            average: None,
            rule,
        }
    }

    /// Sets the learning rate, a number or a [`Schedule`].
    #[must_use]
    pub fn rate(self, rate: impl Into<Schedule>) -> Self {
        Self {
            rate: rate.into(),
            ..self
        }
    }

    /// Sets how gradients are limited.
    #[must_use]
    pub fn clip(self, clip: Clip) -> Self {
        Self { clip, ..self }
    }

    /// Keeps moving averages of the variables, as `use_ema` in Keras.
    /// [`Trainer::fit`](crate::nn::training::Trainer::fit) ends with them.
    #[must_use]
    pub fn average(self, average: MovingAverage) -> Self {
        Self {
            average: Some(average),
            ..self
        }
    }

    /// What is kept for each variable: the rule's slots, then the average.
    pub(crate) fn kept(&self) -> Vec<Slot> {
        let mut slots = self.rule.slots().to_vec();
        slots.extend(self.average.map(|_| MovingAverage::SLOT));
        slots
    }

    /// Makes the slots for variables: the rule's in its order, then the moving average if there is one.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a variable without a known shape,
    /// and what TensorFlow says.
    pub fn slots(&self, cx: &AnyContext, variables: &[Variable]) -> Result<Vec<Vec<Variable>>> {
        let options = VariableOptions {
            trainable: false,
            ..VariableOptions::default()
        };
        // In a graph, slots of one shape begin with one value.
        let mut known: BTreeMap<(DataType, u32, &[i64]), AnyValue> = BTreeMap::new();
        let mut slots = Vec::with_capacity(variables.len());
        for variable in variables {
            let dims = variable.shape().dims().unwrap_or(&[-1]);
            let mut own = Vec::new();
            for slot in self.kept() {
                let shape = if slot.is_scalar { &[] } else { dims };
                let key = (variable.dtype(), slot.initial.to_bits(), shape);
                let value = match known.get(&key) {
                    Some(value) => value.clone(),
                    None => {
                        let first = Initializer::Constant(slot.initial);
                        first.value(cx, shape, variable.dtype(), 0)?
                    }
                };
                if !cx.is_eager() {
                    known.insert(key, value.clone());
                }
                let name = format!("optimizer/{}/{}", variable.name(), slot.name);
                own.push(Variable::with_options(cx, &name, value, &options)?);
            }
            slots.push(own);
        }
        Ok(slots)
    }

    /// Changes variables by their gradients in step number `step`, which begins with 1, at a rate;
    /// both are float32 scalars. A variable without a gradient stays as it is.
    ///
    /// Returns the operations to run in a graph; in eager mode it is done.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) when the lists have different lengths,
    /// and what TensorFlow says.
    pub fn apply(
        &self,
        cx: &AnyContext,
        variables: &[Variable],
        gradients: &[Option<AnyValue>],
        slots: &[Vec<Variable>],
        rate: &AnyValue,
        step: &AnyValue,
    ) -> Result<Vec<Operation>> {
        self.apply_where(cx, variables, gradients, slots, [rate, step], None)
    }

    /// Changes variables if a boolean scalar is true or there is none; as [`Self::apply`].
    pub(crate) fn apply_where(
        &self,
        cx: &AnyContext,
        variables: &[Variable],
        gradients: &[Option<AnyValue>],
        slots: &[Vec<Variable>],
        [rate, step]: [&AnyValue; 2],
        finite: Option<&AnyValue>,
    ) -> Result<Vec<Operation>> {
        if variables.len() != gradients.len() || variables.len() != slots.len() {
            return Err(Error::argument(format!(
                "{} variables, {} gradients and slots of {} variables: expected as many of each",
                variables.len(),
                gradients.len(),
                slots.len()
            )));
        }
        let found: Vec<AnyValue> = gradients.iter().flatten().cloned().collect();
        let mut clipped = self.clip.apply(cx, &found)?.into_iter();
        let mut numbers: BTreeMap<u32, Numbers> = BTreeMap::new();
        let mut operations = Vec::new();
        let is_plain = self.decay.is_none() && self.average.is_none() && finite.is_none();
        for ((variable, gradient), slots) in variables.iter().zip(gradients).zip(slots) {
            let Some(gradient) = gradient.as_ref().and_then(|_| clipped.next()) else {
                // What no step changes is its own average.
                if let (Some(_), Some(slot)) = (self.average, slots.last()) {
                    operations.extend(slot.assign(cx, variable.read(cx)?)?);
                }
                continue;
            };
            let dtype = variable.dtype();
            let Numbers { rate, coefficients } = match numbers.entry(dtype.number()) {
                Entry::Occupied(found) => found.into_mut(),
                Entry::Vacant(place) => place.insert(self.numbers_of(cx, dtype, rate, step)?),
            };
            if is_plain && is_on_host_or_gpu(variable)? {
                let done = self.in_place(cx, variable, &gradient, slots, coefficients)?;
                if let Some(done) = done {
                    operations.extend(done);
                    continue;
                }
            }
            let values = slots
                .iter()
                .map(|slot| slot.read(cx))
                .collect::<Result<Vec<_>>>()?;
            let before = variable.read(cx)?;
            let mut value = before.clone();
            if let Some(decay) = self.decay {
                let share = ops::mul(cx, ops::mul(cx, &value, &*rate)?, decay)?;
                value = ops::sub(cx, &value, share)?;
            }
            let state = State {
                variable: &value,
                gradient: &gradient,
                slots: &values[..self.rule.slots().len()],
            };
            let update = self.rule.update(cx, coefficients, state)?;
            let average = self.average.zip(slots.last().zip(values.last()));
            if let Some((average, (slot, old))) = average {
                let new = match update.variable {
                    Change::Subtract(difference) => ops::sub(cx, &value, difference)?,
                    Change::Set(value) => value,
                };
                let (new, mean) = average.update(cx, new, old, step, dtype)?;
                operations.extend(variable.assign_if(cx, finite, new, &before)?);
                operations.extend(slot.assign_if(cx, finite, mean, old)?);
            } else {
                operations.extend(match update.variable {
                    Change::Subtract(difference) if is_plain => {
                        variable.assign_sub(cx, difference)?
                    }
                    change => {
                        let new = match change {
                            Change::Subtract(difference) => ops::sub(cx, value, difference)?,
                            Change::Set(value) => value,
                        };
                        variable.assign_if(cx, finite, new, &before)?
                    }
                });
            }
            for ((slot, old), new) in slots.iter().zip(&values).zip(update.slots) {
                operations.extend(slot.assign_if(cx, finite, new, old)?);
            }
        }
        Ok(operations)
    }

    /// Changes a variable and its slots where they are, if the rule has an op for it, and returns the
    /// operation in a graph.
    fn in_place(
        &self,
        cx: &AnyContext,
        variable: &Variable,
        gradient: &AnyValue,
        slots: &[Variable],
        coefficients: &[AnyValue],
    ) -> Result<Option<Option<Operation>>> {
        let handles = slots.iter().map(|slot| slot.handle_in(cx));
        let handles = handles.collect::<Result<Vec<_>>>()?;
        let state = State {
            variable: &variable.handle_in(cx)?,
            gradient,
            slots: &handles,
        };
        let place = cx.at_resource();
        self.rule.update_in_place(&*place, coefficients, state)
    }

    /// Computes what the updates of all variables of a type share. What a narrow type would round
    /// away, as the difference of a decay from one, is computed in float32.
    fn numbers_of(
        &self,
        cx: &AnyContext,
        dtype: DataType,
        rate: &AnyValue,
        step: &AnyValue,
    ) -> Result<Numbers> {
        let wide = wide(dtype);
        let (wide_rate, wide_step) = (as_type(cx, rate, wide)?, as_type(cx, step, wide)?);
        let coefficients = self.rule.coefficients(cx, &wide_rate, &wide_step)?;
        Ok(Numbers {
            rate: as_type(cx, &wide_rate, dtype)?,
            coefficients: coefficients
                .iter()
                .map(|value| as_type(cx, value, dtype))
                .collect::<Result<_>>()?,
        })
    }

    /// The rate and the number of a step, which is counted from 0 here.
    pub(crate) fn numbers(&self, step: u64) -> Result<(Tensor, Tensor)> {
        Ok((
            Tensor::scalar(self.rate.rate(step))?,
            Tensor::scalar(step as f32 + 1.0)?,
        ))
    }
}

/// Whether a variable is on a CPU or a GPU, or on the device that TensorFlow chooses: there it has all ops
/// that change variables.
fn is_on_host_or_gpu(variable: &Variable) -> Result<bool> {
    let device = match variable.handle() {
        AnyValue::Output(output) => output.operation().device(),
        AnyValue::Handle(handle) => handle.device()?,
    };
    let device = device.to_ascii_uppercase();
    let kinds = ["CPU:", "GPU:"];
    Ok(device.is_empty() || kinds.iter().any(|kind| device.contains(kind)))
}
