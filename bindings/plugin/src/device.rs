//! What a device plug-in implements.
//!
//! A [`Platform`] offers devices; a [`Device`] has memory, streams and events. A device whose
//! memory is host memory needs none of this: it uses [`HostDevice`](crate::host::HostDevice).

use std::ffi::c_void;
use std::ptr::NonNull;

use crate::error::{Code, Error, Result};

/// What TensorFlow asks once when it loads the plug-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformInfo {
    /// Name of the platform: capital letters and underscores.
    pub name: String,
    /// Device type, as in `/device:TYPE:0`: capital letters and underscores.
    pub device_type: String,
    /// Whether TensorFlow's best-fit allocator stands between kernels and [`Device::allocate`].
    pub use_bfc_allocator: bool,
    /// Whether that allocator starts small and grows.
    pub force_memory_growth: bool,
}

impl PlatformInfo {
    /// A platform whose device type is its name, with TensorFlow's allocator, growing.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            device_type: name.to_owned(),
            use_bfc_allocator: true,
            force_memory_growth: true,
        }
    }

    /// Checks the names.
    ///
    /// # Errors
    /// If TensorFlow would end the process because of one.
    pub fn check(&self) -> Result<()> {
        for (what, text) in [("name", &self.name), ("device type", &self.device_type)] {
            let mut bytes = text.bytes();
            let good = bytes.next().is_some_and(|b| b.is_ascii_uppercase())
                && bytes.all(|b| b.is_ascii_uppercase() || b == b'_');
            if !good {
                return Err(Error::invalid(format!(
                    "platform {what} {text:?}: expected capital letters and underscores, \
                     beginning with a letter"
                )));
            }
        }
        Ok(())
    }
}

/// A kind of device.
pub trait Platform: Send + Sync + 'static {
    /// The devices.
    type Device: Device;

    /// What TensorFlow asks once.
    fn info(&self) -> PlatformInfo;

    /// How many devices there are.
    ///
    /// # Errors
    /// Then TensorFlow offers none.
    fn device_count(&self) -> Result<usize>;

    /// Opens device `ordinal`, below the count; called when TensorFlow first needs it.
    ///
    /// # Errors
    /// Then one line is logged, and every use of the device is an error.
    fn create_device(&self, ordinal: usize) -> Result<Self::Device>;
}

/// What is known about a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceInfo {
    /// Name of the hardware.
    pub hardware_name: String,
    /// Vendor.
    pub vendor: String,
    /// PCI address, or empty.
    pub pci_bus_id: String,
    /// NUMA node, -1 if unknown.
    pub numa_node: i32,
    /// Bytes per second, -1 if unknown.
    pub memory_bandwidth: i64,
    /// 10^9 operations per second, -1 if unknown.
    pub gflops: f64,
}

/// Counters of an allocator, in bytes unless it says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocatorStats {
    /// Number of allocations so far.
    pub num_allocs: i64,
    /// In use now.
    pub bytes_in_use: i64,
    /// Largest value of `bytes_in_use` so far.
    pub peak_bytes_in_use: i64,
    /// Largest single allocation so far.
    pub largest_alloc_size: i64,
    /// Most that may be in use.
    pub bytes_limit: Option<i64>,
    /// Held for the device, in use or not.
    pub bytes_reserved: i64,
    /// Largest value of `bytes_reserved` so far.
    pub peak_bytes_reserved: i64,
    /// Most that may be reserved.
    pub bytes_reservable_limit: Option<i64>,
    /// Largest block that is free now; 0 if unknown.
    pub largest_free_block_bytes: i64,
}

/// Memory of a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUsage {
    /// What could be allocated now.
    pub free: i64,
    /// All.
    pub total: i64,
}

/// A block of device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Address; kernels get it as the tensor's data.
    pub address: NonNull<c_void>,
    /// Size in bytes.
    pub size: u64,
}

/// State of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventStatus {
    /// Something the event waits for failed. TensorFlow then ends the process: it has no way left to
    /// tell the program. Report what fails immediately as an error of the call that adds it.
    Error,
    /// What the event waits for is still running.
    Pending,
    /// All is done, or the event was never recorded.
    Complete,
}

/// A function of TensorFlow's to be called on the host when a stream gets to it.
pub type HostCallback = Box<dyn FnOnce() -> Result<()> + Send>;

/// A device. Several threads may call all methods at the same time.
///
/// A method on a stream adds an operation to it. Operations of one stream take effect in the order
/// in which they were added; those of different streams are ordered by events only.
///
/// # Safety
/// Implementations honour the method contracts: [`Device::allocate`] gives memory that host code can
/// read and write at its address (kernels see it as slices, and TensorFlow updates variables in it),
/// that is not otherwise in use and stays valid until [`Device::deallocate`]; copies and fills touch exactly
/// the bytes that they are given, and are complete when an event recorded behind them is.
pub unsafe trait Device: Send + Sync + 'static {
    /// A queue of operations.
    type Stream: Send + Sync + 'static;
    /// A point in a stream.
    type Event: Send + Sync + 'static;
    /// Measures the time between two points of a stream.
    type Timer: Send + Sync + 'static;

    /// What is known about the device.
    fn info(&self) -> DeviceInfo;

    /// Device memory at a 64-byte boundary or better; `None` if there is not so much.
    fn allocate(&self, bytes: u64) -> Option<Block>;

    /// Frees device memory.
    ///
    /// # Safety
    /// `block` comes from [`Device::allocate`] of this device and is not used any more.
    unsafe fn deallocate(&self, block: Block);

    /// Host memory from which the device copies fast, at a 64-byte boundary.
    fn allocate_host(&self, bytes: u64) -> Option<NonNull<c_void>>;

    /// Frees host memory.
    ///
    /// # Safety
    /// `address` comes from [`Device::allocate_host`] of this device and is not used any more.
    unsafe fn deallocate_host(&self, address: NonNull<c_void>);

    /// Counters of the device's allocator, if it has any.
    fn allocator_stats(&self) -> Option<AllocatorStats> {
        None
    }

    /// Free and total memory. While it is unknown, TensorFlow's allocator refuses to use the device;
    /// without [`PlatformInfo::use_bfc_allocator`] nobody asks.
    fn memory_usage(&self) -> Option<MemoryUsage> {
        None
    }

    /// A new, empty stream.
    ///
    /// # Errors
    /// If the device has no more.
    fn create_stream(&self) -> Result<Self::Stream>;

    /// Whether the stream's operations have succeeded so far.
    ///
    /// # Errors
    /// The error of one that failed since the last call.
    fn stream_status(&self, stream: &Self::Stream) -> Result<()>;

    /// Later operations of `stream` start when those that `other` has now are done.
    ///
    /// # Errors
    /// If the device can't order them.
    fn wait_for_stream(&self, stream: &Self::Stream, other: &Self::Stream) -> Result<()>;

    /// Returns when the operations that the stream has now are done.
    ///
    /// # Errors
    /// If one of them failed.
    fn block_until_done(&self, stream: &Self::Stream) -> Result<()>;

    /// Returns when the operations that all streams have now are done.
    ///
    /// # Errors
    /// If one of them failed.
    fn synchronize(&self) -> Result<()>;

    /// A new event, not recorded.
    ///
    /// # Errors
    /// If the device has no more. TensorFlow then ends the process.
    fn create_event(&self) -> Result<Self::Event>;

    /// The event now stands for the operations that the stream has now.
    ///
    /// # Errors
    /// If it can't be recorded.
    fn record_event(&self, stream: &Self::Stream, event: &Self::Event) -> Result<()>;

    /// State of the event.
    fn event_status(&self, event: &Self::Event) -> EventStatus;

    /// Later operations of `stream` start when the event is complete.
    ///
    /// # Errors
    /// If the device can't order them.
    fn wait_for_event(&self, stream: &Self::Stream, event: &Self::Event) -> Result<()>;

    /// Returns when the event is complete.
    ///
    /// # Errors
    /// If what it stands for failed.
    fn block_for_event(&self, event: &Self::Event) -> Result<()>;

    /// A new timer.
    ///
    /// # Errors
    /// If the device has none.
    fn create_timer(&self) -> Result<Self::Timer>;

    /// Starts the timer when the stream gets to this point.
    ///
    /// # Errors
    /// If the stream can't take the operation.
    fn start_timer(&self, stream: &Self::Stream, timer: &Self::Timer) -> Result<()>;

    /// Stops the timer when the stream gets to this point.
    ///
    /// # Errors
    /// If the stream can't take the operation.
    fn stop_timer(&self, stream: &Self::Stream, timer: &Self::Timer) -> Result<()>;

    /// Nanoseconds between start and stop; 0 before.
    fn timer_nanoseconds(timer: &Self::Timer) -> u64;

    /// Copies `bytes` bytes as an operation of `stream`, or immediately without one.
    ///
    /// # Safety
    /// Both sides are valid for `bytes` bytes until the operation is done, the destination is not
    /// used otherwise until then, and they do not overlap. `direction` says which side is on the
    /// device.
    ///
    /// # Errors
    /// If the copy can't be made.
    unsafe fn copy(
        &self,
        stream: Option<&Self::Stream>,
        direction: Direction,
        to: NonNull<c_void>,
        from: NonNull<c_void>,
        bytes: u64,
    ) -> Result<()>;

    /// Fills `bytes` bytes of device memory with `pattern`, repeated, as an operation of `stream`.
    /// `bytes` is a multiple of the pattern's length, which is 1 or 4.
    ///
    /// # Safety
    /// The destination is valid for `bytes` bytes until the operation is done and not used
    /// otherwise until then.
    ///
    /// # Errors
    /// If the fill can't be made.
    unsafe fn fill(
        &self,
        stream: &Self::Stream,
        to: NonNull<c_void>,
        pattern: &[u8],
        bytes: u64,
    ) -> Result<()>;

    /// Calls `callback` once, on the host, when `stream` gets to this point. `Ok` means that it
    /// has been or will be called.
    ///
    /// # Errors
    /// If the stream can't take the operation; the callback is dropped then, uncalled.
    fn host_callback(&self, stream: &Self::Stream, callback: HostCallback) -> Result<()>;
}

/// Which sides of a copy are on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the device to the host.
    DeviceToHost,
    /// From the host to the device.
    HostToDevice,
    /// Within the device.
    DeviceToDevice,
}

/// A platform without devices: what is offered when there is nothing to offer.
#[derive(Clone, Debug)]
pub struct NoPlatform {
    /// What it is called.
    pub info: PlatformInfo,
}

impl Platform for NoPlatform {
    type Device = crate::host::HostDevice;

    fn info(&self) -> PlatformInfo {
        self.info.clone()
    }

    fn device_count(&self) -> Result<usize> {
        Ok(0)
    }

    fn create_device(&self, ordinal: usize) -> Result<Self::Device> {
        Err(Error::new(
            Code::NotFound,
            format!("platform {} has no device {ordinal}", self.info.name),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_abort_tensorflow_are_refused() {
        assert!(PlatformInfo::new("MY_DEVICE").check().is_ok());
        for name in ["", "tfp", "TFP2", "_TFP", "T-P", "TÄP"] {
            assert!(PlatformInfo::new(name).check().is_err(), "{name}");
        }
    }
}
