use super::*;

/// Numbers between -1 and 1.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    let step = |i: usize| ((i * 7919 + seed * 104_729 + 13) % 2003) as f32;
    (0..count).map(|i| step(i) / 1001.5 - 1.0).collect()
}

fn product(a: &[f32], b: &[f32], size: usize, columns: usize) -> Vec<f64> {
    let mut out = vec![0.0; size * columns];
    for i in 0..size {
        for c in 0..columns {
            let at = |k: usize| f64::from(a[i * size + k]) * f64::from(b[k * columns + c]);
            out[i * columns + c] = (0..size).map(at).sum();
        }
    }
    out
}

fn near(found: &[f64], expected: &[f32], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (a, &b) in found.iter().zip(expected) {
        assert!((a - f64::from(b)).abs() <= tolerance, "{a} {b}");
    }
}

fn turned(x: &[f32], size: usize) -> Vec<f32> {
    let mut out = vec![0.0; x.len()];
    load(x, size, true, &mut out);
    out
}

#[test]
fn solutions_of_all_sizes_solve_their_systems() {
    for size in 1..20 {
        for columns in [0, 1, 3] {
            let mut matrix = numbers(2 * size * size, size);
            for i in 0..size {
                // The largest of each column lies below the diagonal.
                let row = (i + 1) % size;
                matrix[row * size + i] += 4.0 + size as f32 / 2.0;
                matrix[size * size + i * size + i] -= 3.0 + size as f32 / 2.0;
            }
            let right = numbers(2 * size * columns, size + 3);
            for transposed in [false, true] {
                let (mut out, mut scratch) = (vec![0.0; right.len()], numbers(size * size, 1));
                let system = (matrix.as_slice(), size);
                solve(
                    system,
                    transposed,
                    (&right, columns),
                    &mut out,
                    &mut scratch,
                )
                .unwrap();
                for part in 0..2 {
                    let own = &matrix[part * size * size..][..size * size];
                    let own = if transposed {
                        turned(own, size)
                    } else {
                        own.to_vec()
                    };
                    let place = part * size * columns..(part + 1) * size * columns;
                    let back = product(&own, &out[place.clone()], size, columns);
                    near(&back, &right[place], 2e-6);
                }
            }
        }
    }
}

#[test]
fn triangles_are_read_alone() {
    for size in 1..12 {
        for lower in [false, true] {
            let mut matrix = numbers(size * size, size);
            let mut triangle = vec![0.0; size * size];
            for i in 0..size {
                matrix[i * size + i] = 2.0 + i as f32;
                for k in 0..size {
                    if i == k || (k < i) == lower {
                        triangle[i * size + k] = matrix[i * size + k];
                    } else {
                        matrix[i * size + k] = f32::NAN;
                    }
                }
            }
            for transposed in [false, true] {
                let right = numbers(size * 2, 5);
                let mut out = vec![0.0; size * 2];
                let how = Triangle { lower, transposed };
                triangular_solve((&matrix, size), how, (&right, 2), &mut out).unwrap();
                let own = if transposed {
                    turned(&triangle, size)
                } else {
                    triangle.clone()
                };
                near(&product(&own, &out, size, 2), &right, 2e-6);
            }
        }
    }
}

#[test]
fn factors_multiply_to_their_matrix() {
    for size in 1..20 {
        let half = numbers(size * size, size);
        let mut x: Vec<f32> = product(&half, &turned(&half, size), size, size)
            .iter()
            .map(|&v| v as f32)
            .collect();
        for i in 0..size {
            x[i * size + i] += 0.5;
        }
        let mut l = vec![1.0; size * size];
        cholesky(&x, size, &mut l).unwrap();
        near(&product(&l, &turned(&l, size), size, size), &x, 4e-6);
        let (mut sign, mut logarithm) = ([0.0], [0.0]);
        let results = (&mut sign[..], &mut logarithm[..]);
        log_determinant(&x, size, results, &mut vec![0.0; size * size]).unwrap();
        let diagonal = l.iter().step_by(size + 1);
        let expected: f64 = diagonal.map(|&v| 2.0 * f64::from(v).ln()).sum();
        assert!((f64::from(logarithm[0]) - expected).abs() < 3e-5 * expected.abs().max(1.0));
        assert_eq!(sign, [1.0]);
    }
}

#[test]
fn rows_that_change_places_change_the_sign() {
    let x = [0.0, 2.0, 3.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
    let (mut signs, mut logarithms) = ([0.0; 3], [0.0; 3]);
    let results = (&mut signs[..], &mut logarithms[..]);
    log_determinant(&x, 2, results, &mut [0.0; 4]).unwrap();
    assert_eq!(signs, [-1.0, -1.0, 0.0]);
    assert!((logarithms[0] - 6.0_f32.ln()).abs() < 1e-6);
    assert_eq!(logarithms[1..], [0.0, f32::NEG_INFINITY]);
    let again = logarithms;
    let results = (&mut [][..], &mut logarithms[..]);
    log_determinant(&x, 2, results, &mut [0.0; 4]).unwrap();
    assert_eq!(again, logarithms);
}

#[test]
fn what_has_no_solution_or_does_not_fit() {
    let (mut out, mut scratch) = ([0.0; 2], [0.0; 4]);
    for matrix in [[0.0; 4], [1.0, 2.0, 2.0, 4.0], [f32::NAN, 0.0, 0.0, 1.0]] {
        let found = solve((&matrix, 2), false, (&[1.0; 2], 1), &mut out, &mut scratch);
        assert!(matches!(found, Err(Error::Value { .. })), "{matrix:?}");
    }
    let mut l = [0.0; 4];
    cholesky(&[1.0, 9.0, 2.0, 1.0], 2, &mut l).unwrap();
    assert!(l[0].is_nan() && l[1] == 0.0 && l[2].is_nan() && l[3].is_nan());
    let regular = [1.0, 0.0, 0.0, 1.0];
    let short = &mut [0.0; 3];
    assert!(solve((&regular, 2), false, (&[1.0; 2], 1), &mut out, short).is_err());
    assert!(solve((&regular, 2), false, (&[1.0; 3], 1), &mut out, &mut scratch).is_err());
    assert!(
        solve(
            (&regular[1..], 2),
            false,
            (&[1.0; 2], 1),
            &mut out,
            &mut scratch
        )
        .is_err()
    );
    assert!(cholesky(&regular, 2, &mut out).is_err());
    let results = (&mut [0.0; 2][..], &mut [0.0; 2][..]);
    assert!(log_determinant(&regular, 2, results, &mut scratch).is_err());
    assert!(cholesky(&[], 0, &mut []).is_ok());
    let (mut sign, mut logarithm) = ([5.0; 2], [5.0; 2]);
    let results = (&mut sign[..], &mut logarithm[..]);
    log_determinant(&[], 0, results, &mut []).unwrap();
    assert_eq!((sign, logarithm), ([1.0; 2], [0.0; 2]));
}
