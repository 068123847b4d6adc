//! Sums and products of two tensors, and functions of one number.

use super::{Range, expect, scaled};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::simd::body::{Body, dispatch};

/// Powers of two by which the terms of a sum are widened before they are scaled.
const WIDENED: u32 = 20;

/// An integer of 31 bits and a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor {
    /// The number.
    pub multiplier: i32,
    /// The power, from -31 to 30.
    pub shift: i32,
}

impl Factor {
    pub(super) fn check(self) -> Result<Self> {
        if super::SHIFTS.contains(&self.shift) {
            return Ok(self);
        }
        Err(Error::Value {
            argument: "shift",
            expected: "a shift from -31 to 30",
        })
    }

    #[inline(always)]
    pub(super) const fn of(self, x: i32) -> i32 {
        scaled(x, self.multiplier, self.shift)
    }
}

/// Numbers, and the one that stands for zero.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'a> {
    /// The numbers.
    pub values: &'a [i8],
    /// The one that stands for zero.
    pub zero: i8,
}

/// What is made of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    /// The sum, with a factor for each term.
    Sum(Factor, Factor),
    /// The product.
    Product,
}

/// Computes the sums or products of elements.
///
/// # Errors
/// [`Error::Length`] if the lengths differ, [`Error::Value`] for a shift that is too large.
pub fn pair(
    kind: Pair,
    a: Numbers<'_>,
    b: Numbers<'_>,
    (factor, range): (Factor, Range),
    out: &mut [i8],
    parallel: &dyn Parallel,
) -> Result<()> {
    let (a_zero, b_zero) = (a.zero, b.zero);
    let (a, b) = (a.values, b.values);
    expect("a", a.len(), out.len())?;
    expect("b", b.len(), out.len())?;
    factor.check()?;
    if let Pair::Sum(first, second) = kind {
        first.check()?;
        second.check()?;
    }
    let chunk = chunk_len(parallel, out.len(), 64, 4);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        let (a, b) = (&a[start..][..out.len()], &b[start..][..out.len()]);
        dispatch(Pairs {
            kind,
            a: (a, i32::from(a_zero)),
            b: (b, i32::from(b_zero)),
            factor,
            range,
            out,
        });
    });
    Ok(())
}

struct Pairs<'a> {
    kind: Pair,
    a: (&'a [i8], i32),
    b: (&'a [i8], i32),
    factor: Factor,
    range: Range,
    out: &'a mut [i8],
}

impl Body for Pairs<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let ((a, a_zero), (b, b_zero)) = (self.a, self.b);
        let both = self.out.iter_mut().zip(a.iter().zip(b));
        let numbers =
            both.map(|(out, (&a, &b))| (out, i32::from(a) - a_zero, i32::from(b) - b_zero));
        match self.kind {
            Pair::Sum(first, second) => {
                for (out, a, b) in numbers {
                    let sum = first.of(a << WIDENED).wrapping_add(second.of(b << WIDENED));
                    *out = self.range.hold(self.factor.of(sum));
                }
            }
            Pair::Product => {
                for (out, a, b) in numbers {
                    *out = self.range.hold(self.factor.of(a * b));
                }
            }
        }
    }
}

/// Looks every number up in a table, in which -128 comes first.
///
/// # Errors
/// [`Error::Length`] if the lengths differ or the table has not 256 elements.
pub fn look_up(x: &[i8], table: &[i8], out: &mut [i8], parallel: &dyn Parallel) -> Result<()> {
    expect("x", x.len(), out.len())?;
    expect("table", table.len(), 256)?;
    let Some(table) = table.first_chunk::<256>() else {
        return Ok(());
    };
    let chunk = chunk_len(parallel, out.len(), 64, 1);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        for (out, x) in out.iter_mut().zip(&x[start..]) {
            *out = table[usize::from(x.cast_unsigned() ^ 0x80)];
        }
    });
    Ok(())
}
