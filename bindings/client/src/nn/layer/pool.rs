//! Pooling.

use tfp_core::Result;

use super::conv::{check_pairs, windows};
use super::described::{KerasLayer, dims_of, padding_name, sized};
use super::{Built, Layer, channels, check_sizes, wrong_input};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::Weights;
use crate::nn::functional::{self as f, Padding, Pool, not_causal};
use crate::ops;

/// Pools windows of steps or of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pooling {
    /// What a window becomes.
    pub kind: Pool,
    /// The size of the window; one dimension uses the first number.
    pub size: (i64, i64),
    /// The step between windows.
    pub strides: (i64, i64),
    /// How borders are treated.
    pub padding: Padding,
}

impl Pooling {
    /// The largest of square windows that don't overlap.
    #[must_use]
    pub fn max(size: i64) -> Self {
        Self {
            kind: Pool::Max,
            size: (size, size),
            strides: (size, size),
            padding: Padding::Valid,
        }
    }

    /// The mean of square windows that don't overlap.
    #[must_use]
    pub fn average(size: i64) -> Self {
        Self {
            kind: Pool::Average,
            ..Self::max(size)
        }
    }
}

impl Layer for Pooling {
    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        let dims = dims_of(inputs);
        Ok(
            KerasLayer::new(format!("{}Pooling{dims}D", name(self.kind)))
                .set("pool_size", sized(self.size, dims))
                .set("strides", sized(self.strides, dims))
                .set("padding", padding_name(self.padding)),
        )
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        let pool = *self;
        let one = |input, size, stride| windows(input, size, stride, 1, pool.padding);
        let (size, strides) = (pool.size, pool.strides);
        not_causal("Pooling", pool.padding)?;
        check_pairs("Pooling", input, &[("size", size), ("strides", strides)])?;
        let output = match *input {
            [steps, channels] => vec![one(steps, size.0, strides.0), channels],
            [rows, columns, channels] => vec![
                one(rows, size.0, strides.0),
                one(columns, size.1, strides.1),
                channels,
            ],
            _ => {
                return Err(wrong_input(
                    "Pooling",
                    "(steps, channels) or an image",
                    input,
                ));
            }
        };
        if output.iter().any(|&size| size == 0 || size < -1) {
            return Err(wrong_input("Pooling", "at least one window", input));
        }
        Built::new(output, move |pass, x| {
            f::pool(pass.context(), x, pool.kind, size, strides, pool.padding)
        })
    }
}

/// Pools windows of volumes (planes, rows, columns, channels).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pooling3d {
    /// What a window becomes.
    pub kind: Pool,
    /// The size of the window.
    pub size: [i64; 3],
    /// The step between windows.
    pub strides: [i64; 3],
    /// How borders are treated.
    pub padding: Padding,
}

impl Layer for Pooling3d {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new(format!("{}Pooling3D", name(self.kind)))
            .set("pool_size", self.size.as_slice())
            .set("strides", self.strides.as_slice())
            .set("padding", padding_name(self.padding)))
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        let Self {
            kind,
            size,
            strides,
            padding,
        } = *self;
        let &[planes, rows, columns, channels] = input else {
            let expected = "(planes, rows, columns, channels)";
            return Err(wrong_input("Pooling3d", expected, input));
        };
        not_causal("Pooling3d", padding)?;
        check_sizes("Pooling3d", "size", &size)?;
        check_sizes("Pooling3d", "strides", &strides)?;
        let mut output: Vec<i64> = [planes, rows, columns]
            .iter()
            .zip(size.iter().zip(&strides))
            .map(|(&input, (&size, &stride))| windows(input, size, stride, 1, padding))
            .collect();
        if output.iter().any(|&size| size == 0 || size < -1) {
            return Err(wrong_input("Pooling3d", "at least one window", input));
        }
        output.push(channels);
        Built::new(output, move |pass, x| {
            f::pool3d(pass.context(), x, kind, size, strides, padding)
        })
    }
}

/// Pools each channel to one number. A mean leaves masked steps out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalPool(pub Pool);

impl Layer for GlobalPool {
    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        let class = format!("Global{}Pooling{}D", name(self.0), dims_of(inputs));
        Ok(KerasLayer::new(class))
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        let kind = self.0;
        let output = vec![channels("GlobalPool", input)?];
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            match pass.mask() {
                Some(mask) if kind == Pool::Average => masked_mean(cx, x, &mask),
                _ => f::global_pool(cx, x, kind, false),
            }
        })
    }
}

/// The mean over the steps for which a mask is true.
fn masked_mean(cx: &AnyContext, x: &AnyValue, mask: &AnyValue) -> Result<AnyValue> {
    let mask = ops::cast(cx, mask, x.dtype(), ops::CastOptions::default())?;
    let mask = ops::expand_dims(cx, mask, -1)?;
    let sum = ops::sum(cx, ops::mul(cx, x, &mask)?, 1, ops::SumOptions::default())?;
    ops::div(cx, sum, ops::sum(cx, mask, 1, ops::SumOptions::default())?)
}

/// The beginning of Keras' classes.
pub(super) fn name(kind: Pool) -> &'static str {
    match kind {
        Pool::Max => "Max",
        Pool::Average => "Average",
    }
}
