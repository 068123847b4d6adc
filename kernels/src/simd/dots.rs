//! Sums of products of bytes: what a matmul between int8 numbers does most of its time.
//!
//! Rows hold bytes that are not negative, weights are int8, and sums are of `i32`. A body multiplies
//! four neighbours at a time, as the instructions of VNNI do; no sum saturates on the way.

// Each target has some of the bodies, or none.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#![cfg_attr(not(target_arch = "x86_64"), allow(unused_macros, unused_variables))]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod deep;
mod lines;
#[cfg(target_arch = "x86_64")]
mod narrow;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
mod neon;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128;
#[cfg(test)]
pub(crate) mod tests;
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
pub(crate) struct Ends {
    pub(crate) zero: i32,
    pub(crate) low: i8,
    pub(crate) high: i8,
}

/// What sums of a block are multiplied by when they become int8, as `Scaling` of `crate::quantized`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factors<'a> {
    pub(crate) multiplier: &'a [i32; CHANNELS],
    pub(crate) shift: &'a [i32; CHANNELS],
}

/// How often a sum is rounded when it becomes int8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Rounding {
    /// As `scaled_once` of `crate::quantized`.
    Once,
    /// As `scaled`.
    Twice,
    /// As `scaled`, where sums and factors are as [`plain`] says.
    Plain,
    /// As `scaled_real`.
    Real,
}

// Bodies have one of these as a constant.
const ONCE: u8 = Rounding::Once as u8;
const TWICE: u8 = Rounding::Twice as u8;
const PLAIN: u8 = Rounding::Plain as u8;
const REAL: u8 = Rounding::Real as u8;

/// Whether sums and factors are as those of models nearly always are: so that in 32 bits a sum,
/// half of what is shifted out and what stands for 0 do not overflow, and something is shifted out.
///
/// Sums are at most of `products` products and a bias.
fn plain(bias: &[i32], (multiplier, shift): (&[i32], &[i32]), products: usize, ends: Ends) -> bool {
    const MOST: u32 = 1 << 28;
    let fits = |&bias: &i32| bias.unsigned_abs() < MOST;
    products < MOST as usize / (255 * 128)
        && (-128..128).contains(&ends.zero)
        && bias.iter().all(fits)
        && multiplier.iter().all(|&factor| factor >= 0)
        && shift.iter().all(|shift| (-20..0).contains(shift))
}

impl Rounding {
    /// The rounding as `scaled` does it, of sums of at most `products` products and a bias.
    pub(crate) fn of(bias: &[i32], factors: (&[i32], &[i32]), products: usize, ends: Ends) -> Self {
        if plain(bias, factors, products, ends) {
            Self::Plain
        } else {
            Self::Twice
        }
    }
}

/// One axis of an image: as `crate::conv::Window`.
#[derive(Clone, Copy, Debug)]
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
    pub(crate) rounding: Rounding,
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
    /// Products of 8 bits, of NEON.
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    Neon,
    /// `dotprod` of 64-bit Arm: sums of four products.
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    DotProd,
    /// `i8mm` of 64-bit Arm: matmuls.
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    Matrix,
    /// WebAssembly's vectors.
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Simd128,
}

#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_feature = "neon")
))]
macro_rules! has {
    ($feature:tt) => {{
        #[cfg(all(feature = "std", target_arch = "x86_64"))]
        {
            is_x86_feature_detected!($feature)
        }
        #[cfg(all(feature = "std", target_arch = "aarch64"))]
        {
            std::arch::is_aarch64_feature_detected!($feature)
        }
        #[cfg(not(feature = "std"))]
        {
            cfg!(target_feature = $feature)
        }
    }};
}

impl Dots {
    /// The best instructions of this processor within a level; in tests, those that the calling
    /// thread forces.
    pub(crate) fn at(level: Level) -> Self {
        #[cfg(test)]
        if let Some(forced) = tests::forced() {
            return forced;
        }
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
        #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
        if level >= Level::Neon {
            let (matrices, dots) = (has!("i8mm"), has!("dotprod"));
            return match (matrices, dots) {
                (true, _) => Self::Matrix,
                (false, true) => Self::DotProd,
                (false, false) => Self::Neon,
            };
        }
        let _ = level;
        // No level says that the target has vectors without relaxed-simd.
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        return Self::Simd128;
        #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
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
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            // SAFETY: as above.
            Self::Neon => unsafe { neon::add_by_mlal(sums, x, weights, groups) },
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            // SAFETY: as above.
            Self::DotProd => unsafe { neon::add_by_dotprod(sums, x, weights, groups) },
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            // SAFETY: as above.
            Self::Matrix => unsafe { neon::add_by_matrices(sums, x, weights, groups) },
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            // SAFETY: as above.
            Self::Simd128 => unsafe { simd128::add(sums, x, weights, groups) },
        }
    }

    /// Makes sums of rows and one block int8; `false` if there is not a body.
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
        (factors, rounding): (Factors<'_>, Rounding),
        ends: Ends,
        (out, pitch, count): (&mut [i8], usize, usize),
    ) -> bool {
        let rows = sums.len().div_ceil(stride);
        assert!((1..=CHANNELS).contains(&count), "channels of a block");
        assert!(
            rows == 0 || (rows - 1) * pitch + count <= out.len(),
            "rows of results"
        );
        let to = (out, pitch, count);
        // Paths are written out where it is called: what copies modules into crates reads them.
        /// A body for each rounding.
        macro_rules! each {
            ($($run:ident)::+) => {{
                // SAFETY: `at` found the instructions; lengths were checked above.
                #[allow(unused_unsafe, reason = "some need no instructions but the target's")]
                unsafe {
                    match rounding {
                        Rounding::Once => $($run)::+::<ONCE>(sums, stride, factors, ends, to),
                        Rounding::Twice => $($run)::+::<TWICE>(sums, stride, factors, ends, to),
                        Rounding::Plain => $($run)::+::<PLAIN>(sums, stride, factors, ends, to),
                        Rounding::Real => $($run)::+::<REAL>(sums, stride, factors, ends, to),
                    }
                }
                true
            }};
        }
        match self {
            Self::Portable => false,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => each!(narrow::narrow),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 | Self::AvxVnni => each!(avx2::narrow),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            _ => each!(neon::narrow),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Self::Simd128 => {
                // Products keep their upper halves alone.
                if rounding == Rounding::Once && factors.shift.iter().any(|&shift| shift >= 0) {
                    return false;
                }
                each!(simd128::narrow)
            }
        }
    }

    /// Computes the lines from number `first` on of a convolution of each channel; `false` if there
    /// is not a body.
    pub(crate) fn deep(self, of: &Deep<'_>, first: usize, out: &mut [i8]) -> bool {
        let taps = of.y.size * of.x.size;
        let rounding = of.rounding;
        /// A body for few taps, and one for more.
        macro_rules! sixteen {
            ($($run:ident)::+) => {{
                const MANY: usize = lines::PAIRS;
                if of.channels < CHANNELS || taps > 2 * MANY {
                    return false;
                }
                // SAFETY: `at` found the instructions.
                #[allow(unused_unsafe, reason = "some need no instructions but the target's")]
                unsafe {
                    match (rounding, taps <= 2 * lines::FEW) {
                        (Rounding::Plain, true) => {
                            $($run)::+::<{ lines::FEW }, PLAIN>(of, first, out);
                        }
                        (Rounding::Plain, false) => $($run)::+::<MANY, PLAIN>(of, first, out),
                        (Rounding::Real, _) => $($run)::+::<MANY, REAL>(of, first, out),
                        (Rounding::Twice, _) => $($run)::+::<MANY, TWICE>(of, first, out),
                        (Rounding::Once, _) => return false,
                    }
                }
                true
            }};
        }
        match self {
            Self::Portable => false,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => {
                // SAFETY: `at` found the instructions; the body slices before it reads and writes.
                unsafe {
                    match (taps.div_ceil(GROUP), rounding) {
                        (0..=3, Rounding::Plain) => deep::lines::<3, PLAIN>(of, first, out),
                        (0..=deep::GROUPS, Rounding::Plain) => {
                            deep::lines::<{ deep::GROUPS }, PLAIN>(of, first, out);
                        }
                        (0..=deep::GROUPS, Rounding::Twice) => {
                            deep::lines::<{ deep::GROUPS }, TWICE>(of, first, out);
                        }
                        (0..=deep::GROUPS, Rounding::Real) => {
                            deep::lines::<{ deep::GROUPS }, REAL>(of, first, out);
                        }
                        _ => return false,
                    }
                }
                true
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 | Self::AvxVnni => sixteen!(avx2::lines),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            _ => sixteen!(neon::lines),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Self::Simd128 => sixteen!(simd128::lines),
        }
    }

    /// All that this processor has, for tests.
    #[cfg(test)]
    pub(crate) fn available() -> Vec<Self> {
        let mut found = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            let best = crate::base::level::best();
            let avx2 = best >= Level::Avx2;
            found.extend(avx2.then_some(Self::Avx2));
            found.extend((avx2 && has!("avxvnni")).then_some(Self::AvxVnni));
            found.extend((best >= Level::Avx512 && has!("avx512vnni")).then_some(Self::Avx512Vnni));
        }
        #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
        {
            found.push(Self::Neon);
            found.extend(has!("dotprod").then_some(Self::DotProd));
            found.extend(has!("i8mm").then_some(Self::Matrix));
        }
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        found.push(Self::Simd128);
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
