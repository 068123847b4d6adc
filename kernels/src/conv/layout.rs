//! Channels first to channels last and back.

use crate::blocks::for_each_chunk;
use crate::parallel::Parallel;

/// Side of the squares that are moved at a time.
const SIDE: usize = 16;

/// Writes `batch` matrices of `columns` x `rows` that are the transposes of those of `rows` x
/// `columns` in `from`. Both slices hold exactly `batch * rows * columns` elements.
pub(crate) fn transpose(
    (rows, columns): (usize, usize),
    from: &[f32],
    to: &mut [f32],
    parallel: &dyn Parallel,
) {
    let each = rows * columns;
    if each == 0 {
        return;
    }
    for_each_chunk(parallel, to, each, |start, to| {
        let from = &from[start..][..each];
        for row in (0..rows).step_by(SIDE) {
            for column in (0..columns).step_by(SIDE) {
                for j in column..columns.min(column + SIDE) {
                    let line = &mut to[j * rows..][..rows];
                    for (i, x) in line.iter_mut().enumerate().take(row + SIDE).skip(row) {
                        *x = from[i * columns + j];
                    }
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::Serial;

    #[test]
    fn transposes_every_matrix() {
        for (batch, rows, columns) in [(1, 1, 1), (2, 17, 5), (1, 16, 33), (3, 0, 2)] {
            let from: Vec<f32> = (0..batch * rows * columns).map(|x| x as f32).collect();
            let mut to = vec![0.0; from.len()];
            transpose((rows, columns), &from, &mut to, &Serial);
            for (i, &x) in from.iter().enumerate() {
                let (b, r, c) = (i / (rows * columns), i / columns % rows, i % columns);
                assert_eq!(to[(b * columns + c) * rows + r], x);
            }
        }
    }
}
