//! Ops that move elements: dense tensors and parts of them, an offset and a step per axis.

use tfp_kernels::ops::moving::strided_slice::{Masks, Region as Indexed};

use crate::request::{Operand, Request};
use crate::shader::Shader;
use crate::vulkan::device::Limits;
use crate::work::{Dispatch, Plan, Region, numbers, spread};

/// Most axes of a move.
const AXES: usize = 6;

/// Size of an axis, and its steps in the input and in the output.
type Axis = (usize, [isize; 2]);

/// Elements that are moved: where both sides begin, and the axes in order.
struct Move {
    starts: [usize; 2],
    axes: Vec<Axis>,
}

fn is_even(value: isize) -> bool {
    value % 4 == 0
}

/// A number that wraps.
fn wrapped(value: isize) -> u32 {
    value as u32
}

impl Move {
    /// The axes from the last on; those that are stepped through evenly are one.
    fn merged(&self) -> Option<Vec<Axis>> {
        let mut found: Vec<Axis> = Vec::new();
        for &(size, steps) in self.axes.iter().rev().filter(|(size, _)| *size != 1) {
            let reach = i32::try_from(size).ok()? as isize;
            match found.last_mut() {
                Some((last, before))
                    if (0..2).all(|side| before[side] * *last as isize == steps[side]) =>
                {
                    *last *= reach.unsigned_abs();
                }
                _ => found.push((size, steps)),
            }
        }
        (found.len() <= AXES).then_some(found)
    }

    /// Moves elements, or writes a number to all places of the output.
    fn dispatch(&self, [from, to]: [Region; 2], fill: Option<f32>) -> Option<Dispatch> {
        let mut axes = self.merged()?;
        let mut starts = self.starts;
        let vectors = axes.first().is_some_and(|&(size, steps)| {
            let mut outer = axes[1..].iter().flat_map(|(_, steps)| steps);
            let whole = steps == [1, 1] && size % 4 == 0;
            whole && outer.all(|&step| is_even(step)) && starts.iter().all(|at| at % 4 == 0)
        });
        if vectors {
            axes[0].0 /= 4;
            for (_, steps) in &mut axes[1..] {
                *steps = steps.map(|step| step / 4);
            }
            starts = starts.map(|at| at / 4);
        }
        let count: usize = axes.iter().map(|(size, _)| size).product();
        let mut words = numbers(&[count, axes.len(), starts[0], starts[1]])?;
        axes.resize(AXES, (1, [0; 2]));
        for &(size, _) in &axes {
            words.push(u32::try_from(size).ok()?);
        }
        for side in 0..2 {
            words.extend(axes.iter().map(|(_, steps)| wrapped(steps[side])));
        }
        words.push(fill.unwrap_or(0.0).to_bits());
        Some(Dispatch {
            shader: if vectors {
                Shader::Move4
            } else {
                Shader::Move1
            },
            constants: vec![u32::from(fill.is_some())],
            words,
            buffers: vec![from, to],
            groups: spread(count.div_ceil(256))?,
        })
    }
}

/// Elements from one index to the next along each axis of a dense tensor.
fn dense(shape: &[usize]) -> Vec<isize> {
    let mut steps = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        steps[axis - 1] = steps[axis] * shape[axis] as isize;
    }
    steps
}

/// Whether offsets and counts of a tensor of float32 are words.
fn fits(operand: &Operand) -> bool {
    operand.is_f32() && operand.elements() < 1 << 31
}

fn moved(steps: Move, (input, output): (&Operand, &Operand)) -> Option<Plan> {
    if !fits(input) || !fits(output) {
        return None;
    }
    let dispatch = steps.dispatch([input.region(), output.region()], None)?;
    Some(Plan::one(dispatch, 0))
}

/// A plan that reads a view; `steps` are those of the output's axes.
fn copy(request: &Request<'_>, offset: usize, steps: &[isize]) -> Option<Plan> {
    let (input, output) = (request.inputs.first()?, request.outputs.first()?);
    if steps.len() != output.shape.len() {
        return None;
    }
    let to = dense(&output.shape);
    let axes = output.shape.iter().zip(steps.iter().zip(to));
    let axes = axes.map(|(&size, (&from, to))| (size, [from, to]));
    let starts = [offset, 0];
    moved(
        Move {
            starts,
            axes: axes.collect(),
        },
        (input, output),
    )
}

/// `Transpose`.
pub fn transpose(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let steps = dense(&request.inputs.first()?.shape);
    let order = request.integers(1)?;
    let order = order
        .iter()
        .map(|&axis| steps.get(place(axis, steps.len())?));
    let steps = order.collect::<Option<Vec<_>>>()?;
    let steps: Vec<isize> = steps.into_iter().copied().collect();
    copy(request, 0, &steps)
}

/// An axis that may be counted from the end.
fn place(axis: i64, rank: usize) -> Option<usize> {
    let signed = i64::try_from(rank).ok()?;
    let at = usize::try_from(if axis < 0 { axis + signed } else { axis }).ok()?;
    (at < rank).then_some(at)
}

/// `Slice`.
pub fn slice(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let (input, output) = (request.inputs.first()?, request.outputs.first()?);
    let steps = dense(&input.shape);
    let begin = request.integers(1)?;
    if begin.len() != steps.len() || output.shape.len() != steps.len() {
        return None;
    }
    let mut offset = 0;
    for (axis, &begin) in begin.iter().enumerate() {
        let begin = usize::try_from(begin).ok()?;
        if begin + output.shape[axis] > input.shape[axis] {
            return None;
        }
        offset += begin * steps[axis].unsigned_abs();
    }
    copy(request, offset, &steps)
}

/// `BroadcastTo`.
pub fn broadcast_to(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let (input, output) = (request.inputs.first()?, request.outputs.first()?);
    let added = output.shape.len().checked_sub(input.shape.len())?;
    let mut steps = vec![0; added];
    for (axis, step) in dense(&input.shape).into_iter().enumerate() {
        let (from, to) = (input.shape[axis], output.shape[added + axis]);
        if from != to && from != 1 {
            return None;
        }
        steps.push(if from == 1 { 0 } else { step });
    }
    copy(request, 0, &steps)
}

/// `Tile`: each axis is two, the first of which stays where it is.
pub fn tile(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let (input, output) = (request.inputs.first()?, request.outputs.first()?);
    let multiples = request.integers(1)?;
    if multiples.len() != input.shape.len() {
        return None;
    }
    let (from, to) = (dense(&input.shape), dense(&output.shape));
    let mut axes = Vec::new();
    for (axis, &multiple) in multiples.iter().enumerate() {
        let (size, multiple) = (input.shape[axis], usize::try_from(multiple).ok()?);
        axes.push((multiple, [0, to[axis] * size as isize]));
        axes.push((size, [from[axis], to[axis]]));
    }
    let starts = [0; 2];
    moved(Move { starts, axes }, (input, output))
}

/// Copies all elements of a tensor to another of as many.
pub fn moved_whole(from: &Operand, to: &Operand) -> Option<Dispatch> {
    let steps = Move {
        starts: [0; 2],
        axes: vec![(to.elements(), [1; 2])],
    };
    let fit = fits(from) && fits(to) && from.elements() == to.elements();
    fit.then(|| steps.dispatch([from.region(), to.region()], None))?
}

/// Writes a number to all elements of a tensor.
pub fn filled(output: &Operand, value: f32) -> Option<Dispatch> {
    let steps = Move {
        starts: [0; 2],
        axes: vec![(output.elements(), [1; 2])],
    };
    steps.dispatch([output.region(); 2], Some(value))
}

/// The number in an input of one element.
fn scalar(request: &Request<'_>, input: usize) -> Option<f32> {
    let operand = request.inputs.get(input)?;
    let words = request.words(input)?;
    (operand.is_f32() && words.len() == 1).then(|| f32::from_bits(words[0]))
}

/// `Fill`, `ZerosLike` and `OnesLike`.
pub fn fill(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let output = request.outputs.first()?;
    let value = match request.op {
        "Fill" => scalar(request, 1)?,
        "OnesLike" => 1.0,
        _ => 0.0,
    };
    fits(output).then(|| Some(Plan::one(filled(output, value)?, 0)))?
}

/// A plan that writes an input to a view of the output, whose other elements are a number.
fn scatter(
    (input, output): (&Operand, &Operand),
    value: f32,
    (offset, steps): (usize, &[(usize, isize)]),
) -> Option<Plan> {
    if !fits(input) || !fits(output) {
        return None;
    }
    let mut plan = Plan::one(filled(output, value)?, 0);
    if input.elements() == 0 {
        return Some(plan);
    }
    let sizes: Vec<usize> = steps.iter().map(|(size, _)| *size).collect();
    let axes = steps.iter().zip(dense(&sizes));
    let axes = axes.map(|(&(size, to), from)| (size, [from, to]));
    let steps = Move {
        starts: [0, offset],
        axes: axes.collect(),
    };
    let dispatch = steps.dispatch([input.region(), output.region()], None)?;
    plan.dispatches.push(dispatch);
    Some(plan)
}

/// `Pad` and `PadV2`.
pub fn pad(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let (input, output) = (request.inputs.first()?, request.outputs.first()?);
    let value = match request.op {
        "PadV2" => scalar(request, 2)?,
        _ => 0.0,
    };
    let paddings = request.integers(1)?;
    let pairs = paddings.as_chunks::<2>().0;
    if pairs.len() != input.shape.len() {
        return None;
    }
    let mut offset = 0;
    let mut steps = Vec::new();
    for (axis, to) in dense(&output.shape).into_iter().enumerate() {
        offset += usize::try_from(pairs[axis][0]).ok()? * to.unsigned_abs();
        steps.push((input.shape[axis], to));
    }
    scatter((input, output), value, (offset, &steps))
}

/// The index of a strided slice into a tensor of this shape.
fn indexed(request: &Request<'_>, shape: &tfp_kernels::base::shape::Shape) -> Option<Indexed> {
    let mask = |name| Some(request.attrs.int(name).ok()? as u32);
    let masks = Masks {
        begin: mask("begin_mask")?,
        end: mask("end_mask")?,
        ellipsis: mask("ellipsis_mask")?,
        new_axis: mask("new_axis_mask")?,
        shrink_axis: mask("shrink_axis_mask")?,
    };
    let [begin, end, steps] = [1, 2, 3].map(|input| request.integers(input));
    Indexed::new(shape, &begin?, &end?, &steps?, masks).ok()
}

/// `StridedSlice`.
pub fn strided_slice(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let (input, output) = (request.inputs.first()?, request.outputs.first()?);
    let found = indexed(request, &input.shape)?;
    let (offset, axes) = found.view().axes();
    let axes: Vec<_> = axes.collect();
    let sizes: Vec<usize> = axes.iter().map(|(size, _)| *size).collect();
    let axes = axes.iter().zip(dense(&sizes));
    let axes = axes.map(|(&(size, from), to)| (size, [from, to]));
    let starts = [offset, 0];
    moved(
        Move {
            starts,
            axes: axes.collect(),
        },
        (input, output),
    )
}

/// `StridedSliceGrad`.
pub fn strided_slice_grad(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let (input, output) = (request.inputs.get(4)?, request.outputs.first()?);
    let found = indexed(request, &output.shape)?;
    let (offset, axes) = found.view().axes();
    scatter((input, output), 0.0, (offset, &axes.collect::<Vec<_>>()))
}

/// Moves between a tensor and parts of it that lie side by side: `inner` elements of each part, `outer` times.
fn parts((whole, all): (&Operand, &[Operand]), outer: usize, direction: Direction) -> Option<Plan> {
    if !fits(whole) || outer == 0 {
        return None;
    }
    let row = whole.elements() / outer;
    let mut plan = Plan::default();
    let mut at = 0;
    for part in all.iter().filter(|part| part.elements() > 0) {
        if !fits(part) {
            return None;
        }
        let inner = part.elements() / outer;
        let axes = [(outer, [inner, row]), (inner, [1, 1])];
        let joins = direction == Direction::Join;
        let swap = |[a, b]: [usize; 2]| if joins { [a, b] } else { [b, a] };
        let signed = |[a, b]: [usize; 2]| [a as isize, b as isize];
        let steps = Move {
            starts: swap([0, at]),
            axes: axes.map(|(size, steps)| (size, signed(swap(steps)))).into(),
        };
        let [from, to] = if joins {
            [part.region(), whole.region()]
        } else {
            [whole.region(), part.region()]
        };
        plan.dispatches.push(steps.dispatch([from, to], None)?);
        at += inner;
    }
    (at == row && !plan.dispatches.is_empty() && plan.dispatches.len() <= MOST_PARTS)
        .then_some(plan)
}

/// Most parts that are moved in one dispatch.
const MOST_PARTS: usize = 32;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Join,
    Split,
}

/// The product of the axes before this one.
fn before(shape: &[usize], axis: i64, rank: usize) -> Option<usize> {
    Some(shape.get(..place(axis, rank)?)?.iter().product())
}

/// `ConcatV2` and `Pack`.
pub fn join(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let output = request.outputs.first()?;
    let (axis, all) = if request.op == "Pack" {
        (request.attrs.int("axis").ok()?, &request.inputs[..])
    } else {
        let (_, values) = request.inputs.split_last()?;
        (*request.integers(values.len())?.first()?, values)
    };
    let outer = before(&output.shape, axis, output.shape.len())?;
    parts((output, all), outer, Direction::Join)
}

/// `Split`, `SplitV` and `Unpack`.
pub fn split(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let (input, axis) = match request.op {
        "Split" => (1, *request.integers(0)?.first()?),
        "SplitV" => (0, *request.integers(2)?.first()?),
        _ => (0, request.attrs.int("axis").ok()?),
    };
    let input = request.inputs.get(input)?;
    let outer = before(&input.shape, axis, input.shape.len())?;
    parts((input, &request.outputs), outer, Direction::Split)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_that_step_alike_are_one() {
        let steps = Move {
            starts: [0; 2],
            axes: vec![(2, [12, 12]), (3, [4, 4]), (1, [9, 9]), (4, [1, 1])],
        };
        assert_eq!(steps.merged().unwrap(), [(24, [1, 1])]);
        let steps = Move {
            starts: [0; 2],
            axes: vec![(2, [1, 3]), (3, [2, 1])],
        };
        assert_eq!(steps.merged().unwrap(), [(3, [2, 1]), (2, [1, 3])]);
    }
}
