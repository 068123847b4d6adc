//! The Rust types of tensor elements.

use tfp_wire::DataType;

/// A Rust type whose bytes are a tensor's element.
///
/// # Safety
/// The type has no padding, no pointer and the size of [`Self::DTYPE`], and every bit pattern that
/// [`Self::all_valid`] accepts is a value of it.
pub unsafe trait Element: Copy + Default + PartialEq + Send + Sync + 'static {
    /// The element type that TensorFlow sees.
    const DTYPE: DataType;

    /// Whether bytes, a multiple of the type's size, are values of this type.
    #[must_use]
    #[inline]
    fn all_valid(_bytes: &[u8]) -> bool {
        true
    }
}

/// Whether a Rust type is as large as the elements of a tensor.
const fn is_size_of<T>(dtype: DataType) -> bool {
    matches!(dtype.size(), Some(size) if size == size_of::<T>())
}

macro_rules! plain {
    ($($rust:ty = $dtype:ident;)*) => {
        $(
            // SAFETY: a number without padding, of that size, for which every bit pattern is valid.
            unsafe impl Element for $rust {
                const DTYPE: DataType = DataType::$dtype;
            }
            const _: () = assert!(is_size_of::<$rust>(DataType::$dtype));
        )*
    };
}

plain! {
    f32 = FLOAT;
    f64 = DOUBLE;
    i8 = INT8;
    i16 = INT16;
    i32 = INT32;
    i64 = INT64;
    u8 = UINT8;
    u16 = UINT16;
    u32 = UINT32;
    u64 = UINT64;
}

// SAFETY: one byte, and `all_valid` refuses all but 0 and 1.
unsafe impl Element for bool {
    const DTYPE: DataType = DataType::BOOL;

    fn all_valid(bytes: &[u8]) -> bool {
        bytes.iter().fold(0, |seen, byte| seen | byte) <= 1
    }
}

macro_rules! wrapped {
    ($($(#[$doc:meta])* $name:ident($inner:ty) = $dtype:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
            #[repr(transparent)]
            pub struct $name(pub $inner);

            // SAFETY: as the wrapped integer.
            unsafe impl Element for $name {
                const DTYPE: DataType = DataType::$dtype;
            }
            const _: () = assert!(is_size_of::<$name>(DataType::$dtype));
        )*
    };
}

wrapped! {
    /// The bits of a 16-bit IEEE float.
    Half(u16) = HALF;
    /// The bits of the upper half of a 32-bit float.
    BFloat16(u16) = BFLOAT16;
    /// The bits of an 8-bit float with 5 bits of exponent.
    Float8E5M2(u8) = FLOAT8_E5M2;
    /// The bits of an 8-bit finite float with 4 bits of exponent.
    Float8E4M3Fn(u8) = FLOAT8_E4M3FN;
    /// The bits of an 8-bit finite float with 4 bits of exponent and no negative zero.
    Float8E4M3FnUz(u8) = FLOAT8_E4M3FNUZ;
    /// The bits of an 8-bit finite float with 4 bits of exponent, bias 11 and no negative zero.
    Float8E4M3B11FnUz(u8) = FLOAT8_E4M3B11FNUZ;
    /// The bits of an 8-bit finite float with 5 bits of exponent and no negative zero.
    Float8E5M2FnUz(u8) = FLOAT8_E5M2FNUZ;
    /// The bits of a 4-bit finite float, in the lower half of a byte.
    Float4E2M1Fn(u8) = FLOAT4_E2M1FN;
    /// A signed 4-bit integer, in the lower half of a byte.
    Int4(u8) = INT4;
    /// An unsigned 4-bit integer, in the lower half of a byte.
    UInt4(u8) = UINT4;
    /// A signed 2-bit integer, in the lowest bits of a byte.
    Int2(u8) = INT2;
    /// An unsigned 2-bit integer, in the lowest bits of a byte.
    UInt2(u8) = UINT2;
    /// A quantized signed 8-bit integer.
    QInt8(i8) = QINT8;
    /// A quantized unsigned 8-bit integer.
    QUInt8(u8) = QUINT8;
    /// A quantized signed 16-bit integer.
    QInt16(i16) = QINT16;
    /// A quantized unsigned 16-bit integer.
    QUInt16(u16) = QUINT16;
    /// A quantized signed 32-bit integer.
    QInt32(i32) = QINT32;
}

/// A complex number: real part, imaginary part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Complex<T> {
    /// The real part.
    pub re: T,
    /// The imaginary part.
    pub im: T,
}

impl<T> Complex<T> {
    /// Makes a number of its parts.
    #[must_use]
    pub const fn new(re: T, im: T) -> Self {
        Self { re, im }
    }
}

// SAFETY: two floats of 4 bytes without padding; every bit pattern is valid.
unsafe impl Element for Complex<f32> {
    const DTYPE: DataType = DataType::COMPLEX64;
}
const _: () = assert!(is_size_of::<Complex<f32>>(DataType::COMPLEX64));

// SAFETY: two floats of 8 bytes without padding; every bit pattern is valid.
unsafe impl Element for Complex<f64> {
    const DTYPE: DataType = DataType::COMPLEX128;
}
const _: () = assert!(is_size_of::<Complex<f64>>(DataType::COMPLEX128));

impl BFloat16 {
    /// Rounds to the nearest, ties to even; NaN stays NaN.
    #[must_use]
    pub const fn from_f32(value: f32) -> Self {
        let bits = value.to_bits();
        if value.is_nan() {
            return Self((bits >> 16) as u16 | 0x40);
        }
        let round = 0x7fff + (bits >> 16 & 1);
        Self((bits.wrapping_add(round) >> 16) as u16)
    }

    /// Converts without loss.
    #[must_use]
    pub const fn to_f32(self) -> f32 {
        f32::from_bits((self.0 as u32) << 16)
    }
}

impl Half {
    /// Rounds to the nearest, ties to even; too large becomes infinite, NaN stays NaN.
    #[must_use]
    pub const fn from_f32(value: f32) -> Self {
        let bits = value.to_bits();
        let sign = (bits >> 16 & 0x8000) as u16;
        let magnitude = bits & 0x7fff_ffff;
        if magnitude > 0x7f80_0000 {
            return Self(sign | 0x7e00);
        }
        // 65520 and above round to infinity.
        if magnitude >= 0x477f_f000 {
            return Self(sign | 0x7c00);
        }
        // Below 2^-14 the result is subnormal: adding 0.5 aligns its bits, rounding as floats do.
        if magnitude < 0x3880_0000 {
            let aligned = f32::from_bits(magnitude) + 0.5;
            return Self(sign | (aligned.to_bits() - 0x3f00_0000) as u16);
        }
        let round = 0xfff + (magnitude >> 13 & 1);
        Self(sign | ((magnitude + round - 0x3800_0000) >> 13) as u16)
    }

    /// Converts without loss.
    #[must_use]
    pub const fn to_f32(self) -> f32 {
        let sign = (self.0 as u32 & 0x8000) << 16;
        let magnitude = self.0 as u32 & 0x7fff;
        let bits = if magnitude >= 0x7c00 {
            0x7f80_0000 | (magnitude & 0x3ff) << 13
        } else if magnitude >= 0x400 {
            (magnitude << 13) + 0x3800_0000
        } else {
            // A subnormal is its bits times 2^-24.
            (magnitude as f32 * f32::from_bits(0x3380_0000)).to_bits()
        };
        f32::from_bits(sign | bits)
    }
}

/// An array of elements, or of such arrays: what a literal like `[[1.0, 2.0], [3.0, 4.0]]` is.
///
/// # Safety
/// The value is as many [`Self::Item`] as the product of the first [`Self::RANK`] of
/// [`Self::DIMS`], one after the other.
pub unsafe trait Nested: Copy + 'static {
    /// The innermost element.
    type Item: Element;
    /// The depth.
    const RANK: usize;
    /// The dimensions; only the first [`Self::RANK`] count. Deeper literals than 8 do not compile.
    const DIMS: [i64; 8];
}

macro_rules! innermost {
    ($($rust:ty),*) => {
        $(
            // SAFETY: one element.
            unsafe impl Nested for $rust {
                type Item = Self;
                const RANK: usize = 0;
                const DIMS: [i64; 8] = [0; 8];
            }
        )*
    };
}

innermost!(
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
    bool,
    Half,
    BFloat16,
    Complex<f32>,
    Complex<f64>
);

// SAFETY: an array is its elements one after the other.
unsafe impl<A: Nested, const N: usize> Nested for [A; N] {
    type Item = A::Item;
    const RANK: usize = {
        assert!(A::RANK < 8, "a literal has at most 8 dimensions");
        A::RANK + 1
    };
    const DIMS: [i64; 8] = prepend(N, A::DIMS);
}

const fn prepend(first: usize, rest: [i64; 8]) -> [i64; 8] {
    let mut dims = [0; 8];
    dims[0] = first as i64;
    let mut axis = 1;
    while axis < 8 {
        dims[axis] = rest[axis - 1];
        axis += 1;
    }
    dims
}

/// Returns the bytes of elements.
pub(crate) fn bytes_of<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: elements have no padding, so each of their bytes is initialised.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

#[cfg(test)]
mod tests {
    use super::{BFloat16, Half};

    #[test]
    fn every_half_survives_a_round_trip() {
        for bits in 0..=u16::MAX {
            let value = Half(bits).to_f32();
            if value.is_nan() {
                assert!(Half::from_f32(value).to_f32().is_nan());
            } else {
                assert_eq!(Half::from_f32(value).0, bits, "{value}");
            }
        }
    }

    #[test]
    fn half_rounds_to_the_nearest_even() {
        for bits in 0..0x7bff_u16 {
            let (low, high) = (Half(bits).to_f32(), Half(bits + 1).to_f32());
            let middle = low + (high - low) / 2.0;
            let even = if bits % 2 == 0 { bits } else { bits + 1 };
            assert_eq!(Half::from_f32(middle).0, even, "between {low} and {high}");
            assert_eq!(Half::from_f32(-middle).0, even | 0x8000);
            assert_eq!(
                Half::from_f32(f32::from_bits(middle.to_bits() + 1)).0,
                bits + 1
            );
            assert_eq!(Half::from_f32(f32::from_bits(middle.to_bits() - 1)).0, bits);
        }
        assert_eq!(Half::from_f32(65519.9).0, 0x7bff);
        assert_eq!(Half::from_f32(65520.0).0, 0x7c00);
        assert_eq!(Half::from_f32(f32::NEG_INFINITY).0, 0xfc00);
    }

    #[test]
    fn bfloat16_rounds_to_the_nearest_even() {
        assert_eq!(BFloat16::from_f32(1.0).0, 0x3f80);
        assert_eq!(BFloat16::from_f32(f32::from_bits(0x3f80_8000)).0, 0x3f80);
        assert_eq!(BFloat16::from_f32(f32::from_bits(0x3f81_8000)).0, 0x3f82);
        assert_eq!(BFloat16::from_f32(f32::MAX).0, 0x7f80);
        assert!(
            BFloat16::from_f32(f32::from_bits(0x7f80_0001))
                .to_f32()
                .is_nan()
        );
        for bits in (0..=u16::MAX).filter(|&bits| !BFloat16(bits).to_f32().is_nan()) {
            assert_eq!(BFloat16::from_f32(BFloat16(bits).to_f32()).0, bits);
        }
    }
}
