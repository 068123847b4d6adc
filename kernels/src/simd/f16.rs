//! The instructions between binary16 and `f32`: F16C, and those of AVX-512.
//!
//! They neither read nor set how denormals are treated: a binary16 that is one is a normal `f32`,
//! and a result that is one stays.

use core::arch::x86_64::*;

use crate::base::level::Level;

/// `out[i] = x[i]` of the first elements, as many as fill vectors of `level`; how many these are.
/// 0 if the processor lacks the instructions.
pub(crate) fn widen(level: Level, x: &[u16], out: &mut [f32]) -> usize {
    let len = x.len().min(out.len());
    let (x, out) = (&x[..len], &mut out[..len]);
    // SAFETY: a level is one of this processor's, and AVX-512 F has its own conversions; F16C was
    // asked for.
    unsafe {
        match level {
            Level::Avx512 => widen_avx512(x, out),
            Level::Avx2 if is_x86_feature_detected!("f16c") => widen_f16c(x, out),
            _ => 0,
        }
    }
}

/// `out[i] = x[i]`, rounded to the nearest, ties to even; otherwise as [`widen`].
pub(crate) fn round(level: Level, x: &[f32], out: &mut [u16]) -> usize {
    let len = x.len().min(out.len());
    let (x, out) = (&x[..len], &mut out[..len]);
    // SAFETY: as in `widen`.
    unsafe {
        match level {
            Level::Avx512 => round_avx512(x, out),
            Level::Avx2 if is_x86_feature_detected!("f16c") => round_f16c(x, out),
            _ => 0,
        }
    }
}

#[target_feature(enable = "avx512f")]
fn widen_avx512(x: &[u16], out: &mut [f32]) -> usize {
    let (from, _) = x.as_chunks::<16>();
    let (to, _) = out.as_chunks_mut::<16>();
    for (from, to) in from.iter().zip(to.iter_mut()) {
        // SAFETY: both have 16 elements.
        unsafe {
            let bits = _mm256_loadu_si256(from.as_ptr().cast());
            _mm512_storeu_ps(to.as_mut_ptr(), _mm512_cvtph_ps(bits));
        }
    }
    16 * from.len()
}

#[target_feature(enable = "avx,f16c")]
fn widen_f16c(x: &[u16], out: &mut [f32]) -> usize {
    let (from, _) = x.as_chunks::<8>();
    let (to, _) = out.as_chunks_mut::<8>();
    for (from, to) in from.iter().zip(to.iter_mut()) {
        // SAFETY: both have 8 elements.
        unsafe {
            let bits = _mm_loadu_si128(from.as_ptr().cast());
            _mm256_storeu_ps(to.as_mut_ptr(), _mm256_cvtph_ps(bits));
        }
    }
    8 * from.len()
}

#[target_feature(enable = "avx512f")]
fn round_avx512(x: &[f32], out: &mut [u16]) -> usize {
    let (from, _) = x.as_chunks::<16>();
    let (to, _) = out.as_chunks_mut::<16>();
    for (from, to) in from.iter().zip(to.iter_mut()) {
        // SAFETY: both have 16 elements.
        unsafe {
            let bits = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm512_loadu_ps(from.as_ptr()));
            _mm256_storeu_si256(to.as_mut_ptr().cast(), bits);
        }
    }
    16 * from.len()
}

#[target_feature(enable = "avx,f16c")]
fn round_f16c(x: &[f32], out: &mut [u16]) -> usize {
    let (from, _) = x.as_chunks::<8>();
    let (to, _) = out.as_chunks_mut::<8>();
    for (from, to) in from.iter().zip(to.iter_mut()) {
        // SAFETY: both have 8 elements.
        unsafe {
            let bits = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(from.as_ptr()));
            _mm_storeu_si128(to.as_mut_ptr().cast(), bits);
        }
    }
    8 * from.len()
}
