//! The kernel of every op on variables, for nodes that no graph optimizer has replaced.

use std::sync::{Mutex, PoisonError};

use tfp_bindings::eager::{Eager, Value};
use tfp_bindings::proto::attr::Attr;
use tfp_bindings::{
    Code, Construction, Context, DataType, Error, Kernel, Registration, RegistrationError, Result,
    log,
};

use super::check::check;
use super::fits::numbers;
use super::lower::{Emit, Types, lower};
use super::table::VariableOp;
use super::{describe, table};
use tfp_adapter::host::HOST;
use tfp_adapter::profile::Profiled;
use tfp_adapter::reads;

/// The shared name of a variable that lives as long as a handle of it does.
const ANONYMOUS: &[u8] = b"cd2c89b7-88b7-44c8-ad83-06c2a9158347";

/// Registers a kernel for each op of the table.
pub fn register(device_type: &str) {
    for op in table::ops() {
        match Registration::new(op, device_type).register::<Profiled<VariableKernel>>() {
            Ok(()) | Err(RegistrationError::UnknownOp { .. }) => {}
            Err(error) => log(&format!("kernel left out: {error}")),
        }
    }
}

/// Held while a node reads, computes and assigns, so that no other one does meanwhile.
static ALONE: Mutex<()> = Mutex::new(());

/// The kernel of a node.
struct VariableKernel {
    row: &'static VariableOp,
    types: Types,
}

impl Kernel for VariableKernel {
    fn new(node: &Construction) -> Result<Self> {
        let (row, types) = describe(node.op(), |name| node.attr(name).ok())?;
        Ok(Self { row, types })
    }

    fn compute(&self, context: &mut Context<'_>) -> Result<()> {
        let eager = Eager::global().map_err(|error| {
            Error::new(
                Code::Unimplemented,
                format!("this TensorFlow lets no kernel reach a variable: {error}"),
            )
        })?;
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let inputs = (0..context.inputs())
            .map(|index| eager.value(context.input(index)?))
            .collect::<Result<Vec<_>>>()?;
        let mut steps = Steps {
            eager,
            values: inputs,
            output: None,
        };
        self.check(context, &steps)?;
        lower(self.row, self.types, &mut steps)?;
        let Some(index) = steps.output else {
            return Ok(());
        };
        let tensor = steps.get(index)?.to_tensor()?;
        let dims: Vec<usize> = tensor.dims().collect();
        let mut output = context.allocate_output(0, tensor.data_type(), &dims)?;
        reads::copy(tensor.bytes()?, output.bytes_mut()?)
    }
}

impl VariableKernel {
    /// Fails for what TensorFlow's own kernel refuses, while nothing is changed yet.
    fn check(&self, context: &Context<'_>, steps: &Steps) -> Result<()> {
        if !self.row.is_step() {
            return Ok(());
        }
        let mut shapes = Vec::new();
        let mut indices = Vec::new();
        for (place, name) in self.row.inputs.iter().enumerate() {
            if name.starts_with('&') {
                shapes.push(steps.shape(place)?);
                continue;
            }
            let tensor = context.input(place)?;
            shapes.push(tensor.dims().collect());
            if *name == "indices" {
                indices = numbers(&tensor)?;
            }
        }
        check(self.row, &shapes, &indices)
    }
}

/// Runs each op at once. A value is its place in `values`, where the inputs come first.
struct Steps {
    eager: &'static Eager,
    values: Vec<Value>,
    output: Option<usize>,
}

impl Steps {
    fn get(&self, index: usize) -> Result<&Value> {
        let found = self.values.get(index);
        found.ok_or_else(|| Error::internal(format!("there is no value {index}")))
    }

    /// The shape of a variable, which is not read for it: a value that is held would be copied when
    /// the variable changes.
    fn shape(&self, index: usize) -> Result<Vec<usize>> {
        let attrs = [("out_type", Attr::Type(DataType::INT64))];
        let outputs = self.run("VariableShape", &[index], &attrs, 1)?;
        let shape = outputs.first();
        let shape = shape.ok_or_else(|| Error::internal("VariableShape gave no output"))?;
        let shape = shape.to_tensor()?;
        let dims = shape.as_slice::<i64>()?.iter();
        Ok(dims.map(|&dim| usize::try_from(dim).unwrap_or(0)).collect())
    }

    fn run(
        &self,
        op: &str,
        inputs: &[usize],
        attrs: &[(&'static str, Attr)],
        outputs: usize,
    ) -> Result<Vec<Value>> {
        let inputs = inputs
            .iter()
            .map(|&index| self.get(index))
            .collect::<Result<Vec<_>>>()?;
        self.eager.run(op, &inputs, attrs, outputs)
    }

    /// What `TfpScatter` does, for the types that it is not made for: TensorFlow's own op for the
    /// CPU changes a variable that is there for this alone.
    fn scatter_on_host(&self, inputs: &[usize], attrs: &[(&'static str, Attr)]) -> Result<Value> {
        let &[tensor, indices, updates] = inputs else {
            return Err(Error::internal("a scatter has three inputs"));
        };
        let attr = |name| {
            let found = attrs.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.clone())
        };
        let (Some(data_type), Some(index_type)) = (attr("T"), attr("Tindices")) else {
            return Err(Error::internal("a scatter has two types"));
        };
        let nd = attr("nd") == Some(Attr::Bool(true));
        let op = match attr("reduction") {
            Some(Attr::String(reduction)) => host_scatter(&reduction, nd),
            _ => None,
        };
        let op = op.ok_or_else(|| Error::internal("there is no such scatter"))?;
        let single = |values: Vec<Value>| {
            let value = values.into_iter().next();
            value.ok_or_else(|| Error::internal("the op gave no output"))
        };
        let variable_type = [("dtype", data_type.clone())];
        let handle = single(self.eager.run_on(
            HOST,
            "VarHandleOp",
            &[],
            &[
                ("dtype", data_type.clone()),
                ("shape", Attr::Shape(None)),
                ("shared_name", Attr::String(ANONYMOUS.to_vec())),
            ],
            1,
        )?)?;
        let start = [&handle, self.get(tensor)?];
        let assign = "AssignVariableOp";
        self.eager.run_on(HOST, assign, &start, &variable_type, 0)?;
        let change = [&handle, self.get(indices)?, self.get(updates)?];
        let types = [
            (if nd { "T" } else { "dtype" }, data_type),
            ("Tindices", index_type),
        ];
        self.eager.run_on(HOST, op, &change, &types, 0)?;
        let read = "ReadVariableOp";
        single(
            self.eager
                .run_on(HOST, read, &[&handle], &variable_type, 1)?,
        )
    }
}

/// TensorFlow's op that changes slices of a variable, or elements if `nd`.
fn host_scatter(reduction: &[u8], nd: bool) -> Option<&'static str> {
    Some(match (reduction, nd) {
        (b"add", false) => "ResourceScatterAdd",
        (b"sub", false) => "ResourceScatterSub",
        (b"mul", false) => "ResourceScatterMul",
        (b"div", false) => "ResourceScatterDiv",
        (b"min", false) => "ResourceScatterMin",
        (b"max", false) => "ResourceScatterMax",
        (b"update", false) => "ResourceScatterUpdate",
        (b"add", true) => "ResourceScatterNdAdd",
        (b"sub", true) => "ResourceScatterNdSub",
        (b"min", true) => "ResourceScatterNdMin",
        (b"max", true) => "ResourceScatterNdMax",
        (b"update", true) => "ResourceScatterNdUpdate",
        _ => return None,
    })
}

impl Emit for Steps {
    type Value = usize;

    fn input(&mut self, index: usize) -> Result<usize> {
        self.get(index).map(|_| index)
    }

    fn scalar(&mut self, data_type: DataType, bytes: &[u8]) -> Result<usize> {
        self.values
            .push(self.eager.constant(data_type, &[], bytes)?);
        Ok(self.values.len() - 1)
    }

    fn op(
        &mut self,
        op: &'static str,
        inputs: &[usize],
        attrs: &[(&'static str, Attr)],
    ) -> Result<usize> {
        if op == "TfpScatter" && !tfp_adapter::serves(op, attrs) {
            let output = self.scatter_on_host(inputs, attrs)?;
            self.values.push(output);
        } else {
            let outputs = self.run(op, inputs, attrs, 1)?;
            self.values.extend(outputs);
        }
        Ok(self.values.len() - 1)
    }

    fn effect(
        &mut self,
        op: &'static str,
        inputs: &[usize],
        attrs: &[(&'static str, Attr)],
    ) -> Result<()> {
        if let ("AssignVariableOp", &[handle, value], [(_, Attr::Type(data_type))]) =
            (op, inputs, attrs)
        {
            let (handle, value) = (self.get(handle)?, self.get(value)?);
            // SAFETY: the memory of the device is the host's. `ALONE` keeps the other nodes of
            // this kernel away, and TensorFlow orders the nodes of a caller that use a variable;
            // callers that share one order themselves, as for TensorFlow's own kernels.
            return unsafe { self.eager.assign_by(handle, *data_type, value, reads::copy) };
        }
        self.run(op, inputs, attrs, 0).map(drop)
    }

    fn output(&mut self, value: &usize) -> Result<()> {
        self.output = Some(*value);
        Ok(())
    }
}
