//! Surrounds a tensor with a value or with its own mirror image.

use crate::base::adapt::{by_width, check_len, units, units_mut, variants};
use crate::base::def::{AttrKind, Call, Inputs, KernelDef, OutputSink};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::shape::{MAX_RANK, Shape};
use crate::frame::strided::{View, dense_strides};
use crate::ops::moving::fill::fill;

/// How many elements to add before and after each axis.
pub type Paddings = [(usize, usize); MAX_RANK];

/// The shape after padding.
///
/// # Errors
/// As [`Shape::new`].
pub fn padded(shape: &Shape, paddings: &Paddings) -> Result<Shape> {
    let mut out = Shape::SCALAR;
    for (&dim, &(before, after)) in shape.iter().zip(paddings) {
        let total = dim
            .checked_add(before)
            .and_then(|dim| dim.checked_add(after));
        out.push(total.ok_or(Error::Overflow {
            argument: "paddings",
        })?)?;
    }
    Ok(out)
}

/// Writes `x` surrounded by `value`.
///
/// # Errors
/// As [`padded`]; [`Error::Length`] if a slice does not fit its shape.
pub fn pad<T: Copy + Send + Sync>(
    (x, shape): (&[T], &Shape),
    paddings: &Paddings,
    value: T,
    out: &mut [T],
    parallel: &dyn Parallel,
) -> Result<()> {
    let out_shape = padded(shape, paddings)?;
    check_len("input", x.len(), shape)?;
    check_len("output", out.len(), &out_shape)?;
    fill(value, out, parallel);
    if x.is_empty() {
        return Ok(());
    }
    let strides = dense_strides(&out_shape);
    let offset = strides
        .iter()
        .zip(paddings)
        .map(|(&stride, &(before, _))| before * stride.unsigned_abs());
    let mut view = View::new(offset.sum());
    for (&dim, &stride) in shape.iter().zip(&strides) {
        view.push(dim, stride)?;
    }
    view.check(out.len())?;
    view.write(x, out);
    Ok(())
}

/// Writes `x` surrounded by its mirror image; `border` says that the image repeats the border.
///
/// # Errors
/// As [`padded`]; [`Error::Value`] for a padding larger than the image, [`Error::Length`] if a
/// slice does not fit its shape.
pub fn mirror_pad<T: Copy>(
    (x, shape): (&[T], &Shape),
    paddings: &Paddings,
    border: bool,
    out: &mut [T],
) -> Result<()> {
    let out_shape = padded(shape, paddings)?;
    check_mirror(shape, paddings, border)?;
    check_len("input", x.len(), shape)?;
    check_len("output", out.len(), &out_shape)?;
    if out.is_empty() {
        return Ok(());
    }
    let strides = dense_strides(shape);
    let skip = usize::from(!border);
    // Where along an axis of the source an output index lies.
    let source = |axis: usize, index: usize| -> usize {
        let (dim, before) = (shape[axis], paddings[axis].0);
        if index < before {
            before - 1 - index + skip
        } else if index - before < dim {
            index - before
        } else {
            dim - 1 - skip - (index - before - dim)
        }
    };
    let rank = shape.rank();
    let row = out_shape.last().copied().unwrap_or(1);
    let mut at = [0; MAX_RANK];
    for out in out.chunks_mut(row) {
        let outer = rank.saturating_sub(1);
        let base = (0..outer).map(|axis| source(axis, at[axis]) * strides[axis].unsigned_abs());
        let base = base.sum::<usize>();
        for (index, out) in out.iter_mut().enumerate() {
            *out = x[base + if rank == 0 { 0 } else { source(outer, index) }];
        }
        for axis in (0..outer).rev() {
            at[axis] += 1;
            if at[axis] < out_shape[axis] {
                break;
            }
            at[axis] = 0;
        }
    }
    Ok(())
}

fn check_mirror(shape: &Shape, paddings: &Paddings, border: bool) -> Result<()> {
    for (&dim, &(before, after)) in shape.iter().zip(paddings) {
        let limit = if border { dim + 1 } else { dim };
        if before >= limit || after >= limit {
            return Err(Error::Value {
                argument: "paddings",
                expected: "paddings no larger than the mirror image",
            });
        }
    }
    Ok(())
}

const DATA: &[&str] = &["paddings"];

/// `Pad` of TensorFlow.
pub static PAD: KernelDef = KernelDef {
    variants: variants!(
        ["T": F32 F64 F16 BF16 I8 I16 I64 U8 U16 U32 U64 Bool, "Tpaddings": I32 I64] host DATA;
        ["T": I32, "Tpaddings": I32 I64] host &["input", "paddings", "output"];
    ),
    outputs,
    run: |call| by_width!(call.inputs.get(0, "input")?.dtype(), run(call)),
    ..KernelDef::of("Pad")
};

/// `PadV2` of TensorFlow.
pub static PAD_V2: KernelDef = KernelDef {
    variants: variants!(
        ["T": F32 F64 F16 BF16 I8 I16 I64 U8 U16 U32 U64 Bool, "Tpaddings": I32 I64] host DATA;
        ["T": I32, "Tpaddings": I32 I64] host &["input", "paddings", "constant_values", "output"];
    ),
    outputs,
    run: |call| by_width!(call.inputs.get(0, "input")?.dtype(), run(call)),
    ..KernelDef::of("PadV2")
};

/// `MirrorPad` of TensorFlow.
pub static MIRROR_PAD: KernelDef = KernelDef {
    variants: variants!(
        ["T": F32 F64 F16 BF16 I8 I16 I32 I64 U8 U16 U32 U64 Bool, "Tpaddings": I32 I64] host DATA;
    ),
    attrs: &[("mode", AttrKind::String)],
    outputs: |inputs, sink| {
        let (shape, paddings) = (inputs.shape(0, "input")?, paddings(inputs)?);
        check_mirror(&shape, &paddings, repeats_border(inputs)?)?;
        outputs(inputs, sink)
    },
    run: |call| by_width!(call.inputs.get(0, "input")?.dtype(), run_mirror(call)),
    ..KernelDef::of("MirrorPad")
};

fn repeats_border(inputs: &Inputs<'_>) -> Result<bool> {
    match inputs.attrs.string("mode")? {
        "SYMMETRIC" => Ok(true),
        "REFLECT" => Ok(false),
        _ => Err(Error::Value {
            argument: "mode",
            expected: "SYMMETRIC or REFLECT",
        }),
    }
}

/// The second input: a row of two numbers per axis.
fn paddings(inputs: &Inputs<'_>) -> Result<Paddings> {
    let (shape, tensor) = (inputs.shape(0, "input")?, inputs.get(1, "paddings")?);
    let expected = Shape::new(&[shape.rank(), 2])?;
    crate::base::adapt::check_shape("paddings", tensor.shape(), &expected)?;
    let value = |index: usize| -> Result<usize> {
        let value = match tensor.dtype() {
            DType::I32 => i64::from(tensor.i32("paddings")?[index]),
            _ => tensor.i64("paddings")?[index],
        };
        usize::try_from(value).map_err(|_| Error::Value {
            argument: "paddings",
            expected: "numbers that are not negative",
        })
    };
    let mut paddings = Paddings::default();
    for (axis, slot) in paddings.iter_mut().take(shape.rank()).enumerate() {
        *slot = (value(2 * axis)?, value(2 * axis + 1)?);
    }
    Ok(paddings)
}

fn outputs(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let x = inputs.get(0, "input")?;
    sink(x.dtype(), padded(x.shape(), &paddings(inputs)?)?)
}

fn run<const N: usize>(call: &mut Call<'_>) -> Result<()> {
    let (x, paddings) = (call.inputs.get(0, "input")?, paddings(&call.inputs)?);
    let value = match call.inputs.tensors.get(2) {
        None => [0; N],
        Some(value) => match *units::<N>(value.bytes()) {
            [unit] if value.shape().rank() == 0 => unit,
            ref values => {
                return Err(Error::Length {
                    argument: "constant_values",
                    found: values.len(),
                    expected: 1,
                });
            }
        },
    };
    let parallel = call.parallel;
    let out = units_mut(call.output(0)?.bytes_mut());
    pad(
        (units(x.bytes()), x.shape()),
        &paddings,
        value,
        out,
        parallel,
    )
}

fn run_mirror<const N: usize>(call: &mut Call<'_>) -> Result<()> {
    let (x, paddings) = (call.inputs.get(0, "input")?, paddings(&call.inputs)?);
    let border = repeats_border(&call.inputs)?;
    let out = units_mut::<N>(call.output(0)?.bytes_mut());
    mirror_pad((units(x.bytes()), x.shape()), &paddings, border, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Interleaved, numbers};
    use crate::trial::{cases, indices, number, shapes};
    use proptest::prelude::*;

    /// Where an output index lies in the source if the border is mirrored.
    fn mirrored(index: usize, before: usize, dim: usize, border: bool) -> usize {
        let skip = i64::from(!border);
        let i = index as i64 - before as i64;
        let i = if i < 0 { -i - 1 + skip } else { i };
        let dim = dim as i64;
        (if i >= dim { 2 * dim - 1 - skip - i } else { i }) as usize
    }

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn borders(shape in shapes(), widths: [(u8, u8); 8], border: bool) {
            let mut paddings = Paddings::default();
            let mut mirror = Paddings::default();
            for (axis, &dim) in shape.iter().enumerate() {
                let most = if border { dim } else { dim.saturating_sub(1) };
                let width = |w: u8, most: usize| usize::from(w) % (most + 1);
                let wide = if shape.rank() > 5 { 1 } else { 3 };
                paddings[axis] = (width(widths[axis].0, wide), width(widths[axis].1, wide));
                mirror[axis] = (width(widths[axis].0, most), width(widths[axis].1, most));
            }
            let x = numbers(shape.elements(), 1);
            let out_shape = padded(&shape, &paddings).unwrap();
            let mut out = vec![f32::NAN; out_shape.elements()];
            pad((&x, &shape), &paddings, 5.0, &mut out, &Interleaved).unwrap();
            for (i, &found) in out.iter().enumerate() {
                let at = indices(&out_shape, i);
                let inside: Option<Vec<usize>> = at
                    .iter()
                    .zip(shape.iter())
                    .zip(&paddings)
                    .map(|((&i, &dim), &(before, _))| i.checked_sub(before).filter(|&i| i < dim))
                    .collect();
                let expected = inside.map_or(5.0, |at| x[number(&shape, &at)]);
                prop_assert_eq!(found, expected);
            }
            if shape.elements() > 0 {
                let out_shape = padded(&shape, &mirror).unwrap();
                let mut out = vec![f32::NAN; out_shape.elements()];
                mirror_pad((&x, &shape), &mirror, border, &mut out).unwrap();
                for (i, &found) in out.iter().enumerate() {
                    let mut at = indices(&out_shape, i);
                    for (axis, at) in at.iter_mut().enumerate() {
                        *at = mirrored(*at, mirror[axis].0, shape[axis], border);
                    }
                    prop_assert_eq!(found, x[number(&shape, &at)]);
                }
            }
        }
    }

    #[test]
    fn mirrors_have_a_limit() {
        let shape = Shape::new(&[3]).unwrap();
        let mut paddings = Paddings::default();
        paddings[0] = (3, 0);
        assert!(mirror_pad((&[1, 2, 3], &shape), &paddings, true, &mut [0; 6]).is_ok());
        let refused = mirror_pad((&[1, 2, 3], &shape), &paddings, false, &mut [0; 6]);
        assert!(matches!(refused, Err(Error::Value { .. })));
    }
}
