//! Permutes the axes of a tensor.

use crate::base::adapt::{by_width, units, units_mut, variants};
use crate::base::def::{Call, Inputs, KernelDef};
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::shape::{MAX_RANK, Shape};
use crate::frame::strided::{View, dense_strides, read};

/// The shape of the transposed tensor: axis `i` is axis `perm[i]` of `shape`.
///
/// # Errors
/// [`Error::Length`] unless there are as many axes as the rank, [`Error::Axis`] for one out of
/// range, [`Error::Value`] if one appears twice.
pub fn transposed(shape: &Shape, perm: &[i64]) -> Result<Shape> {
    let mut out = Shape::SCALAR;
    for axis in axes(shape, perm)?.iter().take(shape.rank()) {
        out.push(shape[*axis])?;
    }
    Ok(out)
}

fn axes(shape: &Shape, perm: &[i64]) -> Result<[usize; MAX_RANK]> {
    if perm.len() != shape.rank() {
        return Err(Error::Length {
            argument: "perm",
            found: perm.len(),
            expected: shape.rank(),
        });
    }
    let mut axes = [0; MAX_RANK];
    let mut seen = [false; MAX_RANK];
    for (slot, &axis) in axes.iter_mut().zip(perm) {
        *slot = shape.axis("perm", axis)?;
        if seen[*slot] {
            return Err(Error::Value {
                argument: "perm",
                expected: "each axis once",
            });
        }
        seen[*slot] = true;
    }
    Ok(axes)
}

/// Writes `x` with its axes in the order `perm`; see [`transposed`].
///
/// # Errors
/// As [`transposed`]; [`Error::Length`] if a slice does not fit the shape.
pub fn transpose<T: Copy + Send + Sync>(
    (x, shape): (&[T], &Shape),
    perm: &[i64],
    out: &mut [T],
    parallel: &dyn Parallel,
) -> Result<()> {
    crate::base::adapt::check_len("x", x.len(), shape)?;
    let strides = dense_strides(shape);
    let mut view = View::new(0);
    for &axis in axes(shape, perm)?.iter().take(shape.rank()) {
        view.push(shape[axis], strides[axis])?;
    }
    read(x, &view, out, parallel)
}

/// `Transpose` of TensorFlow.
pub static TRANSPOSE: KernelDef = KernelDef {
    variants: variants!(
        ["T": F32 F64 F16 BF16 I8 I16 I32 I64 U8 U16 U32 U64 Bool, "Tperm": I32 I64] host &["perm"];
    ),
    outputs: |inputs, sink| {
        let x = inputs.get(0, "x")?;
        sink(x.dtype(), transposed(x.shape(), &perm(inputs)?)?)
    },
    run: |call| by_width!(call.inputs.get(0, "x")?.dtype(), run(call)),
    ..KernelDef::of("Transpose")
};

fn perm(inputs: &Inputs<'_>) -> Result<crate::base::adapt::Ints> {
    inputs.ints(1, "perm")
}

fn run<const N: usize>(call: &mut Call<'_>) -> Result<()> {
    let (x, perm) = (call.inputs.get(0, "x")?, perm(&call.inputs)?);
    let parallel = call.parallel;
    let out = units_mut::<N>(call.output(0)?.bytes_mut());
    transpose((units(x.bytes()), x.shape()), &perm, out, parallel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Interleaved, numbers};
    use crate::trial::{cases, indices, number, shapes};
    use proptest::prelude::*;

    fn check(shape: &Shape, perm: &[i64]) {
        let x = numbers(shape.elements(), 4);
        let out_shape = transposed(shape, perm).unwrap();
        let mut out = vec![f32::NAN; x.len()];
        transpose((&x, shape), perm, &mut out, &Interleaved).unwrap();
        for (i, &found) in out.iter().enumerate() {
            let at = indices(&out_shape, i);
            let mut from = vec![0; at.len()];
            for (axis, &perm) in perm.iter().enumerate() {
                from[perm as usize] = at[axis];
            }
            assert_eq!(found, x[number(shape, &from)]);
        }
    }

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn elements_move_to_their_place(shape in shapes(), keys: [u8; 8]) {
            let mut perm: Vec<i64> = (0..shape.rank() as i64).collect();
            perm.sort_by_key(|&axis| keys[axis as usize]);
            check(&shape, &perm);
        }
    }

    #[test]
    fn matrices_and_images() {
        check(&Shape::new(&[37, 53]).unwrap(), &[1, 0]);
        check(&Shape::new(&[300, 200]).unwrap(), &[1, 0]);
        check(&Shape::new(&[257, 401]).unwrap(), &[1, 0]);
        check(&Shape::new(&[50, 37, 40]).unwrap(), &[0, 2, 1]);
        check(&Shape::new(&[5, 7, 40, 35]).unwrap(), &[1, 0, 3, 2]);
        check(&Shape::new(&[21, 3, 35, 20]).unwrap(), &[3, 1, 0, 2]);
        check(&Shape::new(&[2, 19, 33, 3]).unwrap(), &[0, 3, 1, 2]);
        check(&Shape::new(&[2, 3, 19, 33]).unwrap(), &[0, 2, 3, 1]);
    }

    #[test]
    fn bad_permutations_are_refused() {
        let shape = Shape::new(&[2, 3]).unwrap();
        assert!(matches!(
            transposed(&shape, &[0]),
            Err(Error::Length { .. })
        ));
        assert!(matches!(
            transposed(&shape, &[0, 0]),
            Err(Error::Value { .. })
        ));
        assert!(matches!(
            transposed(&shape, &[0, 2]),
            Err(Error::Axis { .. })
        ));
    }
}
