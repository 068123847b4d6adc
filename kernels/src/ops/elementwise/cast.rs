//! Conversion between element types.
//!
//! A float becomes an integer by dropping its fraction; one that does not fit, NaN included,
//! becomes the smallest integer, as on x86. A number becomes `bool` by comparison with 0. A number
//! becomes a 16-bit float, or comes from one, by way of `f32`.

use core::ops::Range;

use crate::base::adapt::{Element, by_type, check_count, unserved, variants};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{AttrKind, Call, KernelDef, Spec, TensorMut, TensorRef};
use crate::base::dtype::DType;
use crate::base::error::Result;
use crate::base::half::Half;
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::frame::map::{Map, map, map_here, run_map_to};
use crate::simd::scalar::Truncate;

/// The conversion to `U`.
#[derive(Clone, Copy, Debug)]
pub struct Cast<U>(core::marker::PhantomData<fn() -> U>);

impl<U> Cast<U> {
    /// The conversion.
    #[must_use]
    pub const fn new() -> Self {
        Self(core::marker::PhantomData)
    }
}

impl<U> Default for Cast<U> {
    fn default() -> Self {
        Self::new()
    }
}

macro_rules! casts {
    ($($from:ident => $to:ident |$x:ident| $body:expr;)*) => {$(
        impl Map<$from> for Cast<$to> {
            type Out = $to;

            #[inline(always)]
            fn apply(self, $x: $from) -> $to {
                $body
            }
        }
    )*};
}

casts! {
    f32 => f32 |x| x;
    f32 => f64 |x| f64::from(x);
    f32 => i32 |x| x.truncate();
    f32 => i64 |x| x.truncate();
    f32 => u8 |x| u8::from(x != 0.0);
    f64 => f32 |x| x as f32;
    f64 => f64 |x| x;
    f64 => i32 |x| x.truncate();
    f64 => i64 |x| x.truncate();
    f64 => u8 |x| u8::from(x != 0.0);
    i32 => f32 |x| x as f32;
    i32 => f64 |x| f64::from(x);
    i32 => i32 |x| x;
    i32 => i64 |x| i64::from(x);
    i32 => u8 |x| u8::from(x != 0);
    i64 => f32 |x| x as f32;
    i64 => f64 |x| x as f64;
    i64 => i32 |x| x as i32;
    i64 => i64 |x| x;
    i64 => u8 |x| u8::from(x != 0);
    u8 => f32 |x| f32::from(x);
    u8 => f64 |x| f64::from(x);
    u8 => i32 |x| i32::from(x);
    u8 => i64 |x| i64::from(x);
    u8 => u8 |x| x;
}

/// Converts each element; `u8` stands for `bool`.
///
/// # Errors
/// [`Error::Length`](crate::base::error::Error::Length) unless `out` is as long as `x`.
pub fn cast<T: Element, U: Element>(x: &[T], out: &mut [U], parallel: &dyn Parallel) -> Result<()>
where
    Cast<U>: Map<T, Out = U>,
{
    map(Cast::<U>::new(), x, out, parallel)
}

/// `Cast` of TensorFlow.
pub static CAST: KernelDef = KernelDef {
    variants: variants!(
        ["SrcT": F32 F64 I32 I64 Bool F16 BF16, "DstT": F32 F64 I32 I64 Bool F16 BF16];
        ["SrcT": U8, "DstT": F32 F64 I32 I64 F16 BF16];
    ),
    attrs: &[("DstT", AttrKind::Type), ("Truncate", AttrKind::Bool)],
    outputs: |inputs, sink| sink(inputs.attrs.dtype("DstT")?, inputs.shape(0, "x")?),
    run: |call| match call.inputs.get(0, "x")?.dtype() {
        from if Half::of(from).is_some() => through_f32(call),
        _ if Half::of(call.output(0)?.dtype()).is_some() => through_f32(call),
        DType::F32 => from::<f32>(call),
        DType::F64 => from::<f64>(call),
        DType::I32 => from::<i32>(call),
        DType::I64 => from::<i64>(call),
        DType::Bool => from::<u8>(call),
        DType::U8 => from_u8(call),
        found => Err(unserved("x", found)),
    },
    ..KernelDef::of("Cast")
};

fn from<T: Element>(call: &mut Call<'_>) -> Result<()>
where
    Cast<f32>: Map<T, Out = f32>,
    Cast<f64>: Map<T, Out = f64>,
    Cast<i32>: Map<T, Out = i32>,
    Cast<i64>: Map<T, Out = i64>,
    Cast<u8>: Map<T, Out = u8>,
{
    by_type!(
        call.output(0)?.dtype(),
        "y",
        U of [f32 f64 i32 i64 u8] => run_map_to::<_, T>(Cast::<U>::new(), call)
    )
}

/// From unsigned bytes, whose values are those of `bool` widened.
fn from_u8(call: &mut Call<'_>) -> Result<()> {
    let x = call.inputs.get(0, "x")?.bytes();
    let parallel = call.parallel;
    let output = call.output(0)?;
    by_type!(
        output.dtype(),
        "y",
        U of [f32 f64 i32 i64] => cast(x, U::view_mut(output, "y")?, parallel)
    )
}

/// Elements that are converted at a time on the way through `f32`.
const BLOCK: usize = 512;

/// From or to 16-bit floats, by way of `f32`.
fn through_f32(call: &mut Call<'_>) -> Result<()> {
    let x = call.inputs.get(0, "x")?;
    let (from, parallel) = (x.dtype(), call.parallel);
    let output = call.output(0)?;
    let (to, count) = (output.dtype(), output.shape().elements());
    let truncate = Half::of(to).is_some() && call.inputs.attrs.boolean("Truncate")?;
    let output = call.output(0)?;
    check_count("x", x.shape().elements(), count)?;
    // Views are made of blocks: what they refuse, they refuse here.
    read(&x, 0..0, false, &mut [])?;
    write(&[], to, &mut [], truncate)?;
    let chunk = chunk_len(parallel, count, BLOCK, 2) * to.size();
    for_each_chunk(parallel, output.bytes_mut(), chunk, &|start, out| {
        let mut wide = [0.0; BLOCK];
        for (piece, out) in out.chunks_mut(BLOCK * to.size()).enumerate() {
            let start = start / to.size() + piece * BLOCK;
            let wide = &mut wide[..out.len() / to.size()];
            let done = read(&x, start..start + wide.len(), truncate, wide)
                .and_then(|()| write(wide, to, out, truncate));
            debug_assert!(done.is_ok(), "{from} to {to}");
        }
    });
    Ok(())
}

/// Some elements as `f32`, not rounded away from 0 if a cast will truncate them.
fn read(x: &TensorRef<'_>, part: Range<usize>, truncate: bool, out: &mut [f32]) -> Result<()> {
    if let Some(half) = Half::of(x.dtype()) {
        half.widen(&x.halves("x")?.1[part], out);
        return Ok(());
    }
    match x.dtype() {
        DType::F32 => out.copy_from_slice(&x.f32("x")?[part]),
        DType::F64 if truncate => {
            for (out, &x) in out.iter_mut().zip(&x.f64("x")?[part]) {
                *out = x as f32;
                if f64::from(out.abs()) > x.abs() {
                    *out = f32::from_bits(out.to_bits() - 1);
                }
            }
        }
        DType::F64 => map_here(Cast::<f32>::new(), &x.f64("x")?[part], out),
        DType::I32 => map_here(Cast::<f32>::new(), &x.i32("x")?[part], out),
        DType::I64 => map_here(Cast::<f32>::new(), &x.i64("x")?[part], out),
        DType::Bool | DType::U8 => map_here(Cast::<f32>::new(), &x.bytes()[part], out),
        found => return Err(unserved("x", found)),
    }
    Ok(())
}

/// Writes elements of type `to`.
fn write(x: &[f32], to: DType, out: &mut [u8], truncate: bool) -> Result<()> {
    let spec = Spec::new(to, Shape::new(&[x.len()])?)?;
    let mut out = TensorMut::new(&spec, out)?;
    match (Half::of(to), to) {
        (Some(half), _) if truncate => half.truncate(x, out.halves_mut("y")?.1),
        (Some(half), _) => half.round(x, out.halves_mut("y")?.1),
        (_, DType::F32) => out.f32_mut("y")?.copy_from_slice(x),
        (_, DType::F64) => map_here(Cast::<f64>::new(), x, out.f64_mut("y")?),
        (_, DType::I32) => map_here(Cast::<i32>::new(), x, out.i32_mut("y")?),
        (_, DType::I64) => map_here(Cast::<i64>::new(), x, out.i64_mut("y")?),
        (_, DType::Bool) => map_here(Cast::<u8>::new(), x, out.bytes_mut()),
        (_, found) => return Err(unserved("y", found)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{Attr, Tensor, run};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn floats_that_fit_are_truncated(x in -2.0e9_f32..2.0e9) {
            prop_assert_eq!(Map::<f32>::apply(Cast::<i32>::new(), x), x as i32);
            prop_assert_eq!(Map::<f32>::apply(Cast::<i64>::new(), x), x as i64);
        }
    }

    #[test]
    fn what_does_not_fit_becomes_the_smallest() {
        for x in [
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            2_147_483_648.0,
            -3.0e9,
        ] {
            assert_eq!(Map::<f32>::apply(Cast::<i32>::new(), x), i32::MIN);
            assert_eq!(
                Map::<f64>::apply(Cast::<i32>::new(), f64::from(x)),
                i32::MIN
            );
        }
        assert_eq!(
            Map::<f64>::apply(Cast::<i32>::new(), -2_147_483_648.9),
            i32::MIN
        );
        assert_eq!(Map::<f32>::apply(Cast::<i64>::new(), 1e19), i64::MIN);
        assert_eq!(Map::<f32>::apply(Cast::<u8>::new(), f32::NAN), 1);
        assert_eq!(Map::<f32>::apply(Cast::<u8>::new(), -0.0), 0);
        assert_eq!(Map::<i64>::apply(Cast::<i32>::new(), 1 << 32), 0);
    }

    #[test]
    fn halves_are_rounded_and_cut() {
        let halves = |to, truncate, x: &Tensor| {
            let attrs = [("DstT", Attr::Type(to)), ("Truncate", Attr::Bool(truncate))];
            let out = run(&CAST, &attrs, std::slice::from_ref(x), false).unwrap();
            let bits = out[0].bytes().as_chunks::<2>().0;
            bits.iter()
                .map(|&bits| u16::from_ne_bytes(bits))
                .collect::<Vec<_>>()
        };
        // The second one is nearest to 65504 as a double, and to 65520 as a float.
        let x = [-3.7, 65_519.999_999_9, f64::NAN];
        let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_ne_bytes()).collect();
        let x = Tensor::new(DType::F64, &[3], &bytes);
        assert_eq!(halves(DType::F16, false, &x), [0xC366, 0x7C00, 0x7E00]);
        assert_eq!(halves(DType::F16, true, &x), [0xC366, 0x7BFF, 0x7E00]);
        assert_eq!(halves(DType::BF16, false, &x), [0xC06D, 0x4780, 0x7FC0]);
        assert_eq!(halves(DType::BF16, true, &x), [0xC06C, 0x477F, 0x7FC0]);
        let many: Vec<f32> = (0..5000).map(|i| i as f32 * 0.5 - 1000.0).collect();
        let many = Tensor::f32(&[5000], &many);
        let narrow = halves(DType::F16, false, &many);
        let bytes: Vec<u8> = narrow.iter().flat_map(|bits| bits.to_ne_bytes()).collect();
        let narrow = Tensor::new(DType::F16, &[5000], &bytes);
        let back = |to| {
            run(
                &CAST,
                &[("DstT", Attr::Type(to))],
                std::slice::from_ref(&narrow),
                false,
            )
            .unwrap()
        };
        // From 1024 on, binary16 has integers only: those of 0.5 go to the even one.
        for (i, found) in (0..).zip(back(DType::I64)[0].to_i64()) {
            let below = (i - 2000_i64).div_euclid(2);
            let expected = match i {
                ..4048 => (i - 2000) / 2,
                _ => below + i % 2 * (below % 2),
            };
            assert_eq!(found, expected, "{i}");
        }
        assert_eq!(back(DType::F32)[0].to_f32()[3], -998.5);
        assert_eq!(back(DType::Bool)[0].bytes()[1999..2002], [1, 0, 1]);
    }

    #[test]
    fn every_variant_runs() {
        let all = CAST.variants.iter().flat_map(|variants| {
            (0..variants.count()).map(|number| variants.combination(number).collect::<Vec<_>>())
        });
        for types in all {
            let ((_, from), (_, to)) = (types[0], types[1]);
            let x = Tensor::new(from, &[2], &vec![0; 2 * from.size()]);
            let attrs = [("DstT", Attr::Type(to)), ("Truncate", Attr::Bool(false))];
            let out = run(&CAST, &attrs, &[x], false).unwrap();
            assert_eq!(
                (out[0].dtype, out[0].bytes()),
                (to, &*vec![0; 2 * to.size()])
            );
        }
    }
}
