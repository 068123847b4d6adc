//! Streams, events and timers.

use tfp_sys as sys;

use super::{device, drop_object, new_object, object, stream};
use crate::barrier::{answer, report};
use crate::device::{Device, EventStatus};
use crate::error::Result;

/// # Safety
/// `raw` is null or an event of a device of type `D` that lives during the call.
unsafe fn event<'a, D: Device>(raw: sys::SP_Event) -> Result<&'a D::Event> {
    // SAFETY: by this function's contract.
    unsafe { object(raw, "the event") }
}

/// # Safety
/// `raw` is null or a timer of a device of type `D` that lives during the call.
unsafe fn timer<'a, D: Device>(raw: sys::SP_Timer) -> Result<&'a D::Timer> {
    // SAFETY: by this function's contract.
    unsafe { object(raw, "the timer") }
}

reported! {
    create_stream(raw, place: *mut sys::SP_Stream) =>
        new_object(place, device::<D>(raw)?.create_stream()?);
    create_stream_dependency(raw, dependent: sys::SP_Stream, other: sys::SP_Stream) =>
        device::<D>(raw)?.wait_for_stream(stream::<D>(dependent)?, stream::<D>(other)?);
    get_stream_status(raw, queue: sys::SP_Stream) =>
        device::<D>(raw)?.stream_status(stream::<D>(queue)?);
    block_host_until_done(raw, queue: sys::SP_Stream) =>
        device::<D>(raw)?.block_until_done(stream::<D>(queue)?);
    synchronize_all_activity(raw) => device::<D>(raw)?.synchronize();

    create_event(raw, place: *mut sys::SP_Event) =>
        new_object(place, device::<D>(raw)?.create_event()?);
    record_event(raw, queue: sys::SP_Stream, mark: sys::SP_Event) =>
        device::<D>(raw)?.record_event(stream::<D>(queue)?, event::<D>(mark)?);
    wait_for_event(raw, queue: sys::SP_Stream, mark: sys::SP_Event) =>
        device::<D>(raw)?.wait_for_event(stream::<D>(queue)?, event::<D>(mark)?);
    block_host_for_event(raw, mark: sys::SP_Event) =>
        device::<D>(raw)?.block_for_event(event::<D>(mark)?);

    create_timer(raw, place: *mut sys::SP_Timer) =>
        new_object(place, device::<D>(raw)?.create_timer()?);
    start_timer(raw, queue: sys::SP_Stream, clock: sys::SP_Timer) =>
        device::<D>(raw)?.start_timer(stream::<D>(queue)?, timer::<D>(clock)?);
    stop_timer(raw, queue: sys::SP_Stream, clock: sys::SP_Timer) =>
        device::<D>(raw)?.stop_timer(stream::<D>(queue)?, timer::<D>(clock)?);
}

dropping! {
    destroy_stream(Stream: sys::SP_Stream);
    destroy_event(Event: sys::SP_Event);
    destroy_timer(Timer: sys::SP_Timer);
}

pub(super) unsafe extern "C" fn get_event_status<D: Device>(
    raw: *const sys::SP_Device,
    mark: sys::SP_Event,
) -> sys::SE_EventStatus {
    answer("get_event_status", sys::SE_EVENT_UNKNOWN, || {
        // SAFETY: TensorFlow passes the device and one of its events.
        let (device, event) = unsafe { (device::<D>(raw)?, event::<D>(mark)?) };
        Ok(match device.event_status(event) {
            EventStatus::Error => sys::SE_EVENT_ERROR,
            EventStatus::Pending => sys::SE_EVENT_PENDING,
            EventStatus::Complete => sys::SE_EVENT_COMPLETE,
        })
    })
}

pub(super) unsafe extern "C" fn nanoseconds<D: Device>(clock: sys::SP_Timer) -> u64 {
    answer("nanoseconds", 0, || {
        // SAFETY: TensorFlow passes a timer of a device.
        Ok(D::timer_nanoseconds(unsafe { timer::<D>(clock)? }))
    })
}
