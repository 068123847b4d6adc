//! Normalizations.

use tfp_core::{DataType, Error, Result};

use super::affine::{Affine, widened};
use super::described::KerasLayer;
use super::moments::{image_norm, is_image, masked_moments};
use super::{Built, Layer, channels, wrong_input};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::functional::{self as f, Moments};
use crate::nn::policy::as_type;
use crate::nn::{Initializer, Weights};
use crate::ops;

/// Brings a dimension to the end and back: what normalizes the last one then normalizes it.
#[derive(Clone, Copy)]
struct Last {
    axis: usize,
    rank: usize,
}

impl Last {
    /// An axis, where 0 is the batch and negative ones count from the last, of samples of a shape.
    fn new(layer: &str, axis: i64, input: &[i64]) -> Result<Self> {
        let rank = input.len() as i64 + 1;
        let axis = if axis < 0 { axis + rank } else { axis };
        if !(1..rank).contains(&axis) {
            return Err(wrong_input(layer, &format!("a dimension {axis}"), input));
        }
        let last = Self {
            axis: axis as usize,
            rank: rank as usize,
        };
        match last.size(input) {
            1.. => Ok(last),
            _ => Err(wrong_input(
                layer,
                &format!("a known dimension {axis}"),
                input,
            )),
        }
    }

    fn size(self, input: &[i64]) -> i64 {
        input.get(self.axis - 1).copied().unwrap_or(-1)
    }

    fn is_last(self) -> bool {
        self.axis + 1 == self.rank
    }

    fn with(
        self,
        cx: &AnyContext,
        x: &AnyValue,
        function: impl FnOnce(&AnyValue) -> Result<AnyValue>,
    ) -> Result<AnyValue> {
        if self.is_last() {
            return function(x);
        }
        let (axis, rank) = (self.axis as i32, self.rank as i32);
        let there: Vec<i32> = (0..rank).filter(|&one| one != axis).chain([axis]).collect();
        let back: Vec<i32> = (0..axis).chain([rank - 1]).chain(axis..rank - 1).collect();
        let y = function(&ops::transpose(cx, x, there.as_slice())?)?;
        ops::transpose(cx, y, back.as_slice())
    }
}

/// Batch normalization (Ioffe and Szegedy, arXiv:1502.03167) of one dimension: by the batch's mean and
/// variance while training, by their running means otherwise. Masked steps don't count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchNorm {
    /// The dimension, where 0 is the batch; negative ones count from the last.
    pub axis: i64,
    /// How much of the running means is kept in a step.
    pub momentum: f32,
    /// Added to the variance.
    pub epsilon: f32,
    /// Whether something is added at the end.
    pub center: bool,
    /// Whether something is multiplied by at the end.
    pub scale: bool,
}

impl Default for BatchNorm {
    fn default() -> Self {
        Self {
            axis: -1,
            momentum: 0.99,
            epsilon: 1e-3,
            center: true,
            scale: true,
        }
    }
}

impl Layer for BatchNorm {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("BatchNormalization")
            .set("axis", self.axis)
            .set("momentum", self.momentum)
            .set("epsilon", self.epsilon)
            .set("center", self.center)
            .set("scale", self.scale))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let last = Last::new("BatchNorm", self.axis, input)?;
        let shape = [last.size(input)];
        let weights = weights.layer("batch_normalization");
        let affine = Affine::new(&weights, &shape, self.scale, self.center)?;
        let mean = weights.state("moving_mean", &shape, Initializer::Zeros)?;
        let variance = weights.state("moving_variance", &shape, Initializer::Ones)?;
        let Self {
            momentum, epsilon, ..
        } = *self;
        let policy = weights.layer_policy();
        Built::new(input.to_vec(), move |pass, x| {
            let cx = pass.context();
            let mask = pass.mask();
            pass.pass_mask(mask.clone());
            let normalized = |x: &AnyValue, dtype: DataType| {
                let (scale, offset) = affine.read(cx, dtype)?;
                let (scale, offset) = (scale.as_ref(), offset.as_ref());
                if !pass.is_training() || weights.is_frozen() {
                    let moments = Moments {
                        mean: as_type(cx, &mean.read(cx)?, dtype)?,
                        variance: as_type(cx, &variance.read(cx)?, dtype)?,
                    };
                    return f::normalize(cx, x, &moments, scale, offset, epsilon);
                }
                let (y, moments) = match &mask {
                    None if is_image(x)? => image_norm(cx, x, scale, offset, epsilon)?,
                    None => f::batch_norm(cx, x, scale, offset, epsilon)?,
                    Some(_) if !last.is_last() => {
                        return Err(Error::argument(
                            "BatchNorm: masked steps of another dimension than the last",
                        ));
                    }
                    Some(mask) => {
                        let moments = masked_moments(cx, x, mask)?;
                        let y = f::normalize(cx, x, &moments, scale, offset, epsilon)?;
                        (y, moments)
                    }
                };
                for (kept, new) in [(&mean, moments.mean), (&variance, moments.variance)] {
                    pass.change(kept, |cx| {
                        let old = as_type(cx, &kept.read(cx)?, dtype)?;
                        let distance = ops::sub(cx, old, new)?;
                        let part = ops::mul(cx, distance, 1.0 - momentum)?;
                        kept.assign_sub(cx, as_type(cx, &part, kept.dtype())?)
                    })?;
                }
                Ok(y)
            };
            widened(cx, policy, x, |x, dtype| {
                last.with(cx, x, |x| normalized(x, dtype))
            })
        })
    }
}

/// Layer normalization (Ba et al., arXiv:1607.06450) of some dimensions, which are the last one at
/// first.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerNorm {
    /// The dimensions, where 0 is the batch; negative ones count from the last.
    pub axes: Vec<i64>,
    /// Added to the variance.
    pub epsilon: f32,
    /// Whether something is added at the end.
    pub center: bool,
    /// Whether something is multiplied by at the end.
    pub scale: bool,
}

impl Default for LayerNorm {
    fn default() -> Self {
        Self {
            axes: vec![-1],
            epsilon: 1e-3,
            center: true,
            scale: true,
        }
    }
}

impl Layer for LayerNorm {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("LayerNormalization")
            .set("axis", &*self.axes)
            .set("epsilon", self.epsilon)
            .set("center", self.center)
            .set("scale", self.scale))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let axes = axes("LayerNorm", &self.axes, input)?;
        // Keras orders axes as they are given, negative ones first, and reshapes the weights.
        let mut given = self.axes.clone();
        given.sort_unstable();
        given.dedup();
        let place = |axis: i64| match axis {
            0.. => axis as usize,
            _ => (axis + input.len() as i64 + 1) as usize,
        };
        let mut sizes: Vec<i64> = given.iter().map(|&axis| input[place(axis) - 1]).collect();
        if given.len() != axes.len() {
            // The same axis from both ends.
            sizes = axes.iter().map(|&axis| input[axis - 1]).collect();
        }
        if sizes.iter().any(|&size| size < 1) {
            return Err(wrong_input("LayerNorm", "known sizes", input));
        }
        let mut spread = vec![1; input.len() + 1];
        for &axis in &axes {
            spread[axis] = input[axis - 1];
        }
        let weights = weights.layer("layer_normalization");
        let affine = Affine::new(&weights, &sizes, self.scale, self.center)?;
        let epsilon = self.epsilon;
        let is_last = axes == [input.len()];
        let axes: Vec<i32> = axes.iter().map(|&axis| axis as i32).collect();
        let policy = weights.layer_policy();
        Built::new(input.to_vec(), move |pass, x| {
            let cx = pass.context();
            pass.pass_mask(pass.mask());
            widened(cx, policy, x, |x, dtype| {
                let (mut scale, mut offset) = affine.read(cx, dtype)?;
                if !is_last {
                    for one in [&mut scale, &mut offset].into_iter().flatten() {
                        *one = ops::reshape(cx, &*one, spread.as_slice())?;
                    }
                }
                let moments = f::moments(cx, x, &axes, true)?;
                f::normalize(cx, x, &moments, scale.as_ref(), offset.as_ref(), epsilon)
            })
        })
    }

    // Keras normalizes what it is given in its own type.
    fn casts(&self) -> bool {
        false
    }
}

/// Axes of samples of a shape, where 0 is the batch, in order.
fn axes(layer: &str, axes: &[i64], input: &[i64]) -> Result<Vec<usize>> {
    let rank = input.len() as i64 + 1;
    let place = |&axis: &i64| {
        let axis = if axis < 0 { axis + rank } else { axis };
        (1..rank).contains(&axis).then_some(axis as usize)
    };
    let found: Option<Vec<usize>> = axes.iter().map(place).collect();
    let mut found = found
        .filter(|found| !found.is_empty())
        .ok_or_else(|| wrong_input(layer, &format!("dimensions {axes:?}"), input))?;
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Root-mean-square normalization (Zhang and Sennrich, arXiv:1910.07467) of the last dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsNorm {
    /// Added to the mean square.
    pub epsilon: f32,
}

impl Default for RmsNorm {
    fn default() -> Self {
        Self { epsilon: 1e-6 }
    }
}

impl Layer for RmsNorm {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("RMSNormalization")
            .set("axis", -1_i64)
            .set("epsilon", self.epsilon))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let shape = [channels("RmsNorm", input)?];
        let weights = weights.layer("rms_normalization");
        let scale = weights.trainable("scale", &shape, Initializer::Ones)?;
        let epsilon = self.epsilon;
        let policy = weights.layer_policy();
        Built::new(input.to_vec(), move |pass, x| {
            let cx = pass.context();
            pass.pass_mask(pass.mask());
            widened(cx, policy, x, |x, dtype| {
                let scale = as_type(cx, &scale.read(cx)?, dtype)?;
                f::rms_norm(cx, x, &scale, epsilon)
            })
        })
    }
}

/// Group normalization (Wu and He, arXiv:1803.08494) of one dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupNorm {
    /// Into how many groups the channels are divided; -1 makes each a group.
    pub groups: i64,
    /// The dimension of the channels, where 0 is the batch; negative ones count from the last.
    pub axis: i64,
    /// Added to the variance.
    pub epsilon: f32,
    /// Whether something is added at the end.
    pub center: bool,
    /// Whether something is multiplied by at the end.
    pub scale: bool,
}

impl Default for GroupNorm {
    fn default() -> Self {
        Self {
            groups: 32,
            axis: -1,
            epsilon: 1e-3,
            center: true,
            scale: true,
        }
    }
}

impl Layer for GroupNorm {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("GroupNormalization")
            .set("groups", self.groups)
            .set("axis", self.axis)
            .set("epsilon", self.epsilon)
            .set("center", self.center)
            .set("scale", self.scale))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let last = Last::new("GroupNorm", self.axis, input)?;
        let channels = last.size(input);
        let epsilon = self.epsilon;
        let groups = if self.groups == -1 {
            channels
        } else {
            self.groups
        };
        if groups < 1 || channels % groups != 0 {
            return Err(Error::argument(format!(
                "GroupNorm: {groups} groups don't divide {channels} channels"
            )));
        }
        let weights = weights.layer("group_normalization");
        let affine = Affine::new(&weights, &[channels], self.scale, self.center)?;
        let policy = weights.layer_policy();
        Built::new(input.to_vec(), move |pass, x| {
            let cx = pass.context();
            pass.pass_mask(pass.mask());
            widened(cx, policy, x, |x, dtype| {
                let (scale, offset) = affine.read(cx, dtype)?;
                last.with(cx, x, |x| {
                    f::group_norm(cx, x, groups, scale.as_ref(), offset.as_ref(), epsilon)
                })
            })
        })
    }

    // Keras normalizes what it is given in its own type.
    fn casts(&self) -> bool {
        false
    }
}

/// Divides each sample by its length along some dimensions, which are the last one at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitNorm {
    /// The dimensions, where 0 is the batch; negative ones count from the last.
    pub axes: Vec<i64>,
}

impl Default for UnitNorm {
    fn default() -> Self {
        Self { axes: vec![-1] }
    }
}

impl Layer for UnitNorm {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("UnitNormalization").set("axis", &*self.axes))
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        let axes = axes("UnitNorm", &self.axes, input)?;
        let axes: Vec<i32> = axes.iter().map(|&axis| axis as i32).collect();
        Built::new(input.to_vec(), move |pass, x| {
            let cx = pass.context();
            pass.pass_mask(pass.mask());
            let options = ops::SumOptions {
                keep_dims: Some(true),
            };
            let sum = ops::sum(cx, ops::square(cx, x)?, axes.as_slice(), options)?;
            let most = match x.dtype() {
                DataType::HALF => 6e4_f32,
                _ => 1e12,
            };
            ops::mul(cx, x, ops::minimum(cx, ops::rsqrt(cx, sum)?, most)?)
        })
    }
}
