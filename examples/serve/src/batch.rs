//! Requests that wait for each other, so that a model computes many in a run.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::array::Array;
use crate::failure::{Failure, Status};
use crate::metrics::Metrics;
use crate::model::{Model, Signature};

/// What bounds batches and the queue of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchOptions {
    /// The most rows in a run. A request that has more runs alone.
    pub rows: usize,
    /// The longest that a request waits for others.
    pub delay: Duration,
    /// The most requests that wait.
    pub queue: usize,
    /// The runs of a signature at a time.
    pub runs: usize,
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self {
            rows: 32,
            delay: Duration::from_millis(1),
            queue: 256,
            runs: 1,
        }
    }
}

/// What a request gets: an array per output of the signature.
pub type Outcome = Result<Vec<Array>, Failure>;

struct Job {
    arrays: Vec<Array>,
    /// The rows, if it may go with others.
    rows: Option<usize>,
    arrived: Instant,
    deadline: Instant,
    reply: oneshot::Sender<Outcome>,
}

impl Job {
    /// Whether two requests have rows of the same shapes.
    fn goes_with(&self, other: &Self) -> bool {
        let same = |(a, b): (&Array, &Array)| a.dims[1..] == b.dims[1..];
        self.rows.is_some()
            && other.rows.is_some()
            && self.arrays.iter().zip(&other.arrays).all(same)
    }
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    /// A thread waits for more requests beside the first of the queue.
    gathering: bool,
    stopping: bool,
}

struct Shared {
    model: Arc<dyn Model>,
    signature: String,
    options: BatchOptions,
    metrics: Arc<Metrics>,
    state: Mutex<State>,
    changed: Condvar,
    joins: AtomicBool,
}

/// The queue of a signature and the threads that run it. Dropping it computes what waits.
pub struct Batcher {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Batcher {
    /// Starts the threads of a signature.
    ///
    /// # Errors
    /// If the system has no thread left.
    pub fn new(
        model: Arc<dyn Model>,
        name: &str,
        signature: &Signature,
        options: BatchOptions,
        metrics: Arc<Metrics>,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            model,
            signature: name.to_owned(),
            options,
            metrics,
            state: Mutex::default(),
            changed: Condvar::new(),
            joins: AtomicBool::new(signature.has_rows() && options.rows > 1),
        });
        let mut batcher = Self {
            shared,
            threads: Vec::new(),
        };
        for _ in 0..options.runs.max(1) {
            let shared = Arc::clone(&batcher.shared);
            let thread = std::thread::Builder::new().name("batch".to_owned());
            batcher.threads.push(thread.spawn(move || shared.work())?);
        }
        Ok(batcher)
    }

    /// Puts a request into the queue. Its arrays fit the signature.
    ///
    /// # Errors
    /// [`Status::TooMany`] for a full queue.
    pub fn submit(
        &self,
        arrays: Vec<Array>,
        deadline: Instant,
    ) -> Result<oneshot::Receiver<Outcome>, Failure> {
        let rows = arrays.first().and_then(Array::rows);
        let is_even = arrays.iter().all(|array| array.rows() == rows);
        let joins = is_even && self.shared.joins.load(Ordering::Relaxed);
        let (reply, outcome) = oneshot::channel();
        let job = Job {
            arrays,
            rows: rows.filter(|_| joins),
            arrived: Instant::now(),
            deadline,
            reply,
        };
        let mut state = self.shared.lock();
        if state.queue.len() >= self.shared.options.queue {
            return Err(Failure::new(
                Status::TooMany,
                format!("{} requests wait already", state.queue.len()),
            ));
        }
        state.queue.push_back(job);
        self.shared.metrics.waiting.fetch_add(1, Ordering::Relaxed);
        drop(state);
        self.shared.changed.notify_all();
        Ok(outcome)
    }
}

impl Drop for Batcher {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A panic of a thread was told where it happened.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some(jobs) = self.next() {
            self.compute(jobs);
        }
    }

    /// Waits for requests that go together; `None` at the end.
    fn next(&self) -> Option<Vec<Job>> {
        let mut state = self.lock();
        while state.gathering || state.queue.is_empty() {
            if state.stopping && state.queue.is_empty() {
                return None;
            }
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        state.gathering = true;
        while let Some(first) = state.queue.front() {
            let due = first.arrived + self.options.delay;
            let fitting = state.queue.iter().filter(|job| first.goes_with(job));
            let rows: usize = fitting.filter_map(|job| job.rows).sum();
            let left = due.saturating_duration_since(Instant::now());
            let is_full = first.rows.is_none() || rows >= self.options.rows;
            if is_full || state.stopping || left.is_zero() {
                break;
            }
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        let jobs = self.take(&mut state.queue);
        state.gathering = false;
        drop(state);
        self.changed.notify_all();
        let count = i64::try_from(jobs.len()).unwrap_or(i64::MAX);
        self.metrics.waiting.fetch_sub(count, Ordering::Relaxed);
        Some(jobs)
    }

    /// Takes the first request and those that go with it, in their order.
    fn take(&self, queue: &mut VecDeque<Job>) -> Vec<Job> {
        let mut jobs: Vec<Job> = queue.pop_front().into_iter().collect();
        let mut rows = jobs.first().and_then(|job| job.rows).unwrap_or(0);
        let mut at = 0;
        while rows < self.options.rows && at < queue.len() {
            let more = queue[at].rows.unwrap_or(0);
            let fits = jobs[0].goes_with(&queue[at]) && rows + more <= self.options.rows;
            match fits.then(|| queue.remove(at)).flatten() {
                Some(job) => {
                    rows += more;
                    jobs.push(job);
                }
                None => at += 1,
            }
        }
        jobs
    }

    fn compute(&self, mut jobs: Vec<Job>) {
        let now = Instant::now();
        // Nobody waits for the others any more.
        jobs.retain(|job| job.deadline > now && !job.reply.is_closed());
        if jobs.len() > 1 && self.compute_together(&mut jobs) {
            return;
        }
        for job in jobs {
            if job.deadline > Instant::now() {
                let outcome = self.run(job.arrays, job.deadline);
                self.answer(job.reply, outcome);
            }
        }
    }

    fn answer(&self, reply: oneshot::Sender<Outcome>, outcome: Outcome) {
        self.metrics.computed.fetch_add(1, Ordering::Relaxed);
        // The caller may have gone meanwhile.
        let _ = reply.send(outcome);
    }

    /// Computes requests in one run; where that fails they are left, and run alone: one that is
    /// wrong fails alone.
    fn compute_together(&self, jobs: &mut Vec<Job>) -> bool {
        let rows: Vec<usize> = jobs.iter().filter_map(|job| job.rows).collect();
        let Some(deadline) = jobs.iter().map(|job| job.deadline).max() else {
            return false;
        };
        let column = |at: usize| {
            let arrays = jobs.iter().map(|job| job.arrays[at].clone());
            Array::concat(arrays.collect())
        };
        let inputs: Result<Vec<Array>, Failure> = (0..jobs[0].arrays.len()).map(column).collect();
        let Ok(outputs) = inputs.and_then(|inputs| self.run(inputs, deadline)) else {
            return false;
        };
        let split: Result<Vec<Vec<Array>>, Failure> =
            outputs.into_iter().map(|all| all.split(&rows)).collect();
        let Ok(split) = split else {
            // The model says that axis 0 is open, and does not keep rows.
            self.joins.store(false, Ordering::Relaxed);
            return false;
        };
        let mut columns: Vec<_> = split.into_iter().map(Vec::into_iter).collect();
        for job in jobs.drain(..) {
            let outputs = columns.iter_mut().filter_map(Iterator::next).collect();
            self.answer(job.reply, Ok(outputs));
        }
        true
    }

    fn run(&self, inputs: Vec<Array>, deadline: Instant) -> Outcome {
        self.metrics.runs.fetch_add(1, Ordering::Relaxed);
        let run = || self.model.run(&self.signature, inputs, deadline);
        catch_unwind(AssertUnwindSafe(run))
            .unwrap_or_else(|_| Err(Failure::new(Status::Internal, "the model panicked")))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::array::Data;
    use crate::model::Spec;

    /// Doubles numbers, refuses negative ones, panics at 99 and tells how many rows each run had.
    struct Doubler {
        signatures: BTreeMap<String, Signature>,
        runs: Mutex<Vec<usize>>,
        keeps_rows: bool,
    }

    impl Model for Doubler {
        fn signatures(&self) -> &BTreeMap<String, Signature> {
            &self.signatures
        }

        fn run(&self, _: &str, inputs: Vec<Array>, _: Instant) -> Outcome {
            let Data::I32(list) = &inputs[0].data else {
                return Err(Failure::invalid("not integers"));
            };
            self.runs.lock().unwrap().push(list.len());
            assert!(!list.contains(&99), "a panic that the test asks for");
            if let Some(negative) = list.iter().find(|number| **number < 0) {
                return Err(Failure::invalid(format!("{negative} is negative")));
            }
            let mut doubled: Vec<i32> = list.iter().map(|number| 2 * number).collect();
            if !self.keeps_rows {
                doubled.truncate(1);
            }
            Ok(vec![Array::new(vec![doubled.len()], Data::I32(doubled))?])
        }
    }

    fn doubler(keeps_rows: bool, options: BatchOptions) -> (Arc<Doubler>, Batcher) {
        let spec = Spec {
            dtype: "DT_INT32".into(),
            dims: Some(vec![-1]),
            ..Spec::default()
        };
        let signature = Signature {
            inputs: vec![spec.clone()],
            outputs: vec![spec],
            ..Signature::default()
        };
        let model = Arc::new(Doubler {
            signatures: BTreeMap::new(),
            runs: Mutex::default(),
            keeps_rows,
        });
        let metrics = Arc::default();
        let batcher = Batcher::new(model.clone(), "f", &signature, options, metrics).unwrap();
        (model, batcher)
    }

    fn numbers(list: &[i32]) -> Vec<Array> {
        vec![Array::new(vec![list.len()], Data::I32(list.to_vec())).unwrap()]
    }

    fn later(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    const LONG: BatchOptions = BatchOptions {
        rows: 4,
        delay: Duration::from_secs(60),
        queue: 100,
        runs: 1,
    };

    #[test]
    fn a_full_batch_does_not_wait() {
        let (model, batcher) = doubler(true, LONG);
        let submit = |list: &[i32]| batcher.submit(numbers(list), later(60)).unwrap();
        let waiting = [submit(&[1, 2]), submit(&[3]), submit(&[4])];
        let outcomes = waiting.map(|outcome| outcome.blocking_recv().unwrap());
        let expected = [&[2, 4][..], &[6], &[8]].map(|list| Ok(numbers(list)));
        assert_eq!(outcomes, expected);
        assert_eq!(*model.runs.lock().unwrap(), [4]);
        // More rows than a batch has: a run of its own.
        let outcome = submit(&[1, 2, 3, 4, 5]).blocking_recv().unwrap();
        assert_eq!(outcome, Ok(numbers(&[2, 4, 6, 8, 10])));
    }

    #[test]
    fn the_delay_ends_a_batch() {
        let options = BatchOptions {
            delay: Duration::from_millis(1),
            ..LONG
        };
        let (_, batcher) = doubler(true, options);
        let outcome = batcher.submit(numbers(&[21]), later(60)).unwrap();
        assert_eq!(outcome.blocking_recv().unwrap(), Ok(numbers(&[42])));
    }

    #[test]
    fn one_that_is_wrong_fails_alone() {
        let (_, batcher) = doubler(true, LONG);
        let submit = |list: &[i32]| batcher.submit(numbers(list), later(60)).unwrap();
        let waiting = [submit(&[1]), submit(&[-1]), submit(&[99]), submit(&[2])];
        let outcomes = waiting.map(|outcome| outcome.blocking_recv().unwrap());
        assert_eq!(outcomes[0], Ok(numbers(&[2])));
        assert_eq!(outcomes[3], Ok(numbers(&[4])));
        let failures = [&outcomes[1], &outcomes[2]].map(|outcome| outcome.clone().unwrap_err());
        assert_eq!(failures[0].message, "-1 is negative");
        assert_eq!(failures[1].status, Status::Internal);
    }

    #[test]
    fn a_model_that_does_not_keep_rows_runs_each_request_alone() {
        let (model, batcher) = doubler(false, LONG);
        let submit = |list: &[i32]| batcher.submit(numbers(list), later(60)).unwrap();
        let waiting = [submit(&[1, 2]), submit(&[3, 4])];
        let outcomes = waiting.map(|outcome| outcome.blocking_recv().unwrap());
        assert_eq!(outcomes, [Ok(numbers(&[2])), Ok(numbers(&[6]))]);
        assert_eq!(submit(&[5]).blocking_recv().unwrap(), Ok(numbers(&[10])));
        assert_eq!(*model.runs.lock().unwrap(), [4, 2, 2, 1]);
    }

    #[test]
    fn a_full_queue_refuses_and_the_end_computes_what_waits() {
        let options = BatchOptions {
            queue: 2,
            rows: 100,
            ..LONG
        };
        let (model, batcher) = doubler(true, options);
        let submit = |list: &[i32]| batcher.submit(numbers(list), later(60));
        let waiting = [submit(&[1]).unwrap(), submit(&[2]).unwrap()];
        assert_eq!(submit(&[3]).unwrap_err().status, Status::TooMany);
        drop(batcher);
        let outcomes = waiting.map(|outcome| outcome.blocking_recv().unwrap());
        assert_eq!(outcomes, [Ok(numbers(&[2])), Ok(numbers(&[4]))]);
        assert_eq!(*model.runs.lock().unwrap(), [2]);
    }

    #[test]
    fn what_nobody_waits_for_is_not_computed() {
        let (model, batcher) = doubler(true, BatchOptions { rows: 100, ..LONG });
        let late = batcher.submit(numbers(&[1]), Instant::now()).unwrap();
        drop(batcher.submit(numbers(&[2]), later(60)).unwrap());
        let waiting = batcher.submit(numbers(&[3]), later(60)).unwrap();
        drop(batcher);
        assert_eq!(waiting.blocking_recv().unwrap(), Ok(numbers(&[6])));
        assert!(late.blocking_recv().is_err());
        assert_eq!(*model.runs.lock().unwrap(), [1]);
    }
}
