//! Layers of signals.

use tfp_core::{Error, Result};

use super::super::config::Config;
use super::super::described::Described;
use crate::formats::json::Json;
use crate::nn::layer::{
    Decibels, MelSpectrogram, Spectrum, SpectrumScale, StftSpectrogram, Window,
};

/// Describes a layer of one of these classes.
pub fn describe(class: &str, config: Config<'_>) -> Option<Result<Described>> {
    Some(match class {
        "MelSpectrogram" => mel(config),
        "STFTSpectrogram" => stft(config),
        _ => return None,
    })
}

/// The window of a name; none where there is nothing.
fn window(config: Config<'_>) -> Result<Option<Window>> {
    let Some(json) = config.0.get("window") else {
        return Ok(None);
    };
    let name = json.text().unwrap_or("of numbers");
    let found = Window::from_name(name);
    let found = found.ok_or_else(|| Config::unsupported(&format!("window '{name}'")))?;
    Ok(Some(found))
}

/// An integer, or another one where there is nothing.
fn integer_or(config: Config<'_>, key: &str, other: i64) -> Result<i64> {
    match config.has(key) {
        true => config.integer(key),
        false => Ok(other),
    }
}

fn stft(config: Config<'_>) -> Result<Described> {
    config.channels_last()?;
    let frame = config.integer("frame_length")?;
    let mode = config.text("mode")?;
    let layer = StftSpectrogram {
        mode: Spectrum::from_name(mode)
            .ok_or_else(|| Config::unsupported(&format!("mode '{mode}'")))?,
        frame,
        step: integer_or(config, "frame_step", frame / 2)?,
        fft: integer_or(config, "fft_length", StftSpectrogram::fft_of(frame))?,
        window: window(config)?,
        periodic: config.flag("periodic"),
        scale: match config.0.get("scaling").map(Json::text) {
            None => None,
            Some(Some("density")) => Some(SpectrumScale::Density),
            Some(Some("spectrum")) => Some(SpectrumScale::Spectrum),
            Some(_) => return Err(Error::argument("'scaling' is not one of Keras")),
        },
        padding: config.padding()?,
        expand: config.flag("expand_dims"),
    };
    Described::own(layer, layer.kernels())
}

fn mel(config: Config<'_>) -> Result<Described> {
    let decibels = Decibels {
        range: config.float("top_db")?,
        least: config.float("min_power")?,
        reference: config.float("ref_power")?,
    };
    Described::plain(MelSpectrogram {
        fft: config.integer("fft_length")?,
        step: config.integer("sequence_stride")?,
        frame: config.integer("sequence_length")?,
        window: window(config)?,
        rate: config.integer("sampling_rate")?,
        bands: config.integer("num_mel_bins")?,
        frequencies: (config.float("min_freq")?, config.float("max_freq")?),
        exponent: config.float("mag_exp")?,
        decibels: config.flag("power_to_db").then_some(decibels),
    })
}
