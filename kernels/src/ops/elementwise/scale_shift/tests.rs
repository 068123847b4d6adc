use super::*;
use crate::base::dtype::DType;
use crate::simd::body::forced::same_bits;
use crate::testing::{Interleaved, numbers};
use crate::trial::{Attr, Tensor, run as run_def};

#[test]
fn in_place_and_elsewhere() {
    for (rows, width) in [
        (0, 3),
        (1, 1),
        (7, 5),
        (301, 3),
        (300, 9),
        (3000, 1),
        (90, 63),
        (300, 257),
    ] {
        let x = numbers(rows * width, 1);
        let (scale, shift) = (numbers(width, 2), numbers(width, 3));
        for limits in [
            Activation::None,
            Activation::RELU,
            Activation::Clamp(-0.5, 0.5),
        ] {
            let (low, high) = match limits {
                Activation::Clamp(low, high) => (low, high),
                _ => (f32::NEG_INFINITY, f32::INFINITY),
            };
            let factors = (&*scale, &*shift);
            let out = same_bits(|| {
                let mut out = vec![f32::NAN; x.len()];
                scale_shift(Some(&x), factors, &limits, &mut out, &Interleaved).unwrap();
                out
            });
            let mut same = x.clone();
            scale_shift(None, factors, &limits, &mut same, &Interleaved).unwrap();
            assert_eq!(out, same);
            for (i, &found) in out.iter().enumerate() {
                let value = x[i] * scale[i % width] + shift[i % width];
                assert_eq!(found, value.clamp(low, high));
            }
        }
    }
}

#[test]
fn floats_of_16_bits_are_rounded_as_asked() {
    for half in [Half::F16, Half::BF16] {
        for (rows, width) in [
            (0, 3),
            (7, 5),
            (3000, 1),
            (90, 63),
            (300, 257),
            (3, 1024),
            (5, 2500),
        ] {
            let mut x = numbers(rows * width, 1);
            half.keep(&mut x);
            let (scale, shift) = (numbers(width, 2), numbers(width, 3));
            let factors = (&*scale, &*shift);
            let mut wide = vec![f32::NAN; x.len()];
            scale_shift(
                Some(&x),
                factors,
                &Activation::RELU,
                &mut wide,
                &Interleaved,
            )
            .unwrap();
            let (mut bits, mut expected) = (vec![0; x.len()], vec![0; x.len()]);
            half.round(&x, &mut bits);
            half.round(&wide, &mut expected);
            let mut out = vec![0xFFFF; x.len()];
            let relu = &Activation::RELU;
            let once = Rounding {
                half,
                between: false,
            };
            narrow((once, Some(&bits)), factors, relu, &mut out, &Interleaved).unwrap();
            assert_eq!(out, expected);

            let mut rounded: Vec<f32> = (0..x.len()).map(|i| x[i] * scale[i % width]).collect();
            half.keep(&mut rounded);
            for (i, value) in rounded.iter_mut().enumerate() {
                *value = (*value + shift[i % width]).max(0.0);
            }
            let mut twice = vec![0; x.len()];
            half.round(&rounded, &mut twice);
            let between = Rounding {
                half,
                between: true,
            };
            narrow(
                (between, Some(&bits)),
                factors,
                relu,
                &mut out,
                &Interleaved,
            )
            .unwrap();
            assert_eq!(out, twice);

            narrow((once, None), factors, relu, &mut bits, &Interleaved).unwrap();
            assert_eq!(bits, expected);
        }
    }
}

#[test]
fn the_definition_takes_rows_of_either_type() {
    let attrs = [("activation", Attr::Text("Relu"))];
    let narrow = |dims: &[usize], values: &[f32]| {
        let mut bits = vec![0; values.len()];
        Half::BF16.round(values, &mut bits);
        let bytes: Vec<u8> = bits.iter().flat_map(|bits| bits.to_ne_bytes()).collect();
        Tensor::new(DType::BF16, dims, &bytes)
    };
    let x = narrow(&[2, 2], &[1.0, -2.0, 3.0, 4.0]);
    let expected = narrow(&[2, 2], &[3.0, 0.0, 7.0, 2.0]);
    let rows = [[2.0, 0.5], [1.0, 0.0]];
    for forward in [false, true] {
        let [scale, shift] = rows.map(|row| Tensor::f32(&[2], &row));
        let found = run_def(&DEF, &attrs, &[x.clone(), scale, shift], forward).unwrap();
        assert_eq!(found[0], expected);
        let [scale, shift] = rows.map(|row| narrow(&[2], &row));
        let found = run_def(&DEF, &attrs, &[x.clone(), scale, shift], forward).unwrap();
        assert_eq!(found[0], expected);
    }
}

#[test]
fn what_is_no_row_is_refused() {
    let two = [1.0; 2];
    let none = Activation::None;
    let mut out = [0.0; 3];
    assert!(scale_shift(None, (&two, &two), &none, &mut out, &Interleaved).is_err());
    assert!(scale_shift(None, (&two, &two[..1]), &none, &mut out, &Interleaved).is_err());
    assert!(scale_shift(Some(&two), (&two, &two), &none, &mut out, &Interleaved).is_err());
    let map = Activation::Map(|_| ());
    assert!(scale_shift(None, (&[1.0], &[1.0]), &map, &mut out, &Interleaved).is_err());
}
