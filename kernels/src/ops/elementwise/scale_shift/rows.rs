//! Rows with a factor and a shift per channel, and what bounds them.

use crate::base::error::{Error, Result};
use crate::gemm::Activation;
use crate::simd::body::Body;

/// Channels below which several rows are worked on as one.
const WIDE: usize = 64;
/// Most lanes of a vector.
const LANES: usize = 16;

/// What of `x * scale + shift` is computed.
#[derive(Clone, Copy)]
pub enum Part {
    All,
    Product,
    Sum,
}

/// Whole rows of the tensor.
pub struct Rows<'a> {
    pub part: Part,
    /// The values; those of `out` if there are none.
    pub x: Option<&'a [f32]>,
    pub scale: &'a [f32],
    pub shift: &'a [f32],
    pub limits: Option<(f32, f32)>,
    pub out: &'a mut [f32],
}

impl Body for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut memory = [[0.0; 2 * WIDE]; 2];
        let (scale, shift) = if self.scale.len() < WIDE && self.out.len() > 4 * WIDE {
            // Whole vectors, if they fit.
            let unit = self.scale.len() * LANES;
            let width = match 2 * WIDE / unit {
                0 => WIDE.next_multiple_of(self.scale.len()),
                units => units * unit,
            };
            let [scale, shift] = &mut memory;
            for (all, few) in [(&mut *scale, self.scale), (&mut *shift, self.shift)] {
                for part in all[..width].chunks_exact_mut(few.len()) {
                    part.copy_from_slice(few);
                }
            }
            (&scale[..width], &shift[..width])
        } else {
            (self.scale, self.shift)
        };
        let width = scale.len();
        for (row, out) in self.out.chunks_mut(width).enumerate() {
            let x = self.x.map(|x| &x[row * width..][..out.len()]);
            match self.part {
                Part::All => affine(x, (scale, shift), self.limits, out),
                Part::Product => multiply(out, scale),
                Part::Sum => {
                    add(out, shift);
                    clamp(self.limits, out);
                }
            }
        }
    }
}

/// A row, in place, with a factor per column.
#[inline(always)]
fn multiply(out: &mut [f32], scale: &[f32]) {
    for (out, &scale) in out.iter_mut().zip(scale) {
        *out *= scale;
    }
}

/// A row, in place, with a shift per column.
#[inline(always)]
fn add(out: &mut [f32], shift: &[f32]) {
    for (out, &shift) in out.iter_mut().zip(shift) {
        *out += shift;
    }
}

/// A row, or a part of one, with a factor and a shift per column.
#[inline(always)]
pub fn affine(
    x: Option<&[f32]>,
    (scale, shift): (&[f32], &[f32]),
    limits: Option<(f32, f32)>,
    out: &mut [f32],
) {
    let factors = scale.iter().zip(shift);
    match x {
        Some(x) => {
            for ((out, &x), (&scale, &shift)) in out.iter_mut().zip(x).zip(factors) {
                *out = x * scale + shift;
            }
        }
        None => {
            for (out, (&scale, &shift)) in out.iter_mut().zip(factors) {
                *out = *out * scale + shift;
            }
        }
    }
    clamp(limits, out);
}

#[inline(always)]
fn clamp(limits: Option<(f32, f32)>, out: &mut [f32]) {
    if let Some((low, high)) = limits {
        for out in out {
            // A NaN stays.
            let x = if *out < low { low } else { *out };
            *out = if x > high { high } else { x };
        }
    }
}

pub fn check_rows(len: usize, width: usize) -> Result<()> {
    if len.checked_rem(width).unwrap_or(len) == 0 {
        return Ok(());
    }
    Err(Error::Length {
        argument: "x",
        found: len,
        expected: width,
    })
}

pub fn limits(activation: &Activation) -> Result<Option<(f32, f32)>> {
    match *activation {
        Activation::None => Ok(None),
        Activation::Clamp(low, high) => Ok(Some((low, high))),
        Activation::Map(_) => Err(Error::Value {
            argument: "activation",
            expected: "none or a clamp",
        }),
    }
}
