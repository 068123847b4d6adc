//! Taps that lie outside of the image: where a filter reaches far, most positions see few of them.
//!
//! Positions are visited by parts of a line that see the same columns of taps, so that a tile whose
//! tap lies outside for one of its rows mostly has it outside for all, and leaves it out. What lies
//! outside counts as 0, and an infinite weight times 0 is NaN: that is so only for finite filters.

use core::ops::Range;

use crate::gemm::block::B;
use crate::gemm::source::{Axis, Source};
use crate::simd::body::{Body, dispatch};

/// Elements of a tap from which on it is multiplied by itself.
const DEPTH: usize = 128;
/// Of so many taps at least one has to lie outside, over all positions.
const TAPS: usize = 10;
/// Taps of a line, at most.
const WIDTH: usize = 3;

/// The parts of a line that see the same taps.
pub(super) struct Parts {
    cuts: [usize; 2 * WIDTH + 2],
    count: usize,
    leaves_out: bool,
}

impl Parts {
    /// The parts that save time, if any do, else one.
    pub fn new(source: &Source<'_>, b: &B<'_>) -> Self {
        let mut parts = Self {
            cuts: [0; 2 * WIDTH + 2],
            count: 0,
            leaves_out: false,
        };
        let (y, x) = (&source.y, &source.x);
        let data = match *b {
            B::Packed { data, .. } => data,
            #[cfg(not(without = "plain"))]
            B::Rows { .. } => return parts,
        };
        let taps = y.taps.count.saturating_mul(x.taps.count);
        let all = taps.saturating_mul(y.out.saturating_mul(x.out));
        let inside =
            |axis: &Axis| -> usize { (0..axis.taps.count).map(|i| seen(axis, i).len()).sum() };
        let pays = source.depth >= DEPTH
            && (2..=WIDTH).contains(&x.taps.count)
            && source.taps_follow()
            && [y, x].iter().all(|axis| axis.step == 1)
            && inside(y).saturating_mul(inside(x)) <= all - all / TAPS;
        if !pays || !dispatch(Finite(data)) {
            return parts;
        }
        let cuts = (0..x.taps.count).flat_map(|tap| {
            let seen = seen(x, tap);
            [seen.start, seen.end]
        });
        for cut in cuts.chain([0, x.out]) {
            parts.cuts[parts.count] = cut;
            parts.count += 1;
        }
        parts.cuts[..parts.count].sort_unstable();
        parts.leaves_out = true;
        parts
    }

    /// The walks over the positions of these parts.
    pub fn of<'a>(&self, source: &Source<'a>) -> impl Iterator<Item = Source<'a>> {
        let whole = (!self.leaves_out).then_some(*source);
        let parts = self.cuts[..self.count].windows(2);
        let parts = parts.filter(|cuts| cuts[0] < cuts[1]).map(|cuts| {
            let mut part = *source;
            part.leaves_out = true;
            (part.x.phase, part.x.end) = (cuts[0], cuts[1]);
            part.x.taps.offset += (cuts[0] * part.x.stride).cast_signed();
            part
        });
        whole.into_iter().chain(parts)
    }
}

/// The positions of an axis, each of which is visited, at which a tap lies inside the image.
fn seen(axis: &Axis, tap: usize) -> Range<usize> {
    let offset = axis.taps.offset + tap.cast_signed() * axis.taps.offset_step;
    let after = |place: isize| {
        let distance = (place - offset).max(0).cast_unsigned();
        distance.div_ceil(axis.stride).min(axis.out)
    };
    after(0)..after(axis.size.cast_signed())
}

/// Whether all of some numbers are finite.
struct Finite<'a>(&'a [f32]);

impl Body for Finite<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        const EXPONENT: u32 = 0x7f80_0000;
        self.0.chunks(4096).all(|part| {
            let of = |x: &f32| u32::from(x.to_bits() & EXPONENT == EXPONENT);
            part.iter().map(of).fold(0, |all, x| all | x) == 0
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::conv::{BackwardInput, Conv, Filter, Forward, Padding, Window};
    use crate::gemm::Activation;
    use crate::simd::available;
    use crate::testing::{Interleaved, numbers};

    /// Sizes of which many taps lie outside.
    fn sizes() -> Vec<Conv> {
        let mut all = Vec::new();
        for (height, width, dilation, stride) in
            [(9, 17, 6, 1), (5, 21, 9, 1), (13, 8, 5, 2), (3, 3, 4, 1)]
        {
            for padding in [Padding::Same, Padding::causal(3, dilation)] {
                for (rows, columns) in [(3, 3), (1, 2), (2, 3)] {
                    let window = |size, taps| Window::new(size, taps, stride, dilation, padding);
                    let (y, x) = (
                        window(height, rows).unwrap(),
                        window(width, columns).unwrap(),
                    );
                    all.push(Conv {
                        batch: 2,
                        y,
                        x,
                        in_channels: 130,
                        out_channels: 129,
                        groups: 1,
                    });
                }
            }
        }
        all
    }

    /// Calls `add` with the places of input and output and the tap of each product.
    fn each_product(conv: &Conv, mut add: impl FnMut(usize, usize, usize)) {
        let (y, x) = (&conv.y, &conv.x);
        for output in 0..conv.batch * y.output * x.output {
            let (line, column) = (output / x.output, output % x.output);
            let (image, line) = (line / y.output, line % y.output);
            for tap in 0..y.size * x.size {
                let at = |w: &Window, stop: usize, tap: usize| {
                    (stop * w.stride + tap * w.dilation)
                        .checked_sub(w.before)
                        .filter(|&at| at < w.input)
                };
                let places = at(y, line, tap / x.size).zip(at(x, column, tap % x.size));
                if let Some((line, column)) = places {
                    add((image * y.input + line) * x.input + column, output, tap);
                }
            }
        }
    }

    fn check(found: &[f32], expected: &[f64]) {
        for (&found, &expected) in found.iter().zip(expected) {
            assert!(
                (f64::from(found) - expected).abs() < 1e-4,
                "{found} {expected}"
            );
        }
    }

    #[test]
    fn forward_matches_its_definition() {
        for conv in sizes() {
            let (x, w) = (numbers(conv.input_len(), 1), numbers(conv.filter_len(), 2));
            let bias = numbers(conv.out_channels, 3);
            let (depth, columns) = (conv.in_channels, conv.out_channels);
            let mut sums = vec![0.0; conv.output_len()];
            each_product(&conv, |input, output, tap| {
                let sums = &mut sums[output * columns..][..columns];
                for (channel, x) in x[input * depth..][..depth].iter().enumerate() {
                    let weights = &w[(tap * depth + channel) * columns..][..columns];
                    for (sum, &w) in sums.iter_mut().zip(weights) {
                        *sum += f64::from(*x) * f64::from(w);
                    }
                }
            });
            for (level, with) in available().flat_map(|level| [(level, false), (level, true)]) {
                let mut expected = sums.clone();
                let mut forward = Forward::new(conv, Filter::Plain(&w));
                forward.level = level;
                forward.accumulate = with;
                if with {
                    (forward.bias, forward.activation) = (Some(&bias[..]), Activation::RELU);
                    for (i, sum) in expected.iter_mut().enumerate() {
                        *sum = (*sum + f64::from(bias[i % columns]) + 2.0).max(0.0);
                    }
                }
                let mut scratch = vec![f32::NAN; forward.scratch_len().unwrap()];
                let mut found = vec![if with { 2.0 } else { f32::NAN }; sums.len()];
                forward
                    .run(&x, &mut found, &mut scratch, &Interleaved)
                    .unwrap();
                check(&found, &expected);
            }
        }
    }

    #[test]
    fn backward_matches_its_definition() {
        for conv in sizes() {
            let (g, w) = (numbers(conv.output_len(), 1), numbers(conv.filter_len(), 2));
            let (depth, columns) = (conv.in_channels, conv.out_channels);
            let mut sums = vec![0.0; conv.input_len()];
            each_product(&conv, |input, output, tap| {
                let sums = &mut sums[input * depth..][..depth];
                let gradients = &g[output * columns..][..columns];
                for (channel, sum) in sums.iter_mut().enumerate() {
                    let weights = &w[(tap * depth + channel) * columns..][..columns];
                    for (&g, &w) in gradients.iter().zip(weights) {
                        *sum += f64::from(g) * f64::from(w);
                    }
                }
            });
            for level in available() {
                let mut backward = BackwardInput::new(conv, Filter::Plain(&w));
                backward.level = level;
                let mut scratch = vec![f32::NAN; backward.scratch_len().unwrap()];
                let mut found = vec![f32::NAN; sums.len()];
                backward
                    .run(&g, &mut found, &mut scratch, &Interleaved)
                    .unwrap();
                check(&found, &sums);
            }
        }
    }

    /// What lies outside counts as 0 for an infinite weight, too.
    #[test]
    fn an_infinite_weight_meets_zeros() {
        let conv = sizes()[0];
        let x = vec![1.0; conv.input_len()];
        let mut w = numbers(conv.filter_len(), 2);
        w[0] = f32::INFINITY;
        let forward = Forward::new(conv, Filter::Plain(&w));
        let mut scratch = vec![0.0; forward.scratch_len().unwrap()];
        let mut found = vec![0.0; conv.output_len()];
        forward
            .run(&x, &mut found, &mut scratch, &Interleaved)
            .unwrap();
        assert!(found[0].is_nan());
        let last = found.len() - conv.out_channels;
        assert_eq!(found[last], f32::INFINITY);
    }
}
