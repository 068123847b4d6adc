//! Signals: windows of steps, and the frequencies in them.

mod mel;
mod stft;

pub use self::mel::{Decibels, MelSpectrogram};
pub use self::stft::{Spectrum, SpectrumScale, StftSpectrogram};

/// The longest window.
const LONGEST: i64 = 1 << 20;

/// What the steps of a window are multiplied by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Window {
    /// `0.5 - 0.5 cos(t)`, where `t` goes once around.
    #[default]
    Hann,
    /// `0.54 - 0.46 cos(t)`.
    Hamming,
    /// `0.42 - 0.5 cos(t) + 0.08 cos(2 t)`.
    Blackman,
    /// One.
    Boxcar,
}

impl Window {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Hann, "hann"),
        (Self::Hamming, "hamming"),
        (Self::Blackman, "blackman"),
        (Self::Boxcar, "boxcar"),
    ];

    /// Its name in Keras.
    fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(one, _)| *one == self);
        found.map_or("hann", |(_, name)| name)
    }

    /// The window of a name of Keras.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find(|(_, one)| *one == name).map(|(window, _)| *window)
    }

    /// The factors of so many steps, of which a number go around once.
    fn factors(self, steps: i64, around: i64) -> Vec<f32> {
        if steps == 1 {
            return vec![1.0];
        }
        let (mean, first, second) = match self {
            Self::Hann => (0.5, 0.5, 0.0),
            Self::Hamming => (0.54, 0.46, 0.0),
            Self::Blackman => (0.42, 0.5, 0.08),
            Self::Boxcar => (1.0, 0.0, 0.0),
        };
        let factor = |step: i64| {
            let angle = std::f64::consts::TAU * step as f64 / around as f64;
            (mean - first * angle.cos() + second * (2.0 * angle).cos()) as f32
        };
        (0..steps).map(factor).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of `scipy.signal.get_window`.
    #[test]
    fn windows_are_those_of_scipy() {
        let near = |found: &[f32], expected: &[f32]| {
            let away = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
            assert!(found.len() == expected.len() && away.fold(0.0, f32::max) < 1e-6);
        };
        near(&Window::Hann.factors(4, 4), &[0.0, 0.5, 1.0, 0.5]);
        near(&Window::Hann.factors(4, 3), &[0.0, 0.75, 0.75, 0.0]);
        near(&Window::Hamming.factors(4, 3), &[0.08, 0.77, 0.77, 0.08]);
        near(&Window::Blackman.factors(4, 4), &[0.0, 0.34, 1.0, 0.34]);
        near(&Window::Boxcar.factors(2, 2), &[1.0, 1.0]);
        near(&Window::Hann.factors(1, 1), &[1.0]);
        for (window, name) in Window::ALL {
            assert_eq!(Window::from_name(name), Some(window));
            assert_eq!(window.name(), name);
        }
    }
}
