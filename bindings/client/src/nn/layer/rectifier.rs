//! Activations that have parameters or an axis: `keras.layers` of that kind.

use tfp_core::{Error, Result};

use super::described::KerasLayer;
use super::{Built, Layer, wrong_input};
use crate::nn::{Initializer, Weights};
use crate::ops;

/// `x` above the threshold and at most the largest value, `slope * (x - threshold)` below.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Relu {
    /// The largest value, or none.
    pub max: Option<f32>,
    /// The slope below the threshold.
    pub slope: f32,
    /// Where it begins.
    pub threshold: f32,
}

impl Layer for Relu {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("ReLU")
            .set("max_value", self.max)
            .set("negative_slope", self.slope)
            .set("threshold", self.threshold))
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        let Self {
            max,
            slope,
            threshold,
        } = *self;
        Built::new(input.to_vec(), move |pass, x| {
            let cx = pass.context();
            pass.pass_mask(pass.mask());
            let mut y = match threshold {
                0.0 => ops::relu(cx, x)?,
                _ => {
                    let above = ops::greater(cx, x, threshold)?;
                    ops::select_v2(cx, above, x, ops::zeros_like(cx, x)?)?
                }
            };
            if let Some(max) = max {
                y = ops::minimum(cx, y, max)?;
            }
            if slope != 0.0 {
                let below = ops::relu(cx, ops::sub(cx, threshold, x)?)?;
                y = ops::sub(cx, y, ops::mul(cx, below, slope)?)?;
            }
            Ok(y)
        })
    }
}

/// `x` above zero, `alpha * x` below, with an `alpha` for each element that is learned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PRelu {
    /// The axes, from 1 on, along which all elements have the same `alpha`.
    pub shared_axes: Vec<i64>,
}

impl Layer for PRelu {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let axes = Some(&*self.shared_axes).filter(|axes| !axes.is_empty());
        Ok(KerasLayer::new("PReLU").set("shared_axes", axes))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let mut shape = input.to_vec();
        for &axis in &self.shared_axes {
            let size = usize::try_from(axis - 1)
                .ok()
                .and_then(|at| shape.get_mut(at));
            *size.ok_or_else(|| wrong_input("PRelu", &format!("a dimension {axis}"), input))? = 1;
        }
        if shape.iter().any(|&size| size < 1) {
            return Err(wrong_input(
                "PRelu",
                "known sizes along axes that aren't shared",
                input,
            ));
        }
        let weights = weights.layer("p_re_lu");
        let alpha = weights.trainable("alpha", &shape, Initializer::Zeros)?;
        Built::new(input.to_vec(), move |pass, x| {
            let cx = pass.context();
            pass.pass_mask(pass.mask());
            let below = ops::relu(cx, ops::neg(cx, x)?)?;
            let below = ops::mul(cx, alpha.read(cx)?, below)?;
            ops::sub(cx, ops::relu(cx, x)?, below)
        })
    }
}

/// `exp(x) / sum(exp(x))` over an axis. What is masked along it is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Softmax {
    /// The axis, where 0 is the batch; negative ones count from the last.
    pub axis: i64,
}

impl Default for Softmax {
    fn default() -> Self {
        Self { axis: -1 }
    }
}

impl Layer for Softmax {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("Softmax").set("axis", self.axis))
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        let rank = input.len() as i64 + 1;
        let axis = if self.axis < 0 {
            self.axis + rank
        } else {
            self.axis
        };
        if !(1..rank).contains(&axis) {
            return Err(wrong_input(
                "Softmax",
                &format!("a dimension {}", self.axis),
                input,
            ));
        }
        let (axis, last) = (axis as i32, rank as i32 - 1);
        Built::new(input.to_vec(), move |pass, x| {
            let cx = pass.context();
            let mask = pass.mask();
            pass.pass_mask(mask.clone());
            if mask.is_some() {
                return Err(Error::argument("Softmax: some of its steps are masked"));
            }
            if axis == last {
                return ops::softmax(cx, x);
            }
            let mut order: Vec<i32> = (0..=last).collect();
            order.swap(axis as usize, last as usize);
            let y = ops::softmax(cx, ops::transpose(cx, x, order.as_slice())?)?;
            ops::transpose(cx, y, order.as_slice())
        })
    }
}
