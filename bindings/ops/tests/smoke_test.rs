//! Every op can be added to a graph: the arguments reach TensorFlow as its definition wants them.
//!
//! The arguments only fit the definition, so that many a shape function refuses them for a reason
//! of its own. What must not happen is a refusal before TensorFlow sees the call, or one because
//! an input or attribute is missing or of the wrong kind.

use std::collections::BTreeMap;

use tfp_core::{AttrValue, Call, Code, Context, DataType, ErrorKind, Graph, Output, Result};
use tfp_core::{Operation, Results, Tensor};
use tfp_ops::{PlaceholderOptions, placeholder};
use tfp_ops_smoke::{Smoke, calls};

/// A graph in which every operand is a placeholder of unknown shape.
struct Placeholders(Graph);

impl Context for Placeholders {
    type Value = Output;
    type Operation = Operation;

    fn constant(&self, tensor: &Tensor) -> Result<Output> {
        self.0.constant(tensor)
    }

    fn execute(
        &self,
        call: &mut Call<'_, Output>,
        attrs: &[AttrValue<'_>],
    ) -> Result<Results<Output, Operation>> {
        self.0.execute(call, attrs)
    }
}

impl Smoke for Placeholders {
    fn value(&self, dtype: DataType) -> Result<Output> {
        placeholder(&self.0, dtype, PlaceholderOptions::default())
    }
}

/// What TensorFlow says when a node does not fit the definition of its op.
const MALFORMED: &[&str] = &[
    "NodeDef",
    "expected list",
    "expected single",
    "had value with type",
    "Attr ",
    "missing attr",
    "not found in Op",
    "Can't find attr",
];

#[test]
fn every_op_can_be_added_to_a_graph() {
    let calls = calls::<Placeholders>();
    let mut accepted = 0;
    let mut rejected = BTreeMap::new();
    let mut wrong = Vec::new();
    for (op, call) in &calls {
        let graph = Placeholders(Graph::new().expect("a graph"));
        match call(&graph) {
            Ok(()) => accepted += 1,
            Err(error) => match error.kind() {
                ErrorKind::Status { code, message, .. }
                    if !MALFORMED.iter().any(|text| message.contains(text)) =>
                {
                    assert_ne!(*code, Code::NotFound, "{op} is not registered: {message}");
                    rejected.insert(*op, message.clone());
                }
                _ => wrong.push(format!("{op}: {error}")),
            },
        }
    }
    for (op, message) in &rejected {
        println!("{op}: {}", message.lines().next().unwrap_or_default());
    }
    println!(
        "{} ops: {accepted} accepted, {} refused by a rule of their own",
        calls.len(),
        rejected.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(calls.len(), tfp_ops::OP_COUNT);
    // What TensorFlow refuses: ops that it has removed, texts that are no configuration, shapes.
    assert!(
        accepted * 8 > calls.len() * 7,
        "only {accepted} ops were accepted"
    );
}
