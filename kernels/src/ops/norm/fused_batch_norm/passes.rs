//! The two passes over the elements: sums by channel, and values by the numbers of a channel.

// Indices keep several slices of one length in step.
#![allow(clippy::needless_range_loop)]

use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::parallel::Parallel;
use crate::ops::matrix::bias_add::Channels;
use crate::simd::blocks::for_each_pair;
use crate::simd::body::{Body, dispatch, dispatch_simd};
use crate::simd::stream::{self, AHEAD, BLOCK, Behind, Columns, Fence};
use crate::simd::{self, Simd, fetch_far};

/// Sums that run side by side.
const LANES: usize = 16;
/// Work per element of the sums in units of one addition.
const SUM_COST: usize = 2;
/// Rows whose elements stay in a cache while one channel after the other is summed.
const ROWS: usize = 64;
/// Most parts that the rows are cut into, whose sums are added at last, ...
const PARTS: usize = 16;
/// ... and elements that such a part has at least.
const PART: usize = 1 << 14;

/// The parts that the rows are cut into, whatever the threads.
pub(super) fn parts(sizes: &Channels) -> usize {
    if sizes.inner != 1 {
        return 1;
    }
    let least = PART.div_ceil(sizes.channels.max(1));
    let rows = sizes.outer.div_ceil(PARTS).max(least);
    sizes.outer.div_ceil(rows).max(1)
}

/// Sums over the elements of each channel: `terms` gives two numbers for the elements of the inputs
/// at a place and the center of their channel. The first elements of the lists are the two sums of
/// each channel; if channels are the last axis, the lists have as many elements for each of the
/// parts that the rows are cut into. The order depends on the sizes and on the number of parts.
pub(super) fn sum<F: Fn([f64; K], f64) -> [f64; 2] + Copy + Sync, const K: usize>(
    sizes: &Channels,
    (inputs, centers): ([&[f32]; K], &[f64]),
    [firsts, seconds]: [&mut [f64]; 2],
    parallel: &dyn Parallel,
    terms: F,
) {
    let channels = sizes.channels;
    if channels == 0 {
        return;
    }
    let parts = if sizes.inner == 1 {
        firsts.len() / channels
    } else {
        1
    };
    let rows = sizes.outer.div_ceil(parts);
    let cost = SUM_COST * rows.saturating_mul(sizes.inner);
    let (all, unit) = (
        parts * channels,
        if sizes.inner == 1 { channels } else { 1 },
    );
    let chunk = chunk_len(parallel, all, unit, cost);
    let lists = ((&mut firsts[..all], chunk), (&mut seconds[..all], chunk));
    for_each_pair(parallel, lists.0, lists.1, |index, firsts, seconds| {
        dispatch(Sums {
            sizes,
            first: index * chunk,
            rows,
            inputs,
            centers,
            terms,
            out: [firsts, seconds],
        });
    });
    for list in [firsts, seconds] {
        let (sums, parts) = list[..all].split_at_mut(channels);
        for part in parts.chunks_exact(channels) {
            for (sum, part) in sums.iter_mut().zip(part) {
                *sum += part;
            }
        }
    }
}

/// Some elements of the two lists of sums.
struct Sums<'a, F, const K: usize> {
    sizes: &'a Channels,
    /// The first of the elements.
    first: usize,
    /// Rows of a part.
    rows: usize,
    inputs: [&'a [f32]; K],
    centers: &'a [f64],
    terms: F,
    out: [&'a mut [f64]; 2],
}

impl<F: Fn([f64; K], f64) -> [f64; 2], const K: usize> Body for Sums<'_, F, K> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        if self.sizes.inner == 1 {
            self.channels_last();
        } else {
            self.channels_first();
        }
    }
}

impl<F: Fn([f64; K], f64) -> [f64; 2], const K: usize> Sums<'_, F, K> {
    /// The sums of all channels in some parts.
    #[inline(always)]
    fn channels_last(&mut self) {
        let channels = self.sizes.channels;
        let [firsts, seconds] = &mut self.out;
        let lists = firsts.chunks_exact_mut(channels);
        let lists = lists.zip(seconds.chunks_exact_mut(channels));
        for (part, (a, b)) in (self.first / channels..).zip(lists) {
            let [from, to] = [part, part + 1].map(|part| {
                let row = (part * self.rows).min(self.sizes.outer);
                row * channels
            });
            let inputs = self.inputs.map(|x| &x[from..to]);
            a.fill(0.0);
            b.fill(0.0);
            // Several rows count as one if they are short.
            let width = if channels < LANES {
                LANES.next_multiple_of(channels)
            } else {
                channels
            };
            let mut memory = [[0.0; 2 * LANES]; 3];
            if channels < LANES {
                let [centers, p, q] = &mut memory;
                for centers in centers[..width].chunks_exact_mut(channels) {
                    centers.copy_from_slice(&self.centers[..channels]);
                }
                let lists = [&mut p[..width], &mut q[..width]];
                let whole = rows(inputs, &centers[..width], lists, &self.terms);
                for (list, part) in [(&mut *a, p), (&mut *b, q)] {
                    for part in part[..width].chunks_exact(channels) {
                        for (sum, part) in list.iter_mut().zip(part) {
                            *sum += part;
                        }
                    }
                }
                for i in whole..to - from {
                    let channel = (i - whole) % channels;
                    let x = inputs.map(|x| f64::from(x[i]));
                    let terms = (self.terms)(x, self.centers[channel]);
                    a[channel] += terms[0];
                    b[channel] += terms[1];
                }
            } else {
                rows(inputs, &self.centers[..width], [a, b], &self.terms);
            }
        }
    }

    /// The sums of some channels.
    #[inline(always)]
    fn channels_first(&mut self) {
        let Channels {
            outer,
            channels,
            inner,
        } = *self.sizes;
        let [firsts, seconds] = &mut self.out;
        for (channel, (a, b)) in (self.first..).zip(firsts.iter_mut().zip(&mut **seconds)) {
            let center = self.centers[channel];
            let mut sums = [[0.0; LANES]; 2];
            for outer in 0..outer {
                let at = (outer * channels + channel) * inner;
                for from in (at..at + inner).step_by(LANES) {
                    let count = LANES.min(at + inner - from);
                    let inputs = self.inputs.map(|x| &x[from..from + count]);
                    if let Some(inputs) = whole(inputs) {
                        add(&inputs, &[center; LANES], &mut sums, &self.terms);
                        continue;
                    }
                    for i in 0..count {
                        let terms = (self.terms)(inputs.map(|x| f64::from(x[i])), center);
                        sums[0][i] += terms[0];
                        sums[1][i] += terms[1];
                    }
                }
            }
            [*a, *b] = sums.map(|sums| sums.iter().sum());
        }
    }
}

/// Adds the terms of rows of as many elements as there are centers, at least [`LANES`], to sums of
/// each column; returns how many elements these rows have.
#[inline(always)]
fn rows<F: Fn([f64; K], f64) -> [f64; 2], const K: usize>(
    inputs: [&[f32]; K],
    centers: &[f64],
    mut lists: [&mut [f64]; 2],
    terms: &F,
) -> usize {
    let width = centers.len();
    let all = inputs.iter().map(|x| x.len() / width * width).min();
    let all = all.unwrap_or(0);
    for from in (0..all).step_by(ROWS * width) {
        let to = all.min(from + ROWS * width);
        for block in (0..width).step_by(LANES) {
            // The last block has some columns of the one before.
            let first = block.min(width - LANES);
            let Some(centers) = centers[first..].first_chunk::<LANES>() else {
                break;
            };
            let mut sums = [[0.0; LANES]; 2];
            for (sums, list) in sums.iter_mut().zip(&lists) {
                sums.copy_from_slice(&list[first..first + LANES]);
            }
            for row in (from..to).step_by(width) {
                if let Some(x) = whole(inputs.map(|x| &x[row + first..][..LANES])) {
                    add(&x, centers, &mut sums, terms);
                }
            }
            for (sums, list) in sums.iter().zip(&mut lists) {
                list[block..first + LANES].copy_from_slice(&sums[block - first..]);
            }
        }
    }
    all
}

/// Adds the terms of some elements to sums of their own.
#[inline(always)]
fn add<F: Fn([f64; K], f64) -> [f64; 2], const K: usize>(
    x: &[&[f32; LANES]; K],
    centers: &[f64; LANES],
    sums: &mut [[f64; LANES]; 2],
    terms: &F,
) {
    for lane in 0..LANES {
        let terms = terms(x.map(|x| f64::from(x[lane])), centers[lane]);
        sums[0][lane] += terms[0];
        sums[1][lane] += terms[1];
    }
}

/// Slices of as many elements as there are lanes.
#[inline(always)]
fn whole<const K: usize>(from: [&[f32]; K]) -> Option<[&[f32; LANES]; K]> {
    let mut lanes = [&[0.0; LANES]; K];
    for (lanes, from) in lanes.iter_mut().zip(from) {
        *lanes = from.try_into().ok()?;
    }
    Some(lanes)
}

/// Elements that the lists of [`apply`] have beside those of the channels.
pub(super) const MORE: usize = BLOCK;

/// Computes every element of `out`: `value` gives that of the elements of the inputs at a place and
/// the numbers of their channel. The lists of numbers have [`MORE`] elements behind those of the
/// channels, which are overwritten.
pub(super) fn apply<F, const K: usize, const N: usize>(
    sizes: &Channels,
    (inputs, numbers): ([&[f32]; K], [&mut [f64]; N]),
    out: &mut [f32],
    parallel: &dyn Parallel,
    value: F,
) where
    F: Fn([f64; K], [f64; N]) -> f64 + Copy + Sync,
{
    let Channels {
        channels, inner, ..
    } = *sizes;
    if channels == 0 {
        return;
    }
    // From any channel on a whole block finds its numbers.
    let numbers = numbers.map(|list| {
        for i in channels..channels + MORE {
            list[i] = list[i - channels];
        }
        &*list
    });
    let unit = if inner == 1 { BLOCK } else { inner };
    let far = stream::is_far::<f32>(out.len());
    let chunk = chunk_len(parallel, out.len(), unit, 2);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        let elements = Elements {
            channels,
            start,
            inputs: inputs.map(|x| &x[start..start + out.len()]),
            numbers,
            value,
            far,
        };
        if inner == 1 {
            dispatch_simd(ChannelsLast { elements, out });
        } else {
            dispatch(ChannelsFirst {
                elements,
                inner,
                out,
            });
        }
    });
}

/// Some elements of the result.
struct Elements<'a, F, const K: usize, const N: usize> {
    channels: usize,
    /// The number of the first one.
    start: usize,
    inputs: [&'a [f32]; K],
    numbers: [&'a [f64]; N],
    value: F,
    /// Whether no cache holds them.
    far: bool,
}

impl<F: Fn([f64; K], [f64; N]) -> f64, const K: usize, const N: usize> Columns
    for Elements<'_, F, K, N>
{
    /// At most [`BLOCK`] elements, of channels that follow each other.
    #[inline(always)]
    fn write(&self, first: usize, out: &mut [f32]) {
        let channel = (self.start + first) % self.channels;
        let numbers = self.numbers.map(|list| &list[channel..][..out.len()]);
        let from = self.inputs.map(|x| &x[first..][..out.len()]);
        if self.far {
            from.iter().for_each(|x| fetch_far(x, AHEAD));
        }
        for i in 0..out.len() {
            let x = from.map(|x| f64::from(x[i]));
            out[i] = (self.value)(x, numbers.map(|list| list[i])) as f32;
        }
    }
}

/// Elements of which those side by side are of different channels.
struct ChannelsLast<'a, F, const K: usize, const N: usize> {
    elements: Elements<'a, F, K, N>,
    out: &'a mut [f32],
}

impl<F: Fn([f64; K], [f64; N]) -> f64, const K: usize, const N: usize> simd::Body
    for ChannelsLast<'_, F, K, N>
{
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { elements, out } = self;
        if let Some(fence) = Fence::new(s, elements.far) {
            return Behind::new(&fence, elements, out).rest();
        }
        let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
        let all = blocks.len() * BLOCK;
        for (i, block) in blocks.iter_mut().enumerate() {
            elements.write(i * BLOCK, block);
        }
        elements.write(all, rest);
    }
}

/// Whole rows of a channel.
struct ChannelsFirst<'a, F, const K: usize, const N: usize> {
    elements: Elements<'a, F, K, N>,
    /// Elements of a row.
    inner: usize,
    out: &'a mut [f32],
}

impl<F: Fn([f64; K], [f64; N]) -> f64, const K: usize, const N: usize> Body
    for ChannelsFirst<'_, F, K, N>
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self {
            elements,
            inner,
            out,
        } = self;
        let first = elements.start / inner;
        for (row, out) in out.chunks_mut(inner).enumerate() {
            let channel = (first + row) % elements.channels;
            let numbers = elements.numbers.map(|list| list[channel]);
            let from = elements.inputs.map(|x| &x[row * inner..][..out.len()]);
            for i in 0..out.len() {
                let x = from.map(|x| f64::from(x[i]));
                out[i] = (elements.value)(x, numbers) as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests;
