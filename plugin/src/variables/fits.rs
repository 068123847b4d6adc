//! The op that refuses an optimizer's step whose inputs do not fit, before anything is changed. The
//! graph optimizer puts it before the ops that replace a step of which it does not know the shapes:
//! those would broadcast.

use tfp_bindings::op::OpDefinition;
use tfp_bindings::{
    Construction, Context, DataType, Error, Kernel, Registration, RegistrationError, Result,
    Tensor, log,
};

use super::check::check;
use super::table::{STEPS, VariableOp};
use tfp_adapter::profile::Profiled;

/// Name of the op.
pub const STEP_FITS: &str = "TfpStepFits";
/// Its attribute with the op that is replaced.
pub const STEP: &str = "step";
/// Its attribute that counts the variables.
pub const VARIABLES: &str = "N";
/// Its attribute with the types of the inputs that are no variables.
pub const TYPES: &str = "Tvalues";

/// The op: shapes of the variables, then the other inputs of the step in their order.
pub fn definition() -> OpDefinition {
    OpDefinition::new(STEP_FITS)
        .input("variables: N * int64")
        .input("values: Tvalues")
        .attr("N: int >= 1")
        .attr("Tvalues: list(type) >= 1")
        .attr("step: string")
        .stateful()
}

/// Registers its kernel.
pub fn register(device_type: &str) {
    let registration = Registration::new(STEP_FITS, device_type).host_memory("variables");
    match registration.register::<Profiled<FitsKernel>>() {
        Ok(()) | Err(RegistrationError::UnknownOp { .. }) => {}
        Err(error) => log(&format!("kernel left out: {error}")),
    }
}

/// The kernel of a node.
struct FitsKernel(&'static VariableOp);

impl Kernel for FitsKernel {
    fn new(node: &Construction) -> Result<Self> {
        let step = node.string(STEP)?;
        let row = STEPS.iter().find(|row| row.op == step && row.is_step());
        let row =
            row.ok_or_else(|| Error::invalid(format!("{step} is not an optimizer's step")))?;
        Ok(Self(row))
    }

    fn compute(&self, context: &mut Context<'_>) -> Result<()> {
        let inputs = self.0.inputs;
        if context.inputs() != inputs.len() {
            return Err(Error::invalid(format!(
                "{STEP_FITS} has {} inputs, expected the {} of {}",
                context.inputs(),
                inputs.len(),
                self.0.op
            )));
        }
        let mut shapes = Vec::with_capacity(inputs.len());
        let mut indices = Vec::new();
        for (place, name) in inputs.iter().enumerate() {
            let tensor = context.input(place)?;
            if name.starts_with('&') {
                let dims = numbers(&tensor)?;
                let dims = dims.iter().map(|&dim| usize::try_from(dim).unwrap_or(0));
                shapes.push(dims.collect());
                continue;
            }
            shapes.push(tensor.dims().collect());
            if *name == "indices" {
                indices = numbers(&tensor)?;
            }
        }
        check(self.0, &shapes, &indices)
    }
}

/// The elements of a tensor of int32 or int64.
///
/// # Errors
/// For a tensor of another type.
pub fn numbers(tensor: &Tensor) -> Result<Vec<i64>> {
    Ok(match tensor.data_type() {
        DataType::INT64 => tensor.as_slice()?.to_vec(),
        _ => {
            let numbers = tensor.as_slice::<i32>()?.iter();
            numbers.map(|&number| i64::from(number)).collect()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_of_a_step_come_first() {
        for row in STEPS.iter().filter(|row| row.is_step()) {
            let variables = row.inputs.iter().map(|name| name.starts_with('&'));
            assert!(variables.is_sorted_by(|a, b| a >= b), "{}", row.op);
        }
    }
}
