//! Several random changes of images.

use tfp_core::{Context, DataType, Error, Result, Tensor};

use super::mix::beta;
use super::range::{VALUES, check_valued, valued};
use super::{
    AutoContrast, Equalization, RandomBrightness, RandomColorDegeneration, RandomContrast,
    RandomPosterization, RandomRotation, RandomSharpness, RandomShear, RandomTranslation,
    Solarization, augment, between, cast, clip, interpolation_name,
};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::control_flow::{Branch, case};
use crate::nn::layer::described::KerasLayer;
use crate::nn::layer::noise::gamma;
use crate::nn::layer::{Built, Interpolation, Layer, Pass};
use crate::nn::{Policy, Weights};
use crate::ops;

/// How many changes there are at most.
const MOST: i64 = 1 << 8;

/// No change draws as often.
const DRAWS: u32 = 1 << 6;

/// How strong changes are, and of what images.
#[derive(Clone, Copy)]
struct Strength {
    factor: (f32, f32),
    values: (f32, f32),
    interpolation: Interpolation,
}

impl Strength {
    /// The layers that one is chosen of; those that keep colors alone, or all.
    fn layers(self, is_all: bool) -> Vec<Box<dyn Layer>> {
        let Self {
            factor,
            values,
            interpolation,
        } = self;
        let bits = (8.0 * factor.1) as u8;
        let mut layers: Vec<Box<dyn Layer>> = vec![
            Box::new(RandomShear {
                x: factor,
                y: factor,
                interpolation,
                ..RandomShear::new(0.0, 0.0)
            }),
            Box::new(RandomTranslation {
                height: factor,
                width: factor,
                interpolation,
                ..RandomTranslation::new(0.0, 0.0)
            }),
            Box::new(RandomRotation {
                factor,
                interpolation,
                ..RandomRotation::new(0.0)
            }),
            Box::new(RandomPosterization {
                bits: (1, bits.max(1)),
                values,
            }),
            Box::new(Solarization {
                addition: factor,
                threshold: factor,
                values,
            }),
            Box::new(AutoContrast { values }),
            Box::new(Equalization {
                values,
                ..Equalization::default()
            }),
        ];
        if is_all {
            layers.push(Box::new(RandomBrightness { factor, values }));
            layers.push(Box::new(RandomColorDegeneration { factor, values }));
            layers.push(Box::new(RandomContrast { factor, values }));
            layers.push(Box::new(RandomSharpness { factor, values }));
        }
        layers
    }

    fn check(self, layer: &str) -> Result<()> {
        check_valued(layer, self.factor, self.values)?;
        if self.factor.0 < 0.0 || self.factor.1 > 1.0 {
            return Err(Error::argument(format!(
                "{layer}: the factor from {} to {}, expected 0 to 1",
                self.factor.0, self.factor.1
            )));
        }
        Ok(())
    }
}

/// Builds layers for float32 images of a shape.
fn built(layers: &[Box<dyn Layer>], weights: &Weights, input: &[i64]) -> Result<Vec<Built>> {
    let weights = &weights.clone().policy(Policy::Float32);
    layers
        .iter()
        .map(|layer| layer.build(weights, input))
        .collect()
}

/// The shape of a number for all of a batch.
fn scalar(cx: &AnyContext) -> Result<AnyValue> {
    cx.constant(&Tensor::zeros(DataType::INT32, &[0])?)
}

/// What one of some layers makes of a batch, whichever is drawn; none of them as well, if it may stay.
fn one_of(
    pass: &Pass<'_>,
    x: &AnyValue,
    seed: u32,
    layers: &[Built],
    may_stay: bool,
) -> Result<AnyValue> {
    let cx = pass.context();
    let count = layers.len() + usize::from(may_stay);
    let draw = between(pass, x, scalar(cx)?, seed, (0.0, count as f32))?;
    let index = cast(cx, &ops::floor(cx, draw)?, DataType::INT32)?;
    // Whether all layers are computed or one, the draws have the same numbers.
    let first = pass.next_draw();
    let mut branches: Vec<Branch<'_>> = Vec::with_capacity(count);
    for layer in layers {
        branches.push(Box::new(move |cx| {
            pass.draw_from(first);
            pass.within(cx, |pass| Ok(vec![(layer.forward)(pass, x)?]))
        }));
    }
    if may_stay {
        branches.push(Box::new(move |cx| Ok(vec![ops::identity(cx, x)?])));
    }
    let found = case(cx, &index, branches)?.into_iter().next();
    pass.draw_from(first + DRAWS);
    found.ok_or_else(|| Error::argument("a change has a result"))
}

/// Makes some of eleven changes, one after the other, while training: those of the batch are drawn
/// (Cubuk et al., arXiv:1909.13719).
///
/// They are [`RandomShear`], [`RandomTranslation`], [`RandomRotation`], [`RandomPosterization`],
/// [`Solarization`], [`AutoContrast`], [`Equalization`], [`RandomBrightness`],
/// [`RandomColorDegeneration`], [`RandomContrast`] and [`RandomSharpness`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandAugment {
    /// How many changes there are.
    pub count: i64,
    /// The factor of each, from 0 to 1.
    pub factor: (f32, f32),
    /// The smallest and the largest value.
    pub values: (f32, f32),
    /// How pixels are made.
    pub interpolation: Interpolation,
}

/// Two changes with factors up to 0.5. Values are from 0 to 255.
impl Default for RandAugment {
    fn default() -> Self {
        Self {
            count: 2,
            factor: (0.0, 0.5),
            values: VALUES,
            interpolation: Interpolation::Bilinear,
        }
    }
}

impl Layer for RandAugment {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(valued("RandAugment", self.factor, self.values)
            .set("num_ops", self.count)
            .set("interpolation", interpolation_name(self.interpolation)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Self {
            count,
            factor,
            values,
            interpolation,
        } = *self;
        let strength = Strength {
            factor,
            values,
            interpolation,
        };
        strength.check("RandAugment")?;
        if !(0..=MOST).contains(&count) {
            return Err(Error::argument(format!(
                "RandAugment: {count} changes, expected at most {MOST}"
            )));
        }
        let layers = built(&strength.layers(true), weights, input)?;
        let seeds: Vec<u32> = (0..count).map(|_| weights.next_seed()).collect();
        augment("RandAugment", weights, input, move |pass, x| {
            seeds
                .iter()
                .try_fold(x.clone(), |x, &seed| one_of(pass, &x, seed, &layers, false))
        })
    }
}

/// Means of images and of chains of changes, while training (Hendrycks et al., arXiv:1912.02781).
///
/// The changes are those of [`RandAugment`], or none. Those of the batch are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AugMix {
    /// How many chains there are.
    pub chains: i64,
    /// How many changes a chain has.
    pub depth: i64,
    /// The factor of each, from 0 to 1.
    pub factor: (f32, f32),
    /// The parameters of the distributions that weights are of.
    pub alpha: f32,
    /// Whether brightness, contrast, sharpness and the strength of colors change, too.
    pub all: bool,
    /// The smallest and the largest value.
    pub values: (f32, f32),
    /// How pixels are made.
    pub interpolation: Interpolation,
}

/// Three chains of three changes with factors up to 0.3. Values are from 0 to 255.
impl Default for AugMix {
    fn default() -> Self {
        Self {
            chains: 3,
            depth: 3,
            factor: (0.0, 0.3),
            alpha: 1.0,
            all: true,
            values: VALUES,
            interpolation: Interpolation::Bilinear,
        }
    }
}

impl Layer for AugMix {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(valued("AugMix", self.factor, self.values)
            .set("num_chains", self.chains)
            .set("chain_depth", self.depth)
            .set("alpha", self.alpha)
            .set("all_ops", self.all)
            .set("interpolation", interpolation_name(self.interpolation)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let layer = *self;
        let strength = Strength {
            factor: layer.factor,
            values: layer.values,
            interpolation: layer.interpolation,
        };
        strength.check("AugMix")?;
        let fits = layer.chains >= 1 && layer.depth >= 0;
        let count = layer.chains.checked_mul(layer.depth.max(1));
        if !fits || count.is_none_or(|count| count > MOST) {
            return Err(Error::argument(format!(
                "AugMix: {} chains of {} changes, expected one chain or more, and at most {MOST} changes",
                layer.chains, layer.depth
            )));
        }
        if !(layer.alpha > 0.0 && layer.alpha.is_finite()) {
            return Err(Error::argument(format!(
                "AugMix: alpha is {}, expected a positive number",
                layer.alpha
            )));
        }
        let layers = built(&strength.layers(layer.all), weights, input)?;
        let seed = weights.next_seed();
        let seeds = [weights.next_seed(), weights.next_seed()];
        let chains: Vec<Vec<u32>> = (0..layer.chains)
            .map(|_| (0..layer.depth).map(|_| weights.next_seed()).collect())
            .collect();
        augment("AugMix", weights, input, move |pass, x| {
            let cx = pass.context();
            let shares = shares(pass, chains.len(), layer.alpha, seed)?;
            let mut sum = ops::zeros_like(cx, x)?;
            for (chain, share) in chains.iter().zip(shares) {
                let y = chain
                    .iter()
                    .try_fold(x.clone(), |x, &seed| one_of(pass, &x, seed, &layers, true))?;
                sum = ops::add_v2(cx, sum, ops::mul(cx, y, share)?)?;
            }
            let alpha = cx.constant(&Tensor::scalar(layer.alpha)?)?;
            let stays = beta(pass, &scalar(cx)?, seeds, alpha)?;
            let rest = ops::mul(cx, ops::sub(cx, 1.0, &stays)?, sum)?;
            let y = ops::add_v2(cx, ops::mul(cx, stays, x)?, rest)?;
            clip(cx, y, layer.values)
        })
    }
}

/// Shares of a Dirichlet distribution, scalars whose sum is one.
fn shares(pass: &Pass<'_>, count: usize, alpha: f32, seed: u32) -> Result<Vec<AnyValue>> {
    let cx = pass.context();
    let shape = cx.constant(&Tensor::from_slice(&[count as i32], &[1])?)?;
    let alpha = cx.constant(&Tensor::from_vec(vec![alpha; count], &[count as i64])?)?;
    let numbers = gamma(pass, &shape, &alpha, seed)?;
    let sum = ops::sum(cx, &numbers, [0], ops::SumOptions::default())?;
    ops::unpack(
        cx,
        ops::div(cx, numbers, sum)?,
        count as i64,
        Default::default(),
    )
}
