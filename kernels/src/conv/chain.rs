//! Convolutions in a row, band by band.
//!
//! Some lines of the last output are computed at a time, and of every image before it only the
//! lines that they see: those lie in scratch memory that stays in the second cache. Lines that two
//! bands see are moved, not computed again, but where another thread goes on.

use core::ops::Range;

use super::depthwise::Depthwise;
use super::filter::Filter;
use super::forward::Forward;
use super::geometry::{Conv, Window, check_len};
use crate::base::error::{Error, Result};
use crate::base::parallel::{Parallel, Serial};
use crate::base::scratch::take;
use crate::base::worth::Work;
use crate::simd::blocks::for_each_pair;

/// Convolutions of a chain, at most.
pub const MAX_LINKS: usize = 4;
/// Elements that the bands of one thread have: half of a small second cache.
const NEAR: usize = 1 << 17;
/// Threads that have bands of their own. More of them share each band.
const TASKS: usize = 8;
/// Lines of the last output in a band for which there is memory in any case.
const LEAST_LINES: usize = 2;
/// Elements of a cache line.
const LINE: usize = 16;

/// One convolution of a [`Chain`].
#[derive(Clone, Copy, Debug)]
pub enum Link<'a> {
    /// One with a packed filter that is not transformed, and that adds to nothing.
    Forward(Forward<'a>),
    /// One with filters for every channel, and these.
    Depthwise(Depthwise<'a>, &'a [f32]),
}

/// Convolutions each of which reads what the one before it gives. The results are those of the
/// convolutions one after the other: bit for bit where lines have more than one pixel.
#[derive(Clone, Copy, Debug)]
pub struct Chain<'c, 'a> {
    /// The convolutions, at most [`MAX_LINKS`].
    pub links: &'c [Link<'a>],
}

impl<'a> Link<'a> {
    fn conv(&self) -> &Conv {
        match self {
            Self::Forward(forward) => &forward.conv,
            Self::Depthwise(depthwise, _) => &depthwise.conv,
        }
    }

    /// The lines of the input that lines of the output see.
    fn sees(&self, lines: &Range<usize>) -> Range<usize> {
        let y = &self.conv().y;
        let end = (lines.end - 1) * y.stride + reach(y);
        (lines.start * y.stride).saturating_sub(y.before)..(end - y.before).min(y.input)
    }

    fn line(&self) -> usize {
        self.conv().x.output * self.conv().out_channels
    }

    /// Computes lines of one image's output from those of the input, of which `first` is the first.
    fn run(
        &self,
        (input, first): (&[f32], usize),
        lines: &Range<usize>,
        output: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let (seen, conv) = (self.sees(lines), self.conv());
        let line = conv.x.input * conv.in_channels;
        let input = &input[(seen.start - first) * line..(seen.end - first) * line];
        let y = Window {
            input: seen.len(),
            output: lines.len(),
            before: conv.y.before.saturating_sub(lines.start * conv.y.stride),
            ..conv.y
        };
        let conv = Conv {
            batch: 1,
            y,
            ..*conv
        };
        match *self {
            Self::Forward(forward) => {
                Forward { conv, ..forward }.run(input, output, &mut [], parallel)
            }
            Self::Depthwise(depthwise, filter) => {
                Depthwise { conv, ..depthwise }.run(input, filter, output, parallel)
            }
        }
    }

    fn check(&self) -> Result<()> {
        let conv = self.conv();
        conv.check()?;
        // Every line of the output must see the image, if only between two taps.
        let y = &conv.y;
        let last = y.output.saturating_sub(1).saturating_mul(y.stride);
        if y.before >= reach(y) || last >= y.before.saturating_add(y.input) {
            return Err(Error::Value {
                argument: "padding",
                expected: "fewer lines than the filter reaches over",
            });
        }
        let conv = Conv { batch: 0, ..*conv };
        match *self {
            Self::Forward(forward) => {
                let tiles = match forward.filter {
                    Filter::Packed(packed) => packed.tiles.is_some(),
                    #[cfg(not(without = "plain"))]
                    Filter::Plain(_) => true,
                };
                if tiles || forward.accumulate {
                    return Err(Error::Value {
                        argument: "filter",
                        expected: "a packed filter that is not transformed, and nothing to add to",
                    });
                }
                Forward { conv, ..forward }.run(&[], &mut [], &mut [], &Serial)
            }
            Self::Depthwise(depthwise, filter) => {
                Depthwise { conv, ..depthwise }.run(&[], filter, &mut [], &Serial)
            }
        }
    }
}

/// From the first tap of a window to the last.
fn reach(window: &Window) -> usize {
    let gaps = window.size.saturating_sub(1);
    gaps.saturating_mul(window.dilation).saturating_add(1)
}

impl Chain<'_, '_> {
    /// Elements of scratch memory that [`Chain::run`] needs, whatever the batch and the threads:
    /// for every image between two convolutions some lines, for two lines of the output and each
    /// of eight threads, and 1 MiB at least.
    ///
    /// # Errors
    /// As [`Chain::run`].
    pub fn scratch_len(&self) -> Result<usize> {
        self.check()?;
        self.room()
    }

    fn room(&self) -> Result<usize> {
        let each = self.band_len(LEAST_LINES);
        let each = each.and_then(|len| len.checked_next_multiple_of(LINE));
        let all = each.and_then(|len| len.checked_mul(TASKS));
        let all = all.ok_or(Error::Overflow {
            argument: "scratch",
        })?;
        Ok(all.max(2 * NEAR))
    }

    /// Computes the output of the last convolution; `input` and `output` are dense, channels last.
    ///
    /// # Errors
    /// [`Error::Length`] if a slice has not the length that the sizes say or the scratch is too
    /// short; [`Error::Value`] and [`Error::Overflow`] for convolutions that do not fit together.
    pub fn run(
        &self,
        input: &[f32],
        output: &mut [f32],
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        self.check()?;
        let [first, .., last] = self.links else {
            return Ok(());
        };
        let conv = last.conv();
        check_len("input", input.len(), first.conv().input_len())?;
        check_len("output", output.len(), conv.output_len())?;
        if output.is_empty() {
            return Ok(());
        }
        let room = self.room()?;
        let scratch = take(scratch, room)?;
        let flops = self.links.iter().map(|link| link.conv().flops());
        let work = Work::Product(flops.fold(0, usize::saturating_add), 0);
        let threads = work.threads(parallel).threads().max(1);
        let (tasks, near, within): (_, _, &dyn Parallel) = match threads <= TASKS {
            true => (threads, NEAR, &Serial),
            false => (1, room, parallel),
        };
        let each = room / tasks / LINE * LINE;
        let fits = |lines| {
            self.band_len(lines)
                .is_some_and(|len| len <= each.min(near))
        };
        let mut lines = 1;
        while lines < conv.y.output && fits(lines + 1) {
            lines += 1;
        }
        let band = Bands {
            links: self.links,
            input,
            lines,
        };
        let part = (conv.batch * conv.y.output).div_ceil(tasks);
        let parts = ((output, part * last.line()), (scratch, each));
        for_each_pair(parallel, parts.0, parts.1, |task, output, scratch| {
            band.part(task * part, output, scratch, within);
        });
        Ok(())
    }

    /// Elements of the bands between the convolutions for so many lines of the output.
    fn band_len(&self, lines: usize) -> Option<usize> {
        let mut len = 0_usize;
        each_band(self.links, lines, |_, elements| {
            len = len.saturating_add(elements);
        });
        (len < usize::MAX).then_some(len)
    }

    fn check(&self) -> Result<()> {
        if !(2..=MAX_LINKS).contains(&self.links.len()) {
            return Err(Error::Value {
                argument: "links",
                expected: "two to four convolutions",
            });
        }
        for link in self.links {
            link.check()?;
        }
        for pair in self.links.windows(2) {
            let (a, b) = (pair[0].conv(), pair[1].conv());
            let given = (a.batch, a.y.output, a.x.output, a.out_channels);
            if given != (b.batch, b.y.input, b.x.input, b.in_channels) {
                return Err(Error::Value {
                    argument: "links",
                    expected: "convolutions that read what the one before them gives",
                });
            }
        }
        Ok(())
    }
}

/// Calls `visit(i, elements)` for the band between convolutions `i` and `i + 1`, last to first, at
/// so many lines of the output.
fn each_band(links: &[Link<'_>], lines: usize, mut visit: impl FnMut(usize, usize)) {
    let mut lines = lines;
    for (i, pair) in links.windows(2).enumerate().rev() {
        let y = &pair[1].conv().y;
        let apart = lines.saturating_sub(1).saturating_mul(y.stride);
        lines = apart.saturating_add(reach(y)).min(y.input);
        visit(i, lines.saturating_mul(pair[0].line()));
    }
}

/// The computation of some lines at a time.
struct Bands<'c, 'a> {
    links: &'c [Link<'a>],
    input: &'c [f32],
    lines: usize,
}

impl Bands<'_, '_> {
    /// Computes the lines of the output from `first` on, those of all images counted.
    fn part(
        &self,
        mut first: usize,
        mut output: &mut [f32],
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) {
        let (count, input) = (self.links.len(), self.links[0].conv());
        let (height, line) = (
            self.links[count - 1].conv().y.output,
            self.links[count - 1].line(),
        );
        while !output.is_empty() {
            let (image, from) = (first / height, first % height);
            let lines = (height - from).min(output.len() / line);
            let (now, rest) = core::mem::take(&mut output).split_at_mut(lines * line);
            let each = input.input_len() / input.batch;
            let image = &self.input[image * each..][..each];
            self.image(image, from..from + lines, now, scratch, parallel);
            (output, first) = (rest, first + lines);
        }
    }

    /// Computes lines of one image's output.
    fn image(
        &self,
        input: &[f32],
        lines: Range<usize>,
        output: &mut [f32],
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) {
        let count = self.links.len();
        // Where the band after each convolution starts, and the lines that it holds.
        let mut starts = [0; MAX_LINKS];
        each_band(self.links, self.lines, |i, elements| {
            starts[i + 1] = elements
        });
        for i in 1..count {
            starts[i] += starts[i - 1];
        }
        let mut held = [const { 0..0 }; MAX_LINKS];
        for (from, output) in lines
            .clone()
            .step_by(self.lines)
            .zip(output.chunks_mut(self.lines * self.links[count - 1].line()))
        {
            let mut new = [const { 0..0 }; MAX_LINKS];
            new[count - 1] = from..(from + self.lines).min(lines.end);
            for i in (0..count - 1).rev() {
                if new[i + 1].is_empty() {
                    continue;
                }
                let seen = self.links[i + 1].sees(&new[i + 1]);
                let (held, line) = (&mut held[i], self.links[i].line());
                let kept = seen.start.max(held.start)..held.end;
                if !kept.is_empty() {
                    let at = starts[i] + (kept.start - held.start) * line;
                    scratch.copy_within(at..at + kept.len() * line, starts[i]);
                }
                new[i] = seen.start.max(held.end)..seen.end;
                *held = seen;
            }
            for (i, link) in self.links.iter().enumerate() {
                if new[i].is_empty() {
                    continue;
                }
                let (before, after) = scratch.split_at_mut(starts[i]);
                let input = match i {
                    0 => (input, 0),
                    _ => (&before[starts[i - 1]..], held[i - 1].start),
                };
                if i + 1 == count {
                    // A computation without examples has found nothing wrong.
                    let _ = link.run(input, &new[i], output, parallel);
                    continue;
                }
                let at = (new[i].start - held[i].start) * link.line();
                let after = &mut after[at..][..new[i].len() * link.line()];
                let _ = link.run(input, &new[i], after, parallel);
            }
        }
    }
}

#[cfg(test)]
mod tests;
