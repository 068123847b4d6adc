//! Sums of products of bytes: what a matmul between int8 numbers does most of its time.
//!
//! Rows hold bytes that are not negative, weights are int8, and sums are of `i32`. A body multiplies
//! four neighbours at a time, as the instructions of VNNI do; no sum saturates on the way.

use crate::base::level::Level;

/// Output channels of a block of weights.
pub(crate) const CHANNELS: usize = 16;
/// Neighbours that a product takes at a time.
pub(crate) const GROUP: usize = 4;
/// Bytes of a group of all channels of a block.
const STEP: usize = CHANNELS * GROUP;

/// The sums of a row and a block.
pub(crate) type Sums = [i32; CHANNELS];

/// The instructions that multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dots {
    /// Those of the compilation target.
    Portable,
    /// Products of 16 bits, of AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-VNNI: products of 8 bits, in vectors of 256 bits.
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    /// AVX512-VNNI: the same in vectors of 512 bits.
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
}

#[cfg(target_arch = "x86_64")]
macro_rules! has {
    ($feature:tt) => {{
        #[cfg(feature = "std")]
        {
            is_x86_feature_detected!($feature)
        }
        #[cfg(not(feature = "std"))]
        {
            cfg!(target_feature = $feature)
        }
    }};
}

impl Dots {
    /// The best instructions of this processor within a level.
    pub(crate) fn at(level: Level) -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let level = level.min(crate::base::level::best());
            if level >= Level::Avx512 && has!("avx512vnni") {
                return Self::Avx512Vnni;
            }
            if level >= Level::Avx2 {
                return if has!("avxvnni") {
                    Self::AvxVnni
                } else {
                    Self::Avx2
                };
            }
        }
        let _ = level;
        Self::Portable
    }

    /// Rows and blocks whose sums are best made together.
    pub(crate) const fn tile(self) -> (usize, usize) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => (ROWS, BLOCKS),
            _ => (ROWS, 1),
        }
    }

    /// Adds to the sums the products of rows and blocks of weights.
    ///
    /// Row `r` begins `r * pitch` bytes after the first one, block `b` `b * pace` after the first
    /// one, and `sums` has those of a row beside each other: `rows * blocks` of them.
    ///
    /// # Panics
    /// If `x`, `weights` or `sums` is too short for `groups` of each row and block.
    pub(crate) fn add(
        self,
        sums: &mut [Sums],
        (x, pitch, rows): (&[u8], usize, usize),
        (weights, pace, blocks): (&[i8], usize, usize),
        groups: usize,
    ) {
        if rows == 0 || blocks == 0 || groups == 0 {
            return;
        }
        assert!(rows * blocks <= sums.len(), "sums of all rows and blocks");
        assert!((rows - 1) * pitch + groups * GROUP <= x.len(), "rows of x");
        assert!(
            (blocks - 1) * pace + groups * STEP <= weights.len(),
            "blocks of weights"
        );
        let (x, weights) = ((x, pitch, rows), (weights, pace, blocks));
        match self {
            Self::Portable => portable(sums, x, weights, groups),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `at` found the instructions; lengths were checked above.
            Self::Avx2 => unsafe { x86::avx2(sums, x, weights, groups) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Self::AvxVnni => unsafe { x86::avx_vnni(sums, x, weights, groups) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Self::Avx512Vnni => unsafe { x86::avx512_vnni(sums, x, weights, groups) },
        }
    }

    /// All that this processor has, for tests.
    #[cfg(test)]
    pub(crate) fn available() -> Vec<Self> {
        let mut found = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            let best = crate::base::level::best();
            if best >= Level::Avx2 {
                found.push(Self::Avx2);
            }
            if best >= Level::Avx2 && has!("avxvnni") {
                found.push(Self::AvxVnni);
            }
            if best >= Level::Avx512 && has!("avx512vnni") {
                found.push(Self::Avx512Vnni);
            }
        }
        found
    }
}

/// Rows of a tile at most.
pub(crate) const ROWS: usize = 8;
/// Blocks of a tile at most.
pub(crate) const BLOCKS: usize = 3;

type Rows<'a> = (&'a [u8], usize, usize);
type Blocks<'a> = (&'a [i8], usize, usize);

fn portable(
    sums: &mut [Sums],
    (x, pitch, rows): Rows<'_>,
    (weights, pace, blocks): Blocks<'_>,
    groups: usize,
) {
    for row in 0..rows {
        let x = x[row * pitch..][..groups * GROUP].as_chunks::<GROUP>().0;
        for block in 0..blocks {
            let weights = weights[block * pace..][..groups * STEP]
                .as_chunks::<STEP>()
                .0;
            let total = &mut sums[row * blocks + block];
            for (x, weights) in x.iter().zip(weights) {
                let x = x.map(i32::from);
                for (sum, w) in total.iter_mut().zip(weights.as_chunks::<GROUP>().0) {
                    let w = w.map(i32::from);
                    let products = [x[0] * w[0], x[1] * w[1], x[2] * w[2], x[3] * w[3]];
                    *sum = sum.wrapping_add(products.iter().sum());
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::x86_64::*;

    use super::{Blocks, GROUP, Rows, STEP, Sums};

    /// # Safety
    /// The processor has AVX2; rows, blocks and sums are as long as [`super::Dots::add`] says.
    #[target_feature(enable = "avx2")]
    pub unsafe fn avx2(sums: &mut [Sums], x: Rows<'_>, weights: Blocks<'_>, groups: usize) {
        let ((x, pitch, rows), (weights, pace, blocks)) = (x, weights);
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
                for row in 0..R {
                    let products = _mm256_madd_epi16(factors[row], wide);
                    sums[row][part] = _mm256_add_epi32(sums[row][part], products);
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
    pub unsafe fn avx_vnni(sums: &mut [Sums], x: Rows<'_>, weights: Blocks<'_>, groups: usize) {
        let ((x, pitch, rows), (weights, pace, blocks)) = (x, weights);
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
    pub unsafe fn avx512_vnni(sums: &mut [Sums], x: Rows<'_>, weights: Blocks<'_>, groups: usize) {
        let ((x, pitch, rows), (weights, pace, blocks)) = (x, weights);
        let mut block = 0;
        while block < blocks {
            let together = super::BLOCKS.min(blocks - block);
            let mut row = 0;
            while row < rows {
                // SAFETY: the last row and block begin where the caller says that they do.
                let (x, w) = unsafe {
                    (
                        (x.as_ptr().add(row * pitch), pitch),
                        (weights.as_ptr().add(block * pace), pace),
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

    /// Adds the sums of rows and blocks, those of a row `stride` after those of the last one;
    /// returns the number of rows.
    ///
    /// # Safety
    /// The processor has AVX-512 F and VNNI; `groups` of each row and block can be read.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vnni")]
    unsafe fn lines<const R: usize, const B: usize>(
        (out, stride): (&mut [Sums], usize),
        (x, pitch): (*const u8, usize),
        (w, pace): (*const i8, usize),
        groups: usize,
    ) -> usize {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that depend on the seed alone, with the ends among them.
    fn bytes(len: usize, seed: u64) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        (0..len)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let byte = (state >> 56) as u8;
                if byte % 7 == 0 { 255 } else { byte }
            })
            .collect()
    }

    #[test]
    fn every_body_gives_the_sums_of_products() {
        for (rows, blocks, groups) in [
            (1, 1, 1),
            (1, 3, 7),
            (2, 2, 5),
            (3, 1, 9),
            (5, 4, 3),
            (8, 3, 64),
            (13, 5, 11),
        ] {
            let (pitch, pace) = (groups * GROUP + 3, groups * STEP + 5);
            let x = bytes(rows * pitch, 3);
            let weights: Vec<i8> = bytes(blocks * pace, 5)
                .iter()
                .map(|&b| if b == 255 { -128 } else { b.cast_signed() })
                .collect();
            let start: Vec<Sums> = (0..rows * blocks)
                .map(|i| core::array::from_fn(|c| (i * 31 + c) as i32 - 40))
                .collect();
            let mut expected = start.clone();
            for row in 0..rows {
                for block in 0..blocks {
                    for (c, sum) in expected[row * blocks + block].iter_mut().enumerate() {
                        for k in 0..groups * GROUP {
                            let at = block * pace + k / GROUP * STEP + c * GROUP + k % GROUP;
                            *sum += i32::from(x[row * pitch + k]) * i32::from(weights[at]);
                        }
                    }
                }
            }
            for dots in Dots::available() {
                let mut sums = start.clone();
                dots.add(
                    &mut sums,
                    (&x, pitch, rows),
                    (&weights, pace, blocks),
                    groups,
                );
                assert_eq!(sums, expected, "{dots:?} {rows} {blocks} {groups}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "blocks of weights")]
    fn short_weights_are_refused() {
        Dots::Portable.add(&mut [[0; 16]], (&[0; 8], 8, 1), (&[0; 127], 0, 1), 2);
    }
}
