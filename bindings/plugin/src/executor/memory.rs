//! Memory of the device, and of the host for it.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::time::Duration;

use tfp_sys as sys;

use super::device;
use crate::barrier::{answer, guard, log};
use crate::device::{Block, Device};
use crate::error::Error;

/// Requests of one size that a thread may make in vain before it has to wait between them.
const PATIENCE: u32 = 100;

/// Time between two of them.
const PAUSE: Duration = Duration::from_millis(10);

/// Requests of one size in a row that a thread has made in vain.
///
/// TensorFlow's growing allocator asks for a tenth less each time, rounded up to 256 bytes: from 2304
/// bytes on it asks for the same again, until it gets it.
#[derive(Clone, Copy, Debug, Default)]
struct Refusals {
    size: u64,
    count: u32,
}

impl Refusals {
    /// After one more: how often in a row the size has been refused.
    fn refused(self, size: u64) -> Self {
        let earlier = if self.size == size { self.count } else { 0 };
        Self {
            size,
            count: earlier.saturating_add(1),
        }
    }

    /// Says once why nothing goes on, and then leaves the processor to those who free memory.
    fn bear(self) {
        if self.count == PATIENCE {
            log(&format!(
                "allocate: the device has no {} bytes left, and TensorFlow asks for them until it has",
                self.size
            ));
        }
        if self.count >= PATIENCE {
            std::thread::sleep(PAUSE);
        }
    }
}

thread_local! {
    static REFUSALS: Cell<Refusals> = const { Cell::new(Refusals { size: 0, count: 0 }) };
}

pub(super) unsafe extern "C" fn allocate<D: Device>(
    raw: *const sys::SP_Device,
    size: u64,
    _memory_space: i64,
    memory: *mut sys::SP_DeviceMemoryBase,
) {
    answer("allocate", (), || {
        // SAFETY: TensorFlow passes the device that `attach` filled and a place for the answer.
        let (device, memory) = unsafe { (device::<D>(raw)?, memory.as_mut()) };
        let memory = memory.ok_or_else(|| Error::internal("there is no place for the block"))?;
        memory.struct_size = sys::SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
        (memory.opaque, memory.size, memory.payload) = (std::ptr::null_mut(), 0, 0);
        let block = guard(|| Ok(device.allocate(size)));
        if let Ok(Some(block)) = &block {
            memory.opaque = block.address.as_ptr();
            memory.size = block.size;
            REFUSALS.set(Refusals::default());
            return Ok(());
        }
        let refusals = REFUSALS.get().refused(size);
        REFUSALS.set(refusals);
        refusals.bear();
        // A panic is told once, not at every request of a row.
        block.map(drop).or_else(|error| match refusals.count {
            1 => Err(error),
            _ => Ok(()),
        })
    });
}

pub(super) unsafe extern "C" fn deallocate<D: Device>(
    raw: *const sys::SP_Device,
    memory: *mut sys::SP_DeviceMemoryBase,
) {
    answer("deallocate", (), || {
        // SAFETY: TensorFlow passes the device that `attach` filled and a block of it.
        let (device, memory) = unsafe { (device::<D>(raw)?, memory.as_mut()) };
        let memory = memory.ok_or_else(|| Error::internal("there is no block"))?;
        if let Some(address) = NonNull::new(memory.opaque) {
            let size = memory.size;
            // SAFETY: the block comes from `allocate`, and TensorFlow gives it up.
            unsafe { device.deallocate(Block { address, size }) };
            memory.opaque = std::ptr::null_mut();
            memory.size = 0;
        }
        Ok(())
    });
}

pub(super) unsafe extern "C" fn host_memory_allocate<D: Device>(
    raw: *const sys::SP_Device,
    size: u64,
) -> *mut c_void {
    answer("host_memory_allocate", std::ptr::null_mut(), || {
        // SAFETY: TensorFlow passes the device that `attach` filled.
        let block = unsafe { device::<D>(raw) }?.allocate_host(size);
        Ok(block.map_or(std::ptr::null_mut(), NonNull::as_ptr))
    })
}

pub(super) unsafe extern "C" fn host_memory_deallocate<D: Device>(
    raw: *const sys::SP_Device,
    memory: *mut c_void,
) {
    answer("host_memory_deallocate", (), || {
        if let Some(address) = NonNull::new(memory) {
            // SAFETY: TensorFlow passes the device that `attach` filled and a block that it gives
            // up.
            unsafe { device::<D>(raw)?.deallocate_host(address) };
        }
        Ok(())
    });
}

pub(super) unsafe extern "C" fn get_allocator_stats<D: Device>(
    raw: *const sys::SP_Device,
    stats: *mut sys::SP_AllocatorStats,
) -> sys::TF_Bool {
    answer("get_allocator_stats", 0, || {
        // SAFETY: TensorFlow passes the device that `attach` filled and a place for the answer.
        let (device, target) = unsafe { (device::<D>(raw)?, stats.as_mut()) };
        let (Some(stats), Some(target)) = (device.allocator_stats(), target) else {
            return Ok(0);
        };
        target.struct_size = sys::SP_ALLOCATORSTATS_STRUCT_SIZE;
        target.num_allocs = stats.num_allocs;
        target.bytes_in_use = stats.bytes_in_use;
        target.peak_bytes_in_use = stats.peak_bytes_in_use;
        target.largest_alloc_size = stats.largest_alloc_size;
        target.has_bytes_limit = stats.bytes_limit.is_some().into();
        target.bytes_limit = stats.bytes_limit.unwrap_or(0);
        target.bytes_reserved = stats.bytes_reserved;
        target.peak_bytes_reserved = stats.peak_bytes_reserved;
        target.has_bytes_reservable_limit = stats.bytes_reservable_limit.is_some().into();
        target.bytes_reservable_limit = stats.bytes_reservable_limit.unwrap_or(0);
        target.largest_free_block_bytes = stats.largest_free_block_bytes;
        Ok(1)
    })
}

pub(super) unsafe extern "C" fn device_memory_usage<D: Device>(
    raw: *const sys::SP_Device,
    free: *mut i64,
    total: *mut i64,
) -> sys::TF_Bool {
    answer("device_memory_usage", 0, || {
        // SAFETY: TensorFlow passes the device that `attach` filled and places for the answer.
        let (device, free, total) = unsafe { (device::<D>(raw)?, free.as_mut(), total.as_mut()) };
        let (Some(usage), Some(free), Some(total)) = (device.memory_usage(), free, total) else {
            return Ok(0);
        };
        *free = usage.free;
        *total = usage.total;
        Ok(1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_one_size_in_a_row_are_counted() {
        let mut refusals = Refusals::default();
        for (size, count) in [
            (1408, 1),
            (1280, 1),
            (1280, 2),
            (1280, 3),
            (256, 1),
            (1280, 1),
        ] {
            refusals = refusals.refused(size);
            assert_eq!((refusals.size, refusals.count), (size, count));
        }
    }
}
