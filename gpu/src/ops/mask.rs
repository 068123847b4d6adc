//! Comparisons, combinations and choices: truth values are bytes.

use tfp_kernels::base::dtype::DType;
use tfp_kernels::base::shape::Shape;

use super::types::code;
use crate::request::{Operand, Request};
use crate::shader::Shader;
use crate::vulkan::device::Limits;
use crate::work::{Dispatch, Plan, Region, numbers, spread};

/// The comparisons in the order of the shader's numbers, which that of a choice follows.
const COMPARISONS: &[&str] = &[
    "Equal",
    "NotEqual",
    "Less",
    "LessEqual",
    "Greater",
    "GreaterEqual",
];
const CHOICE: u32 = 6;
/// The combinations in the order of the shader's numbers, which follow that of a choice.
const COMBINATIONS: &[&str] = &["LogicalAnd", "LogicalOr", "LogicalNot"];
/// Most axes of a strided operand.
const AXES: usize = 6;

/// How the operands meet the output.
struct Meeting {
    extents: u32,
    /// The axes from the last on: sizes, and steps of each operand.
    axes: Vec<(usize, [usize; 3])>,
}

/// `None` if an operand can't be stretched to the output.
fn meeting(operands: [&Shape; 3], of: &Shape) -> Option<Meeting> {
    let mut extents = 0;
    for (number, shape) in operands.into_iter().enumerate() {
        let added = of.len().checked_sub(shape.len())?;
        let mut fits = shape.iter().zip(&of[added..]);
        if !fits.all(|(&from, &to)| from == to || from == 1) {
            return None;
        }
        let extent = if shape.elements() == of.elements() {
            1
        } else if shape.elements() == 1 {
            0
        } else {
            2
        };
        extents |= extent << (2 * number);
    }
    let mut axes: Vec<(usize, [usize; 3])> = Vec::new();
    let mut reach = [1; 3];
    for axis in 0..of.len() {
        let size = of[of.len() - 1 - axis];
        let steps = [0, 1, 2].map(|number| {
            let shape = operands[number];
            let dim = shape.len().checked_sub(axis + 1).map_or(1, |at| shape[at]);
            let step = if dim == 1 { 0 } else { reach[number] };
            reach[number] *= dim;
            step
        });
        match axes.last_mut() {
            _ if size == 1 => {}
            Some((last, before)) if (0..3).all(|at| before[at] * *last == steps[at]) => {
                *last *= size;
            }
            _ => axes.push((size, steps)),
        }
    }
    (axes.len() <= AXES).then_some(Meeting { extents, axes })
}

fn dispatch(kind: u32, operands: [&Operand; 3], output: &Operand) -> Option<Plan> {
    let elements = output.elements();
    if elements >= 1 << 31 {
        return None;
    }
    let Meeting { extents, mut axes } =
        meeting(operands.map(|operand| &operand.shape), &output.shape)?;
    let mut words = numbers(&[elements, axes.len()])?;
    axes.resize(AXES, (1, [0; 3]));
    words.extend(numbers(
        &axes.iter().map(|axis| axis.0).collect::<Vec<_>>(),
    )?);
    for operand in 0..3 {
        let steps: Vec<_> = axes.iter().map(|axis| axis.1[operand]).collect();
        words.extend(numbers(&steps)?);
    }
    let [a, b, condition] = operands.map(Operand::region);
    let to: Region = output.region();
    let dispatch = Dispatch {
        shader: Shader::Mask,
        constants: vec![kind, extents, code(operands[0].dtype)?],
        words,
        buffers: vec![a, b, condition, to, to],
        groups: spread(elements.div_ceil(1024))?,
    };
    Some(Plan::one(dispatch, elements as u64))
}

/// Comparisons.
pub fn comparison(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let [a, b] = request.inputs.first_chunk()?;
    let output = request.outputs.first()?;
    let kind = COMPARISONS.iter().position(|op| *op == request.op)?;
    // The CPU's kernels of int32 are TensorFlow's.
    if a.dtype != b.dtype || a.dtype == DType::I32 || output.dtype != DType::Bool {
        return None;
    }
    dispatch(u32::try_from(kind).ok()?, [a, b, a], output)
}

/// `LogicalAnd`, `LogicalOr` and `LogicalNot`.
pub fn combination(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let (a, output) = (request.inputs.first()?, request.outputs.first()?);
    let b = request.inputs.get(1).unwrap_or(a);
    let kind = COMBINATIONS.iter().position(|op| *op == request.op)?;
    if [a, b, output].iter().any(|each| each.dtype != DType::Bool) {
        return None;
    }
    dispatch(CHOICE + 1 + u32::try_from(kind).ok()?, [a, b, a], output)
}

/// `SelectV2`, and `Select` whose condition is a number or has the output's shape.
pub fn select(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let [condition, a, b] = request.inputs.first_chunk()?;
    let output = request.outputs.first()?;
    let is_vector = request.op == "Select" && condition.shape != output.shape;
    if condition.dtype != DType::Bool || a.dtype != b.dtype || a.dtype != output.dtype {
        return None;
    }
    if is_vector && !condition.shape.is_empty() {
        return None;
    }
    dispatch(CHOICE, [a, b, condition], output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_stretched() {
        let shape = |dims: &[usize]| Shape::new(dims).unwrap();
        let (a, b, c) = (shape(&[2, 3, 4]), shape(&[3, 1]), shape(&[]));
        let found = meeting([&a, &b, &c], &a).unwrap();
        assert_eq!(found.extents, 1 | 2 << 2);
        assert_eq!(
            found.axes,
            [(4, [1, 0, 0]), (3, [4, 1, 0]), (2, [12, 0, 0])]
        );
        assert!(meeting([&a, &shape(&[2, 4]), &c], &a).is_none());
    }
}
