//! Where the elements of a row are after the sort of TensorFlow's C++ library, the largest first.
//!
//! That sort isn't stable: its steps decide the order of equal elements. They are those of
//! libstdc++'s `std::sort`: a quicksort by the median of three, which leaves short parts to an
//! insertion sort of everything, and parts that it divides too often to a heap sort.

use crate::base::adapt::check_count;
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;

/// Parts of at most as many elements are left to the insertion sort.
const SHORT: usize = 16;

/// Writes the places of each row of `count` elements in falling order. Equal ones come as they
/// leave libstdc++'s `std::sort`. Rows with NaN have their places in an order of no meaning.
///
/// `out` has as many elements as `x`.
///
/// # Errors
/// [`Error::Value`] if a row has more elements than `i32` counts, [`Error::Length`] if `out` does
/// not have those of `x`, or these are not whole rows.
pub fn introsort(x: &[f32], count: usize, out: &mut [i32], parallel: &dyn Parallel) -> Result<()> {
    if i32::try_from(count).is_err() {
        return Err(Error::Value {
            argument: "count",
            expected: "elements whose places an int32 holds",
        });
    }
    check_count("output", out.len(), x.len())?;
    let rows = x.len().checked_div(count).unwrap_or_default();
    check_count("input", x.len(), rows * count)?;
    if out.is_empty() {
        return Ok(());
    }
    let work = count.ilog2() as usize + 1;
    let chunk = chunk_len(parallel, out.len(), count, work);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        let rows = x[start..].chunks(count);
        for (out, row) in out.chunks_mut(count).zip(rows) {
            sort(row, out);
        }
    });
    Ok(())
}

fn sort(row: &[f32], places: &mut [i32]) {
    for (place, out) in (0..).zip(places.iter_mut()) {
        *out = place;
    }
    divide(row, places, 2 * row.len().ilog2());
    for at in 1..places.len() {
        let place = places[at];
        let mut hole = at;
        while hole > 0 && before(row, place, places[hole - 1]) {
            places[hole] = places[hole - 1];
            hole -= 1;
        }
        places[hole] = place;
    }
}

/// Whether the element at `a` comes before the one at `b`.
fn before(row: &[f32], a: i32, b: i32) -> bool {
    row[a as usize] > row[b as usize]
}

fn divide(row: &[f32], mut places: &mut [i32], mut depth: u32) {
    while places.len() > SHORT {
        let Some(left) = depth.checked_sub(1) else {
            heap_sort(row, places);
            return;
        };
        depth = left;
        let cut = partition(row, places);
        let (front, back) = { places }.split_at_mut(cut);
        divide(row, back, depth);
        places = front;
    }
}

/// Puts what comes before a median of three in front, and returns how much that is. NaN ends the
/// ways of both ends at the slice's.
fn partition(row: &[f32], places: &mut [i32]) -> usize {
    let end = places.len();
    places.swap(0, median(row, places, [1, end / 2, end - 1]));
    let pivot = places[0];
    let (mut low, mut high) = (1, end);
    loop {
        while low < end && before(row, places[low], pivot) {
            low += 1;
        }
        high -= 1;
        while high > 0 && before(row, pivot, places[high]) {
            high -= 1;
        }
        if low >= high {
            return low;
        }
        places.swap(low, high);
        low += 1;
    }
}

fn median(row: &[f32], places: &[i32], [a, b, c]: [usize; 3]) -> usize {
    let first = |a: usize, b: usize| before(row, places[a], places[b]);
    let (low, high) = if first(a, b) { (a, b) } else { (b, a) };
    if first(high, c) {
        high
    } else if first(low, c) {
        c
    } else {
        low
    }
}

fn heap_sort(row: &[f32], places: &mut [i32]) {
    for root in (0..places.len() / 2).rev() {
        let place = places[root];
        sink(row, places, root, place);
    }
    for end in (1..places.len()).rev() {
        let place = places[end];
        places[end] = places[0];
        sink(row, &mut places[..end], 0, place);
    }
}

/// The gap at `root` sinks to the end of a branch, where `place` starts to rise.
fn sink(row: &[f32], heap: &mut [i32], root: usize, place: i32) {
    let mut gap = root;
    while 2 * gap + 1 < heap.len() {
        let (left, right) = (2 * gap + 1, 2 * gap + 2);
        let of_left = right == heap.len() || before(row, heap[right], heap[left]);
        let child = if of_left { left } else { right };
        heap[gap] = heap[child];
        gap = child;
    }
    while gap > root {
        let parent = (gap - 1) / 2;
        if !before(row, heap[parent], place) {
            break;
        }
        heap[gap] = heap[parent];
        gap = parent;
    }
    heap[gap] = place;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parallel::Serial;
    use crate::testing::Interleaved;

    const EQUAL: [i32; 20] = [
        10, 19, 18, 17, 16, 15, 14, 13, 12, 11, 0, 9, 8, 7, 6, 5, 4, 3, 2, 1,
    ];
    const FEW: [i32; 40] = [
        17, 2, 37, 22, 7, 32, 27, 12, 9, 24, 14, 29, 19, 34, 4, 39, 21, 1, 26, 31, 36, 16, 11, 6,
        18, 23, 38, 13, 28, 3, 8, 33, 0, 20, 5, 35, 10, 30, 15, 25,
    ];
    const KILLER: [u8; 120] = [
        9, 59, 19, 58, 2, 57, 20, 56, 10, 55, 21, 54, 5, 53, 22, 52, 11, 51, 23, 50, 1, 49, 47, 48,
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 12, 6,
        13, 3, 14, 7, 15, 0, 16, 8, 17, 4, 18, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 23,
        25, 24, 26, 25, 27, 26, 28, 27, 29, 28, 30, 29, 31, 30, 32, 31, 33, 32, 34, 33, 35, 34, 36,
        35, 37, 36, 38, 37, 39, 38, 40, 39, 41, 40, 42, 41, 43, 42, 44, 43, 45, 44, 46, 45, 47, 46,
        24,
    ];
    const KILLED: [i32; 120] = [
        1, 60, 3, 61, 5, 62, 7, 63, 9, 64, 11, 65, 13, 66, 15, 67, 17, 68, 19, 69, 21, 70, 23, 71,
        117, 22, 118, 115, 116, 113, 114, 111, 109, 112, 107, 110, 108, 105, 103, 106, 101, 104,
        99, 102, 97, 100, 98, 95, 96, 93, 94, 91, 89, 92, 87, 90, 88, 85, 83, 86, 81, 84, 79, 82,
        77, 80, 75, 78, 73, 76, 119, 74, 18, 72, 14, 46, 10, 45, 6, 44, 2, 43, 59, 42, 57, 41, 55,
        40, 39, 53, 51, 38, 49, 37, 47, 36, 16, 35, 8, 34, 0, 33, 56, 32, 31, 52, 48, 30, 12, 29,
        58, 28, 27, 50, 4, 26, 25, 20, 24, 54,
    ];

    fn sorted(x: &[f32], count: usize) -> Vec<i32> {
        let mut out = vec![-1; x.len()];
        introsort(x, count, &mut out, &Interleaved).unwrap();
        out
    }

    #[test]
    fn rows_are_in_falling_order() {
        for (rows, count) in [(1, 1), (3, 7), (2, 17), (5, 100), (40, 1000)] {
            let mut x = crate::testing::numbers(rows * count, 3);
            for x in &mut x {
                *x = (*x * 6.0).round();
            }
            let found = sorted(&x, count);
            for (row, found) in x.chunks(count).zip(found.chunks(count)) {
                assert!(found.is_sorted_by(|&a, &b| row[a as usize] >= row[b as usize]));
                let mut all = found.to_vec();
                all.sort_unstable();
                assert!(all.into_iter().eq(0..count as i32));
            }
        }
    }

    /// The order that `std::sort` of g++ 12 gives.
    #[test]
    fn equal_elements_come_as_in_libstdcpp() {
        assert!(sorted(&[0.0; 16], 16).into_iter().eq(0..16));
        assert_eq!(sorted(&[0.0; 20], 20), EQUAL);
        let x: Vec<f32> = (0..40).map(|i| (i * 7 % 5) as f32).collect();
        assert_eq!(sorted(&x, 40), FEW);
        // Elements on which the quicksort gives up.
        assert_eq!(sorted(&KILLER.map(f32::from), KILLER.len()), KILLED);
    }

    #[test]
    fn nan_leaves_no_place_out() {
        for count in [3, 50, 300] {
            let mut x = crate::testing::numbers(count, 5);
            for x in x.iter_mut().step_by(3) {
                *x = f32::NAN;
            }
            let mut all = sorted(&x, count);
            all.sort_unstable();
            assert!(all.into_iter().eq(0..count as i32));
        }
        assert_eq!(sorted(&[f32::NAN; 40], 40).len(), 40);
    }

    #[test]
    fn what_is_refused() {
        let x = [0.0; 6];
        let mut out = [0; 6];
        let mut find = |count, len: usize| introsort(&x, count, &mut out[..len], &Serial);
        assert!(matches!(find(4, 6), Err(Error::Length { .. })));
        assert!(matches!(find(3, 5), Err(Error::Length { .. })));
        assert!(matches!(find(0, 6), Err(Error::Length { .. })));
        assert!(matches!(find(usize::MAX, 6), Err(Error::Value { .. })));
        assert!(introsort(&[], 0, &mut [], &Serial).is_ok());
    }
}
