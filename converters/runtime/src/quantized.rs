//! Layers and operations on int8 numbers that stand for real ones.

use crate::activation::Activation;
use crate::conv::{Axis, Geometry};
use crate::error::{Result, at};
use crate::kernels::quantized::conv::Conv;
use crate::kernels::quantized::depthwise::Depthwise;
use crate::kernels::quantized::dynamic::{self, Conv as Dynamic, Real};
pub use crate::kernels::quantized::pair::{Factor, Pair};
use crate::kernels::quantized::pair::{Numbers, look_up, pair as pairs};
pub use crate::kernels::quantized::pool::Kind;
use crate::kernels::quantized::pool::{Pool, mean as means};
pub use crate::kernels::quantized::{Range, Rescaling, Scaling};
use crate::kernels::quantized::{cast, softmax as rows};
use crate::memory::{Memory, Reader, Slot, Source, count};
use crate::weights::Tensor;

/// How sums of products become int8.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// The bias of each channel.
    pub bias: Tensor<i32>,
    /// The factor of each channel; if [`Rescaling::Real`], its bits.
    pub multiplier: Tensor<i32>,
    /// Its power of two.
    pub shift: Tensor<i32>,
    /// Where results lie.
    pub range: Range,
    /// How a sum is rounded.
    pub rescaling: Rescaling,
}

impl Scale {
    fn read<'a>(&self, reader: &Reader<'a>) -> Result<(&'a [i32], Scaling<'a>)> {
        let scaling = Scaling {
            multiplier: reader.read(self.multiplier.into())?,
            shift: reader.read(self.shift.into())?,
            range: self.range,
            rescaling: self.rescaling,
        };
        Ok((reader.read(self.bias.into())?, scaling))
    }
}

/// A convolution, or with `DEPTHWISE` one of each channel by itself. A matmul is one of one tap.
#[derive(Clone, Copy, Debug)]
pub struct Filtered<const DEPTHWISE: bool> {
    /// Name of the layer.
    pub name: &'static str,
    /// Its sizes; padding is of `zero`.
    pub geometry: Geometry,
    /// The filter as the kernel reads it.
    pub filter: Tensor<i8>,
    /// What stands for 0 in the input.
    pub zero: i8,
    /// What stands for 0 in the filter.
    pub filter_zero: i8,
    /// Bias and factors as the kernel reads them.
    pub scale: Scale,
}

/// A convolution, or a matmul.
pub type QuantizedConv = Filtered<false>;

/// A convolution of each channel by itself.
pub type QuantizedDepthwise = Filtered<true>;

impl<const DEPTHWISE: bool> Filtered<DEPTHWISE> {
    /// Computes the layer.
    ///
    /// # Errors
    /// [`crate::error::Error::Layer`] or [`crate::error::Error::Plan`] if a slot does not fit.
    pub fn run<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        x: impl Into<Source<'a, i8>>,
        out: Slot<i8>,
    ) -> Result<()> {
        let (reader, out) = m.write(out)?;
        let x = reader.read(x.into())?;
        let filter = reader.read(self.filter.into())?;
        let (bias, scaling) = self.scale.read(&reader)?;
        let mut sizes = self.geometry.sizes(1).map_err(at(self.name))?;
        sizes.batch = count(x.len(), sizes.input_len());
        let (zero, filter_zero) = (self.zero, self.filter_zero);
        if DEPTHWISE {
            let layer = Depthwise {
                sizes,
                filter,
                bias,
                zero,
                filter_zero,
                scaling,
            };
            layer.run(x, out, reader.parallel)
        } else {
            let layer = Conv {
                sizes,
                filter,
                bias,
                zero,
                filter_zero,
                scaling,
            };
            layer.run(x, out, reader.parallel)
        }
        .map_err(at(self.name))
    }
}

/// A convolution, or with one tap a matmul, of levels with int8 weights: the sums.
#[derive(Clone, Copy, Debug)]
pub struct IntegerSums {
    /// Name of the layer.
    pub name: &'static str,
    /// Its sizes; padding is of what stands for 0.
    pub geometry: Geometry,
    /// The filter as the kernel reads it.
    pub filter: Tensor<i8>,
    /// Sums of the weights of each channel, for whole blocks.
    pub totals: Tensor<i32>,
}

impl IntegerSums {
    fn layer<'a>(&self, reader: &Reader<'a>, levels: usize) -> Result<Dynamic<'a>> {
        let mut sizes = self.geometry.sizes(1).map_err(at(self.name))?;
        sizes.batch = count(levels, sizes.input_len());
        Ok(Dynamic {
            sizes,
            filter: reader.read(self.filter.into())?,
            totals: reader.read(self.totals.into())?,
        })
    }

    /// Computes the sums of levels, whose scales and levels of 0 are `ends`.
    ///
    /// # Errors
    /// [`crate::error::Error::Layer`] or [`crate::error::Error::Plan`] if a slot does not fit.
    pub fn run<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        (levels, ends): (impl Into<Source<'a, i8>>, impl Into<Source<'a, f32>>),
        out: Slot<i32>,
    ) -> Result<()> {
        let (reader, out) = m.write(out)?;
        let x = (reader.read(levels.into())?, reader.read(ends.into())?);
        let layer = self.layer(&reader, x.0.len())?;
        layer.sums(x, out, reader.parallel).map_err(at(self.name))
    }
}

/// As [`IntegerSums`], whose results are the real numbers that sums stand for.
#[derive(Clone, Copy, Debug)]
pub struct DynamicLayer {
    /// The sums.
    pub sums: IntegerSums,
    /// What the weights of each channel are multiplied by, for whole blocks.
    pub factors: Tensor<f32>,
    /// Is added: one number for each channel.
    pub bias: Option<Tensor<f32>>,
    /// Comes last.
    pub activation: Activation,
}

impl DynamicLayer {
    /// Computes the layer of levels, whose scales and levels of 0 are `ends`.
    ///
    /// # Errors
    /// As [`IntegerSums::run`].
    pub fn run<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        (levels, ends): (impl Into<Source<'a, i8>>, impl Into<Source<'a, f32>>),
        out: Slot<f32>,
    ) -> Result<()> {
        self.run_from(m, (levels.into(), ends.into()), None, out)
    }

    /// As [`Self::run`], with as many numbers added as there are results.
    ///
    /// # Errors
    /// As [`IntegerSums::run`].
    pub fn run_add<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        (levels, ends): (impl Into<Source<'a, i8>>, impl Into<Source<'a, f32>>),
        residual: impl Into<Source<'a, f32>>,
        out: Slot<f32>,
    ) -> Result<()> {
        let x = (levels.into(), ends.into());
        self.run_from(m, x, Some(residual.into()), out)
    }

    fn run_from<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        (levels, ends): (Source<'a, i8>, Source<'a, f32>),
        residual: Option<Source<'a, f32>>,
        out: Slot<f32>,
    ) -> Result<()> {
        let (reader, out) = m.write(out)?;
        let x = (reader.read(levels)?, reader.read(ends)?);
        let real = Real {
            factors: reader.read(self.factors.into())?,
            bias: self.bias.map(|bias| reader.read(bias.into())).transpose()?,
            residual: residual.map(|x| reader.read(x)).transpose()?,
            activation: self.activation,
        };
        let layer = self.sums.layer(&reader, x.0.len())?;
        layer
            .run(x, real, out, reader.parallel)
            .map_err(at(self.sums.name))
    }
}

/// The levels of examples of `each` numbers, and what they stand for: a scale and the level of 0.
///
/// # Errors
/// As [`pair`].
pub fn levels<'a>(
    m: &'a mut Memory<'_>,
    x: impl Into<Source<'a, f32>>,
    each: usize,
    (levels, ends): (Slot<i8>, Slot<f32>),
) -> Result<()> {
    let (reader, levels, ends) = m.write_with(levels, ends)?;
    let x = reader.read(x.into())?;
    dynamic::levels(x, each, (levels, ends), reader.parallel).map_err(at("levels"))
}

/// Sums or products of elements.
///
/// # Errors
/// [`crate::error::Error::Layer`] or [`crate::error::Error::Plan`] if a slot does not fit.
pub fn pair<'a>(
    m: &'a mut Memory<'_>,
    kind: Pair,
    (a, a_zero): (impl Into<Source<'a, i8>>, i8),
    (b, b_zero): (impl Into<Source<'a, i8>>, i8),
    ends: (Factor, Range),
    out: Slot<i8>,
) -> Result<()> {
    let (reader, out) = m.write(out)?;
    let (a, b) = (reader.read(a.into())?, reader.read(b.into())?);
    let (a, b) = (
        Numbers {
            values: a,
            zero: a_zero,
        },
        Numbers {
            values: b,
            zero: b_zero,
        },
    );
    pairs(kind, a, b, ends, out, reader.parallel).map_err(at("pair"))
}

/// A function of one number by its table.
///
/// # Errors
/// As [`pair`].
pub fn looked<'a>(
    m: &'a mut Memory<'_>,
    x: impl Into<Source<'a, i8>>,
    table: impl Into<Source<'a, i8>>,
    out: Slot<i8>,
) -> Result<()> {
    let (reader, out) = m.write(out)?;
    let (x, table) = (reader.read(x.into())?, reader.read(table.into())?);
    look_up(x, table, out, reader.parallel).map_err(at("table"))
}

/// The largest or the mean element of every window of `channels` channels.
///
/// # Errors
/// As [`pair`].
pub fn pool<'a>(
    m: &'a mut Memory<'_>,
    kind: Kind,
    [y, x]: [Axis; 2],
    (channels, low, high): (usize, i8, i8),
    input: impl Into<Source<'a, i8>>,
    out: Slot<i8>,
) -> Result<()> {
    const NAME: &str = "pool";
    let (reader, out) = m.write(out)?;
    let input = reader.read(input.into())?;
    let (y, x) = (y.window().map_err(at(NAME))?, x.window().map_err(at(NAME))?);
    let pool = Pool {
        kind,
        batch: count(input.len(), y.input * x.input * channels),
        channels,
        y,
        x,
        low,
        high,
    };
    pool.run(input, out, reader.parallel).map_err(at(NAME))
}

/// Means over the middle of three axes, of which `sizes` are the last two.
///
/// # Errors
/// As [`pair`].
pub fn mean<'a>(
    m: &'a mut Memory<'_>,
    (x, zero): (impl Into<Source<'a, i8>>, i8),
    sizes: (usize, usize),
    ends: (Factor, Range),
    out: Slot<i8>,
) -> Result<()> {
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    means(
        Numbers { values: x, zero },
        sizes,
        ends,
        out,
        reader.parallel,
    )
    .map_err(at("mean"))
}

/// Softmax of rows of `width` numbers, by a table of exponentials.
///
/// # Errors
/// As [`pair`].
pub fn softmax<'a>(
    m: &'a mut Memory<'_>,
    (x, width): (impl Into<Source<'a, i8>>, usize),
    table: impl Into<Source<'a, f32>>,
    ends: (f32, Range),
    out: Slot<i8>,
) -> Result<()> {
    let (reader, out) = m.write(out)?;
    let (x, table) = (reader.read(x.into())?, reader.read(table.into())?);
    rows::softmax((x, width), table, ends, out, reader.parallel).map_err(at("softmax"))
}

/// The int8 numbers that stand for real ones, by a scale and what stands for 0.
///
/// # Errors
/// As [`pair`].
pub fn quantize<'a>(
    m: &'a mut Memory<'_>,
    x: impl Into<Source<'a, f32>>,
    scale: (f32, i8),
    out: Slot<i8>,
) -> Result<()> {
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    cast::quantize(x, scale, out, reader.parallel).map_err(at("quantize"))
}

/// The real numbers that int8 ones stand for.
///
/// # Errors
/// As [`pair`].
pub fn dequantize<'a>(
    m: &'a mut Memory<'_>,
    x: impl Into<Source<'a, i8>>,
    scale: (f32, i8),
    out: Slot<f32>,
) -> Result<()> {
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    cast::dequantize(x, scale, out, reader.parallel).map_err(at("dequantize"))
}
