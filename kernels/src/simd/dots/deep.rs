//! Convolutions of each channel by itself, in vectors of 512 bits: 64 channels of four taps at a time.

use core::arch::x86_64::*;

use super::narrow::Scale;
use super::{Deep, GROUP};

/// Channels of a vector.
const WIDE: usize = 64;
/// Groups of four taps at most.
pub const GROUPS: usize = 7;

/// Four vectors of bytes of four taps as four vectors of one channel's taps beside each other: lane
/// `l` of vector `v` has the channels from `16 * l + 4 * v` on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn beside(x: [__m512i; 4]) -> [__m512i; 4] {
    let low = _mm512_unpacklo_epi8(x[0], x[1]);
    let high = _mm512_unpackhi_epi8(x[0], x[1]);
    let (more_low, more_high) = (
        _mm512_unpacklo_epi8(x[2], x[3]),
        _mm512_unpackhi_epi8(x[2], x[3]),
    );
    [
        _mm512_unpacklo_epi16(low, more_low),
        _mm512_unpackhi_epi16(low, more_low),
        _mm512_unpacklo_epi16(high, more_high),
        _mm512_unpackhi_epi16(high, more_high),
    ]
}

/// Numbers of channels in the order of [`beside`]; 0 beyond the last one.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn ordered(numbers: &[i32]) -> [__m512i; 4] {
    let mut order = [[0; 16]; 4];
    for (c, &number) in numbers.iter().take(WIDE).enumerate() {
        order[c % 16 / 4][c / 16 * 4 + c % 4] = number;
    }
    // SAFETY: sixteen numbers of each vector.
    order.map(|part| unsafe { _mm512_loadu_si512(part.as_ptr().cast()) })
}

/// Computes neighbouring lines, as [`super::Dots::deep`] says, of at most `4 * G` taps.
///
/// # Safety
/// The processor has AVX-512 F, BW, DQ, VL and VNNI; the slices are as long as the sizes say.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub unsafe fn lines<const G: usize, const HOW: u8>(of: &Deep<'_>, first: usize, out: &mut [i8]) {
    let (y, x, channels) = (of.y, of.x, of.channels);
    let taps = y.size * x.size;
    let none = [0_i8; WIDE];
    let zeros = [of.zero; WIDE];
    let flip = _mm512_set1_epi8(-128);
    let unsigned_zero = _mm512_set1_epi8((of.zero.cast_unsigned() ^ 0x80).cast_signed());
    let ends = (
        _mm512_set1_epi8(of.ends.low),
        _mm512_set1_epi8(of.ends.high),
    );
    let image = y.input * x.input * channels;
    let line = x.output * channels;
    for from in (0..channels).step_by(WIDE) {
        let count = WIDE.min(channels - from);
        let mask = u64::MAX >> (WIDE - count);
        let part = from..from + count;
        let multiplier = ordered(&of.multiplier[part.clone()]);
        let shift = ordered(&of.shift[part.clone()]);
        let mut bias = ordered(&of.bias[part]);
        let mut scales = [Scale::<HOW>::new(multiplier[0], shift[0], of.ends.zero); 4];
        for v in 1..4 {
            scales[v] = Scale::new(multiplier[v], shift[v], of.ends.zero);
        }
        let mut weights = [[_mm512_setzero_si512(); 4]; G];
        for (group, weights) in weights.iter_mut().enumerate() {
            let mut bytes = [_mm512_setzero_si512(); 4];
            for (i, bytes) in bytes.iter_mut().enumerate() {
                let tap = group * GROUP + i;
                let at = if tap < taps {
                    of.filter[tap * channels + from..][..count].as_ptr()
                } else {
                    none.as_ptr()
                };
                // SAFETY: `count` bytes, as many as the mask has bits.
                *bytes = unsafe { _mm512_maskz_loadu_epi8(mask, at) };
            }
            *weights = beside(bytes);
        }
        // What `zero` and the offset of bytes that are not negative add to the sums.
        let mut constant = [_mm512_setzero_si512(); 4];
        for weights in &weights {
            for v in 0..4 {
                constant[v] = _mm512_dpbusd_epi32(constant[v], unsigned_zero, weights[v]);
            }
        }
        for v in 0..4 {
            bias[v] = _mm512_sub_epi32(bias[v], constant[v]);
        }
        for (i, out) in out.chunks_mut(line).enumerate() {
            let (batch, stop) = ((first + i) / y.output, (first + i) % y.output);
            let x_of = &of.input[batch * image..][..image];
            let rows = |tap: usize| {
                (stop * y.stride + tap * y.dilation)
                    .checked_sub(y.before)
                    .filter(|&row| row < y.input)
            };
            let columns = |column: usize, tap: usize| {
                (column * x.stride + tap * x.dilation)
                    .checked_sub(x.before)
                    .filter(|&column| column < x.input)
            };
            let mut at = [[zeros.as_ptr(); GROUP]; G];
            let mut steps = [[0_usize; GROUP]; G];
            let mut inside = false;
            for (column, out) in out.chunks_mut(channels).enumerate() {
                let ahead = columns(column, 0).is_some() && columns(column, x.size - 1).is_some();
                if inside && ahead {
                    for (at, steps) in at.as_flattened_mut().iter_mut().zip(steps.as_flattened()) {
                        *at = at.wrapping_add(*steps);
                    }
                } else {
                    for tap in 0..taps {
                        let place = rows(tap / x.size).zip(columns(column, tap % x.size));
                        let (to, step) = match place {
                            Some((row, column)) => {
                                let at = (row * x.input + column) * channels + from;
                                assert!(at + count <= x_of.len(), "taps inside of the image");
                                (x_of.as_ptr().wrapping_add(at), x.stride * channels)
                            }
                            None => (zeros.as_ptr(), 0),
                        };
                        at[tap / GROUP][tap % GROUP] = to;
                        steps[tap / GROUP][tap % GROUP] = step;
                    }
                }
                inside = ahead;
                let mut sums = bias;
                for (at, weights) in at.iter().zip(&weights) {
                    let mut bytes = [_mm512_setzero_si512(); 4];
                    for (bytes, &at) in bytes.iter_mut().zip(at) {
                        // SAFETY: `count` bytes of a pixel inside of the image, or of `zeros`: while
                        // all taps of a row are inside, each is one step after the last one.
                        let x = unsafe { _mm512_maskz_loadu_epi8(mask, at) };
                        *bytes = _mm512_xor_si512(x, flip);
                    }
                    let bytes = beside(bytes);
                    for v in 0..4 {
                        sums[v] = _mm512_dpbusd_epi32(sums[v], bytes[v], weights[v]);
                    }
                }
                for v in 0..4 {
                    sums[v] = scales[v].of(sums[v]);
                }
                // Packing saturates to int8, and the ends are inside of that.
                let low = _mm512_packs_epi32(sums[0], sums[1]);
                let high = _mm512_packs_epi32(sums[2], sums[3]);
                let x = _mm512_packs_epi16(low, high);
                let x = _mm512_min_epi8(_mm512_max_epi8(x, ends.0), ends.1);
                let out = &mut out[from..from + count];
                // SAFETY: `count` elements, as many as the mask has bits.
                unsafe { _mm512_mask_storeu_epi8(out.as_mut_ptr(), mask, x) };
            }
        }
    }
}
