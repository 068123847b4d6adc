//! Permutes the axes of a tensor.

use crate::adapt::{by_width, units, units_mut, variants};
use crate::def::{Call, Inputs, KernelDef, no_scratch};
use crate::error::{Error, Result};
use crate::parallel::Parallel;
use crate::shape::{MAX_RANK, Shape};
use crate::strided::{View, dense_strides, read};

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
    crate::adapt::check_len("x", x.len(), shape)?;
    let strides = dense_strides(shape);
    let mut view = View::new(0);
    for &axis in axes(shape, perm)?.iter().take(shape.rank()) {
        view.push(shape[axis], strides[axis])?;
    }
    read(x, &view, out, parallel)
}

/// `Transpose` of TensorFlow.
pub static TRANSPOSE: KernelDef = KernelDef {
    op: "Transpose",
    variants: variants!("T", "Tperm":
        [F32 F64 F16 BF16 I8 I16 I32 I64 U8 U16 U32 U64 Bool] host &["perm"];),
    attrs: &[],
    forward: &[],
    outputs: |inputs, sink| {
        let x = inputs.get(0, "x")?;
        sink(x.dtype(), transposed(x.shape(), &perm(inputs)?)?)
    },
    scratch: no_scratch,
    run: |call| by_width!(call.inputs.get(0, "x")?.dtype(), run(call)),
};

fn perm(inputs: &Inputs<'_>) -> Result<crate::adapt::Ints> {
    inputs.ints(1, "perm")
}

fn run<const N: usize>(call: &mut Call<'_>) -> Result<()> {
    let (x, perm) = (call.inputs.get(0, "x")?, perm(&call.inputs)?);
    let parallel = call.parallel;
    let out = units_mut::<N>(call.output(0)?.bytes_mut());
    transpose((units(x.bytes()), x.shape()), &perm, out, parallel)
}
