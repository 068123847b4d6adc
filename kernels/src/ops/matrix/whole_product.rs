//! Integer matmuls, which wrap.

use crate::base::adapt::{Element, check_count};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::error::Result;
use crate::base::parallel::Parallel;

/// An integer with arithmetic.
pub trait Factor: Element {
    /// `self + a * b`, wrapped.
    #[must_use]
    fn plus(self, a: Self, b: Self) -> Self;
}

macro_rules! factors {
    ($($type:ty)*) => {$(
        impl Factor for $type {
            #[inline(always)]
            fn plus(self, a: Self, b: Self) -> Self {
                self.wrapping_add(a.wrapping_mul(b))
            }
        }
    )*};
}

factors! { i32 i64 }

/// `out = a * b` of `groups` matrices each, with `depth` columns of `a` and `columns` of `b`.
///
/// # Errors
/// [`Error::Length`](crate::base::error::Error::Length) if a slice does not hold what the sizes say.
pub fn whole_product<T: Factor>(
    (groups, depth, columns): (usize, usize, usize),
    a: &[T],
    b: &[T],
    out: &mut [T],
    parallel: &dyn Parallel,
) -> Result<()> {
    check_count("b", b.len(), groups * depth * columns)?;
    let rows = out.len().checked_div(groups * columns).unwrap_or_default();
    check_count("output", out.len(), groups * rows * columns)?;
    check_count("a", a.len(), groups * rows * depth)?;
    if out.is_empty() {
        return Ok(());
    }
    let lines = chunk_len(parallel, groups * rows, 1, 2 * depth * columns);
    for_each_chunk(parallel, out, lines * columns, &|start, out| {
        for (line, out) in (start / columns..).zip(out.chunks_mut(columns)) {
            let b = &b[line / rows * depth * columns..][..depth * columns];
            let a = &a[line * depth..][..depth];
            out.fill(T::default());
            for (&a, b) in a.iter().zip(b.chunks(columns)) {
                for (out, &b) in out.iter_mut().zip(b) {
                    *out = out.plus(a, b);
                }
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parallel::Serial;
    use crate::testing::Interleaved;

    #[test]
    fn every_element_is_the_sum_of_its_products() {
        for (groups, rows, depth, columns) in [(1, 1, 1, 1), (3, 7, 5, 4), (2, 40, 33, 17)] {
            let number = |i: usize| (i as i32).wrapping_mul(0x5bd1_e995) >> 3;
            let a: Vec<i32> = (0..groups * rows * depth).map(number).collect();
            let b: Vec<i32> = (0..groups * depth * columns)
                .map(|i| number(i + 99))
                .collect();
            let mut out = vec![1; groups * rows * columns];
            for parallel in [&Serial as &dyn Parallel, &Interleaved] {
                whole_product((groups, depth, columns), &a, &b, &mut out, parallel).unwrap();
                for (i, &found) in out.iter().enumerate() {
                    let (line, column) = (i / columns, i % columns);
                    let b = &b[line / rows * depth * columns..];
                    let sum = (0..depth).fold(0_i32, |sum, k| {
                        let product = a[line * depth + k].wrapping_mul(b[k * columns + column]);
                        sum.wrapping_add(product)
                    });
                    assert_eq!(found, sum);
                }
            }
        }
    }

    #[test]
    fn nothing_and_too_little() {
        let mut out = [7_i64; 2];
        whole_product((1, 0, 2), &[], &[], &mut out, &Serial).unwrap();
        assert_eq!(out, [0, 0]);
        whole_product::<i64>((0, 3, 2), &[], &[], &mut [], &Serial).unwrap();
        let wrong = whole_product((1, 2, 2), &[1_i64], &[1, 2, 3, 4], &mut out, &Serial);
        assert!(wrong.is_err());
    }
}
