//! Activations: the functions of `keras.activations`, in both modes.

use tfp_core::{Context, Result};
use tfp_ops as ops;

/// An element-wise function (or a softmax-like one over the last axis) that layers apply to their
/// output. Names, constants and defaults are those of Keras 3.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Activation {
    /// `x`
    #[default]
    Linear,
    /// `max(x, 0) + alpha * min(x, 0)`, smooth at zero: `alpha * (exp(x / alpha) - 1)` below it.
    Celu(f32),
    /// `x` above zero, `alpha * (exp(x) - 1)` below.
    Elu(f32),
    /// `exp(x)`
    Exponential,
    /// `x * Phi(x)` with the exact distribution function of the normal distribution.
    Gelu,
    /// [`Activation::Gelu`] with the usual approximation by a hyperbolic tangent.
    GeluTanh,
    /// `x` outside `[-threshold, threshold]`, zero inside.
    HardShrink(f32),
    /// `clip(x / 6 + 0.5, 0, 1)`
    HardSigmoid,
    /// `clip(slope * x + 0.5, 0, 1)`. Keras 2's `hard_sigmoid` has the slope 0.2.
    HardSigmoidSlope(f32),
    /// `x * hard_sigmoid(x)`
    HardSilu,
    /// `clip(x, -1, 1)`
    HardTanh,
    /// `x` above zero, `slope * x` below. Keras' default slope is 0.2.
    LeakyRelu(f32),
    /// `log(sigmoid(x))`
    LogSigmoid,
    /// `log(softmax(x))` over the last axis.
    LogSoftmax,
    /// `x * tanh(softplus(x))`
    Mish,
    /// `max(x, 0)`
    Relu,
    /// `min(max(x, 0), 6)`
    Relu6,
    /// The self-normalizing exponential unit.
    Selu,
    /// `1 / (1 + exp(-x))`
    Sigmoid,
    /// `x * sigmoid(x)`
    Silu,
    /// `x` moved towards zero by the threshold, zero inside it.
    SoftShrink(f32),
    /// `exp(x) / sum(exp(x))` over the last axis.
    Softmax,
    /// `log(1 + exp(x))`
    Softplus,
    /// `x / (1 + |x|)`
    Softsign,
    /// `(x + 1)^2 / 4` between -1 and 1, zero below, `x` above.
    SparsePlus,
    /// `clip((x + 1) / 2, 0, 1)`
    SparseSigmoid,
    /// `(x + sqrt(x^2 + b)) / 2`. Keras' default `b` is 4.
    Squareplus(f32),
    /// `tanh(x)`
    Tanh,
    /// `x - tanh(x)`
    TanhShrink,
    /// `x` above the threshold, the default value elsewhere.
    Threshold(f32, f32),
}

impl Activation {
    /// Returns the name by which Keras finds it, if it does: those with another parameter than Keras'
    /// have none.
    pub(crate) fn keras_name(self) -> Option<&'static str> {
        Some(match self {
            Self::Linear => "linear",
            Self::Celu(1.0) => "celu",
            Self::Elu(1.0) => "elu",
            Self::Exponential => "exponential",
            Self::Gelu => "gelu",
            Self::HardShrink(0.5) => "hard_shrink",
            Self::HardSigmoid => "hard_sigmoid",
            Self::HardSilu => "hard_silu",
            Self::HardTanh => "hard_tanh",
            Self::LeakyRelu(0.2) => "leaky_relu",
            Self::LogSigmoid => "log_sigmoid",
            Self::LogSoftmax => "log_softmax",
            Self::Mish => "mish",
            Self::Relu => "relu",
            Self::Relu6 => "relu6",
            Self::Selu => "selu",
            Self::Sigmoid => "sigmoid",
            Self::Silu => "silu",
            Self::SoftShrink(0.5) => "soft_shrink",
            Self::Softmax => "softmax",
            Self::Softplus => "softplus",
            Self::Softsign => "softsign",
            Self::SparsePlus => "sparse_plus",
            Self::SparseSigmoid => "sparse_sigmoid",
            Self::Squareplus(4.0) => "squareplus",
            Self::Tanh => "tanh",
            Self::TanhShrink => "tanh_shrink",
            _ => return None,
        })
    }

    /// Applies the function. Shape and element type stay.
    ///
    /// # Errors
    /// What TensorFlow says, as for an element type that isn't floating-point.
    pub fn apply<C: Context + ?Sized>(self, cx: &C, x: &C::Value) -> Result<C::Value> {
        let clip = |x: C::Value, low: f32, high: f32| -> Result<C::Value> {
            ops::minimum(cx, ops::maximum(cx, x, low)?, high)
        };
        Ok(match self {
            Self::Linear => x.clone(),
            Self::Celu(alpha) => {
                let below = ops::minimum(cx, x, 0.0)?;
                let curve = ops::expm1(cx, ops::div(cx, below, alpha)?)?;
                let above = ops::maximum(cx, x, 0.0)?;
                ops::add_v2(cx, above, ops::mul(cx, curve, alpha)?)?
            }
            Self::Elu(1.0) => ops::elu(cx, x)?,
            Self::Elu(alpha) => {
                let below = ops::mul(cx, ops::elu(cx, x)?, alpha)?;
                ops::select_v2(cx, ops::greater(cx, x, 0.0)?, x, below)?
            }
            Self::Exponential => ops::exp(cx, x)?,
            Self::Gelu => {
                let scaled = ops::mul(cx, x, std::f32::consts::FRAC_1_SQRT_2)?;
                let phi = ops::add_v2(cx, ops::erf(cx, scaled)?, 1.0)?;
                ops::mul(cx, ops::mul(cx, x, 0.5)?, phi)?
            }
            Self::GeluTanh => {
                // sqrt(2 / pi)
                const SCALE: f32 = 0.797_884_6;
                let cube = ops::mul(cx, ops::mul(cx, ops::square(cx, x)?, x)?, 0.044_715)?;
                let inner = ops::mul(cx, ops::add_v2(cx, x, cube)?, SCALE)?;
                let phi = ops::add_v2(cx, ops::tanh(cx, inner)?, 1.0)?;
                ops::mul(cx, ops::mul(cx, x, 0.5)?, phi)?
            }
            Self::HardShrink(threshold) => {
                let outside = ops::greater(cx, ops::abs(cx, x)?, threshold)?;
                ops::select_v2(cx, outside, x, ops::zeros_like(cx, x)?)?
            }
            Self::HardSigmoid => {
                let line = ops::relu6(cx, ops::add_v2(cx, x, 3.0)?)?;
                ops::div(cx, line, 6.0)?
            }
            Self::HardSigmoidSlope(slope) => {
                let line = ops::add_v2(cx, ops::mul(cx, x, slope)?, 0.5)?;
                clip(line, 0.0, 1.0)?
            }
            Self::HardSilu => ops::mul(cx, x, Self::HardSigmoid.apply(cx, x)?)?,
            Self::HardTanh => clip(x.clone(), -1.0, 1.0)?,
            Self::LeakyRelu(slope) => {
                ops::leaky_relu(cx, x, ops::LeakyReluOptions { alpha: Some(slope) })?
            }
            Self::LogSigmoid => ops::neg(cx, ops::softplus(cx, ops::neg(cx, x)?)?)?,
            Self::LogSoftmax => ops::log_softmax(cx, x)?,
            Self::Mish => ops::mul(cx, x, ops::tanh(cx, ops::softplus(cx, x)?)?)?,
            Self::Relu => ops::relu(cx, x)?,
            Self::Relu6 => ops::relu6(cx, x)?,
            Self::Selu => ops::selu(cx, x)?,
            Self::Sigmoid => ops::sigmoid(cx, x)?,
            Self::Silu => ops::mul(cx, x, ops::sigmoid(cx, x)?)?,
            Self::SoftShrink(threshold) => {
                let (high, low) = (
                    ops::greater(cx, x, threshold)?,
                    ops::less(cx, x, -threshold)?,
                );
                let below = ops::add_v2(cx, x, threshold)?;
                let rest = ops::select_v2(cx, low, below, ops::zeros_like(cx, x)?)?;
                ops::select_v2(cx, high, ops::sub(cx, x, threshold)?, rest)?
            }
            Self::Softmax => ops::softmax(cx, x)?,
            Self::Softplus => ops::softplus(cx, x)?,
            Self::Softsign => ops::softsign(cx, x)?,
            Self::SparsePlus => {
                let curve = ops::mul(cx, ops::square(cx, ops::add_v2(cx, x, 1.0)?)?, 0.25)?;
                let low = ops::less_equal(cx, x, -1.0)?;
                let middle = ops::select_v2(cx, low, ops::zeros_like(cx, x)?, curve)?;
                ops::select_v2(cx, ops::less(cx, x, 1.0)?, middle, x)?
            }
            Self::SparseSigmoid => {
                let line = ops::mul(cx, ops::add_v2(cx, x, 1.0)?, 0.5)?;
                let within = ops::less(cx, ops::abs(cx, x)?, 1.0)?;
                let step = ops::relu(cx, ops::sign(cx, x)?)?;
                ops::select_v2(cx, within, line, step)?
            }
            Self::Squareplus(b) => {
                let root = ops::sqrt(cx, ops::add_v2(cx, ops::square(cx, x)?, b)?)?;
                ops::mul(cx, ops::add_v2(cx, x, root)?, 0.5)?
            }
            Self::Tanh => ops::tanh(cx, x)?,
            Self::TanhShrink => ops::sub(cx, x, ops::tanh(cx, x)?)?,
            Self::Threshold(threshold, default) => {
                let above = ops::greater(cx, x, threshold)?;
                let other = ops::mul(cx, ops::ones_like(cx, x)?, default)?;
                ops::select_v2(cx, above, x, other)?
            }
        })
    }
}
