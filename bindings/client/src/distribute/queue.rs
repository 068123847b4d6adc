//! The items of an asynchronous training, of which each worker takes the next one.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tfp_core::{Code, Error, Result};

use super::cluster::worker_error;

/// What is left to do, and by whom.
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

/// One that works on an item that it took.
pub(super) struct Busy<'q, T>(pub(super) &'q Queue<T>);

impl<T> Drop for Busy<'_, T> {
    fn drop(&mut self) {
        self.0.lock().busy -= 1;
        self.0.changed.notify_all();
    }
}

struct State<T> {
    items: VecDeque<T>,
    busy: usize,
    error: Option<Error>,
    gone: Vec<(String, Error)>,
}

impl<T> Queue<T> {
    pub(super) fn new(items: impl IntoIterator<Item = T>) -> Self {
        Self {
            state: Mutex::new(State {
                items: items.into_iter().collect(),
                busy: 0,
                error: None,
                gone: Vec::new(),
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next item; while others work, one of theirs may come back.
    pub(super) fn take(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if state.error.is_some() {
                return None;
            }
            if let Some(item) = state.items.pop_front() {
                state.busy += 1;
                return Some(item);
            }
            if state.busy == 0 {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn fail(&self, error: Error) {
        self.lock().error.get_or_insert(error);
    }

    pub(super) fn put_back(&self, item: T) {
        self.lock().items.push_front(item);
    }

    pub(super) fn give_back(&self, item: T, worker: String, error: &Error) {
        let mut state = self.lock();
        state.items.push_front(item);
        state.gone.push((worker, error.clone()));
    }

    pub(super) fn result(self) -> Result<()> {
        let state = self.state.into_inner();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.error {
            return Err(error);
        }
        if state.items.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = state.gone.iter().map(|(name, _)| &**name).collect();
        let last = state.gone.last().map(|(_, error)| error.to_string());
        Err(worker_error(
            names.join(", "),
            Code::Unavailable,
            format!(
                "all workers are gone, and {} items are left: {}",
                state.items.len(),
                last.unwrap_or_default()
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_of_a_worker_that_is_gone_is_done_by_another() {
        let queue = Queue::new([1, 2]);
        let lost = queue.take().unwrap();
        let busy = Busy(&queue);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let mut done = Vec::new();
                while let Some(item) = queue.take() {
                    let _busy = Busy(&queue);
                    done.push(item);
                }
                done
            });
            queue.give_back(lost, "worker 0".to_owned(), &Error::argument("gone"));
            drop(busy);
            let mut done = other.join().unwrap();
            done.sort_unstable();
            assert_eq!(done, [1, 2]);
        });
        assert_eq!(queue.result(), Ok(()));
    }

    #[test]
    fn nobody_waits_for_work_that_panics() {
        let queue = Queue::new([1, 2]);
        std::thread::scope(|scope| {
            let lost = scope.spawn(|| {
                let _item = queue.take();
                let _busy = Busy(&queue);
                panic!("the work of an item");
            });
            assert!(lost.join().is_err());
            while queue.take().is_some() {
                let _busy = Busy(&queue);
            }
        });
        assert_eq!(queue.result(), Ok(()));
    }

    #[test]
    fn what_nobody_did_is_an_error() {
        let queue = Queue::new([1]);
        let item = queue.take().unwrap();
        queue.give_back(item, "worker 0".to_owned(), &Error::argument("gone"));
        let error = queue.result().unwrap_err();
        assert_eq!(error.code(), Code::Unavailable);
        assert!(error.to_string().contains("worker 0"), "{error}");
    }

    #[test]
    fn the_first_error_ends_the_work() {
        let queue = Queue::new([1, 2]);
        queue.take().unwrap();
        queue.fail(Error::argument("first"));
        assert_eq!(queue.take(), None);
        assert_eq!(queue.result().unwrap_err().to_string(), "first");
    }
}
