//! Ops on the state of a random generator, such as `tf.random.Generator` uses.
//!
//! TensorFlow's own kernel for the CPU computes each of them on a copy of the state, so that numbers,
//! states and errors are the CPU's. What it added to the copy is added to the variable.

use std::sync::{Mutex, PoisonError};

use tfp_bindings::eager::{Eager, Value};
use tfp_bindings::proto::attr::Attr;
use tfp_bindings::{
    Construction, Context, DataType, Error, Kernel, Registration, RegistrationError, Result, log,
};

use tfp_adapter::profile::Profiled;

const CPU: &str = "/device:CPU:0";
/// The ops, with their outputs. The first input is the variable.
const OPS: &[(&str, usize)] = &[
    ("RngReadAndSkip", 1),
    ("RngSkip", 0),
    ("StatefulRandomBinomial", 1),
    ("StatefulStandardNormalV2", 1),
    ("StatefulTruncatedNormal", 1),
    ("StatefulUniform", 1),
    ("StatefulUniformFullInt", 1),
    ("StatefulUniformInt", 1),
];
/// The attributes that some of them have.
const ATTRS: &[&str] = &["dtype", "shape_dtype", "S", "T"];

/// Registers their kernels where the eager runtime is there to serve them.
pub fn register(device_type: &str) {
    if !Eager::is_available() {
        return;
    }
    for (op, _) in OPS {
        match Registration::new(op, device_type).register::<Profiled<GeneratorKernel>>() {
            Ok(()) | Err(RegistrationError::UnknownOp { .. }) => {}
            Err(error) => log(&format!("kernel left out: {error}")),
        }
    }
}

/// Held while a node uses the copy. No other node changes the state of a generator meanwhile, so
/// that nobody gets the same numbers twice.
static ALONE: Mutex<()> = Mutex::new(());

/// The kernel of a node.
struct GeneratorKernel {
    op: &'static str,
    outputs: usize,
    attrs: Vec<(&'static str, Attr)>,
}

impl Kernel for GeneratorKernel {
    fn new(node: &Construction) -> Result<Self> {
        let &(op, outputs) = OPS
            .iter()
            .find(|(op, _)| *op == node.op())
            .ok_or_else(|| Error::internal(format!("{} has no generator", node.op())))?;
        let attrs = ATTRS.iter();
        let attrs = attrs.filter_map(|&name| Some((name, node.attr(name).ok()?)));
        Ok(Self {
            op,
            outputs,
            attrs: attrs.collect(),
        })
    }

    fn compute(&self, context: &mut Context<'_>) -> Result<()> {
        let eager = Eager::global()?;
        let inputs = (0..context.inputs())
            .map(|index| eager.value(context.input(index)?))
            .collect::<Result<Vec<_>>>()?;
        let Some((handle, inputs)) = inputs.split_first() else {
            return Err(Error::internal(format!("{} has no generator", self.op)));
        };
        let dtype = [("dtype", Attr::Type(DataType::INT64))];
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let copy = copy(eager)?;
        let before = only(eager.run("ReadVariableOp", &[handle], &dtype, 1)?)?.to_tensor()?;
        let dims: Vec<i64> = before.dims().map(|dim| dim as i64).collect();
        // Some of the ops write where the value lies: the copy has memory of its own.
        let value = eager.constant(DataType::INT64, &dims, before.bytes()?)?;
        eager.run_on(CPU, "AssignVariableOp", &[&copy, &value], &dtype, 0)?;
        drop(value);
        let mut arguments = vec![&copy];
        arguments.extend(inputs);
        let outputs = eager.run_on(CPU, self.op, &arguments, &self.attrs, self.outputs)?;
        let after = only(eager.run_on(CPU, "ReadVariableOp", &[&copy], &dtype, 1)?)?.to_tensor()?;
        let change = difference(before.as_slice()?, after.as_slice()?);
        let change = eager.constant(DataType::INT64, &dims, &change)?;
        eager.run("AssignAddVariableOp", &[handle, &change], &dtype, 0)?;
        for (index, output) in outputs.iter().enumerate() {
            let tensor = output.to_tensor()?;
            let dims: Vec<usize> = tensor.dims().collect();
            let mut output = context.allocate_output(index, tensor.data_type(), &dims)?;
            output.bytes_mut()?.copy_from_slice(tensor.bytes()?);
        }
        Ok(())
    }
}

/// The variable of the CPU for copies of states.
fn copy(eager: &Eager) -> Result<Value> {
    let attrs = [
        ("dtype", Attr::Type(DataType::INT64)),
        ("shape", Attr::Shape(None)),
        ("shared_name", Attr::String(b"tfp_generator".to_vec())),
    ];
    only(eager.run_on(CPU, "VarHandleOp", &[], &attrs, 1)?)
}

/// The bytes of what has to be added to a state, which wraps around.
fn difference(before: &[i64], after: &[i64]) -> Vec<u8> {
    let pairs = after.iter().zip(before);
    pairs
        .flat_map(|(new, old)| new.wrapping_sub(*old).to_ne_bytes())
        .collect()
}

fn only(values: Vec<Value>) -> Result<Value> {
    let mut values = values.into_iter();
    values
        .next()
        .ok_or_else(|| Error::internal("an op gave no output"))
}
