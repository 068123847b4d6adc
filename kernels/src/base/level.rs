//! The one dispatch point: which instruction set the SIMD bodies use.

/// An instruction set that the kernels have bodies for, from least to most capable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What the compilation target guarantees.
    Portable,
    /// The vectors of WebAssembly with relaxed-simd, if the compilation target has them.
    Simd128,
    /// NEON, which 64-bit Arm has.
    Neon,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
}

impl Level {
    /// All levels, from least to most capable.
    pub const ALL: [Self; 5] = [
        Self::Portable,
        Self::Simd128,
        Self::Neon,
        Self::Avx2,
        Self::Avx512,
    ];

    /// Whether this processor can run it.
    #[must_use]
    #[inline]
    pub fn is_here(self) -> bool {
        // Tests have the portable bodies on every target.
        (cfg!(test) && self == Self::Portable) || self.is_within(best())
    }

    /// Whether bodies of this level are compiled where `best` is the best one. A target that decides
    /// about its level has that one alone.
    #[inline]
    const fn is_within(self, best: Self) -> bool {
        match (best, self) {
            (Self::Simd128 | Self::Neon, _) | (_, Self::Simd128 | Self::Neon) => {
                self as u8 == best as u8
            }
            _ => self as u8 <= best as u8,
        }
    }

    /// The name that `TFP_KERNELS` takes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Simd128 => "simd128",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

/// The level in use: the best one of this processor, or a lesser one that the environment variable
/// `TFP_KERNELS` names (`portable`, `avx2` or `avx512`). Read once.
#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[must_use]
#[inline]
pub fn level() -> Level {
    static LEVEL: Once = Once::new();
    LEVEL.get(asked)
}

/// The best level of this processor, whatever the environment says. Found once.
#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[must_use]
#[inline]
pub fn best() -> Level {
    static BEST: Once = Once::new();
    BEST.get(detect)
}

/// Whether the processor is one of AMD's, which alone have had SSE4a.
#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[inline]
fn is_amds() -> bool {
    is_x86_feature_detected!("sse4a")
}

/// Whether the processor has the instructions that AMD brought with Zen 5.
#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[inline]
fn intersects() -> bool {
    is_x86_feature_detected!("avx512vp2intersect")
}

/// Whether an instruction that computes and loads stays one where two registers say from where.
/// Intel's processors split it; those of AMD do not.
#[must_use]
#[inline]
pub(crate) fn indexes_freely() -> bool {
    is_amds()
}

/// Whether the first cache of a core has room for lines of all rows of a strip, wherever they lie,
/// beside what they are multiplied by: 48 KiB in 12 ways, which the processors of AMD have that
/// know how to intersect vectors. Of others it is not known.
#[must_use]
#[inline]
pub(crate) fn first_cache_is_wide() -> bool {
    is_amds() && intersects()
}

/// Bytes of the second cache of a core, as the servers of today have it: 1 MiB with AMD's
/// processors, 2 MiB with others. Only speed depends on it.
#[must_use]
#[inline]
pub(crate) fn second_cache() -> usize {
    if is_amds() { 1 << 20 } else { 2 << 20 }
}

/// Whether the third cache gives lines as fast as a product reads its right-hand side. With AMD's
/// processors, a few cores share one that is near; with others, all share one.
#[must_use]
#[inline]
pub(crate) fn third_cache_is_near() -> bool {
    is_amds()
}

/// A level that is found once; a small product asks for it as often as it multiplies.
#[cfg(all(feature = "std", target_arch = "x86_64"))]
struct Once(core::sync::atomic::AtomicU8);

#[cfg(all(feature = "std", target_arch = "x86_64"))]
impl Once {
    /// Larger than the number of any level.
    const UNKNOWN: u8 = u8::MAX;

    const fn new() -> Self {
        Self(core::sync::atomic::AtomicU8::new(Self::UNKNOWN))
    }

    #[inline]
    fn get(&self, find: fn() -> Level) -> Level {
        // Nothing else is published with the number, and all threads find the same one.
        const PORTABLE: u8 = Level::Portable as u8;
        const AVX2: u8 = Level::Avx2 as u8;
        const AVX512: u8 = Level::Avx512 as u8;
        match self.0.load(core::sync::atomic::Ordering::Relaxed) {
            PORTABLE => Level::Portable,
            AVX2 => Level::Avx2,
            AVX512 => Level::Avx512,
            _ => self.find(find),
        }
    }

    #[cold]
    fn find(&self, find: fn() -> Level) -> Level {
        let level = find();
        self.0
            .store(level as u8, core::sync::atomic::Ordering::Relaxed);
        level
    }
}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
fn asked() -> Level {
    let best = best();
    let asked = std::env::var("TFP_KERNELS").ok();
    [Level::Portable, Level::Avx2, Level::Avx512]
        .into_iter()
        .find(|level| asked.as_deref() == Some(level.name()))
        .map_or(best, |level| level.min(best))
}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
fn detect() -> Level {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (avx2, avx512) {
        (true, true) => Level::Avx512,
        (true, false) => Level::Avx2,
        _ => Level::Portable,
    }
}

/// The level in use: the one that the compilation target guarantees.
#[cfg(not(all(feature = "std", target_arch = "x86_64")))]
#[must_use]
pub const fn level() -> Level {
    if cfg!(all(
        target_feature = "avx512f",
        target_feature = "avx512bw",
        target_feature = "avx512dq",
        target_feature = "avx512vl"
    )) {
        Level::Avx512
    } else if cfg!(all(target_feature = "avx2", target_feature = "fma")) {
        Level::Avx2
    } else if cfg!(all(target_arch = "aarch64", target_feature = "neon")) {
        Level::Neon
    } else if cfg!(all(target_arch = "wasm32", target_feature = "relaxed-simd")) {
        Level::Simd128
    } else {
        Level::Portable
    }
}

/// The best level of this processor as far as the compilation target says.
#[cfg(not(all(feature = "std", target_arch = "x86_64")))]
#[must_use]
pub const fn best() -> Level {
    level()
}

/// As far as the compilation target says.
#[cfg(not(all(feature = "std", target_arch = "x86_64")))]
const fn is_amds() -> bool {
    cfg!(target_feature = "sse4a")
}

/// As far as the compilation target says.
#[cfg(not(all(feature = "std", target_arch = "x86_64")))]
const fn intersects() -> bool {
    cfg!(target_feature = "avx512vp2intersect")
}

#[cfg(test)]
mod alone {
    use super::Level;

    /// Also where a build takes a target's level away: then the portable one is what it has.
    #[test]
    fn a_level_is_within_itself_and_those_of_a_target_are_alone() {
        for best in Level::ALL {
            let within: Vec<_> = Level::ALL
                .into_iter()
                .filter(|l| l.is_within(best))
                .collect();
            let expected: &[Level] = match best {
                Level::Portable => &[Level::Portable],
                Level::Simd128 => &[Level::Simd128],
                Level::Neon => &[Level::Neon],
                Level::Avx2 => &[Level::Portable, Level::Avx2],
                Level::Avx512 => &[Level::Portable, Level::Avx2, Level::Avx512],
            };
            assert_eq!(within, expected);
        }
    }
}

#[cfg(all(test, feature = "std", target_arch = "x86_64"))]
mod tests {
    use super::*;

    const ALL: [Level; 3] = [Level::Portable, Level::Avx2, Level::Avx512];

    #[test]
    fn the_level_is_what_the_environment_says() {
        let asked = std::env::var("TFP_KERNELS").ok();
        let asked = ALL.into_iter().find(|l| asked.as_deref() == Some(l.name()));
        assert_eq!(level(), asked.unwrap_or(best()).min(best()));
        assert_eq!(level(), level());
    }

    /// The level is read once, so that each value takes a process.
    #[test]
    fn every_value_of_the_environment_is_obeyed() {
        for name in ["portable", "avx2", "avx512", "", "AVX2", "neon", "sse"] {
            let done = std::process::Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "base::level::tests::the_level_is_what_the_environment_says",
                ])
                .env("TFP_KERNELS", name)
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&done.stdout);
            assert!(
                done.status.success() && text.contains("1 passed"),
                "{name}: {text}"
            );
        }
    }
}
