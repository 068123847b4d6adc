//! Indices as vectors with a single element that differs.

use crate::base::adapt::{Element, by_type, by_width, check_rank, units, units_mut, variants};
use crate::base::def::{AttrKind, Call, Inputs, KernelDef};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::shape::Shape;

/// The shape of indices with an axis of `depth` inserted at `axis`; -1 appends it.
///
/// # Errors
/// [`Error::Axis`] for an axis out of range, [`Error::Value`] for a negative depth, [`Error::Rank`]
/// above rank 8.
pub fn one_hot_shape(indices: &Shape, depth: i64, axis: i64) -> Result<Shape> {
    let place = place(indices, axis)?;
    let depth = usize::try_from(depth).map_err(|_| Error::Value {
        argument: "depth",
        expected: "a number that is not negative",
    })?;
    let mut out = Shape::SCALAR;
    for &dim in &indices[..place] {
        out.push(dim)?;
    }
    out.push(depth)?;
    for &dim in &indices[place..] {
        out.push(dim)?;
    }
    Ok(out)
}

fn place(indices: &Shape, axis: i64) -> Result<usize> {
    let rank = indices.rank();
    if axis == -1 {
        return Ok(rank);
    }
    usize::try_from(axis)
        .ok()
        .filter(|&axis| axis <= rank)
        .ok_or(Error::Axis {
            argument: "axis",
            axis,
            rank: rank + 1,
        })
}

/// Writes `on` where the position along the new axis equals the index, and `off` elsewhere. An
/// index outside the axis is nowhere. `inner` is the number of elements after the new axis.
///
/// # Errors
/// [`Error::Length`] unless `out` has `depth` elements per index.
pub fn one_hot<T: Copy, I: Element + TryInto<usize>>(
    indices: &[I],
    depth: usize,
    inner: usize,
    (on, off): (T, T),
    out: &mut [T],
) -> Result<()> {
    let len = indices.len().checked_mul(depth);
    let expected = len.ok_or(Error::Overflow { argument: "output" })?;
    crate::base::adapt::check_count("output", out.len(), expected)?;
    out.fill(off);
    let inner = inner.max(1);
    let parts = out.chunks_mut((depth * inner).max(1));
    for (part, indices) in parts.zip(indices.chunks(inner)) {
        for (column, &index) in indices.iter().enumerate() {
            let index: usize = index.try_into().unwrap_or(usize::MAX);
            if index < depth
                && let Some(slot) = part.get_mut(index * inner + column)
            {
                *slot = on;
            }
        }
    }
    Ok(())
}

/// `OneHot` of TensorFlow.
pub static ONE_HOT: KernelDef = KernelDef {
    variants: variants!(
        ["T": F32 F64 F16 BF16 I8 I16 I32 I64 U8 U16 U32 U64 Bool, "TI": I32 I64 U8]
            host &["depth"];
    ),
    attrs: &[("axis", AttrKind::Int)],
    outputs: |inputs, sink| {
        let shape = inputs.shape(0, "indices")?;
        let (depth, axis) = (inputs.int(1, "depth")?, inputs.attrs.int("axis")?);
        sink(
            inputs.get(2, "on_value")?.dtype(),
            one_hot_shape(&shape, depth, axis)?,
        )
    },
    run: |call| by_width!(call.inputs.get(2, "on_value")?.dtype(), run(call)),
    ..KernelDef::of("OneHot")
};

fn scalar<const N: usize>(
    inputs: &Inputs<'_>,
    index: usize,
    argument: &'static str,
) -> Result<[u8; N]> {
    check_rank(inputs.get(index, argument)?.shape(), argument, 0, "0")?;
    match *units::<N>(inputs.get(index, argument)?.bytes()) {
        [value] => Ok(value),
        ref values => Err(Error::Length {
            argument,
            found: values.len(),
            expected: 1,
        }),
    }
}

fn run<const N: usize>(call: &mut Call<'_>) -> Result<()> {
    let indices = call.inputs.get(0, "indices")?;
    let place = place(indices.shape(), call.inputs.attrs.int("axis")?)?;
    let inner = indices.shape()[place..].iter().product();
    let on = scalar::<N>(&call.inputs, 2, "on_value")?;
    let off = scalar::<N>(&call.inputs, 3, "off_value")?;
    let output = call.output(0)?;
    let depth = output.shape()[place];
    let out = units_mut(output.bytes_mut());
    by_type!(
        indices.dtype(),
        "indices",
        T of [i32 i64] => one_hot(T::view(&indices, "indices")?, depth, inner, (on, off), out),
        DType::U8 => one_hot(indices.bytes(), depth, inner, (on, off), out),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_outside_are_nowhere() {
        let mut out = [9; 8];
        one_hot(&[1_i64, -1, 4, 0], 2, 1, (1, 0), &mut out).unwrap();
        assert_eq!(out, [0, 1, 0, 0, 0, 0, 1, 0]);
        one_hot(&[1_i64, 0, 7, 1], 2, 2, (1, 0), &mut out).unwrap();
        assert_eq!(out, [0, 1, 1, 0, 0, 0, 0, 1]);
        assert!(one_hot(&[1_i64], 2, 1, (1, 0), &mut out).is_err());
        let shape = Shape::new(&[4, 5]).unwrap();
        assert_eq!(&*one_hot_shape(&shape, 3, -1).unwrap(), [4, 5, 3]);
        assert_eq!(&*one_hot_shape(&shape, 3, 0).unwrap(), [3, 4, 5]);
        assert!(matches!(
            one_hot_shape(&shape, 3, 3),
            Err(Error::Axis { .. })
        ));
        assert!(matches!(
            one_hot_shape(&shape, -3, 0),
            Err(Error::Value { .. })
        ));
    }
}
