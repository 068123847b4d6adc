//! The profiler: an event per kernel that ran while TensorFlow was profiling.
//!
//! While nobody is, a kernel pays for one load of a flag.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tfp_bindings::profiler::Profiler;
use tfp_bindings::proto::xspace::{self, Event, Line, Plane, Stat};
use tfp_bindings::{Construction, Context, Kernel, Result};

use crate::gpu;

/// Most events that are kept; what happens after that many is only counted.
const MOST: usize = 1 << 20;

static ON: AtomicBool = AtomicBool::new(false);

static RECORD: Mutex<Option<Record>> = Mutex::new(None);

/// What happened since the profiling started.
struct Record {
    start: Instant,
    start_ns: i64,
    events: Vec<Happened>,
    dropped: i64,
}

/// One run of a kernel.
struct Happened {
    device: i32,
    thread: i64,
    op: String,
    node: String,
    begin: Instant,
    end: Instant,
    shapes: String,
    bytes: i64,
    /// Nanoseconds that the GPU worked; 0 if the CPU did.
    gpu: i64,
}

fn record<T>(body: impl FnOnce(&mut Option<Record>) -> T) -> T {
    body(&mut RECORD.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The number of this thread, from 1 in the order of first use.
fn thread() -> i64 {
    static NEXT: AtomicI64 = AtomicI64::new(1);
    thread_local! {
        static NUMBER: Cell<i64> = const { Cell::new(0) };
    }
    NUMBER
        .try_with(|number| {
            if number.get() == 0 {
                number.set(NEXT.fetch_add(1, Ordering::Relaxed));
            }
            number.get()
        })
        .unwrap_or(0)
}

/// A kernel whose runs are recorded.
pub struct Profiled<K> {
    kernel: K,
    op: Box<str>,
    node: Box<str>,
}

impl<K: Kernel> Kernel for Profiled<K> {
    fn new(node: &Construction) -> Result<Self> {
        Ok(Self {
            kernel: K::new(node)?,
            op: node.op().into(),
            node: node.name().into(),
        })
    }

    #[inline]
    fn compute(&self, context: &mut Context<'_>) -> Result<()> {
        if ON.load(Ordering::Relaxed) {
            self.compute_recorded(context)
        } else {
            self.kernel.compute(context)
        }
    }
}

impl<K: Kernel> Profiled<K> {
    #[cold]
    fn compute_recorded(&self, context: &mut Context<'_>) -> Result<()> {
        // Afterwards an input may be gone.
        let (shapes, bytes) = describe(context);
        let device = context.device_id();
        gpu::worked();
        let begin = Instant::now();
        let result = self.kernel.compute(context);
        let end = Instant::now();
        let gpu = i64::try_from(gpu::worked()).unwrap_or(0);
        let happened = || Happened {
            device,
            thread: thread(),
            op: self.op.to_string(),
            node: self.node.to_string(),
            begin,
            end,
            shapes,
            bytes,
            gpu,
        };
        record(|record| {
            if let Some(record) = record {
                if record.events.len() < MOST {
                    record.events.push(happened());
                } else {
                    record.dropped += 1;
                }
            }
        });
        result
    }
}

/// Shapes and bytes of the inputs.
fn describe(context: &Context<'_>) -> (String, i64) {
    let (mut shapes, mut bytes) = (String::from("("), 0);
    for index in 0..context.inputs() {
        let Ok(tensor) = context.input(index) else {
            continue;
        };
        let separator = if index == 0 { "" } else { ", " };
        // Writing to a string never fails.
        let _ = write!(shapes, "{separator}{}[", tensor.data_type());
        for (axis, dim) in tensor.dims().enumerate() {
            let _ = write!(shapes, "{}{dim}", if axis == 0 { "" } else { "," });
        }
        shapes.push(']');
        let size = tensor.data_type().size().unwrap_or(0);
        bytes += i64::try_from(tensor.elements().saturating_mul(size)).unwrap_or(0);
    }
    shapes.push(')');
    (shapes, bytes)
}

/// Records the runs of all kernels of a device type.
pub struct KernelProfiler {
    device_type: Option<String>,
}

impl KernelProfiler {
    /// For devices of this type; for none, in a load that offers no devices.
    pub fn new(device_type: Option<String>) -> Self {
        Self { device_type }
    }

    fn planes(device_type: &str, found: Record) -> Vec<Plane> {
        let picoseconds = |from: Instant, to: Instant| {
            i64::try_from(to.saturating_duration_since(from).as_nanos())
                .unwrap_or(0)
                .saturating_mul(1000)
        };
        let mut lines: BTreeMap<i32, BTreeMap<i64, Vec<Event>>> = BTreeMap::new();
        for happened in found.events {
            let mut event = Event {
                offset_ps: picoseconds(found.start, happened.begin),
                duration_ps: picoseconds(happened.begin, happened.end),
                stats: vec![
                    (
                        "tf_op".to_owned(),
                        Stat::Text(format!("{}:{}", happened.node, happened.op)),
                    ),
                    ("tensor_shapes".to_owned(), Stat::Text(happened.shapes)),
                    ("bytes_accessed".to_owned(), Stat::Int(happened.bytes)),
                ],
                name: happened.op,
            };
            if happened.gpu > 0 {
                let stat = ("gpu_nanoseconds".to_owned(), Stat::Int(happened.gpu));
                event.stats.push(stat);
            }
            let threads = lines.entry(happened.device).or_default();
            threads.entry(happened.thread).or_default().push(event);
        }
        let planes = lines.into_iter().map(|(device, threads)| Plane {
            id: i64::from(device) + 1,
            name: format!("/device:{device_type}:{device}"),
            lines: threads
                .into_iter()
                .map(|(thread, events)| Line {
                    id: thread,
                    name: if found.dropped == 0 {
                        format!("kernels, thread {thread}")
                    } else {
                        format!("kernels, thread {thread} ({} more in all)", found.dropped)
                    },
                    timestamp_ns: found.start_ns,
                    events,
                })
                .collect(),
        });
        planes.collect()
    }
}

impl Profiler for KernelProfiler {
    fn start(&self) -> Result<()> {
        if self.device_type.is_none() {
            return Ok(());
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |time| i64::try_from(time.as_nanos()).unwrap_or(0));
        record(|record| {
            *record = Some(Record {
                start: Instant::now(),
                start_ns: now,
                events: Vec::new(),
                dropped: 0,
            });
        });
        ON.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn stop(&self) -> Result<()> {
        ON.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn collect(&self) -> Result<Vec<u8>> {
        let Some(device_type) = &self.device_type else {
            return Ok(Vec::new());
        };
        let found = record(Option::take);
        let planes = found.map(|found| Self::planes(device_type, found));
        Ok(planes.map_or_else(Vec::new, |planes| xspace::to_bytes(&planes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn happened(device: i32, thread: i64, start: Instant) -> Happened {
        Happened {
            device,
            thread,
            op: "Relu".into(),
            node: "layer/relu".into(),
            begin: start + std::time::Duration::from_micros(3),
            end: start + std::time::Duration::from_micros(5),
            shapes: "(float32[2])".into(),
            bytes: 8,
            gpu: 0,
        }
    }

    #[test]
    fn a_plane_per_device_and_a_line_per_thread() {
        let start = Instant::now();
        let found = Record {
            start,
            start_ns: 77,
            events: vec![
                happened(1, 4, start),
                happened(0, 4, start),
                happened(0, 2, start),
                happened(0, 2, start),
            ],
            dropped: 0,
        };
        let planes = KernelProfiler::planes("TFP", found);
        let names: Vec<_> = planes.iter().map(|plane| plane.name.as_str()).collect();
        assert_eq!(names, ["/device:TFP:0", "/device:TFP:1"]);
        let counts: Vec<_> = planes[0]
            .lines
            .iter()
            .map(|l| (l.id, l.events.len()))
            .collect();
        assert_eq!(counts, [(2, 2), (4, 1)]);
        let event = &planes[1].lines[0].events[0];
        assert_eq!((event.offset_ps, event.duration_ps), (3_000_000, 2_000_000));
        assert_eq!(event.stats[0].1, Stat::Text("layer/relu:Relu".into()));
        assert_eq!(planes[1].lines[0].timestamp_ns, 77);
    }

    #[test]
    fn what_is_collected_is_gone() {
        let profiler = KernelProfiler::new(Some("TFP".into()));
        let other = KernelProfiler::new(None);
        profiler.start().unwrap();
        other.start().unwrap();
        let start = Instant::now();
        record(|record| record.as_mut().unwrap().events.push(happened(0, 1, start)));
        profiler.stop().unwrap();
        assert!(other.collect().unwrap().is_empty());
        assert!(!profiler.collect().unwrap().is_empty());
        assert!(profiler.collect().unwrap().is_empty());
    }
}
