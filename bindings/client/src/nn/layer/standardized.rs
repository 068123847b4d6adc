//! Normalization by numbers that were measured before the training.

use tfp_core::{Context, DataType, Error, Result, Tensor};

use super::described::KerasLayer;
use super::{Built, Layer, wrong_input};
use crate::formats::json::Json;
use crate::nn::{Initializer, Weights};
use crate::ops;

/// The smallest deviation that is divided by, as in Keras.
const EPSILON: f32 = 1e-7;

/// What a [`Normalization`] divides by and subtracts.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Means: one for all, one for each element of the last kept dimension, or one for each element of
    /// all kept ones, in their order.
    pub mean: Vec<f32>,
    /// Variances, as many as means.
    pub variance: Vec<f32>,
}

/// Subtracts a mean and divides by a standard deviation that training does not change.
///
/// Without numbers of its own, the layer has the variables `mean`, `variance` and `count`, which begin
/// as 0, 1 and 0: those of a file, or what [`Self::measure`] gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Normalization {
    /// The dimensions that have numbers of their own, where 0 is the batch; negative ones count from the
    /// last. Without one there is a single mean.
    pub axes: Vec<i64>,
    /// The numbers, if the layer has no variables.
    pub measured: Option<Measured>,
    /// Whether the layer multiplies by the deviation and adds the mean instead.
    pub invert: bool,
}

impl Default for Normalization {
    fn default() -> Self {
        Self {
            axes: vec![-1],
            measured: None,
            invert: false,
        }
    }
}

impl Normalization {
    /// A layer with the mean and the variance of data, float32 of shape (samples, .., channels), for
    /// each channel.
    ///
    /// # Errors
    /// [`ErrorKind::DType`](tfp_core::ErrorKind::DType) for data of another type, [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for data without an
    /// element or a channel.
    pub fn measure(data: &Tensor) -> Result<Self> {
        let channels = match data.dims() {
            [_, .., channels] => usize::try_from(*channels).unwrap_or_default(),
            _ => 0,
        };
        let values = data.as_slice::<f32>()?;
        if channels == 0 || values.is_empty() {
            return Err(Error::argument(format!(
                "Normalization: data of shape {}, expected samples and channels",
                data.shape()
            )));
        }
        let samples = (values.len() / channels) as f64;
        let mean_of = |channel: usize, of: &dyn Fn(f64) -> f64| {
            let values = values.iter().skip(channel).step_by(channels);
            values.map(|&value| of(f64::from(value))).sum::<f64>() / samples
        };
        let means: Vec<f64> = (0..channels)
            .map(|at| mean_of(at, &|value| value))
            .collect();
        let variances = means.iter().enumerate().map(|(channel, mean)| {
            mean_of(channel, &|value| (value - mean) * (value - mean)) as f32
        });
        Ok(Self {
            measured: Some(Measured {
                variance: variances.collect(),
                mean: means.iter().map(|&mean| mean as f32).collect(),
            }),
            ..Self::default()
        })
    }

    /// The sizes of the kept dimensions, and the shape in which their numbers meet an input.
    fn kept(&self, input: &[i64]) -> Result<(Vec<i64>, Vec<i64>)> {
        let rank = input.len() as i64 + 1;
        let mut broadcast = vec![1; rank as usize];
        for &axis in &self.axes {
            let at = if axis < 0 { axis + rank } else { axis };
            let size = match at {
                1.. => input.get(at as usize - 1).copied().unwrap_or(-1),
                _ => -1,
            };
            if size < 1 {
                let expected = format!("a known dimension {axis}");
                return Err(wrong_input("Normalization", &expected, input));
            }
            broadcast[at as usize] = size;
        }
        let mut kept: Vec<usize> = self
            .axes
            .iter()
            .map(|&axis| (if axis < 0 { axis + rank } else { axis }) as usize)
            .collect();
        kept.sort_unstable();
        kept.dedup();
        Ok((kept.iter().map(|&at| broadcast[at]).collect(), broadcast))
    }
}

/// Brings numbers to the shape in which they meet an input.
fn spread(numbers: &[f32], kept: &[i64], broadcast: &[i64]) -> Result<Tensor> {
    let all: i64 = kept.iter().product();
    let last = kept.last().copied().unwrap_or(1);
    let count = numbers.len() as i64;
    if ![1, last, all].contains(&count) {
        return Err(Error::argument(format!(
            "Normalization: {count} means or variances for the kept dimensions {kept:?}"
        )));
    }
    let repeated = numbers.iter().copied().cycle().take(all as usize);
    Tensor::from_vec(repeated.collect::<Vec<_>>(), broadcast)
}

impl Layer for Normalization {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let numbers = |of: fn(&Measured) -> &[f32]| match self.measured.as_ref().map(of) {
            None => Json::Null,
            Some(&[one]) => Json::from(one),
            Some(several) => Json::List(several.iter().map(|&one| one.into()).collect()),
        };
        Ok(KerasLayer::new("Normalization")
            .set("axis", &*self.axes)
            .set("invert", self.invert)
            .set("mean", numbers(|measured| &measured.mean))
            .set("variance", numbers(|measured| &measured.variance)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let (kept, broadcast) = self.kept(input)?;
        let invert = self.invert;
        let numbers = match &self.measured {
            Some(measured) => {
                if measured.mean.len() != measured.variance.len() {
                    return Err(Error::argument(format!(
                        "Normalization: {} means and {} variances",
                        measured.mean.len(),
                        measured.variance.len()
                    )));
                }
                let mean = spread(&measured.mean, &kept, &broadcast)?;
                Ok((mean, spread(&measured.variance, &kept, &broadcast)?))
            }
            None => {
                let weights = weights.layer("normalization");
                let mean = weights.state("mean", &kept, Initializer::Zeros)?;
                let variance = weights.state("variance", &kept, Initializer::Ones)?;
                // Keras' files have it.
                weights.state("count", &[], Initializer::Zeros)?;
                Err((mean, variance))
            }
        };
        Built::new(input.to_vec(), move |pass, x| {
            let cx = pass.context();
            pass.pass_mask(pass.mask());
            let (mean, variance) = match &numbers {
                Ok((mean, variance)) => (cx.constant(mean)?, cx.constant(variance)?),
                Err((mean, variance)) => {
                    let shape = broadcast.as_slice();
                    let mean = ops::reshape(cx, mean.read(cx)?, shape)?;
                    (mean, ops::reshape(cx, variance.read(cx)?, shape)?)
                }
            };
            let x = ops::cast(cx, x, DataType::FLOAT, ops::CastOptions::default())?;
            let deviation = ops::maximum(cx, ops::sqrt(cx, variance)?, EPSILON)?;
            match invert {
                true => ops::add_v2(cx, mean, ops::mul(cx, x, deviation)?),
                false => ops::real_div(cx, ops::sub(cx, x, mean)?, deviation),
            }
        })
    }
}
