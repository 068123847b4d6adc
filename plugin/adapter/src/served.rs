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

/// What has to be done with an index that is out of range: the values with which it is an error.
const POLICY: (&str, &[&str]) = ("bad_indices_policy", &["", "DEFAULT", "ERROR"]);

/// A mask of which TensorFlow's kernels allow one bit.
const ONE_BIT: &str = "ellipsis_mask";

/// Nodes, by op and attributes, for which TensorFlow's kernel does something else than its description says, with
/// what it does.
const OTHERWISE: &[(&str, &[(&str, Attr)])] = &[
    // It rounds; it cuts off bits of float32, and of float64 that becomes float16.
    ("Cast", &[FROM_HALF, TRUNCATE]),
    ("Cast", &[FROM_INT32, TRUNCATE]),
    ("Cast", &[FROM_INT64, TRUNCATE]),
    ("Cast", &[FROM_DOUBLE, TO_BFLOAT16, TRUNCATE]),
];
const FROM_HALF: (&str, Attr) = ("SrcT", Attr::Type(DataType::HALF));
const FROM_INT32: (&str, Attr) = ("SrcT", Attr::Type(DataType::INT32));
const FROM_INT64: (&str, Attr) = ("SrcT", Attr::Type(DataType::INT64));
const FROM_DOUBLE: (&str, Attr) = ("SrcT", Attr::Type(DataType::DOUBLE));
const TO_BFLOAT16: (&str, Attr) = ("DstT", Attr::Type(DataType::BFLOAT16));
const TRUNCATE: (&str, Attr) = ("Truncate", Attr::Bool(true));

/// Whether a node has an attribute whose value the kernels do not know, so that TensorFlow's kernel computes it.
pub(crate) fn is_left_to_host(node: &Construction) -> bool {
    let (policy, usual) = POLICY;
    let policy = node.string(policy);
    policy.is_ok_and(|found| !usual.contains(&found.as_str()))
        || node.int(ONE_BIT).is_ok_and(|mask| mask.count_ones() > 1)
        || OTHERWISE.iter().any(|(op, attrs)| {
            let mut attrs = attrs.iter();
            *op == node.op()
                && attrs.all(|(name, value)| node.attr(name).is_ok_and(|v| v == *value))
        })
}

/// Ops whose kernels in TensorFlow look at no other argument if there is nothing to compute, and at 32 bits of an
/// axis. For what does not fit, kernels of other ops may end the process.
const LENIENT: &[&str] = &[
    "ArgMax",
    "ArgMin",
    "Div",
    "FloorDiv",
    "FloorMod",
    "Mod",
    "StatelessRandomNormalV2",
    "StatelessRandomUniformFullIntV2",
    "StatelessRandomUniformIntV2",
    "StatelessRandomUniformV2",
    "StatelessTruncatedNormalV2",
    "TruncateDiv",
    "TruncateMod",
];

/// Whether TensorFlow's kernel may be asked what it takes that this device's refuses.
pub(crate) fn is_lenient(op: &str) -> bool {
    LENIENT.contains(&op)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfp_bindings::proto::graph::NodeDef;

    fn node(op: &str, attrs: &[(&str, Attr)]) -> Construction {
        let mut node = NodeDef {
            op: op.to_owned(),
            ..NodeDef::default()
        };
        for (name, value) in attrs {
            node.set_attr(name, value);
        }
        Construction::new(node)
    }

    #[test]
    fn an_unusual_attribute_is_left_to_tensorflow() {
        let policy = |value: &str| {
            let value = Attr::String(value.as_bytes().to_vec());
            is_left_to_host(&node("ScatterNd", &[("bad_indices_policy", value)]))
        };
        assert!(policy("IGNORE") && policy("OTHER"));
        assert!(!policy("") && !policy("ERROR") && !policy("DEFAULT"));
        assert!(!is_left_to_host(&node("ScatterNd", &[])));
        let slice =
            |mask| is_left_to_host(&node("StridedSlice", &[("ellipsis_mask", Attr::Int(mask))]));
        assert!(slice(3) && slice(-1) && !slice(0) && !slice(4));
        let cast = |from, to, truncate| {
            let attrs = [
                ("SrcT", Attr::Type(from)),
                ("DstT", Attr::Type(to)),
                ("Truncate", Attr::Bool(truncate)),
            ];
            is_left_to_host(&node("Cast", &attrs))
        };
        assert!(cast(DataType::HALF, DataType::BFLOAT16, true));
        assert!(!cast(DataType::HALF, DataType::BFLOAT16, false));
        assert!(!cast(DataType::FLOAT, DataType::BFLOAT16, true));
        assert!(cast(DataType::DOUBLE, DataType::BFLOAT16, true));
        assert!(!cast(DataType::DOUBLE, DataType::HALF, true));
        assert!(cast(DataType::INT64, DataType::HALF, true));
    }
}
