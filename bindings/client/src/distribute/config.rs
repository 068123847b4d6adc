//! What a process is in a cluster, as `TF_CONFIG` says.

use std::time::Duration;

use tfp_core::wire::Writer;
use tfp_core::{Code, Error, Result};

use super::cluster::{ClusterSpec, TRAINING, described, port_of, task_name, worker_error};
use crate::formats::json::Json;

/// The variable of the environment that says what a process is.
const VARIABLE: &str = "TF_CONFIG";

/// A cluster, and which of its tasks this process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TfConfig {
    cluster: ClusterSpec,
    job: String,
    index: usize,
}

impl TfConfig {
    /// A task of a cluster, by its job and its number in it.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a task that the cluster doesn't have, for an
    /// address that is not a host and a port, for an address that two tasks have, and for more than one chief.
    pub fn new(cluster: ClusterSpec, job: &str, index: usize) -> Result<Self> {
        cluster.check()?;
        let tasks = cluster.tasks(job);
        if index >= tasks.len() {
            let jobs: Vec<String> = cluster
                .jobs()
                .map(|name| format!("{} of {name}", cluster.tasks(name).len()))
                .collect();
            return Err(Error::argument(format!(
                "the task {index} of job {job:?} is not in the cluster, which has {}",
                if jobs.is_empty() {
                    "no task".to_owned()
                } else {
                    jobs.join(", ")
                }
            )));
        }
        Ok(Self {
            job: job.to_owned(),
            index,
            cluster,
        })
    }

    /// Reads the variable `TF_CONFIG`; `None` where it is not set or has no cluster: the process is alone.
    ///
    /// # Errors
    /// As for [`Self::parse`].
    pub fn from_env() -> Result<Option<Self>> {
        match std::env::var_os(VARIABLE) {
            None => Ok(None),
            Some(text) => match text.to_str() {
                Some(text) => Self::parse(text),
                None => Err(Error::argument(format!("{VARIABLE} is not UTF-8"))),
            },
        }
    }

    /// Reads the JSON of `TF_CONFIG`, as Python's `TFConfigClusterResolver` does: member `cluster` has a
    /// list of addresses for each job, `task` has `type` and `index`. `None` without a cluster.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for what is not such JSON, and as for [`Self::new`].
    pub fn parse(text: &str) -> Result<Option<Self>> {
        let named = |error: Error| Error::argument(format!("{VARIABLE}: {error}"));
        let wrong = |problem: &str| Err(Error::argument(format!("{VARIABLE}: {problem}")));
        let json = Json::parse(text.as_bytes()).map_err(named)?;
        let Json::Object(_) = &json else {
            return wrong("expected an object with 'cluster' and 'task'");
        };
        let jobs = match json.get("cluster") {
            None => return Ok(None),
            Some(Json::Object(jobs)) if jobs.is_empty() => return Ok(None),
            Some(Json::Object(jobs)) => jobs,
            Some(_) => return wrong("'cluster' is not an object of jobs"),
        };
        let mut cluster = ClusterSpec::new();
        for (job, tasks) in jobs {
            let addresses = tasks.list().map(|tasks| tasks.iter().map(Json::text));
            let addresses: Option<Vec<&str>> = addresses.and_then(Iterator::collect);
            let Some(addresses) = addresses else {
                return wrong(&format!("job '{job}' is not a list of addresses"));
            };
            cluster = cluster.job(job, addresses);
        }
        let task = json.get("task");
        let job = task.and_then(|task| task.get("type")).and_then(Json::text);
        let Some(job) = job else {
            return wrong("'task' has no 'type', such as \"worker\"");
        };
        let index = task.and_then(|task| task.get("index"));
        // Python takes a text, too.
        let number = index.and_then(|index| match index {
            Json::Text(text) => text.trim().parse().ok(),
            other => other.integer(),
        });
        let number = number.and_then(|number| usize::try_from(number).ok());
        let Some(number) = number else {
            return wrong("'task' has no 'index' that is a number from 0 on");
        };
        Self::new(cluster, job, number).map(Some).map_err(named)
    }

    /// Returns the cluster.
    #[must_use]
    pub fn cluster(&self) -> &ClusterSpec {
        &self.cluster
    }

    /// Returns the job of this task.
    #[must_use]
    pub fn job(&self) -> &str {
        &self.job
    }

    /// Returns the number of this task in its job.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the address of this task.
    #[must_use]
    pub fn address(&self) -> &str {
        self.cluster
            .tasks(&self.job)
            .get(self.index)
            .map_or("", |address| address)
    }

    /// Whether this task saves what all have trained: the chief, or the first worker where there is none.
    #[must_use]
    pub fn is_chief(&self) -> bool {
        match &*self.job {
            "chief" => true,
            "worker" => self.index == 0 && self.cluster.tasks("chief").is_empty(),
            _ => false,
        }
    }

    /// The name of this task and its address, for errors.
    pub(super) fn described(&self) -> String {
        described((&self.job, self.index, self.address()))
    }

    /// Refuses an address that another process has, before a server says so in words of its own.
    pub(super) fn check_free(&self) -> Result<()> {
        let port = port_of(self.address()).unwrap_or(0);
        match std::net::TcpListener::bind(("0.0.0.0", port)) {
            Ok(_) => Ok(()),
            Err(error) => Err(worker_error(
                self.described(),
                Code::AlreadyExists,
                format!(
                    "can't listen at port {port}: {error}; end the process that has it, or give the task \
                     another port in all workers' TF_CONFIG"
                ),
            )),
        }
    }

    /// Writes a `ServerDef`, with the settings of this task's server.
    pub(super) fn server_def(&self, config: &[u8]) -> Vec<u8> {
        let mut server = Writer::new();
        server.message(1, |cluster| self.cluster.write(cluster));
        server.bytes(2, self.job.as_bytes());
        server.int(3, self.index as i64);
        server.bytes(4, config);
        server.bytes(5, b"grpc");
        server.into_bytes()
    }

    /// Writes the fields of a `ConfigProto` that collective ops need: the leader of the groups, and the
    /// coordination service, by which tasks meet and learn that one has failed.
    pub(super) fn collective_config(&self, register: Duration, heartbeat: Duration) -> Vec<u8> {
        let milliseconds = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let leader = match self.cluster.training().first() {
            Some((job, index, _)) => task_name(job, *index),
            None => String::new(),
        };
        let mut config = Writer::new();
        let own = format!("/job:{}/task:{}", self.job, self.index);
        config.bytes(4, own.as_bytes());
        config.message(16, |experimental| {
            experimental.bytes(1, leader.as_bytes());
            experimental.message(23, |service| {
                service.bytes(1, b"standalone");
                service.bytes(2, leader.as_bytes());
                service.int(3, 1);
                service.int(4, milliseconds(register));
                service.int(5, milliseconds(heartbeat));
                for job in TRAINING {
                    let count = self.cluster.tasks(job).len();
                    if count > 0 {
                        service.message(10, |list| {
                            list.bytes(1, job.as_bytes());
                            list.int(2, count as i64);
                        });
                    }
                }
            });
        });
        config.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        TfConfig::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_config_is_read_as_python_does() {
        let text = r#"{"cluster": {"worker": ["a:1", "b:2"], "chief": ["c:3"], "ps": ["d:4"]},
                       "task": {"type": "worker", "index": "1"}, "rpc_layer": "grpc"}"#;
        let config = TfConfig::parse(text).unwrap().unwrap();
        assert_eq!(
            (config.job(), config.index(), config.address()),
            ("worker", 1, "b:2")
        );
        assert!(!config.is_chief());
        let ranks = config.cluster().training();
        assert_eq!(
            ranks,
            [
                ("chief", 0, "c:3"),
                ("worker", 0, "a:1"),
                ("worker", 1, "b:2")
            ]
        );
        for alone in [
            "{}",
            r#"{"task": {"type": "worker", "index": 0}}"#,
            r#"{"cluster": {}}"#,
        ] {
            assert_eq!(TfConfig::parse(alone).unwrap(), None);
        }
    }

    #[test]
    fn the_first_worker_is_the_chief_where_there_is_none() {
        let cluster = ClusterSpec::new().job("worker", ["a:1", "b:2"]);
        assert!(
            TfConfig::new(cluster.clone(), "worker", 0)
                .unwrap()
                .is_chief()
        );
        assert!(
            !TfConfig::new(cluster.clone(), "worker", 1)
                .unwrap()
                .is_chief()
        );
        let cluster = cluster.job("chief", ["c:3"]);
        assert!(
            !TfConfig::new(cluster.clone(), "worker", 0)
                .unwrap()
                .is_chief()
        );
        assert!(TfConfig::new(cluster, "chief", 0).unwrap().is_chief());
    }

    #[test]
    fn a_malformed_config_is_refused_with_what_is_wrong() {
        for (text, problem) in [
            ("", "JSON"),
            ("[]", "expected an object"),
            (r#"{"cluster": ["a:1"]}"#, "not an object of jobs"),
            (
                r#"{"cluster": {"worker": "a:1"}}"#,
                "not a list of addresses",
            ),
            (r#"{"cluster": {"worker": [1]}}"#, "not a list of addresses"),
            (r#"{"cluster": {"worker": ["a:1"]}}"#, "no 'type'"),
            (
                r#"{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker"}}"#,
                "no 'index'",
            ),
            (
                r#"{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": -1}}"#,
                "no 'index'",
            ),
            (
                r#"{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}"#,
                "has 1 of worker",
            ),
            (
                r#"{"cluster": {"worker": ["a:1"]}, "task": {"type": "ps", "index": 0}}"#,
                "job \"ps\" is not in the cluster",
            ),
            (
                r#"{"cluster": {"worker": ["a"]}, "task": {"type": "worker", "index": 0}}"#,
                "address \"a\" for /job:worker/replica:0/task:0",
            ),
            (
                r#"{"cluster": {"worker": ["a:99999"]}, "task": {"type": "worker", "index": 0}}"#,
                "address \"a:99999\"",
            ),
            (
                r#"{"cluster": {"worker": ["a:1", "a:1"]}, "task": {"type": "worker", "index": 0}}"#,
                "\"a:1\" twice",
            ),
            (
                r#"{"cluster": {"chief": ["a:1", "b:1"]}, "task": {"type": "chief", "index": 0}}"#,
                "more than one chief",
            ),
            (
                r#"{"cluster": {"my-job": ["a:1"]}, "task": {"type": "my-job", "index": 0}}"#,
                "the job \"my-job\"",
            ),
        ] {
            let found = refused(text);
            assert!(found.contains(problem), "{text}: {found}");
            assert!(found.starts_with("TF_CONFIG: "), "{text}: {found}");
        }
    }

    #[test]
    fn fields_are_those_of_the_protos() {
        let cluster = ClusterSpec::new().job("worker", ["a:1", "b:2"]);
        let config = TfConfig::new(cluster, "worker", 1).unwrap();
        // What Python's ServerDef of this cluster serializes to.
        let expected = "0a1c0a1a0a06776f726b6572120708001203613a31120708011203623a32\
                        1206776f726b657218012203abcdef2a0467727063";
        let found = config.server_def(&[0xab, 0xcd, 0xef]);
        let found: String = found.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, expected);
    }
}
