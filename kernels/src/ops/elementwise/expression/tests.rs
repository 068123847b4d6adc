//! Programs against the same arithmetic, element by element.

use std::sync::LazyLock;

use super::*;
use crate::simd::body::forced::same_bits;
use crate::testing::{Interleaved, numbers};
use crate::trial::{Attr, Tensor, run};

fn step(op: &str, a: i64, b: i64) -> [i64; 3] {
    [operation(op).unwrap().0, a, b]
}

/// `m * alpha / (sqrt(v) + epsilon)`, the step of Adam, of `m`, `v`, `alpha` and `epsilon`.
fn adam() -> Vec<i64> {
    [
        step("Mul", 0, 2),
        step("Sqrt", 1, 0),
        step("AddV2", 5, 3),
        step("RealDiv", 4, 6),
    ]
    .concat()
}

/// The outputs of a program with one.
fn one(out: &mut [f32]) -> super::evaluate::Outputs<'_> {
    [out, &mut [], &mut [], &mut []]
}

#[test]
fn results_of_steps_are_outputs() {
    use Extent::{Scalar, Whole};
    // a = (g - m) * c + m; b = g * g; the last: a / b, where b takes the place of g.
    let words = [
        step("Sub", 0, 1),
        step("Mul", 3, 2),
        step("AddV2", 1, 4),
        step("Square", 0, 0),
        step("RealDiv", 5, 6),
    ]
    .concat();
    for len in [0, 1, 16, 17, 256, 257, 5000, 200_000] {
        let (g, m) = (numbers(len, 1), numbers(len, 2));
        for forwarded in [0, 1] {
            let results = [3, 2];
            let program = Program::new(&words, &[Whole, Whole, Scalar], forwarded, &results);
            let program = program.unwrap();
            let mut outs = [g.clone(), vec![f32::NAN; len], vec![f32::NAN; len]];
            let [last, b, a] = &mut outs;
            let input = if forwarded == 1 { &[][..] } else { &g };
            let inputs = [input, &m, &[0.25]];
            evaluate(&program, &inputs, len, [last, b, a, &mut []], &Interleaved).unwrap();
            for i in 0..len {
                let (a, b) = ((g[i] - m[i]) * 0.25 + m[i], g[i] * g[i]);
                let expected = [a / b, b, a].map(f32::to_bits);
                assert_eq!(outs.each_ref().map(|out| out[i].to_bits()), expected);
            }
            let short = [&mut [][..], &mut [0.0], &mut [], &mut []];
            assert!(evaluate(&program, &inputs, len, short, &Interleaved).is_err());
        }
    }
    let new = |results: &[i64]| Program::new(&words, &[Whole, Whole, Scalar], 0, results);
    for results in [&[4][..], &[-1], &[5], &[2, 2], &[0, 1, 2, 3]] {
        assert!(new(results).is_err(), "{results:?}");
    }
    // A number is no output.
    let number = [step("Neg", 1, 0), step("Mul", 0, 2)].concat();
    assert!(Program::new(&number, &[Whole, Scalar], 0, &[0]).is_err());
}

#[test]
fn whole_tensors_and_numbers() {
    use Extent::{Scalar, Whole};
    for len in [0, 1, 5, 16, 17, 128, 129, 511, 512, 513, 5000, 200_000] {
        let m = numbers(len, 1);
        let v: Vec<f32> = numbers(len, 2).iter().map(|x| x * x).collect();
        let (alpha, epsilon) = (0.3_f32, 1e-3_f32);
        for forwarded in [0, 1, 2] {
            let extents = [Whole, Whole, Scalar, Scalar];
            let program = Program::new(&adam(), &extents, forwarded, &[]).unwrap();
            let found = same_bits(|| {
                let mut out =
                    [vec![f32::NAN; len], m.clone(), v.clone()][forwarded as usize].clone();
                let mut inputs = [&m[..], &v, &[alpha], &[epsilon]];
                if forwarded > 0 {
                    inputs[forwarded as usize - 1] = &[];
                }
                evaluate(&program, &inputs, len, one(&mut out), &Interleaved).unwrap();
                out
            });
            for ((found, m), v) in found.iter().zip(&m).zip(&v) {
                let expected = m * alpha / (v.sqrt() + epsilon);
                assert_eq!(found.to_bits(), expected.to_bits());
            }
        }
    }
}

#[test]
fn rows_are_repeated_and_what_needs_them_alone_is_computed_once() {
    use Extent::{Row, Scalar, Whole};
    // (x - mean) * rsqrt(variance + epsilon) + mean
    let words = [
        step("AddV2", 2, 3),
        step("Rsqrt", 4, 0),
        step("Sub", 0, 1),
        step("Mul", 6, 5),
        step("AddV2", 1, 7),
    ]
    .concat();
    let program = Program::new(&words, &[Whole, Row, Row, Scalar], 0, &[]).unwrap();
    for (rows, width) in [
        (1, 1),
        (3, 5),
        (4, 4),
        (50, 3),
        (7, 512),
        (900, 96),
        (2, 300),
    ] {
        let (x, mean) = (numbers(rows * width, 1), numbers(width, 2));
        let variance: Vec<f32> = numbers(width, 3).iter().map(|x| x * x).collect();
        let inputs = [&x[..], &mean, &variance, &[1e-3]];
        let found = same_bits(|| {
            let mut out = vec![f32::NAN; x.len()];
            evaluate(&program, &inputs, width, one(&mut out), &Interleaved).unwrap();
            out
        });
        for (i, found) in found.iter().enumerate() {
            let (mean, variance) = (mean[i % width], variance[i % width]);
            let root = 1.0 / (variance + 1e-3_f32).sqrt();
            let expected = mean + (x[i] - mean) * root;
            assert_eq!(found.to_bits(), expected.to_bits());
        }
    }
}

#[test]
fn the_definition_takes_shapes_and_buffers() {
    static ADAM: LazyLock<Vec<i64>> = LazyLock::new(adam);
    let given = |extents| {
        [
            ("program", Attr::Ints(&ADAM)),
            ("results", Attr::Ints(&[])),
            ("extents", Attr::Ints(extents)),
        ]
    };
    let attrs = given(&[]);
    let inputs = |dims: &[usize], row: &[usize]| {
        let ones = |dims: &[usize]| Tensor::f32(dims, &vec![1.0; dims.iter().product()]);
        [ones(dims), ones(row), ones(&[]), ones(&[])]
    };
    for forward in [false, true] {
        for (dims, row) in [
            (&[2, 3][..], &[2, 3][..]),
            (&[2, 3], &[3]),
            (&[4, 2, 3], &[1, 1, 3]),
            (&[1, 3], &[3]),
            (&[0, 3], &[3]),
            (&[], &[]),
            (&[1], &[]),
        ] {
            let out = run(&DEF, &attrs, &inputs(dims, row), forward).unwrap();
            assert_eq!(out[0].dims, dims);
            assert!(out[0].to_f32().iter().all(|&x| x == 0.5));
        }
    }
    assert!(run(&DEF, &attrs, &inputs(&[2, 3], &[2, 1]), false).is_err());
    assert!(run(&DEF, &attrs, &inputs(&[2, 3], &[2]), false).is_err());
    assert!(run(&DEF, &[], &inputs(&[2], &[2]), false).is_err());
    let wide = inputs(&[2, MAX_ROW + 1], &[MAX_ROW + 1]);
    assert!(run(&DEF, &attrs, &wide, false).is_err());
    // Of fewer elements than whoever made the program knew of.
    for (extents, row, fits) in [
        (&[2, 2, 0, 0], &[2, 3][..], true),
        (&[2, 1, 0, 0], &[2, 3], true),
        (&[2, 1, 0, 0], &[3], true),
        (&[2, 2, 0, 0], &[3], false),
        (&[2, 1, 0, 0], &[1], false),
    ] {
        let found = run(&DEF, &given(extents), &inputs(&[2, 3], row), false);
        assert_eq!(found.is_ok(), fits, "{extents:?} {row:?}");
    }
}

#[test]
fn gradients_have_one_shape() {
    use Extent::{Row, Scalar, Whole};
    let (code, operands) = operation("TanhGrad").unwrap();
    assert_eq!(operands, 2);
    let program = |extents: [Extent; 2]| Program::new(&[code, 0, 1], &extents, 0, &[]);
    assert!(program([Whole, Whole]).is_ok());
    for extents in [[Whole, Scalar], [Row, Whole], [Whole, Row]] {
        assert!(program(extents).is_err());
    }
}

#[test]
fn what_is_no_program_is_refused() {
    use Extent::{Scalar, Whole};
    let refused = |words: &[i64], extents: &[Extent]| Program::new(words, extents, 0, &[]).is_err();
    assert!(refused(&[], &[Whole]));
    assert!(refused(&[0, 0], &[Whole]));
    assert!(refused(&step("Neg", 1, 0), &[Whole]));
    assert!(refused(&step("Neg", -1, 0), &[Whole]));
    assert!(refused(&[9999, 0, 0], &[Whole]));
    assert!(refused(&step("Neg", 0, 0), &[Scalar]));
    assert!(refused(&step("Neg", 0, 0), &[Whole; MAX_INPUTS + 1]));
    assert!(refused(&step("Neg", 0, 0).repeat(MAX_STEPS + 1), &[Whole]));
    // A sum of many values that are all needed at the end.
    let many: Vec<i64> = (0..16).flat_map(|_| step("Exp", 0, 0)).collect();
    let sum: Vec<i64> = (0..7).flat_map(|i| step("Add", 1 + i, 16 - i)).collect();
    let mut extents = [Scalar; MAX_INPUTS];
    extents[0] = Whole;
    let sum: Vec<i64> = sum
        .chunks(3)
        .flat_map(|s| [s[0], s[1] + 11, s[2] + 11])
        .collect();
    assert!(refused(&[many, sum].concat(), &extents));
    assert!(operation("Conv2D").is_none());
}

#[test]
fn an_output_without_whole_rows_is_refused() {
    use Extent::{Row, Whole};
    let program = Program::new(&step("Add", 0, 1), &[Whole, Row], 0, &[]).unwrap();
    let refused = |len: usize, row: usize| {
        let (x, y) = (vec![1.0; len], vec![1.0; row]);
        let mut out = vec![0.0; len];
        let result = evaluate(&program, &[&x, &y], row, one(&mut out), &Interleaved);
        match result {
            Err(Error::Length {
                argument, found, ..
            }) => Some((argument, found)),
            _ => None,
        }
    };
    assert_eq!(refused(5, 0), Some(("outputs", 5)));
    assert_eq!(refused(5, 3), Some(("outputs", 5)));
    let long = MAX_ROW + 1;
    assert_eq!(refused(2 * long + 1, long), Some(("outputs", 2 * long + 1)));
    assert_eq!(refused(2 * long, long), Some(("inputs", long)));
    assert_eq!(refused(6, 3), None);
    assert_eq!(refused(0, 3), None);
    assert_eq!(refused(0, 0), None);
}
