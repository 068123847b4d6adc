//! Between int8 numbers and the real ones that they stand for.

use super::{Range, expect, rounded};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::error::Result;
use crate::base::parallel::Parallel;
use crate::simd::body::{Body, dispatch};

/// The int8 numbers that stand for real ones, ties away from zero; for NaN what stands for 0.
///
/// # Errors
/// [`crate::base::error::Error::Length`] if the lengths differ.
pub fn quantize(
    x: &[f32],
    (scale, zero): (f32, i8),
    out: &mut [i8],
    parallel: &dyn Parallel,
) -> Result<()> {
    expect("x", x.len(), out.len())?;
    let range = Range::all(i32::from(zero));
    let chunk = chunk_len(parallel, out.len(), 64, 2);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        dispatch(Quantized {
            x: &x[start..][..out.len()],
            scale,
            range,
            out,
        });
    });
    Ok(())
}

struct Quantized<'a> {
    x: &'a [f32],
    scale: f32,
    range: Range,
    out: &'a mut [i8],
}

impl Body for Quantized<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (out, x) in self.out.iter_mut().zip(self.x) {
            // Beyond these, sums with a zero point would not fit.
            let quotient = (x / self.scale).clamp(-1024.0, 1024.0);
            *out = self.range.hold(rounded(quotient));
        }
    }
}

/// The real numbers that int8 ones stand for.
///
/// # Errors
/// [`crate::base::error::Error::Length`] if the lengths differ.
pub fn dequantize(
    x: &[i8],
    (scale, zero): (f32, i8),
    out: &mut [f32],
    parallel: &dyn Parallel,
) -> Result<()> {
    expect("x", x.len(), out.len())?;
    let chunk = chunk_len(parallel, out.len(), 64, 2);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        dispatch(Real {
            x: &x[start..][..out.len()],
            scale,
            zero: i32::from(zero),
            out,
        });
    });
    Ok(())
}

struct Real<'a> {
    x: &'a [i8],
    scale: f32,
    zero: i32,
    out: &'a mut [f32],
}

impl Body for Real<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (out, &x) in self.out.iter_mut().zip(self.x) {
            // The difference has nine bits, so that the product is rounded once, as from f64.
            *out = (i32::from(x) - self.zero) as f32 * self.scale;
        }
    }
}
