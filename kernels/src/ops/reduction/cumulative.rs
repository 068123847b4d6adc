//! Running sums and products along an axis.

use crate::base::adapt::{Element, by_type, check_len, variants};
use crate::base::def::{AttrKind, Call, Inputs, KernelDef, OutputSink};
use crate::base::error::Result;
use crate::base::shape::Shape;
use crate::frame::map::outputs_like_first;
use crate::frame::zip::Zip;
use crate::ops::elementwise::binary::{Add, Mul};

/// Which terms a running result has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// Only the terms before, not the one itself.
    pub exclusive: bool,
    /// From the end of the axis.
    pub reverse: bool,
}

/// Combines, for each element, the ones up to it along `axis`; `neutral` is the result of none.
///
/// # Errors
/// [`Error::Axis`](crate::base::error::Error::Axis) for an axis out of range,
/// [`Error::Length`](crate::base::error::Error::Length) if a slice does not fit the shape.
pub fn cumulative<O: Zip<T, Out = T>, T: Element>(
    op: O,
    neutral: T,
    (x, shape): (&[T], &Shape),
    axis: i64,
    mode: Mode,
    out: &mut [T],
) -> Result<()> {
    let axis = shape.axis("axis", axis)?;
    check_len("x", x.len(), shape)?;
    check_len("out", out.len(), shape)?;
    let (count, inner) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
    if out.is_empty() {
        return Ok(());
    }
    let block = count * inner;
    for (out, x) in out.chunks_mut(block).zip(x.chunks(block)) {
        for place in 0..count {
            let row = |place: usize| {
                let row = if mode.reverse {
                    count - 1 - place
                } else {
                    place
                };
                row * inner..(row + 1) * inner
            };
            let at = row(place);
            for column in 0..inner {
                let to = at.start + column;
                let before = place
                    .checked_sub(1)
                    .map(|before| row(before).start + column);
                out[to] = match (before, mode.exclusive) {
                    (None, true) => neutral,
                    (None, false) => x[to],
                    (Some(before), true) => op.apply(out[before], x[before]),
                    (Some(before), false) => op.apply(out[before], x[to]),
                };
            }
        }
    }
    Ok(())
}

const ATTRS: &[(&str, AttrKind)] = &[("exclusive", AttrKind::Bool), ("reverse", AttrKind::Bool)];

/// `Cumsum` of TensorFlow.
pub static CUMSUM: KernelDef = KernelDef {
    variants: variants!(["T": F32 F64 I64, "Tidx": I32 I64] host &["axis"];),
    attrs: ATTRS,
    outputs,
    run: |call| {
        let dtype = call.inputs.get(0, "x")?.dtype();
        by_type!(dtype, "x", T of [f32 f64 i64] => run::<Add, T>(Add, T::from(0_u8), call))
    },
    ..KernelDef::of("Cumsum")
};

/// `Cumprod` of TensorFlow.
pub static CUMPROD: KernelDef = KernelDef {
    variants: variants!(["T": F32 F64 I64, "Tidx": I32 I64] host &["axis"];),
    attrs: ATTRS,
    outputs,
    run: |call| {
        let dtype = call.inputs.get(0, "x")?.dtype();
        by_type!(dtype, "x", T of [f32 f64 i64] => run::<Mul, T>(Mul, T::from(1_u8), call))
    },
    ..KernelDef::of("Cumprod")
};

fn outputs(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    inputs.shape(0, "x")?.axis("axis", inputs.int(1, "axis")?)?;
    outputs_like_first(inputs, sink)
}

fn run<O: Zip<T, Out = T>, T: Element>(op: O, neutral: T, call: &mut Call<'_>) -> Result<()> {
    let (x, axis) = (call.inputs.get(0, "x")?, call.inputs.int(1, "axis")?);
    let mode = Mode {
        exclusive: call.inputs.attrs.boolean("exclusive")?,
        reverse: call.inputs.attrs.boolean("reverse")?,
    };
    let out = T::view_mut(call.output(0)?, "out")?;
    cumulative(op, neutral, (T::view(&x, "x")?, x.shape()), axis, mode, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes() {
        let x = [1, 2, 3, 4, 5, 6_i64];
        let shape = Shape::new(&[3, 2]).unwrap();
        let sums = |axis, exclusive, reverse| {
            let mode = Mode { exclusive, reverse };
            let mut out = [9; 6];
            cumulative(Add, 0, (&x, &shape), axis, mode, &mut out).unwrap();
            out
        };
        assert_eq!(sums(0, false, false), [1, 2, 4, 6, 9, 12]);
        assert_eq!(sums(0, true, false), [0, 0, 1, 2, 4, 6]);
        assert_eq!(sums(0, false, true), [9, 12, 8, 10, 5, 6]);
        assert_eq!(sums(-1, true, true), [2, 0, 4, 0, 6, 0]);
        assert!(cumulative(Mul, 1, (&x, &shape), 2, Mode::default(), &mut [0; 6]).is_err());
    }
}
