//! Tiles of the filters that most models have: their taps are constants, so that an element of the
//! input is loaded once for all taps of a line that see it.

use core::ops::Range;

use super::{Lines, MAX_LINES, See};
use crate::simd::Simd;
use crate::simd::grid::{Grid, Seen, add_taps, store_line};

/// Elements of input and filter that a tile may see while it goes down an image: they stay in the
/// first cache.
const NEAR: usize = 10 * 1024;

/// Runs a method of [`Lines`] with the stops (`$stops`), the horizontal taps and stride, and the
/// inputs that a tile sees in a line as constants.
macro_rules! with_constants {
    ($self:ident.$method:ident::<$simd:ident>($($argument:expr),*), $stops:expr, $taps:expr) => {
        if const { $simd::REGISTERS >= 32 } && $stops == 7 {
            match $taps {
                (3, 1) => $self.$method::<$simd, 7, 3, 1, 9>($($argument),*),
                (5, 1) => $self.$method::<$simd, 7, 5, 1, 11>($($argument),*),
                (7, 1) => $self.$method::<$simd, 7, 7, 1, 13>($($argument),*),
                (3, 2) => $self.$method::<$simd, 7, 3, 2, 15>($($argument),*),
                (5, 2) => $self.$method::<$simd, 7, 5, 2, 17>($($argument),*),
                _ => {}
            }
        } else {
            match $taps {
                (3, 1) => $self.$method::<$simd, 4, 3, 1, 6>($($argument),*),
                (5, 1) => $self.$method::<$simd, 4, 5, 1, 8>($($argument),*),
                (7, 1) => $self.$method::<$simd, 4, 7, 1, 10>($($argument),*),
                (3, 2) => $self.$method::<$simd, 4, 3, 2, 9>($($argument),*),
                (5, 2) => $self.$method::<$simd, 4, 5, 2, 11>($($argument),*),
                _ => {}
            }
        }
    };
}

/// Whether there are tiles for so many taps and such a stride.
fn has_tiles(taps: (usize, usize)) -> bool {
    matches!(taps, (3 | 5 | 7, 1) | (3 | 5, 2))
}

/// Where a tile is: a line, some channels, and a stop.
struct Place<'a> {
    see: &'a See,
    stop: usize,
    channels: Range<usize>,
}

impl Lines<'_, '_> {
    /// Computes all lines, if there are tiles for the filter.
    #[inline(always)]
    pub(super) fn constant_taps<S: Simd>(&mut self, s: S) -> bool {
        let conv = &self.of.conv;
        let (channels, x) = (conv.out_channels, conv.x);
        let taps = (x.size, x.stride);
        if const { S::REGISTERS < 16 } {
            return false;
        }
        if channels < S::LANES || x.dilation > 1 || !has_tiles(taps) {
            return false;
        }
        let mut see = [const { None }; MAX_LINES];
        let lines = self.output.len() / (x.output * channels);
        for (i, see) in see.iter_mut().enumerate().take(lines) {
            *see = Some(self.see(i));
        }
        let widest = if const { S::REGISTERS >= 32 } { 7 } else { 4 };
        let most = NEAR / (conv.y.size * (2 * x.size + (widest - 1) * x.stride));
        let vectors = channels.div_ceil(S::LANES);
        let blocks = (vectors * S::LANES).div_ceil(most.max(S::LANES));
        let block = vectors.div_ceil(blocks) * S::LANES;
        for first in (0..channels).step_by(block) {
            let mut stop = 0;
            while stop < x.output {
                let left = x.output - stop;
                let stops = if left > 4 && left != 8 { widest } else { 4 };
                for see in see.iter().flatten() {
                    let place = Place {
                        see,
                        stop,
                        channels: first..(first + block).min(channels),
                    };
                    with_constants!(self.constant_tile::<S>(s, &place), stops, taps);
                }
                stop += stops;
            }
        }
        true
    }

    /// `STOPS` stops of a line, as far as they are there.
    #[inline(always)]
    fn constant_tile<
        S: Simd,
        const STOPS: usize,
        const TAPS: usize,
        const STRIDE: usize,
        const SEEN: usize,
    >(
        &mut self,
        s: S,
        place: &Place<'_>,
    ) {
        let of = self.of;
        let (channels, y, x) = (of.conv.out_channels, &of.conv.y, &of.conv.x);
        let (see, stop) = (place.see, place.stop);
        let clamp = of.activation.clamp();
        let missing = x.before.saturating_sub(stop * STRIDE);
        let first = (stop * STRIDE).saturating_sub(x.before);
        let mut seen = Seen {
            data: self.input,
            lines: see.taps.len(),
            grid: Grid {
                first: 0,
                line: y.dilation * x.input * channels,
                step: channels,
            },
            inside: (missing, missing + x.input.saturating_sub(first)),
        };
        let mut weights = Grid {
            first: 0,
            line: TAPS * channels,
            step: channels,
        };
        let mut to = weights;
        // The last vector repeats some channels unless they fill all vectors.
        let mut channel = place.channels.start.min(channels - S::LANES);
        loop {
            seen.grid.first = (see.first * x.input + first) * channels + channel;
            weights.first = see.taps.start * TAPS * channels + channel;
            to.first = (see.index * x.output + stop) * channels + channel;
            let mut sums = [s.zero(); STOPS];
            if let Some(bias) = of.bias {
                sums = [s.load(&bias[channel..]); STOPS];
            }
            let taps = (self.filter, &weights);
            sums = add_taps::<S, STOPS, TAPS, STRIDE, SEEN>(s, sums, &seen, taps);
            if let Some((low, high)) = clamp {
                let (low, high) = (s.splat(low), s.splat(high));
                for sum in &mut sums {
                    *sum = s.min(high, s.max(low, *sum));
                }
            }
            store_line(s, &sums, x.output - stop, (&mut *self.output, &to));
            channel += S::LANES;
            if channel >= place.channels.end {
                return;
            }
            channel = channel.min(channels - S::LANES);
        }
    }
}
