//! TensorFlow's settings, as a serialized `ConfigProto`.

use std::fmt;
use std::time::Duration;

use tfp_wire::Writer;

/// What a session or an eager context is set to: a `ConfigProto` that is written field by field.
///
/// A setting that is given twice has the later value. For a field without a method,
/// write a message and give it to [`Config::merge`]. The source of each field's meaning is TensorFlow's
/// `config.proto`.
///
/// ```no_run
/// # use tfp_core::{Config, Graph, Result, Session, SessionOptions};
/// # fn main() -> Result<()> {
/// let config = Config::new().threads(2).parallel_ops(1).soft_placement(true);
/// let options = SessionOptions { config, ..SessionOptions::default() };
/// let session = Session::with_options(&Graph::new()?, &options)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Config(Vec<u8>);

/// Milliseconds of a duration, at least 1: TensorFlow takes 0 for no limit.
pub(crate) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis())
        .unwrap_or(i64::MAX)
        .max(1)
}

impl Config {
    /// TensorFlow's defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn with(mut self, write: impl FnOnce(&mut Writer)) -> Self {
        let mut writer = Writer::new();
        write(&mut writer);
        self.0.extend_from_slice(&writer.into_bytes());
        self
    }

    /// The number of devices of a kind, such as `CPU`.
    #[must_use]
    pub fn device_count(self, kind: &str, count: u16) -> Self {
        self.with(|w| {
            w.message(1, |entry| {
                entry.bytes(1, kind.as_bytes());
                entry.int(2, count.into());
            });
        })
    }

    /// The threads that one op may use; 0 leaves it to TensorFlow (`intra_op_parallelism_threads`).
    #[must_use]
    pub fn threads(self, count: u16) -> Self {
        self.with(|w| w.int(2, count.into()))
    }

    /// The ops that may run at the same time; 0 leaves it to TensorFlow
    /// (`inter_op_parallelism_threads`).
    #[must_use]
    pub fn parallel_ops(self, count: u16) -> Self {
        self.with(|w| w.int(5, count.into()))
    }

    /// The calling thread runs the ops of a session, one after the other, where they can't wait: no thread
    /// has to wake. It is the counterpart of [`Config::parallel_ops`]; the later of both counts.
    #[must_use]
    pub fn in_calling_thread(self) -> Self {
        self.with(|w| w.int(5, -1))
    }

    /// Whether an op goes to another device where its own has no kernel for it.
    #[must_use]
    pub fn soft_placement(self, allow: bool) -> Self {
        self.with(|w| w.int(7, allow.into()))
    }

    /// Whether TensorFlow logs the device of each op.
    #[must_use]
    pub fn log_placement(self, log: bool) -> Self {
        self.with(|w| w.int(8, log.into()))
    }

    /// How long a run that blocks may take, unless its own [`RunOptions`](crate::RunOptions) say
    /// otherwise: then it is [`Code::DeadlineExceeded`](crate::Code::DeadlineExceeded).
    #[must_use]
    pub fn operation_timeout(self, timeout: Duration) -> Self {
        self.with(|w| w.int(11, milliseconds(timeout)))
    }

    /// Whether TensorFlow's GPU takes memory as it needs it, not all at the start.
    #[must_use]
    pub fn grow_gpu_memory(self, grow: bool) -> Self {
        self.with(|w| w.message(6, |gpu| gpu.int(4, grow.into())))
    }

    /// The part of a GPU's memory that TensorFlow's GPU may take, above 0 and up to 1.
    #[must_use]
    pub fn gpu_memory_fraction(self, fraction: f64) -> Self {
        self.with(|w| w.message(6, |gpu| gpu.double(1, fraction)))
    }

    /// Whether graphs are optimized before they run: constants folded, ops fused.
    #[must_use]
    pub fn optimize(self, optimize: bool) -> Self {
        self.with(|w| {
            w.message(10, |graph| {
                // `L1`, the default, or `L0`.
                graph.message(3, |options| options.int(3, if optimize { 0 } else { -1 }));
                graph.message(10, |rewrites| rewrites.int(19, (!optimize).into()));
            });
        })
    }

    /// Adds the fields of a serialized `ConfigProto`.
    #[must_use]
    pub fn merge(mut self, config_proto: &[u8]) -> Self {
        self.0.extend_from_slice(config_proto);
        self
    }

    /// Returns the serialized `ConfigProto`; empty for TensorFlow's defaults.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Config {
    /// Takes a serialized `ConfigProto`.
    fn from(config_proto: Vec<u8>) -> Self {
        Self(config_proto)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Config of {} bytes", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_the_proto() {
        let config = Config::new()
            .device_count("CPU", 3)
            .threads(2)
            .parallel_ops(1)
            .soft_placement(true)
            .log_placement(true)
            .operation_timeout(Duration::from_millis(1500))
            .gpu_memory_fraction(0.5)
            .grow_gpu_memory(true)
            .optimize(false);
        // What Python's ConfigProto of these settings serializes to, each field by itself.
        let expected = [
            "0a070a034350551003",
            "1002",
            "2801",
            "3801",
            "4001",
            "58dc0b",
            "320909000000000000e03f",
            "32022001",
            "52121a0b18ffffffffffffffffff015203980101",
        ];
        let found: String = config
            .as_bytes()
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(found, expected.concat());
    }

    #[test]
    fn a_negative_count_of_threads_is_the_callers() {
        let config = Config::new().parallel_ops(2).in_calling_thread();
        let expected = b"\x28\x02\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(config.as_bytes(), expected);
    }

    #[test]
    fn a_timeout_is_never_none() {
        assert_eq!(milliseconds(Duration::ZERO), 1);
        assert_eq!(milliseconds(Duration::MAX), i64::MAX);
    }
}
