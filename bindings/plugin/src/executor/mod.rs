//! TensorFlow's device callbacks over a [`Device`].

/// Callbacks `name(device, arguments, status)` that set the status to what their bodies return.
///
/// TensorFlow passes the device that [`attach`] filled; streams, events and timers that it made;
/// blocks of at least the sizes that it names, kept until the stream is done; and a live status. The
/// bodies rely on nothing else.
macro_rules! reported {
    ($($name:ident($device:ident $(, $argument:ident: $type:ty)*) => $body:expr;)*) => {
        $(
            pub(super) unsafe extern "C" fn $name<D: Device>(
                $device: *const sys::SP_Device,
                $($argument: $type,)*
                status: *mut sys::TF_Status,
            ) {
                // SAFETY: by what TensorFlow passes, see above.
                unsafe { report(status, || $body) }
            }
        )*
    };
}

/// Callbacks that drop what `new_object` made.
macro_rules! dropping {
    ($($name:ident($object:ident: $raw:ty);)*) => {
        $(
            pub(super) unsafe extern "C" fn $name<D: Device>(
                _: *const sys::SP_Device,
                object: $raw,
            ) {
                drop_object::<D::$object, _>(stringify!($name), object);
            }
        )*
    };
}

mod copies;
mod memory;
mod streams;

use std::ffi::{CString, c_void};
use std::ptr::NonNull;

use tfp_sys as sys;

use crate::barrier::answer;
use crate::device::{Device, DeviceInfo};
use crate::error::{Code, Error, Result};
use crate::status::c_text;

/// What `SP_Device.device_handle` points to.
pub(crate) struct Handle<D> {
    /// Or why there is none.
    device: Result<D>,
    info: DeviceInfo,
    // SP_Device points into these.
    hardware_name: CString,
    vendor: CString,
    pci_bus_id: CString,
}

/// Fills `target` and gives it ownership of `implementation`. Without one, every later call for the
/// device fails with its error.
pub(crate) fn attach<D: Device>(
    target: &mut sys::SP_Device,
    ordinal: i32,
    implementation: Result<(D, DeviceInfo)>,
) {
    let unknown = DeviceInfo {
        numa_node: -1,
        memory_bandwidth: -1,
        gflops: -1.0,
        ..DeviceInfo::default()
    };
    let (implementation, info) = match implementation {
        Ok((device, info)) => (Ok(device), info),
        Err(error) => (Err(error), unknown),
    };
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
    let handle = unsafe { handle::<D>(raw) }?;
    handle.device.as_ref().map_err(Error::clone)
}

/// # Safety
/// `raw` is null or an object of type `T` that lives during the call.
unsafe fn object<'a, T, R>(raw: *mut R, what: &str) -> Result<&'a T> {
    // SAFETY: by this function's contract.
    unsafe { raw.cast::<T>().as_ref() }.ok_or_else(|| Error::internal(format!("{what} is null")))
}

/// # Safety
/// `raw` is null or a stream of a device of type `D` that lives during the call.
unsafe fn stream<'a, D: Device>(raw: sys::SP_Stream) -> Result<&'a D::Stream> {
    // SAFETY: by this function's contract.
    unsafe { object(raw, "the stream") }
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
    table.allocate = Some(memory::allocate::<D>);
    table.deallocate = Some(memory::deallocate::<D>);
    table.host_memory_allocate = Some(memory::host_memory_allocate::<D>);
    table.host_memory_deallocate = Some(memory::host_memory_deallocate::<D>);
    table.unified_memory_allocate = None;
    table.unified_memory_deallocate = None;
    table.get_allocator_stats = Some(memory::get_allocator_stats::<D>);
    table.device_memory_usage = Some(memory::device_memory_usage::<D>);
    table.create_stream = Some(streams::create_stream::<D>);
    table.destroy_stream = Some(streams::destroy_stream::<D>);
    table.create_stream_dependency = Some(streams::create_stream_dependency::<D>);
    table.get_stream_status = Some(streams::get_stream_status::<D>);
    table.create_event = Some(streams::create_event::<D>);
    table.destroy_event = Some(streams::destroy_event::<D>);
    table.get_event_status = Some(streams::get_event_status::<D>);
    table.record_event = Some(streams::record_event::<D>);
    table.wait_for_event = Some(streams::wait_for_event::<D>);
    table.create_timer = Some(streams::create_timer::<D>);
    table.destroy_timer = Some(streams::destroy_timer::<D>);
    table.start_timer = Some(streams::start_timer::<D>);
    table.stop_timer = Some(streams::stop_timer::<D>);
    table.memcpy_dtoh = Some(copies::memcpy_dtoh::<D>);
    table.memcpy_htod = Some(copies::memcpy_htod::<D>);
    table.memcpy_dtod = Some(copies::memcpy_dtod::<D>);
    table.sync_memcpy_dtoh = Some(copies::sync_memcpy_dtoh::<D>);
    table.sync_memcpy_htod = Some(copies::sync_memcpy_htod::<D>);
    table.sync_memcpy_dtod = Some(copies::sync_memcpy_dtod::<D>);
    table.block_host_for_event = Some(streams::block_host_for_event::<D>);
    table.block_host_until_done = Some(streams::block_host_until_done::<D>);
    table.synchronize_all_activity = Some(streams::synchronize_all_activity::<D>);
    table.mem_zero = Some(copies::mem_zero::<D>);
    table.memset = Some(copies::memset::<D>);
    table.memset32 = Some(copies::memset32::<D>);
    table.host_callback = Some(copies::host_callback::<D>);
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
    table.nanoseconds = Some(streams::nanoseconds::<D>);
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
