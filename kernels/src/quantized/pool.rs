//! Pools, and means over axes.

use super::pair::{Factor, Numbers};
use super::{Range, divided, expect};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::error::Result;
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::conv::Window;
use crate::simd::body::{Body, dispatch};

/// Channels whose sums are made together.
const LANES: usize = 32;

/// What a pool keeps of its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The largest.
    Max,
    /// The mean of those that are not padding, rounded to the nearest, ties away from zero.
    Average,
    /// The same with ties up, as of numbers that are not negative.
    AverageUp,
}

/// A pool of `[batch, y.input, x.input, channels]` to `[batch, y.output, x.output, channels]`.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    /// What it keeps.
    pub kind: Kind,
    /// Images.
    pub batch: usize,
    /// Channels.
    pub channels: usize,
    /// Vertical axis.
    pub y: Window,
    /// Horizontal axis.
    pub x: Window,
    /// The least of the results.
    pub low: i8,
    /// The most of the results.
    pub high: i8,
}

impl Pool {
    /// Computes the pool.
    ///
    /// # Errors
    /// [`crate::base::error::Error::Length`] if a slice does not fit the sizes,
    /// [`crate::base::error::Error::Overflow`].
    pub fn run(&self, x: &[i8], out: &mut [i8], parallel: &dyn Parallel) -> Result<()> {
        let input = Shape::new(&[self.batch, self.y.input, self.x.input, self.channels])?;
        let output = Shape::new(&[self.batch, self.y.output, self.x.output, self.channels])?;
        expect("input", x.len(), input.elements())?;
        expect("output", out.len(), output.elements())?;
        if out.is_empty() {
            return Ok(());
        }
        let line = self.x.output * self.channels;
        let chunk = chunk_len(parallel, out.len(), line, self.y.size * self.x.size);
        for_each_chunk(parallel, out, chunk, &|start, out| {
            dispatch(Lines {
                of: self,
                x,
                first: start / line,
                out,
            });
        });
        Ok(())
    }

    #[inline(always)]
    fn pixel(&self, image: &[i8], (line, column): (usize, usize), out: &mut [i8]) {
        let (channels, width) = (self.channels, self.x.input);
        let (taps_y, first_y) = self.y.taps(line);
        let (taps_x, first_x) = self.x.taps(column);
        let (step_y, step_x) = (self.y.dilation, self.x.dilation);
        let count = (taps_y.len() * taps_x.len()).max(1);
        for (from, out) in out.chunks_mut(LANES).enumerate() {
            let from = from * LANES;
            let empty = if self.kind == Kind::Max {
                i32::from(i8::MIN)
            } else {
                0
            };
            let mut found = [empty; LANES];
            for i in 0..taps_y.len() {
                let row = (first_y + i * step_y) * width;
                for j in 0..taps_x.len() {
                    let at = (row + first_x + j * step_x) * channels + from;
                    let x = &image[at..at + out.len()];
                    match self.kind {
                        Kind::Max => found
                            .iter_mut()
                            .zip(x)
                            .for_each(|(most, &x)| *most = (*most).max(i32::from(x))),
                        Kind::Average | Kind::AverageUp => found
                            .iter_mut()
                            .zip(x)
                            .for_each(|(sum, &x)| *sum = sum.wrapping_add(i32::from(x))),
                    }
                }
            }
            let (low, high) = (i32::from(self.low), i32::from(self.high));
            for (out, x) in out.iter_mut().zip(found) {
                let x = match self.kind {
                    Kind::Max => x,
                    Kind::Average => divided(x, count as i32),
                    Kind::AverageUp => (x + count as i32 / 2).div_euclid(count as i32),
                };
                *out = x.max(low).min(high) as i8;
            }
        }
    }
}

struct Lines<'a> {
    of: &'a Pool,
    x: &'a [i8],
    first: usize,
    out: &'a mut [i8],
}

impl Body for Lines<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let pool = self.of;
        let image = pool.y.input * pool.x.input * pool.channels;
        let line = pool.x.output * pool.channels;
        for (i, out) in self.out.chunks_mut(line).enumerate() {
            let number = self.first + i;
            let (batch, y) = (number / pool.y.output, number % pool.y.output);
            let x = &self.x[batch * image..][..image];
            for (column, out) in out.chunks_mut(pool.channels).enumerate() {
                pool.pixel(x, (y, column), out);
            }
        }
    }
}

/// Means of `[outer, count, inner]` over the middle axis: `factor` times the sum of what stands for
/// real numbers, so that it has the count, too.
///
/// # Errors
/// [`crate::base::error::Error::Length`] if a slice does not fit the sizes,
/// [`crate::base::error::Error::Value`] for a shift that is too large.
pub fn mean(
    x: Numbers<'_>,
    (count, inner): (usize, usize),
    (factor, range): (Factor, Range),
    out: &mut [i8],
    parallel: &dyn Parallel,
) -> Result<()> {
    let Numbers { values: x, zero } = x;
    let factor = factor.check()?;
    let outer = out.len().checked_div(inner).unwrap_or(0);
    expect("output", out.len(), outer * inner)?;
    let shape = Shape::new(&[outer, count, inner])?;
    expect("input", x.len(), shape.elements())?;
    if out.is_empty() {
        return Ok(());
    }
    let chunk = chunk_len(parallel, out.len(), inner, count);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        dispatch(Means {
            x: &x[start * count..],
            count,
            inner,
            bias: (count as i32).wrapping_mul(-i32::from(zero)),
            factor,
            range,
            out,
        });
    });
    Ok(())
}

struct Means<'a> {
    x: &'a [i8],
    count: usize,
    inner: usize,
    bias: i32,
    factor: Factor,
    range: Range,
    out: &'a mut [i8],
}

impl Body for Means<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let rows = self.out.chunks_mut(self.inner);
        let parts = self.x.chunks(self.count.max(1) * self.inner);
        for (out, x) in rows.zip(parts) {
            for (from, out) in out.chunks_mut(LANES).enumerate() {
                let from = from * LANES;
                let mut sums = [self.bias; LANES];
                for row in x.chunks(self.inner).take(self.count) {
                    let row = &row[from..from + out.len()];
                    for (sum, &x) in sums.iter_mut().zip(row) {
                        *sum = sum.wrapping_add(i32::from(x));
                    }
                }
                for (out, sum) in out.iter_mut().zip(sums) {
                    *out = self.range.hold(self.factor.of(sum));
                }
            }
        }
    }
}
