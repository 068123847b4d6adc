//! Whether the tasks of a cluster are there.

use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tfp_core::{Code, EagerContext, Error, Result};

use super::cluster::{described, worker_error};
use super::config::TfConfig;

/// How long a task is asked whether it is there.
pub(super) const PROBE: Duration = Duration::from_secs(2);
/// How long TensorFlow may be late with its own error, which tells more.
const GRACE: Duration = Duration::from_secs(5);
/// How long the system may take to close the port of a process that was killed, after its connections.
const CLOSING: Duration = Duration::from_secs(1);
/// How long between two looks whether a task is there.
const PAUSE: Duration = Duration::from_millis(100);

/// A job, the number of a task in it, and its address.
pub(super) type Task<'a> = (&'a str, usize, &'a str);

/// The other tasks of a training.
pub(super) fn peers(config: &TfConfig) -> Vec<Task<'_>> {
    let own = (config.job(), config.index());
    let all = config.cluster().training().into_iter();
    all.filter(|(job, index, _)| (*job, *index) != own)
        .collect()
}

/// Asks tasks at the same time, and returns those that don't answer.
pub(super) fn ask_all(
    tasks: &[Task<'_>],
    answers: impl Fn(Task<'_>) -> bool + Sync,
) -> Vec<String> {
    let answers = &answers;
    std::thread::scope(|scope| {
        let asked: Vec<_> = tasks
            .iter()
            .map(|&task| (task, scope.spawn(move || answers(task))))
            .collect();
        let silent = asked
            .into_iter()
            .filter_map(|(task, answer)| match answer.join() {
                Ok(true) => None,
                Ok(false) | Err(_) => Some(described(task)),
            });
        silent.collect()
    })
}

/// Whether something listens at an address.
pub(super) fn listens((_, _, address): Task<'_>) -> bool {
    address.to_socket_addrs().is_ok_and(|mut found| {
        found.any(|address| TcpStream::connect_timeout(&address, PROBE).is_ok())
    })
}

/// Says of which tasks no host has the name, if any.
fn nameless(tasks: &[Task<'_>]) -> Option<String> {
    let unknown = tasks.iter().map(|&(_, _, address)| address);
    let unknown: Vec<&str> = unknown
        .filter(|address| address.to_socket_addrs().is_err())
        .collect();
    (!unknown.is_empty()).then(|| format!("the system knows no host of {}", unknown.join(", ")))
}

/// Waits until something listens at the addresses of all tasks.
pub(super) fn wait_for(tasks: &[Task<'_>], late: Instant) -> Result<()> {
    loop {
        let silent = ask_all(tasks, listens);
        if silent.is_empty() {
            return Ok(());
        }
        if Instant::now() >= late {
            let problem = nameless(tasks).unwrap_or_else(|| {
                "nothing listens at the address; start every task with the same cluster".to_owned()
            });
            return Err(worker_error(
                silent.join(", "),
                Code::DeadlineExceeded,
                problem,
            ));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Starts the server of a task, and waits for the others until `late`. TensorFlow keeps a leader waiting
/// much longer than it is told, so another thread waits for it.
pub(super) fn meet(context: &EagerContext, server_def: Vec<u8>, late: Instant) -> Result<()> {
    let (send, met) = mpsc::channel();
    let waiting = context.clone();
    let wait = move || {
        let found = waiting.enable_collective_ops(&server_def);
        if let Err(unsent) = send.send((found, waiting)) {
            // Nobody is left: the end of a context waits for the tasks that don't come.
            std::mem::forget(unsent);
        }
    };
    let thread = std::thread::Builder::new().name("tfp meeting".to_owned());
    let started = thread.spawn(wait);
    started.map_err(|error| {
        let message = format!("the system has no thread for a cluster: {error}");
        Error::status(Code::ResourceExhausted, message)
    })?;
    let left = late.saturating_duration_since(Instant::now()) + GRACE;
    match met.recv_timeout(left) {
        Ok((found, _)) => found,
        Err(_) => {
            // As above: this reference keeps the context.
            std::mem::forget(context.clone());
            let message = "not all tasks registered in time";
            Err(Error::status(Code::DeadlineExceeded, message))
        }
    }
}

/// Names the tasks that did not come.
#[cold]
pub(super) fn not_met(config: &TfConfig, training: &[Task<'_>], error: &Error) -> Error {
    let peers = peers(config);
    if error.code() == Code::Unavailable {
        // Somebody has died a moment ago, and may seem to listen.
        std::thread::sleep(CLOSING);
    }
    let silent = ask_all(&peers, listens);
    let worker = if silent.is_empty() {
        config.described()
    } else {
        silent.join(", ")
    };
    let advice =
        nameless(&peers).unwrap_or_else(|| "start all of them with the same cluster".to_owned());
    worker_error(
        worker,
        error.code(),
        format!(
            "the {} workers did not meet: {error}; {advice}",
            training.len()
        ),
    )
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_host_that_nobody_knows_is_told() {
        // No host has a name that ends like this (RFC 2606).
        let tasks = [
            ("worker", 0, "127.0.0.1:1"),
            ("worker", 1, "elsewhere.invalid:2222"),
        ];
        let error = wait_for(&tasks, Instant::now()).unwrap_err().to_string();
        assert!(
            error.contains("/job:worker/task:1 at elsewhere.invalid:2222: "),
            "{error}"
        );
        assert!(
            error.contains("the system knows no host of elsewhere.invalid:2222"),
            "{error}"
        );
        let error = wait_for(&tasks[..1], Instant::now()).unwrap_err();
        assert!(error.to_string().contains("nothing listens"), "{error}");
    }

    #[test]
    fn a_task_that_is_dying_is_named() {
        let dying = TcpListener::bind("127.0.0.1:0").unwrap();
        let text = format!(
            r#"{{"cluster": {{"worker": ["{}", "127.0.0.1:1"]}}, "task": {{"type": "worker", "index": 1}}}}"#,
            dying.local_addr().unwrap()
        );
        let config = TfConfig::parse(&text).unwrap().unwrap();
        let closed = std::thread::spawn(move || {
            std::thread::sleep(CLOSING / 4);
            drop(dying);
        });
        let error = Error::status(Code::Unavailable, "Connection reset by peer");
        let error = not_met(&config, &config.cluster().training(), &error).to_string();
        closed.join().unwrap();
        assert!(error.contains("/job:worker/task:0 at"), "{error}");
    }
}
