//! Elementary functions without a library call, in a form that loops over them vectorise.
//!
//! [`single`] computes in `f32`, for what a model evaluates most; the functions of `f64` round
//! once where an `f32` result shall be the nearest one. Both are free of branches on the value. The
//! functions of `f64` fuse no operations, so that every instruction set gives the same bits.

pub(crate) mod angle;
pub(crate) mod double;
pub(crate) mod single;
mod tables;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use angle::{acos, asin, atan, atan2, of_angles, sin_cos};
pub(crate) use double::{acosh, asinh, atanh, cosh, log, log_1p, pow, sinh};

/// Largest integer not above `x`.
#[inline(always)]
pub(crate) fn floor(x: f32) -> f32 {
    #[cfg(feature = "std")]
    {
        x.floor()
    }
    #[cfg(not(feature = "std"))]
    {
        let cut = truncate(x);
        let down = if cut > x { cut - 1.0 } else { cut };
        down.copysign(x)
    }
}

/// Smallest integer not below `x`.
#[inline(always)]
pub(crate) fn ceil(x: f32) -> f32 {
    -floor(-x)
}

/// Nearest integer, halves to the even one.
#[inline(always)]
pub(crate) fn round_half_even(x: f32) -> f32 {
    #[cfg(feature = "std")]
    {
        x.round_ties_even()
    }
    #[cfg(not(feature = "std"))]
    {
        const STEP: f32 = 8_388_608.0;
        if x.abs() < STEP {
            ((x.abs() + STEP) - STEP).copysign(x)
        } else {
            x
        }
    }
}

/// `x` without its fraction.
#[inline(always)]
#[cfg_attr(feature = "std", allow(dead_code))]
pub(crate) fn truncate(x: f32) -> f32 {
    if x.abs() < 8_388_608.0 {
        (x as i32 as f32).copysign(x)
    } else {
        x
    }
}

/// Square root, correctly rounded.
#[inline(always)]
pub(crate) fn sqrt(x: f64) -> f64 {
    #[cfg(feature = "std")]
    {
        x.sqrt()
    }
    #[cfg(all(not(feature = "std"), target_arch = "x86_64"))]
    {
        crate::simd::scalar::sqrt(x)
    }
    #[cfg(all(not(feature = "std"), not(target_arch = "x86_64")))]
    {
        if x == 0.0 || x == f64::INFINITY || x.is_nan() {
            return x;
        }
        if x < 0.0 {
            return f64::NAN;
        }
        // Heron's iteration from an estimate with half the exponent; four steps suffice for any
        // normal number.
        let mut root = f64::from_bits((x.to_bits() >> 1) + (1023 << 51));
        for _ in 0..5 {
            root = 0.5 * (root + x / root);
        }
        root
    }
}

/// Square root of an `f32`, correctly rounded.
#[inline(always)]
pub(crate) fn sqrt_f32(x: f32) -> f32 {
    #[cfg(feature = "std")]
    {
        x.sqrt()
    }
    #[cfg(not(feature = "std"))]
    {
        sqrt(f64::from(x)) as f32
    }
}

#[inline(always)]
fn polynomial<const N: usize>(coefficients: &[f64; N], x: f64) -> f64 {
    let mut value = 0.0;
    for &coefficient in coefficients.iter().rev() {
        value = value * x + coefficient;
    }
    value
}

/// The C library's single-precision functions, bit by bit, where the standard library has them.
pub(crate) mod libm {
    /// Natural logarithm.
    #[inline(always)]
    pub(crate) fn log(x: f32) -> f32 {
        #[cfg(feature = "std")]
        {
            x.ln()
        }
        #[cfg(not(feature = "std"))]
        {
            super::log(f64::from(x)) as f32
        }
    }

    /// Sine and cosine.
    #[inline(always)]
    pub(crate) fn sin_cos(x: f32) -> (f32, f32) {
        #[cfg(feature = "std")]
        {
            x.sin_cos()
        }
        #[cfg(not(feature = "std"))]
        {
            let (sin, cos) = super::angle::sin_cos(f64::from(x));
            (sin as f32, cos as f32)
        }
    }
}
