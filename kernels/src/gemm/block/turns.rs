//! How much of B all rows of a block meet before the next part's turn.
//!
//! Either side of a product can be the one that is fetched again. Where the second cache holds the
//! rows of A, these are, and a part of B is small enough to stay there with them. Where it does
//! not, each part of B brings all of A from far away, and so parts are larger.

use crate::base::level::{second_cache, third_cache_is_near};

/// Elements of a part of B that stays in the second cache with those of A, while the next part is
/// asked for.
const BESIDE_A: usize = 64 * 1024;
/// Panels of the smallest part, so that rows of A are not copied too often.
const FEWEST: usize = 4;

/// Whether the second cache does not hold `rows` rows of A with `k` columns and a part of B.
#[inline(always)]
pub(super) fn is_tall(rows: usize, k: usize) -> bool {
    rows.saturating_mul(k) > second_cache_len() / 2
}

/// Panels of a part of B, which have so many elements each, for rows of A that are tall or not.
#[inline(always)]
pub(super) fn panels(elements: usize, tall: bool) -> usize {
    let most = match tall {
        true if third_cache_is_near() => second_cache_len(),
        true => second_cache_len() / 4,
        false => BESIDE_A,
    };
    (most / elements.max(1)).max(FEWEST)
}

/// Elements of B that are packed at a time for all rows of A: a part that the second cache holds,
/// or one from the third where that is as good.
#[inline]
pub(crate) fn packed_len() -> usize {
    if third_cache_is_near() {
        2 * second_cache_len()
    } else {
        second_cache_len() / 2
    }
}

/// Elements that the second cache holds.
#[inline(always)]
fn second_cache_len() -> usize {
    second_cache() / size_of::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parallel::{Parallel, Serial};
    use crate::gemm::{Activation, Gemm, Matrix, Packed, Scale, pack};
    use crate::simd::available;
    use crate::testing::{Interleaved, numbers};

    #[test]
    fn a_part_is_larger_where_rows_are_many() {
        let most = second_cache_len() / 2;
        assert!(!is_tall(most / 512, 512) && is_tall(most / 512 + 1, 512));
        assert!(!is_tall(0, usize::MAX) && is_tall(usize::MAX, usize::MAX));
        assert_eq!(panels(16 * 1024, false), FEWEST);
        assert!(panels(16 * 1024, true) >= 2 * FEWEST);
        assert_eq!(panels(usize::MAX, true), FEWEST);
        assert!(panels(0, false) > 0);
    }

    /// Rows by which a product is cut into some that are not tall.
    const ROWS: usize = 84;

    /// A product has the bits of those of some of its rows each, which meet B in smaller parts.
    #[test]
    fn products_around_the_limit_have_the_bits_of_their_parts() {
        fn negate(x: &mut [f32]) {
            x.iter_mut().for_each(|x| *x = -*x);
        }
        let most = second_cache_len() / 2;
        // Columns: less than a part, some parts of either size, and a last panel that is wider.
        for (k, n) in [(512, 24), (512, 1100), (300, 1999), (130, 640), (700, 530)] {
            let piece = if k == 700 { 352 } else { k };
            let (b, bias) = (numbers(k * n, 2), numbers(n, 3));
            let (factors, terms) = (numbers(k, 4), numbers(k, 5));
            for (m, scaled) in [
                (most / piece - 1, false),
                (most / piece, true),
                (most / piece + 2, false),
                (most / piece + 13, true),
                (most / piece + 30, false),
            ] {
                let a = numbers(m * k, 6);
                let before = numbers(m * n, 7);
                for level in available() {
                    let mut memory = vec![f32::NAN; pack::packed_len(level, k, n).unwrap()];
                    let b = Matrix::rows(&b, n);
                    let b = Packed::pack_for(level, &b, (k, n), &mut memory, &Serial).unwrap();
                    let run = |a: &[f32], c: &mut [f32], parallel: &dyn Parallel| {
                        let gemm = Gemm {
                            bias: Some(&bias),
                            scale: scaled.then_some(Scale {
                                scale: &factors,
                                shift: Some(&terms),
                                clamp: None,
                            }),
                            activation: Activation::Map(negate),
                            accumulate: true,
                            ..Gemm::packed(a.len() / k, Matrix::rows(a, k), b)
                        };
                        gemm.run(c, n, &mut [], parallel).unwrap();
                    };
                    let mut parts = before.clone();
                    for (a, c) in a.chunks(ROWS * k).zip(parts.chunks_mut(ROWS * n)) {
                        run(a, c, &Serial);
                    }
                    for parallel in [&Serial as &dyn Parallel, &Interleaved] {
                        let mut whole = before.clone();
                        run(&a, &mut whole, parallel);
                        for (i, (x, y)) in whole.iter().zip(&parts).enumerate() {
                            let at = (i / n, i % n);
                            let same = x.to_bits() == y.to_bits();
                            assert!(same, "{level:?} {m}x{n}x{k} {at:?}: {x} {y}");
                        }
                    }
                }
            }
        }
    }
}
