//! What this device has no kernel for and TensorFlow's CPU has: an op that is handed on.

use tfp_bindings::eager::{Eager, Value};
use tfp_bindings::proto::attr::Attr;
use tfp_bindings::{Construction, Context, DataType, Error, Result, Tensor};

use crate::channels::Channels;
use crate::reads;

/// Where TensorFlow has a kernel for every type and rank.
pub const HOST: &str = "/device:CPU:0";

/// The op of a node, to be run by TensorFlow's kernel for the CPU.
pub struct HostOp {
    op: String,
    attrs: Vec<(String, Attr)>,
    /// The type that TensorFlow's CPU has no kernel for, and computes in float32.
    widened: Option<DataType>,
    /// Whether the results have that type, too.
    rounded: bool,
    /// Which tensors have their channels first, where TensorFlow's CPU takes them last.
    channels: Option<Channels>,
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
        let mut attrs = attrs.collect();
        Self {
            op: node.op().to_owned(),
            channels: Channels::turn(node.op(), &mut attrs),
            attrs,
            widened: None,
            rounded: false,
        }
    }

    /// As [`HostOp::new`], for a node whose op TensorFlow's CPU has in float32, but not in the node's
    /// type `from`.
    #[must_use]
    pub fn widened(node: &Construction, from: DataType) -> Self {
        let mut op = Self::new(node);
        // One that asks for float32 has its results in it.
        let wide = |(_, value): &(String, Attr)| *value == Attr::Type(DataType::FLOAT);
        op.rounded = !op.attrs.iter().any(wide);
        for (_, value) in &mut op.attrs {
            if *value == Attr::Type(from) {
                *value = Attr::Type(DataType::FLOAT);
            }
        }
        op.widened = Some(from);
        op
    }

    /// Runs the op on the inputs of a step, whose memory is the host's, and gives its outputs.
    ///
    /// # Errors
    /// What TensorFlow says of the op, and where it does not export its eager runtime.
    pub fn run(&self, context: &mut Context<'_>) -> Result<()> {
        let outputs = self.outputs(context)?;
        for (index, output) in outputs.iter().enumerate() {
            give(context, index, output)?;
        }
        Ok(())
    }

    /// As [`HostOp::run`], but the outputs of the step are left as they are.
    ///
    /// # Errors
    /// As [`HostOp::run`].
    pub fn outputs(&self, context: &Context<'_>) -> Result<Vec<Tensor>> {
        let eager = Eager::global()?;
        let inputs = (0..context.inputs())
            .map(|index| {
                let input = context.input(index)?;
                let data_type = input.data_type();
                let value = match reads::on_host(&self.op, &input)? {
                    Some((dims, room)) => eager.constant(input.data_type(), &dims, room.all())?,
                    None => eager.value(input)?,
                };
                let (value, data_type) = match self.widened {
                    Some(from) if from == data_type => {
                        let float = DataType::FLOAT;
                        (cast(eager, &value, from, float)?, float)
                    }
                    _ => (value, data_type),
                };
                match &self.channels {
                    Some(channels) => channels.input(eager, index, value, data_type),
                    None => Ok(value),
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
        let results = outputs.into_iter().map(|output| {
            let output = match &self.channels {
                Some(channels) => channels.output(eager, output)?,
                None => output,
            };
            let result = output.to_tensor()?;
            match self.widened.filter(|_| self.rounded) {
                Some(to) if result.data_type() == DataType::FLOAT => {
                    cast(eager, &output, DataType::FLOAT, to)?.to_tensor()
                }
                _ => Ok(result),
            }
        });
        results.collect()
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
