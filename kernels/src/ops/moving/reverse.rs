//! Reverses the order of elements along axes.

use crate::base::adapt::{by_width, check_len, units, units_mut, variants};
use crate::base::def::{Call, KernelDef};
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::shape::{MAX_RANK, Shape};
use crate::frame::map::outputs_like_first;
use crate::frame::strided::{View, dense_strides, read};

/// Writes `x` with the order along each of `axes` reversed.
///
/// # Errors
/// [`Error::Axis`] for an axis out of range, [`Error::Value`] if one appears twice,
/// [`Error::Length`] if a slice does not fit the shape.
pub fn reverse<T: Copy + Send + Sync>(
    (x, shape): (&[T], &Shape),
    axes: &[i64],
    out: &mut [T],
    parallel: &dyn Parallel,
) -> Result<()> {
    check_len("tensor", x.len(), shape)?;
    check_len("output", out.len(), shape)?;
    let mut reversed = [false; MAX_RANK];
    for &axis in axes {
        let slot = &mut reversed[shape.axis("axis", axis)?];
        if *slot {
            return Err(Error::Value {
                argument: "axis",
                expected: "axes that differ",
            });
        }
        *slot = true;
    }
    if out.is_empty() {
        return Ok(());
    }
    let strides = dense_strides(shape);
    let ends = shape.iter().zip(&strides).zip(&reversed);
    let offset = ends.map(|((&dim, &stride), &turned)| {
        if turned {
            (dim - 1) * stride as usize
        } else {
            0
        }
    });
    let mut view = View::new(offset.sum());
    for ((&dim, &stride), &turned) in shape.iter().zip(&strides).zip(&reversed) {
        view.push(dim, if turned { -stride } else { stride })?;
    }
    read(x, &view, out, parallel)
}

/// `ReverseV2` of TensorFlow.
pub static REVERSE_V2: KernelDef = KernelDef {
    variants: variants!(
        ["T": F32 F64 F16 BF16 I8 I16 I64 U8 U16 U32 U64 Bool, "Tidx": I32 I64] host &["axis"];
        ["T": I32, "Tidx": I32 I64] host &["tensor", "axis", "output"];
    ),
    outputs: outputs_like_first,
    run: |call| by_width!(call.inputs.get(0, "tensor")?.dtype(), run(call)),
    ..KernelDef::of("ReverseV2")
};

fn run<const N: usize>(call: &mut Call<'_>) -> Result<()> {
    let (x, axes) = (call.inputs.get(0, "tensor")?, call.inputs.ints(1, "axis")?);
    let parallel = call.parallel;
    let out = units_mut::<N>(call.output(0)?.bytes_mut());
    reverse((units(x.bytes()), x.shape()), &axes, out, parallel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Interleaved, numbers};
    use crate::trial::{cases, indices, number, shapes};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn elements_change_sides(shape in shapes(), flags: [bool; 8]) {
            let axes: Vec<i64> = (0..shape.rank()).filter(|&i| flags[i]).map(|i| i as i64).collect();
            let x = numbers(shape.elements(), 9);
            let mut out = vec![f32::NAN; x.len()];
            reverse((&x, &shape), &axes, &mut out, &Interleaved).unwrap();
            for (i, &found) in out.iter().enumerate() {
                let mut at = indices(&shape, i);
                for axis in 0..shape.rank() {
                    if flags[axis] {
                        at[axis] = shape[axis] - 1 - at[axis];
                    }
                }
                prop_assert_eq!(found, x[number(&shape, &at)]);
            }
        }
    }
}
