//! Streams of a device that computes on the host.
//!
//! An operation runs on the thread that adds it, so it is done when the call that adds it returns.
//! Order is kept with tickets: each operation takes the next one and waits until all earlier ones
//! are done. An event is a stream and a ticket.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, ThreadId};
use std::time::Instant;

use crate::device::EventStatus;
use crate::error::{Code, Error, Result};

/// A queue of operations.
#[derive(Clone, Debug, Default)]
pub struct HostStream(Arc<Queue>);

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Tickets given out.
    issued: u64,
    /// Tickets whose operations are done.
    done: u64,
    /// The thread that runs the current operation.
    runner: Option<ThreadId>,
    /// What the next operation has to wait for.
    waits: Vec<Mark>,
    /// The first error that nobody has asked for yet.
    error: Option<Error>,
    /// Tickets of operations that failed; kept for the events that stand behind them.
    failed: Vec<u64>,
}

/// A point in a queue: all tickets up to this one.
#[derive(Clone, Debug)]
struct Mark {
    queue: Arc<Queue>,
    ticket: u64,
}

/// Failed tickets that a queue remembers.
const MAX_FAILED: usize = 64;

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_until(&self, ticket: u64) {
        let mut state = self.lock();
        while state.done < ticket {
            state = self
                .moved
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Mark {
    fn wait(&self) {
        self.queue.wait_until(self.ticket);
    }
}

impl HostStream {
    /// A new, empty stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs `operation` when all earlier ones, and what the stream was told to wait for, are done.
    ///
    /// # Errors
    /// What `operation` returns, and [`Code::FailedPrecondition`] for an operation that is added
    /// from within an operation of the same stream, which could never start.
    pub fn run(&self, operation: impl FnOnce() -> Result<()>) -> Result<()> {
        let (ticket, waits) = {
            let mut state = self.0.lock();
            if state.runner == Some(thread::current().id()) {
                return Err(Error::new(
                    Code::FailedPrecondition,
                    "an operation of a stream can't add another one to the same stream",
                ));
            }
            state.issued += 1;
            (state.issued, std::mem::take(&mut state.waits))
        };
        self.0.wait_until(ticket - 1);
        for mark in &waits {
            mark.wait();
        }
        self.0.lock().runner = Some(thread::current().id());
        // Ends the operation also when it panics, so that the stream goes on.
        let mut end = End {
            queue: &self.0,
            ticket,
            error: Some(Error::internal("an operation of the stream panicked")),
        };
        let result = operation();
        end.error = result.as_ref().err().cloned();
        drop(end);
        result
    }

    /// The error of an operation that failed since the last call.
    ///
    /// # Errors
    /// That error.
    pub fn status(&self) -> Result<()> {
        self.0.lock().error.take().map_or(Ok(()), Err)
    }

    /// Later operations of this stream wait for those that `other` has now.
    pub fn wait_for_stream(&self, other: &Self) {
        self.wait_for(other.mark());
    }

    /// Later operations of this stream wait for the event.
    pub fn wait_for_event(&self, event: &HostEvent) {
        if let Some(mark) = event.mark() {
            self.wait_for(mark);
        }
    }

    fn wait_for(&self, mark: Mark) {
        // What is done already, and this stream's own past, need no wait.
        if !Arc::ptr_eq(&mark.queue, &self.0) && mark.queue.lock().done < mark.ticket {
            self.0.lock().waits.push(mark);
        }
    }

    /// Returns when the operations that the stream has now are done.
    pub fn block_until_done(&self) {
        self.mark().wait();
    }

    /// A reference that does not keep the stream.
    pub(super) fn downgrade(&self) -> WeakStream {
        WeakStream(Arc::downgrade(&self.0))
    }

    fn mark(&self) -> Mark {
        Mark {
            ticket: self.0.lock().issued,
            queue: Arc::clone(&self.0),
        }
    }
}

/// A stream that may be gone.
#[derive(Clone, Debug)]
pub(super) struct WeakStream(Weak<Queue>);

impl WeakStream {
    pub(super) fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }

    pub(super) fn upgrade(&self) -> Option<HostStream> {
        self.0.upgrade().map(HostStream)
    }
}

struct End<'a> {
    queue: &'a Queue,
    ticket: u64,
    error: Option<Error>,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.runner = None;
        state.done = self.ticket;
        if let Some(error) = self.error.take() {
            state.error.get_or_insert(error);
            if state.failed.len() == MAX_FAILED {
                state.failed.remove(0);
            }
            state.failed.push(self.ticket);
        }
        drop(state);
        self.queue.moved.notify_all();
    }
}

/// A point in a stream; complete before it is recorded.
#[derive(Debug, Default)]
pub struct HostEvent(Mutex<Recorded>);

#[derive(Debug, Default)]
struct Recorded {
    mark: Option<Mark>,
    /// Failures up to this ticket are too old to be the event's.
    after: u64,
}

impl HostEvent {
    /// A new event, not recorded.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn mark(&self) -> Option<Mark> {
        self.lock().mark.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The event now stands for the operations that the stream has now.
    pub fn record(&self, stream: &HostStream) {
        let (ticket, done) = {
            let state = stream.0.lock();
            (state.issued, state.done)
        };
        let mut recorded = self.lock();
        recorded.after = done.saturating_sub(1);
        recorded.mark = Some(Mark {
            queue: Arc::clone(&stream.0),
            ticket,
        });
    }

    /// State now.
    #[must_use]
    pub fn status(&self) -> EventStatus {
        let recorded = self.lock();
        let Some(mark) = &recorded.mark else {
            return EventStatus::Complete;
        };
        let state = mark.queue.lock();
        if state.done < mark.ticket {
            EventStatus::Pending
        } else if state
            .failed
            .iter()
            .any(|&t| t > recorded.after && t <= mark.ticket)
        {
            EventStatus::Error
        } else {
            EventStatus::Complete
        }
    }

    /// Returns when the event is complete.
    pub fn block(&self) {
        if let Some(mark) = self.mark() {
            mark.wait();
        }
    }
}

/// The time between two points of a stream.
#[derive(Debug, Default)]
pub struct HostTimer {
    start: Mutex<Option<Instant>>,
    nanoseconds: AtomicU64,
}

impl HostTimer {
    /// A timer that has not run.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts it now.
    pub fn start(&self) {
        *self.start.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.nanoseconds.store(0, Ordering::Relaxed);
    }

    /// Stops it now.
    ///
    /// # Errors
    /// [`Code::FailedPrecondition`] if it was not started.
    pub fn stop(&self) -> Result<()> {
        let start = *self.start.lock().unwrap_or_else(PoisonError::into_inner);
        let start = start.ok_or_else(|| {
            Error::new(
                Code::FailedPrecondition,
                "the timer is stopped but was not started",
            )
        })?;
        let elapsed = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.store(elapsed.max(1), Ordering::Relaxed);
        Ok(())
    }

    /// Nanoseconds between start and stop; 0 before.
    #[must_use]
    pub fn nanoseconds(&self) -> u64 {
        self.nanoseconds.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn operations_of_many_threads_run_one_by_one() {
        let stream = HostStream::new();
        let mut sum = 0_u64;
        let cell = std::sync::atomic::AtomicPtr::new(&mut sum);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let add = || {
                            // SAFETY: operations of one stream never run at the same time.
                            unsafe { *cell.load(Ordering::Relaxed) += 1 };
                            Ok(())
                        };
                        stream.run(add).unwrap();
                    }
                });
            }
        });
        assert_eq!(sum, 2000);
    }

    #[test]
    fn events_are_pending_while_the_operation_runs() {
        let stream = HostStream::new();
        let event = HostEvent::new();
        assert_eq!(event.status(), EventStatus::Complete);
        let (go, wait) = mpsc::channel::<()>();
        let (started, running) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let slow = stream.clone();
            scope.spawn(move || {
                let operation = || {
                    started.send(()).unwrap();
                    wait.recv().unwrap();
                    Ok(())
                };
                slow.run(operation).unwrap();
            });
            running.recv().unwrap();
            event.record(&stream);
            assert_eq!(event.status(), EventStatus::Pending);

            let other = HostStream::new();
            other.wait_for_event(&event);
            let third = HostStream::new();
            third.wait_for_stream(&stream);
            let (done, waited) = mpsc::channel();
            for dependent in [other, third] {
                let done = done.clone();
                scope.spawn(move || {
                    dependent.run(|| Ok(())).unwrap();
                    done.send(()).unwrap();
                });
            }
            assert!(waited.recv_timeout(Duration::from_millis(30)).is_err());
            go.send(()).unwrap();
            event.block();
            assert_eq!(event.status(), EventStatus::Complete);
            waited.recv().unwrap();
            waited.recv().unwrap();
        });
    }

    #[test]
    fn failures_are_reported_once_and_the_stream_goes_on() {
        let stream = HostStream::new();
        let event = HostEvent::new();
        assert!(stream.run(|| Err(Error::internal("no"))).is_err());
        event.record(&stream);
        assert_eq!(event.status(), EventStatus::Error);
        assert_eq!(stream.status().unwrap_err().message(), "no");
        assert!(stream.status().is_ok());
        stream.run(|| Ok(())).unwrap();
        stream.run(|| Ok(())).unwrap();
        event.record(&stream);
        assert_eq!(event.status(), EventStatus::Complete);
    }

    #[test]
    fn a_panic_or_a_nested_operation_does_not_stop_the_stream() {
        let stream = HostStream::new();
        let panicking = std::panic::AssertUnwindSafe(|| stream.run(|| panic!("x")));
        assert!(std::panic::catch_unwind(panicking).is_err());
        let nested = stream.run(|| stream.run(|| Ok(())));
        assert_eq!(nested.unwrap_err().code(), Code::FailedPrecondition);
        stream.run(|| Ok(())).unwrap();
        stream.block_until_done();
    }

    #[test]
    fn timers_measure() {
        let timer = HostTimer::new();
        assert!(timer.stop().is_err());
        timer.start();
        thread::sleep(Duration::from_millis(2));
        timer.stop().unwrap();
        assert!(timer.nanoseconds() >= 2_000_000);
    }
}
