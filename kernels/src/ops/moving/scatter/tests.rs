use super::*;
use crate::testing::{Data, Value, call_with};

#[test]
fn every_reduction_in_order_of_the_indices() {
    for (name, expected) in [
        ("add", [1.0, 2.0, 13.0, 14.0]),
        ("sub", [1.0, 2.0, -7.0, -6.0]),
        ("mul", [1.0, 2.0, 72.0, 96.0]),
        ("div", [1.0, 2.0, 0.125, 1.0 / 6.0]),
        ("min", [1.0, 2.0, 3.0, 4.0]),
        ("max", [1.0, 2.0, 6.0, 6.0]),
        ("update", [1.0, 2.0, 6.0, 6.0]),
    ] {
        let tensor = (vec![2, 2], Data::F32(vec![1.0, 2.0, 3.0, 4.0]));
        let indices = (vec![2], Data::I32(vec![1, 1]));
        let updates = (vec![2, 2], Data::F32(vec![4.0, 4.0, 6.0, 6.0]));
        let attrs = |nd| [("reduction", Value::Text(name)), ("nd", Value::Bool(nd))];
        let inputs = [tensor, indices, updates];
        let found = call_with(&SCATTER, &attrs(false), &inputs).unwrap();
        assert_eq!(found[0], (vec![2, 2], expected.to_vec()), "{name}");
        // One index that names one element.
        assert!(call_with(&SCATTER, &attrs(true), &inputs).is_err());
        let [tensor, indices, _] = inputs;
        let updates = (vec![], Data::F32(vec![1.0]));
        let found = call_with(&SCATTER, &attrs(true), &[tensor, indices, updates]).unwrap();
        assert_eq!(found[0].1[..3], [1.0, 2.0, 3.0], "{name}");
    }
}

#[test]
fn tensors_and_zeros_are_changed_by_element() {
    let tensor = || (vec![2, 2], Data::F32(vec![1.0, 2.0, 3.0, 4.0]));
    let indices = || (vec![2, 2], Data::I32(vec![1, 0, 1, 0]));
    let updates = |values: &[f32]| (vec![values.len()], Data::F32(values.to_vec()));
    for (def, expected) in [
        (&TENSOR_SCATTER_ADD, 15.0),
        (&TENSOR_SCATTER_SUB, -9.0),
        (&TENSOR_SCATTER_MIN, 3.0),
        (&TENSOR_SCATTER_MAX, 7.0),
        (&TENSOR_SCATTER_UPDATE, 7.0),
    ] {
        let inputs = [tensor(), indices(), updates(&[5.0, 7.0])];
        let found = call_with(def, &[], &inputs).unwrap();
        assert_eq!(found[0], (vec![2, 2], vec![1.0, 2.0, expected, 4.0]));
    }
    let shape = || (vec![2], Data::I32(vec![2, 2]));
    let inputs = [indices(), updates(&[5.0, 7.0]), shape()];
    let found = call_with(&SCATTER_ND, &[], &inputs).unwrap();
    assert_eq!(found[0], (vec![2, 2], vec![0.0, 0.0, 12.0, 0.0]));
    let inputs = [indices(), updates(&[5.0; 3]), shape()];
    assert!(call_with(&SCATTER_ND, &[], &inputs).is_err());
}

#[test]
fn groups_have_their_own_indices_and_negative_ones_may_be_left_out() {
    let start = [1, 2, 3, 4, 5, 6, 7, 8];
    let updates = [10, 20, 30, 40, 50, 60, 70, 80];
    let run = |indices: &[i64], skip: bool| {
        let mut tensor = start;
        let how = (Reduction::Add, skip);
        scatter_groups(&mut tensor, (2, &[2]), indices, &updates, how).map(|()| tensor)
    };
    assert_eq!(
        run(&[1, 1, 0, 1], false).unwrap(),
        [1, 2, 43, 64, 55, 66, 77, 88]
    );
    assert_eq!(
        run(&[-1, 0, 1, -7], true).unwrap(),
        [31, 42, 3, 4, 5, 6, 57, 68]
    );
    assert!(run(&[-1, 0, 1, 1], false).is_err());
    assert!(run(&[2, 0, 1, 1], true).is_err());
    assert!(run(&[0, 1, 1], false).is_err());
}

#[test]
fn a_scalar_updates_all_and_what_does_not_fit_is_refused() {
    let mut tensor = [1_i64, 2, 3];
    scatter(&mut tensor, &[3], &[2_i32, 0], &[5], Reduction::Add).unwrap();
    assert_eq!(tensor, [6, 2, 8]);
    for bad in [-1_i64, 3] {
        let result = scatter(&mut tensor, &[3], &[0, bad], &[1, 1], Reduction::Add);
        assert!(matches!(result, Err(Error::Index { index, .. }) if index == bad));
    }
    assert!(scatter(&mut tensor, &[3], &[0_i32, 1], &[1, 1, 1], Reduction::Add).is_err());
    assert_eq!(tensor, [6, 2, 8]);
    let mut matrix = [0_i64; 6];
    scatter(
        &mut matrix,
        &[2, 3],
        &[1_i32, 0, 0, 2],
        &[7, 8],
        Reduction::Update,
    )
    .unwrap();
    assert_eq!(matrix, [0, 0, 8, 7, 0, 0]);
    scatter(&mut [0_i64; 0], &[0], &[0_i32; 0], &[], Reduction::Add).unwrap();
    let mut kept = [3_i64, 4];
    assert!(scatter(&mut kept, &[2], &[0, 1], &[2, 0], Reduction::Div).is_err());
    assert_eq!(kept, [3, 4]);
    assert!(Reduction::new("Add").is_err());
}
