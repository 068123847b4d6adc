//! TensorFlow's device callbacks over a [`Device`].

use std::ffi::{CString, c_void};
use std::ptr::NonNull;

use tfp_sys as sys;

use crate::api::api;
use crate::barrier::{answer, report};
use crate::device::{Block, Device, DeviceInfo, Direction, EventStatus};
use crate::error::{Code, Error, Result};
use crate::status::{Status, c_text};

/// What `SP_Device.device_handle` points to.
pub(crate) struct Handle<D> {
    device: D,
    info: DeviceInfo,
    // SP_Device points into these.
    hardware_name: CString,
    vendor: CString,
    pci_bus_id: CString,
}

/// Fills `device` and gives it ownership of `implementation`.
pub(crate) fn attach<D: Device>(target: &mut sys::SP_Device, ordinal: i32, implementation: D) {
    let info = implementation.info();
    let handle = Box::new(Handle {
        hardware_name: c_text(&info.hardware_name),
        vendor: c_text(&info.vendor),
        pci_bus_id: c_text(&info.pci_bus_id),
        device: implementation,
        info,
    });
    target.struct_size = sys::SP_DEVICE_STRUCT_SIZE;
    target.ordinal = ordinal;
    target.hardware_name = handle.hardware_name.as_ptr();
    target.device_vendor = handle.vendor.as_ptr();
    target.pci_bus_id = handle.pci_bus_id.as_ptr();
    target.device_handle = Box::into_raw(handle).cast();
}

/// Takes back what [`attach`] gave.
///
/// # Safety
/// `target` was filled by [`attach`] with the same `D`, and nothing of the device is used any more.
pub(crate) unsafe fn detach<D: Device>(target: &mut sys::SP_Device) {
    let handle = std::mem::replace(&mut target.device_handle, std::ptr::null_mut());
    target.hardware_name = std::ptr::null();
    target.device_vendor = std::ptr::null();
    target.pci_bus_id = std::ptr::null();
    if !handle.is_null() {
        // SAFETY: by this function's contract.
        drop(unsafe { Box::from_raw(handle.cast::<Handle<D>>()) });
    }
}

/// # Safety
/// `device` is null or was filled by [`attach`] with the same `D`.
unsafe fn handle<'a, D: Device>(device: *const sys::SP_Device) -> Result<&'a Handle<D>> {
    // SAFETY: by this function's contract.
    unsafe { device.as_ref() }
        // SAFETY: by this function's contract.
        .and_then(|device| unsafe { device.device_handle.cast::<Handle<D>>().as_ref() })
        .ok_or_else(|| Error::internal("the device was not created"))
}

/// # Safety
/// As [`handle`].
unsafe fn device<'a, D: Device>(raw: *const sys::SP_Device) -> Result<&'a D> {
    // SAFETY: by this function's contract.
    unsafe { handle::<D>(raw) }.map(|handle| &handle.device)
}

/// # Safety
/// `raw` is null or an object of type `T` that lives during the call.
unsafe fn object<'a, T, R>(raw: *mut R, what: &str) -> Result<&'a T> {
    // SAFETY: by this function's contract.
    unsafe { raw.cast::<T>().as_ref() }.ok_or_else(|| Error::internal(format!("{what} is null")))
}

/// # Safety
/// `raw` is null or points to a live `SP_DeviceMemoryBase`.
unsafe fn address(raw: *const sys::SP_DeviceMemoryBase) -> Result<NonNull<c_void>> {
    // SAFETY: by this function's contract.
    unsafe { raw.as_ref() }
        .and_then(|memory| NonNull::new(memory.opaque))
        .ok_or_else(|| Error::internal("device memory is null"))
}

fn host(raw: *const c_void) -> Result<NonNull<c_void>> {
    NonNull::new(raw.cast_mut()).ok_or_else(|| Error::internal("host memory is null"))
}

fn new_object<T, R>(target: *mut *mut R, value: T) -> Result<()> {
    // SAFETY: TensorFlow passes null or a place for a handle.
    let slot = unsafe { target.as_mut() }
        .ok_or_else(|| Error::internal("there is no place for the new object"))?;
    *slot = Box::into_raw(Box::new(value)).cast();
    Ok(())
}

fn drop_object<T, R>(callback: &str, raw: *mut R) {
    answer(callback, (), || {
        if !raw.is_null() {
            // SAFETY: TensorFlow passes what `new_object` made, once.
            drop(unsafe { Box::from_raw(raw.cast::<T>()) });
        }
        Ok(())
    });
}

/// Fills the table of callbacks; a table of an older TensorFlow that is too small is refused.
pub(crate) fn fill_executor<D: Device>(table: &mut sys::SP_StreamExecutor) -> Result<()> {
    check_size(
        "SP_StreamExecutor",
        table.struct_size,
        sys::SP_STREAMEXECUTOR_STRUCT_SIZE,
    )?;
    table.struct_size = sys::SP_STREAMEXECUTOR_STRUCT_SIZE;
    table.allocate = Some(allocate::<D>);
    table.deallocate = Some(deallocate::<D>);
    table.host_memory_allocate = Some(host_memory_allocate::<D>);
    table.host_memory_deallocate = Some(host_memory_deallocate::<D>);
    table.unified_memory_allocate = None;
    table.unified_memory_deallocate = None;
    table.get_allocator_stats = Some(get_allocator_stats::<D>);
    table.device_memory_usage = Some(device_memory_usage::<D>);
    table.create_stream = Some(create_stream::<D>);
    table.destroy_stream = Some(destroy_stream::<D>);
    table.create_stream_dependency = Some(create_stream_dependency::<D>);
    table.get_stream_status = Some(get_stream_status::<D>);
    table.create_event = Some(create_event::<D>);
    table.destroy_event = Some(destroy_event::<D>);
    table.get_event_status = Some(get_event_status::<D>);
    table.record_event = Some(record_event::<D>);
    table.wait_for_event = Some(wait_for_event::<D>);
    table.create_timer = Some(create_timer::<D>);
    table.destroy_timer = Some(destroy_timer::<D>);
    table.start_timer = Some(start_timer::<D>);
    table.stop_timer = Some(stop_timer::<D>);
    table.memcpy_dtoh = Some(memcpy_dtoh::<D>);
    table.memcpy_htod = Some(memcpy_htod::<D>);
    table.memcpy_dtod = Some(memcpy_dtod::<D>);
    table.sync_memcpy_dtoh = Some(sync_memcpy_dtoh::<D>);
    table.sync_memcpy_htod = Some(sync_memcpy_htod::<D>);
    table.sync_memcpy_dtod = Some(sync_memcpy_dtod::<D>);
    table.block_host_for_event = Some(block_host_for_event::<D>);
    table.block_host_until_done = Some(block_host_until_done::<D>);
    table.synchronize_all_activity = Some(synchronize_all_activity::<D>);
    table.mem_zero = Some(mem_zero::<D>);
    table.memset = Some(memset::<D>);
    table.memset32 = Some(memset32::<D>);
    table.host_callback = Some(host_callback::<D>);
    Ok(())
}

/// Fills the table of device properties.
pub(crate) fn fill_device_fns<D: Device>(table: &mut sys::SP_DeviceFns) -> Result<()> {
    check_size(
        "SP_DeviceFns",
        table.struct_size,
        sys::SP_DEVICE_FNS_STRUCT_SIZE,
    )?;
    table.struct_size = sys::SP_DEVICE_FNS_STRUCT_SIZE;
    table.get_numa_node = Some(get_numa_node::<D>);
    table.get_memory_bandwidth = Some(get_memory_bandwidth::<D>);
    table.get_gflops = Some(get_gflops::<D>);
    Ok(())
}

/// Fills the table of timer functions.
pub(crate) fn fill_timer_fns<D: Device>(table: &mut sys::SP_TimerFns) -> Result<()> {
    check_size(
        "SP_TimerFns",
        table.struct_size,
        sys::SP_TIMER_FNS_STRUCT_SIZE,
    )?;
    table.struct_size = sys::SP_TIMER_FNS_STRUCT_SIZE;
    table.nanoseconds = Some(nanoseconds::<D>);
    Ok(())
}

/// A table that TensorFlow made must hold all that is written into it.
pub(crate) fn check_size(table: &str, found: usize, expected: usize) -> Result<()> {
    if found < expected {
        return Err(Error::new(
            Code::Unimplemented,
            format!("{table} of this TensorFlow has {found} bytes, expected at least {expected}"),
        ));
    }
    Ok(())
}

unsafe extern "C" fn get_numa_node<D: Device>(raw: *const sys::SP_Device) -> i32 {
    answer("get_numa_node", -1, || {
        // SAFETY: TensorFlow passes the device that `attach` filled.
        Ok(unsafe { handle::<D>(raw) }?.info.numa_node)
    })
}

unsafe extern "C" fn get_memory_bandwidth<D: Device>(raw: *const sys::SP_Device) -> i64 {
    answer("get_memory_bandwidth", -1, || {
        // SAFETY: TensorFlow passes the device that `attach` filled.
        Ok(unsafe { handle::<D>(raw) }?.info.memory_bandwidth)
    })
}

unsafe extern "C" fn get_gflops<D: Device>(raw: *const sys::SP_Device) -> f64 {
    answer("get_gflops", -1.0, || {
        // SAFETY: TensorFlow passes the device that `attach` filled.
        Ok(unsafe { handle::<D>(raw) }?.info.gflops)
    })
}

unsafe extern "C" fn allocate<D: Device>(
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
        let block = device.allocate(size);
        memory.opaque = block.map_or(std::ptr::null_mut(), |block| block.address.as_ptr());
        memory.size = block.map_or(0, |block| block.size);
        memory.payload = 0;
        Ok(())
    });
}

unsafe extern "C" fn deallocate<D: Device>(
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

unsafe extern "C" fn host_memory_allocate<D: Device>(
    raw: *const sys::SP_Device,
    size: u64,
) -> *mut c_void {
    answer("host_memory_allocate", std::ptr::null_mut(), || {
        // SAFETY: TensorFlow passes the device that `attach` filled.
        let block = unsafe { device::<D>(raw) }?.allocate_host(size);
        Ok(block.map_or(std::ptr::null_mut(), NonNull::as_ptr))
    })
}

unsafe extern "C" fn host_memory_deallocate<D: Device>(
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

unsafe extern "C" fn get_allocator_stats<D: Device>(
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

unsafe extern "C" fn device_memory_usage<D: Device>(
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

unsafe extern "C" fn create_stream<D: Device>(
    raw: *const sys::SP_Device,
    stream: *mut sys::SP_Stream,
    status: *mut sys::TF_Status,
) {
    // SAFETY: TensorFlow passes the device that `attach` filled and a live status.
    unsafe {
        report(status, || {
            new_object(stream, device::<D>(raw)?.create_stream()?)
        })
    }
}

unsafe extern "C" fn destroy_stream<D: Device>(_: *const sys::SP_Device, stream: sys::SP_Stream) {
    drop_object::<D::Stream, _>("destroy_stream", stream);
}

unsafe extern "C" fn create_stream_dependency<D: Device>(
    raw: *const sys::SP_Device,
    dependent: sys::SP_Stream,
    other: sys::SP_Stream,
    status: *mut sys::TF_Status,
) {
    // SAFETY: TensorFlow passes the device, two of its streams and a live status.
    unsafe {
        report(status, || {
            let dependent = object::<D::Stream, _>(dependent, "the stream")?;
            let other = object::<D::Stream, _>(other, "the other stream")?;
            device::<D>(raw)?.wait_for_stream(dependent, other)
        });
    }
}

unsafe extern "C" fn get_stream_status<D: Device>(
    raw: *const sys::SP_Device,
    stream: sys::SP_Stream,
    status: *mut sys::TF_Status,
) {
    // SAFETY: TensorFlow passes the device, one of its streams and a live status.
    unsafe {
        report(status, || {
            device::<D>(raw)?.stream_status(object::<D::Stream, _>(stream, "the stream")?)
        });
    }
}

unsafe extern "C" fn create_event<D: Device>(
    raw: *const sys::SP_Device,
    event: *mut sys::SP_Event,
    status: *mut sys::TF_Status,
) {
    // SAFETY: TensorFlow passes the device that `attach` filled and a live status.
    unsafe {
        report(status, || {
            new_object(event, device::<D>(raw)?.create_event()?)
        })
    }
}

unsafe extern "C" fn destroy_event<D: Device>(_: *const sys::SP_Device, event: sys::SP_Event) {
    drop_object::<D::Event, _>("destroy_event", event);
}

unsafe extern "C" fn get_event_status<D: Device>(
    raw: *const sys::SP_Device,
    event: sys::SP_Event,
) -> sys::SE_EventStatus {
    answer("get_event_status", sys::SE_EVENT_UNKNOWN, || {
        // SAFETY: TensorFlow passes the device and one of its events.
        let (device, event) = unsafe {
            (
                device::<D>(raw)?,
                object::<D::Event, _>(event, "the event")?,
            )
        };
        Ok(match device.event_status(event) {
            EventStatus::Error => sys::SE_EVENT_ERROR,
            EventStatus::Pending => sys::SE_EVENT_PENDING,
            EventStatus::Complete => sys::SE_EVENT_COMPLETE,
        })
    })
}

unsafe extern "C" fn record_event<D: Device>(
    raw: *const sys::SP_Device,
    stream: sys::SP_Stream,
    event: sys::SP_Event,
    status: *mut sys::TF_Status,
) {
    // SAFETY: TensorFlow passes the device, a stream and an event of it, and a live status.
    unsafe {
        report(status, || {
            let stream = object::<D::Stream, _>(stream, "the stream")?;
            device::<D>(raw)?.record_event(stream, object::<D::Event, _>(event, "the event")?)
        });
    }
}

unsafe extern "C" fn wait_for_event<D: Device>(
    raw: *const sys::SP_Device,
    stream: sys::SP_Stream,
    event: sys::SP_Event,
    status: *mut sys::TF_Status,
) {
    // SAFETY: TensorFlow passes the device, a stream and an event of it, and a live status.
    unsafe {
        report(status, || {
            let stream = object::<D::Stream, _>(stream, "the stream")?;
            device::<D>(raw)?.wait_for_event(stream, object::<D::Event, _>(event, "the event")?)
        });
    }
}

unsafe extern "C" fn block_host_for_event<D: Device>(
    raw: *const sys::SP_Device,
    event: sys::SP_Event,
    status: *mut sys::TF_Status,
) {
    // SAFETY: TensorFlow passes the device, an event of it and a live status.
    unsafe {
        report(status, || {
            device::<D>(raw)?.block_for_event(object::<D::Event, _>(event, "the event")?)
        });
    }
}

unsafe extern "C" fn block_host_until_done<D: Device>(
    raw: *const sys::SP_Device,
    stream: sys::SP_Stream,
    status: *mut sys::TF_Status,
) {
    // SAFETY: TensorFlow passes the device, a stream of it and a live status.
    unsafe {
        report(status, || {
            device::<D>(raw)?.block_until_done(object::<D::Stream, _>(stream, "the stream")?)
        });
    }
}

unsafe extern "C" fn synchronize_all_activity<D: Device>(
    raw: *const sys::SP_Device,
    status: *mut sys::TF_Status,
) {
    // SAFETY: TensorFlow passes the device that `attach` filled and a live status.
    unsafe { report(status, || device::<D>(raw)?.synchronize()) }
}

unsafe extern "C" fn create_timer<D: Device>(
    raw: *const sys::SP_Device,
    timer: *mut sys::SP_Timer,
    status: *mut sys::TF_Status,
) {
    // SAFETY: TensorFlow passes the device that `attach` filled and a live status.
    unsafe {
        report(status, || {
            new_object(timer, device::<D>(raw)?.create_timer()?)
        })
    }
}

unsafe extern "C" fn destroy_timer<D: Device>(_: *const sys::SP_Device, timer: sys::SP_Timer) {
    drop_object::<D::Timer, _>("destroy_timer", timer);
}

unsafe extern "C" fn start_timer<D: Device>(
    raw: *const sys::SP_Device,
    stream: sys::SP_Stream,
    timer: sys::SP_Timer,
    status: *mut sys::TF_Status,
) {
    // SAFETY: TensorFlow passes the device, a stream and a timer of it, and a live status.
    unsafe {
        report(status, || {
            let stream = object::<D::Stream, _>(stream, "the stream")?;
            device::<D>(raw)?.start_timer(stream, object::<D::Timer, _>(timer, "the timer")?)
        });
    }
}

unsafe extern "C" fn stop_timer<D: Device>(
    raw: *const sys::SP_Device,
    stream: sys::SP_Stream,
    timer: sys::SP_Timer,
    status: *mut sys::TF_Status,
) {
    // SAFETY: TensorFlow passes the device, a stream and a timer of it, and a live status.
    unsafe {
        report(status, || {
            let stream = object::<D::Stream, _>(stream, "the stream")?;
            device::<D>(raw)?.stop_timer(stream, object::<D::Timer, _>(timer, "the timer")?)
        });
    }
}

unsafe extern "C" fn nanoseconds<D: Device>(timer: sys::SP_Timer) -> u64 {
    answer("nanoseconds", 0, || {
        // SAFETY: TensorFlow passes a timer of a device.
        let timer = unsafe { object::<D::Timer, _>(timer, "the timer")? };
        Ok(D::timer_nanoseconds(timer))
    })
}

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

unsafe extern "C" fn memcpy_dtoh<D: Device>(
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

unsafe extern "C" fn memcpy_htod<D: Device>(
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

unsafe extern "C" fn memcpy_dtod<D: Device>(
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

unsafe extern "C" fn sync_memcpy_dtoh<D: Device>(
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

unsafe extern "C" fn sync_memcpy_htod<D: Device>(
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

unsafe extern "C" fn sync_memcpy_dtod<D: Device>(
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

unsafe extern "C" fn mem_zero<D: Device>(
    raw: *const sys::SP_Device,
    stream: sys::SP_Stream,
    memory: *mut sys::SP_DeviceMemoryBase,
    size: u64,
    status: *mut sys::TF_Status,
) {
    // SAFETY: TensorFlow keeps to the contract of `fill`, and the status is live.
    unsafe { report(status, || fill::<D>(raw, stream, memory, &[0], size)) }
}

unsafe extern "C" fn memset<D: Device>(
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

unsafe extern "C" fn memset32<D: Device>(
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

unsafe extern "C" fn host_callback<D: Device>(
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
