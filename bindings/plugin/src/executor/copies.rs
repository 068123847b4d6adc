//! Copies, fills, and callbacks on the host.

use std::ffi::c_void;
use std::ptr::NonNull;

use tfp_sys as sys;

use super::{address, device, host, stream};
use crate::api::api;
use crate::barrier::{answer, report};
use crate::device::Device;
use crate::device::Direction::{self, DeviceToDevice, DeviceToHost, HostToDevice};
use crate::error::{Error, Result};
use crate::status::Status;

/// A copy of a stream, or an immediate one.
///
/// # Safety
/// `raw` was filled by [`attach`] with the same `D`; the rest is as for [`Device::copy`].
unsafe fn copy<D: Device>(
    raw: *const sys::SP_Device,
    stream: Option<sys::SP_Stream>,
    direction: Direction,
    to: impl FnOnce() -> Result<NonNull<c_void>>,
    from: impl FnOnce() -> Result<NonNull<c_void>>,
    size: u64,
) -> Result<()> {
    // SAFETY: by this function's contract.
    unsafe {
        let device = device::<D>(raw)?;
        let stream = match stream {
            Some(stream) => Some(self::stream::<D>(stream)?),
            None => None,
        };
        if size == 0 {
            return Ok(());
        }
        device.copy(stream, direction, to()?, from()?, size)
    }
}

/// # Safety
/// TensorFlow passes the device, a stream of it and a block of at least `size` bytes.
unsafe fn fill<D: Device>(
    raw: *const sys::SP_Device,
    stream: sys::SP_Stream,
    memory: *mut sys::SP_DeviceMemoryBase,
    pattern: &[u8],
    size: u64,
) -> Result<()> {
    if !size.is_multiple_of(pattern.len() as u64) {
        return Err(Error::invalid(format!(
            "{size} bytes are no multiple of the pattern's {}",
            pattern.len()
        )));
    }
    // SAFETY: by this function's contract.
    unsafe {
        let stream = self::stream::<D>(stream)?;
        let device = device::<D>(raw)?;
        if size == 0 {
            return Ok(());
        }
        device.fill(stream, address(memory)?, pattern, size)
    }
}

type Memory = *mut sys::SP_DeviceMemoryBase;
type ConstMemory = *const sys::SP_DeviceMemoryBase;

reported! {
    memcpy_dtoh(raw, stream: sys::SP_Stream, to: *mut c_void, from: ConstMemory, size: u64) =>
        copy::<D>(raw, Some(stream), DeviceToHost, || host(to), || address(from), size);
    memcpy_htod(raw, stream: sys::SP_Stream, to: Memory, from: *const c_void, size: u64) =>
        copy::<D>(raw, Some(stream), HostToDevice, || address(to), || host(from), size);
    memcpy_dtod(raw, stream: sys::SP_Stream, to: Memory, from: ConstMemory, size: u64) =>
        copy::<D>(raw, Some(stream), DeviceToDevice, || address(to), || address(from), size);
    sync_memcpy_dtoh(raw, to: *mut c_void, from: ConstMemory, size: u64) =>
        copy::<D>(raw, None, DeviceToHost, || host(to), || address(from), size);
    sync_memcpy_htod(raw, to: Memory, from: *const c_void, size: u64) =>
        copy::<D>(raw, None, HostToDevice, || address(to), || host(from), size);
    sync_memcpy_dtod(raw, to: Memory, from: ConstMemory, size: u64) =>
        copy::<D>(raw, None, DeviceToDevice, || address(to), || address(from), size);

    mem_zero(raw, stream: sys::SP_Stream, memory: Memory, size: u64) =>
        fill::<D>(raw, stream, memory, &[0], size);
    memset(raw, stream: sys::SP_Stream, memory: Memory, pattern: u8, size: u64) =>
        fill::<D>(raw, stream, memory, &[pattern], size);
    memset32(raw, stream: sys::SP_Stream, memory: Memory, pattern: u32, size: u64) =>
        fill::<D>(raw, stream, memory, &pattern.to_ne_bytes(), size);
}

/// The argument of a host callback, on its way to the thread that calls it.
struct Argument(*mut c_void);

// SAFETY: TensorFlow allows the callback to run on any thread.
unsafe impl Send for Argument {}

pub(super) unsafe extern "C" fn host_callback<D: Device>(
    raw: *const sys::SP_Device,
    stream: sys::SP_Stream,
    function: sys::SE_StatusCallbackFn,
    argument: *mut c_void,
) -> sys::TF_Bool {
    answer("host_callback", 0, || {
        let function = function.ok_or_else(|| Error::internal("the callback is null"))?;
        let argument = Argument(argument);
        let callback = Box::new(move || {
            // The whole of `Argument` moves in, not its pointer alone.
            let argument = argument;
            let status = Status::new()?;
            // SAFETY: TensorFlow passes a function and its argument; it is called once, because
            // this closure is.
            unsafe { function(argument.0, status.as_ptr()) };
            status.take()
        });
        // Resolved first, so that the callback can't fail for want of a status.
        api()?;
        // SAFETY: TensorFlow passes the device and a stream of it.
        let (device, stream) = unsafe { (device::<D>(raw)?, self::stream::<D>(stream)?) };
        device.host_callback(stream, callback)?;
        Ok(1)
    })
}
