//! Calls of every op that has a body, with tolerances.

mod elementwise;
mod image;
pub mod large;
pub mod product;
mod rows;
mod types;
mod view;

use tfp_kernels::base::def::KernelDef;
use tfp_kernels::base::dtype::DType;

use crate::compare::Tolerance;
use crate::run::Case;

/// A call and how exact its result is.
pub struct Checked {
    /// The call.
    pub case: Case,
    /// The tolerance.
    pub tolerance: Tolerance,
    /// Whether the body has to run it.
    pub must: bool,
}

/// The kernel of an op that serves float32: those of 16-bit floats are definitions of their own.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn kernel(op: &str) -> &'static KernelDef {
    kernel_of(op, DType::F32)
}

/// The kernel of an op that serves a type, or has no type attribute.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn kernel_of(op: &str, dtype: DType) -> &'static KernelDef {
    let found = tfp_kernels::kernels().find(|def| {
        // The first type is that of the elements; others may be float32 in all definitions.
        let mut types = def.variants.iter().map(|variants| variants.types.first());
        let serves =
            |first: Option<&(_, &[DType])>| first.is_none_or(|(_, types)| types.contains(&dtype));
        def.op == op && types.any(serves)
    });
    found.unwrap_or_else(|| panic!("there is not a kernel {op}"))
}

/// All calls; shapes differ with the seed.
#[must_use]
pub fn all(seed: u64) -> Vec<Checked> {
    let mut all = elementwise::cases(seed);
    all.extend(rows::cases(seed));
    all.extend(view::cases(seed));
    all.extend(product::cases(seed));
    all.extend(image::cases(seed));
    all.extend(types::cases(seed));
    all
}
