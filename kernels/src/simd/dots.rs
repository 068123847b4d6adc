//! Sums of products of bytes: what a matmul between int8 numbers does most of its time.
//!
//! Rows hold bytes that are not negative, weights are int8, and sums are of `i32`. A body multiplies
//! four neighbours at a time, as the instructions of VNNI do; no sum saturates on the way.

#[cfg(target_arch = "x86_64")]
mod deep;
#[cfg(target_arch = "x86_64")]
mod narrow;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::base::level::Level;

/// Output channels of a block of weights.
pub(crate) const CHANNELS: usize = 16;
/// Neighbours that a product takes at a time.
pub(crate) const GROUP: usize = 4;
/// Bytes of a group of all channels of a block.
const STEP: usize = CHANNELS * GROUP;

/// The sums of a row and a block.
pub(crate) type Sums = [i32; CHANNELS];

/// Where int8 results lie: what stands for 0, and their ends.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "read by bodies")
)]
pub(crate) struct Ends {
    pub(crate) zero: i32,
    pub(crate) low: i8,
    pub(crate) high: i8,
}

/// How the sums of a block become int8: with both roundings of `crate::quantized::scaled`.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "read by bodies")
)]
pub(crate) struct Factors<'a> {
    pub(crate) multiplier: &'a [i32; CHANNELS],
    pub(crate) shift: &'a [i32; CHANNELS],
    /// What [`plain`] says of all of them.
    pub(crate) plain: bool,
}

/// Whether sums and factors are as those of models nearly always are: so that in 32 bits a sum,
/// half of what is shifted out and what stands for 0 do not overflow, and something is shifted out.
///
/// Sums are at most of `products` products and a bias.
pub(crate) fn plain(
    bias: &[i32],
    (multiplier, shift): (&[i32], &[i32]),
    products: usize,
    ends: Ends,
) -> bool {
    const MOST: u32 = 1 << 28;
    let fits = |&bias: &i32| bias.unsigned_abs() < MOST;
    products < MOST as usize / (255 * 128)
        && (-128..128).contains(&ends.zero)
        && bias.iter().all(fits)
        && multiplier.iter().all(|&factor| factor >= 0)
        && shift.iter().all(|shift| (-20..0).contains(shift))
}

/// One axis of an image: as `crate::conv::Window`.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "read by bodies")
)]
pub(crate) struct Axis {
    pub(crate) input: usize,
    pub(crate) output: usize,
    pub(crate) size: usize,
    pub(crate) stride: usize,
    pub(crate) dilation: usize,
    pub(crate) before: usize,
}

/// A convolution of each channel of `[batch, y.input, x.input, channels]` with a filter
/// `[y.size, x.size, channels]`; outside of the image is `zero`.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "read by bodies")
)]
pub(crate) struct Deep<'a> {
    pub(crate) y: Axis,
    pub(crate) x: Axis,
    pub(crate) channels: usize,
    pub(crate) input: &'a [i8],
    pub(crate) filter: &'a [i8],
    pub(crate) bias: &'a [i32],
    pub(crate) multiplier: &'a [i32],
    pub(crate) shift: &'a [i32],
    pub(crate) zero: i8,
    pub(crate) ends: Ends,
}

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
    /// `sums` has those of a row beside each other: one for each row and block.
    ///
    /// # Panics
    /// If `x`, `weights` or `sums` is too short for `groups` of each row and block.
    pub(crate) fn add(
        self,
        sums: &mut [Sums],
        x: Spaced<'_, u8>,
        weights: Spaced<'_, i8>,
        groups: usize,
    ) {
        let (rows, blocks) = (x.count, weights.count);
        if rows == 0 || blocks == 0 || groups == 0 {
            return;
        }
        assert!(rows * blocks <= sums.len(), "sums of all rows and blocks");
        assert!(x.holds(groups * GROUP), "rows of x");
        assert!(weights.holds(groups * STEP), "blocks of weights");
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

    /// Makes sums of rows and one block int8 with both roundings; `false` if there is not a body.
    ///
    /// The sums of rows are `stride` apart, their results `pitch`: `count` of each row.
    ///
    /// # Panics
    /// If `out` is too short, or `count` is not from 1 to 16.
    #[inline]
    pub(crate) fn narrow(
        self,
        sums: &[Sums],
        stride: usize,
        factors: Factors<'_>,
        ends: Ends,
        (out, pitch, count): (&mut [i8], usize, usize),
    ) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => {
                let rows = sums.len().div_ceil(stride);
                assert!((1..=CHANNELS).contains(&count), "channels of a block");
                assert!(
                    rows == 0 || (rows - 1) * pitch + count <= out.len(),
                    "rows of results"
                );
                // SAFETY: `at` found the instructions; lengths were checked above.
                unsafe {
                    if factors.plain {
                        narrow::narrow::<true>(sums, stride, factors, ends, (out, pitch, count));
                    } else {
                        narrow::narrow::<false>(sums, stride, factors, ends, (out, pitch, count));
                    }
                }
                true
            }
            _ => {
                let _ = (sums, stride, factors, ends, out, pitch, count);
                false
            }
        }
    }

    /// Computes the lines from number `first` on of a convolution of each channel, with both
    /// roundings; `false` if there is not a body.
    pub(crate) fn deep(self, of: &Deep<'_>, first: usize, out: &mut [i8]) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => {
                let taps = of.y.size * of.x.size;
                let plain = plain(of.bias, (of.multiplier, of.shift), 2 * taps, of.ends);
                // SAFETY: `at` found the instructions; the body slices before it reads and writes.
                unsafe {
                    match (taps.div_ceil(GROUP), plain) {
                        (0..=3, true) => deep::lines::<3, true>(of, first, out),
                        (4..=deep::GROUPS, true) => {
                            deep::lines::<{ deep::GROUPS }, true>(of, first, out);
                        }
                        (0..=deep::GROUPS, false) => {
                            deep::lines::<{ deep::GROUPS }, false>(of, first, out);
                        }
                        _ => return false,
                    }
                }
            }
            _ => {
                let _ = (of, first, out);
                return false;
            }
        }
        #[cfg(target_arch = "x86_64")]
        true
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

/// Pieces at equal distances, such as rows.
#[derive(Clone, Copy)]
pub(crate) struct Spaced<'a, T> {
    /// From the first piece on.
    pub(crate) data: &'a [T],
    /// From the beginning of one piece to that of the next.
    pub(crate) pitch: usize,
    /// Number of pieces.
    pub(crate) count: usize,
}

impl<T> Spaced<'_, T> {
    /// Whether there are pieces of a length; there is one at least.
    fn holds(&self, len: usize) -> bool {
        (self.count - 1) * self.pitch + len <= self.data.len()
    }
}

fn portable(sums: &mut [Sums], x: Spaced<'_, u8>, weights: Spaced<'_, i8>, groups: usize) {
    let blocks = weights.count;
    for row in 0..x.count {
        let x = x.data[row * x.pitch..][..groups * GROUP]
            .as_chunks::<GROUP>()
            .0;
        for block in 0..blocks {
            let weights = weights.data[block * weights.pitch..][..groups * STEP]
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

#[cfg(test)]
mod tests {
    use super::*;

    fn spaced<T>(data: &[T], pitch: usize, count: usize) -> Spaced<'_, T> {
        Spaced { data, pitch, count }
    }

    /// Bytes that depend on the seed alone, with the ends among them.
    fn bytes(len: usize, seed: u64) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        (0..len)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let byte = (state >> 56) as u8;
                if byte.is_multiple_of(7) { 255 } else { byte }
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
                    spaced(&x, pitch, rows),
                    spaced(&weights, pace, blocks),
                    groups,
                );
                assert_eq!(sums, expected, "{dots:?} {rows} {blocks} {groups}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "blocks of weights")]
    fn short_weights_are_refused() {
        let (x, weights) = (spaced(&[0; 8], 8, 1), spaced(&[0; 127], 0, 1));
        Dots::Portable.add(&mut [[0; 16]], x, weights, 2);
    }
}
