//! Channels first to channels last and back.

use super::attributes::Format;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::simd::blocks::for_each_chunk;

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

/// Scratch memory from which images with channels last are cut where a tensor has them first.
pub(crate) struct Room<'a> {
    format: Format,
    scratch: &'a mut [f32],
    parallel: &'a dyn Parallel,
}

impl<'a> Room<'a> {
    pub fn new(format: Format, scratch: &'a mut [f32], parallel: &'a dyn Parallel) -> Self {
        Self {
            format,
            scratch,
            parallel,
        }
    }

    /// So many elements of the scratch memory.
    fn take(&mut self, expected: usize) -> Result<&'a mut [f32]> {
        let scratch = core::mem::take(&mut self.scratch);
        let found = scratch.len();
        let (taken, rest) = scratch
            .split_at_mut_checked(expected)
            .ok_or(Error::Length {
                argument: "scratch",
                found,
                expected,
            })?;
        self.scratch = rest;
        Ok(taken)
    }

    /// What is left of the scratch memory.
    pub fn rest(self) -> &'a mut [f32] {
        self.scratch
    }

    /// An input with channels last.
    pub fn channels_last(
        &mut self,
        image: &'a [f32],
        pixels: usize,
        channels: usize,
    ) -> Result<&'a [f32]> {
        if self.format == Format::Nhwc {
            return Ok(image);
        }
        let to = self.take(image.len())?;
        transpose((channels, pixels), image, to, self.parallel);
        Ok(to)
    }

    /// Calls `compute` with the output with channels last and what is left of the scratch memory,
    /// then brings the output into its order.
    pub fn output(
        mut self,
        image: &mut [f32],
        pixels: usize,
        channels: usize,
        compute: impl FnOnce(&mut [f32], &mut [f32]) -> Result<()>,
    ) -> Result<()> {
        if self.format == Format::Nhwc {
            return compute(image, self.scratch);
        }
        let from = self.take(image.len())?;
        compute(from, self.scratch)?;
        transpose((pixels, channels), from, image, self.parallel);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parallel::Serial;

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
