//! Blocks of memory that host and device share, found by any address inside of them.

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{PoisonError, RwLock};

use ash::vk;

use super::device::Device;
use super::instance::call;
use crate::problem::Problem;

/// A block: its memory, mapped at an address, and a buffer over all of it.
#[derive(Clone, Copy)]
struct Block {
    memory: vk::DeviceMemory,
    buffer: vk::Buffer,
    bytes: usize,
}

/// Part of a buffer.
#[derive(Clone, Copy)]
pub struct View {
    pub buffer: vk::Buffer,
    pub offset: usize,
}

#[derive(Default)]
struct State {
    /// Blocks by their addresses.
    blocks: BTreeMap<usize, Block>,
    used: usize,
}

/// The blocks of a device.
#[derive(Default)]
pub struct Blocks(RwLock<State>);

impl Blocks {
    /// A new block of the device's memory; its address is a multiple of 64.
    pub fn allocate(&self, device: &Device, bytes: usize) -> Result<NonNull<u8>, Problem> {
        self.allocate_of(device, device.memory_type, bytes)
    }

    /// A new block of memory of a type that the host sees.
    pub fn allocate_of(
        &self,
        device: &Device,
        kind: u32,
        bytes: usize,
    ) -> Result<NonNull<u8>, Problem> {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Shaders read whole vectors.
        let size = bytes.max(1).next_multiple_of(256);
        let short = |used| Problem::Memory {
            asked: bytes,
            used,
            total: device.memory_bytes,
        };
        if state.used.saturating_add(size) > device.memory_bytes {
            return Err(short(state.used));
        }
        let (block, address) = make((device, kind), size).map_err(|problem| match problem {
            Failure::Short => short(state.used),
            Failure::Other(problem) => problem,
        })?;
        state.blocks.insert(address.as_ptr() as usize, block);
        state.used += size;
        Ok(address)
    }

    /// Gives a block back. `false` if there is none at this address.
    ///
    /// # Safety
    /// Neither host nor device uses the block.
    pub unsafe fn free(&self, device: &Device, address: usize) -> bool {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Some(block) = state.blocks.remove(&address) else {
            return false;
        };
        state.used -= block.bytes;
        // SAFETY: the block is of this device, was in the table once, and the caller says that nobody uses it.
        unsafe { destroy(device, block) };
        true
    }

    /// Gives all blocks back.
    ///
    /// # Safety
    /// Neither host nor device uses any.
    pub unsafe fn clear(&self, device: &Device) {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for (_, block) in std::mem::take(&mut state.blocks) {
            // SAFETY: as in `free`.
            unsafe { destroy(device, block) };
        }
        state.used = 0;
    }

    /// The buffer that holds these bytes, if one block holds all of them.
    pub fn find(&self, address: usize, bytes: usize) -> Option<View> {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let (start, block) = state.blocks.range(..=address).next_back()?;
        let offset = address - start;
        let end = offset.checked_add(bytes)?;
        (end <= block.bytes).then_some(View {
            buffer: block.buffer,
            offset,
        })
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        state.used
    }
}

enum Failure {
    Short,
    Other(Problem),
}

fn make((device, kind): (&Device, u32), bytes: usize) -> Result<(Block, NonNull<u8>), Failure> {
    let raw = &device.raw;
    let other = |function| move |result| Failure::Other(call(function)(result));
    let info = vk::BufferCreateInfo::default()
        .size(bytes as u64)
        .usage(
            vk::BufferUsageFlags::STORAGE_BUFFER
                | vk::BufferUsageFlags::TRANSFER_SRC
                | vk::BufferUsageFlags::TRANSFER_DST,
        )
        .sharing_mode(vk::SharingMode::EXCLUSIVE);
    // SAFETY: the device is alive, `info` is complete.
    let buffer = unsafe { raw.create_buffer(&info, None) }.map_err(|result| match result {
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY | vk::Result::ERROR_OUT_OF_HOST_MEMORY => {
            Failure::Short
        }
        result => other("vkCreateBuffer")(result),
    })?;
    // SAFETY: `buffer` is of this device.
    let needs = unsafe { raw.get_buffer_memory_requirements(buffer) };
    let made = back((device, kind), buffer, needs);
    made.map(|(memory, address)| {
        (
            Block {
                memory,
                buffer,
                bytes,
            },
            address,
        )
    })
    .inspect_err(|_| {
        // SAFETY: `buffer` was created above and is nowhere else.
        unsafe { raw.destroy_buffer(buffer, None) };
    })
}

/// Memory behind a buffer, mapped.
fn back(
    (device, kind): (&Device, u32),
    buffer: vk::Buffer,
    needs: vk::MemoryRequirements,
) -> Result<(vk::DeviceMemory, NonNull<u8>), Failure> {
    let raw = &device.raw;
    if needs.memory_type_bits >> kind & 1 == 0 {
        return Err(Failure::Other(Problem::Internal(
            "buffers can't be in the shared memory",
        )));
    }
    let info = vk::MemoryAllocateInfo::default()
        .allocation_size(needs.size)
        .memory_type_index(kind);
    // SAFETY: the device is alive, the type is one of its types.
    let memory = unsafe { raw.allocate_memory(&info, None) }.map_err(|result| match result {
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY
        | vk::Result::ERROR_OUT_OF_HOST_MEMORY
        | vk::Result::ERROR_TOO_MANY_OBJECTS => Failure::Short,
        result => Failure::Other(call("vkAllocateMemory")(result)),
    })?;
    // SAFETY: buffer and memory are new, and the memory has the size that the buffer needs.
    let bound =
        unsafe { raw.bind_buffer_memory(buffer, memory, 0) }.map_err(call("vkBindBufferMemory"));
    let mapped = bound.and_then(|()| {
        // SAFETY: the memory is of a type that the host sees, and not mapped yet.
        unsafe { raw.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()) }
            .map_err(call("vkMapMemory"))
    });
    let address = mapped.and_then(|address| {
        NonNull::new(address.cast::<u8>()).ok_or(Problem::Internal("memory mapped at 0"))
    });
    match address {
        Ok(address) => Ok((memory, address)),
        Err(problem) => {
            // SAFETY: the memory was allocated above and is nowhere else; freeing unmaps it.
            unsafe { raw.free_memory(memory, None) };
            Err(Failure::Other(problem))
        }
    }
}

/// # Safety
/// The block is of this device, alive, and nobody uses it.
unsafe fn destroy(device: &Device, block: Block) {
    // SAFETY: what the caller promises.
    unsafe {
        device.raw.destroy_buffer(block.buffer, None);
        device.raw.free_memory(block.memory, None);
    }
}
