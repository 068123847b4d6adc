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
fn one<E>(out: &mut [E]) -> super::evaluate::Outputs<'_, E> {
    [out, &mut [], &mut [], &mut []]
}

/// Inputs of `f32`; an empty one is in the output's buffer.
fn wide<'a, const N: usize>(inputs: [&'a [f32]; N], loaded: u32) -> [Values<'a>; N] {
    core::array::from_fn(|number| match loaded >> number & 1 {
        0 => Values::Wide(inputs[number]),
        _ => Values::Output,
    })
}

/// Evaluates a program of `f32` on inputs none of which is loaded.
fn plain(
    program: &Program,
    inputs: &[&[f32]],
    row: usize,
    outputs: super::evaluate::Outputs<'_, f32>,
) -> Result<()> {
    let inputs: Vec<_> = inputs.iter().map(|values| Values::Wide(values)).collect();
    evaluate(program, &inputs, row, Wide, outputs, &Interleaved)
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
            let inputs = wide([&g, &m, &[0.25]], forwarded);
            let all = [&mut last[..], b, a, &mut []];
            evaluate(&program, &inputs, len, Wide, all, &Interleaved).unwrap();
            for i in 0..len {
                let (a, b) = ((g[i] - m[i]) * 0.25 + m[i], g[i] * g[i]);
                let expected = [a / b, b, a].map(f32::to_bits);
                assert_eq!(outs.each_ref().map(|out| out[i].to_bits()), expected);
            }
            let short = [&mut [][..], &mut [0.0], &mut [], &mut []];
            assert!(evaluate(&program, &inputs, len, Wide, short, &Interleaved).is_err());
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
                let numbers = [[alpha], [epsilon]];
                let inputs = wide([&m[..], &v, &numbers[0], &numbers[1]], forwarded);
                evaluate(&program, &inputs, len, Wide, one(&mut out), &Interleaved).unwrap();
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
            plain(&program, &inputs, width, one(&mut out)).unwrap();
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
            ("T", Attr::Type(DType::F32)),
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

/// The numbers, rounded to those of the type.
fn kept(half: Half, mut x: Vec<f32>) -> Vec<f32> {
    half.keep(&mut x);
    x
}

fn bits(half: Half, x: &[f32]) -> Vec<u16> {
    let mut bits = vec![0; x.len()];
    half.round(x, &mut bits);
    bits
}

fn of(op: &str, dtype: DType, a: i64, b: i64) -> [i64; 3] {
    let [operation, ..] = step(op, a, b);
    [step_of(operation, dtype).unwrap(), a, b]
}

#[test]
fn steps_of_16_bit_floats_round_as_separate_ops() {
    use Extent::{Row, Scalar, Whole};
    for (half, dtype) in [(Half::F16, DType::F16), (Half::BF16, DType::BF16)] {
        // cast(tanh(x * y) + row), of which x, y and the product are narrow and the row is not.
        let words = [
            of("Mul", dtype, 0, 1),
            of("Tanh", dtype, 4, 0),
            of("AddV2", DType::F32, 5, 2),
            of("Mul", DType::F32, 6, 3),
            of("Cast", dtype, 7, 0),
        ]
        .concat();
        let extents = [Whole, Whole, Row, Scalar];
        for (rows, width) in [(1, 1), (3, 5), (40, 33), (300, 96), (3, 512), (0, 4)] {
            let len = rows * width;
            let [x, y] = [1, 2].map(|seed| kept(half, numbers(len, seed)));
            let (row, number) = (numbers(width, 3), kept(half, vec![0.3]));
            let [x_bits, y_bits, number_bits] = [&x, &y, &number].map(|x| bits(half, x));
            let product: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x * y).collect();
            let mut root = vec![0.0; len];
            map_one::<one::Tanh>(&kept(half, product.clone()), &mut root);
            let root = kept(half, root);
            let sum = root.iter().enumerate();
            let sum: Vec<f32> = sum.map(|(i, x)| (x + row[i % width]) * number[0]).collect();
            for (loaded, forwarded) in [(0b1011, false), (0b1011, true)] {
                let results = [0];
                let program = Program::new(&words, &extents, loaded, &results).unwrap();
                let narrow = |bits| Values::Narrow(half, bits);
                let inputs = [
                    if forwarded {
                        Values::Output
                    } else {
                        narrow(&x_bits[..])
                    },
                    narrow(&y_bits[..]),
                    Values::Wide(&row),
                    narrow(&number_bits[..]),
                ];
                let (mut out, mut other) = (x_bits.clone(), vec![0xFFFF; len]);
                let outputs = [&mut out[..], &mut other, &mut [], &mut []];
                evaluate(&program, &inputs, width, half, outputs, &Interleaved).unwrap();
                assert_eq!(out, bits(half, &sum));
                assert_eq!(other, bits(half, &product));
            }
        }
        // Outputs of f32 from narrow inputs.
        let words = of("Neg", DType::F32, 0, 0);
        let x_bits = bits(half, &kept(half, numbers(700, 1)));
        let mut out = vec![0.0; 700];
        let inputs = [Values::Narrow(half, &x_bits)];
        let program = Program::new(&words, &[Whole], 1, &[]).unwrap();
        evaluate(&program, &inputs, 700, Wide, one(&mut out), &Interleaved).unwrap();
        let negative: Vec<f32> = out.iter().map(|x| -x).collect();
        assert_eq!(bits(half, &negative), x_bits);
        // What is not loaded can't be narrow.
        let program = Program::new(&words, &[Whole], 0, &[]).unwrap();
        assert!(evaluate(&program, &inputs, 700, Wide, one(&mut out), &Interleaved).is_err());
    }
    assert_eq!(step_of(0, DType::F64), None);
    let beyond = 3 * i64::try_from(OPERATIONS.len()).unwrap();
    assert!(Program::new(&[beyond, 0, 0], &[Whole], 0, &[]).is_err());
}

#[test]
fn the_definition_takes_tensors_of_several_types() {
    let program: &'static [i64] =
        Vec::leak([of("Mul", DType::F32, 0, 1), of("Cast", DType::BF16, 2, 0)].concat());
    let attrs = [
        ("T", Attr::Type(DType::BF16)),
        ("program", Attr::Ints(program)),
        ("results", Attr::Ints(&[])),
        ("extents", Attr::Ints(&[])),
    ];
    let narrow = |values: &[f32]| {
        let bytes = bits(Half::BF16, values);
        let bytes: Vec<u8> = bytes.iter().flat_map(|bits| bits.to_ne_bytes()).collect();
        Tensor::new(DType::BF16, &[3], &bytes)
    };
    let inputs = [narrow(&[1.0, 2.0, -3.0]), Tensor::f32(&[], &[0.5])];
    for forward in [false, true] {
        let found = run(&DEF, &attrs, &inputs, forward).unwrap();
        assert_eq!(found[0], narrow(&[0.5, 1.0, -1.5]));
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
        let result = plain(&program, &[&x, &y], row, one(&mut out));
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
