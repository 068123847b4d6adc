//! What one run is told, and what it tells of itself.

use std::fmt;
use std::time::Duration;

use tfp_wire::{Reader, Writer};

use crate::base::config::milliseconds;
use crate::base::error::Result;

/// How a graph runs once: a `RunOptions` that is written field by field. A setting that is given twice
/// has the later value.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RunOptions(Vec<u8>);

impl RunOptions {
    /// TensorFlow's defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn with(mut self, number: u32, value: i64) -> Self {
        let mut writer = Writer::new();
        writer.int(number, value);
        self.0.extend_from_slice(&writer.into_bytes());
        self
    }

    /// Whether times and places of all ops are recorded; [`Fetched::metadata`](super::Fetched) has them
    /// then, see [`traced_nodes`].
    #[must_use]
    pub fn trace(self, trace: bool) -> Self {
        self.with(1, if trace { 3 } else { 0 })
    }

    /// How long the run may take; then it is
    /// [`Code::DeadlineExceeded`](crate::Code::DeadlineExceeded). TensorFlow counts milliseconds.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(2, milliseconds(timeout))
    }

    /// Whether the error of a device that is out of memory lists what holds it.
    #[must_use]
    pub fn report_allocations(self, report: bool) -> Self {
        self.with(7, report.into())
    }

    /// Adds the fields of a serialized `RunOptions`.
    #[must_use]
    pub fn merge(mut self, run_options: &[u8]) -> Self {
        self.0.extend_from_slice(run_options);
        self
    }

    /// Returns the serialized `RunOptions`; empty for TensorFlow's defaults.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for RunOptions {
    /// Takes a serialized `RunOptions`.
    fn from(run_options: Vec<u8>) -> Self {
        Self(run_options)
    }
}

impl fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunOptions of {} bytes", self.0.len())
    }
}

/// An op of a run that was traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedNode {
    /// The device, as `/job:localhost/replica:0/task:0/device:CPU:0`.
    pub device: String,
    /// The name of the node.
    pub name: String,
    /// What TensorFlow's timeline shows, such as `name = Op(inputs)`; may be empty.
    pub label: String,
    /// When the node began, since the Unix epoch.
    pub start: Duration,
    /// How long its kernel computed.
    pub compute: Duration,
    /// How long it took in all.
    pub total: Duration,
}

/// Reads the nodes of a run that was [traced](RunOptions::trace), in the order of TensorFlow.
///
/// # Errors
/// [`ErrorKind::Proto`](crate::ErrorKind::Proto) for bytes that are not a `RunMetadata`.
pub fn traced_nodes(run_metadata: &[u8]) -> Result<Vec<TracedNode>> {
    let mut nodes = Vec::new();
    for field in Reader::new("RunMetadata", run_metadata) {
        let (1, stats) = field? else { continue };
        for field in Reader::new("StepStats", stats.bytes()?) {
            if let (1, device) = field? {
                read_device(device.bytes()?, &mut nodes)?;
            }
        }
    }
    Ok(nodes)
}

fn read_device(stats: &[u8], nodes: &mut Vec<TracedNode>) -> Result<()> {
    let (first, mut device) = (nodes.len(), String::new());
    for field in Reader::new("DeviceStepStats", stats) {
        let (number, field) = field?;
        match number {
            1 => device = field.text()?.to_owned(),
            2 => nodes.push(read_node(field.bytes()?)?),
            _ => {}
        }
    }
    for node in &mut nodes[first..] {
        node.device.clone_from(&device);
    }
    Ok(())
}

fn read_node(stats: &[u8]) -> Result<TracedNode> {
    let (mut name, mut label) = (String::new(), String::new());
    // Of a time there are microseconds and, in newer versions, nanoseconds.
    let (mut micros, mut nanos) = ([0_u64; 4], [0_u64; 4]);
    for field in Reader::new("NodeExecStats", stats) {
        let (number, field) = field?;
        match number {
            1 => name = field.text()?.to_owned(),
            8 => label = field.text()?.to_owned(),
            2..=5 => micros[number as usize - 2] = field.int()?.cast_unsigned(),
            13..=16 => nanos[number as usize - 13] = field.int()?.cast_unsigned(),
            _ => {}
        }
    }
    let time = |index: usize| match nanos[index] {
        0 => Duration::from_micros(micros[index]),
        count => Duration::from_nanos(count),
    };
    let [start, begin, end, total] = [0, 1, 2, 3].map(time);
    Ok(TracedNode {
        device: String::new(),
        name,
        label,
        start,
        compute: end.saturating_sub(begin),
        total,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_the_proto() {
        let options = RunOptions::new()
            .trace(true)
            .timeout(Duration::from_millis(250))
            .report_allocations(true);
        // What Python's RunOptions of these settings serializes to.
        assert_eq!(
            options.as_bytes(),
            [0x08, 3, 0x10, 0xfa, 0x01, 0x38, 1],
            "{options:?}"
        );
    }

    #[test]
    fn metadata_that_is_damaged_is_an_error() {
        assert!(traced_nodes(&[0x0a, 5, 1]).is_err());
        assert!(traced_nodes(&[]).is_ok_and(|nodes| nodes.is_empty()));
    }
}
