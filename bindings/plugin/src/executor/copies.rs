//! Copies, fills, and callbacks on the host.

use std::ffi::c_void;
use std::ptr::NonNull;

use tfp_sys as sys;

use super::{address, device, host, object};
use crate::api::api;
use crate::barrier::{answer, report};
use crate::device::{Device, Direction};
use crate::error::{Error, Result};
use crate::status::Status;

/// A stream's copy, or a copy at once.
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
            Some(stream) => Some(object::<D::Stream, _>(stream, "the stream")?),
            None => None,
        };
        if size == 0 {
            return Ok(());
        }
        device.copy(stream, direction, to()?, from()?, size)
    }
}

pub(super) unsafe extern "C" fn memcpy_dtoh<D: Device>(
    raw: *const sys::SP_Device,
    stream: sys::SP_Stream,
    to: *mut c_void,
    from: *const sys::SP_DeviceMemoryBase,
    size: u64,
    status: *mut sys::TF_Status,
) {
    let direction = Direction::DeviceToHost;
    // SAFETY: TensorFlow passes the device, a stream of it, memory of `size` bytes on both sides
    // that it keeps until the stream is done, and a live status.
    unsafe {
        report(status, || {
            copy::<D>(
                raw,
                Some(stream),
                direction,
                || host(to),
                || address(from),
                size,
            )
        });
    }
}

pub(super) unsafe extern "C" fn memcpy_htod<D: Device>(
    raw: *const sys::SP_Device,
    stream: sys::SP_Stream,
    to: *mut sys::SP_DeviceMemoryBase,
    from: *const c_void,
    size: u64,
    status: *mut sys::TF_Status,
) {
    let direction = Direction::HostToDevice;
    // SAFETY: as for `memcpy_dtoh`.
    unsafe {
        report(status, || {
            copy::<D>(
                raw,
                Some(stream),
                direction,
                || address(to),
                || host(from),
                size,
            )
        });
    }
}

pub(super) unsafe extern "C" fn memcpy_dtod<D: Device>(
    raw: *const sys::SP_Device,
    stream: sys::SP_Stream,
    to: *mut sys::SP_DeviceMemoryBase,
    from: *const sys::SP_DeviceMemoryBase,
    size: u64,
    status: *mut sys::TF_Status,
) {
    let direction = Direction::DeviceToDevice;
    // SAFETY: as for `memcpy_dtoh`.
    unsafe {
        report(status, || {
            copy::<D>(
                raw,
                Some(stream),
                direction,
                || address(to),
                || address(from),
                size,
            )
        });
    }
}

pub(super) unsafe extern "C" fn sync_memcpy_dtoh<D: Device>(
    raw: *const sys::SP_Device,
    to: *mut c_void,
    from: *const sys::SP_DeviceMemoryBase,
    size: u64,
    status: *mut sys::TF_Status,
) {
    let direction = Direction::DeviceToHost;
    // SAFETY: TensorFlow passes the device, memory of `size` bytes on both sides and a live status.
    unsafe {
        report(status, || {
            copy::<D>(raw, None, direction, || host(to), || address(from), size)
        });
    }
}

pub(super) unsafe extern "C" fn sync_memcpy_htod<D: Device>(
    raw: *const sys::SP_Device,
    to: *mut sys::SP_DeviceMemoryBase,
    from: *const c_void,
    size: u64,
    status: *mut sys::TF_Status,
) {
    let direction = Direction::HostToDevice;
    // SAFETY: as for `sync_memcpy_dtoh`.
    unsafe {
        report(status, || {
            copy::<D>(raw, None, direction, || address(to), || host(from), size)
        });
    }
}

pub(super) unsafe extern "C" fn sync_memcpy_dtod<D: Device>(
    raw: *const sys::SP_Device,
    to: *mut sys::SP_DeviceMemoryBase,
    from: *const sys::SP_DeviceMemoryBase,
    size: u64,
    status: *mut sys::TF_Status,
) {
    let direction = Direction::DeviceToDevice;
    // SAFETY: as for `sync_memcpy_dtoh`.
    unsafe {
        report(status, || {
            copy::<D>(raw, None, direction, || address(to), || address(from), size)
        });
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
        let stream = object::<D::Stream, _>(stream, "the stream")?;
        let device = device::<D>(raw)?;
        if size == 0 {
            return Ok(());
        }
        device.fill(stream, address(memory)?, pattern, size)
    }
}

pub(super) unsafe extern "C" fn mem_zero<D: Device>(
    raw: *const sys::SP_Device,
    stream: sys::SP_Stream,
    memory: *mut sys::SP_DeviceMemoryBase,
    size: u64,
    status: *mut sys::TF_Status,
) {
    // SAFETY: TensorFlow keeps to the contract of `fill`, and the status is live.
    unsafe { report(status, || fill::<D>(raw, stream, memory, &[0], size)) }
}

pub(super) unsafe extern "C" fn memset<D: Device>(
    raw: *const sys::SP_Device,
    stream: sys::SP_Stream,
    memory: *mut sys::SP_DeviceMemoryBase,
    pattern: u8,
    size: u64,
    status: *mut sys::TF_Status,
) {
    // SAFETY: TensorFlow keeps to the contract of `fill`, and the status is live.
    unsafe { report(status, || fill::<D>(raw, stream, memory, &[pattern], size)) }
}

pub(super) unsafe extern "C" fn memset32<D: Device>(
    raw: *const sys::SP_Device,
    stream: sys::SP_Stream,
    memory: *mut sys::SP_DeviceMemoryBase,
    pattern: u32,
    size: u64,
    status: *mut sys::TF_Status,
) {
    let pattern = pattern.to_ne_bytes();
    // SAFETY: TensorFlow keeps to the contract of `fill`, and the status is live.
    unsafe { report(status, || fill::<D>(raw, stream, memory, &pattern, size)) }
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
        let (device, stream) = unsafe {
            (
                device::<D>(raw)?,
                object::<D::Stream, _>(stream, "the stream")?,
            )
        };
        device.host_callback(stream, callback)?;
        Ok(1)
    })
}
