//! Repeats a tensor along new axes and axes of size 1.

use crate::base::adapt::{by_width, check_len, units, units_mut, variants};
use crate::base::def::{Call, KernelDef};
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::frame::strided::{View, dense_strides, read};

/// Writes `x`, broadcast to `out_shape`.
///
/// # Errors
/// [`Error::Incompatible`] if it can't be, [`Error::Length`] if a slice does not fit its shape.
pub fn broadcast_to<T: Copy + Send + Sync>(
    (x, shape): (&[T], &Shape),
    (out, out_shape): (&mut [T], &Shape),
    parallel: &dyn Parallel,
) -> Result<()> {
    check(shape, out_shape)?;
    check_len("input", x.len(), shape)?;
    let strides = dense_strides(shape);
    let added = out_shape.rank() - shape.rank();
    let mut view = View::new(0);
    for (axis, &dim) in out_shape.iter().enumerate() {
        let stride = match axis.checked_sub(added) {
            Some(axis) if shape[axis] != 1 => strides[axis],
            _ => 0,
        };
        view.push(dim, stride)?;
    }
    read(x, &view, out, parallel)
}

fn check(shape: &Shape, out: &Shape) -> Result<()> {
    if shape.broadcast(out, ("input", "shape"))? == *out {
        Ok(())
    } else {
        Err(Error::Incompatible {
            arguments: ("input", "shape"),
            shapes: (*shape, *out),
            rule: "the input may only be stretched, not the shape",
        })
    }
}

const HOST: &[&str] = &["shape"];
const ALL: &[&str] = &["input", "shape", "output"];

/// `BroadcastTo` of TensorFlow.
pub static BROADCAST_TO: KernelDef = KernelDef {
    variants: variants!(
        ["T": F32 F64 F16 BF16 I8 I16 I64 U8 U16 U32 U64 Bool, "Tidx": I32 I64] host HOST;
        ["T": I32, "Tidx": I32 I64] host ALL;
    ),
    outputs: |inputs, sink| {
        let x = inputs.get(0, "input")?;
        let shape = inputs.shape_value(1, "shape")?;
        check(x.shape(), &shape)?;
        sink(x.dtype(), shape)
    },
    run: |call| by_width!(call.inputs.get(0, "input")?.dtype(), run(call)),
    ..KernelDef::of("BroadcastTo")
};

fn run<const N: usize>(call: &mut Call<'_>) -> Result<()> {
    let x = call.inputs.get(0, "input")?;
    let parallel = call.parallel;
    let output = call.output(0)?;
    let shape = *output.shape();
    let out = units_mut::<N>(output.bytes_mut());
    broadcast_to((units(x.bytes()), x.shape()), (out, &shape), parallel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Interleaved, numbers};
    use crate::trial::{cases, indices, number, pairs};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn elements_are_repeated((a, b) in pairs()) {
            let shape = a.broadcast(&b, ("a", "b")).unwrap();
            let x = numbers(b.elements(), 8);
            let mut out = vec![f32::NAN; shape.elements()];
            broadcast_to((&x, &b), (&mut out, &shape), &Interleaved).unwrap();
            for (i, &found) in out.iter().enumerate() {
                prop_assert_eq!(found, x[number(&b, &indices(&shape, i))]);
            }
        }
    }

    #[test]
    fn the_shape_is_not_stretched() {
        let (one, two) = (Shape::new(&[1]).unwrap(), Shape::new(&[2]).unwrap());
        let result = broadcast_to((&[0.0; 2], &two), (&mut [0.0; 1], &one), &Interleaved);
        assert!(matches!(result, Err(Error::Incompatible { .. })));
    }
}
