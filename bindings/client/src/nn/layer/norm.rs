//! Normalizations.

use tfp_core::{Error, Result};

use super::{Built, Layer, channels};
use crate::nn::functional::{self as f, Moments};
use crate::nn::{Initializer, Weights};
use crate::ops;

/// Batch normalization (Ioffe and Szegedy, arXiv:1502.03167) of the last dimension: by the batch's
/// mean and variance while training, by their running means otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchNorm {
    /// How much of the running means is kept in a step.
    pub momentum: f32,
    /// Added to the variance.
    pub epsilon: f32,
}

impl Default for BatchNorm {
    fn default() -> Self {
        Self {
            momentum: 0.99,
            epsilon: 1e-3,
        }
    }
}

impl Layer for BatchNorm {
    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let shape = [channels("BatchNorm", input)?];
        let weights = weights.layer("batch_normalization");
        let scale = weights.trainable("gamma", &shape, Initializer::Ones)?;
        let offset = weights.trainable("beta", &shape, Initializer::Zeros)?;
        let mean = weights.state("moving_mean", &shape, Initializer::Zeros)?;
        let variance = weights.state("moving_variance", &shape, Initializer::Ones)?;
        let Self { momentum, epsilon } = *self;
        Built::new(input.to_vec(), move |pass, x| {
            let cx = pass.context();
            let (scale, offset) = (scale.read(cx)?, offset.read(cx)?);
            if pass.is_training() && pass.mask().is_some() {
                return Err(Error::argument(
                    "BatchNorm: some of its steps are masked, of which it can't leave out any",
                ));
            }
            pass.pass_mask(pass.mask());
            if !pass.is_training() {
                let moments = Moments {
                    mean: mean.read(cx)?,
                    variance: variance.read(cx)?,
                };
                return f::normalize(cx, x, &moments, Some(&scale), Some(&offset), epsilon);
            }
            let (y, moments) = f::batch_norm(cx, x, Some(&scale), Some(&offset), epsilon)?;
            for (kept, new) in [(&mean, moments.mean), (&variance, moments.variance)] {
                let distance = ops::sub(cx, kept.read(cx)?, new)?;
                let step = ops::mul(cx, distance, 1.0 - momentum)?;
                pass.update(kept.assign_sub(cx, step)?);
            }
            Ok(y)
        })
    }
}

/// Layer normalization (Ba et al., arXiv:1607.06450) of the last dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerNorm {
    /// Added to the variance.
    pub epsilon: f32,
}

impl Default for LayerNorm {
    fn default() -> Self {
        Self { epsilon: 1e-3 }
    }
}

impl Layer for LayerNorm {
    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let shape = [channels("LayerNorm", input)?];
        let weights = weights.layer("layer_normalization");
        let scale = weights.trainable("gamma", &shape, Initializer::Ones)?;
        let offset = weights.trainable("beta", &shape, Initializer::Zeros)?;
        let epsilon = self.epsilon;
        Built::new(input.to_vec(), move |pass, x| {
            let cx = pass.context();
            let (scale, offset) = (scale.read(cx)?, offset.read(cx)?);
            pass.pass_mask(pass.mask());
            f::layer_norm(cx, x, Some(&scale), Some(&offset), epsilon)
        })
    }
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
    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let shape = [channels("RmsNorm", input)?];
        let weights = weights.layer("rms_normalization");
        let scale = weights.trainable("scale", &shape, Initializer::Ones)?;
        let epsilon = self.epsilon;
        Built::new(input.to_vec(), move |pass, x| {
            let cx = pass.context();
            pass.pass_mask(pass.mask());
            f::rms_norm(cx, x, &scale.read(cx)?, epsilon)
        })
    }
}

/// Group normalization (Wu and He, arXiv:1803.08494) of the last dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupNorm {
    /// Into how many groups the channels are divided.
    pub groups: i64,
    /// Added to the variance.
    pub epsilon: f32,
}

impl Layer for GroupNorm {
    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let channels = channels("GroupNorm", input)?;
        let Self { groups, epsilon } = *self;
        if groups < 1 || channels % groups != 0 {
            return Err(Error::argument(format!(
                "GroupNorm: {groups} groups don't divide {channels} channels"
            )));
        }
        let shape = [channels];
        let weights = weights.layer("group_normalization");
        let scale = weights.trainable("gamma", &shape, Initializer::Ones)?;
        let offset = weights.trainable("beta", &shape, Initializer::Zeros)?;
        Built::new(input.to_vec(), move |pass, x| {
            let cx = pass.context();
            let (scale, offset) = (scale.read(cx)?, offset.read(cx)?);
            pass.pass_mask(pass.mask());
            f::group_norm(cx, x, groups, Some(&scale), Some(&offset), epsilon)
        })
    }
}
