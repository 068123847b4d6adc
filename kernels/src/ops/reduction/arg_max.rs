//! Where the largest or smallest element along an axis is; the first of equal ones.

use crate::base::adapt::{Element, by_type, check_len, unserved, variants};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{AttrKind, Call, Inputs, KernelDef, OutputSink, Variants};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::simd::body::{Body, dispatch};

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

/// A type whose elements can be searched.
pub trait Ordered: Element + PartialOrd {
    /// The smallest finite value.
    const LEAST: Self;
    /// The largest finite value.
    const LARGEST: Self;
}

macro_rules! ordered {
    ($($type:ident)*) => {$(
        impl Ordered for $type {
            const LEAST: Self = $type::MIN;
            const LARGEST: Self = $type::MAX;
        }
    )*};
}

ordered!(f32 f64 i32 i64 u32 u64 u8);

/// The index along `axis` of the extreme element; 0 if none is beyond the finite value at the other
/// end of the type, as where all are NaN. NaN is never chosen.
///
/// # Errors
/// As [`without_axis`]; [`Error::Length`] if a slice does not fit its shape.
pub fn arg_extreme<T: Ordered, I: Element>(
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
    let chunk = chunk_len(parallel, out.len(), 1, count);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        if inner == 1 {
            for (place, out) in out.iter_mut().enumerate() {
                let x = &x[(start + place) * count..][..count];
                *out = index(dispatch(Line { extreme, x }));
            }
            return;
        }
        let mut at = start;
        let mut rest = out;
        while !rest.is_empty() {
            let (outer, column) = (at / inner, at % inner);
            let width = rest.len().min(inner - column).min(COLUMNS);
            let (out, after) = core::mem::take(&mut rest).split_at_mut(width);
            let mut best = [0; COLUMNS];
            let x = &x[outer * count * inner + column..];
            dispatch(Columns {
                extreme,
                x,
                inner,
                count,
                best: &mut best[..width],
            });
            for (out, &best) in out.iter_mut().zip(&best) {
                *out = index(best as usize);
            }
            at += width;
            rest = after;
        }
    });
    Ok(())
}

/// Elements of a line that are compared side by side.
const LANES: usize = 32;
/// Lines side by side that are searched at a time.
const COLUMNS: usize = 128;

#[inline(always)]
fn better<T: PartialOrd>(extreme: Extreme, a: T, b: T) -> bool {
    match extreme {
        Extreme::Max => a > b,
        Extreme::Min => a < b,
    }
}

/// What the search starts from.
#[inline(always)]
fn worst<T: Ordered>(extreme: Extreme) -> T {
    match extreme {
        Extreme::Max => T::LEAST,
        Extreme::Min => T::LARGEST,
    }
}

/// Elements that lie together.
struct Line<'a, T> {
    extreme: Extreme,
    x: &'a [T],
}

impl<T: Ordered> Body for Line<'_, T> {
    type Output = usize;

    const LEVELS: bool = T::LEVELS;

    /// First the extreme value, then where it is.
    #[inline(always)]
    fn run(self) -> usize {
        let Self { extreme, x } = self;
        let worst = worst(extreme);
        let mut lanes = [worst; LANES];
        let (blocks, rest) = x.as_chunks::<LANES>();
        for block in blocks {
            for (best, &value) in lanes.iter_mut().zip(block) {
                *best = if better(extreme, value, *best) {
                    value
                } else {
                    *best
                };
            }
        }
        let lanes = if blocks.is_empty() { &[][..] } else { &lanes };
        let values = lanes.iter().chain(rest);
        let best = values.fold(worst, |best, &value| {
            if better(extreme, value, best) {
                value
            } else {
                best
            }
        });
        if best == worst {
            return 0;
        }
        let found = blocks
            .iter()
            .position(|block| block.iter().fold(false, |found, &x| found | (x == best)));
        let start = found.map_or(blocks.len() * LANES, |block| block * LANES);
        let within = x[start..].iter().position(|&value| value == best);
        within.map_or(0, |within| start + within)
    }
}

/// Lines side by side, whose elements are `inner` apart.
struct Columns<'a, T> {
    extreme: Extreme,
    x: &'a [T],
    inner: usize,
    count: usize,
    best: &'a mut [u64],
}

impl<T: Ordered> Body for Columns<'_, T> {
    type Output = ();

    const LEVELS: bool = T::LEVELS;

    #[inline(always)]
    fn run(self) {
        let width = self.best.len();
        let mut values = [worst(self.extreme); COLUMNS];
        for row in 0..self.count {
            let x = &self.x[row * self.inner..][..width];
            for ((best, value), &x) in self.best.iter_mut().zip(&mut values).zip(x) {
                let is_better = better(self.extreme, x, *value);
                *value = if is_better { x } else { *value };
                *best = if is_better { row as u64 } else { *best };
            }
        }
    }
}

/// The types of the kernels of 16-bit floats.
pub(crate) const NARROW: &[Variants] = variants!(
    ["T": F16 BF16, "Tidx": I32 I64, "output_type": I32 I64] host &["dimension"];
);

const VARIANTS: &[Variants] = variants!(
    ["T": F32 F64 I32 I64 Bool, "Tidx": I32 I64, "output_type": I32 I64] host &["dimension"];
);

/// `ArgMax` of TensorFlow.
pub static ARG_MAX: KernelDef = KernelDef {
    variants: VARIANTS,
    attrs: &[("output_type", AttrKind::Type)],
    outputs,
    run: |call| run(Extreme::Max, call),
    ..KernelDef::of("ArgMax")
};

/// `ArgMin` of TensorFlow.
pub static ARG_MIN: KernelDef = KernelDef {
    variants: VARIANTS,
    attrs: &[("output_type", AttrKind::Type)],
    outputs,
    run: |call| run(Extreme::Min, call),
    ..KernelDef::of("ArgMin")
};

fn outputs(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let axis = inputs.int(1, "dimension")?;
    let shape = without_axis(&inputs.shape(0, "input")?, axis)?;
    sink(inputs.attrs.dtype("output_type")?, shape)
}

fn run(extreme: Extreme, call: &mut Call<'_>) -> Result<()> {
    by_type!(
        call.inputs.get(0, "input")?.dtype(),
        "input",
        T of [f32 f64 i32 i64 u8] => run_typed::<T>(extreme, call)
    )
}

fn run_typed<T: Ordered>(extreme: Extreme, call: &mut Call<'_>) -> Result<()> {
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
    fn as_one_after_the_other() {
        for (outer, count, inner) in [(1, 1, 1), (3, 31, 1), (2, 100, 1), (2, 5, 300), (4, 9, 7)] {
            let shape = Shape::new(&[outer, count, inner]).unwrap();
            let mut x = crate::testing::numbers(shape.elements(), 5);
            // Equal ones, and NaN, also at the beginning of a line.
            for (i, x) in x.iter_mut().enumerate() {
                *x = (*x * 6.0).round();
                if i % 41 == 0 {
                    *x = f32::NAN;
                }
            }
            for extreme in [Extreme::Max, Extreme::Min] {
                let [a, b, c] = crate::simd::body::forced::results(|| {
                    let mut out = vec![-1; outer * inner];
                    let index = |i| i as i64;
                    arg_extreme(extreme, (&x, &shape), 1, index, &mut out, &Interleaved).unwrap();
                    out
                });
                assert!(a == b && b == c);
                for (place, found) in a.into_iter().enumerate() {
                    let base = place / inner * count * inner + place % inner;
                    let line: Vec<f32> = (0..count).map(|i| x[base + i * inner]).collect();
                    let start = (0, worst::<f32>(extreme));
                    let (best, _) = line.into_iter().enumerate().fold(start, |best, (i, x)| {
                        if better(extreme, x, best.1) {
                            (i, x)
                        } else {
                            best
                        }
                    });
                    assert_eq!(found, best as i64);
                }
            }
        }
    }

    #[test]
    fn nan_is_never_found() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        for (line, expected) in [
            ([nan, 1.0, 1.0], 1),
            ([nan, -inf, 5.0], 2),
            // TensorFlow starts from the least finite number.
            ([nan, -inf, f32::MIN], 0),
            ([-inf, -inf, f32::MIN], 0),
            ([nan, nan, nan], 0),
        ] {
            let opposite = line.map(|x| -x);
            for (extreme, line) in [(Extreme::Max, line), (Extreme::Min, opposite)] {
                for inner in [1, 3] {
                    let shape = Shape::new(&[3, inner]).unwrap();
                    let x: Vec<f32> = line.iter().flat_map(|&x| vec![x; inner]).collect();
                    let mut out = vec![-1; inner];
                    let index = |i| i as i32;
                    arg_extreme(extreme, (&x, &shape), 0, index, &mut out, &Interleaved).unwrap();
                    assert_eq!(out, vec![expected; inner], "{line:?}");
                }
            }
        }
    }

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
