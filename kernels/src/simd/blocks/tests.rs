use super::*;
use crate::base::parallel::Serial;

/// Breaks the contract: runs every task twice.
pub(super) struct Twice;

impl Parallel for Twice {
    fn threads(&self) -> usize {
        2
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..2 * tasks).for_each(|i| task(i % tasks));
    }
}

#[test]
#[should_panic(expected = "row outside the block")]
fn rows_past_the_largest_number_do_not_follow() {
    let mut matrix = [0.0f32; 4];
    Block::new(&mut matrix, 2, 2, 2).apply(&[usize::MAX, 0], 0..2, |piece| piece.fill(1.0));
}

#[test]
fn blocks_cover_the_matrix_once() {
    let cuts = [
        (3, 4, 0),
        (3, 4, 1),
        (3, 3, 2),
        (9, 20, 0),
        (1, 1, 0),
        (0, 0, 30),
    ];
    for (rows, columns, rest) in cuts {
        let parallel: &dyn Parallel = if rest == 0 { &Serial } else { &Twice };
        let cut = Cut {
            rows,
            columns,
            rest,
        };
        let mut matrix = vec![0_u32; 7 * 10];
        for_each_block(parallel, &mut matrix, 10, (7, 9), cut, |mut block| {
            assert_eq!(block.shared, rows < 7);
            for i in 0..block.rows {
                let value = ((block.row + i) * 10 + block.column) as u32;
                for (j, x) in block.row(i).iter_mut().enumerate() {
                    *x += value + j as u32;
                }
            }
        });
        for (i, &x) in matrix.iter().enumerate() {
            assert_eq!(x, if i % 10 == 9 { 0 } else { i as u32 });
        }
    }
}

#[test]
fn chunks_cover_the_slice_once() {
    for length in [0, 1, 5, 6] {
        let mut slice = vec![0; length];
        for_each_chunk(&Serial, &mut slice, 3, |start, chunk| {
            for (i, x) in chunk.iter_mut().enumerate() {
                *x += start + i + 1;
            }
        });
        assert!(slice.iter().enumerate().all(|(i, &x)| x == i + 1));
    }
}

#[test]
fn pairs_of_chunks_meet_once() {
    for parallel in [&Serial as &dyn Parallel, &Twice] {
        let (mut a, mut b) = ([0_usize; 10], [0_usize; 7]);
        for_each_pair(parallel, (&mut a, 3), (&mut b, 2), |index, a, b| {
            a.iter_mut().chain(b).for_each(|x| *x += index + 1);
        });
        assert_eq!(a, [1, 1, 1, 2, 2, 2, 3, 3, 3, 4]);
        assert_eq!(b, [1, 1, 2, 2, 3, 3, 4]);
        for_each_pair(parallel, (&mut a, 5), (&mut b[..0], 2), |_, _, _| panic!());
    }
}

#[test]
fn a_function_meets_the_named_places_once() {
    for (columns, whole) in [(0..4, 4), (1..3, 4), (0..4, 6)] {
        let mut matrix = vec![1.0_f32; 5 * whole];
        let mut block = Block::new(&mut matrix, whole, 5, 4);
        block.apply(&[1, 2, 3], columns.clone(), |x| {
            x.iter_mut().for_each(|x| *x += 1.0);
        });
        block.apply(&[0, 4], columns.clone(), |x| {
            x.iter_mut().for_each(|x| *x += 2.0);
        });
        for (i, &x) in matrix.iter().enumerate() {
            let (row, column) = (i / whole, i % whole);
            let more = if row % 4 == 0 { 2.0 } else { 1.0 };
            let more = if columns.contains(&column) { more } else { 0.0 };
            assert_eq!(x, 1.0 + more);
        }
    }
}

#[test]
fn columns_part_and_rows_are_copied() {
    let mut matrix: Vec<usize> = (0..12).collect();
    let (mut left, mut right) = Block::new(&mut matrix, 4, 3, 4).split_columns(1);
    assert_eq!((left.columns, right.columns, right.column), (1, 3, 1));
    left.copy_row(2, 0);
    right.copy_row(0, 1);
    right.copy_row(2, 2);
    assert_eq!(right.row(1), [1, 2, 3]);
    assert_eq!(matrix, [8, 1, 2, 3, 4, 1, 2, 3, 8, 9, 10, 11]);
}

#[test]
#[should_panic(expected = "too short")]
fn a_short_matrix_panics() {
    let cut = Cut {
        rows: 1,
        columns: 1,
        rest: 0,
    };
    for_each_block(&Serial, &mut [0; 5], 3, (2, 3), cut, |_| {});
}
