//! `Where`: the indices of the elements that are not zero, in row-major order.

use crate::base::adapt::{Element, by_type, variants};
use crate::base::def::{Call, KernelDef, TensorRef};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::shape::{MAX_RANK, Shape};

/// How many of these elements are not zero.
#[must_use]
pub fn count<T: Copy + PartialEq + Default>(x: &[T]) -> usize {
    x.iter().filter(|&&x| x != T::default()).count()
}

/// Writes the index of each element that is not zero: a number per axis.
///
/// # Errors
/// [`Error::Length`] if `x` does not fit its shape, or `out` does not
/// hold [`count`] indices.
pub fn where_true<T: Copy + PartialEq + Default>(
    (x, shape): (&[T], &Shape),
    out: &mut [i64],
) -> Result<()> {
    crate::base::adapt::check_len("input", x.len(), shape)?;
    let rank = shape.rank();
    crate::base::adapt::check_count("index", out.len(), count(x) * rank)?;
    if rank == 0 {
        return Ok(());
    }
    let mut at = [0; MAX_RANK];
    let mut rest = out.chunks_exact_mut(rank);
    for &x in x {
        if x != T::default()
            && let Some(index) = rest.next()
        {
            index.copy_from_slice(&at[..rank]);
        }
        for axis in (0..rank).rev() {
            at[axis] += 1;
            if (at[axis] as usize) < shape[axis] {
                break;
            }
            at[axis] = 0;
        }
    }
    Ok(())
}

/// Writes the places of the elements that are not zero to the front of `out`; returns how many
/// there are.
///
/// # Errors
/// [`Error::Length`] if `out` is shorter than `x`.
pub fn places<T: Copy + PartialEq + Default>(x: &[T], out: &mut [i32]) -> Result<usize> {
    if out.len() < x.len() {
        return Err(Error::Length {
            argument: "output",
            found: out.len(),
            expected: x.len(),
        });
    }
    let found = (0_i32..).zip(x).filter(|&(_, &x)| x != T::default());
    let mut count = 0;
    for ((place, _), out) in found.zip(out) {
        *out = place;
        count += 1;
    }
    Ok(count)
}

/// `Where` of TensorFlow. How many indices there are depends on the values, so these have to be in
/// host memory.
pub static DEF: KernelDef = KernelDef {
    variants: variants!(["T": F32 F64 I32 I64 Bool] host &["input"];),
    outputs: |inputs, sink| {
        let x = inputs.get(0, "input")?;
        if x.shape().rank() == 0 {
            return Err(Error::Rank {
                argument: "input",
                found: 0,
                expected: "1 to 8",
            });
        }
        let count = by_type!(
            x.dtype(),
            "input",
            T of [f32 f64 i32 i64 u8] => T::view(&x, "input").map(count)
        )?;
        sink(DType::I64, Shape::new(&[count, x.shape().rank()])?)
    },
    run: |call| {
        let x = call.inputs.get(0, "input")?;
        by_type!(
            x.dtype(),
            "input",
            T of [f32 f64 i32 i64 u8] => run(call, &x, T::view(&x, "input")?)
        )
    },
    ..KernelDef::of("Where")
};

fn run<T: Copy + PartialEq + Default>(
    call: &mut Call<'_>,
    tensor: &TensorRef<'_>,
    x: &[T],
) -> Result<()> {
    let out = call.output(0)?.i64_mut("index")?;
    where_true((x, tensor.shape()), out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{Tensor, run};

    #[test]
    fn places_fill_the_front() {
        let mut out = [9; 4];
        assert_eq!(places(&[0_u8, 1, 0, 1], &mut out).unwrap(), 2);
        assert_eq!(out, [1, 3, 9, 9]);
        assert_eq!(places(&[0_u8; 4], &mut out).unwrap(), 0);
        assert_eq!(places::<u8>(&[], &mut []).unwrap(), 0);
        assert!(matches!(
            places(&[1_u8, 1], &mut out[..1]),
            Err(Error::Length { .. })
        ));
    }

    #[test]
    fn indices_in_order() {
        let x = Tensor::f32(&[2, 3], &[0.0, 1.0, f32::NAN, -0.0, 0.0, -2.0]);
        let out = run(&DEF, &[], &[x], false).unwrap();
        assert_eq!(out[0].dims, [3, 2]);
        assert_eq!(out[0].to_i64(), [0, 1, 0, 2, 1, 2]);
        let x = Tensor::new(DType::Bool, &[2, 1, 2], &[0, 1, 0, 1]);
        let out = run(&DEF, &[], &[x], false).unwrap();
        assert_eq!(out[0].to_i64(), [0, 0, 1, 1, 0, 1]);
    }

    #[test]
    fn numbers_and_empty_tensors() {
        let out = run(&DEF, &[], &[Tensor::i64(&[2, 0], &[])], false).unwrap();
        assert_eq!(out[0].dims, [0, 2]);
        assert!(run(&DEF, &[], &[Tensor::i64(&[], &[3])], false).is_err());
        let two = Shape::new(&[2]).unwrap();
        assert!(where_true((&[1, 1], &two), &mut [0]).is_err());
        assert!(where_true((&[1], &two), &mut [0]).is_err());
    }
}
