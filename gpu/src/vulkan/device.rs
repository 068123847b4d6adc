//! An opened device: its memory, its pipelines and its queue.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ash::vk;

use super::instance::{Description, Library, cached, call, placed};
use super::memory::Blocks;
use super::pipeline::Pipelines;
use super::submit::Queue;
use crate::Options;
use crate::problem::Problem;
use crate::work::{Plan, Transfer};

/// Vulkan's device, with what its parts need of it.
pub struct Device {
    pub raw: ash::Device,
    pub family: u32,
    pub memory_type: u32,
    pub memory_bytes: usize,
}

/// An opened device. Threads may call it side by side.
pub struct Opened {
    device: Device,
    blocks: Blocks,
    pipelines: Pipelines,
    queue: Queue,
    /// The type of memory for copies to the host, and blocks of it that no thread uses.
    staging: Option<u32>,
    stages: Mutex<Vec<usize>>,
    pub limits: Limits,
    library: Arc<Library>,
}

/// Bytes of a block for copies to the host.
const STAGE: usize = 1 << 25;

/// What plans must keep to.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The offset of a buffer is a multiple of it.
    pub alignment: usize,
    /// Most bytes of a buffer.
    pub range: usize,
}

impl Opened {
    pub fn new(
        library: &Arc<Library>,
        physical: vk::PhysicalDevice,
        description: &Description,
        options: &Options,
    ) -> Result<Self, Problem> {
        let unusable = |reason: &str| Problem::Unusable {
            name: description.name.clone(),
            reason: reason.to_owned(),
        };
        if let Some(reason) = &description.unusable {
            return Err(unusable(reason));
        }
        let (family, bits) = library
            .family(physical)
            .ok_or_else(|| unusable("it has no queue that computes"))?;
        let (memory_type, memory_bytes) = placed(&library.memory(physical), options.placement)
            .ok_or_else(|| {
                unusable("it has not such memory that the host sees: turn on resizable BAR")
            })?;
        let priorities = [1.0];
        let queues = [vk::DeviceQueueCreateInfo::default()
            .queue_family_index(family)
            .queue_priorities(&priorities)];
        let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
        // SAFETY: the physical device is of this instance; the family is one of its families.
        let raw = unsafe { library.instance.create_device(physical, &info, None) }
            .map_err(call("vkCreateDevice"))?;
        let pipelines = match Pipelines::new(&raw) {
            Ok(pipelines) => pipelines,
            Err(problem) => {
                // SAFETY: the device is new; what `Pipelines::new` made before its error goes with it.
                unsafe { raw.destroy_device(None) };
                return Err(problem);
            }
        };
        // SAFETY: the device was created with one queue of this family.
        let queue = unsafe { raw.get_device_queue(family, 0) };
        let limits = library.properties(physical).limits;
        let period = (bits > 0).then_some(limits.timestamp_period);
        Ok(Self {
            device: Device {
                raw,
                family,
                memory_type,
                memory_bytes,
            },
            blocks: Blocks::default(),
            pipelines,
            queue: Queue::new(queue, period, options.patience),
            staging: cached(&library.memory(physical)).map(|(kind, _)| kind),
            stages: Mutex::default(),
            limits: Limits {
                alignment: usize::try_from(limits.min_storage_buffer_offset_alignment)
                    .unwrap_or(256),
                range: limits.max_storage_buffer_range as usize,
            },
            library: library.clone(),
        })
    }

    pub fn total(&self) -> usize {
        self.device.memory_bytes
    }

    pub fn used(&self) -> usize {
        self.blocks.used()
    }

    pub fn allocate(&self, bytes: usize) -> Result<NonNull<u8>, Problem> {
        self.blocks.allocate(&self.device, bytes)
    }

    pub fn is_lost(&self) -> bool {
        self.queue.is_lost()
    }

    pub fn set_patience(&mut self, patience: Duration) {
        self.queue.set_patience(patience);
    }

    /// A device that is lost may still write: its blocks stay until the process ends.
    ///
    /// # Safety
    /// Neither host nor device uses the block, but for a device that is lost.
    pub unsafe fn free(&self, address: NonNull<u8>) -> bool {
        let address = address.as_ptr() as usize;
        if self.is_lost() {
            return self.blocks.find(address, 1).is_some();
        }
        // SAFETY: what the caller promises, and no submission is left that could use the block.
        unsafe { self.blocks.free(&self.device, address) }
    }

    /// The offset in its block of these bytes, if one block holds all.
    pub fn offset(&self, address: usize, bytes: usize) -> Option<usize> {
        self.blocks.find(address, bytes).map(|view| view.offset)
    }

    /// Runs a plan to its end; returns the nanoseconds that the device worked, if it tells.
    ///
    /// # Safety
    /// Until it returns, nobody writes what the plan reads, nobody uses what it writes, and its blocks stay.
    pub unsafe fn run(&self, plan: &Plan) -> Result<Option<u64>, Problem> {
        // SAFETY: what the caller promises.
        unsafe {
            self.queue
                .run(&self.device, (&self.pipelines, &self.blocks), plan)
        }
    }
}

impl Opened {
    /// Copies bytes of a block to the host, or to another block or another part of it. `false` if one block does not
    /// hold all, or for the host without cached memory.
    pub fn read(&self, address: usize, to: &mut [u8]) -> Result<bool, Problem> {
        let target = to.as_ptr() as usize;
        if self.offset(address, to.len()).is_none() {
            return Ok(false);
        }
        if self.offset(target, to.len()).is_some() {
            let apart = address.abs_diff(target) >= to.len();
            // Shaders and copies want whole words.
            if !apart
                || !address.is_multiple_of(4)
                || !target.is_multiple_of(4)
                || !to.len().is_multiple_of(4)
            {
                return Ok(false);
            }
            let plan = Plan {
                copy: Some(Transfer {
                    from: address,
                    to: target,
                    bytes: to.len(),
                }),
                ..Plan::default()
            };
            // SAFETY: `to` is borrowed exclusively. What is read may be written by nobody meanwhile, or the bytes are as
            // undefined as those of any other copy.
            unsafe { self.run(&plan) }?;
            return Ok(true);
        }
        let Some(kind) = self.staging else {
            return Ok(false);
        };
        let kept = self
            .stages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let stage = match kept {
            Some(stage) => stage,
            None => self.blocks.allocate_of(&self.device, kind, STAGE)?.as_ptr() as usize,
        };
        for (number, part) in to.chunks_mut(STAGE).enumerate() {
            let plan = Plan {
                copy: Some(Transfer {
                    from: address + number * STAGE,
                    to: stage,
                    bytes: part.len(),
                }),
                ..Plan::default()
            };
            // SAFETY: the stage is this call's alone. What is read may be written by nobody meanwhile, or the
            // bytes are as undefined as those of any other copy.
            unsafe { self.run(&plan) }?;
            // SAFETY: the stage holds as many bytes, which the device has written.
            unsafe {
                part.as_mut_ptr()
                    .copy_from_nonoverlapping(stage as *const u8, part.len())
            };
        }
        let mut stages = self.stages.lock().unwrap_or_else(PoisonError::into_inner);
        stages.push(stage);
        Ok(true)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: nobody else has the device any more; waiting makes it idle, or it is lost.
        unsafe {
            // A kernel that never ends would be waited for.
            if self.is_lost() || self.device.raw.device_wait_idle().is_err() {
                // The device stays, and so does its instance.
                std::mem::forget(self.library.clone());
                return;
            }
            self.queue.destroy(&self.device.raw);
            self.pipelines.destroy(&self.device.raw);
            self.blocks.clear(&self.device);
            self.device.raw.destroy_device(None);
        }
    }
}
