//! Streams, events and timers.

use tfp_sys as sys;

use super::{device, drop_object, new_object, object};
use crate::barrier::{answer, report};
use crate::device::{Device, EventStatus};

pub(super) unsafe extern "C" fn create_stream<D: Device>(
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

pub(super) unsafe extern "C" fn destroy_stream<D: Device>(
    _: *const sys::SP_Device,
    stream: sys::SP_Stream,
) {
    drop_object::<D::Stream, _>("destroy_stream", stream);
}

pub(super) unsafe extern "C" fn create_stream_dependency<D: Device>(
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

pub(super) unsafe extern "C" fn get_stream_status<D: Device>(
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

pub(super) unsafe extern "C" fn create_event<D: Device>(
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

pub(super) unsafe extern "C" fn destroy_event<D: Device>(
    _: *const sys::SP_Device,
    event: sys::SP_Event,
) {
    drop_object::<D::Event, _>("destroy_event", event);
}

pub(super) unsafe extern "C" fn get_event_status<D: Device>(
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

pub(super) unsafe extern "C" fn record_event<D: Device>(
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

pub(super) unsafe extern "C" fn wait_for_event<D: Device>(
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

pub(super) unsafe extern "C" fn block_host_for_event<D: Device>(
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

pub(super) unsafe extern "C" fn block_host_until_done<D: Device>(
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

pub(super) unsafe extern "C" fn synchronize_all_activity<D: Device>(
    raw: *const sys::SP_Device,
    status: *mut sys::TF_Status,
) {
    // SAFETY: TensorFlow passes the device that `attach` filled and a live status.
    unsafe { report(status, || device::<D>(raw)?.synchronize()) }
}

pub(super) unsafe extern "C" fn create_timer<D: Device>(
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

pub(super) unsafe extern "C" fn destroy_timer<D: Device>(
    _: *const sys::SP_Device,
    timer: sys::SP_Timer,
) {
    drop_object::<D::Timer, _>("destroy_timer", timer);
}

pub(super) unsafe extern "C" fn start_timer<D: Device>(
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

pub(super) unsafe extern "C" fn stop_timer<D: Device>(
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

pub(super) unsafe extern "C" fn nanoseconds<D: Device>(timer: sys::SP_Timer) -> u64 {
    answer("nanoseconds", 0, || {
        // SAFETY: TensorFlow passes a timer of a device.
        let timer = unsafe { object::<D::Timer, _>(timer, "the timer")? };
        Ok(D::timer_nanoseconds(timer))
    })
}
