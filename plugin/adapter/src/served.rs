//! Which kernel serves a node.

use tfp_bindings::proto::attr::Attr;
use tfp_bindings::{Construction, DataType, Error, Result};
use tfp_kernels::base::def::KernelDef;

use crate::dtype;

/// Whether a kernel serves nodes of `op` with these attributes.
pub fn serves(op: &str, attrs: &[(&str, Attr)]) -> bool {
    let found = |attr: &str| match attrs.iter().find(|(name, _)| *name == attr) {
        Some((_, Attr::Type(found))) => Some(*found),
        _ => None,
    };
    let mut candidates = tfp_kernels::kernels().filter(|def| def.op == op);
    candidates.any(|def| has_types(def, found))
}

/// Whether a kernel serves the types that `found` says of its attributes.
fn has_types(def: &KernelDef, found: impl Fn(&str) -> Option<DataType>) -> bool {
    def.variants.iter().any(|variants| {
        variants.types.iter().all(|&(attr, list)| {
            let found = found(attr).and_then(dtype::from_tensorflow);
            found.is_some_and(|found| list.contains(&found))
        })
    })
}

/// The kernel that serves a node.
pub(crate) fn find(node: &Construction) -> Result<&'static KernelDef> {
    tfp_kernels::kernels()
        .filter(|def| def.op == node.op())
        .find(|def| has_types(def, |attr| node.data_type(attr).ok()))
        .ok_or_else(|| Error::internal("no kernel serves the types of this node"))
}
