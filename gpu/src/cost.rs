//! When a call is worth a submission.
//!
//! The rule: a call goes to the GPU if the CPU's kernel would take longer than a submission and than shaders take to
//! move the bytes, which is slow over a bus. The CPU is taken to do 64 operations per nanosecond, and to move 10 bytes;
//! less where it reads the device's memory more slowly.

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use crate::problem::Problem;
use crate::shader::Shader;
use crate::work::{Dispatch, Place, Plan, Region};
use crate::{Gpu, Kind, ops};

/// What a device costs, measured when it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    /// Nanoseconds from the begin of a submission of next to nothing to its end.
    pub submission: f64,
    /// Nanoseconds for a byte of device memory that the host reads.
    pub host_read: f64,
    /// Nanoseconds for a byte of device memory that the host writes.
    pub host_write: f64,
    /// Nanoseconds for a byte of device memory that a shader reads or writes.
    pub device_byte: f64,
}

/// Operations of the CPU's kernels per nanosecond.
const CPU_FLOPS: f64 = 64.0;
/// Nanoseconds of the CPU's kernels per byte of memory that is the host's own.
const CPU_BYTE: f64 = 0.1;

impl Costs {
    /// Whether the CPU's kernel would take longer than a submission and the device's way to the bytes.
    pub(crate) fn worth(&self, plan: &Plan) -> bool {
        let buffers = plan
            .dispatches
            .iter()
            .flat_map(|dispatch| &dispatch.buffers);
        // A shader may see a tensor at several bindings.
        let tensors: BTreeMap<usize, usize> = buffers
            .filter_map(|region| match region.place {
                Place::Tensor(address) => Some((address, region.bytes)),
                Place::Scratch(_) => None,
            })
            .collect();
        let bytes: usize = tensors.values().sum();
        let read = bytes as f64 * self.host_read.max(CPU_BYTE);
        let compute = plan.flops as f64 / CPU_FLOPS;
        read + compute > self.submission + bytes as f64 * self.device_byte
    }
}

/// Bytes that the host reads and writes to measure.
const SAMPLE: usize = 1 << 16;
/// Bytes that the device reads, and as many that it writes.
const DEVICE_SAMPLE: usize = 1 << 22;
const TRIES: usize = 5;

/// The shortest of a few tries, in nanoseconds.
fn shortest(mut work: impl FnMut() -> Result<(), Problem>) -> Result<f64, Problem> {
    let mut best = f64::INFINITY;
    for _ in 0..TRIES {
        let start = Instant::now();
        work()?;
        best = best.min(start.elapsed().as_nanos() as f64);
    }
    Ok(best)
}

#[allow(unsafe_code)]
pub(crate) fn measure(gpu: &Gpu) -> Result<Costs, Problem> {
    let block = gpu.allocate(2 * DEVICE_SAMPLE)?;
    // Negates the first bytes of the block into those after the sample.
    let negation = |bytes: usize| {
        let region = |start: usize| Region {
            place: Place::Tensor(block.as_ptr() as usize + start),
            bytes,
        };
        let vectors = bytes / 16;
        let mut buffers = vec![region(0); 12];
        buffers.push(region(DEVICE_SAMPLE));
        Plan::one(
            Dispatch {
                shader: Shader::Map4,
                constants: ops::negation(),
                words: ops::whole_words(vectors as u32),
                buffers,
                groups: [vectors.div_ceil(256) as u32, 1, 1],
            },
            0,
        )
    };
    let (plan, large) = (negation(256), negation(DEVICE_SAMPLE));
    let mut words = vec![0_u64; SAMPLE / 8];
    // SAFETY: the block is new and nobody else's.
    let submission = shortest(|| unsafe { gpu.opened.run(&plan) }.map(|_| ()));
    // SAFETY: as above.
    let moved = shortest(|| unsafe { gpu.opened.run(&large) }.map(|_| ()));
    let target = block.as_ptr().cast::<u64>();
    let host_write = shortest(|| {
        // SAFETY: the block holds as many bytes, at a multiple of 64, and is nobody else's.
        unsafe { target.copy_from_nonoverlapping(words.as_ptr(), words.len()) };
        Ok(())
    });
    let host_read = shortest(|| {
        // SAFETY: as above.
        unsafe {
            words
                .as_mut_ptr()
                .copy_from_nonoverlapping(target, words.len())
        };
        std::hint::black_box(&words);
        Ok(())
    });
    // SAFETY: the block is this function's, and the submissions have ended.
    unsafe { gpu.free(block) };
    let submission = submission?;
    Ok(Costs {
        submission,
        device_byte: (moved? - submission).max(0.0) / (2 * DEVICE_SAMPLE) as f64,
        host_read: host_read? / SAMPLE as f64,
        host_write: host_write? / SAMPLE as f64,
    })
}

/// What a device reaches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peaks {
    /// Billions of multiplications and additions of float32 per second.
    pub flops: f64,
    /// Billions of bytes that a copy reads and writes per second.
    pub copy: f64,
}

/// Runs both shaders until the clock is fast, then takes the shortest time.
#[allow(unsafe_code)]
pub(crate) fn peaks(gpu: &Gpu) -> Result<Peaks, Problem> {
    const TURNS: u32 = 256;
    const WARM: Duration = Duration::from_millis(300);
    let software = gpu.description.kind == Kind::Software;
    let vectors: u32 = if software { 1 << 14 } else { 1 << 23 };
    let bytes = vectors as usize * 16;
    let blocks = [gpu.allocate(bytes)?, gpu.allocate(bytes)?];
    let region = |block: NonNull<u8>| Region {
        place: Place::Tensor(block.as_ptr() as usize),
        bytes,
    };
    let numbers = vec![0.5_f32; bytes / 4];
    // SAFETY: the block holds as many numbers, at a multiple of 64, and is this function's.
    unsafe {
        let target = blocks[0].as_ptr().cast::<f32>();
        target.copy_from_nonoverlapping(numbers.as_ptr(), numbers.len());
    }
    let mut rates = [0.0; 2];
    for (kind, rate) in rates.iter_mut().enumerate() {
        let count = if kind == 0 { vectors / 16 } else { vectors };
        let dispatch = Dispatch {
            shader: Shader::Peak,
            constants: vec![kind as u32],
            words: vec![count, TURNS],
            buffers: blocks.map(region).to_vec(),
            groups: [count / 256, 1, 1],
        };
        let plan = Plan::one(dispatch, 0);
        let begin = Instant::now();
        let mut best = f64::INFINITY;
        while best.is_infinite() || begin.elapsed() < WARM {
            let start = Instant::now();
            // SAFETY: both blocks are this function's.
            let device = unsafe { gpu.opened.run(&plan) }?;
            let wall = start.elapsed().as_nanos() as f64;
            best = best.min(device.map_or(wall, |device| device as f64));
        }
        let work = if kind == 0 {
            // 32 vectors of 4 multiplications and additions per turn.
            f64::from(count) * f64::from(TURNS) * 256.0
        } else {
            2.0 * bytes as f64
        };
        *rate = work / best;
    }
    for block in blocks {
        // SAFETY: as above, and the submissions have ended.
        unsafe { gpu.free(block) };
    }
    Ok(Peaks {
        flops: rates[0],
        copy: rates[1],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_counts_once() {
        let costs = Costs {
            submission: 1000.0,
            host_read: 1.0,
            host_write: 0.0,
            device_byte: 0.5,
        };
        let plan = |bytes| {
            let region = Region {
                place: Place::Tensor(64),
                bytes,
            };
            let dispatch = Dispatch {
                shader: Shader::Map4,
                constants: ops::negation(),
                words: ops::whole_words(1),
                buffers: vec![region; 13],
                groups: [1, 1, 1],
            };
            Plan::one(dispatch, 0)
        };
        assert!(!costs.worth(&plan(2000)));
        assert!(costs.worth(&plan(2001)));
    }
}
