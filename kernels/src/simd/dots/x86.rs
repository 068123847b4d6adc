//! The bodies for x86-64.

use core::arch::x86_64::*;

use super::{GROUP, STEP, Spaced, Sums};

/// # Safety
/// The processor has AVX2; rows, blocks and sums are as long as [`super::Dots::add`] says.
#[target_feature(enable = "avx2")]
pub unsafe fn avx2(sums: &mut [Sums], x: Spaced<'_, u8>, weights: Spaced<'_, i8>, groups: usize) {
    let (pitch, rows, pace, blocks) = (x.pitch, x.count, weights.pitch, weights.count);
    let (x, weights) = (x.data, weights.data);
    for block in 0..blocks {
        let mut row = 0;
        while row < rows {
            let count = 2.min(rows - row);
            // SAFETY: the last row and block begin where the caller says that they do.
            let (x, w) = unsafe {
                (
                    x.as_ptr().add(row * pitch),
                    weights.as_ptr().add(block * pace),
                )
            };
            let at = row * blocks + block;
            if count == 2 {
                // SAFETY: two rows and a block of so many groups, by the caller.
                let found = unsafe { words::<2>(x, pitch, w, groups) };
                add(&mut sums[at], found[0]);
                add(&mut sums[at + blocks], found[1]);
            } else {
                // SAFETY: as above, of one row.
                let found = unsafe { words::<1>(x, pitch, w, groups) };
                add(&mut sums[at], found[0]);
            }
            row += count;
        }
    }
}

#[inline(always)]
fn add(sums: &mut Sums, found: Sums) {
    for (sum, found) in sums.iter_mut().zip(found) {
        *sum = sum.wrapping_add(found);
    }
}

/// The sums of rows and a block by products of 16 bits: two of a channel are in one lane of
/// 32, and the other two of a group in the next one.
///
/// # Safety
/// The processor has AVX2; `groups` of each row and of the block can be read.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn words<const R: usize>(
    x: *const u8,
    pitch: usize,
    w: *const i8,
    groups: usize,
) -> [Sums; R] {
    let mut sums = [[_mm256_setzero_si256(); 4]; R];
    for group in 0..groups {
        let mut factors = [_mm256_setzero_si256(); R];
        for (row, factor) in factors.iter_mut().enumerate() {
            // SAFETY: four bytes of a row, by the caller; no alignment is asked for.
            let four = unsafe {
                x.add(row * pitch + group * GROUP)
                    .cast::<i32>()
                    .read_unaligned()
            };
            *factor = _mm256_cvtepu8_epi16(_mm_set1_epi32(four));
        }
        for part in 0..4 {
            // SAFETY: a quarter of a group of the block, by the caller.
            let bytes = unsafe { _mm_loadu_si128(w.add(group * STEP + part * 16).cast()) };
            let wide = _mm256_cvtepi8_epi16(bytes);
            for (factor, sums) in factors.iter().zip(&mut sums) {
                let products = _mm256_madd_epi16(*factor, wide);
                sums[part] = _mm256_add_epi32(sums[part], products);
            }
        }
    }
    let mut out = [[0; 16]; R];
    for (out, sums) in out.iter_mut().zip(sums) {
        for half in 0..2 {
            let joined = _mm256_hadd_epi32(sums[2 * half], sums[2 * half + 1]);
            let ordered = _mm256_permute4x64_epi64::<0b11_01_10_00>(joined);
            // SAFETY: eight of the sixteen sums.
            unsafe { _mm256_storeu_si256(out.as_mut_ptr().add(8 * half).cast(), ordered) };
        }
    }
    out
}

/// # Safety
/// The processor has AVX2 and AVX-VNNI; rows, blocks and sums are as long as
/// [`super::Dots::add`] says.
#[target_feature(enable = "avx2,avxvnni")]
pub unsafe fn avx_vnni(
    sums: &mut [Sums],
    x: Spaced<'_, u8>,
    weights: Spaced<'_, i8>,
    groups: usize,
) {
    let (pitch, rows, pace, blocks) = (x.pitch, x.count, weights.pitch, weights.count);
    let (x, weights) = (x.data, weights.data);
    for block in 0..blocks {
        let mut row = 0;
        while row < rows {
            // SAFETY: the last row and block begin where the caller says that they do.
            let (x, w) = unsafe {
                (
                    x.as_ptr().add(row * pitch),
                    weights.as_ptr().add(block * pace),
                )
            };
            let sums = &mut sums[row * blocks + block..];
            if rows - row >= 4 {
                // SAFETY: four rows and a block of so many groups, by the caller.
                unsafe { bytes::<4>(sums, blocks, (x, pitch), w, groups) };
                row += 4;
            } else {
                // SAFETY: as above, of one row.
                unsafe { bytes::<1>(sums, blocks, (x, pitch), w, groups) };
                row += 1;
            }
        }
    }
}

/// Adds the sums of rows and a block; the sums of a row are `stride` after those of the last.
///
/// # Safety
/// The processor has AVX2 and AVX-VNNI; `groups` of each row and of the block can be read.
#[inline]
#[target_feature(enable = "avx2,avxvnni")]
unsafe fn bytes<const R: usize>(
    out: &mut [Sums],
    stride: usize,
    (x, pitch): (*const u8, usize),
    w: *const i8,
    groups: usize,
) {
    let mut sums = [[_mm256_setzero_si256(); 2]; R];
    for (row, sums) in sums.iter_mut().enumerate() {
        let from = out[row * stride].as_ptr();
        // SAFETY: both halves of sixteen sums.
        *sums = unsafe {
            [
                _mm256_loadu_si256(from.cast()),
                _mm256_loadu_si256(from.add(8).cast()),
            ]
        };
    }
    for group in 0..groups {
        // SAFETY: both halves of a group of the block, by the caller.
        let parts = unsafe {
            let from = w.add(group * STEP);
            [
                _mm256_loadu_si256(from.cast()),
                _mm256_loadu_si256(from.add(32).cast()),
            ]
        };
        for (row, sums) in sums.iter_mut().enumerate() {
            // SAFETY: four bytes of a row, by the caller; no alignment is asked for.
            let four = unsafe {
                x.add(row * pitch + group * GROUP)
                    .cast::<i32>()
                    .read_unaligned()
            };
            let factor = _mm256_set1_epi32(four);
            for (sum, part) in sums.iter_mut().zip(parts) {
                *sum = _mm256_dpbusd_avx_epi32(*sum, factor, part);
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        let to = out[row * stride].as_mut_ptr();
        // SAFETY: both halves of sixteen sums.
        unsafe {
            _mm256_storeu_si256(to.cast(), sums[0]);
            _mm256_storeu_si256(to.add(8).cast(), sums[1]);
        }
    }
}

/// # Safety
/// The processor has AVX-512 F and VNNI; rows, blocks and sums are as long as
/// [`super::Dots::add`] says.
#[target_feature(enable = "avx512f,avx512vnni")]
pub unsafe fn avx512_vnni(
    sums: &mut [Sums],
    x: Spaced<'_, u8>,
    weights: Spaced<'_, i8>,
    groups: usize,
) {
    let (pitch, rows, pace, blocks) = (x.pitch, x.count, weights.pitch, weights.count);
    let (x, weights) = (x.data, weights.data);
    let mut block = 0;
    while block < blocks {
        let together = super::BLOCKS.min(blocks - block);
        let mut row = 0;
        while row < rows {
            // SAFETY: the last row and block begin where the caller says that they do.
            let (x, w) = unsafe {
                (
                    Lines {
                        at: x.as_ptr().add(row * pitch),
                        pitch,
                    },
                    Lines {
                        at: weights.as_ptr().add(block * pace),
                        pitch: pace,
                    },
                )
            };
            let sums = (&mut sums[row * blocks + block..], blocks);
            let left = rows - row;
            // SAFETY: as many rows and blocks, of so many groups, by the caller.
            row += unsafe {
                match (left, together) {
                    (8.., 3) => lines::<8, 3>(sums, x, w, groups),
                    (8.., 2) => lines::<8, 2>(sums, x, w, groups),
                    (8.., _) => lines::<8, 1>(sums, x, w, groups),
                    (4.., 3) => lines::<4, 3>(sums, x, w, groups),
                    (4.., 2) => lines::<4, 2>(sums, x, w, groups),
                    (4.., _) => lines::<4, 1>(sums, x, w, groups),
                    (_, 3) => lines::<1, 3>(sums, x, w, groups),
                    (_, 2) => lines::<1, 2>(sums, x, w, groups),
                    _ => lines::<1, 1>(sums, x, w, groups),
                }
            };
        }
        block += together;
    }
}

/// Where pieces at equal distances begin.
struct Lines<T> {
    at: *const T,
    pitch: usize,
}

/// Adds the sums of rows and blocks, those of a row `stride` after those of the last one;
/// returns the number of rows.
///
/// # Safety
/// The processor has AVX-512 F and VNNI; `groups` of each row and block can be read.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn lines<const R: usize, const B: usize>(
    (out, stride): (&mut [Sums], usize),
    x: Lines<u8>,
    w: Lines<i8>,
    groups: usize,
) -> usize {
    let (Lines { at: x, pitch }, Lines { at: w, pitch: pace }) = (x, w);
    let mut sums = [[_mm512_setzero_si512(); B]; R];
    for (row, sums) in sums.iter_mut().enumerate() {
        for (block, sum) in sums.iter_mut().enumerate() {
            let from = &out[row * stride + block];
            // SAFETY: sixteen sums.
            *sum = unsafe { _mm512_loadu_si512(from.as_ptr().cast()) };
        }
    }
    for group in 0..groups {
        let mut parts = [_mm512_setzero_si512(); B];
        for (block, part) in parts.iter_mut().enumerate() {
            // SAFETY: a group of a block, by the caller.
            *part = unsafe { _mm512_loadu_si512(w.add(block * pace + group * STEP).cast()) };
        }
        for (row, sums) in sums.iter_mut().enumerate() {
            // SAFETY: four bytes of a row, by the caller; no alignment is asked for.
            let four = unsafe {
                x.add(row * pitch + group * GROUP)
                    .cast::<i32>()
                    .read_unaligned()
            };
            let factor = _mm512_set1_epi32(four);
            for (sum, part) in sums.iter_mut().zip(parts) {
                *sum = _mm512_dpbusd_epi32(*sum, factor, part);
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        for (block, sum) in sums.iter().enumerate() {
            let to = &mut out[row * stride + block];
            // SAFETY: sixteen sums.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), *sum) };
        }
    }
    R
}
