//! Conversion between integers of any size.
//!
//! A number that does not fit loses its upper bits, as in TensorFlow.

use crate::base::adapt::check_count;
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::error::Result;
use crate::base::parallel::Parallel;

/// An integer of 64 bits at most.
pub trait Whole: Copy + Send + Sync {
    /// The number in 64 bits; of one of 64 bits without a sign, its bits.
    fn wide(self) -> i64;

    /// The lower bits of a number.
    fn narrow(wide: i64) -> Self;
}

macro_rules! whole {
    ($($type:ident)*) => {$(
        impl Whole for $type {
            #[inline(always)]
            #[allow(clippy::cast_lossless, reason = "some of the types need it")]
            fn wide(self) -> i64 {
                self as i64
            }

            #[inline(always)]
            fn narrow(wide: i64) -> Self {
                wide as Self
            }
        }
    )*};
}

whole!(i8 i16 i32 i64 u8 u16 u32 u64);

/// `out[i] = x[i]` in another type.
///
/// # Errors
/// [`Error::Length`](crate::base::error::Error::Length) unless `out` is as long as `x`.
pub fn convert<T: Whole, U: Whole>(x: &[T], out: &mut [U], parallel: &dyn Parallel) -> Result<()> {
    check_count("y", out.len(), x.len())?;
    let chunk = chunk_len(parallel, out.len(), 64, 1);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        for (out, x) in out.iter_mut().zip(&x[start..]) {
            *out = U::narrow(x.wide());
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parallel::Serial;

    fn converted<T: Whole, U: Whole + Default>(x: &[T]) -> Vec<U> {
        let mut out = vec![U::default(); x.len()];
        convert(x, &mut out, &Serial).unwrap();
        out
    }

    #[test]
    fn numbers_that_fit_stay() {
        assert_eq!(converted::<u8, i32>(&[0, 7, 255]), [0, 7, 255]);
        assert_eq!(converted::<i8, i64>(&[-128, 127]), [-128, 127]);
        assert_eq!(converted::<u32, i64>(&[u32::MAX]), [0xffff_ffff]);
        assert_eq!(converted::<i32, i16>(&[-32768, 32767]), [-32768, 32767]);
    }

    #[test]
    fn others_lose_their_upper_bits() {
        assert_eq!(converted::<i32, u8>(&[-1, 256, 300]), [255, 0, 44]);
        assert_eq!(converted::<i32, i8>(&[128, -129]), [-128, 127]);
        assert_eq!(converted::<i64, u32>(&[-1, 1 << 32]), [u32::MAX, 0]);
        assert_eq!(converted::<i8, u64>(&[-1]), [u64::MAX]);
        assert_eq!(converted::<u64, i64>(&[u64::MAX]), [-1]);
    }

    #[test]
    fn lengths_must_agree() {
        assert!(convert(&[1_u8, 2], &mut [0_i32], &Serial).is_err());
    }
}
