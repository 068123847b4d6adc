//! What this device has no kernel for and TensorFlow's CPU has: an op that is handed on.

use tfp_bindings::eager::Eager;
use tfp_bindings::proto::attr::Attr;
use tfp_bindings::{Construction, Context, Error, Result};

/// Where TensorFlow has a kernel for every type and rank.
pub const HOST: &str = "/device:CPU:0";

/// The op of a node, to be run by TensorFlow's kernel for the CPU.
pub struct HostOp {
    op: String,
    attrs: Vec<(String, Attr)>,
}

impl HostOp {
    /// The op of this node, with the attributes that the eager runtime can be given.
    #[must_use]
    pub fn new(node: &Construction) -> Self {
        let names = node.node().attrs.iter().map(|(name, _)| name);
        let given = names.filter(|name| !name.starts_with('_'));
        let attrs = given.filter_map(|name| match node.attr(name).ok()? {
            Attr::Tensor(_) | Attr::Func(_) => None,
            value => Some((name.clone(), value)),
        });
        Self {
            op: node.op().to_owned(),
            attrs: attrs.collect(),
        }
    }

    /// Runs the op on the inputs of a step, whose memory is the host's, and gives its outputs.
    ///
    /// # Errors
    /// What TensorFlow says of the op, and where it does not export its eager runtime.
    pub fn run(&self, context: &mut Context<'_>) -> Result<()> {
        let eager = Eager::global()?;
        let inputs = (0..context.inputs())
            .map(|index| eager.value(context.input(index)?))
            .collect::<Result<Vec<_>>>()?;
        let inputs: Vec<_> = inputs.iter().collect();
        let attrs = self.attrs.iter();
        let attrs: Vec<_> = attrs
            .map(|(name, value)| (name.as_str(), value.clone()))
            .collect();
        let expected = context.outputs();
        let outputs = eager.run_on(HOST, &self.op, &inputs, &attrs, expected)?;
        if outputs.len() != expected {
            return Err(Error::internal(format!(
                "the op gave {} outputs, expected {expected}",
                outputs.len()
            )));
        }
        for (index, output) in outputs.iter().enumerate() {
            context.set_output(index, &output.to_tensor()?)?;
        }
        Ok(())
    }
}
