//! Indexing with begin, end and step per axis, and its gradient.

use crate::base::adapt::{Ints, by_width, check_len, shape_of, units, units_mut, variants};
use crate::base::def::{AttrKind, Call, Inputs, KernelDef};
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::frame::strided::{View, dense_strides, read};
use crate::ops::moving::broadcast_to::broadcast_to;

/// The masks of an index; bit `i` speaks of entry `i` of begin, end and strides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Masks {
    /// The begin is as far out as possible, unless the axis shrinks.
    pub begin: u32,
    /// The end is as far out as possible.
    pub end: u32,
    /// The entry stands for all axes that no other entry speaks of; at most one.
    pub ellipsis: u32,
    /// The entry makes a new axis of size 1.
    pub new_axis: u32,
    /// The entry takes one index, and its axis vanishes.
    pub shrink_axis: u32,
}

/// An index, resolved for a shape.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// Shape of the result.
    pub shape: Shape,
    view: View,
}

impl Region {
    /// Where the elements are in the tensor that is indexed.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Resolves an index for a tensor of this shape, as TensorFlow's `StridedSlice` does.
    ///
    /// # Errors
    /// [`Error::Length`] unless begin, end and strides are equally long, [`Error::Value`] for a
    /// step of 0, a second ellipsis or a step below 0 with a shrunk axis, [`Error::Rank`] for more
    /// entries than axes, [`Error::Index`] if a shrunk axis is indexed out of range.
    pub fn new(
        shape: &Shape,
        begin: &[i64],
        end: &[i64],
        strides: &[i64],
        masks: Masks,
    ) -> Result<Self> {
        for (argument, found) in [("end", end.len()), ("strides", strides.len())] {
            crate::base::adapt::check_count(argument, found, begin.len())?;
        }
        let entries = begin.len();
        if entries > 32 {
            return Err(Error::Length {
                argument: "begin",
                found: entries,
                expected: 32,
            });
        }
        let all = if entries == 32 {
            u32::MAX
        } else {
            (1 << entries) - 1
        };
        let ellipsis = masks.ellipsis & all;
        if ellipsis.count_ones() > 1 {
            return Err(Error::Value {
                argument: "ellipsis_mask",
                expected: "at most one ellipsis",
            });
        }
        let named = (all & !ellipsis & !masks.new_axis).count_ones() as usize;
        let unnamed = shape.rank().checked_sub(named).ok_or(Error::Rank {
            argument: "input",
            found: shape.rank(),
            expected: "at least as many axes as the index names",
        })?;
        let source = dense_strides(shape);
        let mut region = Builder {
            shape: Shape::SCALAR,
            offset: 0,
            steps: [(1, 0); crate::base::shape::MAX_RANK],
            count: 0,
        };
        let mut axis = 0;
        for entry in 0..entries {
            let bit = 1_u32 << entry;
            if ellipsis & bit != 0 {
                for _ in 0..unnamed {
                    region.keep(shape[axis], source[axis])?;
                    axis += 1;
                }
            } else if masks.new_axis & bit != 0 {
                region.shape.push(1)?;
            } else {
                let shrink = masks.shrink_axis & bit != 0;
                let range = Range {
                    begin: (shrink || masks.begin & bit == 0).then_some(begin[entry]),
                    end: (masks.end & bit == 0).then_some(end[entry]),
                    step: strides[entry],
                };
                region.take(shape[axis], source[axis], range, shrink)?;
                axis += 1;
            }
        }
        for axis in axis..shape.rank() {
            region.keep(shape[axis], source[axis])?;
        }
        // An empty result reads nothing, wherever its ranges begin.
        let empty = region.shape.elements() == 0;
        let mut view = View::new(if empty { 0 } else { region.offset });
        for &(dim, stride) in &region.steps[..region.count] {
            view.push(dim, stride)?;
        }
        Ok(Self {
            shape: region.shape,
            view,
        })
    }
}

struct Range {
    begin: Option<i64>,
    end: Option<i64>,
    step: i64,
}

struct Builder {
    shape: Shape,
    offset: usize,
    steps: [(usize, isize); crate::base::shape::MAX_RANK],
    count: usize,
}

impl Builder {
    fn keep(&mut self, dim: usize, stride: isize) -> Result<()> {
        self.shape.push(dim)?;
        self.step(dim, stride);
        Ok(())
    }

    fn step(&mut self, dim: usize, stride: isize) {
        self.steps[self.count] = (dim, stride);
        self.count += 1;
    }

    fn take(&mut self, dim: usize, stride: isize, range: Range, shrink: bool) -> Result<()> {
        let size = dim as i64;
        let step = range.step;
        if step == 0 || (shrink && step < 0) {
            return Err(Error::Value {
                argument: "strides",
                expected: "steps that are not 0, and above 0 where an axis shrinks",
            });
        }
        let wrap = |index: i64| {
            if index < 0 {
                index.saturating_add(size)
            } else {
                index
            }
        };
        if shrink {
            let index = range.begin.unwrap_or(0);
            let start = usize::try_from(wrap(index))
                .ok()
                .filter(|&start| start < dim)
                .ok_or(Error::Index {
                    argument: "begin",
                    index,
                    limit: dim,
                })?;
            self.offset += start * stride as usize;
            return Ok(());
        }
        let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
        let (first, last) = if step > 0 { (low, high) } else { (high, low) };
        let begin = range
            .begin
            .map_or(first, |index| wrap(index).clamp(low, high));
        let end = range.end.map_or(last, |index| wrap(index).clamp(low, high));
        let span = if step > 0 { end - begin } else { begin - end };
        let pace = step.unsigned_abs();
        let count = (span.max(0) as u64).div_ceil(pace) as usize;
        self.shape.push(count)?;
        if count > 0 {
            self.offset += begin as usize * stride as usize;
        }
        // The step of an axis of one element is never taken, and may be larger than any offset.
        let jump = if count > 1 { step as isize * stride } else { 0 };
        self.step(count, jump);
        Ok(())
    }
}

/// Writes the elements of `x` that `region` selects.
///
/// # Errors
/// [`Error::Length`] if `out` has another number of elements, [`Error::Index`] if `x` is shorter
/// than the region was resolved for.
pub fn strided_slice<T: Copy + Send + Sync>(
    x: &[T],
    region: &Region,
    out: &mut [T],
    parallel: &dyn Parallel,
) -> Result<()> {
    read(x, &region.view, out, parallel)
}

/// Writes `dy` to the elements of `out` that `region` selects, and zero to all others.
///
/// # Errors
/// [`Error::Length`] if `dy` has another number of elements than the region, [`Error::Index`] if
/// `out` is shorter than the region was resolved for.
pub fn strided_slice_grad<T: Copy>(
    dy: &[T],
    zero: T,
    region: &Region,
    out: &mut [T],
) -> Result<()> {
    check_len("dy", dy.len(), &region.shape)?;
    region.view.check(out.len())?;
    out.fill(zero);
    region.view.write(dy, out);
    Ok(())
}

const ATTRS: &[(&str, AttrKind)] = &[
    ("begin_mask", AttrKind::Int),
    ("ellipsis_mask", AttrKind::Int),
    ("end_mask", AttrKind::Int),
    ("new_axis_mask", AttrKind::Int),
    ("shrink_axis_mask", AttrKind::Int),
];

/// `StridedSlice` of TensorFlow.
pub static STRIDED_SLICE: KernelDef = KernelDef {
    variants: variants!(
        ["T": F32 F64 F16 BF16 I8 I16 I64 U8 U16 U32 U64 Bool, "Index": I32 I64]
            host &["begin", "end", "strides"];
        ["T": I32, "Index": I32 I64] host &["input", "begin", "end", "strides", "output"];
    ),
    attrs: ATTRS,
    outputs: |inputs, sink| {
        let x = inputs.get(0, "input")?;
        sink(x.dtype(), region(inputs, x.shape())?.shape)
    },
    run: |call| by_width!(call.inputs.get(0, "input")?.dtype(), run(call)),
    ..KernelDef::of("StridedSlice")
};

/// `StridedSliceGrad` of TensorFlow.
pub static STRIDED_SLICE_GRAD: KernelDef = KernelDef {
    variants: variants!(
        ["T": F32 F64 F16 BF16 I8 I16 I64 U8 U16 U32 U64 Bool, "Index": I32 I64]
            host &["shape", "begin", "end", "strides"];
        ["T": I32, "Index": I32 I64] host &["shape", "begin", "end", "strides", "dy", "output"];
    ),
    attrs: ATTRS,
    outputs: |inputs, sink| {
        let shape = shape_of("shape", &inputs.ints(0, "shape")?)?;
        let dy = inputs.get(4, "dy")?;
        crate::base::adapt::check_shape("dy", dy.shape(), &region(inputs, &shape)?.shape)?;
        sink(dy.dtype(), shape)
    },
    run: |call| by_width!(call.inputs.get(4, "dy")?.dtype(), run_grad(call)),
    ..KernelDef::of("StridedSliceGrad")
};

/// `TensorStridedSliceUpdate` of TensorFlow: what `StridedSlice` would take is replaced by `value`,
/// broadcast.
pub static TENSOR_STRIDED_SLICE_UPDATE: KernelDef = KernelDef {
    op: "TensorStridedSliceUpdate",
    variants: variants!(
        ["T": F32 F64 F16 BF16 I8 I16 I64 U8 U16 U32 U64 Bool, "Index": I32 I64]
            host &["begin", "end", "strides"];
        ["T": I32, "Index": I32 I64] host &["input", "begin", "end", "strides", "value", "output"];
    ),
    attrs: ATTRS,
    forward: &[(0, 0)],
    outputs: |inputs, sink| {
        let x = inputs.get(0, "input")?;
        let of = region(inputs, x.shape())?.shape;
        let value = without_leading_ones(&inputs.shape(4, "value")?, of.rank())?;
        // Where nothing is written, anything may be.
        if of.elements() == 0 {
            return sink(x.dtype(), *x.shape());
        }
        if value.broadcast(&of, ("value", "slice"))? != of {
            return Err(Error::Incompatible {
                arguments: ("value", "slice"),
                shapes: (value, of),
                rule: "the value may only be stretched, not the slice",
            });
        }
        sink(x.dtype(), *x.shape())
    },
    scratch: |inputs| {
        let x = inputs.get(0, "input")?;
        let of = region(inputs, x.shape())?.shape;
        let value = without_leading_ones(&inputs.shape(4, "value")?, of.rank())?;
        if of.elements() == 0 || of == value {
            return Ok(0);
        }
        let bytes = of.elements().checked_mul(x.dtype().size());
        bytes.ok_or(Error::Overflow {
            argument: "scratch",
        })
    },
    run: |call| by_width!(call.inputs.get(0, "input")?.dtype(), run_update(call)),
};

fn region(inputs: &Inputs<'_>, shape: &Shape) -> Result<Region> {
    let mask = |name| inputs.attrs.int(name).map(|mask| mask as u32);
    let masks = Masks {
        begin: mask("begin_mask")?,
        end: mask("end_mask")?,
        ellipsis: mask("ellipsis_mask")?,
        new_axis: mask("new_axis_mask")?,
        shrink_axis: mask("shrink_axis_mask")?,
    };
    let ints = |index, name| -> Result<Ints> { inputs.ints(index, name) };
    let (begin, end) = (ints(1, "begin")?, ints(2, "end")?);
    Region::new(shape, &begin, &end, &ints(3, "strides")?, masks)
}

fn run<const N: usize>(call: &mut Call<'_>) -> Result<()> {
    let x = call.inputs.get(0, "input")?;
    let region = region(&call.inputs, x.shape())?;
    let parallel = call.parallel;
    let out = units_mut::<N>(call.output(0)?.bytes_mut());
    strided_slice(units(x.bytes()), &region, out, parallel)
}

fn run_grad<const N: usize>(call: &mut Call<'_>) -> Result<()> {
    let dy = call.inputs.get(4, "dy")?;
    let shape = *call.output(0)?.shape();
    let region = region(&call.inputs, &shape)?;
    let out = units_mut::<N>(call.output(0)?.bytes_mut());
    strided_slice_grad(units(dy.bytes()), [0; N], &region, out)
}

/// A shape without as many of its first axes as are more than `rank` and have one element.
fn without_leading_ones(shape: &Shape, rank: usize) -> Result<Shape> {
    let more = shape.rank().saturating_sub(rank);
    let ones = shape.iter().take(more).take_while(|&&dim| dim == 1).count();
    Shape::new(&shape[ones..])
}

fn run_update<const N: usize>(call: &mut Call<'_>) -> Result<()> {
    let (x, value) = (call.inputs.get(0, "input")?, call.inputs.get(4, "value")?);
    let region = region(&call.inputs, x.shape())?;
    let parallel = call.parallel;
    let scratch = units_mut::<N>(call.scratch);
    let value_shape = &without_leading_ones(value.shape(), region.shape.rank())?;
    let value = units(value.bytes());
    let value = if *value_shape == region.shape {
        value
    } else if region.shape.elements() == 0 {
        &[]
    } else {
        let count = region.shape.elements();
        let found = scratch.len();
        let stretched = scratch.get_mut(..count).ok_or(Error::Length {
            argument: "scratch",
            found,
            expected: count,
        })?;
        let target = (&mut *stretched, &region.shape);
        broadcast_to((value, value_shape), target, parallel)?;
        &*stretched
    };
    let output = call.outputs.first_mut().ok_or(Error::Value {
        argument: "output",
        expected: "an output tensor",
    })?;
    if !x.is_forwarded() {
        output.bytes_mut().copy_from_slice(x.bytes());
    }
    let out = units_mut::<N>(output.bytes_mut());
    check_len("value", value.len(), &region.shape)?;
    region.view.check(out.len())?;
    region.view.write(value, out);
    Ok(())
}

#[cfg(test)]
mod tests;
