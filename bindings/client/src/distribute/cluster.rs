//! Clusters: jobs, and the addresses of their tasks.

use tfp_core::wire::Writer;
use tfp_core::{Code, Error, ErrorKind, Result};

/// The jobs whose tasks train together, in the order of their ranks.
pub(super) const TRAINING: [&str; 2] = ["chief", "worker"];

/// The jobs of a cluster, with the addresses of their tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterSpec {
    jobs: Vec<(String, Vec<String>)>,
}

impl ClusterSpec {
    /// A cluster without a job.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a job, such as `worker`, with the address of each task, such as `10.0.0.2:2222`. A job of the
    /// name that is there is replaced.
    #[must_use]
    pub fn job<A: Into<String>>(
        mut self,
        name: &str,
        addresses: impl IntoIterator<Item = A>,
    ) -> Self {
        let addresses = addresses.into_iter().map(Into::into).collect();
        self.jobs.retain(|(job, _)| job != name);
        self.jobs.push((name.to_owned(), addresses));
        self
    }

    /// Returns the names of the jobs.
    pub fn jobs(&self) -> impl Iterator<Item = &str> {
        self.jobs.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the addresses of a job's tasks; nothing for a job that is not there.
    #[must_use]
    pub fn tasks(&self, job: &str) -> &[String] {
        let found = self.jobs.iter().find(|(name, _)| name == job);
        found.map_or(&[], |(_, tasks)| tasks)
    }

    /// The tasks that train together, in the order of their ranks: job, index and address.
    pub(super) fn training(&self) -> Vec<(&str, usize, &str)> {
        let jobs = self.jobs.iter();
        let mut found = Vec::new();
        for training in TRAINING {
            for (name, tasks) in jobs.clone().filter(|(name, _)| name == training) {
                let tasks = tasks.iter().enumerate();
                found.extend(tasks.map(|(index, address)| (&**name, index, &**address)));
            }
        }
        found
    }

    /// Refuses jobs and addresses that TensorFlow can't use; some of it aborts the process.
    pub(super) fn check(&self) -> Result<()> {
        let wrong = |problem: String| Err(Error::argument(format!("the cluster {problem}")));
        for (job, tasks) in &self.jobs {
            let is_name = job.starts_with(|first: char| first.is_ascii_alphabetic())
                && job
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if !is_name {
                return wrong(format!(
                    "has the job {job:?}: expected a letter, then letters, digits and underscores"
                ));
            }
            for (index, address) in tasks.iter().enumerate() {
                if port_of(address).is_none() {
                    return wrong(format!(
                        "has the address {address:?} for {}: expected one such as \"10.0.0.2:2222\"",
                        task_name(job, index)
                    ));
                }
            }
        }
        if self.tasks("chief").len() > 1 {
            return wrong("has more than one chief".to_owned());
        }
        let mut all: Vec<&String> = self.jobs.iter().flat_map(|(_, tasks)| tasks).collect();
        all.sort();
        if let Some(pair) = all.windows(2).find(|pair| pair[0] == pair[1]) {
            return wrong(format!("has the address {:?} twice", pair[0]));
        }
        Ok(())
    }

    /// Writes a `ClusterDef`.
    pub(super) fn write(&self, cluster: &mut Writer) {
        for (name, tasks) in &self.jobs {
            cluster.message(1, |job| {
                job.bytes(1, name.as_bytes());
                for (index, address) in tasks.iter().enumerate() {
                    job.message(2, |entry| {
                        entry.int(1, index as i64);
                        entry.bytes(2, address.as_bytes());
                    });
                }
            });
        }
    }
}

/// The port of an address of a host and a port.
pub(super) fn port_of(address: &str) -> Option<u16> {
    let (host, port) = address.rsplit_once(':')?;
    let is_host = !host.is_empty() && !host.contains(['/', ' ', ',']);
    port.parse().ok().filter(|port| is_host && *port != 0)
}

/// The name of a task, as TensorFlow writes it.
pub(super) fn task_name(job: &str, index: usize) -> String {
    format!("/job:{job}/replica:0/task:{index}")
}

/// An error of tasks, each with its name and address.
#[cold]
pub(super) fn worker_error(worker: String, code: Code, problem: impl Into<String>) -> Error {
    Error::new(ErrorKind::Worker {
        worker,
        code,
        problem: problem.into(),
    })
}

/// The name and address of a task, for errors.
pub(super) fn described((job, index, address): (&str, usize, &str)) -> String {
    format!("/job:{job}/task:{index} at {address}")
}
