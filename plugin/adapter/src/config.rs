//! What the environment says.

use std::num::NonZeroUsize;
use std::time::Duration;

use tfp_bindings::{Error, PlatformInfo, Result, log};
use tfp_gpu::Placement;

/// Most devices that can be asked for.
const MAX_DEVICES: usize = 64;
/// Most threads that can be asked for.
const MAX_THREADS: usize = 4096;

/// The configuration of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// `TFP_DISABLE=1`: offer nothing.
    pub disabled: bool,
    /// `TFP_DEVICE_TYPE`: the device type; `TFP` if not set.
    pub names: PlatformInfo,
    /// `TFP_NUM_DEVICES`: how many devices; 1 if not set.
    pub devices: usize,
    /// `TFP_NUM_THREADS`: threads that compute; all processors if not set.
    pub threads: NonZeroUsize,
    /// `TFP_MEMORY_LIMIT`: bytes per device, with K, M or G for powers of 1024; no limit if not set.
    pub memory_limit: Option<u64>,
    /// `TFP_FUSION=0`: leave the nodes of a graph apart.
    pub fusion: bool,
    /// `TFP_BACKEND`: what computes; the CPU if not set.
    pub backend: Backend,
    /// `TFP_GPU`: index or part of the name of the GPU; the best one if not set.
    pub gpu: Option<String>,
    /// `TFP_GPU_MEMORY`: `device` or `host`, where the device's memory is; what suits the GPU if not set.
    pub gpu_memory: Placement,
    /// `TFP_GPU_ALL=1`: the GPU also computes what the CPU ends sooner, for tests.
    pub gpu_all: bool,
    /// `TFP_GPU_PATIENCE`: how long a kernel of the GPU may take, in seconds; the GPU's default if not set.
    pub gpu_patience: Option<Duration>,
    /// `TFP_FAULT`: a failure to inject, for tests of what happens then.
    pub fault: Option<Fault>,
}

/// What computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// `cpu`: the CPU.
    #[default]
    Cpu,
    /// `auto`: a GPU that is hardware, if Vulkan lists one that can be used; else the CPU.
    Auto,
    /// `vulkan`: a GPU, or a driver that computes on the CPU.
    Vulkan,
}

impl Backend {
    /// The values of `TFP_BACKEND`.
    const ALL: [(&str, Self); 3] = [
        ("auto", Self::Auto),
        ("cpu", Self::Cpu),
        ("vulkan", Self::Vulkan),
    ];

    /// The value of `TFP_BACKEND`.
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, each)| *each == self);
        found.map_or("cpu", |(name, _)| name)
    }

    /// An unknown value costs a line of the log, not the device.
    fn read(text: &str) -> Self {
        let found = Self::ALL.iter().find(|(name, _)| *name == text.trim());
        found.map_or_else(
            || {
                log(&format!(
                    "TFP_BACKEND={text:?}: expected auto, cpu or vulkan; the CPU computes"
                ));
                Self::Cpu
            },
            |(_, each)| *each,
        )
    }
}

/// A failure of every kernel of one op.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The op.
    pub op: String,
    /// What happens.
    pub kind: FaultKind,
}

/// What an injected failure does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// `panic:OP`
    Panic,
    /// `error:OP`
    Error,
}

impl Config {
    /// Reads the environment of the process.
    ///
    /// # Errors
    /// If a variable has a value that means nothing.
    pub fn from_environment() -> Result<Self> {
        Self::read(|name| std::env::var(name).ok())
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let set = |name| variable(name).filter(|value| !value.is_empty());
        let mut names = usual_names();
        if let Some(device_type) = set("TFP_DEVICE_TYPE") {
            names.device_type = device_type;
            names.check().map_err(|error| error.at("TFP_DEVICE_TYPE"))?;
        }
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = match set("TFP_NUM_THREADS") {
            Some(text) => number("TFP_NUM_THREADS", &text, 1, MAX_THREADS)?,
            None => processors,
        };
        Ok(Self {
            disabled: set("TFP_DISABLE").is_some_and(|value| value != "0"),
            names,
            devices: match set("TFP_NUM_DEVICES") {
                Some(text) => number("TFP_NUM_DEVICES", &text, 0, MAX_DEVICES)?,
                None => 1,
            },
            threads: NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN),
            memory_limit: set("TFP_MEMORY_LIMIT")
                .map(|text| bytes("TFP_MEMORY_LIMIT", &text))
                .transpose()?,
            fusion: set("TFP_FUSION").is_none_or(|value| value != "0"),
            backend: set("TFP_BACKEND").map_or(Backend::Cpu, |text| Backend::read(&text)),
            gpu: set("TFP_GPU"),
            gpu_memory: set("TFP_GPU_MEMORY").map_or(Placement::Best, |text| placement(&text)),
            gpu_all: set("TFP_GPU_ALL").is_some_and(|value| value != "0"),
            gpu_patience: set("TFP_GPU_PATIENCE")
                .map(|text| seconds("TFP_GPU_PATIENCE", &text))
                .transpose()?,
            fault: set("TFP_FAULT").map(|text| fault(&text)).transpose()?,
        })
    }
}

/// The value of `TFP_GPU_MEMORY`; an unknown one is a line.
fn placement(text: &str) -> Placement {
    match text.trim() {
        "device" => Placement::Device,
        "host" => Placement::Host,
        _ => {
            log(&format!(
                "TFP_GPU_MEMORY={text:?}: expected device or host; what suits the GPU is taken"
            ));
            Placement::Best
        }
    }
}

/// The names of the platform and of the type of device if nothing else is asked for.
pub fn usual_names() -> PlatformInfo {
    PlatformInfo::new("TFP")
}

fn number(name: &str, text: &str, least: usize, most: usize) -> Result<usize> {
    text.trim()
        .parse()
        .ok()
        .filter(|value| (least..=most).contains(value))
        .ok_or_else(|| {
            Error::invalid(format!(
                "{name}={text:?}: expected a number from {least} to {most}"
            ))
        })
}

fn seconds(name: &str, text: &str) -> Result<Duration> {
    let value = text.trim().parse().ok();
    value
        .filter(|&value: &f64| value > 0.0)
        .and_then(|value| Duration::try_from_secs_f64(value).ok())
        .ok_or_else(|| {
            Error::invalid(format!(
                "{name}={text:?}: expected a number of seconds above 0, such as 60"
            ))
        })
}

fn bytes(name: &str, text: &str) -> Result<u64> {
    let text = text.trim();
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let value = digits.parse::<u64>().ok();
    value
        .and_then(|value| value.checked_mul(1 << shift))
        .filter(|&value| value > 0)
        .ok_or_else(|| {
            Error::invalid(format!(
                "{name}={text:?}: expected a number of bytes, with K, M or G if wanted"
            ))
        })
}

fn fault(text: &str) -> Result<Fault> {
    let kinds = [("panic", FaultKind::Panic), ("error", FaultKind::Error)];
    let found = text.split_once(':').and_then(|(kind, op)| {
        let kind = kinds.iter().find(|(name, _)| *name == kind)?.1;
        Some(Fault {
            op: op.to_owned(),
            kind,
        })
    });
    found
        .ok_or_else(|| Error::invalid(format!("TFP_FAULT={text:?}: expected panic:OP or error:OP")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Config> {
        Config::read(|name| {
            let pair = pairs.iter().find(|(n, _)| *n == name);
            pair.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn an_empty_environment_is_one_device_of_type_tfp() {
        let config = read(&[]).unwrap();
        assert_eq!(config.names.device_type, "TFP");
        assert_eq!((config.devices, config.disabled), (1, false));
        assert_eq!((config.memory_limit, &config.fault), (None, &None));
        assert_eq!(config, read(&[("TFP_NUM_DEVICES", "")]).unwrap());
        assert_eq!((config.backend, config.gpu), (Backend::Cpu, None));
    }

    #[test]
    fn the_backend_is_read_and_an_unknown_one_is_the_cpu() {
        for (text, expected) in [
            ("auto", Backend::Auto),
            ("cpu", Backend::Cpu),
            (" vulkan ", Backend::Vulkan),
            ("cuda", Backend::Cpu),
        ] {
            let config = read(&[("TFP_BACKEND", text), ("TFP_GPU", "1")]).unwrap();
            assert_eq!(config.backend, expected, "{text}");
            assert_eq!(config.gpu.as_deref(), Some("1"));
            assert_eq!(Backend::read(config.backend.name()), expected);
        }
    }

    #[test]
    fn the_place_of_a_gpus_memory_is_read() {
        for (text, expected) in [
            ("device", Placement::Device),
            (" host ", Placement::Host),
            ("HBM", Placement::Best),
            ("", Placement::Best),
        ] {
            let config = read(&[("TFP_GPU_MEMORY", text)]).unwrap();
            assert_eq!(config.gpu_memory, expected, "{text}");
        }
    }

    #[test]
    fn the_patience_with_a_gpu_is_a_time() {
        let patience = |text| read(&[("TFP_GPU_PATIENCE", text)]).map(|config| config.gpu_patience);
        assert_eq!(patience("").unwrap(), None);
        assert_eq!(
            patience(" 1.5 ").unwrap(),
            Some(Duration::from_millis(1500))
        );
        for text in ["0", "-1", "soon", "inf", "NaN", "1e300"] {
            let error = patience(text).unwrap_err();
            assert!(error.to_string().contains("such as 60"), "{text}: {error}");
        }
    }

    #[test]
    fn every_variable_is_read() {
        let config = read(&[
            ("TFP_DEVICE_TYPE", "GPU"),
            ("TFP_NUM_DEVICES", "2"),
            ("TFP_NUM_THREADS", "3"),
            ("TFP_MEMORY_LIMIT", "64M"),
            ("TFP_DISABLE", "1"),
            ("TFP_FAULT", "panic:Relu"),
        ])
        .unwrap();
        assert_eq!(config.names.device_type, "GPU");
        assert_eq!((config.names.name.as_str(), config.devices), ("TFP", 2));
        assert_eq!(config.threads.get(), 3);
        assert_eq!(config.memory_limit, Some(64 << 20));
        assert!(config.disabled);
        assert_eq!(config.fault.unwrap().kind, FaultKind::Panic);
        assert!(!read(&[("TFP_DISABLE", "0")]).unwrap().disabled);
        assert!(config.fusion && !read(&[("TFP_FUSION", "0")]).unwrap().fusion);
    }

    #[test]
    fn nonsense_is_named() {
        for (name, value) in [
            ("TFP_DEVICE_TYPE", "my-device"),
            ("TFP_NUM_DEVICES", "-1"),
            ("TFP_NUM_DEVICES", "65"),
            ("TFP_NUM_THREADS", "0"),
            ("TFP_MEMORY_LIMIT", "99999999999G"),
            ("TFP_MEMORY_LIMIT", "lots"),
            ("TFP_FAULT", "Relu"),
        ] {
            let message = read(&[(name, value)]).unwrap_err().to_string();
            assert!(message.contains(name), "{message}");
        }
    }
}
