//! What workers of a training found of a batch, brought together.

use tfp_core::{Context, DataType, EagerContext, Error, Result, Tensor, TensorHandle, Value};

use crate::context::value::AnyValue;
use crate::distribute::{MultiWorker, Reduction};
use crate::nn::layer::Model;
use crate::ops;
use crate::variable::Variable;

/// What all workers have measured of a batch.
pub(super) struct Together {
    /// Means of losses, and sums of statistics.
    pub measured: Vec<AnyValue>,
    /// The means of gradients.
    pub gradients: Vec<Option<AnyValue>>,
    /// The samples of all parts.
    pub samples: f32,
}

/// Brings together what the workers found of their parts of a batch, by one collective op where all is
/// float32. The first `losses` of what was measured are means over samples, and the others sums. Variables
/// that a forward pass has changed, such as moving means, get the mean over the workers.
///
/// A part without samples has gradients of NaN; it counts for nothing.
pub(super) fn bring_together(
    workers: &MultiWorker,
    context: &EagerContext,
    measured: &[AnyValue],
    losses: usize,
    gradients: &[Option<AnyValue>],
    moving: &[Variable],
    samples: f32,
) -> Result<Together> {
    let cx = context;
    let weight = |value: &TensorHandle, by: f32| -> Result<TensorHandle> {
        let by = ops::cast(cx, by, Value::dtype(value), ops::CastOptions::default())?;
        ops::mul_no_nan(cx, value, &by)
    };
    let mut parts = vec![cx.constant(&Tensor::scalar(samples)?)?];
    for (index, value) in measured.iter().enumerate() {
        let by = if index < losses {
            samples
        } else {
            f32::from(u8::from(samples > 0.0))
        };
        parts.push(weight(value.handle()?, by)?);
    }
    for gradient in gradients.iter().flatten() {
        parts.push(weight(gradient.handle()?, samples)?);
    }
    for variable in moving {
        parts.push(weight(&variable.read(cx)?, samples)?);
    }
    let mut sums = workers.all_reduce(&parts, Reduction::Sum)?.into_iter();
    let mut next = || {
        sums.next()
            .ok_or_else(|| Error::argument("workers found too few values"))
    };
    let samples = next()?;
    let mean = |sum: TensorHandle| -> Result<TensorHandle> {
        let to = Value::dtype(&sum);
        let by = ops::cast(cx, &samples, to, ops::CastOptions::default())?;
        ops::div_no_nan(cx, &sum, &by)
    };
    let mut all = Vec::with_capacity(measured.len());
    for index in 0..measured.len() {
        let sum = next()?;
        all.push(AnyValue::from(if index < losses {
            mean(sum)?
        } else {
            sum
        }));
    }
    let mut found = Vec::with_capacity(gradients.len());
    for gradient in gradients {
        found.push(match gradient {
            Some(_) => Some(AnyValue::from(mean(next()?)?)),
            None => None,
        });
    }
    for variable in moving {
        variable.assign(cx, mean(next()?)?)?;
    }
    Ok(Together {
        measured: all,
        gradients: found,
        samples: samples.to_tensor()?.to_scalar()?,
    })
}

/// The variables of a model that a forward pass may change, and a mean of which makes sense.
pub(super) fn moving(model: &Model) -> Vec<Variable> {
    let trained = model.trainables();
    let is_trained = |one: &Variable| trained.iter().any(|other| other.name() == one.name());
    let all = model.variables().iter();
    all.filter(|one| !is_trained(one) && is_float(one))
        .cloned()
        .collect()
}

fn is_float(variable: &Variable) -> bool {
    [
        DataType::FLOAT,
        DataType::DOUBLE,
        DataType::HALF,
        DataType::BFLOAT16,
    ]
    .contains(&variable.dtype())
}
