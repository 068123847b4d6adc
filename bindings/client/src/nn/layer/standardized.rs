//! Normalization by numbers that were measured before the training.

use tfp_core::{Context, Error, Result, Tensor};

use super::described::{KerasLayer, numbers};
use super::{Built, Layer, elements, wrong_input};
use crate::nn::policy::as_type;
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

    /// The places of the kept dimensions among those of a batch, in ascending order.
    fn kept(&self, input: &[i64]) -> Result<Vec<usize>> {
        let rank = input.len() as i64 + 1;
        let place = |&axis: &i64| {
            let at = if axis < 0 { axis + rank } else { axis };
            let at = usize::try_from(at).ok()?;
            let size = input.get(at.checked_sub(1)?)?;
            (*size > 0).then_some(at)
        };
        let mut places = Vec::new();
        for axis in &self.axes {
            let Some(at) = place(axis) else {
                let expected = format!("a known dimension {axis}");
                return Err(wrong_input("Normalization", &expected, input));
            };
            places.push(at);
        }
        places.sort_unstable();
        places.dedup();
        Ok(places)
    }
}

/// The shape in which numbers of the dimensions at these places meet an input.
fn meeting(places: &[usize], input: &[i64]) -> Vec<i64> {
    let mut shape = vec![1; input.len() + 1];
    for (at, &size) in input.iter().enumerate() {
        if places.contains(&(at + 1)) {
            shape[at + 1] = size;
        }
    }
    shape
}

/// Brings numbers to a shape in which they meet an input. There are never more than were given.
fn spread(numbers: &[f32], places: &[usize], input: &[i64]) -> Result<Tensor> {
    let last = places.last().map_or(&[][..], std::slice::from_ref);
    let ways = [&[], last, places].map(|places| meeting(places, input));
    let count = numbers.len() as i64;
    let fits = ways.iter().find(|shape| elements(shape) == Some(count));
    match fits {
        Some(shape) => Tensor::from_slice(numbers, shape),
        None => Err(Error::argument(format!(
            "Normalization: {count} means or variances for the kept dimensions {:?}",
            meeting(places, input)
        ))),
    }
}

impl Layer for Normalization {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let measured = |of: fn(&Measured) -> &[f32]| self.measured.as_ref().map(of).map(numbers);
        Ok(KerasLayer::new("Normalization")
            .set("axis", &*self.axes)
            .set("invert", self.invert)
            .set("mean", measured(|measured| &measured.mean))
            .set("variance", measured(|measured| &measured.variance)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let places = self.kept(input)?;
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
                let mean = spread(&measured.mean, &places, input)?;
                Ok((mean, spread(&measured.variance, &places, input)?))
            }
            None => {
                let kept: Vec<i64> = places.iter().map(|&at| input[at - 1]).collect();
                let weights = weights.layer("normalization");
                let mean = weights.state("mean", &kept, Initializer::Zeros)?;
                let variance = weights.state("variance", &kept, Initializer::Ones)?;
                // Keras' files have it.
                weights.state("count", &[], Initializer::Zeros)?;
                Err((mean, variance))
            }
        };
        let shape = meeting(&places, input);
        let dtype = weights.layer_policy().compute();
        Built::new(input.to_vec(), move |pass, x| {
            let cx = pass.context();
            pass.pass_mask(pass.mask());
            let (mean, variance) = match &numbers {
                Ok((mean, variance)) => (cx.constant(mean)?, cx.constant(variance)?),
                Err((mean, variance)) => {
                    let shape = shape.as_slice();
                    let mean = ops::reshape(cx, mean.read(cx)?, shape)?;
                    (mean, ops::reshape(cx, variance.read(cx)?, shape)?)
                }
            };
            let [x, mean, variance] = [x, &mean, &variance].map(|one| as_type(cx, one, dtype));
            let (x, mean, variance) = (x?, mean?, variance?);
            let deviation = ops::maximum(cx, ops::sqrt(cx, variance)?, EPSILON)?;
            match invert {
                true => ops::add_v2(cx, mean, ops::mul(cx, x, deviation)?),
                false => ops::real_div(cx, ops::sub(cx, x, mean)?, deviation),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EagerContext;
    use crate::context::any::Mode;
    use crate::context::value::AnyValue;
    use crate::nn::layer::Pass;

    fn layer(axes: &[i64], mean: &[f32]) -> Normalization {
        Normalization {
            axes: axes.to_vec(),
            measured: Some(Measured {
                mean: mean.to_vec(),
                variance: vec![4.0; mean.len()],
            }),
            invert: false,
        }
    }

    /// Samples of 2 by 3 numbers from 0 on.
    fn computed(axes: &[i64], mean: &[f32]) -> Result<Vec<f32>> {
        let eager = EagerContext::new()?;
        let cx = eager.any();
        let built = layer(axes, mean).build(&Weights::new(&eager, 1), &[2, 3])?;
        let x: Vec<f32> = (0..6).map(|one| one as f32).collect();
        let x = cx.constant(&Tensor::from_vec(x, &[1, 2, 3])?)?;
        let AnyValue::Handle(y) = (built.forward)(&Pass::inference(&cx), &x)? else {
            panic!("a value of an eager context");
        };
        y.to_tensor()?.to_vec()
    }

    #[test]
    fn numbers_are_for_all_or_the_last_or_every_kept_dimension() -> Result<()> {
        assert_eq!(computed(&[], &[1.0])?, [-0.5, 0.0, 0.5, 1.0, 1.5, 2.0]);
        assert_eq!(computed(&[1, 2], &[1.0])?, [-0.5, 0.0, 0.5, 1.0, 1.5, 2.0]);
        let last = [0.0, 1.0, 2.0];
        assert_eq!(computed(&[-1], &last)?, [0.0, 0.0, 0.0, 1.5, 1.5, 1.5]);
        assert_eq!(computed(&[2, 1], &last)?, [0.0, 0.0, 0.0, 1.5, 1.5, 1.5]);
        assert_eq!(computed(&[1], &[0.0, 3.0])?, [0.0, 0.5, 1.0, 0.0, 0.5, 1.0]);
        let every = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(computed(&[1, 2], &every)?, [0.0; 6]);
        Ok(())
    }

    /// The kept dimensions have more elements than memory, or than a number counts.
    #[test]
    fn large_dimensions_take_only_the_numbers_that_were_given() -> Result<()> {
        let weights = Weights::new(&EagerContext::new()?, 1);
        let large = i64::from(i32::MAX);
        for input in [[large, large, 2], [i64::MAX, i64::MAX, 2]] {
            let axes = [1, 2, 3];
            assert!(layer(&axes, &[1.0]).build(&weights, &input).is_ok());
            assert!(layer(&axes, &[1.0, 2.0]).build(&weights, &input).is_ok());
            let error = layer(&axes, &[1.0; 3]).build(&weights, &input);
            assert!(error.is_err_and(|error| error.to_string().contains("3 means")));
        }
        Ok(())
    }
}
