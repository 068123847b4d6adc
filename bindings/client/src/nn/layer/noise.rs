//! Layers that change their input at random while training, or add to the loss.

use tfp_core::{Context, Error, Result, Tensor};

use super::described::{KerasLayer, dims_of, numbers, penalty};
use super::{Built, Layer, Pass, wrong_input};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::formats::json::Json;
use crate::nn::policy::as_type;
use crate::nn::{Regularizer, Weights};
use crate::ops;

/// Philox, as the number that ops take.
const PHILOX: i32 = 1;

/// Uniform numbers from 0 to 1 of a shape.
pub(super) fn uniform(
    pass: &Pass<'_>,
    x: &AnyValue,
    shape: AnyValue,
    seed: u32,
) -> Result<AnyValue> {
    let cx = pass.context();
    let state = ops::stateless_random_get_key_counter(cx, pass.seed(seed)?)?;
    let options = ops::StatelessRandomUniformV2Options {
        dtype: Some(x.dtype()),
    };
    let (key, counter) = (state.key, state.counter);
    ops::stateless_random_uniform_v2(cx, shape, key, counter, PHILOX, options)
}

/// Normal numbers of a value's shape.
pub(super) fn normal(pass: &Pass<'_>, x: &AnyValue, seed: u32) -> Result<AnyValue> {
    let cx = pass.context();
    let state = ops::stateless_random_get_key_counter(cx, pass.seed(seed)?)?;
    let options = ops::StatelessRandomNormalV2Options {
        dtype: Some(x.dtype()),
    };
    let (key, counter) = (state.key, state.counter);
    ops::stateless_random_normal_v2(cx, shape_of(cx, x)?, key, counter, PHILOX, options)
}

/// Numbers of a gamma distribution with a scale of one, of a shape: `concentration` has it, float32.
pub(super) fn gamma(
    pass: &Pass<'_>,
    shape: &AnyValue,
    concentration: &AnyValue,
    seed: u32,
) -> Result<AnyValue> {
    let cx = pass.context();
    let state = ops::stateless_random_get_key_counter(cx, pass.seed(seed)?)?;
    let (key, counter) = (state.key, state.counter);
    let found = ops::stateless_random_gamma_v3(cx, shape, key, counter, PHILOX, concentration)?;
    // What float32 does not hold is its smallest number, as in Keras.
    ops::maximum(cx, found, f32::MIN_POSITIVE)
}

pub(super) fn shape_of(cx: &AnyContext, x: &AnyValue) -> Result<AnyValue> {
    ops::shape(cx, x, ops::ShapeOptions::default())
}

/// Refuses a share that is not from 0 up to below 1.
fn check_rate(layer: &str, rate: f32) -> Result<()> {
    if (0.0..1.0).contains(&rate) {
        return Ok(());
    }
    Err(Error::argument(format!(
        "{layer}: the rate is {rate}, expected 0 or more and below 1"
    )))
}

/// Drops whole channels while training, of (.., channels).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpatialDropout {
    /// The share, from 0 up to below 1.
    pub rate: f32,
}

impl Layer for SpatialDropout {
    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        let class = format!("SpatialDropout{}D", dims_of(inputs));
        Ok(KerasLayer::new(class).set("rate", self.rate))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let rate = self.rate;
        check_rate("SpatialDropout", rate)?;
        let rank = input.len();
        if rank < 2 {
            return Err(wrong_input(
                "SpatialDropout",
                "steps or more, and channels",
                input,
            ));
        }
        let seed = weights.next_seed();
        Built::new(input.to_vec(), move |pass, x| {
            pass.pass_mask(pass.mask());
            if !pass.is_training() || rate == 0.0 {
                return Ok(x.clone());
            }
            // One draw per sample and channel.
            let mut sizes = vec![Some(1); rank + 1];
            (sizes[0], sizes[rank]) = (None, None);
            dropped(pass, x, rate, &sizes, seed)
        })
    }
}

/// Drops elements while training that have draws in common. With a draw for each sample, (None, 1, 1, ..),
/// it drops the part of a network beside a shortcut (Huang et al., arXiv:1603.09382).
#[derive(Clone, Debug, PartialEq)]
pub struct SharedDropout {
    /// The share, from 0 up to below 1.
    pub rate: f32,
    /// How many draws there are along each dimension, the batch first: 1 for a draw that all elements
    /// share, none for as many as elements.
    pub draws: Vec<Option<i32>>,
}

impl Layer for SharedDropout {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let one = |draws: &Option<i32>| draws.map_or(Json::Null, |count| i64::from(count).into());
        let shape = self.draws.iter().map(one).collect();
        Ok(KerasLayer::new("Dropout")
            .set("rate", self.rate)
            .set("noise_shape", Json::List(shape)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Self { rate, draws } = self.clone();
        check_rate("SharedDropout", rate)?;
        let sizes = input.iter().zip(draws.iter().skip(1));
        let fits = |(&size, &draws): (&i64, &Option<i32>)| match draws {
            None | Some(1) => true,
            Some(draws) => size < 0 || size == i64::from(draws),
        };
        if draws.len() != input.len() + 1 || !sizes.clone().all(fits) {
            let expected = format!("samples that the draws {draws:?} fit");
            return Err(wrong_input("SharedDropout", &expected, input));
        }
        let seed = weights.next_seed();
        Built::new(input.to_vec(), move |pass, x| {
            pass.pass_mask(pass.mask());
            if !pass.is_training() || rate == 0.0 {
                return Ok(x.clone());
            }
            dropped(pass, x, rate, &draws, seed)
        })
    }
}

/// Drops elements by draws along each dimension, as for [`SharedDropout::draws`], and scales the others.
fn dropped(
    pass: &Pass<'_>,
    x: &AnyValue,
    rate: f32,
    draws: &[Option<i32>],
    seed: u32,
) -> Result<AnyValue> {
    let cx = pass.context();
    let open: Vec<i32> = draws.iter().map(|one| i32::from(one.is_none())).collect();
    let fixed: Vec<i32> = draws.iter().map(|one| one.unwrap_or(0)).collect();
    let shape = ops::mul(cx, shape_of(cx, x)?, open.as_slice())?;
    let shape = ops::add_v2(cx, shape, fixed.as_slice())?;
    let kept = ops::greater_equal(cx, uniform(pass, x, shape, seed)?, rate)?;
    let scaled = ops::mul(cx, x, 1.0 / (1.0 - rate))?;
    ops::select_v2(cx, kept, scaled, ops::zeros_like(cx, x)?)
}

/// Adds normal numbers while training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaussianNoise {
    /// Their standard deviation, zero or more.
    pub deviation: f32,
}

impl Layer for GaussianNoise {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("GaussianNoise").set("stddev", self.deviation))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let deviation = self.deviation;
        if !(0.0..=f32::MAX).contains(&deviation) {
            return Err(Error::argument(format!(
                "GaussianNoise: the deviation is {deviation}, expected 0 or more"
            )));
        }
        let seed = weights.next_seed();
        Built::new(input.to_vec(), move |pass, x| {
            pass.pass_mask(pass.mask());
            if !pass.is_training() || deviation == 0.0 {
                return Ok(x.clone());
            }
            let cx = pass.context();
            ops::add_v2(cx, x, ops::mul(cx, normal(pass, x, seed)?, deviation)?)
        })
    }
}

/// Multiplies by normal numbers around one while training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaussianDropout {
    /// As for [`Dropout`](super::Dropout), which has the same mean and deviation.
    pub rate: f32,
}

impl Layer for GaussianDropout {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("GaussianDropout").set("rate", self.rate))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let rate = self.rate;
        check_rate("GaussianDropout", rate)?;
        let seed = weights.next_seed();
        Built::new(input.to_vec(), move |pass, x| {
            pass.pass_mask(pass.mask());
            if !pass.is_training() || rate == 0.0 {
                return Ok(x.clone());
            }
            let cx = pass.context();
            let deviation = (rate / (1.0 - rate)).sqrt();
            let factor = ops::mul(cx, normal(pass, x, seed)?, deviation)?;
            ops::mul(cx, x, ops::add_v2(cx, factor, 1.0)?)
        })
    }
}

/// Dropout that keeps mean and variance of self-normalizing networks (Klambauer et al.,
/// arXiv:1706.02515).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AlphaDropout {
    /// The share, from 0 up to below 1.
    pub rate: f32,
}

impl Layer for AlphaDropout {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("AlphaDropout").set("rate", self.rate))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        // Of the self-normalizing exponential unit: what it tends to, with the sign changed.
        const LIMIT: f32 = 1.050_701 * 1.673_263_2;
        let rate = self.rate;
        check_rate("AlphaDropout", rate)?;
        let seed = weights.next_seed();
        let a = ((1.0 - rate) * (1.0 + rate * LIMIT * LIMIT)).powf(-0.5);
        let b = a * LIMIT * rate;
        Built::new(input.to_vec(), move |pass, x| {
            pass.pass_mask(pass.mask());
            if !pass.is_training() || rate == 0.0 {
                return Ok(x.clone());
            }
            let cx = pass.context();
            let draw = uniform(pass, x, shape_of(cx, x)?, seed)?;
            let kept = ops::greater_equal(cx, draw, rate)?;
            let dropped = ops::mul(cx, ops::ones_like(cx, x)?, -LIMIT)?;
            let y = ops::select_v2(cx, kept, x, dropped)?;
            ops::add_v2(cx, ops::mul(cx, y, a)?, b)
        })
    }
}

/// Its layer, whose output adds a penalty per sample to the loss.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivityPenalty<L> {
    /// The layer; [`Identity`](super::Identity) to penalize the input.
    pub layer: L,
    /// The penalty of the output.
    pub regularizer: Regularizer,
}

impl<L: Layer> Layer for ActivityPenalty<L> {
    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        let layer = self.layer.keras(inputs)?;
        let Regularizer { l1, l2 } = self.regularizer;
        if layer.class == "Identity" {
            return Ok(KerasLayer::new("ActivityRegularization")
                .set("l1", l1)
                .set("l2", l2));
        }
        Ok(layer.set("activity_regularizer", penalty(self.regularizer)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Built { forward, output } = self.layer.build(weights, input)?;
        let regularizer = self.regularizer;
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let y = forward(pass, x)?;
            let penalty = regularizer.penalty(cx, &y)?;
            let samples = ops::slice(cx, shape_of(cx, &y)?, [0], [1])?;
            let samples = ops::cast(cx, samples, y.dtype(), ops::CastOptions::default())?;
            let samples = ops::reshape(cx, samples, [0_i32; 0])?;
            pass.add_loss(ops::div_no_nan(cx, penalty, samples)?);
            Ok(y)
        })
    }

    fn kind(&self) -> String {
        self.layer.kind()
    }

    fn casts(&self) -> bool {
        self.layer.casts()
    }
}

/// Steps that are the same number everywhere are masked, and zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Masking {
    /// The number.
    pub value: f32,
}

impl Layer for Masking {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("Masking").set("mask_value", self.value))
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        let value = self.value;
        if input.is_empty() {
            return Err(wrong_input("Masking", "steps and features", input));
        }
        Built::new(input.to_vec(), move |pass, x| {
            let cx = pass.context();
            let other = ops::not_equal(cx, x, value, ops::NotEqualOptions::default())?;
            let options = ops::AnyOptions {
                keep_dims: Some(true),
            };
            let kept = ops::any(cx, other, -1, options)?;
            let options = ops::SqueezeOptions {
                squeeze_dims: Some(&[-1]),
            };
            pass.pass_mask(Some(ops::squeeze(cx, &kept, options)?));
            ops::select_v2(cx, kept, x, ops::zeros_like(cx, x)?)
        })
    }
}

/// `x * scale + offset`, the numbers of which are given per channel or for all.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    /// What each element is multiplied by.
    pub scale: Vec<f32>,
    /// What is added then.
    pub offset: Vec<f32>,
}

impl Layer for Scaling {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("Rescaling")
            .set("scale", numbers(&self.scale))
            .set("offset", numbers(&self.offset)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let channels = input.last().copied().unwrap_or(1);
        let fits = |numbers: &[f32]| numbers.len() == 1 || numbers.len() as i64 == channels;
        if !fits(&self.scale) || !fits(&self.offset) {
            return Err(Error::argument(format!(
                "Scaling: {} factors and {} offsets for {channels} channels",
                self.scale.len(),
                self.offset.len()
            )));
        }
        let Self { scale, offset } = self.clone();
        let dtype = weights.layer_policy().compute();
        Built::new(input.to_vec(), move |pass, x| {
            let cx = pass.context();
            pass.pass_mask(pass.mask());
            let [scale, offset] = [&scale, &offset].map(|numbers| {
                let numbers = Tensor::from_slice(numbers, &[numbers.len() as i64])?;
                as_type(cx, &cx.constant(&numbers)?, dtype)
            });
            let x = ops::mul(cx, as_type(cx, x, dtype)?, scale?)?;
            ops::add_v2(cx, x, offset?)
        })
    }
}
