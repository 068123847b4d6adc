//! Sizes of a convolution or pooling: windows, padding, outputs.

use crate::base::error::{Error, Result};
use crate::base::worth::Work;

/// How an axis is padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// Not at all.
    Valid,
    /// So that there are `ceil(input / stride)` outputs, an odd element at the end.
    Same,
    /// By so many elements before and after.
    Explicit(usize, usize),
}

impl Padding {
    /// Only before, so that no output sees a later input.
    #[must_use]
    pub const fn causal(size: usize, dilation: usize) -> Self {
        Self::Explicit(size.saturating_sub(1).saturating_mul(dilation), 0)
    }
}

/// One axis: a window of `size` taps that slides over `input` elements and stops `output` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Elements of the input.
    pub input: usize,
    /// Elements of the output.
    pub output: usize,
    /// Taps.
    pub size: usize,
    /// Elements from one stop to the next.
    pub stride: usize,
    /// Elements from one tap to the next.
    pub dilation: usize,
    /// Elements of padding before the first.
    pub before: usize,
}

impl Window {
    /// The axis with this many inputs and taps.
    ///
    /// # Errors
    /// [`Error::Value`] if stride or dilation is 0, there is no tap, or the padded input is so
    /// short that the output would be negative; [`Error::Overflow`].
    pub fn new(
        input: usize,
        size: usize,
        stride: usize,
        dilation: usize,
        padding: Padding,
    ) -> Result<Self> {
        let value = |argument, expected| Err(Error::Value { argument, expected });
        if stride == 0 {
            return value("strides", "positive strides");
        }
        if dilation == 0 {
            return value("dilations", "positive dilations");
        }
        if size == 0 {
            return value("filter", "at least one tap per axis");
        }
        let overflow = Error::Overflow { argument: "window" };
        let signed = |x: usize| {
            i64::try_from(x)
                .ok()
                .filter(|&x| x < 1 << 48)
                .ok_or(overflow)
        };
        let reach = (size - 1)
            .checked_mul(dilation)
            .and_then(|x| x.checked_add(1))
            .ok_or(overflow)?;
        let (before, output) = match padding {
            Padding::Same => {
                let output = input.div_ceil(stride);
                let covered = signed(output.saturating_sub(1))? * signed(stride)? + signed(reach)?;
                let missing = (covered - signed(input)?).max(0);
                (missing as usize / 2, output)
            }
            Padding::Valid | Padding::Explicit(..) => {
                let (before, after) = match padding {
                    Padding::Explicit(before, after) => (before, after),
                    _ => (0, 0),
                };
                let padded = signed(input)? + signed(before)? + signed(after)?;
                let output = (padded - signed(reach)? + signed(stride)?) / signed(stride)?;
                match usize::try_from(output) {
                    Ok(output) => (before, output),
                    Err(_) => return value("input", "an image that the filter fits into"),
                }
            }
        };
        Ok(Self {
            input,
            output,
            size,
            stride,
            dilation,
            before,
        })
    }

    /// An axis of one element and one tap.
    pub const UNIT: Self = Self {
        input: 1,
        output: 1,
        size: 1,
        stride: 1,
        dilation: 1,
        before: 0,
    };

    /// The taps that fall on the input at stop `output`, and the input of the first of them.
    #[inline(always)]
    #[must_use]
    pub fn taps(&self, output: usize) -> (core::ops::Range<usize>, usize) {
        let start = output * self.stride;
        let first = self
            .before
            .saturating_sub(start)
            .div_ceil(self.dilation)
            .min(self.size);
        let end = (self.input + self.before)
            .saturating_sub(start)
            .div_ceil(self.dilation)
            .min(self.size)
            .max(first);
        let at = (start + first * self.dilation).saturating_sub(self.before);
        (first..end, at)
    }

    /// The stops at which tap `tap` falls on the input.
    #[inline(always)]
    #[must_use]
    pub fn stops(&self, tap: usize) -> core::ops::Range<usize> {
        let offset = tap * self.dilation;
        let first = self.before.saturating_sub(offset).div_ceil(self.stride);
        let end = (self.input + self.before)
            .saturating_sub(offset)
            .div_ceil(self.stride)
            .min(self.output);
        first.min(end)..end
    }

    /// The stops at which all taps fall on the input.
    #[inline(always)]
    #[must_use]
    pub fn inner(&self) -> core::ops::Range<usize> {
        let first = self.stops(0).start;
        let end = self.stops(self.size - 1).end;
        first.min(end)..end
    }
}

/// The sizes of a convolution: input `[batch, y.input, x.input, in_channels]`, filter
/// `[y.size, x.size, in_channels / groups, out_channels]`, output
/// `[batch, y.output, x.output, out_channels]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conv {
    /// Images.
    pub batch: usize,
    /// Vertical axis.
    pub y: Window,
    /// Horizontal axis.
    pub x: Window,
    /// Channels of the input.
    pub in_channels: usize,
    /// Channels of the output.
    pub out_channels: usize,
    /// Groups that do not see each other's channels.
    pub groups: usize,
}

impl Conv {
    /// Checks that the groups divide the channels and that all sizes can be counted.
    ///
    /// # Errors
    /// [`Error::Value`], [`Error::Overflow`].
    pub fn check(&self) -> Result<()> {
        if self.groups == 0
            || !self.in_channels.is_multiple_of(self.groups)
            || !self.out_channels.is_multiple_of(self.groups)
        {
            return Err(Error::Value {
                argument: "groups",
                expected: "a divisor of the input and the output channels",
            });
        }
        let (y, x) = (&self.y, &self.x);
        counted([self.batch, y.input, x.input, self.in_channels, 4])?;
        counted([self.batch, y.output, x.output, self.out_channels, 4])?;
        counted([y.size, x.size, self.group_in(), self.out_channels, 64])
    }

    /// Elements of the input.
    #[must_use]
    pub fn input_len(&self) -> usize {
        self.batch * self.y.input * self.x.input * self.in_channels
    }

    /// Elements of the output.
    #[must_use]
    pub fn output_len(&self) -> usize {
        self.batch * self.y.output * self.x.output * self.out_channels
    }

    /// Elements of the filter.
    #[must_use]
    pub fn filter_len(&self) -> usize {
        self.y.size * self.x.size * self.group_in() * self.out_channels
    }

    /// Input channels of a group.
    #[must_use]
    pub fn group_in(&self) -> usize {
        self.in_channels / self.groups.max(1)
    }

    /// Output channels of a group.
    #[must_use]
    pub fn group_out(&self) -> usize {
        self.out_channels / self.groups.max(1)
    }

    /// Multiplications and additions.
    #[must_use]
    pub fn flops(&self) -> usize {
        let pixels = self.batch * self.y.output * self.x.output;
        let taps = self.y.size * self.x.size;
        pixels
            .saturating_mul(2 * taps)
            .saturating_mul(self.group_in())
            .saturating_mul(self.out_channels)
    }

    /// What there is to do for a gradient of so many elements.
    pub(crate) fn gradient_work(&self, sums: usize) -> Work {
        Work::Product(self.flops(), sums).or(Work::Weights(self.filter_len()))
    }

    /// Whether every output sees exactly the input at its own place.
    #[must_use]
    pub fn is_pointwise(&self) -> bool {
        let unit = |w: &Window| (w.size, w.stride, w.before) == (1, 1, 0) && w.input == w.output;
        unit(&self.y) && unit(&self.x)
    }

    /// Whether all outputs lie in one line and all that they see is inside the image, so that what
    /// each sees is a run of memory.
    pub(super) fn is_one_line(&self) -> bool {
        let (y, x) = (&self.y, &self.x);
        let one = (self.batch, y.input, y.output, y.size, y.before) == (1, 1, 1, 1, 0);
        let reach = x
            .output
            .saturating_sub(1)
            .saturating_mul(x.stride)
            .saturating_add(x.size);
        one && self.groups == 1 && (x.dilation, x.before) == (1, 0) && reach <= x.input
    }
}

/// Fails if the product of the sizes that are not 0 exceeds `isize::MAX`, as for a [`Shape`].
///
/// [`Shape`]: crate::base::shape::Shape
fn counted(sizes: [usize; 5]) -> Result<()> {
    let within = |product: &usize| isize::try_from(*product).is_ok();
    let product = sizes.into_iter().try_fold(1, |product: usize, size| {
        product.checked_mul(size.max(1)).filter(within)
    });
    match product {
        Some(_) => Ok(()),
        None => Err(Error::Overflow { argument: "shape" }),
    }
}

/// Fails unless a slice has exactly the expected length.
pub(crate) fn check_len(argument: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected {
        Ok(())
    } else {
        Err(Error::Length {
            argument,
            found,
            expected,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window() -> impl Strategy<Value = Window> {
        let padding = prop_oneof![
            Just(Padding::Valid),
            Just(Padding::Same),
            (0..5_usize, 0..5_usize).prop_map(|(a, b)| Padding::Explicit(a, b)),
        ];
        (0..12_usize, 1..6_usize, 1..4_usize, 1..4_usize, padding).prop_filter_map(
            "fits",
            |(input, size, stride, dilation, padding)| {
                Window::new(input, size, stride, dilation, padding).ok()
            },
        )
    }

    proptest! {
        #[test]
        fn taps_stops_and_inner_agree_with_counting(w in window()) {
            let hit = |stop: usize, tap: usize| {
                let at = stop * w.stride + tap * w.dilation;
                at.checked_sub(w.before).filter(|&at| at < w.input)
            };
            for stop in 0..w.output {
                let (taps, first) = w.taps(stop);
                for tap in 0..w.size {
                    prop_assert_eq!(taps.contains(&tap), hit(stop, tap).is_some());
                    prop_assert_eq!(w.stops(tap).contains(&stop), hit(stop, tap).is_some());
                }
                if !taps.is_empty() {
                    prop_assert_eq!(hit(stop, taps.start), Some(first));
                }
                let all = (0..w.size).all(|tap| hit(stop, tap).is_some());
                prop_assert_eq!(w.inner().contains(&stop), all);
            }
        }
    }

    #[test]
    fn outputs_are_those_of_tensorflow() {
        let out = |input, size, stride, dilation, padding| {
            Window::new(input, size, stride, dilation, padding).map(|w| (w.output, w.before))
        };
        assert_eq!(out(224, 7, 2, 1, Padding::Same), Ok((112, 2)));
        assert_eq!(out(5, 2, 1, 1, Padding::Same), Ok((5, 0)));
        assert_eq!(out(230, 7, 2, 1, Padding::Valid), Ok((112, 0)));
        assert_eq!(out(10, 3, 1, 2, Padding::Explicit(4, 0)), Ok((10, 4)));
        assert_eq!(out(10, 3, 1, 2, Padding::causal(3, 2)), Ok((10, 4)));
        assert_eq!(out(2, 3, 1, 1, Padding::Valid), Ok((0, 0)));
        assert!(out(1, 3, 1, 1, Padding::Valid).is_err());
        assert!(out(1, 3, 0, 1, Padding::Valid).is_err());
        assert!(out(usize::MAX, usize::MAX, 1, 9, Padding::Same).is_err());
    }
}
