//! Profilers: what the device did while TensorFlow was profiling.

use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

use tfp_sys as sys;

use crate::barrier::report;
use crate::error::{Code, Error, Result};
use crate::executor::check_size;
use crate::kernel::c_name;

/// Collects events of all devices of a platform.
pub trait Profiler: Send + Sync + 'static {
    /// Profiling starts.
    ///
    /// # Errors
    /// Then nothing is profiled.
    fn start(&self) -> Result<()>;

    /// Profiling ends.
    ///
    /// # Errors
    /// Then nothing is collected.
    fn stop(&self) -> Result<()>;

    /// A serialized `XSpace` of what happened between start and stop (see
    /// [`xspace`](crate::proto::xspace)). The next call without a new start may be empty.
    ///
    /// # Errors
    /// Then the profile lacks the devices.
    fn collect(&self) -> Result<Vec<u8>>;
}

/// What `TP_Profiler.ext` points to.
struct Handle<P> {
    profiler: P,
    device_type: CString,
    /// Collected for the call that asked for the size, kept for the one that fetches the bytes.
    collected: Mutex<Option<Vec<u8>>>,
}

/// Offers a profiler to TensorFlow; the whole body of a `TF_InitProfiler`.
///
/// # Safety
/// The arguments are those of `TF_InitProfiler`.
pub unsafe fn init_profiler<P: Profiler>(
    params: *mut sys::TF_ProfilerRegistrationParams,
    status: *mut sys::TF_Status,
    device_type: &str,
    profiler: P,
) {
    let body = || {
        // SAFETY: by this function's contract.
        let params = unsafe { params.as_mut() }
            .ok_or_else(|| Error::internal("the registration parameters are null"))?;
        check_size(
            "TF_ProfilerRegistrationParams",
            params.struct_size,
            sys::TF_PROFILER_REGISTRATION_PARAMS_STRUCT_SIZE,
        )?;
        // SAFETY: TensorFlow passes null or tables that it has initialised.
        let tables = unsafe { (params.profiler.as_mut(), params.profiler_fns.as_mut()) };
        let (Some(target), Some(fns)) = tables else {
            return Err(Error::internal("TensorFlow passed no tables to fill"));
        };
        check_size(
            "TP_Profiler",
            target.struct_size,
            sys::TP_PROFILER_STRUCT_SIZE,
        )?;
        check_size(
            "TP_ProfilerFns",
            fns.struct_size,
            sys::TP_PROFILER_FNS_STRUCT_SIZE,
        )?;
        // TensorFlow calls the destroy functions on copies that it has moved from, while it goes
        // on using the profiler: the handle stays until the process ends.
        let handle = Box::leak(Box::new(Handle {
            profiler,
            device_type: c_name(device_type)?,
            collected: Mutex::new(None),
        }));
        params.struct_size = sys::TF_PROFILER_REGISTRATION_PARAMS_STRUCT_SIZE;
        params.destroy_profiler = Some(destroy_profiler);
        params.destroy_profiler_fns = Some(destroy_profiler_fns);
        target.struct_size = sys::TP_PROFILER_STRUCT_SIZE;
        target.device_type = handle.device_type.as_ptr();
        target.ext = std::ptr::from_mut(handle).cast();
        fns.struct_size = sys::TP_PROFILER_FNS_STRUCT_SIZE;
        fns.start = Some(start::<P>);
        fns.stop = Some(stop::<P>);
        fns.collect_data_xspace = Some(collect::<P>);
        Ok(())
    };
    // SAFETY: by this function's contract.
    unsafe { report(status, body) };
}

unsafe extern "C" fn destroy_profiler(_: *mut sys::TP_Profiler) {}
unsafe extern "C" fn destroy_profiler_fns(_: *mut sys::TP_ProfilerFns) {}

/// # Safety
/// `raw` is null or was filled by [`init_profiler`] with the same `P`.
unsafe fn handle<'a, P: Profiler>(raw: *const sys::TP_Profiler) -> Result<&'a Handle<P>> {
    // SAFETY: by this function's contract.
    unsafe { raw.as_ref() }
        // SAFETY: by this function's contract.
        .and_then(|raw| unsafe { raw.ext.cast::<Handle<P>>().as_ref() })
        .ok_or_else(|| Error::internal("the profiler was not offered"))
}

unsafe extern "C" fn start<P: Profiler>(raw: *const sys::TP_Profiler, status: *mut sys::TF_Status) {
    // SAFETY: TensorFlow passes the profiler that `init_profiler` filled and a live status.
    unsafe { report(status, || handle::<P>(raw)?.profiler.start()) }
}

unsafe extern "C" fn stop<P: Profiler>(raw: *const sys::TP_Profiler, status: *mut sys::TF_Status) {
    // SAFETY: TensorFlow passes the profiler that `init_profiler` filled and a live status.
    unsafe { report(status, || handle::<P>(raw)?.profiler.stop()) }
}

unsafe extern "C" fn collect<P: Profiler>(
    raw: *const sys::TP_Profiler,
    buffer: *mut u8,
    size: *mut usize,
    status: *mut sys::TF_Status,
) {
    let body = || {
        // SAFETY: TensorFlow passes the profiler that `init_profiler` filled and a place for the
        // size.
        let (handle, size) = unsafe { (handle::<P>(raw)?, size.as_mut()) };
        let size = size.ok_or_else(|| Error::internal("there is no place for the size"))?;
        let mut collected = handle
            .collected
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if buffer.is_null() {
            // TensorFlow allocates as much as this says, whatever the status is, and has not set it.
            *size = 0;
            let bytes = handle.profiler.collect()?;
            *size = bytes.len();
            *collected = Some(bytes);
            return Ok(());
        }
        let bytes = match collected.take() {
            Some(bytes) => bytes,
            None => handle.profiler.collect()?,
        };
        if *size < bytes.len() {
            return Err(Error::new(
                Code::InvalidArgument,
                format!("the profile has {} bytes, the buffer {size}", bytes.len()),
            ));
        }
        *size = bytes.len();
        // SAFETY: the buffer has as many bytes as the caller says, which is enough.
        unsafe { buffer.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    };
    // SAFETY: TensorFlow passes a live status.
    unsafe { report(status, body) };
}
