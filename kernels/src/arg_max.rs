//! Where the largest or smallest element along an axis is; the first of equal ones.

use crate::adapt::{Element, check_len, unserved};
use crate::chunks::{chunk_len, for_each_chunk};
use crate::def::{AttrKind, Call, Inputs, KernelDef, OutputSink, Variant, no_scratch};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::parallel::Parallel;
use crate::shape::Shape;

/// Which element is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

/// The shape without `axis`.
///
/// # Errors
/// [`Error::Axis`] for an axis out of range, [`Error::Value`] if it has no elements.
pub fn without_axis(shape: &Shape, axis: i64) -> Result<Shape> {
    let axis = shape.axis("dimension", axis)?;
    if shape[axis] == 0 {
        return Err(Error::Value {
            argument: "input",
            expected: "at least one element along the axis",
        });
    }
    let mut out = Shape::SCALAR;
    for (i, &dim) in shape.iter().enumerate() {
        if i != axis {
            out.push(dim)?;
        }
    }
    Ok(out)
}

/// The index along `axis` of the extreme element; NaN is never chosen over a number before it.
///
/// # Errors
/// As [`without_axis`]; [`Error::Length`] if a slice does not fit its shape.
pub fn arg_extreme<T: Element + PartialOrd, I: Element>(
    extreme: Extreme,
    (x, shape): (&[T], &Shape),
    axis: i64,
    index: fn(usize) -> I,
    out: &mut [I],
    parallel: &dyn Parallel,
) -> Result<()> {
    let out_shape = without_axis(shape, axis)?;
    check_len("input", x.len(), shape)?;
    check_len("output", out.len(), &out_shape)?;
    let axis = shape.axis("dimension", axis)?;
    let (count, inner) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
    if out.is_empty() {
        return Ok(());
    }
    let better = |a: T, b: T| match extreme {
        Extreme::Max => a > b,
        Extreme::Min => a < b,
    };
    let chunk = chunk_len(parallel, out.len(), 1, count);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        for (place, out) in out.iter_mut().enumerate() {
            let (outer, column) = ((start + place) / inner, (start + place) % inner);
            let line = &x[outer * count * inner + column..];
            let mut best = (0, line[0]);
            if inner == 1 {
                for (i, &value) in line[..count].iter().enumerate() {
                    if better(value, best.1) {
                        best = (i, value);
                    }
                }
            } else {
                for (i, &value) in line.iter().step_by(inner).take(count).enumerate() {
                    if better(value, best.1) {
                        best = (i, value);
                    }
                }
            }
            *out = index(best.0);
        }
    });
    Ok(())
}

macro_rules! arg_variants {
    ($($dtype:ident)*) => {
        &[$(
            arg_variant(&[("T", DType::$dtype), ("Tidx", DType::I32), ("output_type", DType::I32)]),
            arg_variant(&[("T", DType::$dtype), ("Tidx", DType::I32), ("output_type", DType::I64)]),
            arg_variant(&[("T", DType::$dtype), ("Tidx", DType::I64), ("output_type", DType::I32)]),
            arg_variant(&[("T", DType::$dtype), ("Tidx", DType::I64), ("output_type", DType::I64)]),
        )*]
    };
}

const fn arg_variant(types: &'static [(&'static str, DType)]) -> Variant {
    Variant {
        types,
        host: &["dimension"],
    }
}

/// `ArgMax` of TensorFlow.
pub static ARG_MAX: KernelDef = KernelDef {
    op: "ArgMax",
    variants: arg_variants!(F32 F64 I32 I64 Bool),
    attrs: &[("output_type", AttrKind::Type)],
    forward: &[],
    outputs,
    scratch: no_scratch,
    run: |call| run(Extreme::Max, call),
};

/// `ArgMin` of TensorFlow.
pub static ARG_MIN: KernelDef = KernelDef {
    op: "ArgMin",
    variants: arg_variants!(F32 F64 I32 I64 Bool),
    attrs: &[("output_type", AttrKind::Type)],
    forward: &[],
    outputs,
    scratch: no_scratch,
    run: |call| run(Extreme::Min, call),
};

fn outputs(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let axis = inputs.int(1, "dimension")?;
    let shape = without_axis(&inputs.shape(0, "input")?, axis)?;
    sink(inputs.attrs.dtype("output_type")?, shape)
}

fn run(extreme: Extreme, call: &mut Call<'_>) -> Result<()> {
    match call.inputs.get(0, "input")?.dtype() {
        DType::F32 => run_typed::<f32>(extreme, call),
        DType::F64 => run_typed::<f64>(extreme, call),
        DType::I32 => run_typed::<i32>(extreme, call),
        DType::I64 => run_typed::<i64>(extreme, call),
        DType::Bool => run_typed::<u8>(extreme, call),
        found => Err(unserved("input", found)),
    }
}

fn run_typed<T: Element + PartialOrd>(extreme: Extreme, call: &mut Call<'_>) -> Result<()> {
    let (x, axis) = (
        call.inputs.get(0, "input")?,
        call.inputs.int(1, "dimension")?,
    );
    let x = (T::view(&x, "input")?, x.shape());
    let parallel = call.parallel;
    let output = call.output(0)?;
    match output.dtype() {
        DType::I32 => {
            let out = output.i32_mut("output")?;
            arg_extreme(extreme, x, axis, |i| i as i32, out, parallel)
        }
        DType::I64 => {
            let out = output.i64_mut("output")?;
            arg_extreme(extreme, x, axis, |i| i as i64, out, parallel)
        }
        found => Err(unserved("output", found)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Interleaved;

    #[test]
    fn the_first_of_equal_ones() {
        let x = [1.0, 5.0, 5.0, -2.0, 7.0, f32::NAN];
        let shape = Shape::new(&[2, 3]).unwrap();
        let find = |extreme, axis, len: usize| {
            let mut out = vec![-1; len];
            arg_extreme(
                extreme,
                (&x, &shape),
                axis,
                |i| i as i32,
                &mut out,
                &Interleaved,
            )
            .unwrap();
            out
        };
        assert_eq!(find(Extreme::Max, 1, 2), [1, 1]);
        assert_eq!(find(Extreme::Min, -1, 2), [0, 0]);
        assert_eq!(find(Extreme::Max, 0, 3), [0, 1, 0]);
        assert!(matches!(without_axis(&shape, 2), Err(Error::Axis { .. })));
        let empty = Shape::new(&[2, 0]).unwrap();
        assert!(matches!(without_axis(&empty, 1), Err(Error::Value { .. })));
        assert!(without_axis(&empty, 0).is_ok());
    }
}
