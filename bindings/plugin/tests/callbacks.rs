//! Calls every device callback as TensorFlow would, also those that TensorFlow never calls.
//!
//! TensorFlow's libraries are loaded for its statuses; no Python is involved. `TF_LIBRARY_PATH`
//! says where they are, if they are not in a usual place.

mod common;

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use tfp_bindings::host::{HostDevice, HostOptions};
use tfp_bindings::{Code, Error, Platform, PlatformInfo, Result, sys};

use common::{Registration, Status, api};

struct TestPlatform;

const LIMIT: u64 = 1 << 20;

impl Platform for TestPlatform {
    type Device = HostDevice;

    fn info(&self) -> PlatformInfo {
        PlatformInfo::new("TEST")
    }

    fn device_count(&self) -> Result<usize> {
        Ok(2)
    }

    fn create_device(&self, ordinal: usize) -> Result<HostDevice> {
        match ordinal {
            0 => {
                let mut options = HostOptions::new("test hardware");
                options.memory_limit = Some(LIMIT);
                options.info.gflops = 7.5;
                Ok(HostDevice::new(options))
            }
            1 => panic!("device 1 is broken"),
            _ => Err(Error::new(Code::NotFound, "no such device")),
        }
    }
}

#[test]
fn every_callback_does_what_it_says() {
    let mut registration = Registration::new();
    let (accepted, status) = registration.init(|| Ok(TestPlatform));
    status.ok();
    assert!(accepted);
    assert_eq!(registration.devices(), 2);
    // SAFETY: the platform has been offered.
    let (name, bfc) = unsafe {
        let platform = &*registration.params.platform;
        (CStr::from_ptr(platform.name), platform.use_bfc_allocator)
    };
    assert_eq!((name, bfc), (c"TEST", 1));

    let (mut device, status) = registration.create(0);
    status.ok();
    // SAFETY: the device has been created.
    let hardware = unsafe { CStr::from_ptr(device.hardware_name) };
    assert_eq!(hardware, c"test hardware");
    let table = registration.executor();
    let (d, e) = (&*device, &*table);

    properties(&registration, d);
    memory(d, e);
    streams_and_events(d, e);
    timers(&registration, d, e);
    host_callbacks(d, e);

    // SAFETY: the device has been created and is not used any more.
    unsafe {
        let destroy = (*registration.params.platform_fns).destroy_device.unwrap();
        destroy(registration.params.platform, &mut *device);
        destroy(registration.params.platform, &mut *device);
    }
}

fn properties(registration: &Registration, device: &sys::SP_Device) {
    let status = Status::new();
    // SAFETY: absent functions are what TensorFlow starts with.
    let mut table: sys::SP_DeviceFns = unsafe { std::mem::zeroed() };
    table.struct_size = sys::SP_DEVICE_FNS_STRUCT_SIZE;
    let mut params = sys::SE_CreateDeviceFnsParams {
        struct_size: sys::SE_CREATE_DEVICE_FNS_PARAMS_STRUCT_SIZE,
        ext: null_mut(),
        device_fns: &mut table,
    };
    // SAFETY: platform and device are live and the parameters are as TensorFlow's.
    unsafe {
        let fns = &*registration.params.platform_fns;
        fns.create_device_fns.unwrap()(registration.params.platform, &mut params, status.0);
        status.ok();
        assert_eq!(table.get_numa_node.unwrap()(device), -1);
        assert_eq!(table.get_memory_bandwidth.unwrap()(device), -1);
        assert_eq!(table.get_gflops.unwrap()(device), 7.5);
        // A device that was never created is answered, not followed.
        assert_eq!(table.get_numa_node.unwrap()(null()), -1);
        fns.destroy_device_fns.unwrap()(registration.params.platform, &mut table);
    }
}

fn block(
    device: &sys::SP_Device,
    e: &sys::SP_StreamExecutor,
    size: u64,
) -> sys::SP_DeviceMemoryBase {
    // SAFETY: null pointers are what TensorFlow starts with; the device is live.
    unsafe {
        let mut memory: sys::SP_DeviceMemoryBase = std::mem::zeroed();
        e.allocate.unwrap()(device, size, 0, &mut memory);
        memory
    }
}

fn memory(d: &sys::SP_Device, e: &sys::SP_StreamExecutor) {
    let status = Status::new();
    let s = status.0;
    // SAFETY: device, blocks and status are live; all copies are within the blocks.
    unsafe {
        let mut a = block(d, e, 256);
        let mut b = block(d, e, 256);
        assert_eq!(a.opaque.addr() % 64, 0);
        assert_eq!(
            (a.size, a.struct_size),
            (256, sys::SP_DEVICE_MEMORY_BASE_STRUCT_SIZE)
        );
        let too_much = block(d, e, LIMIT);
        assert!(too_much.opaque.is_null());

        let mut stats: sys::SP_AllocatorStats = std::mem::zeroed();
        assert_eq!(e.get_allocator_stats.unwrap()(d, &mut stats), 1);
        assert_eq!((stats.bytes_in_use, stats.num_allocs), (512, 2));
        assert_eq!(
            (stats.has_bytes_limit, stats.bytes_limit),
            (1, LIMIT as i64)
        );
        let (mut free, mut total) = (0, 0);
        assert_eq!(e.device_memory_usage.unwrap()(d, &mut free, &mut total), 1);
        assert_eq!((free, total), (LIMIT as i64 - 512, LIMIT as i64));

        let host = e.host_memory_allocate.unwrap()(d, 256).cast::<u8>();
        assert_eq!(host.addr() % 64, 0);
        for i in 0..=255_u8 {
            host.add(usize::from(i)).write(i);
        }
        let mut back = [0_u8; 256];
        let to = back.as_mut_ptr().cast::<c_void>();
        e.sync_memcpy_htod.unwrap()(d, &mut a, host.cast(), 256, s);
        status.ok();
        e.sync_memcpy_dtod.unwrap()(d, &mut b, &a, 256, s);
        status.ok();
        e.sync_memcpy_dtoh.unwrap()(d, to, &b, 256, s);
        status.ok();
        assert!(back.iter().enumerate().all(|(i, &v)| usize::from(v) == i));

        let mut stream = null_mut();
        e.create_stream.unwrap()(d, &mut stream, s);
        status.ok();
        e.mem_zero.unwrap()(d, stream, &mut a, 200, s);
        e.memcpy_dtoh.unwrap()(d, stream, to, &a, 256, s);
        status.ok();
        assert!(back[..200].iter().all(|&v| v == 0) && back[200] == 200);
        e.memset.unwrap()(d, stream, &mut a, 0xab, 3, s);
        e.memset32.unwrap()(d, stream, &mut b, 0x0403_0201, 8, s);
        e.memcpy_dtod.unwrap()(d, stream, &mut a, &b, 8, s);
        e.memcpy_dtoh.unwrap()(d, stream, to, &a, 9, s);
        status.ok();
        assert_eq!(back[..9], [1, 2, 3, 4, 1, 2, 3, 4, 0]);
        e.memset32.unwrap()(d, stream, &mut b, 1, 6, s);
        assert!(
            status.message().contains("multiple"),
            "{}",
            status.message()
        );
        e.memcpy_htod.unwrap()(d, stream, &mut a, null(), 4, s);
        assert_eq!(status.message(), "host memory is null");
        e.memcpy_htod.unwrap()(d, stream, &mut a, null(), 0, s);
        status.ok();
        e.get_stream_status.unwrap()(d, stream, s);
        status.ok();
        e.destroy_stream.unwrap()(d, stream);

        e.host_memory_deallocate.unwrap()(d, host.cast());
        e.deallocate.unwrap()(d, &mut a);
        e.deallocate.unwrap()(d, &mut a);
        e.deallocate.unwrap()(d, &mut b);
        assert!(a.opaque.is_null());
        e.get_allocator_stats.unwrap()(d, &mut stats);
        assert_eq!((stats.bytes_in_use, stats.peak_bytes_in_use), (0, 512));
    }
}

fn streams_and_events(d: &sys::SP_Device, e: &sys::SP_StreamExecutor) {
    let status = Status::new();
    let s = status.0;
    // SAFETY: device, streams, events and status are live until they are destroyed.
    unsafe {
        let (mut one, mut two, mut event) = (null_mut(), null_mut(), null_mut());
        e.create_stream.unwrap()(d, &mut one, s);
        e.create_stream.unwrap()(d, &mut two, s);
        e.create_event.unwrap()(d, &mut event, s);
        status.ok();
        assert_eq!(
            e.get_event_status.unwrap()(d, event),
            sys::SE_EVENT_COMPLETE
        );
        e.record_event.unwrap()(d, one, event, s);
        e.wait_for_event.unwrap()(d, two, event, s);
        e.create_stream_dependency.unwrap()(d, two, one, s);
        e.block_host_for_event.unwrap()(d, event, s);
        e.block_host_until_done.unwrap()(d, two, s);
        e.synchronize_all_activity.unwrap()(d, s);
        status.ok();
        assert_eq!(
            e.get_event_status.unwrap()(d, event),
            sys::SE_EVENT_COMPLETE
        );
        e.record_event.unwrap()(d, null_mut(), event, s);
        assert_eq!(status.message(), "the stream is null");
        assert_eq!(
            e.get_event_status.unwrap()(d, null_mut()),
            sys::SE_EVENT_UNKNOWN
        );
        e.destroy_event.unwrap()(d, event);
        e.destroy_stream.unwrap()(d, one);
        e.destroy_stream.unwrap()(d, two);
    }
}

fn timers(registration: &Registration, d: &sys::SP_Device, e: &sys::SP_StreamExecutor) {
    let status = Status::new();
    let s = status.0;
    // SAFETY: device, stream, timer and status are live until they are destroyed.
    unsafe {
        let mut fns: sys::SP_TimerFns = std::mem::zeroed();
        fns.struct_size = sys::SP_TIMER_FNS_STRUCT_SIZE;
        let platform_fns = &*registration.params.platform_fns;
        platform_fns.create_timer_fns.unwrap()(registration.params.platform, &mut fns, s);
        status.ok();
        let (mut stream, mut timer) = (null_mut(), null_mut());
        e.create_stream.unwrap()(d, &mut stream, s);
        e.create_timer.unwrap()(d, &mut timer, s);
        e.stop_timer.unwrap()(d, stream, timer, s);
        assert_eq!(status.code(), sys::TSL_FAILED_PRECONDITION);
        e.start_timer.unwrap()(d, stream, timer, s);
        status.ok();
        assert_eq!(fns.nanoseconds.unwrap()(timer), 0);
        std::thread::sleep(std::time::Duration::from_millis(1));
        e.stop_timer.unwrap()(d, stream, timer, s);
        status.ok();
        assert!(fns.nanoseconds.unwrap()(timer) >= 1_000_000);
        e.destroy_timer.unwrap()(d, timer);
        e.destroy_stream.unwrap()(d, stream);
        platform_fns.destroy_timer_fns.unwrap()(registration.params.platform, &mut fns);
    }
}

unsafe extern "C" fn count(argument: *mut c_void, _: *mut sys::TF_Status) {
    // SAFETY: the tests pass a counter.
    unsafe { &*argument.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn refuse(argument: *mut c_void, status: *mut sys::TF_Status) {
    // SAFETY: as for `count`; the status is live.
    unsafe {
        count(argument, status);
        api()
            .tf_status
            .TF_SetStatus(status, sys::TSL_ABORTED, c"refused".as_ptr());
    }
}

fn host_callbacks(d: &sys::SP_Device, e: &sys::SP_StreamExecutor) {
    let status = Status::new();
    let calls = AtomicU32::new(0);
    let argument = std::ptr::from_ref(&calls).cast_mut().cast();
    // SAFETY: device, stream, counter and status are live.
    unsafe {
        let mut stream = null_mut();
        e.create_stream.unwrap()(d, &mut stream, status.0);
        let call = e.host_callback.unwrap();
        assert_eq!(call(d, stream, Some(count), argument), 1);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        // A callback that fails was called all the same; the failure is the stream's.
        assert_eq!(call(d, stream, Some(refuse), argument), 1);
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        e.get_stream_status.unwrap()(d, stream, status.0);
        assert_eq!(
            (status.code(), status.message()),
            (sys::TSL_ABORTED, "refused".into())
        );
        assert_eq!(call(d, stream, None, argument), 0);
        assert_eq!(call(d, null_mut(), Some(count), argument), 0);
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        e.destroy_stream.unwrap()(d, stream);
    }
}

#[test]
fn a_device_that_can_not_be_created_is_an_error_at_every_use() {
    let mut registration = Registration::new();
    registration.init(|| Ok(TestPlatform)).1.ok();
    let executor = registration.executor();
    for (ordinal, message) in [(1, "panic: device 1 is broken"), (2, "no such device")] {
        let (device, status) = registration.create(ordinal);
        status.ok();
        let (mut free, mut total) = (7, 7);
        // SAFETY: the device has been filled, and the places are live.
        unsafe {
            let known = executor.device_memory_usage.unwrap()(&*device, &mut free, &mut total);
            assert_eq!((known, free, total), (0, 7, 7));
            executor.synchronize_all_activity.unwrap()(&*device, status.0);
        }
        assert_eq!(status.message(), message);
    }
    let (_, status) = registration.create(-1);
    assert_eq!(status.code(), sys::TSL_INVALID_ARGUMENT);
}

#[test]
fn a_platform_that_fails_is_offered_without_devices() {
    for make in [
        (|| Err(Error::invalid("bad configuration"))) as fn() -> Result<TestPlatform>,
        || panic!("no"),
    ] {
        let mut registration = Registration::new();
        let (accepted, status) = registration.init(make);
        status.ok();
        assert!(!accepted);
        assert_eq!(registration.devices(), 0);
    }
}

#[test]
fn another_version_of_tensorflow_gets_no_devices() {
    let mut registration = Registration::new();
    registration.params.major_version = 1;
    let (accepted, status) = registration.init(|| Ok(TestPlatform));
    status.ok();
    assert!(!accepted);
    assert_eq!(registration.devices(), 0);

    // A larger structure of a newer minor version is fine.
    let mut registration = Registration::new();
    registration.params.struct_size += 64;
    registration.params.minor_version = 7;
    assert!(registration.init(|| Ok(TestPlatform)).0);
}

/// Standard error belongs to the process, so that this takes one of its own.
#[test]
fn no_devices_are_one_line_in_the_log() {
    for (test, expected) in [
        (
            "another_version_of_tensorflow_gets_no_devices",
            vec![
                "tfp: no devices: this TensorFlow has version 1.0.0 of the device interface, \
                 expected 0.x",
            ],
        ),
        (
            "a_platform_that_fails_is_offered_without_devices",
            vec![
                "tfp: no devices: bad configuration",
                "tfp: no devices: panic: no",
            ],
        ),
    ] {
        let done = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&done.stderr);
        let lines: Vec<_> = text.lines().filter(|l| l.starts_with("tfp:")).collect();
        assert_eq!(lines, expected);
    }
}

#[test]
fn nothing_is_written_beyond_a_structure_that_is_too_small() {
    let mut registration = Registration::new();
    registration.params.struct_size = 8;
    let (accepted, status) = registration.init(|| Ok(TestPlatform));
    assert!(!accepted);
    assert_eq!(status.code(), sys::TSL_UNIMPLEMENTED);
    assert!(registration.params.destroy_platform.is_none());
}
