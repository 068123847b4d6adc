//! Layers whose kernel is divided by its spectral norm.

use tfp_core::{Error, Result};

use super::described::KerasLayer;
use super::wrapper::wrapping;
use super::{Built, Layer};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::formats::json::Json;
use crate::nn::{Initializer, Weights};
use crate::ops;
use crate::variable::Variable;

/// Where Keras' files have the vector: behind a copy of the kernel.
pub(crate) const VECTOR: &str = "vars/1";

/// Divides the kernel of a layer by its largest singular value at each step of training, before the
/// layer computes (Miyato et al., arXiv:1802.05957).
///
/// The variable `vector_u` has the estimate of the singular vector. The kernel is a matrix whose
/// columns are those of its last dimension. A kernel of zeros stays.
#[derive(Clone, Debug, PartialEq)]
pub struct SpectralNorm<L> {
    /// The layer, which has one variable `kernel`.
    pub layer: L,
    /// How often a step improves the estimate, one or more.
    pub iterations: i64,
}

impl<L> SpectralNorm<L> {
    /// Improves the estimate once in each step.
    #[must_use]
    pub fn new(layer: L) -> Self {
        Self {
            layer,
            iterations: 1,
        }
    }
}

impl<L: Layer> Layer for SpectralNorm<L> {
    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        let layer = self.layer.keras(inputs)?;
        let count = variables_of(&layer)?;
        let places = (0..count).map(|at| format!("layer/vars/{at}"));
        let places = places.chain([VECTOR.to_owned()]).collect();
        Ok(wrapping("SpectralNormalization", layer)?
            .set("power_iterations", self.iterations)
            .listed(places))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        /// More of them don't change what float32 holds.
        const MOST: i64 = 1 << 10;
        let iterations = self.iterations;
        if !(1..=MOST).contains(&iterations) {
            return Err(Error::argument(format!(
                "SpectralNorm: {iterations} iterations, expected 1 to {MOST}"
            )));
        }
        let weights = weights.layer("spectral_normalization");
        let before = weights.asked();
        let Built { forward, output } = self.layer.build(&weights, input)?;
        let mut asked = weights.asked_by_name(before);
        asked.retain(|(name, _)| name == "kernel");
        let Ok([(_, kernel)]) = <[_; 1]>::try_from(asked) else {
            return Err(Error::argument(format!(
                "SpectralNorm: {} does not have exactly one kernel",
                self.layer.kind()
            )));
        };
        let columns = kernel.shape().dims().and_then(|dims| dims.last().copied());
        let columns = columns.unwrap_or(1);
        let first = Initializer::TruncatedNormal(0.0, 0.02);
        let vector = weights.state("vector_u", &[1, columns], first)?;
        Built::new(output, move |pass, x| {
            if !pass.is_training() {
                return forward(pass, x);
            }
            // Earlier calls of the layer in the same step have changed both, too.
            let cx = pass.after_changes()?;
            let (new_vector, new_kernel) = normalized(&cx, &kernel, &vector, iterations)?;
            pass.update(vector.assign(&cx, new_vector)?);
            pass.update(kernel.assign(&cx, new_kernel)?);
            let y = pass.within(&pass.after_changes()?, |pass| forward(pass, x))?;
            // The change of the next call waits until this one has read the kernel.
            if let AnyValue::Output(y) = &y {
                pass.update(Some(y.operation().clone()));
            }
            Ok(y)
        })
    }
}

/// How many variables a layer of Keras has, which has a kernel and maybe a bias.
fn variables_of(layer: &KerasLayer) -> Result<usize> {
    let of = |key: &str| layer.config.iter().find(|(one, _)| one == key);
    match layer.class.as_str() {
        "Dense" | "Conv1D" | "Conv2D" | "Conv3D" | "Conv1DTranspose" | "Conv2DTranspose"
        | "Conv3DTranspose" | "DepthwiseConv1D" | "DepthwiseConv2D" => {
            let has_bias = of("use_bias").is_some_and(|(_, one)| one.bool() == Some(true));
            Ok(1 + usize::from(has_bias))
        }
        "EinsumDense" => {
            let has_bias = of("bias_axes").is_some_and(|(_, one)| *one != Json::Null);
            Ok(1 + usize::from(has_bias))
        }
        other => Err(Error::argument(format!(
            "SpectralNormalization over {other} can't be described"
        ))),
    }
}

/// A vector whose length is one.
fn unit(cx: &AnyContext, x: AnyValue) -> Result<AnyValue> {
    let options = ops::SumOptions {
        keep_dims: Some(true),
    };
    let square = ops::sum(cx, ops::square(cx, &x)?, [0, 1], options)?;
    let inverse = ops::minimum(cx, ops::rsqrt(cx, square)?, 1e7_f32)?;
    ops::mul(cx, x, inverse)
}

/// The next estimate of the singular vector, (1, columns), and the kernel divided by its norm.
fn normalized(
    cx: &AnyContext,
    kernel: &Variable,
    vector: &Variable,
    iterations: i64,
) -> Result<(AnyValue, AnyValue)> {
    let (old, before) = (kernel.read(cx)?, vector.read(cx)?);
    let columns = before.shape()?.dims().map_or(1, |dims| dims[1]);
    let matrix = ops::reshape(cx, &old, [-1, columns])?;
    let times = |row: &AnyValue, is_transposed: bool| {
        let options = ops::MatMulOptions {
            transpose_b: Some(is_transposed),
            ..ops::MatMulOptions::default()
        };
        ops::mat_mul(cx, row, &matrix, options)
    };
    let mut after = before.clone();
    let mut left = times(&after, true)?;
    for at in 0..iterations {
        if at > 0 {
            left = times(&after, true)?;
        }
        left = unit(cx, left)?;
        after = unit(cx, times(&left, false)?)?;
    }
    let options = ops::MatMulOptions {
        transpose_b: Some(true),
        ..ops::MatMulOptions::default()
    };
    let norm = ops::mat_mul(cx, times(&left, false)?, &after, options)?;
    let norm = ops::reshape(cx, norm, [0_i32; 0])?;
    let zero = ops::equal(cx, &old, 0.0_f32, ops::EqualOptions::default())?;
    let zero = ops::reshape(cx, zero, [-1])?;
    let is_zero = ops::all(cx, zero, [0], ops::AllOptions::default())?;
    let divided = ops::div(cx, &old, norm)?;
    Ok((
        ops::select_v2(cx, &is_zero, before, after)?,
        ops::select_v2(cx, is_zero, old, divided)?,
    ))
}
