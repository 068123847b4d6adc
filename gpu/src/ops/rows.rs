//! Softmax, reductions of the last axes, and sums of the first ones.

use crate::request::{Operand, Request};
use crate::shader::Shader;
use crate::vulkan::device::Limits;
use crate::work::{Dispatch, Place, Plan, Region, spread};

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
    if !request.is_f32_but_sizes() {
        return None;
    }
    let kept = reduced
        .iter()
        .position(|&each| !each)
        .unwrap_or(shape.len());
    if request.op == "Sum" && first == 0 && reduced[kept..].iter().all(|&each| !each) {
        let columns = shape[kept..].iter().product();
        return columns_sum((input, output), columns);
    }
    if !reduced[first..].iter().all(|&each| each) {
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

/// `BiasAddGrad` with the channels last.
pub fn bias_add_grad(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let (input, output) = (request.inputs.first()?, request.outputs.first()?);
    let last = request.attrs.string("data_format").ok()? == "NHWC";
    if !last || !request.is_f32() || input.shape.len() < 2 {
        return None;
    }
    columns_sum((input, output), *input.shape.last()?)
}

/// Most numbers that a thread adds.
const MOST_PARTS: usize = 4096;

/// The largest divisor of `rows` up to its root: as many parts are summed first.
fn parts(rows: usize) -> usize {
    let up_to = (1..=rows).take_while(|part| part * part <= rows);
    up_to
        .filter(|&part| rows.is_multiple_of(part))
        .max()
        .unwrap_or(1)
}

/// Sums of columns, in two steps: first of rows that are far from each other.
fn columns_sum((input, output): (&Operand, &Operand), columns: usize) -> Option<Plan> {
    let elements = input.elements();
    if columns == 0 || elements == 0 || output.elements() != columns {
        return None;
    }
    let rows = elements / columns;
    u32::try_from(elements).ok()?;
    let first = if columns * 8 >= elements {
        1
    } else {
        parts(rows)
    };
    let rest = rows / first;
    if rest > MOST_PARTS {
        return None;
    }
    let between = Region {
        place: Place::Scratch(0),
        bytes: rest * columns * 4,
    };
    let fold = |from: Region, to: Region, [count, parts]: [usize; 2]| {
        Some(Dispatch {
            shader: Shader::Fold,
            constants: vec![0, 0],
            words: vec![u32::try_from(count).ok()?, 1, u32::try_from(parts).ok()?, 0],
            buffers: vec![from, from, from, to],
            groups: spread(count.div_ceil(256))?,
        })
    };
    if first == 1 {
        return Some(Plan::one(
            fold(input.region(), output.region(), [columns, rest])?,
            elements as u64,
        ));
    }
    let mut plan = Plan::one(
        fold(input.region(), between, [rest * columns, first])?,
        elements as u64,
    );
    plan.dispatches
        .push(fold(between, output.region(), [columns, rest])?);
    plan.scratch = between.bytes;
    Some(plan)
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn rows_are_parted_evenly() {
        assert_eq!([1, 7, 12, 100, 97].map(parts), [1, 1, 3, 10, 1]);
    }
}
