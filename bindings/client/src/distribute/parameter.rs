//! Variables on servers, and workers that don't wait for each other.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tfp_core::wire::Writer;
use tfp_core::{
    Code, Config, EagerContext, Error, ErrorKind, Executor, IntoOperand, Result, TensorHandle,
};

use super::cluster::{described, task_name, worker_error};
use super::config::TfConfig;
use super::meeting::{ask_all, listens, wait_for};
use super::queue::{Busy, Queue};
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
    /// What runs the ops of each worker's thread: an error of one reaches no other, nor the ops of the
    /// coordinator itself. A tensor that was on a worker may bring one when it is dropped.
    executors: Vec<Executor>,
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
        let mut eager = options.eager.clone();
        eager.config = bounded(&eager.config, options.collective);
        let context = EagerContext::with_options(&eager)?;
        let server = config.server_def(eager.config.as_bytes());
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
        let executors = cluster.tasks("worker").iter();
        let executors = executors.map(|_| Executor::new(&context, false, 0));
        Ok(Self {
            executors: executors.collect::<Result<_>>()?,
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
        let queue = Queue::new(items);
        let contexts = (0..self.workers()).map(|index| self.worker(index));
        let contexts = contexts.collect::<Result<Vec<_>>>()?;
        std::thread::scope(|scope| {
            let all = contexts.iter().zip(&self.executors).enumerate();
            for (index, (context, executor)) in all {
                let (queue, work) = (&queue, &work);
                scope.spawn(move || {
                    executor.clear_error();
                    executor.use_for_thread();
                    let mut tries = 0;
                    while let Some(item) = queue.take() {
                        // Without it, others would wait for ever for an item whose work panics.
                        let _busy = Busy(queue);
                        match work(context, &item) {
                            Ok(()) => tries = 0,
                            Err(error) => match self.cause(index, &error) {
                                Cause::Servers(silent) => return queue.fail(lost(&silent, &error)),
                                Cause::Work => return queue.fail(error),
                                // The connection of another worker broke, which an op of this one met.
                                Cause::Connection if tries < TRIES => {
                                    tries += 1;
                                    queue.put_back(item);
                                    std::thread::sleep(PAUSE);
                                }
                                Cause::Connection | Cause::Worker => {
                                    let address = &self.config.cluster().tasks("worker")[index];
                                    let worker = described(("worker", index, address));
                                    return queue.give_back(item, worker, &error);
                                }
                            },
                        }
                    }
                });
            }
        });
        queue.result()
    }

    /// Names the servers that are gone where an error comes from that, as one of an op outside of
    /// [`Self::for_each`] that reads a variable. Other errors come back as they are.
    #[must_use]
    pub fn named(&self, error: Error) -> Error {
        if !matches!(error.kind(), ErrorKind::Status { .. }) {
            return error;
        }
        self.forget();
        let mut silent = self.silent_servers();
        if silent.is_empty() {
            // A process that ends closes its connections before its port.
            std::thread::sleep(PAUSE);
            silent = self.silent_servers();
        }
        match silent.is_empty() {
            true => error,
            false => lost(&silent, &error),
        }
    }

    /// Why the work of a worker failed.
    #[cold]
    fn cause(&self, worker: usize, error: &Error) -> Cause {
        self.forget();
        if !matches!(error.kind(), ErrorKind::Status { .. }) {
            return Cause::Work;
        }
        let tasks = self.config.cluster().tasks("worker");
        let task = tasks
            .get(worker)
            .map(|address| ("worker", worker, &**address));
        // TensorFlow also has other errors for a tensor that was on a task which is gone. A process that
        // ends closes its connections before its port.
        for is_last in [false, true] {
            if !task.is_some_and(listens) {
                return Cause::Worker;
            }
            let silent = self.silent_servers();
            if !silent.is_empty() {
                return Cause::Servers(silent);
            }
            if is_gone(error) {
                return Cause::Connection;
            }
            if !is_last {
                std::thread::sleep(PAUSE);
            }
        }
        Cause::Work
    }

    /// Ends an error of this thread's executor, which its next ops would have, too.
    fn forget(&self) {
        if let Ok(executor) = self.context.thread_executor() {
            executor.clear_error();
        }
    }

    /// The servers that don't answer.
    fn silent_servers(&self) -> Vec<String> {
        let servers = self.config.cluster().tasks("ps").iter().enumerate();
        let servers: Vec<_> = servers
            .map(|(at, address)| ("ps", at, &**address))
            .collect();
        ask_all(&servers, listens)
    }
}

/// Why the work of a worker failed.
enum Cause {
    /// These servers are gone.
    Servers(Vec<String>),
    /// The worker is gone.
    Worker,
    /// A connection broke, and all tasks are there.
    Connection,
    /// The work itself.
    Work,
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

/// Settings with which an op on a task ends when that task is gone.
///
/// By default TensorFlow sends ops in a stream. After a stream has broken it begins another one, which waits
/// for ever for the task.
fn bounded(config: &Config, limit: Duration) -> Config {
    let mut fields = Writer::new();
    // `experimental.disable_eager_executor_streaming_enqueue`
    fields.message(16, |experimental| experimental.int(26, 1));
    Config::new()
        .operation_timeout(limit)
        .merge(config.as_bytes())
        .merge(&fields.into_bytes())
}

fn cpu(job: &str, index: usize) -> String {
    format!("{}/device:CPU:0", task_name(job, index))
}

/// Whether an error says that a task is not there any more.
fn is_gone(error: &Error) -> bool {
    let code = error.code();
    matches!(code, Code::Unavailable | Code::Aborted | Code::Cancelled)
}
