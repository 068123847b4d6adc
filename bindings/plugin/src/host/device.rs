//! The device itself.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use super::memory::HostMemory;
use super::stream::{HostEvent, HostStream, HostTimer, WeakStream};
use crate::barrier::log;
use crate::device::{
    AllocatorStats, Block, Device, DeviceInfo, Direction, EventStatus, HostCallback, MemoryUsage,
};
use crate::error::{Error, Result};

/// How a [`HostDevice`] is set up.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// What the device says of itself.
    pub info: DeviceInfo,
    /// Most bytes of device memory in use; the machine's memory if `None`.
    pub memory_limit: Option<u64>,
}

impl HostOptions {
    /// A device of this name without a limit.
    #[must_use]
    pub fn new(hardware_name: &str) -> Self {
        Self {
            info: DeviceInfo {
                hardware_name: hardware_name.to_owned(),
                numa_node: -1,
                memory_bandwidth: -1,
                gflops: -1.0,
                ..DeviceInfo::default()
            },
            memory_limit: None,
        }
    }
}

/// A device that computes on the host: kernels run on TensorFlow's threads and read and write
/// device memory through plain slices.
pub struct HostDevice {
    info: DeviceInfo,
    memory: HostMemory,
    pinned: HostMemory,
    streams: Mutex<Vec<WeakStream>>,
}

impl HostDevice {
    /// A new device.
    #[must_use]
    pub fn new(options: HostOptions) -> Self {
        let memory = HostMemory::new(options.memory_limit);
        Self::with_memory(options.info, memory)
    }

    /// A device whose memory comes from elsewhere: hardware's, which the host sees. The limit is the memory's.
    #[must_use]
    pub fn with_memory(info: DeviceInfo, memory: HostMemory) -> Self {
        Self {
            info,
            memory,
            pinned: HostMemory::new(None),
            streams: Mutex::default(),
        }
    }
}

// SAFETY: memory comes from the global allocator and is tracked until it is freed; copies and
// fills are complete when the operation returns, which is before any event behind it completes.
unsafe impl Device for HostDevice {
    type Stream = HostStream;
    type Event = HostEvent;
    type Timer = HostTimer;

    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn allocate(&self, bytes: u64) -> Option<Block> {
        let address = self.memory.allocate(bytes)?.cast();
        Some(Block {
            address,
            size: bytes,
        })
    }

    unsafe fn deallocate(&self, block: Block) {
        // SAFETY: by this method's contract.
        if !unsafe { self.memory.deallocate(block.address.cast()) } {
            log(&format!(
                "deallocate: {:?} is no block of this device",
                block.address
            ));
        }
    }

    fn allocate_host(&self, bytes: u64) -> Option<NonNull<c_void>> {
        self.pinned.allocate(bytes).map(NonNull::cast)
    }

    unsafe fn deallocate_host(&self, address: NonNull<c_void>) {
        // SAFETY: by this method's contract.
        if !unsafe { self.pinned.deallocate(address.cast()) } {
            log(&format!(
                "deallocate: {address:?} is no host block of this device"
            ));
        }
    }

    fn allocator_stats(&self) -> Option<AllocatorStats> {
        Some(self.memory.stats())
    }

    fn memory_usage(&self) -> Option<MemoryUsage> {
        self.memory.usage()
    }

    fn create_stream(&self) -> Result<Self::Stream> {
        let stream = HostStream::new();
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(WeakStream::is_alive);
        streams.push(stream.downgrade());
        Ok(stream)
    }

    fn stream_status(&self, stream: &Self::Stream) -> Result<()> {
        stream.status()
    }

    fn wait_for_stream(&self, stream: &Self::Stream, other: &Self::Stream) -> Result<()> {
        stream.wait_for_stream(other);
        Ok(())
    }

    fn block_until_done(&self, stream: &Self::Stream) -> Result<()> {
        stream.block_until_done();
        stream.status()
    }

    fn synchronize(&self) -> Result<()> {
        let streams = {
            let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
            streams.clone()
        };
        for stream in streams.iter().filter_map(WeakStream::upgrade) {
            stream.block_until_done();
        }
        Ok(())
    }

    fn create_event(&self) -> Result<HostEvent> {
        Ok(HostEvent::new())
    }

    fn record_event(&self, stream: &Self::Stream, event: &HostEvent) -> Result<()> {
        event.record(stream);
        Ok(())
    }

    fn event_status(&self, event: &HostEvent) -> EventStatus {
        event.status()
    }

    fn wait_for_event(&self, stream: &Self::Stream, event: &HostEvent) -> Result<()> {
        stream.wait_for_event(event);
        Ok(())
    }

    fn block_for_event(&self, event: &HostEvent) -> Result<()> {
        event.block();
        match event.status() {
            EventStatus::Error => Err(Error::internal("an operation before the event failed")),
            _ => Ok(()),
        }
    }

    fn create_timer(&self) -> Result<HostTimer> {
        Ok(HostTimer::new())
    }

    fn start_timer(&self, stream: &Self::Stream, timer: &HostTimer) -> Result<()> {
        stream.run(|| {
            timer.start();
            Ok(())
        })
    }

    fn stop_timer(&self, stream: &Self::Stream, timer: &HostTimer) -> Result<()> {
        stream.run(|| timer.stop())
    }

    fn timer_nanoseconds(timer: &HostTimer) -> u64 {
        timer.nanoseconds()
    }

    unsafe fn copy(
        &self,
        stream: Option<&Self::Stream>,
        _: Direction,
        to: NonNull<c_void>,
        from: NonNull<c_void>,
        bytes: u64,
    ) -> Result<()> {
        let length = checked_length(bytes)?;
        let copy = || {
            let (from, to) = (from.cast::<u8>(), to.cast::<u8>());
            // TensorFlow also calls the device's memory the host's, where a kernel handed it on as such.
            // SAFETY: by this method's contract.
            let done = from != to && unsafe { self.memory.read(from, to, length) }?;
            if !done {
                // SAFETY: by this method's contract; a copy onto itself would overlap, hence `copy`.
                unsafe { from.copy_to(to, length) };
            }
            Ok(())
        };
        match stream {
            Some(stream) => stream.run(copy),
            None => copy(),
        }
    }

    unsafe fn fill(
        &self,
        stream: &Self::Stream,
        to: NonNull<c_void>,
        pattern: &[u8],
        bytes: u64,
    ) -> Result<()> {
        let length = checked_length(bytes)?;
        stream.run(|| {
            // SAFETY: by this method's contract the memory is valid and ours until the operation
            // is done.
            let target =
                unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>().as_ptr(), length) };
            match pattern {
                [byte] => target.fill(*byte),
                _ => {
                    for chunk in target.chunks_exact_mut(pattern.len().max(1)) {
                        chunk.copy_from_slice(pattern);
                    }
                }
            }
            Ok(())
        })
    }

    fn host_callback(&self, stream: &Self::Stream, callback: HostCallback) -> Result<()> {
        let mut called = false;
        let result = stream.run(|| {
            called = true;
            callback()
        });
        // The failure of a callback that was called is the stream's.
        if called { Ok(()) } else { result }
    }
}

fn checked_length(bytes: u64) -> Result<usize> {
    usize::try_from(bytes)
        .ok()
        .filter(|&length| isize::try_from(length).is_ok())
        .ok_or_else(|| Error::invalid(format!("{bytes} bytes are more than memory can hold")))
}

#[cfg(test)]
mod tests {
    use std::alloc::{Layout, alloc, dealloc};

    use super::*;
    use crate::host::BlockSource;

    /// Reads four bytes or more as 7, and leaves fewer to the processor.
    struct Sevens;

    // SAFETY: the blocks are the global allocator's.
    unsafe impl BlockSource for Sevens {
        fn take(&self, layout: Layout) -> Option<NonNull<u8>> {
            // SAFETY: the layout is not empty.
            NonNull::new(unsafe { alloc(layout) })
        }

        unsafe fn give_back(&self, block: NonNull<u8>, layout: Layout) {
            // SAFETY: by this method's contract.
            unsafe { dealloc(block.as_ptr(), layout) };
        }

        fn bytes(&self) -> Option<(u64, u64)> {
            None
        }

        unsafe fn read(&self, _: NonNull<u8>, to: NonNull<u8>, bytes: usize) -> Result<bool> {
            if bytes < 4 {
                return Ok(false);
            }
            // SAFETY: by this method's contract.
            unsafe { to.write_bytes(7, bytes) };
            Ok(true)
        }
    }

    #[test]
    fn a_source_may_read_its_memory_itself() {
        let memory = HostMemory::with_source(Box::new(Sevens), None);
        let device = HostDevice::with_memory(DeviceInfo::default(), memory);
        let mut from = [1_u8; 8];
        let mut copied = |direction, bytes: u64| {
            let mut to = [0_u8; 8];
            let sides = [&mut to, &mut from].map(|side| NonNull::from(side).cast());
            // SAFETY: both sides have eight bytes, and are this test's.
            unsafe { device.copy(None, direction, sides[0], sides[1], bytes) }.unwrap();
            to
        };
        assert_eq!(copied(Direction::DeviceToHost, 8), [7; 8]);
        assert_eq!(copied(Direction::DeviceToHost, 2), [1, 1, 0, 0, 0, 0, 0, 0]);
        // The source decides by the address: a kernel may have handed its memory on as the host's.
        assert_eq!(copied(Direction::HostToDevice, 8), [7; 8]);
        assert_eq!(copied(Direction::DeviceToDevice, 8), [7; 8]);
    }
}
