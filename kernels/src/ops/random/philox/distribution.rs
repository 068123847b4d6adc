//! How words of the generator become numbers.

use crate::base::adapt::Element;

/// How words become numbers.
pub trait Distribution: Copy + Sync {
    /// Type of the numbers.
    type Out: Element;

    /// Numbers per block of four words: 4 or 2.
    const PER_BLOCK: usize;

    /// Work per number in units of one addition.
    const COST: usize;

    /// The numbers of a block; the first `PER_BLOCK` count.
    fn numbers(self, words: [u32; 4]) -> [Self::Out; 4];
}

/// Uniform numbers in `[0, 1)` with 23 random bits.
#[derive(Clone, Copy, Debug)]
pub struct Uniform;

impl Distribution for Uniform {
    type Out = f32;

    const PER_BLOCK: usize = 4;
    const COST: usize = 4;

    #[inline(always)]
    fn numbers(self, words: [u32; 4]) -> [f32; 4] {
        words.map(unit_f32)
    }
}

/// Uniform numbers in `[0, 1)` with 52 random bits.
#[derive(Clone, Copy, Debug)]
pub struct UniformF64;

impl Distribution for UniformF64 {
    type Out = f64;

    const PER_BLOCK: usize = 2;
    const COST: usize = 4;

    #[inline(always)]
    fn numbers(self, [a, b, c, d]: [u32; 4]) -> [f64; 4] {
        [unit_f64(a, b), unit_f64(c, d), 0.0, 0.0]
    }
}

/// Normal numbers of mean 0 and deviation 1.
#[derive(Clone, Copy, Debug)]
pub struct Normal;

impl Distribution for Normal {
    type Out = f32;

    const PER_BLOCK: usize = 4;
    const COST: usize = 32;

    #[inline(always)]
    fn numbers(self, [a, b, c, d]: [u32; 4]) -> [f32; 4] {
        let (first, second) = (box_muller(a, b), box_muller(c, d));
        [first[0], first[1], second[0], second[1]]
    }
}

/// Integers in `low..high`, by remainder.
#[derive(Clone, Copy, Debug)]
pub struct UniformInt<T> {
    low: T,
    range: T,
}

impl UniformInt<i32> {
    /// For integers in `low..high`; `None` if there are none.
    #[must_use]
    pub fn new(low: i32, high: i32) -> Option<Self> {
        (low < high).then_some(Self {
            low,
            range: high.wrapping_sub(low),
        })
    }
}

impl UniformInt<i64> {
    /// For integers in `low..high`; `None` if there are none.
    #[must_use]
    pub fn new(low: i64, high: i64) -> Option<Self> {
        (low < high).then_some(Self {
            low,
            range: high.wrapping_sub(low),
        })
    }
}

impl Distribution for UniformInt<i32> {
    type Out = i32;

    const PER_BLOCK: usize = 4;
    const COST: usize = 8;

    #[inline(always)]
    fn numbers(self, words: [u32; 4]) -> [i32; 4] {
        let range = (self.range as u32).max(1);
        words.map(|word| self.low.wrapping_add((word % range) as i32))
    }
}

impl Distribution for UniformInt<i64> {
    type Out = i64;

    const PER_BLOCK: usize = 2;
    const COST: usize = 16;

    #[inline(always)]
    fn numbers(self, [a, b, c, d]: [u32; 4]) -> [i64; 4] {
        let range = (self.range as u64).max(1);
        let number = |low, high| self.low.wrapping_add((pair(low, high) % range) as i64);
        [number(a, b), number(c, d), 0, 0]
    }
}

/// Integers of all values of the type.
#[derive(Clone, Copy, Debug)]
pub struct FullInt<T>(core::marker::PhantomData<fn() -> T>);

impl<T> FullInt<T> {
    /// The distribution.
    #[must_use]
    pub const fn new() -> Self {
        Self(core::marker::PhantomData)
    }
}

impl<T> Default for FullInt<T> {
    fn default() -> Self {
        Self::new()
    }
}

macro_rules! full_int {
    ($($small:ident $large:ident;)*) => {$(
        impl Distribution for FullInt<$small> {
            type Out = $small;

            const PER_BLOCK: usize = 4;
            const COST: usize = 4;

            #[inline(always)]
            fn numbers(self, words: [u32; 4]) -> [$small; 4] {
                words.map(|word| word as $small)
            }
        }

        impl Distribution for FullInt<$large> {
            type Out = $large;

            const PER_BLOCK: usize = 2;
            const COST: usize = 4;

            #[inline(always)]
            fn numbers(self, [a, b, c, d]: [u32; 4]) -> [$large; 4] {
                [pair(a, b) as $large, pair(c, d) as $large, 0, 0]
            }
        }
    )*};
}

full_int! {
    i32 i64;
    u32 u64;
}

#[inline(always)]
fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// The low 23 bits as a fraction in `[0, 1)`.
#[inline(always)]
fn unit_f32(word: u32) -> f32 {
    f32::from_bits(0x3F80_0000 | (word & 0x7F_FFFF)) - 1.0
}

/// The low 52 bits of two words, the first one high, as a fraction in `[0, 1)`.
#[inline(always)]
fn unit_f64(high: u32, low: u32) -> f64 {
    let mantissa = u64::from(high & 0xF_FFFF) << 32 | u64::from(low);
    f64::from_bits(0x3FF0_0000_0000_0000 | mantissa) - 1.0
}

/// Two independent normal numbers. The single-precision steps are TensorFlow's; the last bits
/// follow the C library's logarithm, sine and cosine.
#[inline(always)]
pub(super) fn box_muller(a: u32, b: u32) -> [f32; 2] {
    // The logarithm of 0 is kept out.
    let radius_source = unit_f32(a).max(1.0e-7);
    let angle = (core::f64::consts::TAU * f64::from(unit_f32(b))) as f32;
    let radius = crate::math::sqrt_f32(-2.0 * crate::math::libm::log(radius_source));
    let (sin, cos) = crate::math::libm::sin_cos(angle);
    [sin * radius, cos * radius]
}
