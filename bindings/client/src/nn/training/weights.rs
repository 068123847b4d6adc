//! The weights of a batch's samples.

use tfp_core::{DataType, Error, Result, Tensor};

use super::Plan;
use super::check_type;

/// Returns a weight per sample for each truth: those of the batch times those of the classes. Nothing
/// where the plan has none.
pub(super) fn per_head<R>(
    plan: &Plan<R>,
    truth: &[Tensor],
    given: &[Tensor],
    samples: i64,
) -> Result<Vec<Tensor>> {
    if !plan.weighted {
        return match given {
            [] => Ok(Vec::new()),
            _ => Err(Error::argument(
                "a batch has weights, which the plan doesn't take: Plan::weighted makes it do so",
            )),
        };
    }
    if given.len() > 1 && given.len() != truth.len() {
        return Err(Error::argument(format!(
            "{} tensors of weights for {} truths; expected one for all or for each",
            given.len(),
            truth.len()
        )));
    }
    if !plan.class_weights.is_empty() && truth.len() != 1 {
        return Err(Error::argument(
            "class weights are for a training with one loss; give weights per sample instead",
        ));
    }
    let one = |index: usize, truth: &Tensor| {
        let mut weights = match given.get(index).or(given.first()) {
            Some(given) => {
                check_type("the weights of a batch", DataType::FLOAT, given)?;
                if given.dims() != [samples] {
                    return Err(Error::argument(format!(
                        "weights of shape {}, expected one per sample: [{samples}]",
                        given.shape()
                    )));
                }
                given.to_vec::<f32>()?
            }
            None => vec![1.0; usize::try_from(samples).unwrap_or(0)],
        };
        if !plan.class_weights.is_empty() {
            let classes = classes(truth, weights.len())?;
            for (weight, class) in weights.iter_mut().zip(classes) {
                *weight *= plan.class_weights.get(class).copied().unwrap_or(1.0);
            }
        }
        Tensor::from_vec(weights, &[samples])
    };
    let truths = truth.iter().enumerate();
    truths.map(|(index, truth)| one(index, truth)).collect()
}

/// The number of each sample's class.
fn classes(truth: &Tensor, samples: usize) -> Result<Vec<usize>> {
    let wrong = || {
        Error::argument(format!(
            "class weights for truths of shape {} and type {}; expected class numbers (batch), or \
             one-hot (batch, classes)",
            truth.shape(),
            truth.dtype()
        ))
    };
    match (truth.dtype(), truth.dims()) {
        (DataType::INT64, [_] | [_, 1]) => {
            let numbers = truth.as_slice::<i64>()?.iter();
            Ok(numbers
                .map(|&number| usize::try_from(number).unwrap_or(usize::MAX))
                .collect())
        }
        (DataType::FLOAT, [_] | [_, 1]) => {
            let numbers = truth.as_slice::<f32>()?.iter();
            Ok(numbers.map(|&number| number.max(0.0) as usize).collect())
        }
        (DataType::FLOAT, &[rows, width]) if width > 1 && rows as usize == samples => {
            let rows = truth.as_slice::<f32>()?.chunks_exact(width as usize);
            let largest = |row: &[f32]| {
                let mut best = 0;
                for (index, value) in row.iter().enumerate() {
                    if *value > row[best] {
                        best = index;
                    }
                }
                best
            };
            Ok(rows.map(largest).collect())
        }
        _ => Err(wrong()),
    }
}
