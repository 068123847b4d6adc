//! Variables on servers, and workers that don't wait for each other.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tfp_core::{Code, EagerContext, Error, ErrorKind, IntoOperand, Result, TensorHandle};

use super::cluster::{described, task_name, worker_error};
use super::config::TfConfig;
use super::meeting::{ask_all, listens, wait_for};
use super::workers::ClusterOptions;
use crate::variable::Variable;

/// How often the first connection is tried again after a timeout.
const RETRIES: u16 = 1;
/// How often a worker that is there tries an item again that met a broken connection, and the pause before.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// The coordinator of an asynchronous training: the variables are on the tasks of job `ps`, and the tasks of
/// job `worker` compute with them. Those tasks run a [`Server`](super::Server); this process is another task
/// of the cluster, such as the chief.
///
/// A worker reads the variables and changes them without waiting for the others, as in Python's
/// `ParameterServerStrategy`. Each op that runs on a task is a message to it, so a step is best one
/// [`GraphFunction`](crate::GraphFunction).
pub struct ParameterServer {
    config: TfConfig,
    context: EagerContext,
    next: AtomicUsize,
}

impl ParameterServer {
    /// Connects to all tasks of a cluster, each of which runs a server.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] for a cluster without `ps` or `worker`, or a process that is one of them;
    /// [`ErrorKind::Worker`] with the tasks that don't answer in the time of
    /// [`ClusterOptions::register`], or with this one when another process has its address.
    pub fn connect(config: &TfConfig, options: &ClusterOptions) -> Result<Self> {
        let cluster = config.cluster();
        for job in ["ps", "worker"] {
            if cluster.tasks(job).is_empty() {
                return Err(Error::argument(format!(
                    "the cluster of a coordinator has no task of job '{job}'"
                )));
            }
            if config.job() == job {
                return Err(Error::argument(format!(
                    "{} runs a Server; a coordinator is a task of another job, such as 'chief'",
                    config.described()
                )));
            }
        }
        config.check_free()?;
        let jobs = ["ps", "worker"].into_iter();
        let tasks: Vec<_> = jobs
            .flat_map(|job| {
                let tasks = cluster.tasks(job).iter().enumerate();
                tasks.map(move |(index, address)| (job, index, &**address))
            })
            .collect();
        // TensorFlow waits for a task that does not come much longer than it is told.
        wait_for(&tasks, Instant::now() + options.register)?;
        let context = EagerContext::with_options(&options.eager)?;
        let server = config.server_def(options.eager.config.as_bytes());
        context
            .connect(&server, options.register, RETRIES)
            .map_err(|error| {
                let silent = ask_all(&tasks, listens);
                let worker = match silent.is_empty() {
                    true => config.described(),
                    false => silent.join(", "),
                };
                let problem = format!("no connection: {error}; start a Server for each task");
                worker_error(worker, error.code(), problem)
            })?;
        Ok(Self {
            config: config.clone(),
            context,
            next: AtomicUsize::new(0),
        })
    }

    /// Returns the context of all tasks; its ops run in this process, unless they have a device or take a
    /// resource that is on another task.
    #[must_use]
    pub fn context(&self) -> &EagerContext {
        &self.context
    }

    /// Makes a variable on the next parameter server, one after the other.
    ///
    /// # Errors
    /// As for [`Variable::new`].
    pub fn variable<'a>(
        &self,
        name: &str,
        initial: impl IntoOperand<'a, TensorHandle>,
    ) -> Result<Variable> {
        let servers = self.config.cluster().tasks("ps").len();
        let index = self.next.fetch_add(1, Ordering::Relaxed) % servers.max(1);
        let place = self.context.on_device(&cpu("ps", index))?;
        Variable::new(&place, name, initial)
    }

    /// Returns the number of workers.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.config.cluster().tasks("worker").len()
    }

    /// Returns the context whose ops run on a worker.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] for a number that no worker has.
    pub fn worker(&self, index: usize) -> Result<EagerContext> {
        if index >= self.workers() {
            return Err(Error::argument(format!(
                "worker {index} of {} workers",
                self.workers()
            )));
        }
        self.context.on_device(&cpu("worker", index))
    }

    /// Does work for each item on whichever worker is idle, and returns when all of it is done. The work gets
    /// the context of its worker and the item.
    ///
    /// An item whose worker is gone goes to another one, so that a part of its work may be done twice.
    ///
    /// # Errors
    /// The first error of the work, after which no item is begun; [`ErrorKind::Worker`] with the servers
    /// that are gone, or with all workers when none is left.
    pub fn for_each<T: Send + Sync>(
        &self,
        items: impl IntoIterator<Item = T>,
        work: impl Fn(&EagerContext, &T) -> Result<()> + Sync,
    ) -> Result<()> {
        let queue = Queue {
            state: Mutex::new(State {
                items: items.into_iter().collect(),
                busy: 0,
                error: None,
                gone: Vec::new(),
            }),
            changed: Condvar::new(),
        };
        let contexts = (0..self.workers()).map(|index| self.worker(index));
        let contexts = contexts.collect::<Result<Vec<_>>>()?;
        std::thread::scope(|scope| {
            for (index, context) in contexts.iter().enumerate() {
                let (queue, work) = (&queue, &work);
                scope.spawn(move || {
                    let mut tries = 0;
                    while let Some(item) = queue.take() {
                        // Without it, others would wait for ever for an item whose work panics.
                        let _busy = Busy(queue);
                        match work(context, &item) {
                            Ok(()) => tries = 0,
                            Err(error) if is_gone(&error) => match self.silent(index) {
                                Some(silent) if !silent.is_empty() => {
                                    return queue.fail(lost(&silent, &error));
                                }
                                // The connection of another worker broke, which an op of this one met.
                                Some(_) if tries < TRIES => {
                                    tries += 1;
                                    queue.put_back(item);
                                    std::thread::sleep(PAUSE);
                                }
                                _ => {
                                    let address = &self.config.cluster().tasks("worker")[index];
                                    let worker = described(("worker", index, address));
                                    return queue.give_back(item, worker, &error);
                                }
                            },
                            Err(error) => return queue.fail(error),
                        }
                    }
                });
            }
        });
        queue.result()
    }

    /// The servers that are gone; nothing when the worker itself is gone.
    #[cold]
    fn silent(&self, worker: usize) -> Option<Vec<String>> {
        let cluster = self.config.cluster();
        let address = cluster.tasks("worker").get(worker)?;
        if !listens(("worker", worker, address)) {
            return None;
        }
        let servers = cluster.tasks("ps").iter().enumerate();
        let servers: Vec<_> = servers
            .map(|(at, address)| ("ps", at, &**address))
            .collect();
        Some(ask_all(&servers, listens))
    }
}

/// The error of servers that are gone: no worker can do an item that needs their variables.
#[cold]
fn lost(servers: &[String], error: &Error) -> Error {
    let problem = format!(
        "the server is gone with its variables ({error}); start all tasks again and go on from the last \
         checkpoint"
    );
    worker_error(servers.join(", "), error.code(), problem)
}

impl fmt::Debug for ParameterServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ParameterServer of {} workers", self.workers())
    }
}

fn cpu(job: &str, index: usize) -> String {
    format!("{}/device:CPU:0", task_name(job, index))
}

/// Whether an error says that a task is not there any more.
fn is_gone(error: &Error) -> bool {
    let code = error.code();
    matches!(error.kind(), ErrorKind::Status { .. })
        && matches!(code, Code::Unavailable | Code::Aborted | Code::Cancelled)
}

/// What is left to do, and by whom.
struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

/// One that works on an item that it took.
struct Busy<'q, T>(&'q Queue<T>);

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
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next item; while others work, one of theirs may come back.
    fn take(&self) -> Option<T> {
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

    fn fail(&self, error: Error) {
        self.lock().error.get_or_insert(error);
    }

    fn put_back(&self, item: T) {
        self.lock().items.push_front(item);
    }

    fn give_back(&self, item: T, worker: String, error: &Error) {
        let mut state = self.lock();
        state.items.push_front(item);
        state.gone.push((worker, error.clone()));
    }

    fn result(self) -> Result<()> {
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

    fn queue(items: Vec<i32>) -> Queue<i32> {
        let state = State {
            items: items.into(),
            busy: 0,
            error: None,
            gone: Vec::new(),
        };
        Queue {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    #[test]
    fn an_item_of_a_worker_that_is_gone_is_done_by_another() {
        let queue = queue(vec![1, 2]);
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
        let queue = queue(vec![1, 2]);
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
        let queue = queue(vec![1]);
        let item = queue.take().unwrap();
        queue.give_back(item, "worker 0".to_owned(), &Error::argument("gone"));
        let error = queue.result().unwrap_err();
        assert_eq!(error.code(), Code::Unavailable);
        assert!(error.to_string().contains("worker 0"), "{error}");
    }

    #[test]
    fn the_first_error_ends_the_work() {
        let queue = queue(vec![1, 2]);
        queue.take().unwrap();
        queue.fail(Error::argument("first"));
        assert_eq!(queue.take(), None);
        assert_eq!(queue.result().unwrap_err().to_string(), "first");
    }
}
