//! Calls of poolings, depthwise convolutions, batch norms and cross-entropies.

use super::product::attributes;
use super::{Checked, kernel};
use crate::compare::Tolerance;
use crate::run::Case;
use crate::tensor::{Attr, Random, Table, Tensor};

fn checked(case: Case, absolute: f64) -> Checked {
    Checked {
        case,
        tolerance: Tolerance {
            absolute,
            relative: 2e-6,
        },
        must: true,
    }
}

/// Image, window, stride, padding.
const POOLINGS: &[([usize; 4], [i64; 2], i64, &str)] = &[
    ([2, 8, 8, 4], [2, 2], 2, "VALID"),
    ([1, 9, 7, 5], [3, 3], 2, "SAME"),
    ([3, 7, 7, 33], [3, 2], 1, "SAME"),
    ([2, 5, 6, 3], [5, 6], 1, "VALID"),
    ([1, 4, 4, 2], [1, 1], 3, "SAME"),
];

/// Few different numbers, so that extremes repeat, and NaN.
fn repeated(random: &mut Random, dims: &[usize]) -> Tensor {
    let len: usize = dims.iter().product();
    let mut data: Vec<f32> = (0..len).map(|_| (random.number() * 3.0).round()).collect();
    data[1] = f32::NAN;
    Tensor::f32(dims, &data)
}

fn ints(values: &[usize]) -> Tensor {
    let values = values
        .iter()
        .map(|&value| i32::try_from(value).unwrap_or(0));
    Tensor::i32(&[values.len()], &values.collect::<Vec<_>>())
}

fn poolings(random: &mut Random, out: &mut Vec<Checked>) {
    for &(image, [rows, columns], stride, padding) in POOLINGS {
        for kind in ["Max", "Avg"] {
            let x = if kind == "Max" {
                repeated(random, &image)
            } else {
                random.tensor(&image, 2.0)
            };
            let mut attrs = vec![
                ("ksize", Attr::Ints(vec![1, rows, columns, 1])),
                ("strides", Attr::Ints(vec![1, stride, stride, 1])),
                ("padding", Attr::Text(padding)),
                ("data_format", Attr::Text("NHWC")),
            ];
            let op = if kind == "Max" {
                attrs.push(("explicit_paddings", Attr::Ints(vec![])));
                ["MaxPool", "MaxPoolGrad"]
            } else {
                ["AvgPool", "AvgPoolGrad"]
            };
            let mut forward = Case::new(kernel(op[0]), vec![x.clone()]);
            forward.attrs = Table(attrs.clone());
            let dims = forward.output_dims().unwrap_or_default();
            let slope = random.tensor(&dims, 1.0);
            let mut gradient = if kind == "Max" {
                let y = random.tensor(&dims, 1.0);
                Case::new(kernel(op[1]), vec![x, y, slope])
            } else {
                Case::new(kernel(op[1]), vec![ints(&image), slope])
            };
            if kind == "Avg" {
                gradient.host = vec![0];
            }
            gradient.attrs = Table(attrs);
            // What moves or sums in the order of the CPU is equal; means multiply with a rounded number.
            let absolute = if kind == "Max" { 0.0 } else { 1e-6 };
            out.push(checked(forward, absolute));
            out.push(checked(gradient, absolute));
        }
    }
}

/// Image, filter, stride and dilation, padding.
type Depthwise = ([usize; 4], [usize; 4], [i64; 2], &'static str);

const DEPTHWISE: &[Depthwise] = &[
    ([2, 8, 9, 4], [3, 3, 4, 1], [1, 1], "SAME"),
    ([1, 9, 9, 3], [3, 2, 3, 2], [2, 1], "SAME"),
    ([2, 10, 9, 5], [3, 3, 5, 1], [1, 2], "VALID"),
    ([1, 6, 6, 70], [5, 5, 70, 1], [1, 1], "SAME"),
    ([4, 33, 31, 8], [3, 3, 8, 3], [2, 1], "VALID"),
];

fn depthwise(random: &mut Random, out: &mut Vec<Checked>) {
    for &(image, filter, moves, padding) in DEPTHWISE {
        let attrs = attributes(moves, padding);
        let (x, w) = (random.tensor(&image, 1.0), random.tensor(&filter, 1.0));
        let mut forward = Case::new(kernel("DepthwiseConv2dNative"), vec![x.clone(), w.clone()]);
        forward.attrs = attrs.clone();
        let dims = forward.output_dims().unwrap_or_default();
        let slope = random.tensor(&dims, 1.0);
        let inputs = vec![ints(&image), w, slope.clone()];
        let mut by_input = Case::new(kernel("DepthwiseConv2dNativeBackpropInput"), inputs);
        by_input.attrs = attrs.clone();
        by_input.host = vec![0];
        let inputs = vec![x, ints(&filter), slope];
        let mut by_filter = Case::new(kernel("DepthwiseConv2dNativeBackpropFilter"), inputs);
        by_filter.attrs = attrs;
        by_filter.host = vec![1];
        let pixels: usize = dims[..3].iter().product();
        let taps = filter[0] * filter[1] * filter[3];
        for (case, terms) in [(forward, taps), (by_input, taps), (by_filter, pixels)] {
            out.push(checked(case, 4e-7 * (terms as f64).sqrt() + 1e-6));
        }
    }
}

fn norms(random: &mut Random, out: &mut Vec<Checked>) {
    for (dims, share, training) in [
        (vec![4, 5, 6, 7], 1.0, true),
        (vec![2, 3, 3, 64], 0.1, true),
        (vec![8, 30, 30, 3], 1.0, true),
        (vec![1, 1, 1, 5], 1.0, true),
        (vec![2, 5, 5, 70], 1.0, false),
    ] {
        let channels = dims[3];
        let positive = |random: &mut Random| {
            let data: Vec<f32> = (0..channels).map(|_| random.number() + 1.5).collect();
            Tensor::f32(&[channels], &data)
        };
        let mut attrs = vec![
            ("epsilon", Attr::Float(1e-3)),
            ("data_format", Attr::Text("NHWC")),
            ("is_training", Attr::Bool(training)),
        ];
        let x = random.tensor(&dims, 3.0);
        let (mean, variance) = (random.tensor(&[channels], 1.0), positive(random));
        let scale = positive(random);
        let inputs = vec![
            random.tensor(&dims, 1.0),
            x.clone(),
            scale.clone(),
            mean.clone(),
            variance.clone(),
        ];
        let mut gradient = Case::new(kernel("FusedBatchNormGradV3"), inputs);
        gradient.attrs = Table(attrs.clone());
        let offset = random.tensor(&[channels], 1.0);
        attrs.push(("exponential_avg_factor", Attr::Float(share)));
        let inputs = vec![x, scale, offset, mean, variance];
        for op in ["FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"] {
            let mut forward = Case::new(kernel(op), inputs.clone());
            forward.attrs = Table(attrs.clone());
            out.push(checked(forward, 4e-6));
        }
        // Sums of as many products, in another order.
        let rows: usize = dims[..3].iter().product();
        for op in ["FusedBatchNormGrad", "FusedBatchNormGradV2"] {
            let mut case = Case::new(kernel(op), gradient.inputs.clone());
            case.attrs = gradient.attrs.clone();
            out.push(checked(case, 4e-6 * (rows as f64).sqrt()));
        }
        out.push(checked(gradient, 4e-6 * (rows as f64).sqrt()));
    }
}

fn cross_entropies(random: &mut Random, out: &mut Vec<Checked>) {
    for [rows, width] in [[1, 1], [5, 10], [33, 1000], [3, 257]] {
        let logits = random.tensor(&[rows, width], 8.0);
        let labels: Vec<i64> = (0..rows).map(|row| (row * 7 % width) as i64).collect();
        let short: Vec<i32> = labels.iter().map(|&label| label as i32).collect();
        let sparse = "SparseSoftmaxCrossEntropyWithLogits";
        for labels in [Tensor::i64(&[rows], &labels), Tensor::i32(&[rows], &short)] {
            let case = Case::new(kernel(sparse), vec![logits.clone(), labels]);
            out.push(checked(case, 2e-6));
        }
        let labels = random.tensor(&[rows, width], 1.0);
        let dense = kernel("SoftmaxCrossEntropyWithLogits");
        let case = Case::new(dense, vec![logits, labels]);
        // As many terms of up to 16.
        out.push(checked(case, 4e-6 * width as f64));
    }
}

/// Calls of poolings, depthwise convolutions, batch norms and cross-entropies.
#[must_use]
pub fn cases(seed: u64) -> Vec<Checked> {
    let mut random = Random::new(seed + 400);
    let mut out = Vec::new();
    poolings(&mut random, &mut out);
    depthwise(&mut random, &mut out);
    norms(&mut random, &mut out);
    cross_entropies(&mut random, &mut out);
    out
}
