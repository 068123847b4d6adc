use super::*;
use crate::base::error::Error;
use crate::ops::elementwise::binary::{AddV2, Sub};
use crate::simd::body::forced::same_bits;
use crate::testing::{Interleaved, numbers};
use crate::trial::{cases, indices, number, pairs};
use proptest::prelude::*;

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn broadcasting_pairs_the_right_elements((a_shape, b_shape) in pairs(), swap: bool) {
        let (a_shape, b_shape) = if swap { (b_shape, a_shape) } else { (a_shape, b_shape) };
        let shape = a_shape.broadcast(&b_shape, ("x", "y")).unwrap();
        let (a, b) = (numbers(a_shape.elements(), 1), numbers(b_shape.elements(), 2));
        let out = same_bits(|| {
            let mut out = vec![f32::NAN; shape.elements()];
            zip(Sub, (&a, &a_shape), (&b, &b_shape), &mut out, &Interleaved).unwrap();
            out
        });
        for (i, &found) in out.iter().enumerate() {
            let at = indices(&shape, i);
            prop_assert_eq!(found, a[number(&a_shape, &at)] - b[number(&b_shape, &at)]);
        }
        if a.len() == out.len() {
            let left = same_bits(|| {
                let mut values = a.clone();
                let target = (&mut *values, &shape);
                zip_in_place::<_, _, true>(Sub, target, (&b, &b_shape), &Interleaved).unwrap();
                values
            });
            prop_assert_eq!(&left, &out);
        }
        if b.len() == out.len() {
            let mut values = b.clone();
            let target = (&mut *values, &shape);
            zip_in_place::<_, _, false>(Sub, target, (&a, &a_shape), &Interleaved).unwrap();
            prop_assert_eq!(&values, &out);
        }
    }
}

#[test]
fn large_work_is_split_at_rows() {
    for dims in [[300, 500], [70_000, 2], [1, 150_000]] {
        let shape = Shape::new(&dims).unwrap();
        let row = Shape::new(&dims[1..]).unwrap();
        let (a, b) = (numbers(shape.elements(), 5), numbers(row.elements(), 6));
        let mut out = vec![0.0; a.len()];
        zip(AddV2, (&a, &shape), (&b, &row), &mut out, &Interleaved).unwrap();
        assert!((0..out.len()).all(|i| out[i] == a[i] + b[i % dims[1]]));
    }
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let (two, three) = (Shape::new(&[2]).unwrap(), Shape::new(&[3]).unwrap());
    let result = zip(
        AddV2,
        (&[0.0_f32; 2], &two),
        (&[0.0; 3], &three),
        &mut [0.0; 3],
        &Interleaved,
    );
    assert!(matches!(result, Err(Error::Incompatible { .. })));
    let result = zip(
        AddV2,
        (&[0.0_f32; 2], &two),
        (&[0.0; 2], &two),
        &mut [0.0; 3],
        &Interleaved,
    );
    assert!(matches!(
        result,
        Err(Error::Length {
            argument: "out",
            ..
        })
    ));
    let result = zip(
        AddV2,
        (&[0.0_f32; 1], &two),
        (&[0.0; 2], &two),
        &mut [0.0; 2],
        &Interleaved,
    );
    assert!(matches!(result, Err(Error::Length { argument: "x", .. })));
}
