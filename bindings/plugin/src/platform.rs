//! `SE_InitPlugin`: TensorFlow gets to know a [`Platform`].

use std::ffi::CString;

use tfp_sys as sys;

use crate::barrier::{answer, guard, log, report};
use crate::device::{Device as _, NoPlatform, Platform, PlatformInfo};
use crate::error::{Code, Error, Result};
use crate::executor::{self, check_size};
use crate::status::c_text;

/// What `SP_Platform.ext` points to.
struct Handle<P> {
    platform: P,
    // SP_Platform points into these.
    name: CString,
    device_type: CString,
}

/// Offers a platform to TensorFlow; the whole body of an `SE_InitPlugin`.
///
/// TensorFlow ends the process when this step fails, so nothing here does: when `make` fails or
/// panics, or this TensorFlow is of an incompatible version, one line is logged and `spare`, a
/// platform without devices, is offered instead. True if the platform of `make` was accepted.
///
/// # Safety
/// The arguments are those of `SE_InitPlugin`.
pub unsafe fn init_plugin<P: Platform>(
    params: *mut sys::SE_PlatformRegistrationParams,
    status: *mut sys::TF_Status,
    spare: PlatformInfo,
    make: impl FnOnce() -> Result<P>,
) -> bool {
    let mut accepted = false;
    let body = || {
        // SAFETY: by this function's contract.
        let params = unsafe { params.as_mut() }
            .ok_or_else(|| Error::internal("the registration parameters are null"))?;
        check_tables(params)?;
        let offered = guard(|| {
            check_version(params)?;
            let platform = make()?;
            platform.info().check()?;
            Ok(platform)
        });
        match offered {
            Ok(platform) => {
                accepted = true;
                offer(params, platform)
            }
            Err(error) => {
                log(&format!("no devices: {error}"));
                offer(params, NoPlatform { info: spare })
            }
        }
    };
    // SAFETY: by this function's contract.
    unsafe { report(status, body) };
    accepted
}

/// What is written must fit, or there is no way to answer at all.
fn check_tables(params: &sys::SE_PlatformRegistrationParams) -> Result<()> {
    check_size(
        "SE_PlatformRegistrationParams",
        params.struct_size,
        sys::SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE,
    )?;
    // SAFETY: TensorFlow passes null or tables that it has initialised.
    let tables = unsafe { (params.platform.as_ref(), params.platform_fns.as_ref()) };
    let (Some(platform), Some(fns)) = tables else {
        return Err(Error::internal("TensorFlow passed no tables to fill"));
    };
    check_size(
        "SP_Platform",
        platform.struct_size,
        sys::SP_PLATFORM_STRUCT_SIZE,
    )?;
    check_size(
        "SP_PlatformFns",
        fns.struct_size,
        sys::SP_PLATFORM_FNS_STRUCT_SIZE,
    )
}

fn check_version(params: &sys::SE_PlatformRegistrationParams) -> Result<()> {
    let found = params.major_version;
    let expected = sys::SE_MAJOR;
    if found == expected {
        return Ok(());
    }
    Err(Error::new(
        Code::Unimplemented,
        format!(
            "this TensorFlow has version {found}.{}.{} of the device interface, expected {expected}.x",
            params.minor_version, params.patch_version
        ),
    ))
}

fn offer<P: Platform>(params: &mut sys::SE_PlatformRegistrationParams, platform: P) -> Result<()> {
    let info = platform.info();
    let handle = Box::new(Handle {
        platform,
        name: c_text(&info.name),
        device_type: c_text(&info.device_type),
    });
    // SAFETY: `check_tables` found both tables.
    let tables = unsafe { (params.platform.as_mut(), params.platform_fns.as_mut()) };
    let (Some(target), Some(fns)) = tables else {
        return Err(Error::internal("TensorFlow passed no tables to fill"));
    };
    params.struct_size = sys::SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE;
    params.destroy_platform = Some(destroy_platform::<P>);
    params.destroy_platform_fns = Some(destroy_platform_fns);

    target.struct_size = sys::SP_PLATFORM_STRUCT_SIZE;
    target.name = handle.name.as_ptr();
    target.r#type = handle.device_type.as_ptr();
    target.supports_unified_memory = 0;
    target.use_bfc_allocator = info.use_bfc_allocator.into();
    target.force_memory_growth = info.force_memory_growth.into();
    target.ext = Box::into_raw(handle).cast();

    fns.struct_size = sys::SP_PLATFORM_FNS_STRUCT_SIZE;
    fns.get_device_count = Some(get_device_count::<P>);
    fns.create_device = Some(create_device::<P>);
    fns.destroy_device = Some(destroy_device::<P>);
    fns.create_device_fns = Some(create_device_fns::<P>);
    fns.destroy_device_fns = Some(destroy_device_fns);
    fns.create_stream_executor = Some(create_stream_executor::<P>);
    fns.destroy_stream_executor = Some(destroy_stream_executor);
    fns.create_timer_fns = Some(create_timer_fns::<P>);
    fns.destroy_timer_fns = Some(destroy_timer_fns);
    Ok(())
}

/// # Safety
/// `raw` is null or was filled by [`offer`] with the same `P`.
unsafe fn platform<'a, P: Platform>(raw: *const sys::SP_Platform) -> Result<&'a P> {
    // SAFETY: by this function's contract.
    unsafe { raw.as_ref() }
        // SAFETY: by this function's contract.
        .and_then(|raw| unsafe { raw.ext.cast::<Handle<P>>().as_ref() })
        .map(|handle| &handle.platform)
        .ok_or_else(|| Error::internal("the platform was not offered"))
}

/// # Safety
/// `raw` is null or live and not used otherwise during the call.
unsafe fn place<'a, T>(raw: *mut T, what: &str) -> Result<&'a mut T> {
    // SAFETY: by this function's contract.
    unsafe { raw.as_mut() }.ok_or_else(|| Error::internal(format!("{what} is null")))
}

unsafe extern "C" fn destroy_platform<P: Platform>(raw: *mut sys::SP_Platform) {
    answer("destroy_platform", (), || {
        // SAFETY: TensorFlow passes the platform that `offer` filled.
        let target = unsafe { place(raw, "the platform")? };
        let handle = std::mem::replace(&mut target.ext, std::ptr::null_mut());
        if !handle.is_null() {
            target.name = std::ptr::null();
            target.r#type = std::ptr::null();
            // SAFETY: `offer` made the handle, and it has just been taken out.
            drop(unsafe { Box::from_raw(handle.cast::<Handle<P>>()) });
        }
        Ok(())
    });
}

// The tables that TensorFlow owns hold functions only: there is nothing to free.
unsafe extern "C" fn destroy_platform_fns(_: *mut sys::SP_PlatformFns) {}
unsafe extern "C" fn destroy_device_fns(_: *const sys::SP_Platform, _: *mut sys::SP_DeviceFns) {}
unsafe extern "C" fn destroy_stream_executor(
    _: *const sys::SP_Platform,
    _: *mut sys::SP_StreamExecutor,
) {
}
unsafe extern "C" fn destroy_timer_fns(_: *const sys::SP_Platform, _: *mut sys::SP_TimerFns) {}

unsafe extern "C" fn get_device_count<P: Platform>(
    raw: *const sys::SP_Platform,
    count: *mut std::ffi::c_int,
    status: *mut sys::TF_Status,
) {
    let body = || {
        // SAFETY: TensorFlow passes the platform that `offer` filled and a place for the answer.
        let (platform, count) = unsafe { (platform::<P>(raw)?, place(count, "the count")?) };
        // An error here would end the process.
        let devices = answer("get_device_count", 0, || platform.device_count());
        *count = i32::try_from(devices).unwrap_or(i32::MAX);
        Ok(())
    };
    // SAFETY: the status is live.
    unsafe { report(status, body) };
}

unsafe extern "C" fn create_device<P: Platform>(
    raw: *const sys::SP_Platform,
    params: *mut sys::SE_CreateDeviceParams,
    status: *mut sys::TF_Status,
) {
    let body = || {
        // SAFETY: TensorFlow passes the platform that `offer` filled and its parameters.
        let (platform, params) = unsafe { (platform::<P>(raw)?, place(params, "the parameters")?) };
        // SAFETY: TensorFlow passes null or a device that it has initialised.
        let target = unsafe { place(params.device, "the device")? };
        check_size("SP_Device", target.struct_size, sys::SP_DEVICE_STRUCT_SIZE)?;
        let ordinal = params.ordinal;
        let index = usize::try_from(ordinal)
            .map_err(|_| Error::invalid(format!("device {ordinal} can't exist")))?;
        // After an error here, TensorFlow waits forever for the device when it is asked again.
        let device = guard(|| {
            let device = platform.create_device(index)?;
            let info = device.info();
            Ok((device, info))
        });
        if let Err(error) = &device {
            log(&format!("device {ordinal} can't be used: {error}"));
        }
        executor::attach(target, ordinal, device);
        Ok(())
    };
    // SAFETY: the status is live.
    unsafe { report(status, body) };
}

unsafe extern "C" fn destroy_device<P: Platform>(
    _: *const sys::SP_Platform,
    raw: *mut sys::SP_Device,
) {
    answer("destroy_device", (), || {
        // SAFETY: TensorFlow passes the device that `create_device` filled and uses it no more.
        unsafe { executor::detach::<P::Device>(place(raw, "the device")?) };
        Ok(())
    });
}

unsafe extern "C" fn create_device_fns<P: Platform>(
    _: *const sys::SP_Platform,
    params: *mut sys::SE_CreateDeviceFnsParams,
    status: *mut sys::TF_Status,
) {
    // SAFETY: TensorFlow passes parameters, a table that it has initialised and a live status.
    unsafe {
        report(status, || {
            let table = place(place(params, "the parameters")?.device_fns, "the table")?;
            executor::fill_device_fns::<P::Device>(table)
        });
    }
}

unsafe extern "C" fn create_stream_executor<P: Platform>(
    _: *const sys::SP_Platform,
    params: *mut sys::SE_CreateStreamExecutorParams,
    status: *mut sys::TF_Status,
) {
    // SAFETY: TensorFlow passes parameters, a table that it has initialised and a live status.
    unsafe {
        report(status, || {
            let table = place(
                place(params, "the parameters")?.stream_executor,
                "the table",
            )?;
            executor::fill_executor::<P::Device>(table)
        });
    }
}

unsafe extern "C" fn create_timer_fns<P: Platform>(
    _: *const sys::SP_Platform,
    table: *mut sys::SP_TimerFns,
    status: *mut sys::TF_Status,
) {
    // SAFETY: TensorFlow passes a table that it has initialised and a live status.
    unsafe {
        report(status, || {
            executor::fill_timer_fns::<P::Device>(place(table, "the table")?)
        })
    }
}
