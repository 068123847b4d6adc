//! Calls of matmuls and convolutions.

use super::{Checked, kernel};
use crate::compare::Tolerance;
use crate::run::Case;
use crate::tensor::{Attr, Random, Table, Tensor};

/// Sums of `k` products of numbers below 1, in another order than the CPU's; activations multiply an error by
/// at most 1.76.
fn checked(case: Case, k: usize) -> Checked {
    Checked {
        case,
        tolerance: Tolerance {
            absolute: 4e-7 * (k as f64).sqrt() + 1e-6,
            relative: 2e-6,
        },
        must: true,
    }
}

const ACTIVATIONS: &[&str] = &[
    "",
    "Relu",
    "Relu6",
    "Elu",
    "Selu",
    "Sigmoid",
    "Softplus",
    "Softsign",
    "Tanh",
    "LeakyRelu",
];

/// Numbers with NaN and infinities among them.
fn special_bias(random: &mut Random, n: usize) -> Tensor {
    let mut data: Vec<f32> = (0..n).map(|_| random.number() * 2.0).collect();
    data[1] = f32::NAN;
    data[2] = f32::INFINITY;
    data[3] = f32::NEG_INFINITY;
    Tensor::f32(&[n], &data)
}

fn matmuls(random: &mut Random, out: &mut Vec<Checked>) {
    let mut sizes = vec![
        [1, 1, 1],
        [3, 5, 7],
        [64, 64, 64],
        [65, 66, 17],
        [33, 40, 300],
        [5, 10, 2000],
        [128, 128, 16],
        [130, 100, 40],
        [1536, 1408, 16],
        [1530, 1403, 33],
        [1, 300, 200],
    ];
    sizes.push([
        random.between(1, 200),
        random.between(1, 200),
        random.between(1, 200),
    ]);
    for [m, n, k] in sizes {
        for flags in 0..4 {
            let (ta, tb) = (flags & 1 == 1, flags & 2 == 2);
            let a = if ta { [k, m] } else { [m, k] };
            let b = if tb { [n, k] } else { [k, n] };
            let inputs = vec![random.tensor(&a, 1.0), random.tensor(&b, 1.0)];
            let mut case = Case::new(kernel("MatMul"), inputs);
            case.attrs = Table(vec![
                ("transpose_a", Attr::Bool(ta)),
                ("transpose_b", Attr::Bool(tb)),
            ]);
            out.push(checked(case, k));
        }
    }
    for (number, &activation) in ACTIVATIONS.iter().enumerate() {
        let (n, k) = ([12, 7][number % 2], [30, 600][number / 2 % 2]);
        let inputs = vec![
            random.tensor(&[9, k], 1.0),
            random.tensor(&[k, n], 1.0),
            special_bias(random, n),
        ];
        let mut case = Case::new(kernel("TfpFusedMatMul"), inputs);
        case.attrs = Table(vec![
            ("transpose_a", Attr::Bool(false)),
            ("transpose_b", Attr::Bool(false)),
            ("activation", Attr::Text(activation)),
            ("alpha", Attr::Float(0.3)),
        ]);
        out.push(checked(case, k));
    }
    let batches: &[(&[usize], &[usize])] = &[
        (&[4], &[4]),
        (&[2, 3], &[3]),
        (&[], &[5]),
        (&[2, 3], &[2, 3]),
        (&[2, 1], &[2, 4]),
        (&[3, 1], &[1, 2]),
    ];
    for (number, (x, y)) in batches.iter().enumerate() {
        for (m, n, k) in [(6, 8, 12), (70, 5, 33)] {
            let (ta, tb) = (number % 2 == 1, number % 3 == 1);
            let a = [*x, &(if ta { [k, m] } else { [m, k] })].concat();
            let b = [*y, &(if tb { [n, k] } else { [k, n] })].concat();
            let inputs = vec![random.tensor(&a, 1.0), random.tensor(&b, 1.0)];
            let mut case = Case::new(kernel("BatchMatMulV2"), inputs);
            case.attrs = Table(vec![("adj_x", Attr::Bool(ta)), ("adj_y", Attr::Bool(tb))]);
            out.push(checked(case, k));
        }
    }
}

/// Image, filter, stride, dilation, padding.
type Sizes = ([usize; 4], [usize; 4], [i64; 2], &'static str);

const CONVOLUTIONS: &[Sizes] = &[
    ([2, 7, 9, 4], [3, 3, 4, 8], [1, 1], "SAME"),
    ([1, 8, 8, 3], [5, 3, 3, 7], [2, 1], "VALID"),
    ([2, 6, 5, 8], [1, 1, 8, 12], [1, 1], "SAME"),
    ([2, 9, 9, 4], [1, 1, 4, 4], [2, 1], "VALID"),
    ([1, 12, 11, 5], [3, 2, 5, 6], [1, 2], "SAME"),
    ([3, 15, 14, 3], [7, 7, 3, 16], [2, 1], "SAME"),
    ([2, 20, 20, 16], [3, 3, 16, 32], [1, 1], "SAME"),
    // These fill large tiles: an image, its gradient, and that of a filter.
    ([8, 46, 46, 68], [2, 2, 68, 68], [1, 1], "SAME"),
    ([1, 5, 5, 512], [3, 3, 512, 512], [1, 1], "SAME"),
];

/// The attributes of a convolution.
#[must_use]
pub fn attributes([stride, dilation]: [i64; 2], padding: &'static str) -> Table {
    Table(vec![
        ("strides", Attr::Ints(vec![1, stride, stride, 1])),
        ("dilations", Attr::Ints(vec![1, dilation, dilation, 1])),
        ("padding", Attr::Text(padding)),
        ("explicit_paddings", Attr::Ints(vec![])),
        ("data_format", Attr::Text("NHWC")),
        ("use_cudnn_on_gpu", Attr::Bool(true)),
    ])
}

fn sizes(dims: &[usize]) -> Tensor {
    let dims: Vec<i32> = dims
        .iter()
        .map(|&dim| i32::try_from(dim).unwrap_or(0))
        .collect();
    Tensor::i32(&[dims.len()], &dims)
}

/// A convolution and its gradients.
#[must_use]
pub fn convolution(
    random: &mut Random,
    (image, filter): ([usize; 4], [usize; 4]),
    attrs: &Table,
) -> Option<[Case; 3]> {
    let (x, w) = (random.tensor(&image, 1.0), random.tensor(&filter, 1.0));
    let mut forward = Case::new(kernel("Conv2D"), vec![x.clone(), w.clone()]);
    forward.attrs = attrs.clone();
    let dims = forward.output_dims()?;
    let gradient = random.tensor(&dims, 1.0);
    let inputs = vec![sizes(&image), w, gradient.clone()];
    let mut by_input = Case::new(kernel("Conv2DBackpropInput"), inputs);
    by_input.attrs = attrs.clone();
    by_input.host = vec![0];
    let inputs = vec![x, sizes(&filter), gradient];
    let mut by_filter = Case::new(kernel("Conv2DBackpropFilter"), inputs);
    by_filter.attrs = attrs.clone();
    by_filter.host = vec![1];
    Some([forward, by_input, by_filter])
}

/// Calls of matmuls and convolutions.
#[must_use]
pub fn cases(seed: u64) -> Vec<Checked> {
    let mut random = Random::new(seed + 100);
    let mut out = Vec::new();
    matmuls(&mut random, &mut out);
    for (number, &(image, filter, moves, padding)) in CONVOLUTIONS.iter().enumerate() {
        let attrs = attributes(moves, padding);
        for case in convolution(&mut random, (image, filter), &attrs)
            .into_iter()
            .flatten()
        {
            // Winograd's sums of the CPU are less exact.
            let k = match case.def.op {
                "Conv2D" => filter[..3].iter().product::<usize>(),
                "Conv2DBackpropInput" => filter[0] * filter[1] * filter[3],
                _ => image[..3].iter().product(),
            };
            out.push(checked(case, 16 * k));
        }
        let inputs = vec![
            random.tensor(&image, 1.0),
            random.tensor(&filter, 1.0),
            random.tensor(&[filter[3]], 1.0),
        ];
        let mut case = Case::new(kernel("TfpFusedConv2D"), inputs);
        case.attrs = attrs;
        case.attrs
            .0
            .push(("activation", Attr::Text(ACTIVATIONS[number])));
        case.attrs.0.push(("alpha", Attr::Float(0.3)));
        if number % 2 == 0
            && let Some(dims) = case.output_dims()
        {
            case.inputs.push(random.tensor(&dims, 1.0));
            if number % 4 == 0 {
                case.forwarded = vec![(3, 0)];
            }
        }
        out.push(checked(case, 16 * filter[..3].iter().product::<usize>()));
    }
    out
}
