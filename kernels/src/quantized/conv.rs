//! Convolutions, and with one tap matmuls.

use super::tiles::{Epilogue, Products, Tile, unsigned};
use super::{Scaling, expect};
use crate::base::error::Result;
use crate::base::parallel::Parallel;
use crate::conv::geometry::Conv as Sizes;
use crate::simd::body::{Body, dispatch};
use crate::simd::dots::{CHANNELS, Dots, Factors, Rounding, Sums};

/// What makes an int8 number one that is not negative.
pub const OFFSET: i32 = 128;

/// A convolution of `[batch, y.input, x.input, in_channels]` to
/// `[batch, y.output, x.output, out_channels]`, without groups.
#[derive(Clone, Copy, Debug)]
pub struct Conv<'a> {
    /// Its sizes; padding is of `zero`.
    pub sizes: Sizes,
    /// The filter: for each block of 16 output channels, for each four neighbours of a window,
    /// four weights of each channel. What lacks at the end of a window or block is 0.
    pub filter: &'a [i8],
    /// What is added to sums of `(filter - filter_zero) * (x + OFFSET)`, for whole blocks: the bias
    /// less `zero + OFFSET` times the sum of the channel's weights less `filter_zero`.
    pub bias: &'a [i32],
    /// What stands for 0 in the input.
    pub zero: i8,
    /// What stands for 0 in the filter, less which weights are multiplied.
    pub filter_zero: i8,
    /// How sums become int8, for whole blocks.
    pub scaling: Scaling<'a>,
}

impl Conv<'_> {
    const fn products(&self) -> Products<'_> {
        Products {
            sizes: self.sizes,
            filter: self.filter,
        }
    }

    /// Elements of the filter.
    ///
    /// # Errors
    /// [`crate::base::error::Error::Overflow`].
    pub fn filter_len(&self) -> Result<usize> {
        self.products().filter_len()
    }

    /// Computes the convolution.
    ///
    /// # Errors
    /// [`crate::base::error::Error::Length`] if a slice does not fit the sizes,
    /// [`crate::base::error::Error::Value`] for groups or a shift that is too large.
    pub fn run(&self, x: &[i8], out: &mut [i8], parallel: &dyn Parallel) -> Result<()> {
        let products = self.products();
        let channels = products.check(x.len(), out.len())?;
        expect("bias", self.bias.len(), channels)?;
        self.scaling.check(channels)?;
        let outputs = self.sizes.out_channels;
        // Weights less what stands for 0 are up to twice as large.
        let window = products.window() << u32::from(self.filter_zero != 0);
        let epilogue = Int8 {
            bias: self.bias,
            zero: unsigned(self.zero),
            filter_zero: i32::from(self.filter_zero),
            scaling: self.scaling,
            rounding: self.scaling.rounding(self.bias, window, outputs),
        };
        products.run(&epilogue, x, out, parallel);
        Ok(())
    }
}

/// Sums of channels that begin with a bias and become int8.
struct Int8<'a> {
    bias: &'a [i32],
    zero: u8,
    filter_zero: i32,
    scaling: Scaling<'a>,
    rounding: Rounding,
}

impl Int8<'_> {
    /// Makes the sums of a tile int8 from `channel` on, if there is a body for it.
    fn narrow(&self, dots: Dots, sums: &[Sums], of: Tile, out: &mut [i8]) -> bool {
        let scaling = &self.scaling;
        let Tile {
            channel,
            together,
            outputs,
            ..
        } = of;
        let channels = channel..channel + together * CHANNELS;
        let multiplier = scaling.multiplier[channels.clone()].as_chunks().0;
        let shift = scaling.shift[channels].as_chunks().0;
        let blocks = multiplier.iter().zip(shift).enumerate();
        blocks.into_iter().all(|(block, (multiplier, shift))| {
            let channel = channel + block * CHANNELS;
            let count = CHANNELS.min(outputs - channel);
            dots.narrow(
                &sums[block..],
                together,
                (Factors { multiplier, shift }, self.rounding),
                scaling.ends(),
                (&mut out[channel..], outputs, count),
            )
        })
    }
}

impl Epilogue for Int8<'_> {
    type Out = i8;

    #[inline(always)]
    fn zero(&self, _: usize) -> u8 {
        self.zero
    }

    #[inline(always)]
    fn filter_zero(&self) -> i32 {
        self.filter_zero
    }

    #[inline(always)]
    fn begin(&self, sums: &mut [Sums], together: usize, _: usize, channel: usize) {
        let bias = &self.bias[channel..][..together * CHANNELS];
        for sums in sums.chunks_mut(together) {
            for (sums, bias) in sums.iter_mut().zip(bias.as_chunks().0) {
                *sums = *bias;
            }
        }
    }

    #[inline(always)]
    fn end(&self, dots: Dots, sums: &[Sums], of: Tile, out: &mut [i8]) {
        if !self.narrow(dots, sums, of, out) {
            dispatch(Finish {
                scaling: &self.scaling,
                sums,
                of,
                out,
            });
        }
    }
}

/// Makes the sums of a tile int8.
struct Finish<'a> {
    scaling: &'a Scaling<'a>,
    sums: &'a [Sums],
    of: Tile,
    out: &'a mut [i8],
}

impl Body for Finish<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let rows = self.sums.chunks(self.of.together);
        for (sums, out) in rows.zip(self.out.chunks_mut(self.of.outputs)) {
            let out = &mut out[self.of.channel..][..self.of.count()];
            self.scaling
                .store(sums.as_flattened(), self.of.channel, out);
        }
    }
}
