//! Losses: what training makes small.

use tfp_core::{Context, DataType, Result, Shape, Value};
use tfp_ops as ops;

use super::policy::as_type;

/// The smallest probability that a logarithm sees, as in Keras.
const EPSILON: f32 = 1e-7;

/// A loss. Names, options and numbers are those of Keras 3.
///
/// `truth` and `predicted` have the same shape, whose last dimension holds the outputs of one
/// sample; the sparse loss has class numbers instead, without that dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Loss {
    /// The mean of the squared differences.
    MeanSquaredError,
    /// The mean of the absolute differences.
    MeanAbsoluteError,
    /// The mean of the absolute differences in percent of the truth.
    MeanAbsolutePercentageError,
    /// The mean squared difference of the logarithms of one plus the values.
    MeanSquaredLogarithmicError,
    /// The negative cosine of the angle between truth and prediction.
    CosineSimilarity,
    /// Half the square up to a difference of `delta`, linear beyond it.
    Huber {
        /// Where it becomes linear; Keras' default is 1.
        delta: f32,
    },
    /// The logarithm of the hyperbolic cosine of the difference.
    LogCosh,
    /// `max(1 - truth * predicted, 0)`. Truths are -1 and 1.
    Hinge,
    /// The square of [`Loss::Hinge`].
    SquaredHinge,
    /// `max(max((1 - truth) * predicted) - sum(truth * predicted) + 1, 0)`
    CategoricalHinge,
    /// The relative entropy of two distributions.
    KlDivergence,
    /// `predicted - truth * log(predicted)`
    Poisson,
    /// Cross-entropy of independent yes-or-no outputs.
    BinaryCrossentropy {
        /// Whether predictions are logits instead of probabilities.
        from_logits: bool,
        /// How far truths are moved towards one half.
        label_smoothing: f32,
    },
    /// [`Loss::BinaryCrossentropy`] with less weight on what is already right (Lin et al.,
    /// arXiv:1708.02002).
    BinaryFocalCrossentropy {
        /// The weight of the positive class against `1 - alpha` of the negative one, or none.
        alpha: Option<f32>,
        /// The power of the weight.
        gamma: f32,
        /// Whether predictions are logits instead of probabilities.
        from_logits: bool,
    },
    /// Cross-entropy of a distribution over classes.
    CategoricalCrossentropy {
        /// Whether predictions are logits instead of probabilities.
        from_logits: bool,
        /// How far truths are moved towards the uniform distribution.
        label_smoothing: f32,
    },
    /// [`Loss::CategoricalCrossentropy`] with less weight on what is already right.
    CategoricalFocalCrossentropy {
        /// The weight of every class.
        alpha: f32,
        /// The power of the weight.
        gamma: f32,
        /// Whether predictions are logits instead of probabilities.
        from_logits: bool,
    },
    /// [`Loss::CategoricalCrossentropy`] with the number of the right class as truth.
    SparseCategoricalCrossentropy {
        /// Whether predictions are logits instead of probabilities.
        from_logits: bool,
    },
    /// One minus the Dice coefficient of all outputs together: a scalar.
    Dice,
    /// One minus the Tversky index of all outputs together: a scalar.
    Tversky {
        /// The weight of what is missing in the prediction.
        alpha: f32,
        /// The weight of what is too much in the prediction.
        beta: f32,
    },
}

impl Loss {
    /// Returns the name that Keras' logs have.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MeanSquaredError => "mean_squared_error",
            Self::MeanAbsoluteError => "mean_absolute_error",
            Self::MeanAbsolutePercentageError => "mean_absolute_percentage_error",
            Self::MeanSquaredLogarithmicError => "mean_squared_logarithmic_error",
            Self::CosineSimilarity => "cosine_similarity",
            Self::Huber { .. } => "huber_loss",
            Self::LogCosh => "log_cosh",
            Self::Hinge => "hinge",
            Self::SquaredHinge => "squared_hinge",
            Self::CategoricalHinge => "categorical_hinge",
            Self::KlDivergence => "kl_divergence",
            Self::Poisson => "poisson",
            Self::BinaryCrossentropy { .. } => "binary_crossentropy",
            Self::BinaryFocalCrossentropy { .. } => "binary_focal_crossentropy",
            Self::CategoricalCrossentropy { .. } => "categorical_crossentropy",
            Self::CategoricalFocalCrossentropy { .. } => "categorical_focal_crossentropy",
            Self::SparseCategoricalCrossentropy { .. } => "sparse_categorical_crossentropy",
            Self::Dice => "dice",
            Self::Tversky { .. } => "tversky",
        }
    }

    /// Computes the mean loss over all samples: a scalar of the predictions' element type.
    ///
    /// `weights` multiply each sample's loss (their shape must broadcast to it); the sum is divided
    /// by the number of samples, not of weights.
    ///
    /// # Errors
    /// What TensorFlow says, as for shapes that don't fit.
    pub fn mean<C: Context + ?Sized>(
        self,
        cx: &C,
        truth: &C::Value,
        predicted: &C::Value,
        weights: Option<&C::Value>,
    ) -> Result<C::Value> {
        let mut losses = self.per_sample(cx, truth, predicted)?;
        if let Some(weights) = weights {
            losses = ops::mul(cx, losses, weights)?;
        }
        let flat = ops::reshape(cx, losses, [-1])?;
        ops::mean(cx, flat, 0, ops::MeanOptions::default())
    }

    /// Computes each sample's loss: the shape of `predicted` without its last dimension, or a
    /// scalar for the losses that say so.
    ///
    /// Truths may lack a last dimension of one that predictions have, or have one more, where the
    /// ranks of both are known.
    ///
    /// # Errors
    /// What TensorFlow says, as for shapes that don't fit.
    pub fn per_sample<C: Context + ?Sized>(
        self,
        cx: &C,
        truth: &C::Value,
        predicted: &C::Value,
    ) -> Result<C::Value> {
        if let Self::SparseCategoricalCrossentropy { from_logits } = self {
            let logits = if from_logits {
                predicted.clone()
            } else {
                ops::log(cx, clip(cx, predicted, EPSILON, 1.0 - EPSILON)?)?
            };
            return sparse_cross_entropy(cx, truth, &logits);
        }
        let truth = same_rank(cx, truth, predicted)?;
        let truth = as_type(cx, &truth, predicted.dtype())?;
        let (truth, y) = (&truth, predicted);
        match self {
            Self::MeanSquaredError => last_mean(cx, ops::squared_difference(cx, y, truth)?),
            Self::MeanAbsoluteError => last_mean(cx, ops::abs(cx, ops::sub(cx, y, truth)?)?),
            Self::MeanAbsolutePercentageError => {
                let size = ops::maximum(cx, ops::abs(cx, truth)?, EPSILON)?;
                let share = ops::div(cx, ops::sub(cx, truth, y)?, size)?;
                ops::mul(cx, last_mean(cx, ops::abs(cx, share)?)?, 100.0)
            }
            Self::MeanSquaredLogarithmicError => {
                let log = |x: &C::Value| -> Result<C::Value> {
                    let positive = ops::maximum(cx, x, EPSILON)?;
                    ops::log(cx, ops::add_v2(cx, positive, 1.0)?)
                };
                last_mean(cx, ops::squared_difference(cx, log(y)?, log(truth)?)?)
            }
            Self::CosineSimilarity => {
                let product = ops::mul(cx, unit(cx, truth)?, unit(cx, y)?)?;
                ops::neg(cx, last_sum(cx, product)?)
            }
            Self::Huber { delta } => {
                let size = ops::abs(cx, ops::sub(cx, y, truth)?)?;
                let square = ops::mul(cx, ops::square(cx, &size)?, 0.5)?;
                let line = ops::sub(cx, ops::mul(cx, &size, delta)?, 0.5 * delta * delta)?;
                let near = ops::less_equal(cx, size, delta)?;
                last_mean(cx, ops::select_v2(cx, near, square, line)?)
            }
            Self::LogCosh => {
                let x = ops::sub(cx, y, truth)?;
                let curve = ops::softplus(cx, ops::mul(cx, &x, -2.0)?)?;
                let sum = ops::add_v2(cx, x, curve)?;
                last_mean(cx, ops::sub(cx, sum, std::f32::consts::LN_2)?)
            }
            Self::Hinge => last_mean(cx, hinge(cx, truth, y)?),
            Self::SquaredHinge => last_mean(cx, ops::square(cx, hinge(cx, truth, y)?)?),
            Self::CategoricalHinge => {
                let right = last_sum(cx, ops::mul(cx, truth, y)?)?;
                let others = ops::mul(cx, ops::sub(cx, 1.0, truth)?, y)?;
                let worst = ops::max(cx, others, -1, ops::MaxOptions::default())?;
                let distance = ops::add_v2(cx, ops::sub(cx, worst, right)?, 1.0)?;
                ops::maximum(cx, distance, 0.0)
            }
            Self::KlDivergence => {
                let p = clip(cx, truth, EPSILON, 1.0)?;
                let q = clip(cx, y, EPSILON, 1.0)?;
                let log = ops::log(cx, ops::div(cx, &p, q)?)?;
                last_sum(cx, ops::mul(cx, p, log)?)
            }
            Self::Poisson => {
                let log = ops::log(cx, ops::add_v2(cx, y, EPSILON)?)?;
                last_mean(cx, ops::sub(cx, y, ops::mul(cx, truth, log)?)?)
            }
            Self::BinaryCrossentropy {
                from_logits,
                label_smoothing,
            } => {
                let scaled = ops::mul(cx, truth, 1.0 - label_smoothing)?;
                let truth = ops::add_v2(cx, scaled, 0.5 * label_smoothing)?;
                last_mean(cx, binary_cross_entropy(cx, &truth, y, from_logits)?)
            }
            Self::BinaryFocalCrossentropy {
                alpha,
                gamma,
                from_logits,
            } => {
                let y = &if from_logits {
                    ops::sigmoid(cx, y)?
                } else {
                    y.clone()
                };
                let entropy = binary_cross_entropy(cx, truth, y, false)?;
                let negative = ops::sub(cx, 1.0, truth)?;
                let missed = ops::mul(cx, &negative, ops::sub(cx, 1.0, y)?)?;
                let right = ops::add_v2(cx, ops::mul(cx, truth, y)?, missed)?;
                let weight = ops::pow(cx, ops::sub(cx, 1.0, right)?, gamma)?;
                let mut focal = ops::mul(cx, weight, entropy)?;
                if let Some(alpha) = alpha {
                    let positive = ops::mul(cx, truth, alpha)?;
                    let negative = ops::mul(cx, negative, 1.0 - alpha)?;
                    focal = ops::mul(cx, ops::add_v2(cx, positive, negative)?, focal)?;
                }
                last_mean(cx, focal)
            }
            Self::CategoricalCrossentropy {
                from_logits,
                label_smoothing,
            } => {
                let truth = &smooth(cx, truth, label_smoothing)?;
                if from_logits {
                    return cross_entropy(cx, truth, y);
                }
                let log = ops::log(cx, distribution(cx, y)?)?;
                ops::neg(cx, last_sum(cx, ops::mul(cx, truth, log)?)?)
            }
            Self::CategoricalFocalCrossentropy {
                alpha,
                gamma,
                from_logits,
            } => {
                let y = if from_logits {
                    ops::softmax(cx, y)?
                } else {
                    y.clone()
                };
                let y = distribution(cx, &y)?;
                let entropy = ops::mul(cx, truth, ops::log(cx, &y)?)?;
                let weight = ops::pow(cx, ops::sub(cx, 1.0, y)?, gamma)?;
                let focal = ops::mul(cx, ops::mul(cx, weight, -alpha)?, entropy)?;
                last_sum(cx, focal)
            }
            // Dealt with above, where the truth keeps its element type.
            Self::SparseCategoricalCrossentropy { .. } => sparse_cross_entropy(cx, truth, y),
            Self::Dice => {
                let both = total(cx, ops::mul(cx, truth, y)?)?;
                let all = ops::add_v2(cx, total(cx, truth.clone())?, total(cx, y.clone())?)?;
                let share = ops::div(cx, ops::mul(cx, both, 2.0)?, ops::add_v2(cx, all, EPSILON)?)?;
                ops::sub(cx, 1.0, share)
            }
            Self::Tversky { alpha, beta } => {
                let both = total(cx, ops::mul(cx, truth, y)?)?;
                let missing = total(cx, ops::mul(cx, ops::sub(cx, 1.0, y)?, truth)?)?;
                let surplus = total(cx, ops::mul(cx, y, ops::sub(cx, 1.0, truth)?)?)?;
                let errors = ops::add_v2(
                    cx,
                    ops::mul(cx, missing, alpha)?,
                    ops::mul(cx, surplus, beta)?,
                )?;
                let all = ops::add_v2(cx, ops::add_v2(cx, &both, errors)?, EPSILON)?;
                ops::sub(cx, 1.0, ops::div(cx, both, all)?)
            }
        }
    }
}

/// What brings a truth to the rank of its prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// Nothing: the ranks are the same, or too different.
    AsItIs,
    /// A last dimension of one.
    Expanded,
    /// No last dimension, which is one.
    Squeezed,
}

impl Fit {
    pub(super) fn of(truth: &Shape, predicted: &Shape) -> Self {
        let (Some(truth), Some(predicted)) = (truth.dims(), predicted.dims()) else {
            return Self::AsItIs;
        };
        match (truth, predicted) {
            (_, [samples @ .., 1]) if samples.len() == truth.len() => Self::Expanded,
            ([samples @ .., 1], _) if samples.len() == predicted.len() => Self::Squeezed,
            _ => Self::AsItIs,
        }
    }
}

/// Brings truths to the rank of predictions: otherwise `(batch)` and `(batch, 1)` broadcast to each
/// truth with each prediction.
pub(super) fn same_rank<C: Context + ?Sized>(
    cx: &C,
    truth: &C::Value,
    predicted: &C::Value,
) -> Result<C::Value> {
    match Fit::of(&truth.shape()?, &predicted.shape()?) {
        Fit::AsItIs => Ok(truth.clone()),
        Fit::Expanded => ops::expand_dims(cx, truth, -1),
        Fit::Squeezed => {
            let squeeze_dims = Some(&[-1][..]);
            ops::squeeze(cx, truth, ops::SqueezeOptions { squeeze_dims })
        }
    }
}

/// The mean over the last dimension.
pub(super) fn last_mean<C: Context + ?Sized>(cx: &C, x: C::Value) -> Result<C::Value> {
    ops::mean(cx, x, -1, ops::MeanOptions::default())
}

/// The sum over the last dimension.
pub(super) fn last_sum<C: Context + ?Sized>(cx: &C, x: C::Value) -> Result<C::Value> {
    ops::sum(cx, x, -1, ops::SumOptions::default())
}

/// The sum of all elements: a scalar.
pub(super) fn total<C: Context + ?Sized>(cx: &C, x: C::Value) -> Result<C::Value> {
    let flat = ops::reshape(cx, x, [-1])?;
    ops::sum(cx, flat, 0, ops::SumOptions::default())
}

fn clip<C: Context + ?Sized>(cx: &C, x: &C::Value, low: f32, high: f32) -> Result<C::Value> {
    ops::minimum(cx, ops::maximum(cx, x, low)?, high)
}

/// Divides by the Euclidean norm over the last dimension.
pub(super) fn unit<C: Context + ?Sized>(cx: &C, x: &C::Value) -> Result<C::Value> {
    let keep = ops::SumOptions {
        keep_dims: Some(true),
    };
    let squares = ops::sum(cx, ops::square(cx, x)?, -1, keep)?;
    // Keras' smallest norm is 1e-12.
    ops::mul(
        cx,
        x,
        ops::rsqrt(cx, ops::maximum(cx, squares, 1e-24_f32)?)?,
    )
}

/// Divides by the sum over the last dimension, and keeps away from 0 and 1.
fn distribution<C: Context + ?Sized>(cx: &C, x: &C::Value) -> Result<C::Value> {
    let keep = ops::SumOptions {
        keep_dims: Some(true),
    };
    let share = ops::div(cx, x, ops::sum(cx, x, -1, keep)?)?;
    clip(cx, &share, EPSILON, 1.0 - EPSILON)
}

fn hinge<C: Context + ?Sized>(cx: &C, truth: &C::Value, y: &C::Value) -> Result<C::Value> {
    let product = ops::mul(cx, truth, y)?;
    ops::maximum(cx, ops::sub(cx, 1.0, product)?, 0.0)
}

fn binary_cross_entropy<C: Context + ?Sized>(
    cx: &C,
    truth: &C::Value,
    y: &C::Value,
    from_logits: bool,
) -> Result<C::Value> {
    if from_logits {
        // max(y, 0) - y * truth + log(1 + exp(-|y|)), which never overflows. Both parts choose by the
        // same condition, so that their slopes at zero belong together.
        let positive = ops::greater_equal(cx, y, 0.0)?;
        let above = ops::select_v2(cx, &positive, y, ops::zeros_like(cx, y)?)?;
        let size = ops::select_v2(cx, &positive, ops::neg(cx, y)?, y)?;
        let line = ops::sub(cx, above, ops::mul(cx, y, truth)?)?;
        return ops::add_v2(cx, line, ops::log1p(cx, ops::exp(cx, size)?)?);
    }
    let y = clip(cx, y, EPSILON, 1.0 - EPSILON)?;
    let yes = ops::mul(cx, truth, ops::log(cx, &y)?)?;
    let log = ops::log(cx, ops::sub(cx, 1.0, y)?)?;
    let no = ops::mul(cx, ops::sub(cx, 1.0, truth)?, log)?;
    ops::neg(cx, ops::add_v2(cx, yes, no)?)
}

/// Moves a distribution towards the uniform one.
fn smooth<C: Context + ?Sized>(cx: &C, truth: &C::Value, share: f32) -> Result<C::Value> {
    if share == 0.0 {
        return Ok(truth.clone());
    }
    let classes = as_type(cx, &last_dim(cx, truth)?, truth.dtype())?;
    let uniform = ops::div(cx, share, classes)?;
    ops::add_v2(cx, ops::mul(cx, truth, 1.0 - share)?, uniform)
}

/// The size of the last dimension: an int32 vector of one element.
fn last_dim<C: Context + ?Sized>(cx: &C, x: &C::Value) -> Result<C::Value> {
    let shape = ops::shape(cx, x, ops::ShapeOptions::default())?;
    let end = ops::StridedSliceOptions {
        end_mask: Some(1),
        ..Default::default()
    };
    ops::strided_slice(cx, shape, [-1], [0], [1], end)
}

/// Cross-entropy with logits of any rank. TensorFlow's op has rows only.
fn cross_entropy<C: Context + ?Sized>(
    cx: &C,
    truth: &C::Value,
    logits: &C::Value,
) -> Result<C::Value> {
    if logits.shape()?.rank() == Some(2) {
        return Ok(ops::softmax_cross_entropy_with_logits(cx, logits, truth)?.loss);
    }
    let rows = ops::concat_v2(cx, ([-1_i32], last_dim(cx, logits)?), 0)?;
    let flat = ops::softmax_cross_entropy_with_logits(
        cx,
        ops::reshape(cx, logits, &rows)?,
        ops::reshape(cx, truth, &rows)?,
    )?;
    like_samples(cx, flat.loss, logits)
}

/// Cross-entropy of class numbers with logits of any rank.
fn sparse_cross_entropy<C: Context + ?Sized>(
    cx: &C,
    truth: &C::Value,
    logits: &C::Value,
) -> Result<C::Value> {
    let truth = match truth.dtype() {
        DataType::INT32 | DataType::INT64 => truth.clone(),
        _ => as_type(cx, truth, DataType::INT64)?,
    };
    let classes = ops::reshape(cx, &truth, [-1])?;
    if logits.shape()?.rank() == Some(2) {
        return Ok(ops::sparse_softmax_cross_entropy_with_logits(cx, logits, classes)?.loss);
    }
    let rows = ops::concat_v2(cx, ([-1_i32], last_dim(cx, logits)?), 0)?;
    let rows = ops::reshape(cx, logits, rows)?;
    let flat = ops::sparse_softmax_cross_entropy_with_logits(cx, rows, classes)?;
    like_samples(cx, flat.loss, logits)
}

/// Gives a vector the shape of `x` without its last dimension.
fn like_samples<C: Context + ?Sized>(cx: &C, vector: C::Value, x: &C::Value) -> Result<C::Value> {
    let shape = ops::shape(cx, x, ops::ShapeOptions::default())?;
    let options = ops::StridedSliceOptions::default();
    let samples = ops::strided_slice(cx, shape, [0], [-1], [1], options)?;
    ops::reshape(cx, vector, samples)
}
