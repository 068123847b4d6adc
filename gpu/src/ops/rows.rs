//! Softmax, and reductions of the last axes.

use crate::request::{Operand, Request};
use crate::shader::Shader;
use crate::vulkan::device::Limits;
use crate::work::{Dispatch, Plan, spread};

fn plan(
    kind: u32,
    (input, output): (&Operand, &Operand),
    [rows, width]: [usize; 2],
) -> Option<Plan> {
    let words = vec![u32::try_from(rows).ok()?, u32::try_from(width).ok()?];
    u32::try_from(rows * width).ok()?;
    let dispatch = Dispatch {
        shader: Shader::Rows,
        constants: vec![kind],
        words,
        buffers: vec![input.region(), output.region()],
        groups: spread(rows)?,
    };
    Some(Plan::one(dispatch, (rows * width) as u64))
}

/// `Softmax` and `LogSoftmax`.
pub fn softmax(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let (input, output) = (request.inputs.first()?, request.outputs.first()?);
    let &width = input.shape.last()?;
    if !request.is_f32() || width == 0 {
        return None;
    }
    let kind = u32::from(request.op == "LogSoftmax");
    plan(kind, (input, output), [input.elements() / width, width])
}

/// Sums, means and extremes over the last axes.
pub fn reduction(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let (input, output) = (request.inputs.first()?, request.outputs.first()?);
    let shape = &input.shape;
    let rank = i64::try_from(shape.len()).ok()?;
    let mut reduced = vec![false; shape.len()];
    for axis in request.integers(1)? {
        let at = if axis < 0 { axis + rank } else { axis };
        *reduced.get_mut(usize::try_from(at).ok()?)? = true;
    }
    let first = reduced.iter().position(|&each| each)?;
    if !request.is_f32_but_sizes() || !reduced[first..].iter().all(|&each| each) {
        return None;
    }
    let width = shape[first..].iter().product();
    let rows: usize = shape[..first].iter().product();
    if width == 0 || rows != output.elements() {
        return None;
    }
    let kind = ["Sum", "Mean", "Max", "Min"]
        .iter()
        .position(|op| *op == request.op)?;
    plan(
        2 + u32::try_from(kind).ok()?,
        (input, output),
        [rows, width],
    )
}
