//! Which ways of the kernels are compiled.
//!
//! Some kernels choose a way by the sizes or the operands of a call, so that a program carries all
//! ways. The copy of the kernels in the crate of a model has this file with other values: `false` for
//! a way that no layer takes. What would take it takes the general way then, or is an error.

/// Rows that take several passes at a time.
pub(crate) const PASSES: bool = cfg!(feature = "std");

/// Convolutions of groups so narrow that a vector spans several.
pub(crate) const GROUPS: bool = true;

/// Products whose left-hand side is scaled as it is read.
pub(crate) const SCALED: bool = true;

/// Products and convolutions whose operands are transposed or not packed.
pub(crate) const PLAIN: bool = true;

/// By the elements that neighbours of an image are apart: convolutions with tiles of their own. Only
/// 1, 2, 3 and 6 have some.
pub(crate) const STEPS: &[bool] = &[true, true, true, true, true, true, true];
