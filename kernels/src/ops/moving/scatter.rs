//! A tensor with some of its slices changed: what TensorFlow's `ResourceScatter*` ops do to a
//! variable, as a function of values.

use crate::base::adapt::{Element, by_type, variants};
use crate::base::def::{AttrKind, Call, Inputs, KernelDef, TensorMut, TensorRef, Variants};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::shape::Shape;

/// How a slice and its update are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The sum.
    Add,
    /// The difference.
    Sub,
    /// The product.
    Mul,
    /// The quotient; an integer 0 is refused.
    Div,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
    /// The update alone.
    Update,
}

impl Reduction {
    /// By its name in lower case.
    ///
    /// # Errors
    /// [`Error::Value`] for another name.
    pub fn new(name: &str) -> Result<Self> {
        Ok(match name {
            "add" => Self::Add,
            "sub" => Self::Sub,
            "mul" => Self::Mul,
            "div" => Self::Div,
            "min" => Self::Min,
            "max" => Self::Max,
            "update" => Self::Update,
            _ => {
                return Err(Error::Value {
                    argument: "reduction",
                    expected: "add, sub, mul, div, min, max or update",
                });
            }
        })
    }
}

/// A number that slices are changed with.
pub trait Number: Element + PartialOrd {
    /// The two numbers put together.
    fn reduce(self, update: Self, reduction: Reduction) -> Self;

    /// Whether a number can be divided by this one.
    fn divides(self) -> bool;
}

macro_rules! numbers {
    ($($type:ident: $a:ident $b:ident $add:expr, $sub:expr, $mul:expr, $div:expr,
       $divides:expr;)*) => {$(
        impl Number for $type {
            #[inline(always)]
            fn reduce(self, update: Self, reduction: Reduction) -> Self {
                let ($a, $b) = (self, update);
                match reduction {
                    Reduction::Add => $add,
                    Reduction::Sub => $sub,
                    Reduction::Mul => $mul,
                    Reduction::Div => $div,
                    Reduction::Min => if $b < $a { $b } else { $a },
                    Reduction::Max => if $a < $b { $b } else { $a },
                    Reduction::Update => $b,
                }
            }

            #[inline(always)]
            fn divides(self) -> bool {
                let $b = self;
                $divides
            }
        }
    )*};
}

numbers! {
    f32: a b a + b, a - b, a * b, a / b, { let _ = b; true };
    f64: a b a + b, a - b, a * b, a / b, { let _ = b; true };
    i32: a b a.wrapping_add(b), a.wrapping_sub(b), a.wrapping_mul(b),
        if b == 0 { 0 } else { a.wrapping_div(b) }, b != 0;
    i64: a b a.wrapping_add(b), a.wrapping_sub(b), a.wrapping_mul(b),
        if b == 0 { 0 } else { a.wrapping_div(b) }, b != 0;
    // Truth values.
    u8: a b a | b, a & !b, a & b, a, b != 0;
}

/// Changes, in order, the slice of `tensor` that each index names. An index has one number for each
/// of `limits`, the lengths of the tensor's first axes; a slice has the elements of the other axes.
/// `updates` has a slice per index, or one element for all.
///
/// # Errors
/// [`Error::Index`] for a number outside of its axis, [`Error::Length`] if the updates or indices
/// do not fit.
pub fn scatter<T: Number, I: Element + Into<i64>>(
    tensor: &mut [T],
    limits: &[usize],
    indices: &[I],
    updates: &[T],
    reduction: Reduction,
) -> Result<()> {
    change::<T, I, false>(tensor, limits, indices, updates, reduction)
}

/// As [`scatter`] in each of `groups` parts of the tensor, which have as many indices and updates
/// of their own. With `skip`, an index with a negative number changes nothing, as in TensorFlow's
/// `UnsortedSegment*` ops.
///
/// # Errors
/// As [`scatter`], but the groups before that of the index are changed then; [`Error::Length`] if
/// the groups do not divide the slices.
pub fn scatter_groups<T: Number, I: Element + Into<i64>>(
    tensor: &mut [T],
    (groups, limits): (usize, &[usize]),
    indices: &[I],
    updates: &[T],
    (reduction, skip): (Reduction, bool),
) -> Result<()> {
    let change = if skip {
        change::<T, I, true>
    } else {
        change::<T, I, false>
    };
    let part = |argument, found: usize| {
        let part = found.checked_div(groups).unwrap_or(0);
        crate::base::adapt::check_count(argument, found, part * groups).map(|()| part)
    };
    let slices = part("tensor", tensor.len())?;
    let places = part("indices", indices.len())?;
    let values = part("updates", updates.len())?;
    for group in 0..groups {
        change(
            &mut tensor[group * slices..][..slices],
            limits,
            &indices[group * places..][..places],
            &updates[group * values..][..values],
            reduction,
        )?;
    }
    Ok(())
}

fn change<T: Number, I: Element + Into<i64>, const SKIP: bool>(
    tensor: &mut [T],
    limits: &[usize],
    indices: &[I],
    updates: &[T],
    reduction: Reduction,
) -> Result<()> {
    let left_out = |index: &[I]| SKIP && index.iter().any(|&i| i.into() < 0);
    let slices: usize = limits.iter().product();
    let slice = tensor.len().checked_div(slices).unwrap_or(0);
    let count = indices.len().checked_div(limits.len()).unwrap_or(0);
    crate::base::adapt::check_count("indices", indices.len(), count * limits.len())?;
    let expected = count.saturating_mul(slice);
    if updates.len() != 1 {
        crate::base::adapt::check_count("updates", updates.len(), expected)?;
    }
    if reduction == Reduction::Div && !updates.iter().all(|update| update.divides()) {
        return Err(Error::Value {
            argument: "updates",
            expected: "no integer 0 to divide by",
        });
    }
    for index in indices.chunks(limits.len().max(1)) {
        if !left_out(index) {
            number("indices", index, limits)?;
        }
    }
    if slice == 0 {
        return Ok(());
    }
    for (place, index) in indices.chunks(limits.len().max(1)).enumerate() {
        if left_out(index) {
            continue;
        }
        let out = &mut tensor[number("indices", index, limits)? * slice..][..slice];
        if updates.len() == expected {
            for (out, &update) in out.iter_mut().zip(&updates[place * slice..][..slice]) {
                *out = out.reduce(update, reduction);
            }
        } else {
            for out in out {
                *out = out.reduce(updates[0], reduction);
            }
        }
    }
    Ok(())
}

/// The row-major number of an index within axes of these lengths.
///
/// # Errors
/// [`Error::Index`] if it lies outside of one.
#[inline(always)]
pub(crate) fn number<I: Copy + Into<i64>>(
    argument: &'static str,
    index: &[I],
    limits: &[usize],
) -> Result<usize> {
    let mut number = 0;
    for (&index, &limit) in index.iter().zip(limits) {
        let index: i64 = index.into();
        match usize::try_from(index) {
            Ok(index) if index < limit => number = number * limit + index,
            _ => {
                return Err(Error::Index {
                    argument,
                    index,
                    limit,
                });
            }
        }
    }
    Ok(number)
}

/// The types of the kernels of 16-bit floats.
pub(crate) const NARROW: &[Variants] = variants!(["T": F16 BF16, "Tindices": I32 I64];);

const WITH_BOOL: &[Variants] = variants!(["T": F32 F64 I64 Bool, "Tindices": I32 I64];);
const NUMBERS: &[Variants] = variants!(["T": F32 F64 I64, "Tindices": I32 I64];);

/// `TfpScatter`, an op that the plug-in defines: `tensor` with the slices that `indices` names
/// changed by `updates`. Indices are numbers along the first axis; if `nd` is set, the last axis of
/// `indices` holds a number for each of the first axes.
pub static SCATTER: KernelDef = KernelDef {
    variants: NUMBERS,
    attrs: &[("reduction", AttrKind::String), ("nd", AttrKind::Bool)],
    forward: &[(0, 0)],
    outputs: |inputs, sink| {
        let tensor = inputs.get(0, "tensor")?;
        let (indices, depth) = indices(inputs)?;
        let updates = inputs.shape(2, "updates")?;
        fits(tensor.shape(), (indices, depth), updates, true)?;
        sink(tensor.dtype(), *tensor.shape())
    },
    run: |call| {
        let reduction = Reduction::new(call.inputs.attrs.string("reduction")?)?;
        let (_, depth) = indices(&call.inputs)?;
        run(call, (Some(0), 1, 2), depth, reduction)
    },
    ..KernelDef::of("TfpScatter")
};

/// What TensorFlow's ops on slices of a tensor share.
const fn tensor_scatter(
    op: &'static str,
    variants: &'static [Variants],
    run: fn(&mut Call<'_>) -> Result<()>,
) -> KernelDef {
    KernelDef {
        variants,
        forward: &[(0, 0)],
        outputs: |inputs, sink| {
            let tensor = inputs.get(0, "tensor")?;
            let (indices, depth) = by_element(inputs.shape(1, "indices")?)?;
            fits(
                tensor.shape(),
                (indices, depth),
                inputs.shape(2, "updates")?,
                false,
            )?;
            sink(tensor.dtype(), *tensor.shape())
        },
        run,
        ..KernelDef::of(op)
    }
}

fn run_tensor(call: &mut Call<'_>, reduction: Reduction) -> Result<()> {
    let (_, depth) = by_element(call.inputs.shape(1, "indices")?)?;
    run(call, (Some(0), 1, 2), depth, reduction)
}

/// `TensorScatterAdd` of TensorFlow.
pub static TENSOR_SCATTER_ADD: KernelDef = tensor_scatter("TensorScatterAdd", NUMBERS, |call| {
    run_tensor(call, Reduction::Add)
});

/// `TensorScatterMax` of TensorFlow.
pub static TENSOR_SCATTER_MAX: KernelDef = tensor_scatter("TensorScatterMax", NUMBERS, |call| {
    run_tensor(call, Reduction::Max)
});

/// `TensorScatterMin` of TensorFlow.
pub static TENSOR_SCATTER_MIN: KernelDef = tensor_scatter("TensorScatterMin", NUMBERS, |call| {
    run_tensor(call, Reduction::Min)
});

/// `TensorScatterSub` of TensorFlow.
pub static TENSOR_SCATTER_SUB: KernelDef = tensor_scatter("TensorScatterSub", NUMBERS, |call| {
    run_tensor(call, Reduction::Sub)
});

/// `TensorScatterUpdate` of TensorFlow.
pub static TENSOR_SCATTER_UPDATE: KernelDef =
    tensor_scatter("TensorScatterUpdate", WITH_BOOL, |call| {
        run_tensor(call, Reduction::Update)
    });

const SHAPE: &[&str] = &["shape"];

/// `ScatterNd` of TensorFlow: zeros with updates added.
pub static SCATTER_ND: KernelDef = KernelDef {
    variants: variants!(["T": F32 F64 I64, "Tindices": I32 I64] host SHAPE;),
    outputs: |inputs, sink| {
        let shape = inputs.shape_value(2, "shape")?;
        let (indices, depth) = by_element(inputs.shape(0, "indices")?)?;
        let updates = inputs.get(1, "updates")?;
        fits(&shape, (indices, depth), *updates.shape(), false)?;
        sink(updates.dtype(), shape)
    },
    run: |call| {
        let (_, depth) = by_element(call.inputs.shape(0, "indices")?)?;
        run(call, (None, 0, 1), depth, Reduction::Add)
    },
    ..KernelDef::of("ScatterNd")
};

/// Changes the output, which holds `tensor`'s values or gets them, by updates of `indices` whose
/// numbers the tensor's first `depth` axes have.
fn run(
    call: &mut Call<'_>,
    (tensor, indices, updates): (Option<usize>, usize, usize),
    depth: usize,
    reduction: Reduction,
) -> Result<()> {
    let indices = call.inputs.get(indices, "indices")?;
    let updates = call.inputs.get(updates, "updates")?;
    match tensor {
        Some(tensor) => {
            let tensor = call.inputs.get(tensor, "tensor")?;
            if !tensor.is_forwarded() {
                let out = call.output(0)?.bytes_mut();
                out.copy_from_slice(tensor.bytes());
            }
        }
        None => call.output(0)?.bytes_mut().fill(0),
    }
    let output = call.output(0)?;
    by_type!(
        updates.dtype(),
        "updates",
        T of [f32 f64 i64 u8] => run_typed::<T>(output, depth, indices, updates, reduction)
    )
}

fn run_typed<T: Number>(
    output: &mut TensorMut<'_>,
    depth: usize,
    indices: TensorRef<'_>,
    updates: TensorRef<'_>,
    reduction: Reduction,
) -> Result<()> {
    if indices.shape().elements() == 0 {
        return Ok(());
    }
    let shape = *output.shape();
    let limits = shape.get(..depth).unwrap_or_default();
    let updates = T::view(&updates, "updates")?;
    let out = T::view_mut(output, "output")?;
    match indices.dtype() {
        DType::I32 => scatter(out, limits, indices.i32("indices")?, updates, reduction),
        _ => scatter(out, limits, indices.i64("indices")?, updates, reduction),
    }
}

/// Fails unless there is a slice of a tensor per index, or one element where that may be.
fn fits(
    tensor: &Shape,
    (indices, depth): (Shape, usize),
    updates: Shape,
    scalar: bool,
) -> Result<()> {
    let rest = tensor.get(depth..).ok_or(Error::Rank {
        argument: "tensor",
        found: tensor.rank(),
        expected: "at least the numbers of an index",
    })?;
    let fits = updates.len() == indices.rank() + rest.len()
        && updates[..indices.rank()] == *indices
        && updates[indices.rank()..] == *rest;
    if fits || (scalar && updates.rank() == 0) {
        Ok(())
    } else {
        Err(Error::Incompatible {
            arguments: ("indices", "updates"),
            shapes: (indices, updates),
            rule: if scalar {
                "the updates must have a slice of the tensor per index, or be one number"
            } else {
                "the updates must have a slice of the tensor per index"
            },
        })
    }
}

/// The shape of the indices as a whole, and how many numbers each has.
fn indices(inputs: &Inputs<'_>) -> Result<(Shape, usize)> {
    let shape = inputs.shape(1, "indices")?;
    if inputs.attrs.boolean("nd")? {
        by_element(shape)
    } else {
        Ok((shape, 1))
    }
}

/// As [`indices`], where the last axis holds the numbers of an index.
fn by_element(shape: Shape) -> Result<(Shape, usize)> {
    match shape.split_last() {
        Some((&depth, whole)) if depth > 0 => Ok((Shape::new(whole)?, depth)),
        _ => Err(Error::Value {
            argument: "indices",
            expected: "a last axis with at least one number",
        }),
    }
}

#[cfg(test)]
mod tests;
