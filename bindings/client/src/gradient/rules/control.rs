//! Calls of functions, branches and loops.

use super::Rules;
use crate::gradient::calls::gradient;

pub(super) static RULES: Rules = &[
    ("PartitionedCall", gradient),
    ("StatefulPartitionedCall", gradient),
    ("If", gradient),
    ("StatelessIf", gradient),
    ("Case", gradient),
    ("StatelessCase", gradient),
    ("While", gradient),
    ("StatelessWhile", gradient),
];
