//! Submissions: a pool of command buffers, so that several threads may call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ash::vk;

use super::device::Device;
use super::instance::call;
use super::memory::{Blocks, View};
use super::pipeline::Pipelines;
use crate::problem::Problem;
use crate::work::{Dispatch, MAX_BUFFERS, MAX_WORDS, Place, Plan};

/// Most dispatches of a plan.
pub const MAX_DISPATCHES: usize = 32;
/// How long the host asks again and again before it sleeps.
const SPIN: Duration = Duration::from_micros(200);

/// What one submission needs.
struct Slot {
    pool: vk::CommandPool,
    commands: vk::CommandBuffer,
    fence: vk::Fence,
    descriptors: vk::DescriptorPool,
    sets: Vec<vk::DescriptorSet>,
    times: vk::QueryPool,
    /// Address and size of the scratch memory.
    scratch: Option<(usize, usize)>,
    /// Whether a submission has not ended, as far as is known.
    pending: bool,
}

/// The queue of a device and the slots that no thread uses now.
pub struct Queue {
    queue: Mutex<vk::Queue>,
    idle: Mutex<Vec<Slot>>,
    /// Nanoseconds per tick, if the queue writes timestamps.
    period: Option<f32>,
    /// How long a kernel may take.
    patience: Duration,
    /// Whether a submission ended with an error: the device may be at work for ever.
    lost: AtomicBool,
}

impl Queue {
    pub fn new(queue: vk::Queue, period: Option<f32>, patience: Duration) -> Self {
        Self {
            queue: Mutex::new(queue),
            idle: Mutex::default(),
            period,
            patience,
            lost: AtomicBool::new(false),
        }
    }

    /// Whether a submission ended with an error: the device may use its memory for ever.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// How long a kernel may take from now on.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Runs a plan to its end. Returns the nanoseconds that the device worked, if it tells.
    ///
    /// # Safety
    /// Until it returns, nobody writes what the plan reads, nobody uses what it writes, and its blocks stay.
    pub unsafe fn run(
        &self,
        device: &Device,
        (pipelines, blocks): (&Pipelines, &Blocks),
        plan: &Plan,
    ) -> Result<Option<u64>, Problem> {
        if plan.dispatches.len() > MAX_DISPATCHES {
            return Err(Problem::Internal("a plan has too many dispatches"));
        }
        if self.is_lost() {
            return Err(Problem::Lost("a submission before failed".into()));
        }
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let mut slot = match idle {
            Some(slot) => slot,
            None => Slot::new(device, pipelines)?,
        };
        // SAFETY: what the caller promises, and the slot is this thread's alone.
        let done = unsafe { self.run_in(&mut slot, device, (pipelines, blocks), plan) };
        if slot.pending || matches!(done, Err(Problem::Lost(_))) {
            // The device may still use the slot: it is not given back.
            self.lost.store(true, Ordering::Release);
        } else {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.push(slot);
        }
        done
    }

    /// # Safety
    /// As [`Queue::run`].
    unsafe fn run_in(
        &self,
        slot: &mut Slot,
        device: &Device,
        (pipelines, blocks): (&Pipelines, &Blocks),
        plan: &Plan,
    ) -> Result<Option<u64>, Problem> {
        let raw = &device.raw;
        slot.grow(device, blocks, plan.scratch)?;
        slot.write(&plan.data)?;
        let recorded = slot.record(device, (pipelines, blocks), plan, self.period.is_some());
        if recorded.is_err() {
            // SAFETY: the commands are not submitted.
            unsafe {
                raw.reset_command_buffer(slot.commands, vk::CommandBufferResetFlags::empty())
            }
            .map_err(call("vkResetCommandBuffer"))?;
        }
        recorded?;
        let buffers = [slot.commands];
        let submits = [vk::SubmitInfo::default().command_buffers(&buffers)];
        {
            let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: the lock is held, the commands are recorded, and the fence is not signalled.
            unsafe { raw.queue_submit(*queue, &submits, slot.fence) }
                .map_err(call("vkQueueSubmit"))?;
        }
        slot.pending = true;
        self.wait(raw, slot.fence)?;
        slot.pending = false;
        let fences = [slot.fence];
        // SAFETY: the submission has ended.
        unsafe { raw.reset_fences(&fences) }.map_err(call("vkResetFences"))?;
        let Some(period) = self.period else {
            return Ok(None);
        };
        let mut ticks = [0_u64; 2];
        // SAFETY: the submission that writes both queries has ended.
        unsafe {
            raw.get_query_pool_results(slot.times, 0, &mut ticks, vk::QueryResultFlags::TYPE_64)
        }
        .map_err(call("vkGetQueryPoolResults"))?;
        let passed = ticks[1].saturating_sub(ticks[0]);
        Ok(Some((passed as f64 * f64::from(period)) as u64))
    }

    fn wait(&self, raw: &ash::Device, fence: vk::Fence) -> Result<(), Problem> {
        let start = Instant::now();
        while start.elapsed() < SPIN {
            // SAFETY: the fence is alive.
            if unsafe { raw.get_fence_status(fence) }.map_err(call("vkGetFenceStatus"))? {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        let patience = u64::try_from(self.patience.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: the fence is alive.
        match unsafe { raw.wait_for_fences(&[fence], true, patience) } {
            Err(vk::Result::TIMEOUT) => Err(Problem::Lost(format!(
                "a kernel did not end in {:?}",
                self.patience
            ))),
            result => result.map_err(call("vkWaitForFences")),
        }
    }

    /// # Safety
    /// The device is idle, and nobody submits after.
    pub unsafe fn destroy(&self, raw: &ash::Device) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        for slot in idle.drain(..) {
            // SAFETY: what the caller promises; scratch memory is one of the blocks.
            unsafe { slot.destroy(raw) };
        }
    }
}

impl Slot {
    fn new(device: &Device, pipelines: &Pipelines) -> Result<Self, Problem> {
        let mut slot = Self {
            pool: vk::CommandPool::null(),
            commands: vk::CommandBuffer::null(),
            fence: vk::Fence::null(),
            descriptors: vk::DescriptorPool::null(),
            sets: Vec::new(),
            times: vk::QueryPool::null(),
            scratch: None,
            pending: false,
        };
        match slot.make(device, pipelines) {
            Ok(()) => Ok(slot),
            Err(problem) => {
                // SAFETY: nothing of the slot was submitted; Vulkan ignores null handles.
                unsafe { slot.destroy(&device.raw) };
                Err(problem)
            }
        }
    }

    fn make(&mut self, device: &Device, pipelines: &Pipelines) -> Result<(), Problem> {
        let raw = &device.raw;
        let info = vk::CommandPoolCreateInfo::default()
            .queue_family_index(device.family)
            .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER);
        // SAFETY: here and below, the device is alive and the structures live until the calls end.
        self.pool =
            unsafe { raw.create_command_pool(&info, None) }.map_err(call("vkCreateCommandPool"))?;
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.pool)
            .level(vk::CommandBufferLevel::PRIMARY)
            .command_buffer_count(1);
        // SAFETY: the pool was created above.
        let commands = unsafe { raw.allocate_command_buffers(&info) };
        let commands = commands.map_err(call("vkAllocateCommandBuffers"))?;
        self.commands = commands.first().copied().unwrap_or_default();
        let info = vk::FenceCreateInfo::default();
        // SAFETY: see above.
        self.fence = unsafe { raw.create_fence(&info, None) }.map_err(call("vkCreateFence"))?;
        let sizes = [vk::DescriptorPoolSize::default()
            .ty(vk::DescriptorType::STORAGE_BUFFER)
            .descriptor_count((MAX_BUFFERS * MAX_DISPATCHES) as u32)];
        let info = vk::DescriptorPoolCreateInfo::default()
            .max_sets(MAX_DISPATCHES as u32)
            .pool_sizes(&sizes);
        // SAFETY: see above.
        self.descriptors = unsafe { raw.create_descriptor_pool(&info, None) }
            .map_err(call("vkCreateDescriptorPool"))?;
        let layouts = [pipelines.set_layout; MAX_DISPATCHES];
        let info = vk::DescriptorSetAllocateInfo::default()
            .descriptor_pool(self.descriptors)
            .set_layouts(&layouts);
        // SAFETY: the pool was created above and holds as many sets.
        self.sets = unsafe { raw.allocate_descriptor_sets(&info) }
            .map_err(call("vkAllocateDescriptorSets"))?;
        let info = vk::QueryPoolCreateInfo::default()
            .query_type(vk::QueryType::TIMESTAMP)
            .query_count(2);
        // SAFETY: see above.
        self.times =
            unsafe { raw.create_query_pool(&info, None) }.map_err(call("vkCreateQueryPool"))?;
        Ok(())
    }

    fn grow(&mut self, device: &Device, blocks: &Blocks, bytes: usize) -> Result<(), Problem> {
        if self.scratch.is_some_and(|(_, found)| found >= bytes) || bytes == 0 {
            return Ok(());
        }
        if let Some((address, _)) = self.scratch.take() {
            // SAFETY: scratch memory is the slot's alone, and its last submission has ended.
            unsafe { blocks.free(device, address) };
        }
        let size = bytes.next_power_of_two();
        let address = blocks.allocate(device, size)?;
        self.scratch = Some((address.as_ptr() as usize, size));
        Ok(())
    }

    /// Writes numbers to the begin of the scratch memory.
    fn write(&self, data: &[u32]) -> Result<(), Problem> {
        if data.is_empty() {
            return Ok(());
        }
        let (address, _) = self
            .scratch
            .filter(|(_, bytes)| size_of_val(data) <= *bytes)
            .ok_or(Problem::Internal(
                "a plan has more data than scratch memory",
            ))?;
        // SAFETY: scratch memory is a mapped block of as many bytes at a multiple of 64, the slot's alone, and its last
        // submission has ended. Submitting makes the host's writes visible.
        unsafe { (address as *mut u32).copy_from_nonoverlapping(data.as_ptr(), data.len()) };
        Ok(())
    }

    fn find(&self, blocks: &Blocks, place: Place, bytes: usize) -> Result<View, Problem> {
        let address = match place {
            Place::Tensor(address) => address,
            Place::Scratch(offset) => {
                self.scratch
                    .ok_or(Problem::Internal("a plan has not scratch memory"))?
                    .0
                    + offset
            }
        };
        blocks
            .find(address, bytes)
            .ok_or(Problem::Internal("a buffer is not in the device's memory"))
    }

    fn record(
        &self,
        device: &Device,
        (pipelines, blocks): (&Pipelines, &Blocks),
        plan: &Plan,
        timed: bool,
    ) -> Result<(), Problem> {
        let raw = &device.raw;
        let commands = self.commands;
        let info = vk::CommandBufferBeginInfo::default()
            .flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the commands' last submission has ended; beginning resets them.
        unsafe { raw.begin_command_buffer(commands, &info) }
            .map_err(call("vkBeginCommandBuffer"))?;
        if timed {
            // SAFETY: the commands are being recorded; the pool has two queries.
            unsafe {
                raw.cmd_reset_query_pool(commands, self.times, 0, 2);
                raw.cmd_write_timestamp(
                    commands,
                    vk::PipelineStageFlags::TOP_OF_PIPE,
                    self.times,
                    0,
                );
            }
        }
        for (number, (dispatch, &set)) in plan.dispatches.iter().zip(&self.sets).enumerate() {
            let pipeline = pipelines.get(device, dispatch.shader, &dispatch.constants)?;
            self.bind(device, (blocks, dispatch), set)?;
            if number > 0 {
                barrier(raw, commands, vk::PipelineStageFlags::COMPUTE_SHADER);
            }
            let words: Vec<u8> = dispatch
                .words
                .iter()
                .flat_map(|word| word.to_ne_bytes())
                .collect();
            if words.len() > MAX_WORDS * 4 {
                return Err(Problem::Internal("a dispatch has too many words"));
            }
            let [x, y, z] = dispatch.groups;
            // SAFETY: pipeline, layout and set are of this device and alive; the words are within the range.
            unsafe {
                raw.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, pipeline);
                raw.cmd_bind_descriptor_sets(
                    commands,
                    vk::PipelineBindPoint::COMPUTE,
                    pipelines.layout,
                    0,
                    &[set],
                    &[],
                );
                if !words.is_empty() {
                    raw.cmd_push_constants(
                        commands,
                        pipelines.layout,
                        vk::ShaderStageFlags::COMPUTE,
                        0,
                        &words,
                    );
                }
                raw.cmd_dispatch(commands, x, y, z);
            }
        }
        if let Some(copy) = plan.copy {
            let from = self.find(blocks, Place::Tensor(copy.from), copy.bytes)?;
            let to = self.find(blocks, Place::Tensor(copy.to), copy.bytes)?;
            let regions = [vk::BufferCopy::default()
                .src_offset(from.offset as u64)
                .dst_offset(to.offset as u64)
                .size(copy.bytes as u64)];
            barrier(raw, commands, vk::PipelineStageFlags::TRANSFER);
            // SAFETY: both buffers are alive and hold as many bytes from the offsets on.
            unsafe { raw.cmd_copy_buffer(commands, from.buffer, to.buffer, &regions) };
        }
        barrier(raw, commands, vk::PipelineStageFlags::HOST);
        if timed {
            // SAFETY: as above.
            unsafe {
                raw.cmd_write_timestamp(
                    commands,
                    vk::PipelineStageFlags::BOTTOM_OF_PIPE,
                    self.times,
                    1,
                );
            }
        }
        // SAFETY: the commands are being recorded.
        unsafe { raw.end_command_buffer(commands) }.map_err(call("vkEndCommandBuffer"))
    }

    /// Writes the buffers of a dispatch into a set. A shader may name more buffers than it uses: these get
    /// the last one.
    fn bind(
        &self,
        device: &Device,
        (blocks, dispatch): (&Blocks, &Dispatch),
        set: vk::DescriptorSet,
    ) -> Result<(), Problem> {
        let mut infos = [[vk::DescriptorBufferInfo::default()]; MAX_BUFFERS];
        let last = dispatch.buffers.len().wrapping_sub(1);
        for (number, info) in infos.iter_mut().enumerate() {
            let region = dispatch.buffers.get(number.min(last));
            let region = region.ok_or(Problem::Internal("a dispatch has no buffer"))?;
            let view = self.find(blocks, region.place, region.bytes)?;
            info[0] = vk::DescriptorBufferInfo::default()
                .buffer(view.buffer)
                .offset(view.offset as u64)
                .range(region.bytes as u64);
        }
        let writes: Vec<_> = infos
            .iter()
            .enumerate()
            .map(|(number, info)| {
                vk::WriteDescriptorSet::default()
                    .dst_set(set)
                    .dst_binding(number as u32)
                    .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                    .buffer_info(info)
            })
            .collect();
        // SAFETY: the set's last submission has ended; buffers are of this device and alive.
        unsafe { device.raw.update_descriptor_sets(&writes, &[]) };
        Ok(())
    }

    /// # Safety
    /// The device does not use the slot.
    unsafe fn destroy(&self, raw: &ash::Device) {
        // SAFETY: what the caller promises; Vulkan ignores null handles.
        unsafe {
            raw.destroy_query_pool(self.times, None);
            raw.destroy_descriptor_pool(self.descriptors, None);
            raw.destroy_fence(self.fence, None);
            raw.destroy_command_pool(self.pool, None);
        }
    }
}

/// Makes what shaders and copies wrote visible to the stage.
fn barrier(raw: &ash::Device, commands: vk::CommandBuffer, stage: vk::PipelineStageFlags) {
    let access = match stage {
        vk::PipelineStageFlags::HOST => vk::AccessFlags::HOST_READ | vk::AccessFlags::HOST_WRITE,
        vk::PipelineStageFlags::TRANSFER => {
            vk::AccessFlags::TRANSFER_READ | vk::AccessFlags::TRANSFER_WRITE
        }
        _ => vk::AccessFlags::SHADER_READ | vk::AccessFlags::SHADER_WRITE,
    };
    let barriers = [vk::MemoryBarrier::default()
        .src_access_mask(vk::AccessFlags::SHADER_WRITE | vk::AccessFlags::TRANSFER_WRITE)
        .dst_access_mask(access)];
    // SAFETY: the commands are being recorded.
    unsafe {
        raw.cmd_pipeline_barrier(
            commands,
            vk::PipelineStageFlags::COMPUTE_SHADER | vk::PipelineStageFlags::TRANSFER,
            stage,
            vk::DependencyFlags::empty(),
            &barriers,
            &[],
            &[],
        );
    }
}
