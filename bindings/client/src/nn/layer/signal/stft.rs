//! Short-time Fourier transforms by convolutions, whose kernels can be trained.

use std::f64::consts::PI;
use std::sync::Arc;

use tfp_core::{Context, DataType, Error, Result, Tensor};

use super::{LONGEST, Window};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::functional::{Padding, not_causal};
use crate::nn::layer::conv::windows;
use crate::nn::layer::described::{KerasLayer, padding_name};
use crate::nn::layer::noise::shape_of;
use crate::nn::layer::{Built, Layer, channels, check_sizes, elements, wrong_input};
use crate::nn::{Initializer, InitializerFunction, Weights};
use crate::ops;
use crate::variable::Variable;

/// The smallest number that a root or a logarithm is taken of.
const LEAST: f32 = 1e-7;

/// What a spectrogram has for each frequency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Spectrum {
    /// The logarithm of the magnitude.
    #[default]
    Log,
    /// The magnitude.
    Magnitude,
    /// The power, twice that of frequencies other than the first and the last.
    Power,
    /// The real part.
    Real,
    /// The imaginary part.
    Imaginary,
    /// The angle, in radians.
    Angle,
    /// The real parts of all frequencies, then the imaginary ones.
    Both,
}

impl Spectrum {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Log, "log"),
        (Self::Magnitude, "magnitude"),
        (Self::Power, "psd"),
        (Self::Real, "real"),
        (Self::Imaginary, "imag"),
        (Self::Angle, "angle"),
        (Self::Both, "stft"),
    ];

    /// Its name in Keras.
    fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(one, _)| *one == self);
        found.map_or("log", |(_, name)| name)
    }

    /// The spectrum of a name of Keras.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find(|(_, one)| *one == name).map(|(found, _)| *found)
    }
}

/// What the factors of a window are divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpectrumScale {
    /// The root of the sum of their squares.
    #[default]
    Density,
    /// Their sum.
    Spectrum,
}

impl SpectrumScale {
    fn name(self) -> &'static str {
        match self {
            Self::Density => "density",
            Self::Spectrum => "spectrum",
        }
    }
}

/// The frequencies in windows of a signal: (steps, channels) to (windows, channels * frequencies).
///
/// The cosines and sines are the variables `real_kernel` and `imag_kernel`, (frame, 1, frequencies),
/// which training changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StftSpectrogram {
    /// What there is for each frequency.
    pub mode: Spectrum,
    /// The steps of a window.
    pub frame: i64,
    /// The steps from one window to the next one.
    pub step: i64,
    /// The length of the transform, of which half and one are the frequencies.
    pub fft: i64,
    /// What the steps of a window are multiplied by. Without one nothing is divided either.
    pub window: Option<Window>,
    /// Whether the window would go on with the next step as it began.
    pub periodic: bool,
    /// What the window is divided by.
    pub scale: Option<SpectrumScale>,
    /// How borders are treated.
    pub padding: Padding,
    /// Whether the output is (windows, frequencies, channels).
    pub expand: bool,
}

impl StftSpectrogram {
    /// Logarithms of magnitudes in windows of so many steps that overlap by half. The transform is as
    /// long as the next power of two.
    #[must_use]
    pub fn new(frame: i64) -> Self {
        Self {
            mode: Spectrum::Log,
            frame,
            step: frame / 2,
            fft: Self::fft_of(frame),
            window: Some(Window::Hann),
            periodic: false,
            scale: Some(SpectrumScale::Density),
            padding: Padding::Valid,
            expand: false,
        }
    }

    /// The power of two that is not below a number of steps.
    pub(crate) fn fft_of(frame: i64) -> i64 {
        let frame = u64::try_from(frame).unwrap_or_default();
        let power = frame.checked_next_power_of_two();
        power.map_or(i64::MAX, |power| i64::try_from(power).unwrap_or(i64::MAX))
    }

    fn has_real(&self) -> bool {
        self.mode != Spectrum::Imaginary
    }

    fn has_imaginary(&self) -> bool {
        self.mode != Spectrum::Real
    }

    /// How many variables there are.
    pub(crate) fn kernels(&self) -> usize {
        usize::from(self.has_real()) + usize::from(self.has_imaginary())
    }

    fn check(&self) -> Result<()> {
        check_sizes(
            "StftSpectrogram",
            "frame and step",
            &[self.frame, self.step],
        )?;
        not_causal("StftSpectrogram", self.padding)?;
        if self.fft < self.frame.max(2) || self.fft > LONGEST {
            return Err(Error::argument(format!(
                "StftSpectrogram: a transform of {}, expected 2 to {LONGEST}, and at least a window of {}",
                self.fft, self.frame
            )));
        }
        if self.step > self.frame {
            return Err(Error::argument(format!(
                "StftSpectrogram: a step of {}, expected at most a window of {}",
                self.step, self.frame
            )));
        }
        Ok(())
    }

    /// What there is for each frequency, (batch, channels, windows, frequencies), of real and imaginary
    /// parts.
    fn spectrum(
        &self,
        cx: &AnyContext,
        real: Option<AnyValue>,
        imaginary: Option<AnyValue>,
    ) -> Result<AnyValue> {
        let (real, imaginary) = match (real, imaginary) {
            (Some(real), Some(imaginary)) => (real, imaginary),
            (Some(one), None) | (None, Some(one)) => return Ok(one),
            (None, None) => return Err(Error::argument("a spectrum has a part")),
        };
        match self.mode {
            Spectrum::Angle => return ops::atan2(cx, imaginary, real),
            Spectrum::Both => return ops::concat_v2(cx, [real, imaginary], 3),
            _ => {}
        }
        let power = ops::add_v2(cx, ops::square(cx, real)?, ops::square(cx, imaginary)?)?;
        if self.mode == Spectrum::Power {
            let inner = (self.fft / 2 - 1) as i32;
            let inner = ops::slice(cx, &power, [0, 0, 0, 1], [-1, -1, -1, inner])?;
            let inner = ops::pad(cx, inner, [[0, 0], [0, 0], [0, 0], [1, 1]])?;
            return ops::add_v2(cx, power, inner);
        }
        let magnitude = ops::sqrt(cx, ops::maximum(cx, power, LEAST)?)?;
        match self.mode {
            Spectrum::Magnitude => Ok(magnitude),
            _ => ops::log(cx, ops::maximum(cx, magnitude, LEAST)?),
        }
    }
}

impl Layer for StftSpectrogram {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("STFTSpectrogram")
            .set("mode", self.mode.name())
            .set("frame_length", self.frame)
            .set("frame_step", self.step)
            .set("fft_length", self.fft)
            .set("window", self.window.map(Window::name))
            .set("periodic", self.periodic)
            .set("scaling", self.scale.map(SpectrumScale::name))
            .set("padding", padding_name(self.padding))
            .set("expand_dims", self.expand))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let layer = *self;
        layer.check()?;
        let &[time, _] = input else {
            return Err(wrong_input("StftSpectrogram", "steps and channels", input));
        };
        let channels = channels("StftSpectrogram", input)?;
        let bins = layer.fft / 2 + 1;
        let width = if layer.mode == Spectrum::Both {
            2 * bins
        } else {
            bins
        };
        let steps = windows(time, layer.frame, layer.step, 1, layer.padding);
        let Some(all) = elements(&[channels, width]) else {
            return Err(wrong_input("StftSpectrogram", "fewer channels", input));
        };
        if steps == 0 {
            return Err(wrong_input("StftSpectrogram", "at least one window", input));
        }
        let weights = weights.layer("stft_spectrogram");
        let kernel = |name: &str, is_real: bool| -> Result<Variable> {
            let first = Arc::new(Waves { layer, is_real });
            let weights = weights.beginning(name, first);
            weights.trainable(name, &[layer.frame, 1, bins], Initializer::Zeros)
        };
        let real = layer.has_real().then(|| kernel("real_kernel", true));
        let imaginary = layer.has_imaginary().then(|| kernel("imag_kernel", false));
        let (real, imaginary) = (real.transpose()?, imaginary.transpose()?);
        let output = match layer.expand {
            true => vec![steps, width, channels],
            false => vec![steps, all],
        };
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            // (batch, channels, steps, 1)
            let x = ops::expand_dims(cx, ops::transpose(cx, x, [0, 2, 1])?, 3)?;
            let part = |kernel: &Option<Variable>| match kernel {
                Some(kernel) => convolved(cx, &x, &kernel.read(cx)?, &layer).map(Some),
                None => Ok(None),
            };
            let y = layer.spectrum(cx, part(&real)?, part(&imaginary)?)?;
            if layer.expand {
                return ops::transpose(cx, y, [0, 2, 3, 1]);
            }
            let y = ops::transpose(cx, y, [0, 2, 1, 3])?;
            let outer = ops::slice(cx, shape_of(cx, &y)?, [0], [2])?;
            let shape = ops::concat_v2(cx, (outer, [all as i32]), 0)?;
            ops::reshape(cx, y, shape)
        })
    }
}

/// The windows of (batch, channels, steps, 1), each times a kernel: (batch, channels, windows,
/// frequencies).
fn convolved(
    cx: &AnyContext,
    x: &AnyValue,
    kernel: &AnyValue,
    layer: &StftSpectrogram,
) -> Result<AnyValue> {
    let padding = match layer.padding {
        Padding::Same => ops::Padding::Same,
        _ => ops::Padding::Valid,
    };
    let kernel = ops::expand_dims(cx, kernel, 0)?;
    let options = ops::Conv2DOptions::default();
    ops::conv2d(cx, x, kernel, &[1, 1, layer.step, 1], padding, options)
}

/// The cosines of a Fourier transform, or the sines.
#[derive(Debug)]
struct Waves {
    layer: StftSpectrogram,
    is_real: bool,
}

impl InitializerFunction for Waves {
    fn first(&self, cx: &AnyContext, shape: &[i64], _: u32) -> Result<AnyValue> {
        let &[frame, _, bins] = shape else {
            return Err(Error::argument("waves of a window"));
        };
        let numbers = |count: i64, shape: [i64; 3]| -> Result<AnyValue> {
            let numbers = ops::range(cx, 0, count as i32, 1)?;
            let options = ops::CastOptions::default();
            let numbers = ops::cast(cx, numbers, DataType::FLOAT, options)?;
            ops::reshape(cx, numbers, shape.as_slice())
        };
        // One after the other, as in Keras, for the same rounding.
        let part = numbers(bins, [1, 1, bins])?;
        let part = ops::div(cx, part, (2 * (bins - 1)) as f32)?;
        let angle = ops::mul(cx, numbers(frame, [frame, 1, 1])?, -2.0)?;
        let angle = ops::mul(cx, ops::mul(cx, angle, part)?, PI as f32)?;
        let waves = match self.is_real {
            true => ops::cos(cx, angle)?,
            false => ops::sin(cx, angle)?,
        };
        let Some(window) = self.layer.window else {
            return Ok(waves);
        };
        let around = frame - i64::from(!self.layer.periodic);
        let factors = window.factors(frame, around);
        let scale = match self.layer.scale {
            None => 1.0,
            Some(SpectrumScale::Density) => {
                let squares = factors.iter().map(|&one| f64::from(one) * f64::from(one));
                squares.sum::<f64>().sqrt()
            }
            Some(SpectrumScale::Spectrum) => factors.iter().map(|&one| f64::from(one)).sum(),
        };
        let factors = cx.constant(&Tensor::from_vec(factors, &[frame, 1, 1])?)?;
        ops::div(cx, ops::mul(cx, waves, factors)?, scale as f32)
    }
}
