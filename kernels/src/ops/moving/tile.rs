//! Repeats a whole tensor along its axes.

use crate::base::adapt::{by_width, check_len, units, units_mut, variants};
use crate::base::def::{Call, KernelDef};
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::frame::strided::{View, dense_strides, read};

/// The shape after tiling: each axis times its multiple.
///
/// # Errors
/// [`Error::Length`] unless there is a multiple per axis, [`Error::Value`] for a negative one,
/// [`Error::Overflow`] if the product is too large.
pub fn tiled(shape: &Shape, multiples: &[i64]) -> Result<Shape> {
    if multiples.len() != shape.rank() {
        return Err(Error::Length {
            argument: "multiples",
            found: multiples.len(),
            expected: shape.rank(),
        });
    }
    let mut out = Shape::SCALAR;
    for (&dim, &multiple) in shape.iter().zip(multiples) {
        let multiple = usize::try_from(multiple).map_err(|_| Error::Value {
            argument: "multiples",
            expected: "numbers that are not negative",
        })?;
        out.push(dim.checked_mul(multiple).ok_or(Error::Overflow {
            argument: "multiples",
        })?)?;
    }
    Ok(out)
}

/// Writes `x` repeated `multiples[i]` times along axis `i`.
///
/// # Errors
/// As [`tiled`]; [`Error::Length`] if a slice does not fit its shape.
pub fn tile<T: Copy + Send + Sync>(
    (x, shape): (&[T], &Shape),
    multiples: &[i64],
    out: &mut [T],
    parallel: &dyn Parallel,
) -> Result<()> {
    tiled(shape, multiples)?;
    check_len("input", x.len(), shape)?;
    let strides = dense_strides(shape);
    let mut view = View::new(0);
    for (axis, (&dim, &multiple)) in shape.iter().zip(multiples).enumerate() {
        view.push(multiple as usize, 0)?;
        view.push(dim, strides[axis])?;
    }
    read(x, &view, out, parallel)
}

/// `Tile` of TensorFlow.
pub static TILE: KernelDef = KernelDef {
    variants: variants!(
        ["T": F32 F64 F16 BF16 I8 I16 I32 I64 U8 U16 U32 U64 Bool, "Tmultiples": I32 I64]
            host &["multiples"];
    ),
    outputs: |inputs, sink| {
        let x = inputs.get(0, "input")?;
        sink(x.dtype(), tiled(x.shape(), &inputs.ints(1, "multiples")?)?)
    },
    run: |call| by_width!(call.inputs.get(0, "input")?.dtype(), run(call)),
    ..KernelDef::of("Tile")
};

fn run<const N: usize>(call: &mut Call<'_>) -> Result<()> {
    let (x, multiples) = (
        call.inputs.get(0, "input")?,
        call.inputs.ints(1, "multiples")?,
    );
    let parallel = call.parallel;
    let out = units_mut::<N>(call.output(0)?.bytes_mut());
    tile((units(x.bytes()), x.shape()), &multiples, out, parallel)
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
        fn elements_are_repeated(shape in shapes(), counts: [u8; 8]) {
            let most = if shape.rank() > 5 { 3 } else { 4 };
            let multiples = counts[..shape.rank()].iter().map(|c| i64::from(c % most));
            let multiples: Vec<i64> = multiples.collect();
            let out_shape = tiled(&shape, &multiples).unwrap();
            let x = numbers(shape.elements(), 9);
            let mut out = vec![f32::NAN; out_shape.elements()];
            tile((&x, &shape), &multiples, &mut out, &Interleaved).unwrap();
            for (i, &found) in out.iter().enumerate() {
                let mut at = indices(&out_shape, i);
                for (at, dim) in at.iter_mut().zip(shape.iter()) {
                    *at %= dim;
                }
                prop_assert_eq!(found, x[number(&shape, &at)]);
            }
        }
    }

    #[test]
    fn overflow_is_an_error() {
        let shape = Shape::new(&[1 << (usize::BITS - 24)]).unwrap();
        assert!(matches!(
            tiled(&shape, &[1 << 40]),
            Err(Error::Overflow { .. })
        ));
        assert!(matches!(tiled(&shape, &[-1]), Err(Error::Value { .. })));
    }
}
