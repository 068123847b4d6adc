//! Products against sums in f64, at every level.

use proptest::prelude::*;

use super::*;
use crate::base::parallel::Serial;
use crate::simd::available;
use crate::testing::{Interleaved, close, numbers};

#[derive(Clone, Debug)]
struct Case {
    size: (usize, usize, usize),
    transposed: (bool, bool),
    gaps: (usize, usize, usize),
    packed: bool,
    accumulate: bool,
    bias: bool,
    clamp: bool,
    /// Of A: a factor; a term and bounds, too.
    scale: (bool, bool),
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let dim = || prop_oneof![0..5_usize, 5..40_usize, 40..110_usize];
    let deep = prop_oneof![4 => dim(), 1 => 1000..1100_usize, 1 => 2000..2100_usize];
    (
        (dim(), dim(), deep),
        any::<(bool, bool)>(),
        (0..4_usize, 0..4_usize, 0..4_usize),
        any::<(bool, bool, bool, bool, u64)>(),
        any::<(bool, bool)>(),
    )
        .prop_map(
            |(size, transposed, gaps, (packed, accumulate, bias, clamp, seed), scale)| Case {
                size,
                transposed,
                gaps,
                packed,
                accumulate,
                bias,
                clamp,
                scale,
                seed,
            },
        )
}

fn lines(rows: usize, columns: usize, transposed: bool) -> (usize, usize) {
    if transposed {
        (columns, rows)
    } else {
        (rows, columns)
    }
}

/// A slice that ends with the last element of the matrix, so that a read past it is a panic.
fn matrix(shape: (usize, usize), gap: usize, seed: u64) -> (Vec<f32>, usize) {
    let ld = shape.1 + gap;
    let len = if shape.0 == 0 {
        0
    } else {
        (shape.0 - 1) * ld + shape.1
    };
    (numbers(len, seed), ld)
}

fn check(case: &Case) -> std::result::Result<(), TestCaseError> {
    let (m, n, k) = case.size;
    let (a, lda) = matrix(lines(m, k, case.transposed.0), case.gaps.0, case.seed);
    let (b, ldb) = matrix(lines(k, n, case.transposed.1), case.gaps.1, case.seed + 1);
    let (before, ldc) = matrix((m, n), case.gaps.2, case.seed + 2);
    let bias = numbers(n, case.seed + 3);
    let a = Matrix {
        data: &a,
        ld: lda,
        transposed: case.transposed.0,
    };
    let b = Matrix {
        data: &b,
        ld: ldb,
        transposed: case.transposed.1,
    };
    let at = |x: &Matrix<'_>, i: usize, j: usize| {
        f64::from(if x.transposed {
            x.data[j * x.ld + i]
        } else {
            x.data[i * x.ld + j]
        })
    };
    let (factors, terms) = (numbers(k, case.seed + 4), numbers(k, case.seed + 5));
    let (scaled, both) = case.scale;
    let scale = Scale {
        scale: &factors,
        shift: both.then_some(&terms),
        clamp: both.then_some((-0.3, 0.9)),
    };
    let scale = Some(scale).filter(|_| scaled && case.packed && !a.transposed);
    // An element of A, scaled, and the sizes of what it is the sum of.
    let of_a = |i: usize, p: usize| {
        let x = at(&a, i, p);
        let Some(scale) = scale else {
            return (x, x.abs());
        };
        let term = scale.shift.map_or(0.0, |terms| f64::from(terms[p]));
        let product = x * f64::from(factors[p]);
        let (low, high) = scale.clamp.unwrap_or((f32::NEG_INFINITY, f32::INFINITY));
        let value = (product + term).clamp(low.into(), high.into());
        (value, product.abs() + term.abs())
    };
    for level in available() {
        let mut memory = vec![f32::NAN; pack::packed_len(level, k, n).unwrap()];
        let plain = Gemm {
            level,
            ..Gemm::new((m, n, k), a, b)
        };
        let gemm = Gemm {
            bias: case.bias.then_some(&bias),
            scale,
            activation: if case.clamp {
                Activation::RELU6
            } else {
                Activation::None
            },
            accumulate: case.accumulate,
            ..if case.packed {
                let b = Packed::pack_for(level, &b, (k, n), &mut memory, &Serial).unwrap();
                Gemm::packed(m, a, b)
            } else {
                plain
            }
        };
        let mut c = before.clone();
        let mut scratch = vec![f32::NAN; gemm.scratch_len().unwrap()];
        gemm.run(&mut c, ldc, &mut scratch, &Interleaved).unwrap();
        for i in 0..m {
            for j in 0..n {
                let old = if case.accumulate {
                    f64::from(before[i * ldc + j])
                } else {
                    0.0
                };
                let shift = if case.bias { f64::from(bias[j]) } else { 0.0 };
                let start = (old + shift, old.abs() + shift.abs());
                let (sum, size) = (0..k).fold(start, |(sum, size), p| {
                    let ((x, most), y) = (of_a(i, p), at(&b, p, j));
                    (sum + x * y, size + most * y.abs())
                });
                let expected = if case.clamp { sum.clamp(0.0, 6.0) } else { sum };
                let tolerance = (k as f64 + 6.0) * 2.0_f64.powi(-24) * size + 1e-40;
                prop_assert!(
                    close(c[i * ldc + j], expected, tolerance),
                    "{} ({i}, {j}): {} instead of {expected}",
                    level.name(),
                    c[i * ldc + j]
                );
            }
            // What lies between the rows is not ours.
            let gap = i * ldc + n..c.len().min((i + 1) * ldc);
            prop_assert_eq!(&c[gap.clone()], &before[gap]);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn products_match_f64(case in case()) {
        check(&case)?;
    }
}

/// Columns of A that lie far apart are copied; those that follow each other are not.
#[test]
fn far_columns_give_the_same_bits() {
    for (m, n, k) in [
        (40, 100, 600),
        (29, 70, 513),
        (257, 49, 1030),
        (5, 300, 700),
    ] {
        let ld = m + 1000;
        let (near, _) = matrix((k, m), 0, 1);
        let mut far = vec![f32::NAN; (k - 1) * ld + m];
        for (line, from) in far.chunks_mut(ld).zip(near.chunks(m)) {
            line[..m].copy_from_slice(from);
        }
        assert!(!block::are_far(m, k) && block::are_far(ld, k));
        let (b, _) = matrix((k, n), 0, 2);
        for level in available() {
            let [expected, found] = [(&near, m), (&far, ld)].map(|(a, lda)| {
                let gemm = Gemm {
                    level,
                    ..Gemm::new((m, n, k), Matrix::columns(a, lda), Matrix::rows(&b, n))
                };
                let mut scratch = vec![f32::NAN; gemm.scratch_len().unwrap()];
                let mut c = vec![f32::NAN; m * n];
                gemm.run(&mut c, n, &mut scratch, &Serial).unwrap();
                c
            });
            assert_eq!(expected, found, "{} {m}x{n}x{k}", level.name());
        }
    }
}

/// One row or one column, of every number of vectors that a product of its own has.
#[test]
fn products_with_a_vector_match_f64() {
    for length in (1..=70).chain([95, 96, 97, 128, 129, 175]) {
        for (i, k) in [1, 2, 3, 7, 8, 9, 33].into_iter().enumerate() {
            for options in 0..16 {
                let [row, accumulate, clamp, packed] =
                    [0, 1, 2, 3].map(|bit| options >> bit & 1 == 1);
                check(&Case {
                    size: if row { (1, length, k) } else { (length, 1, k) },
                    transposed: (false, false),
                    gaps: (i % 3, length % 3, 0),
                    packed,
                    accumulate,
                    bias: (length + i) % 2 == 0,
                    clamp,
                    scale: (i % 2 == 1, length % 2 == 0),
                    seed: length as u64,
                })
                .unwrap();
            }
        }
    }
}

#[test]
fn nan_and_infinity_follow_ieee() {
    for level in available() {
        for m in [1, 3, 20] {
            let mut a = vec![1.0; m * 40];
            a[3] = f32::NAN;
            if m > 1 {
                a[40 + 3] = f32::INFINITY;
            }
            let b = vec![2.0; 40 * 21];
            let gemm = Gemm {
                level,
                activation: Activation::RELU,
                ..Gemm::new((m, 21, 40), Matrix::rows(&a, 40), Matrix::rows(&b, 21))
            };
            let mut c = vec![0.0; m * 21];
            let mut scratch = vec![f32::NAN; gemm.scratch_len().unwrap()];
            gemm.run(&mut c, 21, &mut scratch, &Serial).unwrap();
            assert!(c[..21].iter().all(|x| x.is_nan()));
            if m > 1 {
                assert!(c[21..42].iter().all(|&x| x == f32::INFINITY));
            }
            assert!(c[21.min(c.len())..].iter().skip(21).all(|&x| x == 80.0));
        }
    }
}

#[test]
fn short_arguments_are_named() {
    let data = [0.0; 64];
    let dense = |ld| Matrix::rows(&data, ld);
    let name = |gemm: &Gemm<'_>, c: usize, scratch: usize| match gemm.run(
        &mut vec![0.0; c],
        4,
        &mut vec![0.0; scratch],
        &Serial,
    ) {
        Err(Error::Length { argument, .. } | Error::Value { argument, .. }) => argument,
        other => panic!("{other:?}"),
    };
    let good = Gemm::new((16, 4, 4), dense(4), dense(4));
    let needed = good.scratch_len().unwrap();
    assert_eq!(name(&good, 63, needed), "c");
    assert_eq!(name(&good, 64, needed - 1), "scratch");
    assert_eq!(name(&Gemm { m: 17, ..good }, 99, needed), "a");
    assert_eq!(
        name(
            &Gemm {
                bias: Some(&data[..3]),
                ..good
            },
            64,
            needed
        ),
        "bias"
    );
    assert_eq!(
        name(
            &Gemm {
                a: dense(3),
                ..good
            },
            64,
            needed
        ),
        "a"
    );
    let scaled = |len| Gemm {
        scale: Some(Scale {
            scale: &data[..len],
            shift: None,
            clamp: None,
        }),
        ..good
    };
    assert_eq!(name(&scaled(4), 64, needed), "scale");
    let mut memory = vec![0.0; Packed::len(4, 4).unwrap()];
    let packed = Packed::pack(&dense(4), (4, 4), &mut memory, &Serial).unwrap();
    for (len, terms, short) in [(3, 4, "scale"), (4, 5, "shift")] {
        let scale = Scale {
            scale: &data[..len],
            shift: Some(&data[..terms]),
            clamp: None,
        };
        let gemm = Gemm {
            scale: Some(scale),
            ..Gemm::packed(16, dense(4), packed)
        };
        assert_eq!(name(&gemm, 64, 0), short);
    }
    let short = Gemm {
        b: Right::Plain(Matrix::rows(&data[..15], 4)),
        ..good
    };
    assert_eq!(name(&short, 64, needed), "b");
    let huge = Gemm {
        m: usize::MAX,
        k: usize::MAX,
        ..good
    };
    assert!(huge.run(&mut [], 4, &mut [], &Serial).is_err());
}

/// One row of few columns, which takes a path of its own only where all operands fit.
#[test]
fn short_arguments_of_a_row_are_named() {
    for level in available() {
        let run = |[a, b, bias, c]: [usize; 4], ld: usize| {
            let (a, b, bias) = (numbers(a, 1), numbers(b, 2), numbers(bias, 3));
            let gemm = Gemm {
                bias: Some(&bias),
                level,
                ..Gemm::new((1, 7, 5), Matrix::rows(&a, 5), Matrix::rows(&b, ld))
            };
            let mut c = vec![0.0; c];
            match gemm.run(&mut c, 7, &mut [], &Serial) {
                Ok(()) => "",
                Err(Error::Length { argument, .. } | Error::Value { argument, .. }) => argument,
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(run([5, 35, 7, 7], 7), "");
        assert_eq!(run([5, 39, 7, 9], 8), "");
        for (lengths, ld, short) in [
            ([4, 35, 7, 7], 7, "a"),
            ([5, 34, 7, 7], 7, "b"),
            ([5, 38, 7, 7], 8, "b"),
            ([5, 35, 7, 7], 6, "b"),
            ([5, 35, 6, 7], 7, "bias"),
            ([5, 35, 8, 7], 7, "bias"),
            ([5, 35, 7, 6], 7, "c"),
        ] {
            assert_eq!(run(lengths, ld), short, "{lengths:?} {ld}");
        }
    }
}

#[test]
fn map_sees_every_element_once() {
    fn negate(x: &mut [f32]) {
        x.iter_mut().for_each(|x| *x = -*x);
    }
    for m in [1, 2, 30] {
        let (a, b) = (numbers(m * 1500, 1), numbers(1500 * 50, 2));
        let plain = Gemm::new((m, 50, 1500), Matrix::rows(&a, 1500), Matrix::rows(&b, 50));
        let mapped = Gemm {
            activation: Activation::Map(negate),
            ..plain
        };
        let mut scratch = vec![0.0; plain.scratch_len().unwrap()];
        let (mut c, mut d) = (vec![0.0; m * 50], vec![0.0; m * 50]);
        plain.run(&mut c, 50, &mut scratch, &Interleaved).unwrap();
        mapped.run(&mut d, 50, &mut scratch, &Interleaved).unwrap();
        assert!(c.iter().zip(&d).all(|(c, d)| *c == -d));
    }
}

#[test]
fn blocks_give_all_threads_the_same_work() {
    for level in available() {
        for m in [1, 49, 98, 128, 196, 784, 3136, 12544] {
            for n in [10, 64, 96, 160, 320, 512, 1280] {
                for threads in [2, 3, 4, 16] {
                    let Cut { rows, columns, .. } = super::cut(level, (m, n, 256), threads);
                    let (down, across) = (m.div_ceil(rows), n.div_ceil(columns));
                    let most = (down * across).div_ceil(threads) * rows.min(m) * columns.min(n);
                    // What one thread must do if strips and panels stay whole.
                    let (strip, panel) = (super::block::strip_rows(level), pack::panel(level));
                    let least = (m * n).div_ceil(threads).max(strip.min(m) * panel.min(n));
                    assert!(
                        most <= 2 * least,
                        "{level:?} {m}x{n} {threads}: {most} {least}"
                    );
                    if (level, m, threads) == (Level::Avx512, 196, 2) {
                        assert_eq!((rows, across), (98, 1));
                    }
                }
            }
        }
    }
}

#[test]
fn a_thread_multiplies_by_the_panels_that_it_packs() {
    for level in available() {
        let panel = pack::panel(level);
        for (m, n, k) in [
            (256, 256, 256),
            (64, 64, 512),
            (49, 2048, 512),
            (512, 512, 512),
        ] {
            let packing = super::cut_packing(level, (m, n, k), 2);
            let across = n.div_ceil(packing.columns);
            assert_eq!(across % 2, 0, "{level:?} {m}x{n}x{k}");
            assert_eq!(packing.columns % panel, 0);
        }
        // A long A is not read by all for a short B.
        assert_eq!(
            super::cut_packing(level, (12544, panel, 64), 2).columns,
            panel
        );
        let long = super::cut_packing(level, (12544, 2 * panel, 576), 2);
        assert_eq!(long, super::cut(level, (12544, 2 * panel, 576), 2));
    }
}

#[test]
fn a_matrix_packed_by_blocks_is_packed() {
    for level in available() {
        let (panel, lanes) = (pack::panel(level), pack::lanes(level));
        for n in [
            1,
            lanes,
            panel + 1,
            panel + lanes + 1,
            3 * panel,
            5 * panel + lanes,
        ] {
            for (k, count) in [(1, 1), (7, 1), (6, 3), (40, 2)] {
                let values = numbers(n * k, 1);
                for transposed in [false, true] {
                    let ld = if transposed { k / count } else { n };
                    let stack = pack::Stack {
                        matrix: Matrix {
                            data: &values,
                            ld,
                            transposed,
                        },
                        count,
                        distance: n * k / count,
                    };
                    let len = pack::packed_len(level, k, n).unwrap();
                    let (mut whole, mut blocks) = (vec![1.0; len], vec![2.0; len]);
                    pack::pack(level, &stack, (k, n), &mut whole, &Serial);
                    for columns in [panel, 2 * panel, 8 * panel] {
                        let cut = Cut {
                            rows: 5,
                            columns,
                            rest: lanes,
                        };
                        let run = &Interleaved;
                        pack::pack_blocks(level, &stack, (k, n), cut, &mut blocks, run);
                        assert_eq!(whole, blocks, "{level:?} {k}x{n} {transposed} {columns}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_activation_alone_sees_every_element_once() {
    fn add(x: &mut [f32]) {
        x.iter_mut().for_each(|x| *x += 1.0);
    }
    let values = numbers(100_000, 1);
    for len in [0, 1, 100, 50_000, 100_000] {
        let with = |activation: Activation| {
            let mut found = values[..len].to_vec();
            activation.apply(&mut found, &Interleaved);
            found
        };
        let same = |found: Vec<f32>, of: &dyn Fn(f32) -> f32| {
            assert!(found.iter().zip(&values).all(|(found, &x)| *found == of(x)));
        };
        same(with(Activation::None), &|x| x);
        same(with(Activation::RELU), &|x| x.max(0.0));
        same(with(Activation::Clamp(-0.1, 0.2)), &|x| x.clamp(-0.1, 0.2));
        same(with(Activation::Map(add)), &|x| x + 1.0);
    }
}
