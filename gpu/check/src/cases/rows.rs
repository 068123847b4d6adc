//! Calls of softmax and reductions.

use tfp_kernels::base::dtype::DType;

use super::{Checked, kernel};
use crate::compare::Tolerance;
use crate::run::Case;
use crate::tensor::{Attr, Random, Table, Tensor};

/// Calls of softmax and reductions.
#[must_use]
pub fn cases(seed: u64) -> Vec<Checked> {
    let mut random = Random::new(seed + 200);
    let mut out = Vec::new();
    for dims in [
        vec![1],
        vec![3, 5],
        vec![2, 3, 256],
        vec![4, 1000],
        vec![70, 257],
        vec![300, 7],
    ] {
        let tolerance = Tolerance {
            absolute: 1e-6,
            relative: 3e-6,
        };
        for op in ["Softmax", "LogSoftmax"] {
            let case = Case::new(kernel(op), vec![random.tensor(&dims, 9.0)]);
            let must = true;
            out.push(Checked {
                case,
                tolerance,
                must,
            });
        }
        for op in ["Softmax", "LogSoftmax"] {
            for odd in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
                let mut data: Vec<f32> = (0..24).map(|_| random.number() * 9.0).collect();
                data[7] = odd;
                data[20] = f32::NEG_INFINITY;
                let case = Case::new(kernel(op), vec![Tensor::f32(&[3, 8], &data)]);
                let must = true;
                out.push(Checked {
                    case,
                    tolerance,
                    must,
                });
            }
            let case = Case::new(
                kernel(op),
                vec![Tensor::f32(&[2, 4], &[f32::NEG_INFINITY; 8])],
            );
            let must = true;
            out.push(Checked {
                case,
                tolerance,
                must,
            });
        }
        let rank = i32::try_from(dims.len()).unwrap_or(0);
        let all: Vec<i32> = (0..rank).collect();
        for op in ["Sum", "Mean", "Max", "Min"] {
            let mut lists = vec![&all[..], &[-1]];
            if op == "Sum" {
                lists.push(&all[..all.len() - 1]);
            }
            for axes in lists.into_iter().filter(|axes| !axes.is_empty()) {
                let axes = Tensor::i32(&[axes.len()], axes);
                let mut case = Case::new(kernel(op), vec![random.tensor(&dims, 1.0), axes]);
                case.attrs = Table(vec![("keep_dims", Attr::Bool(seed.is_multiple_of(2)))]);
                case.host = vec![1];
                // A sum of many numbers below 1 in another order.
                let absolute = 2e-7 * dims.iter().product::<usize>() as f64;
                let tolerance = Tolerance {
                    absolute,
                    ..tolerance
                };
                let must = true;
                out.push(Checked {
                    case,
                    tolerance,
                    must,
                });
            }
        }
        if dims.len() > 1 {
            for format in ["NHWC", "NCHW"] {
                let mut case = Case::new(kernel("BiasAddGrad"), vec![random.tensor(&dims, 1.0)]);
                case.attrs = Table(vec![("data_format", Attr::Text(format))]);
                let absolute = 2e-7 * dims.iter().product::<usize>() as f64;
                out.push(Checked {
                    case,
                    tolerance: Tolerance {
                        absolute,
                        relative: 3e-6,
                    },
                    must: true,
                });
            }
        }
    }
    middle(&mut random, &mut out);
    places(&mut random, &mut out);
    out
}

/// Where the largest and smallest elements are.
fn places(random: &mut Random, out: &mut Vec<Checked>) {
    for dims in [vec![7], vec![5, 10], vec![3, 2, 1000]] {
        let len: usize = dims.iter().product();
        let mut data: Vec<f32> = (0..len).map(|_| (random.number() * 9.0).round()).collect();
        data[1] = f32::NAN;
        if dims.len() == 2 {
            data[..10].fill(f32::NEG_INFINITY);
        }
        for (op, dtype) in [
            ("ArgMax", DType::I64),
            ("ArgMax", DType::I32),
            ("ArgMin", DType::I64),
        ] {
            let inputs = vec![Tensor::f32(&dims, &data), Tensor::i32(&[], &[-1])];
            let mut case = Case::new(kernel(op), inputs);
            case.attrs = Table(vec![("output_type", Attr::Type(dtype))]);
            case.host = vec![1];
            out.push(Checked {
                case,
                tolerance: Tolerance {
                    absolute: 0.0,
                    relative: 0.0,
                },
                must: true,
            });
        }
    }
}

/// Reductions of other axes than the last ones, and of many elements.
fn middle(random: &mut Random, out: &mut Vec<Checked>) {
    let cases: [(&[usize], &[i32]); 8] = [
        (&[2, 30, 5, 8], &[0, 1, 2]),
        (&[3, 17, 9, 64], &[1, 2]),
        (&[3, 700, 3], &[1]),
        (&[4, 5, 6, 7], &[0, 2]),
        (&[2, 6, 30, 20], &[0, 2, 3]),
        (&[40000], &[0]),
        (&[2, 20000], &[1]),
        (&[997, 70], &[0]),
    ];
    for (dims, axes) in cases {
        for op in ["Sum", "Mean", "Max", "Min"] {
            let inputs = vec![random.tensor(dims, 1.0), Tensor::i32(&[axes.len()], axes)];
            let mut case = Case::new(kernel(op), inputs);
            case.attrs = Table(vec![("keep_dims", Attr::Bool(false))]);
            case.host = vec![1];
            // Numbers below 1 in another order.
            let terms: usize = dims.iter().product();
            let absolute = match op {
                "Sum" => 4e-7 * (terms as f64).sqrt(),
                "Mean" => 2e-7,
                _ => 0.0,
            };
            out.push(Checked {
                case,
                tolerance: Tolerance {
                    absolute,
                    relative: 2e-6,
                },
                must: true,
            });
        }
    }
}
