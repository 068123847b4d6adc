//! Splitting and unpacking: one tensor becomes several.

use crate::base::adapt::{by_width, check_rank, units, units_mut, variants};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{AttrKind, Call, Inputs, KernelDef, OutputSink, TensorRef};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::shape::Shape;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Copies one part of a tensor: of each of the `outer` rows of `x`, the elements from `start` on.
///
/// # Errors
/// [`Error::Length`] if the lengths are not multiples of `outer`, [`Error::Index`] if the part
/// leaves the rows.
pub fn split_part<T: Copy>(x: &[T], outer: usize, start: usize, out: &mut [T]) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    for (argument, len) in [("value", x.len()), ("output", out.len())] {
        if outer == 0 || len % outer != 0 {
            return Err(Error::Length {
                argument,
                found: len,
                expected: outer,
            });
        }
    }
    let (row, share) = (x.len() / outer, out.len() / outer);
    if start.checked_add(share).is_none_or(|end| end > row) {
        return Err(Error::Index {
            argument: "start",
            index: start as i64,
            limit: row,
        });
    }
    copy((x, row), start, share, out);
    Ok(())
}

/// Copies `share` elements of each row of `row` elements, from the one at `start` on.
fn copy<T: Copy>((x, row): (&[T], usize), start: usize, share: usize, out: &mut [T]) {
    if share == 1 {
        let column = x.get(start..).unwrap_or(&[]).iter().step_by(row);
        for (out, x) in out.iter_mut().zip(column) {
            *out = *x;
        }
        return;
    }
    for (out, x) in out.chunks_mut(share).zip(x.chunks(row)) {
        let x = &x[start..start + share];
        if share >= 16 {
            out.copy_from_slice(x);
        } else {
            for (out, x) in out.iter_mut().zip(x) {
                *out = *x;
            }
        }
    }
}

fn with_dim(shape: &Shape, axis: usize, dim: usize) -> Result<Shape> {
    let mut out = Shape::SCALAR;
    for (i, &old) in shape.iter().enumerate() {
        out.push(if i == axis { dim } else { old })?;
    }
    Ok(out)
}

const DATA: &str = "value";

/// `Split` of TensorFlow.
pub static SPLIT: KernelDef = KernelDef {
    variants: variants!(
        ["T": F32 F64 F16 BF16 I8 I16 I32 I64 U8 U16 U32 U64 Bool] host &["split_dim"];
    ),
    attrs: &[("num_split", AttrKind::Int)],
    outputs: |inputs, sink| {
        let (x, count) = (inputs.get(1, DATA)?, inputs.attrs.int("num_split")?);
        let axis = x.shape().axis("split_dim", inputs.int(0, "split_dim")?)?;
        let parts = usize::try_from(count).unwrap_or(0);
        let dim = x.shape()[axis];
        if parts == 0 || dim % parts != 0 {
            return Err(Error::Value {
                argument: "num_split",
                expected: "a number above 0 that divides the axis",
            });
        }
        let shape = with_dim(x.shape(), axis, dim / parts)?;
        (0..parts).try_for_each(|_| sink(x.dtype(), shape))
    },
    run: |call| {
        let (x, axis) = (call.inputs.get(1, DATA)?, call.inputs.int(0, "split_dim")?);
        run_along(call, &x, axis)
    },
    ..KernelDef::of("Split")
};

/// `SplitV` of TensorFlow.
pub static SPLIT_V: KernelDef = KernelDef {
    variants: variants!(
        ["T": F32 F64 F16 BF16 I8 I16 I32 I64 U8 U16 U32 U64 Bool, "Tlen": I32 I64]
            host &["size_splits", "split_dim"];
    ),
    outputs: outputs_split_v,
    run: |call| {
        let (x, axis) = (
            call.inputs.get(0, DATA)?,
            call.inputs.int_of_any_rank(2, "split_dim")?,
        );
        run_along(call, &x, axis)
    },
    ..KernelDef::of("SplitV")
};

const REFUSED: Error = Error::Value {
    argument: "size_splits",
    expected: "sizes that add up to the axis, at most one of several -1",
};

fn outputs_split_v(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let x = inputs.get(0, DATA)?;
    let axis = x
        .shape()
        .axis("split_dim", inputs.int_of_any_rank(2, "split_dim")?)?;
    let sizes = inputs.get(1, "size_splits")?;
    check_rank(sizes.shape(), "size_splits", 1, "1")?;
    let size = |index: usize| -> Result<i64> {
        match sizes.dtype() {
            DType::I32 => Ok(i64::from(sizes.i32("size_splits")?[index])),
            _ => Ok(sizes.i64("size_splits")?[index]),
        }
    };
    // There may be more parts than a shape has axes, so that they are read one by one.
    let count = sizes.shape().elements();
    let (mut known, mut open) = (0_i64, 0);
    for index in 0..count {
        match size(index)? {
            -1 => open += 1,
            part if part < 0 => return Err(REFUSED),
            part => known = known.saturating_add(part),
        }
    }
    let dim = x.shape()[axis];
    let rest = dim as i64 - known;
    // TensorFlow wants the size of an only part.
    if open > 1 || rest < 0 || (open == count && count == 1) || (open == 0 && rest != 0) {
        return Err(REFUSED);
    }
    for index in 0..count {
        let part = match size(index)? {
            -1 => rest,
            part => part,
        };
        let part = usize::try_from(part).map_err(|_| REFUSED)?;
        sink(x.dtype(), with_dim(x.shape(), axis, part)?)?;
    }
    Ok(())
}

/// `Unpack` of TensorFlow.
pub static UNPACK: KernelDef = KernelDef {
    variants: variants!(["T": F32 F64 F16 BF16 I8 I16 U8 U16 U32 U64 Bool];),
    attrs: &[("axis", AttrKind::Int), ("num", AttrKind::Int)],
    outputs: |inputs, sink| {
        let (x, num) = (inputs.get(0, DATA)?, inputs.attrs.int("num")?);
        let axis = x.shape().axis("axis", inputs.attrs.int("axis")?)?;
        let count = x.shape()[axis];
        if usize::try_from(num) != Ok(count) {
            return Err(Error::Length {
                argument: "value",
                found: count,
                expected: usize::try_from(num).unwrap_or(0),
            });
        }
        let mut shape = Shape::SCALAR;
        for (i, &dim) in x.shape().iter().enumerate() {
            if i != axis {
                shape.push(dim)?;
            }
        }
        (0..count).try_for_each(|_| sink(x.dtype(), shape))
    },
    run: |call| {
        let (x, axis) = (call.inputs.get(0, DATA)?, call.inputs.attrs.int("axis")?);
        run_along(call, &x, axis)
    },
    ..KernelDef::of("Unpack")
};

fn run_along(call: &mut Call<'_>, x: &TensorRef<'_>, axis: i64) -> Result<()> {
    let axis = x.shape().axis("axis", axis)?;
    let outer = x.shape()[..axis].iter().product();
    by_width!(x.dtype(), run(call, x, outer))
}

fn run<const N: usize>(call: &mut Call<'_>, x: &TensorRef<'_>, outer: usize) -> Result<()> {
    let (x, mut start) = (units::<N>(x.bytes()), 0);
    let row = x.len().checked_div(outer).unwrap_or(0);
    for output in call.outputs.iter_mut() {
        let out = units_mut::<N>(output.bytes_mut());
        let share = out.len().checked_div(outer).unwrap_or(0);
        if share > 0 {
            // What is read between the parts of rows takes time as well.
            let cost = (LINE / (N * share)).clamp(1, 4);
            let chunk = chunk_len(call.parallel, out.len(), share, cost);
            for_each_chunk(call.parallel, out, chunk, &|at, out| {
                copy((&x[at / share * row..], row), start, share, out);
            });
        }
        start += share;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{Attr, Tensor, run};

    #[test]
    fn one_size_may_be_open() {
        let x = Tensor::f32(&[5], &[0.0, 1.0, 2.0, 3.0, 4.0]);
        let split = |sizes: &[i32]| {
            let sizes = Tensor::i32(&[sizes.len()], sizes);
            let axis = Tensor::i32(&[], &[0]);
            run(&SPLIT_V, &[], &[x.clone(), sizes, axis], false)
        };
        let parts = split(&[2, -1]).unwrap();
        assert_eq!(parts[1].to_f32(), [2.0, 3.0, 4.0]);
        for sizes in [&[2, 2][..], &[-1], &[-1, -1], &[6, -1], &[-2, 7]] {
            assert!(split(sizes).is_err(), "{sizes:?}");
        }
    }

    #[test]
    fn equal_parts() {
        let inputs = [
            Tensor::i32(&[], &[1]),
            Tensor::f32(&[2, 4], &crate::testing::numbers(8, 1)),
        ];
        let parts = run(&SPLIT, &[("num_split", Attr::Int(2))], &inputs, false).unwrap();
        let x = inputs[1].to_f32();
        assert_eq!(parts[1].to_f32(), [x[2], x[3], x[6], x[7]]);
        assert!(run(&SPLIT, &[("num_split", Attr::Int(3))], &inputs, false).is_err());
        assert!(split_part(&[1, 2, 3, 4], 2, 1, &mut [0; 4]).is_err());
    }

    /// Also where several threads copy.
    #[test]
    fn parts_are_those_of_the_rows() {
        for (outer, row, num) in [(9000, 4, 4), (9000, 6, 2), (40_000, 2, 2), (2, 50_000, 2)] {
            let x = Tensor::f32(&[outer, row], &crate::testing::numbers(outer * row, 1));
            let (all, share) = (x.to_f32(), row / num);
            let inputs = [Tensor::i32(&[], &[1]), x.clone()];
            let mut found = vec![run(
                &SPLIT,
                &[("num_split", Attr::Int(num as i64))],
                &inputs,
                false,
            )];
            if share == 1 {
                let attrs = [("axis", Attr::Int(1)), ("num", Attr::Int(num as i64))];
                found.push(run(&UNPACK, &attrs, &[x], false));
            }
            for parts in found {
                for (part, found) in parts.unwrap().iter().enumerate() {
                    for (i, found) in found.to_f32().iter().enumerate() {
                        let (line, column) = (i / share, i % share);
                        assert_eq!(*found, all[line * row + part * share + column]);
                    }
                }
            }
        }
    }
}
