//! What the processor reads of the GPU's memory, and how it avoids that.
//!
//! A processor reads a card's own memory about a thousand times more slowly than its own, but writes it fast. So a
//! kernel of the CPU gets copies of large inputs, which the GPU makes, and its outputs are copied back.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tfp_bindings::{Context, Error, Result, Tensor};
use tfp_gpu::Gpu;
use tfp_kernels::base::def::{Call, Inputs, KernelDef, Spec, TensorMut, TensorRef};

use crate::gpu::{self, failed, far, quoted};
use crate::views::refused;

/// Ops that read as many bytes of their inputs as they write, or none.
const PARTIAL: &[&str] = &["GatherNd", "GatherV2", "Slice", "StridedSlice"];
/// Ops that read not a value of their inputs.
const BLIND: &[&str] = &["OnesLike", "ZerosLike"];

/// How many times as fast a copy is as reading, at least: it is of all bytes.
const GAIN: usize = 100;

/// What the processor did with the GPU's memory for an op, in bytes.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    calls: AtomicU64,
    read: AtomicU64,
    largest: AtomicU64,
    copied: AtomicU64,
}

impl Touched {
    /// Counts a call that read and copied as much.
    pub(crate) fn count(&self, read: usize, copied: usize) {
        let (read, copied) = (read as u64, copied as u64);
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.read.fetch_add(read, Ordering::Relaxed);
        self.largest.fetch_max(read, Ordering::Relaxed);
        self.copied.fetch_add(copied, Ordering::Relaxed);
    }
}

static TABLE: Mutex<BTreeMap<String, &'static Touched>> = Mutex::new(BTreeMap::new());

/// The counts of an op, which stay until the process ends.
pub(crate) fn touched(op: &str) -> &'static Touched {
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = table.get(op) {
        return found;
    }
    let made: &'static Touched = Box::leak(Box::default());
    table.insert(op.to_owned(), made);
    made
}

/// What `tfp_plugin.check` prints of GPUs, as JSON: what the configuration asks for, all GPUs, the ops with a body, and
/// the ops that the processor computed with the GPU's memory.
pub fn report() -> String {
    gpu::report(&counts())
}

/// The counts of all ops that have some, as JSON.
fn counts() -> String {
    let table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let used = table.iter().filter(|(_, each)| read(&each.calls) > 0);
    let rows = used.map(|(op, each)| {
        format!(
            "{}:{{\"calls\":{},\"read\":{},\"largest\":{},\"copied\":{}}}",
            quoted(op),
            read(&each.calls),
            read(&each.read),
            read(&each.largest),
            read(&each.copied),
        )
    });
    format!("{{{}}}", rows.collect::<Vec<_>>().join(","))
}

/// Memory of the host for a copy, at a multiple of 64 bytes.
pub(crate) struct Room {
    data: Vec<u8>,
    skip: usize,
    bytes: usize,
}

impl Room {
    fn new(bytes: usize) -> Self {
        const LINE: usize = 64;
        // Kernels read whole vectors.
        let data = vec![0; bytes.next_multiple_of(LINE) + LINE];
        let skip = data.as_ptr().align_offset(LINE).min(LINE);
        Self { data, skip, bytes }
    }

    pub(crate) fn all(&self) -> &[u8] {
        &self.data[self.skip..self.skip + self.bytes]
    }

    fn all_mut(&mut self) -> &mut [u8] {
        &mut self.data[self.skip..self.skip + self.bytes]
    }
}

/// A copy of bytes that the processor reads slowly where they are, and which are many; `None` for others.
fn copied(gpu: &Gpu, bytes: &[u8]) -> Result<Option<Room>> {
    if !gpu.is_many(bytes.len()) {
        return Ok(None);
    }
    let mut room = Room::new(bytes.len());
    let read = gpu.read(bytes.as_ptr() as usize, room.all_mut());
    Ok(read.map_err(|problem| failed(&problem))?.then_some(room))
}

/// Copies bytes within a device's memory, or from there to the host's, in the fastest way that there is.
///
/// # Errors
/// If the sides differ in length, the GPU has not enough memory, or is lost.
pub fn copy(from: &[u8], to: &mut [u8]) -> Result<()> {
    if from.len() != to.len() {
        return Err(Error::internal("a copy has sides of different lengths"));
    }
    let read = far().map(|gpu| gpu.read(from.as_ptr() as usize, to));
    if !read
        .transpose()
        .map_err(|problem| failed(&problem))?
        .unwrap_or(false)
    {
        to.copy_from_slice(from);
    }
    Ok(())
}

/// The dimensions and a copy of an input of TensorFlow's kernel for the CPU, if the processor reads it slowly where it is.
pub(crate) fn on_host(op: &str, input: &Tensor) -> Result<Option<(Vec<i64>, Room)>> {
    let (Some(gpu), Some(_)) = (far(), input.data_type().size()) else {
        return Ok(None);
    };
    let bytes = input.bytes()?;
    if !gpu.owns(bytes.as_ptr() as usize, bytes.len()) {
        return Ok(None);
    }
    let room = copied(gpu, bytes)?;
    match room {
        Some(_) => touched(op).count(0, bytes.len()),
        None => touched(op).count(bytes.len(), 0),
    }
    let dims = input.dims().map(|dim| i64::try_from(dim).unwrap_or(-1));
    Ok(room.map(|room| (dims.collect(), room)))
}

/// Whether an output should be in the GPU's memory, and this result is not.
pub(crate) fn belongs_to_gpu(context: &Context<'_>, index: usize, result: &Tensor) -> Result<bool> {
    let (Some(gpu), Some(_)) = (far(), result.data_type().size()) else {
        return Ok(false);
    };
    let bytes = result.bytes()?;
    let is_large = gpu.is_many(bytes.len());
    Ok(is_large
        && !context.is_host_output(index)?
        && !gpu.owns(bytes.as_ptr() as usize, bytes.len()))
}

/// Bytes that a kernel reads of an input in the GPU's memory, where it reads them.
fn bytes_read(gpu: &Gpu, op: &str, input: &[u8], written: usize) -> usize {
    if BLIND.contains(&op) || !gpu.owns(input.as_ptr() as usize, input.len()) {
        return 0;
    }
    if PARTIAL.contains(&op) {
        return input.len().min(written);
    }
    input.len()
}

/// Runs the CPU's kernel. Where the processor reads the GPU's memory slowly, it gets copies of large tensors.
///
/// # Errors
/// What the kernel refuses; if the GPU has not enough memory, or is lost.
#[inline(never)]
pub(crate) fn run(
    gpu: &Gpu,
    def: &'static KernelDef,
    call: &mut Call<'_>,
    touched: &Touched,
) -> Result<()> {
    let written: usize = call
        .outputs
        .iter_mut()
        .map(|output| output.bytes_mut().len())
        .sum();
    let (mut read, mut moved) = (0, 0);
    let mut inputs = Vec::with_capacity(call.inputs.tensors.len());
    for tensor in call.inputs.tensors {
        let bytes = tensor.bytes();
        let few = bytes_read(gpu, def.op, bytes, written);
        let room = if few > bytes.len() / GAIN {
            copied(gpu, bytes)?
        } else {
            None
        };
        match &room {
            Some(_) => moved += bytes.len(),
            None => read += few,
        }
        inputs.push(room);
    }
    // What is forwarded is in an output, and a kernel may read what it has written.
    let forwarded = call.inputs.tensors.iter().any(TensorRef::is_forwarded);
    let mut outputs = Vec::with_capacity(call.outputs.len());
    for tensor in call.outputs.iter_mut() {
        let bytes = tensor.bytes_mut();
        let owned = gpu.owns(bytes.as_ptr() as usize, bytes.len());
        let room = if !owned || !gpu.is_many(bytes.len()) {
            None
        } else if forwarded {
            copied(gpu, bytes)?
        } else {
            Some(Room::new(bytes.len()))
        };
        if forwarded && owned {
            match &room {
                Some(_) => moved += bytes.len(),
                None => read += bytes.len(),
            }
        }
        outputs.push(room);
    }
    if read + moved > 0 {
        touched.count(read, moved);
    }
    if inputs.iter().chain(&outputs).all(Option::is_none) {
        return (def.run)(call).map_err(refused);
    }
    let specs = call.inputs.tensors.iter();
    let specs = specs.map(|tensor| Spec::new(tensor.dtype(), *tensor.shape()));
    let specs = specs
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(refused)?;
    let tensors = call.inputs.tensors.iter().zip(specs.iter().zip(&inputs));
    let tensors = tensors.map(|(tensor, (spec, room))| match room {
        Some(room) => TensorRef::new(spec, room.all()),
        None => Ok(*tensor),
    });
    let tensors = tensors
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(refused)?;
    let specs = call.outputs.iter();
    let specs = specs.map(|tensor| Spec::new(tensor.dtype(), *tensor.shape()));
    let specs = specs
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(refused)?;
    {
        let sides = call.outputs.iter_mut().zip(specs.iter().zip(&mut outputs));
        let made = sides.map(|(tensor, (spec, room))| match room {
            Some(room) => TensorMut::new(spec, room.all_mut()),
            None => TensorMut::new(spec, tensor.bytes_mut()),
        });
        let mut made = made
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(refused)?;
        let mut copy = Call {
            inputs: Inputs {
                tensors: &tensors,
                attrs: call.inputs.attrs,
            },
            outputs: &mut made,
            scratch: call.scratch,
            parallel: call.parallel,
            state: call.state,
        };
        (def.run)(&mut copy).map_err(refused)?;
    }
    for (tensor, room) in call.outputs.iter_mut().zip(&outputs) {
        if let Some(room) = room {
            tensor.bytes_mut().copy_from_slice(room.all());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_aligned_and_as_long_as_asked() {
        for bytes in [0, 1, 64, 100, 4096] {
            let mut room = Room::new(bytes);
            room.all_mut().fill(7);
            assert_eq!(room.all(), vec![7; bytes]);
            assert_eq!(room.all().as_ptr() as usize % 64, 0);
        }
    }

    #[test]
    fn calls_are_counted_by_op() {
        touched("Sort").count(10, 0);
        touched("Sort").count(4, 100);
        let text = counts();
        let expected = r#""Sort":{"calls":2,"read":14,"largest":10,"copied":100}"#;
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn without_a_gpu_the_processor_copies() {
        let mut to = [0; 3];
        copy(&[1, 2, 3], &mut to).unwrap();
        assert_eq!(to, [1, 2, 3]);
        assert!(copy(&[1, 2], &mut to).is_err());
    }
}
