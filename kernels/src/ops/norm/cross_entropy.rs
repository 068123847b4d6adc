//! Cross-entropy of a softmax with labels, and its gradient with respect to the logits.

use crate::base::adapt::{Element, check_count, variants};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{Call, Inputs, KernelDef, OutputSink, TensorRef};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::scratch;
use crate::base::shape::Shape;
use crate::frame::rows;
use crate::math;
use crate::ops::moving::broadcast_to::broadcast_to;
use crate::simd::body::dispatch_simd;
use crate::simd::{Body, Simd};

/// Writes `softmax(logits)` row by row to `out`, and `log(sum(exp(logits - max)))` and the maximum
/// of each row through `each`.
struct Rows<'a, F> {
    logits: &'a [f32],
    /// Distance between rows of the logits: the width, or 0 if all rows are one.
    stride: usize,
    width: usize,
    out: &'a mut [f32],
    each: F,
}

impl<F: FnMut(usize, &[f32], &mut [f32], f64)> Body for Rows<'_, F> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        for (row, out) in self.out.chunks_mut(self.width).enumerate() {
            let x = &self.logits[row * self.stride..][..self.width];
            let largest = rows::largest(s, x);
            let sum = rows::weights(s, x, largest, out);
            rows::scale(s, out, 1.0 / sum);
            let shift = f64::from(largest) + math::log(f64::from(sum));
            (self.each)(row, x, out, shift);
        }
    }
}

/// For each row of `classes` logits and its label: `loss = -log(softmax(logits)[label])`, and
/// `backprop = softmax(logits)` less 1 at the label. Within 1e-6 of the exact values, relative to
/// the larger of 1 and the loss.
///
/// # Errors
/// [`Error::Index`] for a label outside `0..classes`, [`Error::Length`] if a slice does not fit.
pub fn sparse_softmax_cross_entropy<I: Element + TryInto<usize> + Into<i64>>(
    logits: &[f32],
    classes: usize,
    labels: &[I],
    loss: &mut [f32],
    backprop: &mut [f32],
    parallel: &dyn Parallel,
) -> Result<()> {
    let len = labels.len().checked_mul(classes);
    let len = len.ok_or(Error::Overflow {
        argument: "features",
    })?;
    check_count("features", logits.len(), len)?;
    check_count("backprop", backprop.len(), len)?;
    check_count("loss", loss.len(), labels.len())?;
    for &label in labels {
        if !label.try_into().is_ok_and(|label| label < classes) {
            return Err(Error::Index {
                argument: "labels",
                index: label.into(),
                limit: classes,
            });
        }
    }
    if len == 0 {
        return Ok(());
    }
    let chunk = chunk_len(parallel, len, classes, 8);
    for_each_chunk(parallel, backprop, chunk, &|start, out| {
        let labels = &labels[start / classes..];
        dispatch_simd(Rows {
            logits: &logits[start..],
            stride: classes,
            width: classes,
            out,
            each: |row: usize, _: &[f32], out: &mut [f32], _| {
                let label: usize = labels[row].try_into().unwrap_or(0);
                out[label] -= 1.0;
            },
        });
    });
    // The softmax is still in `backprop`, but its logarithm would lose small probabilities.
    for (row, loss) in loss.iter_mut().enumerate() {
        let x = &logits[row * classes..][..classes];
        let label: usize = labels[row].try_into().unwrap_or(0);
        *loss = dispatch_simd(Loss { x, label });
    }
    Ok(())
}

struct Loss<'a> {
    x: &'a [f32],
    label: usize,
}

impl Body for Loss<'_> {
    type Out = f32;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> f32 {
        let largest = rows::largest(s, self.x);
        let sum = rows::weights_sum(s, self.x, largest);
        math::log(f64::from(sum)) as f32 - (self.x[self.label] - largest)
    }
}

/// For each row of `classes` logits and labels: `loss = -sum(labels * log(softmax(logits)))`, and
/// `backprop = softmax(logits) - labels`. A slice of one row counts for all rows. Tolerance as for
/// [`sparse_softmax_cross_entropy`], times the sum of the labels.
///
/// # Errors
/// [`Error::Length`] if a slice does not fit.
pub fn softmax_cross_entropy(
    logits: &[f32],
    labels: &[f32],
    classes: usize,
    loss: &mut [f32],
    backprop: &mut [f32],
) -> Result<()> {
    let len = loss.len().checked_mul(classes);
    let len = len.ok_or(Error::Overflow {
        argument: "features",
    })?;
    check_count("backprop", backprop.len(), len)?;
    for (argument, found) in [("features", logits.len()), ("labels", labels.len())] {
        if found != classes {
            check_count(argument, found, len)?;
        }
    }
    if len == 0 {
        loss.fill(0.0);
        return Ok(());
    }
    let stride = |len: usize| if len == classes { 0 } else { classes };
    let label_stride = stride(labels.len());
    dispatch_simd(Rows {
        logits,
        stride: stride(logits.len()),
        width: classes,
        out: backprop,
        each: |row: usize, x: &[f32], out: &mut [f32], shift: f64| {
            let labels = &labels[row * label_stride..][..classes];
            let mut total = 0.0_f64;
            for ((out, &label), &x) in out.iter_mut().zip(labels).zip(x) {
                *out -= label;
                // NaN where an infinite logit meets a label of 0, as in TensorFlow.
                total += f64::from(label) * (shift - f64::from(x));
            }
            loss[row] = total as f32;
        },
    });
    Ok(())
}

/// `SparseSoftmaxCrossEntropyWithLogits` of TensorFlow.
pub static SPARSE_SOFTMAX_CROSS_ENTROPY_WITH_LOGITS: KernelDef = KernelDef {
    variants: variants!(["T": F32, "Tlabels": I32 I64];),
    outputs: |inputs, sink| {
        let (features, labels) = (inputs.shape(0, "features")?, inputs.shape(1, "labels")?);
        let [rows, _] = matrix("features", &features)?;
        crate::base::adapt::check_shape("labels", &labels, &Shape::new(&[rows])?)?;
        sink(DType::F32, labels)?;
        sink(DType::F32, features)
    },
    run: |call| match call.inputs.get(1, "labels")?.dtype() {
        DType::I32 => run_sparse::<i32>(call),
        _ => run_sparse::<i64>(call),
    },
    ..KernelDef::of("SparseSoftmaxCrossEntropyWithLogits")
};

fn matrix(argument: &'static str, shape: &Shape) -> Result<[usize; 2]> {
    <[usize; 2]>::try_from(&**shape).map_err(|_| Error::Rank {
        argument,
        found: shape.rank(),
        expected: "2",
    })
}

fn run_sparse<I: Element + TryInto<usize> + Into<i64>>(call: &mut Call<'_>) -> Result<()> {
    let (features, labels) = (
        call.inputs.get(0, "features")?,
        call.inputs.get(1, "labels")?,
    );
    let [_, classes] = matrix("features", features.shape())?;
    let parallel = call.parallel;
    let [loss, backprop] = call.outputs else {
        return Err(OUTPUTS);
    };
    sparse_softmax_cross_entropy(
        features.f32("features")?,
        classes,
        I::view(&labels, "labels")?,
        loss.f32_mut("loss")?,
        backprop.f32_mut("backprop")?,
        parallel,
    )
}

const OUTPUTS: Error = Error::Value {
    argument: "output",
    expected: "two output tensors",
};

/// `SoftmaxCrossEntropyWithLogits` of TensorFlow.
pub static SOFTMAX_CROSS_ENTROPY_WITH_LOGITS: KernelDef = KernelDef {
    variants: variants!(["T": F32];),
    outputs: outputs_dense,
    scratch: |inputs| {
        let (features, labels) = (inputs.shape(0, "features")?, inputs.shape(1, "labels")?);
        let shape = features.broadcast(&labels, ("features", "labels"))?;
        let stretched = [features, labels].map(|of| usize::from(is_stretched(&of, &shape)));
        scratch::f32_bytes((stretched[0] + stretched[1]) * shape.elements())
    },
    run: |call| {
        let (features, labels) = (
            call.inputs.get(0, "features")?,
            call.inputs.get(1, "labels")?,
        );
        let [loss, backprop] = call.outputs else {
            return Err(OUTPUTS);
        };
        let shape = *backprop.shape();
        let [_, classes] = matrix("backprop", &shape)?;
        let parallel = call.parallel;
        let mut free = scratch::f32s(call.scratch);
        let mut rows = |tensor: &TensorRef<'_>, values| {
            if !is_stretched(tensor.shape(), &shape) {
                return Ok(values);
            }
            let (out, rest) = core::mem::take(&mut free).split_at_mut(shape.elements());
            free = rest;
            broadcast_to((values, tensor.shape()), (&mut *out, &shape), parallel)?;
            Ok(&*out)
        };
        softmax_cross_entropy(
            rows(&features, features.f32("features")?)?,
            rows(&labels, labels.f32("labels")?)?,
            classes,
            loss.f32_mut("loss")?,
            backprop.f32_mut("backprop")?,
        )
    },
    ..KernelDef::of("SoftmaxCrossEntropyWithLogits")
};

/// Whether an argument has other rows than the result, and not one that counts for all.
fn is_stretched(of: &Shape, result: &Shape) -> bool {
    of.last() != result.last()
}

fn outputs_dense(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let (features, labels) = (inputs.shape(0, "features")?, inputs.shape(1, "labels")?);
    let shape = features.broadcast(&labels, ("features", "labels"))?;
    let [rows, _] = matrix("features", &shape)?;
    sink(DType::F32, Shape::new(&[rows])?)?;
    sink(DType::F32, shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Interleaved, numbers};

    #[test]
    fn losses_and_gradients_match_double_precision() {
        for classes in [1, 2, 10, 40, 1000] {
            let rows = 5;
            let logits: Vec<f32> = numbers(rows * classes, 3).iter().map(|x| x * 8.0).collect();
            let index: Vec<i64> = (0..rows).map(|row| (row * 7 % classes) as i64).collect();
            let mut weights = vec![0.0; rows * classes];
            for (row, &index) in index.iter().enumerate() {
                weights[row * classes + index as usize] = 1.0;
            }
            let mut loss = vec![f32::NAN; rows];
            let mut backprop = vec![f32::NAN; rows * classes];
            sparse_softmax_cross_entropy(
                &logits,
                classes,
                &index,
                &mut loss,
                &mut backprop,
                &Interleaved,
            )
            .unwrap();
            let mut dense_loss = vec![f32::NAN; rows];
            let mut dense_backprop = vec![f32::NAN; rows * classes];
            softmax_cross_entropy(
                &logits,
                &weights,
                classes,
                &mut dense_loss,
                &mut dense_backprop,
            )
            .unwrap();
            assert_eq!(backprop, dense_backprop);
            for (row, x) in logits.chunks(classes).enumerate() {
                let total: f64 = x.iter().map(|&x| f64::from(x).exp()).sum();
                let label = index[row] as usize;
                let exact = total.ln() - f64::from(x[label]);
                for loss in [loss[row], dense_loss[row]] {
                    assert!((f64::from(loss) - exact).abs() <= 1e-6 * exact.max(1.0));
                }
                for (class, &x) in x.iter().enumerate() {
                    let exact = f64::from(x).exp() / total - f64::from(u8::from(class == label));
                    assert!((f64::from(backprop[row * classes + class]) - exact).abs() <= 1e-6);
                }
            }
        }
    }

    #[test]
    fn labels_outside_are_refused() {
        for label in [-1_i32, 3] {
            let result = sparse_softmax_cross_entropy(
                &[0.0; 3],
                3,
                &[label],
                &mut [0.0],
                &mut [0.0; 3],
                &Interleaved,
            );
            assert!(matches!(
                result,
                Err(Error::Index {
                    argument: "labels",
                    limit: 3,
                    ..
                })
            ));
        }
    }

    #[test]
    fn an_infinite_logit_without_weight_has_no_number() {
        let mut loss = [0.0];
        let logits = [f32::NEG_INFINITY, 1.0];
        softmax_cross_entropy(&logits, &[0.0, 1.0], 2, &mut loss, &mut [0.0; 2]).unwrap();
        assert!(loss[0].is_nan());
        softmax_cross_entropy(&logits, &[0.5, 0.5], 2, &mut loss, &mut [0.0; 2]).unwrap();
        assert_eq!(loss, [f32::INFINITY]);
    }
}
