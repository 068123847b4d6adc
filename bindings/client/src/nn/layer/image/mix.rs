//! Images that are mixed with others of their batch, and what they show.

use tfp_core::{Context, DataType, Error, Result, Tensor};

use super::range::rectangle;
use super::transform::Sizes;
use super::{between, cast, check_bounds, check_image, floats, pair, per_sample, shape_of};
use crate::context::value::AnyValue;
use crate::nn::Weights;
use crate::nn::layer::described::KerasLayer;
use crate::nn::layer::noise::gamma;
use crate::nn::layer::{Built, BuiltMany, Layer, Pass, wrong_input};
use crate::ops;

/// The batch in another order: the places that its samples come from, int32 (batch).
fn permutation(pass: &Pass<'_>, x: &AnyValue, seed: u32) -> Result<AnyValue> {
    let cx = pass.context();
    let draws = per_sample(pass, x, &[], seed, (0.0, 1.0))?;
    let count = ops::size(cx, &draws, ops::SizeOptions::default())?;
    Ok(ops::top_kv2(cx, draws, count, ops::TopKV2Options::default())?.indices)
}

/// The shape of a number for each sample.
fn batch_of(pass: &Pass<'_>, x: &AnyValue) -> Result<AnyValue> {
    let cx = pass.context();
    ops::slice(cx, shape_of(cx, x)?, [0], [1])
}

/// Numbers of a beta distribution whose parameters are both `alpha`, a scalar, of a shape.
pub(super) fn beta(
    pass: &Pass<'_>,
    shape: &AnyValue,
    seeds: [u32; 2],
    alpha: AnyValue,
) -> Result<AnyValue> {
    let cx = pass.context();
    let alpha = ops::fill(cx, shape, alpha)?;
    let first = gamma(pass, shape, &alpha, seeds[0])?;
    let sum = ops::add_v2(cx, &first, gamma(pass, shape, &alpha, seeds[1])?)?;
    ops::div(cx, first, sum)
}

/// Where the samples of a batch are mixed from, and how much of each stays, (batch).
struct Mix {
    from: AnyValue,
    stays: AnyValue,
}

impl Mix {
    /// Means of each sample and another one, whose first is weighted: of (batch, ..).
    fn of(&self, pass: &Pass<'_>, x: &AnyValue, weights: &[i64]) -> Result<AnyValue> {
        let cx = pass.context();
        let stays = ops::reshape(cx, &self.stays, weights)?;
        let other = self.other(pass, x)?;
        let rest = ops::mul(cx, ops::sub(cx, 1.0, &stays)?, other)?;
        ops::add_v2(cx, ops::mul(cx, stays, x)?, rest)
    }

    fn other(&self, pass: &Pass<'_>, x: &AnyValue) -> Result<AnyValue> {
        ops::gather_v2(
            pass.context(),
            x,
            &self.from,
            0,
            ops::GatherV2Options::default(),
        )
    }
}

/// A layer that mixes float32 images while training, and labels (batch, classes) with them. The results
/// have the type in which layers of these weights compute.
fn mixing(
    layer: &'static str,
    weights: &Weights,
    inputs: &[&[i64]],
    mix: impl Fn(&Pass<'_>, &AnyValue) -> Result<(AnyValue, Mix)> + Send + Sync + 'static,
) -> Result<BuiltMany> {
    match inputs {
        [images] => check_image(layer, images)?,
        [images, labels] => {
            check_image(layer, images)?;
            if labels.len() != 1 {
                return Err(wrong_input(layer, "labels as a vector", labels));
            }
        }
        _ => {
            return Err(Error::argument(format!(
                "{layer} takes images, and maybe labels, found {} inputs",
                inputs.len()
            )));
        }
    }
    let outputs = inputs.iter().map(|input| input.to_vec()).collect();
    let to = weights.layer_policy().compute();
    BuiltMany::new(outputs, move |pass, inputs| {
        let cx = pass.context();
        let inputs: Vec<AnyValue> = inputs
            .iter()
            .map(|x| floats(cx, x))
            .collect::<Result<_>>()?;
        let Some((images, labels)) = inputs.split_first().filter(|_| pass.is_training()) else {
            return inputs.iter().map(|x| cast(cx, x, to)).collect();
        };
        let (images, mixed) = mix(pass, images)?;
        let labels = labels.iter().map(|labels| mixed.of(pass, labels, &[-1, 1]));
        let all = std::iter::once(Ok(images)).chain(labels);
        all.map(|one| cast(cx, &one?, to)).collect()
    })
}

/// The layer of one input.
fn alone(built: BuiltMany) -> Result<Built> {
    let BuiltMany { forward, outputs } = built;
    let output = outputs.into_iter().next().unwrap_or_default();
    Built::new(output, move |pass, x| {
        let found = forward(pass, std::slice::from_ref(x))?;
        let first = found.into_iter().next();
        first.ok_or_else(|| Error::argument("a layer of one output"))
    })
}

/// Refuses to describe a layer that is called with labels.
fn check_alone(layer: &str, inputs: &[&[i64]]) -> Result<()> {
    match inputs.len() {
        0 | 1 => Ok(()),
        _ => Err(Error::argument(format!(
            "Keras calls {layer} with labels in a dictionary, which no model has"
        ))),
    }
}

/// Weighted means of each sample and another one of the batch, while training (Zhang et al.,
/// arXiv:1710.09412).
///
/// The layer takes images, or images and labels (batch, classes), which are mixed alike. Both become
/// float32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MixUp {
    /// Both parameters of the beta distribution that weights are of: small ones mix less.
    pub alpha: f32,
}

impl Default for MixUp {
    fn default() -> Self {
        Self { alpha: 0.2 }
    }
}

impl Layer for MixUp {
    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        check_alone("MixUp", inputs)?;
        Ok(KerasLayer::new("MixUp").set("alpha", self.alpha))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        alone(self.build_many(weights, &[input])?)
    }

    fn build_many(&self, weights: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        let alpha = self.alpha;
        if !(alpha > 0.0 && alpha.is_finite()) {
            return Err(Error::argument(format!(
                "MixUp: alpha is {alpha}, expected a positive number"
            )));
        }
        let order = weights.next_seed();
        let seeds = [weights.next_seed(), weights.next_seed()];
        mixing("MixUp", weights, inputs, move |pass, x| {
            let alpha = pass.context().constant(&Tensor::scalar(alpha)?)?;
            let mix = Mix {
                from: permutation(pass, x, order)?,
                stays: beta(pass, &batch_of(pass, x)?, seeds, alpha)?,
            };
            Ok((mix.of(pass, x, &[-1, 1, 1, 1])?, mix))
        })
    }
}

/// Puts a rectangle of another sample of the batch into each one, while training (Yun et al.,
/// arXiv:1905.04899).
///
/// The layer takes images, or images and labels (batch, classes). Labels are weighted means by area.
/// Both are computed in float32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CutMix {
    /// From which to which number, 0 to 1, a batch draws the parameters of the beta distribution that
    /// areas are of.
    pub factor: (f32, f32),
}

impl CutMix {
    /// From 0 to this factor.
    #[must_use]
    pub fn new(factor: f32) -> Self {
        Self {
            factor: (0.0, factor),
        }
    }
}

impl Layer for CutMix {
    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        check_alone("CutMix", inputs)?;
        Ok(KerasLayer::new("CutMix").set("factor", pair(self.factor)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        alone(self.build_many(weights, &[input])?)
    }

    fn build_many(&self, weights: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        let factor = self.factor;
        check_bounds("CutMix", "the factor", factor)?;
        if factor.0 < 0.0 || factor.1 > 1.0 {
            return Err(Error::argument(format!(
                "CutMix: the factor from {} to {}, expected 0 to 1",
                factor.0, factor.1
            )));
        }
        let seeds = [0; 3].map(|_| weights.next_seed());
        let (places, order) = ([0; 2].map(|_| weights.next_seed()), weights.next_seed());
        let shape = inputs.first().map(|input| input.to_vec());
        let shape = shape.unwrap_or_default();
        mixing("CutMix", weights, inputs, move |pass, x| {
            let cx = pass.context();
            let scalar = cx.constant(&Tensor::zeros(DataType::INT32, &[0])?)?;
            let alpha = between(pass, x, scalar, seeds[0], factor)?;
            // As in Keras, a factor of zero is almost zero.
            let alpha = ops::add_v2(cx, alpha, 1e-6)?;
            let stays = beta(pass, &batch_of(pass, x)?, [seeds[1], seeds[2]], alpha)?;
            let part = ops::sqrt(cx, ops::sub(cx, 1.0, &stays)?)?;
            let part = ops::expand_dims(cx, part, 1)?;
            let sizes = Sizes::of(cx, x, &shape)?;
            let is_other = rectangle(pass, x, &sizes, [part.clone(), part], places)?;
            let mix = Mix {
                from: permutation(pass, x, order)?,
                stays,
            };
            Ok((ops::select_v2(cx, is_other, mix.other(pass, x)?, x)?, mix))
        })
    }
}
