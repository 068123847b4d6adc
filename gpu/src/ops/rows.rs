//! Softmax, its cross-entropy, and reductions of the last axes.

use tfp_kernels::base::dtype::DType;

use crate::request::{Operand, Request};
use crate::shader::Shader;
use crate::vulkan::device::Limits;
use crate::work::{Dispatch, Plan, numbers, spread};

fn plan(
    kind: u32,
    (input, output): (&Operand, &Operand),
    [rows, width]: [usize; 2],
) -> Option<Plan> {
    let words = numbers(&[rows, width, 0])?;
    u32::try_from(rows * width).ok()?;
    let (from, to) = (input.region(), output.region());
    let dispatch = Dispatch {
        shader: Shader::Rows,
        constants: vec![kind],
        words,
        buffers: vec![from, to, from, to],
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

/// Widest row that one group of threads reduces.
const WIDEST: usize = 1 << 14;

/// Sums, means and extremes over the last axes, if these are the `reduced` ones.
pub fn reduction(request: &Request<'_>, reduced: &[bool], _: &Limits) -> Option<Plan> {
    let (input, output) = (request.inputs.first()?, request.outputs.first()?);
    let shape = &input.shape;
    let first = reduced.iter().position(|&each| each)?;
    if !reduced[first..].iter().all(|&each| each) {
        return None;
    }
    let width = shape[first..].iter().product();
    let rows: usize = shape[..first].iter().product();
    if width == 0 || width > WIDEST || rows != output.elements() {
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

/// `ArgMax` and `ArgMin` over the last axis.
pub fn place(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let (input, output) = (request.inputs.first()?, request.outputs.first()?);
    let (&width, rank) = (input.shape.last()?, i64::try_from(input.shape.len()).ok()?);
    let axis = *request.integers(1)?.first()?;
    let step = match output.dtype {
        DType::I32 => 1,
        DType::I64 => 2,
        _ => return None,
    };
    if !input.is_f32() || width == 0 || (axis != -1 && axis + 1 != rank) {
        return None;
    }
    let rows = input.elements() / width;
    u32::try_from(input.elements()).ok()?;
    let to = output.region();
    let dispatch = Dispatch {
        shader: Shader::Rows,
        constants: vec![if request.op == "ArgMax" { 8 } else { 9 }],
        words: numbers(&[rows, width, step])?,
        buffers: vec![input.region(), to, to, to],
        groups: spread(rows)?,
    };
    Some(Plan::one(dispatch, input.elements() as u64))
}

/// `SoftmaxCrossEntropyWithLogits` and that of sparse labels: a loss per row, and the gradient.
pub fn cross_entropy(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let [logits, labels] = request.inputs.first_chunk()?;
    let [loss, slope] = request.outputs.first_chunk()?;
    let &[rows, width] = &logits.shape[..] else {
        return None;
    };
    if !logits.is_f32() || slope.shape != logits.shape || loss.elements() != rows {
        return None;
    }
    let (kind, step) = match labels.dtype {
        DType::F32 if labels.shape == logits.shape => (6, 1),
        DType::I32 | DType::I64 => {
            // The CPU's kernel refuses labels that there are not.
            let found = request.integers(1)?;
            let known = found.iter().all(|&label| {
                let label = usize::try_from(label);
                label.is_ok_and(|label| label < width)
            });
            if !known || found.len() != rows {
                return None;
            }
            (7, labels.dtype.size() / 4)
        }
        _ => return None,
    };
    u32::try_from(rows.checked_mul(width)?).ok()?;
    let dispatch = Dispatch {
        shader: Shader::Rows,
        constants: vec![kind],
        words: numbers(&[rows, width, step])?,
        buffers: vec![
            logits.region(),
            slope.region(),
            labels.region(),
            loss.region(),
        ],
        groups: spread(rows)?,
    };
    Some(Plan::one(dispatch, 8 * (rows * width) as u64))
}
