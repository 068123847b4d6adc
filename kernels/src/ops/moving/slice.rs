//! A box out of a tensor.

use crate::base::adapt::{Ints, by_width, check_len, units, units_mut, variants};
use crate::base::def::{Call, Inputs, KernelDef};
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::frame::strided::{View, dense_strides, read};

/// The shape of the box that starts at `begin` and has `size` elements along each axis; -1 means
/// all that are left.
///
/// # Errors
/// [`Error::Length`] unless both have an entry per axis, [`Error::Index`] if the box leaves the
/// tensor.
pub fn sliced(shape: &Shape, begin: &[i64], size: &[i64]) -> Result<Shape> {
    for (argument, found) in [("begin", begin.len()), ("size", size.len())] {
        crate::base::adapt::check_count(argument, found, shape.rank())?;
    }
    let mut out = Shape::SCALAR;
    for ((&dim, &begin), &size) in shape.iter().zip(begin).zip(size) {
        let start = usize::try_from(begin)
            .ok()
            .filter(|&start| start <= dim)
            .ok_or(Error::Index {
                argument: "begin",
                index: begin,
                limit: dim + 1,
            })?;
        let left = dim - start;
        let count = if size == -1 {
            left
        } else {
            usize::try_from(size)
                .ok()
                .filter(|&count| count <= left)
                .ok_or(Error::Index {
                    argument: "size",
                    index: size,
                    limit: left + 1,
                })?
        };
        out.push(count)?;
    }
    Ok(out)
}

/// Writes the box that starts at `begin` and has `size` elements along each axis; see [`sliced`].
///
/// # Errors
/// As [`sliced`]; [`Error::Length`] if a slice does not fit its shape.
pub fn slice<T: Copy + Send + Sync>(
    (x, shape): (&[T], &Shape),
    begin: &[i64],
    size: &[i64],
    out: &mut [T],
    parallel: &dyn Parallel,
) -> Result<()> {
    let out_shape = sliced(shape, begin, size)?;
    check_len("input", x.len(), shape)?;
    check_len("output", out.len(), &out_shape)?;
    let strides = dense_strides(shape);
    let offset = begin
        .iter()
        .zip(&strides)
        .map(|(&b, &s)| b as usize * s as usize);
    let mut view = View::new(offset.sum());
    for (&dim, &stride) in out_shape.iter().zip(&strides) {
        view.push(dim, stride)?;
    }
    read(x, &view, out, parallel)
}

/// `Slice` of TensorFlow.
pub static SLICE: KernelDef = KernelDef {
    variants: variants!(
        ["T": F32 F64 F16 BF16 I8 I16 I64 U8 U16 U32 U64 Bool, "Index": I32 I64]
            host &["begin", "size"];
    ),
    outputs: |inputs, sink| {
        let (begin, size) = bounds(inputs)?;
        let x = inputs.get(0, "input")?;
        sink(x.dtype(), sliced(x.shape(), &begin, &size)?)
    },
    run: |call| by_width!(call.inputs.get(0, "input")?.dtype(), run(call)),
    ..KernelDef::of("Slice")
};

fn bounds(inputs: &Inputs<'_>) -> Result<(Ints, Ints)> {
    Ok((inputs.ints(1, "begin")?, inputs.ints(2, "size")?))
}

fn run<const N: usize>(call: &mut Call<'_>) -> Result<()> {
    let x = call.inputs.get(0, "input")?;
    let (begin, size) = bounds(&call.inputs)?;
    let parallel = call.parallel;
    let out = units_mut::<N>(call.output(0)?.bytes_mut());
    slice((units(x.bytes()), x.shape()), &begin, &size, out, parallel)
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
        fn the_box_is_copied(shape in shapes(), cuts: [(u8, u8); 8]) {
            let mut begin = Vec::new();
            let mut size = Vec::new();
            for (&dim, &(a, b)) in shape.iter().zip(&cuts) {
                let start = usize::from(a) % (dim + 1);
                begin.push(start as i64);
                size.push(if b == 0 { -1 } else { (usize::from(b) % (dim - start + 1)) as i64 });
            }
            let out_shape = sliced(&shape, &begin, &size).unwrap();
            let x = numbers(shape.elements(), 2);
            let mut out = vec![f32::NAN; out_shape.elements()];
            slice((&x, &shape), &begin, &size, &mut out, &Interleaved).unwrap();
            for (i, &found) in out.iter().enumerate() {
                let at: Vec<usize> = indices(&out_shape, i)
                    .iter()
                    .zip(&begin)
                    .map(|(&i, &begin)| i + begin as usize)
                    .collect();
                prop_assert_eq!(found, x[number(&shape, &at)]);
            }
        }
    }

    #[test]
    fn boxes_outside_are_refused() {
        let shape = Shape::new(&[3]).unwrap();
        for (begin, size) in [(4, 0), (-1, 1), (2, 2), (0, -2)] {
            assert!(matches!(
                sliced(&shape, &[begin], &[size]),
                Err(Error::Index { .. })
            ));
        }
    }
}
