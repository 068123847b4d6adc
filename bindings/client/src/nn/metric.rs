//! Metrics: what one reads while training.

use tfp_core::{Context, DataType, Error, Result, Value};
use tfp_ops as ops;

use super::Loss;
use super::loss::{last_mean, same_rank, total};
use super::policy::as_type;

/// Which values of a measure are better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Goal {
    /// Those that the measure by its name says: smaller losses and errors, larger accuracies.
    #[default]
    Auto,
    /// Smaller ones.
    Min,
    /// Larger ones.
    Max,
}

/// How many thresholds Keras' area under a curve has.
const AUC_THRESHOLDS: usize = 200;

/// What Keras adds to denominators.
const EPSILON: f64 = 1e-7;

/// A metric. Names and numbers are those of Keras 3.
///
/// A batch gives a vector of [`Metric::statistics`]; their sums over batches give the
/// [`Metric::result`]. So one definition serves both modes, and any number of batches.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Metric {
    /// The mean of a loss over all samples.
    Mean(Loss),
    /// The root of the mean squared error.
    RootMeanSquaredError,
    /// How often both are equal.
    Accuracy,
    /// How often a probability is on the right side of the threshold.
    BinaryAccuracy(f32),
    /// How often the largest output is the right class. Truths are one-hot.
    CategoricalAccuracy,
    /// How often the largest output is the right class. Truths are class numbers.
    SparseCategoricalAccuracy,
    /// How often the right class is among the `k` largest outputs. Truths are one-hot.
    TopK(u32),
    /// How often the right class is among the `k` largest outputs. Truths are class numbers.
    SparseTopK(u32),
    /// The cosine of the angle between truth and prediction, of each sample.
    CosineSimilarity,
    /// How many predictions above the threshold are of true ones.
    TruePositives(f32),
    /// How many predictions above the threshold are of others.
    FalsePositives(f32),
    /// How many other predictions are of true ones.
    FalseNegatives(f32),
    /// How many other predictions are of others.
    TrueNegatives(f32),
    /// The share of true ones among predicted ones; a prediction above the threshold is one.
    Precision(f32),
    /// The share of predicted ones among true ones; a prediction above the threshold is one.
    Recall(f32),
    /// The harmonic mean of [`Metric::Precision`] and [`Metric::Recall`].
    F1(f32),
    /// The area under the receiver operating characteristic, over 200 thresholds.
    Auc,
    /// The mean over classes of intersection over union. Truths and predictions are class numbers.
    MeanIou(u32),
    /// The coefficient of determination of one output.
    R2,
}

impl Metric {
    /// Returns the name that Keras' logs have.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean(loss) => loss.name(),
            Self::RootMeanSquaredError => "root_mean_squared_error",
            Self::Accuracy => "accuracy",
            Self::BinaryAccuracy(_) => "binary_accuracy",
            Self::CategoricalAccuracy => "categorical_accuracy",
            Self::SparseCategoricalAccuracy => "sparse_categorical_accuracy",
            Self::TopK(_) => "top_k_categorical_accuracy",
            Self::SparseTopK(_) => "sparse_top_k_categorical_accuracy",
            Self::CosineSimilarity => "cosine_similarity",
            Self::TruePositives(_) => "true_positives",
            Self::FalsePositives(_) => "false_positives",
            Self::FalseNegatives(_) => "false_negatives",
            Self::TrueNegatives(_) => "true_negatives",
            Self::Precision(_) => "precision",
            Self::Recall(_) => "recall",
            Self::F1(_) => "f1_score",
            Self::Auc => "auc",
            Self::MeanIou(_) => "mean_io_u",
            Self::R2 => "r2_score",
        }
    }

    /// Returns which values are better.
    #[must_use]
    pub fn goal(self) -> Goal {
        match self {
            Self::Mean(_)
            | Self::RootMeanSquaredError
            | Self::FalsePositives(_)
            | Self::FalseNegatives(_) => Goal::Min,
            Self::Accuracy
            | Self::BinaryAccuracy(_)
            | Self::CategoricalAccuracy
            | Self::SparseCategoricalAccuracy
            | Self::TopK(_)
            | Self::SparseTopK(_)
            | Self::CosineSimilarity
            | Self::TruePositives(_)
            | Self::TrueNegatives(_)
            | Self::Precision(_)
            | Self::Recall(_)
            | Self::F1(_)
            | Self::Auc
            | Self::MeanIou(_)
            | Self::R2 => Goal::Max,
        }
    }

    /// Computes a batch's statistics: a float32 vector, to be added to those of other batches.
    ///
    /// # Errors
    /// What TensorFlow says, as for shapes that don't fit.
    pub fn statistics<C: Context + ?Sized>(
        self,
        cx: &C,
        truth: &C::Value,
        predicted: &C::Value,
    ) -> Result<C::Value> {
        self.masked_statistics(cx, truth, predicted, None)
    }

    /// Computes a batch's statistics of the samples for which a mask is true; its shape is that of the
    /// predictions without their last dimension.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a mask of a metric that is not a mean
    /// over samples, and what TensorFlow says.
    pub fn masked_statistics<C: Context + ?Sized>(
        self,
        cx: &C,
        truth: &C::Value,
        predicted: &C::Value,
        mask: Option<&C::Value>,
    ) -> Result<C::Value> {
        let float = DataType::FLOAT;
        let sum_and_count = |cx: &C, values: C::Value| masked_sum(cx, values, mask);
        let is_mean = match self {
            Self::Mean(Loss::Dice | Loss::Tversky { .. }) => false,
            Self::Mean(_)
            | Self::CosineSimilarity
            | Self::BinaryAccuracy(_)
            | Self::CategoricalAccuracy
            | Self::SparseCategoricalAccuracy => true,
            _ => false,
        };
        if mask.is_some() && !is_mean {
            return Err(Error::argument(format!(
                "metric '{}' is measured over steps of which some are masked",
                self.name()
            )));
        }
        let truth = &match self {
            Self::SparseCategoricalAccuracy | Self::SparseTopK(_) => truth.clone(),
            _ => same_rank(cx, truth, predicted)?,
        };
        match self {
            Self::Mean(loss) => sum_and_count(cx, loss.per_sample(cx, truth, predicted)?),
            Self::CosineSimilarity => {
                let opposite = Loss::CosineSimilarity.per_sample(cx, truth, predicted)?;
                sum_and_count(cx, ops::neg(cx, opposite)?)
            }
            Self::RootMeanSquaredError => {
                let truth = as_type(cx, truth, predicted.dtype())?;
                sum_and_count(cx, ops::squared_difference(cx, predicted, truth)?)
            }
            Self::Accuracy => {
                let truth = as_type(cx, truth, predicted.dtype())?;
                let equal = ops::equal(cx, truth, predicted, ops::EqualOptions::default())?;
                sum_and_count(cx, as_type(cx, &equal, float)?)
            }
            Self::BinaryAccuracy(threshold) => {
                let truth = as_type(cx, truth, float)?;
                let yes = as_type(cx, &ops::greater(cx, predicted, threshold)?, float)?;
                let equal = ops::equal(cx, truth, yes, ops::EqualOptions::default())?;
                sum_and_count(cx, last_mean(cx, as_type(cx, &equal, float)?)?)
            }
            Self::CategoricalAccuracy => {
                let truth = ops::arg_max(cx, truth, -1, ops::ArgMaxOptions::default())?;
                sum_and_count(cx, hits(cx, &truth, predicted)?)
            }
            Self::SparseCategoricalAccuracy => {
                let truth = as_type(cx, truth, DataType::INT64)?;
                sum_and_count(cx, hits(cx, &truth, predicted)?)
            }
            Self::TopK(k) => {
                let truth = ops::arg_max(cx, truth, -1, ops::ArgMaxOptions::default())?;
                top(cx, &truth, predicted, k)
            }
            Self::SparseTopK(k) => top(cx, &as_type(cx, truth, DataType::INT64)?, predicted, k),
            Self::TruePositives(threshold)
            | Self::FalsePositives(threshold)
            | Self::FalseNegatives(threshold)
            | Self::TrueNegatives(threshold)
            | Self::Precision(threshold)
            | Self::Recall(threshold)
            | Self::F1(threshold) => confusion(cx, truth, predicted, &[threshold]),
            Self::Auc => {
                let inner = AUC_THRESHOLDS - 1;
                let thresholds: Vec<f32> = (0..AUC_THRESHOLDS)
                    .map(|index| match index {
                        0 => -(EPSILON as f32),
                        _ if index == inner => 1.0 + EPSILON as f32,
                        _ => (index as f64 / inner as f64) as f32,
                    })
                    .collect();
                confusion(cx, truth, predicted, &thresholds)
            }
            Self::MeanIou(classes) => {
                let cells = |classes: i32| Some((classes, classes.checked_mul(classes)?));
                let (classes, all) = i32::try_from(classes)
                    .ok()
                    .and_then(cells)
                    .ok_or_else(|| Error::argument(format!("MeanIou of {classes} classes")))?;
                let number = |x: &C::Value| -> Result<C::Value> {
                    ops::reshape(cx, as_type(cx, x, DataType::INT32)?, [-1])
                };
                let row = ops::mul(cx, number(truth)?, classes)?;
                let cell = ops::add_v2(cx, row, number(predicted)?)?;
                let options = ops::OneHotOptions::default();
                let cells = ops::one_hot(cx, cell, all, 1.0_f32, 0.0_f32, options)?;
                ops::sum(cx, cells, 0, ops::SumOptions::default())
            }
            Self::R2 => {
                let truth = as_type(cx, truth, float)?;
                let error = ops::squared_difference(cx, as_type(cx, predicted, float)?, &truth)?;
                let sums = [
                    total(cx, ops::square(cx, &truth)?)?,
                    total(cx, truth.clone())?,
                    total(cx, error)?,
                    total(cx, ops::ones_like(cx, truth)?)?,
                ];
                ops::pack(cx, &sums, ops::PackOptions::default())
            }
        }
    }

    /// Computes the metric from the sums of its statistics; zero when nothing was counted.
    #[must_use]
    pub fn result(self, sums: &[f64]) -> f64 {
        let ratio = |a: f64, b: f64| if b == 0.0 { 0.0 } else { a / b };
        let at = |index: usize| sums.get(index).copied().unwrap_or(0.0);
        match self {
            Self::RootMeanSquaredError => ratio(at(0), at(1)).sqrt(),
            Self::TruePositives(_) => at(0),
            Self::FalsePositives(_) => at(1),
            Self::FalseNegatives(_) => at(2),
            Self::TrueNegatives(_) => at(3),
            Self::Precision(_) => ratio(at(0), at(0) + at(1)),
            Self::Recall(_) => ratio(at(0), at(0) + at(2)),
            Self::F1(_) => ratio(2.0 * at(0), 2.0 * at(0) + at(1) + at(2)),
            Self::Auc => area(sums),
            Self::MeanIou(classes) => mean_iou(sums, classes as usize),
            Self::R2 => {
                let (squares, sum, error, count) = (at(0), at(1), at(2), at(3));
                let spread = squares - ratio(sum * sum, count);
                if spread == 0.0 {
                    0.0
                } else {
                    1.0 - error / spread
                }
            }
            _ => ratio(at(0), at(1)),
        }
    }
}

/// The sum and the number of all elements, or of those for which a mask is true.
fn masked_sum<C: Context + ?Sized>(
    cx: &C,
    x: C::Value,
    mask: Option<&C::Value>,
) -> Result<C::Value> {
    let x = as_type(cx, &x, DataType::FLOAT)?;
    if let Some(mask) = mask {
        let mask = as_type(cx, mask, DataType::FLOAT)?;
        let parts = [total(cx, ops::mul(cx, x, &mask)?)?, total(cx, mask)?];
        return ops::pack(cx, &parts, ops::PackOptions::default());
    }
    let count = ops::size(cx, &x, ops::SizeOptions::default())?;
    let parts = [total(cx, x)?, as_type(cx, &count, DataType::FLOAT)?];
    ops::pack(cx, &parts, ops::PackOptions::default())
}

/// One where the largest output is the right class.
fn hits<C: Context + ?Sized>(cx: &C, truth: &C::Value, predicted: &C::Value) -> Result<C::Value> {
    let class = ops::arg_max(cx, predicted, -1, ops::ArgMaxOptions::default())?;
    // Class numbers may have a last dimension of one, with which they would broadcast.
    let samples = ops::shape(cx, &class, ops::ShapeOptions::default())?;
    let truth = ops::reshape(cx, truth, samples)?;
    let equal = ops::equal(cx, truth, class, ops::EqualOptions::default())?;
    as_type(cx, &equal, DataType::FLOAT)
}

/// How often the right class is among the `k` largest outputs.
fn top<C: Context + ?Sized>(
    cx: &C,
    truth: &C::Value,
    predicted: &C::Value,
    k: u32,
) -> Result<C::Value> {
    let truth = ops::reshape(cx, truth, [-1])?;
    let hits = ops::in_top_kv2(cx, predicted, truth, i64::from(k))?;
    masked_sum(cx, as_type(cx, &hits, DataType::FLOAT)?, None)
}

/// True positives, false positives, false negatives and true negatives at each threshold, one
/// quantity after the other.
fn confusion<C: Context + ?Sized>(
    cx: &C,
    truth: &C::Value,
    predicted: &C::Value,
    thresholds: &[f32],
) -> Result<C::Value> {
    let row = |x: &C::Value| -> Result<C::Value> {
        ops::reshape(cx, as_type(cx, x, DataType::FLOAT)?, [1, -1])
    };
    let yes = row(truth)?;
    let no = ops::sub(cx, 1.0, &yes)?;
    let limits = ops::reshape(cx, thresholds, [-1, 1])?;
    let said = ops::greater(cx, row(predicted)?, limits)?;
    let said = as_type(cx, &said, DataType::FLOAT)?;
    let denied = ops::sub(cx, 1.0, &said)?;
    let count = |a: &C::Value, b: &C::Value| -> Result<C::Value> {
        ops::sum(cx, ops::mul(cx, a, b)?, 1, ops::SumOptions::default())
    };
    let counts = [
        count(&said, &yes)?,
        count(&said, &no)?,
        count(&denied, &yes)?,
        count(&denied, &no)?,
    ];
    ops::concat_v2(cx, &counts, 0)
}

/// The area under the curve of recall over false positive rate, by trapezoids.
fn area(sums: &[f64]) -> f64 {
    let count = sums.len() / 4;
    let point = |index: usize| {
        let (tp, fp) = (sums[index], sums[count + index]);
        let (fn_, tn) = (sums[2 * count + index], sums[3 * count + index]);
        let ratio = |a: f64, b: f64| if b == 0.0 { 0.0 } else { a / b };
        (ratio(fp, fp + tn), ratio(tp, tp + fn_))
    };
    (1..count)
        .map(|index| {
            let ((x0, y0), (x1, y1)) = (point(index - 1), point(index));
            (x0 - x1) * (y0 + y1) / 2.0
        })
        .sum()
}

/// The mean over the classes that occur.
fn mean_iou(sums: &[f64], classes: usize) -> f64 {
    if sums.len() != classes * classes {
        return 0.0;
    }
    let mut found = Vec::new();
    for class in 0..classes {
        let hits = sums[class * classes + class];
        let truths: f64 = sums[class * classes..][..classes].iter().sum();
        let said: f64 = (0..classes).map(|row| sums[row * classes + class]).sum();
        let union = truths + said - hits;
        if union > 0.0 {
            found.push(hits / (union + EPSILON));
        }
    }
    found.iter().sum::<f64>() / found.len().max(1) as f64
}
