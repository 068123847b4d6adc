//! What this device has no kernel for and TensorFlow's CPU has: an op that is handed on.

use tfp_bindings::eager::{Eager, Value};
use tfp_bindings::proto::attr::Attr;
use tfp_bindings::{Construction, Context, DataType, Error, Result, Tensor};

use crate::reads;

/// Where TensorFlow has a kernel for every type and rank.
pub const HOST: &str = "/device:CPU:0";

/// The op of a node, to be run by TensorFlow's kernel for the CPU.
pub struct HostOp {
    op: String,
    attrs: Vec<(String, Attr)>,
    /// Whether TensorFlow's CPU has no kernel for float16, and computes in float32.
    widened: bool,
    /// Whether the results are float16 then.
    rounded: bool,
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
            widened: false,
            rounded: false,
        }
    }

    /// As [`HostOp::new`], for a node of float16 whose op TensorFlow's CPU has in float32 only.
    #[must_use]
    pub fn widened(node: &Construction) -> Self {
        let mut op = Self::new(node);
        // One that asks for float32 has its results in it.
        let wide = |(_, value): &(String, Attr)| *value == Attr::Type(DataType::FLOAT);
        op.rounded = !op.attrs.iter().any(wide);
        for (_, value) in &mut op.attrs {
            if matches!(value, Attr::Type(DataType::HALF)) {
                *value = Attr::Type(DataType::FLOAT);
            }
        }
        op.widened = true;
        op
    }

    /// Runs the op on the inputs of a step, whose memory is the host's, and gives its outputs.
    ///
    /// # Errors
    /// What TensorFlow says of the op, and where it does not export its eager runtime.
    pub fn run(&self, context: &mut Context<'_>) -> Result<()> {
        let eager = Eager::global()?;
        let inputs = (0..context.inputs())
            .map(|index| {
                let input = context.input(index)?;
                let narrow = self.widened && input.data_type() == DataType::HALF;
                let value = match reads::on_host(&self.op, &input)? {
                    Some((dims, room)) => eager.constant(input.data_type(), &dims, room.all())?,
                    None => eager.value(input)?,
                };
                if narrow {
                    cast(eager, &value, DataType::HALF, DataType::FLOAT)
                } else {
                    Ok(value)
                }
            })
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
            let result = output.to_tensor()?;
            if self.rounded && result.data_type() == DataType::FLOAT {
                let narrow = cast(eager, output, DataType::FLOAT, DataType::HALF)?;
                give(context, index, &narrow.to_tensor()?)?;
            } else {
                give(context, index, &result)?;
            }
        }
        Ok(())
    }
}

/// Makes a result an output. Where a GPU computes, a large one goes to its memory: its kernels work only there.
fn give(context: &mut Context<'_>, index: usize, result: &Tensor) -> Result<()> {
    if !reads::belongs_to_gpu(context, index, result)? {
        return context.set_output(index, result);
    }
    let dims: Vec<usize> = result.dims().collect();
    let mut output = context.allocate_output(index, result.data_type(), &dims)?;
    reads::copy(result.bytes()?, output.bytes_mut()?)
}

/// A value in another type.
fn cast(eager: &Eager, value: &Value, from: DataType, to: DataType) -> Result<Value> {
    let attrs = [("SrcT", Attr::Type(from)), ("DstT", Attr::Type(to))];
    let outputs = eager.run_on(HOST, "Cast", &[value], &attrs, 1)?;
    let mut outputs = outputs.into_iter();
    outputs
        .next()
        .ok_or_else(|| Error::internal("Cast gave nothing"))
}
