//! Calls of ops that move elements.

use super::{Checked, kernel};
use crate::compare::Tolerance;
use crate::run::Case;
use crate::tensor::{Random, Tensor};

/// Elements are moved as they are.
const EXACT: Tolerance = Tolerance {
    absolute: 0.0,
    relative: 0.0,
};

fn checked(op: &str, x: Tensor, numbers: &[&[i32]]) -> Checked {
    let lists = numbers.iter().map(|list| Tensor::i32(&[list.len()], list));
    let mut case = Case::new(kernel(op), [x].into_iter().chain(lists).collect());
    case.host = (1..=numbers.len()).collect();
    Checked {
        case,
        tolerance: EXACT,
        must: true,
    }
}

/// Calls of ops that move elements.
#[must_use]
pub fn cases(seed: u64) -> Vec<Checked> {
    let mut random = Random::new(seed + 300);
    let mut x = |dims: &[usize]| random.tensor(dims, 9.0);
    vec![
        checked("Transpose", x(&[5, 7]), &[&[1, 0]]),
        checked("Transpose", x(&[2, 3, 4]), &[&[2, 0, 1]]),
        checked("Transpose", x(&[2, 5, 3, 8]), &[&[0, 2, 1, 3]]),
        checked("Transpose", x(&[2, 1, 3, 4, 5]), &[&[4, 3, 2, 1, 0]]),
        checked("Transpose", x(&[2, 3]), &[&[0, 1]]),
        checked("Slice", x(&[9, 10]), &[&[2, 3], &[4, -1]]),
        checked("Slice", x(&[3, 4, 5, 6]), &[&[1, 0, 2, 1], &[2, 4, 3, 5]]),
        checked("Slice", x(&[300]), &[&[7], &[280]]),
        checked("BroadcastTo", x(&[3, 1]), &[&[2, 3, 5]]),
        checked("BroadcastTo", x(&[1]), &[&[70]]),
        checked("BroadcastTo", x(&[4, 1, 6]), &[&[4, 5, 6]]),
    ]
}
