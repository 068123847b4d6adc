use super::*;
use crate::testing::Interleaved;
use crate::trial::cases;
use proptest::prelude::*;

fn picked(
    shape: &[usize],
    begin: &[i64],
    end: &[i64],
    strides: &[i64],
    masks: Masks,
) -> (Vec<usize>, Vec<i32>) {
    let shape = Shape::new(shape).unwrap();
    let region = Region::new(&shape, begin, end, strides, masks).unwrap();
    let x: Vec<i32> = (0..shape.elements() as i32).collect();
    let mut out = vec![-1; region.shape.elements()];
    strided_slice(&x, &region, &mut out, &Interleaved).unwrap();
    (region.shape.to_vec(), out)
}

proptest! {
    #![proptest_config(cases())]

    /// The indices that Python's slices name.
    #[test]
    fn one_axis(size in 0_i64..8, begin in -10_i64..11, end in -10_i64..11, step in 1_i64..4, back: bool) {
        let step = if back { -step } else { step };
        let wrap = |i: i64| if i < 0 { i + size } else { i };
        let mut expected = Vec::new();
        let mut i = if back { wrap(begin).clamp(-1, size - 1) } else { wrap(begin).clamp(0, size) };
        let end_at = if back { wrap(end).clamp(-1, size - 1) } else { wrap(end).clamp(0, size) };
        while if back { i > end_at } else { i < end_at } {
            expected.push(i as i32);
            i += step;
        }
        let (shape, found) = picked(&[size as usize], &[begin], &[end], &[step], Masks::default());
        prop_assert_eq!(shape, [expected.len()]);
        prop_assert_eq!(&found, &expected);
        let source = Shape::new(&[size as usize]).unwrap();
        let region = Region::new(&source, &[begin], &[end], &[step], Masks::default()).unwrap();
        let mut gradient = vec![7; size as usize];
        strided_slice_grad(&vec![1; expected.len()], 0, &region, &mut gradient).unwrap();
        for (i, &found) in gradient.iter().enumerate() {
            prop_assert_eq!(found, i32::from(expected.contains(&(i as i32))));
        }
    }
}

#[test]
fn masks() {
    let masks = Masks {
        ellipsis: 0b001,
        new_axis: 0b010,
        shrink_axis: 0b100,
        ..Masks::default()
    };
    let (shape, found) = picked(&[2, 2, 3], &[0, 0, -1], &[0, 0, 0], &[1, 1, 1], masks);
    assert_eq!((shape, found), (vec![2, 2, 1], vec![2, 5, 8, 11]));
    let masks = Masks {
        begin: 1,
        end: 1,
        ..Masks::default()
    };
    let (shape, found) = picked(&[4, 1], &[9], &[9], &[-2], masks);
    assert_eq!((shape, found), (vec![2, 1], vec![3, 1]));
}

#[test]
fn bad_indices_are_refused() {
    let shape = Shape::new(&[3]).unwrap();
    let region =
        |begin: &[i64], step: i64, masks| Region::new(&shape, begin, begin, &[step], masks);
    let shrink = Masks {
        shrink_axis: 1,
        ..Masks::default()
    };
    assert!(matches!(region(&[3], 1, shrink), Err(Error::Index { .. })));
    assert!(matches!(region(&[0], -1, shrink), Err(Error::Value { .. })));
    assert!(matches!(
        region(&[0], 0, Masks::default()),
        Err(Error::Value { .. })
    ));
    let two = Region::new(&shape, &[0, 0], &[1, 1], &[1, 1], Masks::default());
    assert!(matches!(two, Err(Error::Rank { .. })));
}
