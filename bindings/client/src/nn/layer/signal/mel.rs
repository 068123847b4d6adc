//! Spectrograms whose bands are as wide as the ear's.

use std::f32::consts::LN_10;

use tfp_core::{Context, DataType, Error, Result, Tensor};

use super::{LONGEST, Window};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::Weights;
use crate::nn::layer::described::KerasLayer;
use crate::nn::layer::noise::shape_of;
use crate::nn::layer::policy::narrowed;
use crate::nn::layer::{Built, Layer, check_sizes, elements, wrong_input};
use crate::ops;

/// How many weights bands may have.
const MOST: i64 = 1 << 26;

/// Powers as decibels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decibels {
    /// How far below the largest one of the batch numbers are at most.
    pub range: f32,
    /// The smallest power that a logarithm is taken of.
    pub least: f32,
    /// The power of 0 decibels.
    pub reference: f32,
}

/// 80 decibels at most, from a power of 1e-10, below a power of 1.
impl Default for Decibels {
    fn default() -> Self {
        Self {
            range: 80.0,
            least: 1e-10,
            reference: 1.0,
        }
    }
}

impl Decibels {
    /// The decibels of powers.
    fn of(&self, cx: &AnyContext, power: AnyValue) -> Result<AnyValue> {
        let log = ops::log(cx, ops::maximum(cx, power, self.least)?)?;
        let log = ops::mul(cx, ops::div(cx, log, LN_10)?, 10.0)?;
        let zero = 10.0 * self.reference.abs().max(self.least).log10();
        let log = ops::sub(cx, log, zero)?;
        let most = ops::max(cx, &log, [0, 1, 2], ops::MaxOptions::default())?;
        ops::maximum(cx, log, ops::sub(cx, most, self.range)?)
    }
}

/// How much of a signal is in each band of frequencies: (steps) to (bands, windows).
///
/// Bands are as wide as each other in mel, which is `1127 ln(1 + hertz / 700)`. The signal is
/// mirrored at both ends, so that windows are around their steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MelSpectrogram {
    /// The length of the transform.
    pub fft: i64,
    /// The steps from one window to the next one.
    pub step: i64,
    /// The steps of a window, at most those of the transform.
    pub frame: i64,
    /// What the steps of a window are multiplied by: [`Window::Hann`], [`Window::Hamming`] or nothing.
    pub window: Option<Window>,
    /// The steps of a second.
    pub rate: i64,
    /// The number of bands.
    pub bands: i64,
    /// The lowest and the highest frequency, in hertz.
    pub frequencies: (f32, f32),
    /// The exponent of magnitudes: 2 for powers.
    pub exponent: f32,
    /// The unit of the result: decibels, or powers.
    pub decibels: Option<Decibels>,
}

/// 128 bands from 20 to 8000 hertz of 16000 steps a second, in decibels. A window has 2048 steps, and
/// begins 512 after the one before it.
impl Default for MelSpectrogram {
    fn default() -> Self {
        Self {
            fft: 2048,
            step: 512,
            frame: 2048,
            window: Some(Window::Hann),
            rate: 16000,
            bands: 128,
            frequencies: (20.0, 8000.0),
            exponent: 2.0,
            decibels: Some(Decibels::default()),
        }
    }
}

fn mel(hertz: f64) -> f64 {
    1127.0 * (1.0 + hertz / 700.0).ln()
}

impl MelSpectrogram {
    fn check(&self) -> Result<()> {
        let sizes = [self.fft, self.step, self.frame, self.rate, self.bands];
        check_sizes("MelSpectrogram", "sizes", &sizes)?;
        let bins = self.fft / 2 + 1;
        let fits = elements(&[bins, self.bands]).is_some_and(|count| count <= MOST);
        if self.fft > LONGEST || self.frame > self.fft || !fits {
            return Err(Error::argument(format!(
                "MelSpectrogram: a window of {}, a transform of {} and {} bands, \
                 expected at most the transform, {LONGEST} and {MOST} weights",
                self.frame, self.fft, self.bands
            )));
        }
        let (low, high) = self.frequencies;
        if !(0.0..high).contains(&low) || !high.is_finite() {
            return Err(Error::argument(format!(
                "MelSpectrogram: frequencies from {low} to {high}, expected 0 or more in their order"
            )));
        }
        match self.window {
            None | Some(Window::Hann | Window::Hamming) => Ok(()),
            Some(other) => Err(Error::argument(format!(
                "MelSpectrogram: the window {other:?}, expected Hann, Hamming or none"
            ))),
        }
    }

    /// How much each band has of each frequency, (frequencies, bands).
    fn weights(&self) -> Result<Tensor> {
        let (bins, bands) = (self.fft / 2 + 1, self.bands);
        let (low, high) = self.frequencies;
        let (low, high) = (mel(f64::from(low)), mel(f64::from(high)));
        let edge = |at: i64| low + (high - low) * at as f64 / (bands + 1) as f64;
        let edges: Vec<f64> = (0..bands + 2).map(edge).collect();
        let mut weights = Vec::with_capacity((bins * bands) as usize);
        for bin in 0..bins {
            let hertz = self.rate as f64 / 2.0 * bin as f64 / (bins - 1).max(1) as f64;
            let found = mel(hertz);
            for edges in edges.windows(3) {
                let up = (found - edges[0]) / (edges[1] - edges[0]);
                let down = (edges[2] - found) / (edges[2] - edges[1]);
                // What does not change is in none.
                let weight = if bin > 0 { up.min(down).max(0.0) } else { 0.0 };
                weights.push(weight as f32);
            }
        }
        Tensor::from_vec(weights, &[bins, bands])
    }

    /// The factors of a window, with zeros at both ends up to the length of the transform.
    fn factors(&self) -> Option<Vec<f32>> {
        // As TensorFlow: a window of an odd length ends as it begins.
        let around = self.frame - self.frame % 2;
        let factors = self.window?.factors(self.frame, around);
        let before = (self.fft - self.frame) / 2;
        let mut all = vec![0.0; before as usize];
        all.extend(factors);
        all.resize(self.fft as usize, 0.0);
        Some(all)
    }

    /// The windows of a signal (batch, steps), (batch, windows, transform).
    fn framed(&self, cx: &AnyContext, x: &AnyValue, windows: i64) -> Result<AnyValue> {
        let half = (self.fft / 2) as i32;
        let sides = [[0, 0], [half, half]];
        let x = ops::mirror_pad(cx, x, sides, ops::MirrorPadMode::Reflect)?;
        let (fft, step) = (self.fft as i32, self.step as i32);
        let begins = match windows {
            1.. => ops::range(cx, 0, ((windows - 1) * self.step + 1) as i32, step)?,
            _ => {
                let steps = ops::slice(cx, shape_of(cx, &x)?, [1], [1])?;
                let end = ops::reshape(cx, ops::sub(cx, steps, fft - 1)?, [0_i32; 0])?;
                ops::range(cx, 0, end, step)?
            }
        };
        let begins = ops::expand_dims(cx, begins, 1)?;
        let places = ops::add_v2(cx, begins, ops::range(cx, 0, fft, 1)?)?;
        ops::gather_v2(cx, x, places, 1, ops::GatherV2Options::default())
    }
}

impl Layer for MelSpectrogram {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let decibels = self.decibels.unwrap_or_default();
        Ok(KerasLayer::new("MelSpectrogram")
            .set("fft_length", self.fft)
            .set("sequence_stride", self.step)
            .set("sequence_length", self.frame)
            .set("window", self.window.map(Window::name))
            .set("sampling_rate", self.rate)
            .set("num_mel_bins", self.bands)
            .set("min_freq", self.frequencies.0)
            .set("max_freq", self.frequencies.1)
            .set("power_to_db", self.decibels.is_some())
            .set("top_db", decibels.range)
            .set("mag_exp", self.exponent)
            .set("min_power", decibels.least)
            .set("ref_power", decibels.reference))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let layer = *self;
        layer.check()?;
        let half = layer.fft / 2;
        let &[time] = input else {
            return Err(wrong_input("MelSpectrogram", "steps", input));
        };
        if (0..=half).contains(&time) || time > i64::from(i32::MAX) - layer.fft {
            let expected = format!("more than {half} steps");
            return Err(wrong_input("MelSpectrogram", &expected, input));
        }
        let windows = match time {
            0.. => (time + 2 * half - layer.fft) / layer.step + 1,
            _ => -1,
        };
        let (bands, factors) = (layer.weights()?, layer.factors());
        let built = Built::new(vec![layer.bands, windows], move |pass, x| {
            let cx = pass.context();
            let x = ops::cast(cx, x, DataType::FLOAT, ops::CastOptions::default())?;
            let mut x = layer.framed(cx, &x, windows)?;
            if let Some(factors) = &factors {
                x = ops::mul(cx, x, factors.as_slice())?;
            }
            let x = ops::rfft(cx, x, [layer.fft as i32], ops::RFFTOptions::default())?;
            let real = ops::real(cx, &x, ops::RealOptions::default())?;
            let imaginary = ops::imag(cx, x, ops::ImagOptions::default())?;
            let power = ops::add_v2(cx, ops::square(cx, real)?, ops::square(cx, imaginary)?)?;
            let power = ops::pow(cx, ops::sqrt(cx, power)?, layer.exponent)?;
            let bands = cx.constant(&bands)?;
            let options = ops::BatchMatMulV2Options::default();
            let mut y = ops::batch_mat_mul_v2(cx, power, bands, options)?;
            if let Some(decibels) = layer.decibels {
                y = decibels.of(cx, y)?;
            }
            ops::transpose(cx, y, [0, 2, 1])
        })?;
        narrowed(built, weights)
    }
}
