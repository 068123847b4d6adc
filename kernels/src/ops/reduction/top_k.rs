//! Where the largest elements of a row are, the largest first.

use crate::base::adapt::{Element, check_len};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;

/// The places of the `k` largest elements of each row of the last axis, in falling order. The
/// first of equal ones comes first, and NaN last.
///
/// `out` has the shape of `x` with `k` as the last axis.
///
/// # Errors
/// [`Error::Rank`] for a scalar, [`Error::Value`] if a row has fewer than `k` elements or more than
/// `i32` counts, [`Error::Length`] if a slice does not fit its shape.
pub fn top_k<T: Element + PartialOrd>(
    (x, shape): (&[T], &Shape),
    k: usize,
    out: &mut [i32],
    parallel: &dyn Parallel,
) -> Result<()> {
    let Some((&count, lead)) = shape.split_last() else {
        return Err(Error::Rank {
            argument: "input",
            found: 0,
            expected: "at least 1",
        });
    };
    if k > count || i32::try_from(count).is_err() {
        return Err(Error::Value {
            argument: "k",
            expected: "at most the elements of a row, whose places an int32 holds",
        });
    }
    check_len("input", x.len(), shape)?;
    let expected = lead.iter().product::<usize>() * k;
    if out.len() != expected {
        return Err(Error::Length {
            argument: "output",
            found: out.len(),
            expected,
        });
    }
    if out.is_empty() {
        return Ok(());
    }
    let chunk = chunk_len(parallel, out.len(), k, count.div_ceil(k));
    for_each_chunk(parallel, out, chunk, &|start, out| {
        let rows = x[start / k * count..].chunks(count);
        for (out, row) in out.chunks_mut(k).zip(rows) {
            largest(row, out);
        }
    });
    Ok(())
}

/// Whether the element at `a` comes before the one at `b`.
fn before<T: PartialOrd>(row: &[T], a: i32, b: i32) -> bool {
    let (x, y) = (&row[a as usize], &row[b as usize]);
    if x > y {
        return true;
    }
    if x < y {
        return false;
    }
    // Only what is not a number differs from itself.
    let numbers = (x.partial_cmp(x).is_some(), y.partial_cmp(y).is_some());
    match numbers {
        (true, false) => true,
        (false, true) => false,
        _ => a < b,
    }
}

/// Fills a heap whose root is the last of the elements that were kept, then empties it from the
/// back.
fn largest<T: PartialOrd>(row: &[T], out: &mut [i32]) {
    let k = out.len();
    for (place, out) in (0..).zip(out.iter_mut()) {
        *out = place;
    }
    for root in (0..k / 2).rev() {
        sink(row, out, root);
    }
    for place in (0..row.len() as i32).skip(k) {
        if before(row, place, out[0]) {
            out[0] = place;
            sink(row, out, 0);
        }
    }
    for end in (1..k).rev() {
        out.swap(0, end);
        sink(row, &mut out[..end], 0);
    }
}

/// Moves the element at `root` below those that come after it.
fn sink<T: PartialOrd>(row: &[T], heap: &mut [i32], mut root: usize) {
    loop {
        let mut child = 2 * root + 1;
        if child >= heap.len() {
            return;
        }
        if child + 1 < heap.len() && before(row, heap[child], heap[child + 1]) {
            child += 1;
        }
        if before(row, heap[child], heap[root]) {
            return;
        }
        heap.swap(root, child);
        root = child;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parallel::Serial;
    use crate::testing::Interleaved;

    #[test]
    fn as_a_stable_sort() {
        for (rows, count) in [(1, 1), (3, 7), (2, 64), (5, 100), (300, 129)] {
            let shape = Shape::new(&[rows, count]).unwrap();
            let mut x = crate::testing::numbers(rows * count, 3);
            // Equal ones, and NaN.
            for (i, x) in x.iter_mut().enumerate() {
                *x = (*x * 6.0).round();
                if i % 13 == 4 {
                    *x = f32::NAN;
                }
                if i % 17 == 2 {
                    *x = f32::NEG_INFINITY;
                }
            }
            for k in [1, count.div_ceil(3), count] {
                let mut out = vec![-1; rows * k];
                top_k((&x, &shape), k, &mut out, &Interleaved).unwrap();
                for (row, found) in x.chunks(count).zip(out.chunks(k)) {
                    let mut all: Vec<i32> = (0..count as i32).collect();
                    // A key that puts NaN after negative infinity.
                    let key = |place: &i32| match row[*place as usize] {
                        x if x.is_nan() => (1, 0.0),
                        x => (0, -x),
                    };
                    all.sort_by(|a, b| key(a).partial_cmp(&key(b)).unwrap());
                    assert_eq!(found, &all[..k]);
                }
            }
        }
    }

    #[test]
    fn whole_numbers() {
        let shape = Shape::new(&[5]).unwrap();
        let mut out = [0; 3];
        top_k(
            (&[3, i64::MIN, 9, 3, i64::MAX], &shape),
            3,
            &mut out,
            &Serial,
        )
        .unwrap();
        assert_eq!(out, [4, 2, 0]);
    }

    #[test]
    fn what_is_refused() {
        let shape = Shape::new(&[2, 3]).unwrap();
        let x = [0.0_f32; 6];
        let mut out = [0; 8];
        let mut find =
            |shape: &Shape, k, len: usize| top_k((&x, shape), k, &mut out[..len], &Serial);
        assert!(matches!(find(&shape, 4, 8), Err(Error::Value { .. })));
        assert!(matches!(find(&shape, 2, 8), Err(Error::Length { .. })));
        assert!(matches!(
            find(&Shape::SCALAR, 1, 1),
            Err(Error::Rank { .. })
        ));
        assert!(find(&shape, 0, 0).is_ok());
    }
}
