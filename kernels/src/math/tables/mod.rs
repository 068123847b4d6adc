//! Functions for levels that look up: pieces of a function have polynomials of their own, whose
//! coefficients come out of tables.

mod erf;
mod gelu;
mod log;
mod sigmoid;
mod tanh;

pub(super) use erf::erf_of_size;
pub(super) use gelu::gelu;
pub(super) use log::{log, log_of_sum};
pub(super) use sigmoid::sigmoid;
pub(super) use tanh::tanh_of_size;

use super::single::ROUNDER;
use crate::simd::Simd;

/// A polynomial, the coefficient of the highest power last, of which there is a table each.
#[inline(always)]
fn piece<S: Simd, const PIECES: usize, const N: usize>(
    s: S,
    tables: &[[f32; PIECES]; N],
    index: S::I,
    x: S::F,
) -> S::F {
    let mut value = s.look_up(&tables[N - 1], index);
    for table in tables.iter().rev().skip(1) {
        value = s.mul_add(value, x, s.look_up(table, index));
    }
    value
}

/// Which multiple of `step` is nearest to a number, in the last bits, and the distance from it.
#[inline(always)]
fn nearest<S: Simd>(s: S, x: S::F, step: f32) -> (S::I, S::F) {
    let rounder = s.splat(ROUNDER);
    let shifted = s.mul_add(x, s.splat(1.0 / step), rounder);
    let distance = s.mul_add(s.sub(shifted, rounder), s.splat(-step), x);
    (s.to_bits(shifted), distance)
}
