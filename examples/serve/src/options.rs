//! The flags of a server.

use std::net::SocketAddr;
use std::time::Duration;

use crate::batch::BatchOptions;

/// The flags that every server has, for its usage.
pub const FLAGS: &str = "\
  --address=127.0.0.1:8501   where it listens; port 0 takes a free one
  --grpc_address=none        where it listens for gRPC, such as 127.0.0.1:8500
  --max_batch=32             the most rows in a run; 1 runs each request alone
  --max_delay_us=1000        the longest that a request waits for others, in microseconds
  --queue=256                the most requests of a signature that wait; others get 429
  --runs=1                   the runs of a signature at a time
  --max_body=8388608         the most bytes of a body; larger ones get 413
  --deadline_ms=10000        from the head of a request to its answer; later ones get 504
  --linger_ms=500            after SIGTERM: how long it still takes connections
  --connections=1024         the most connections at a time; others wait";

/// How a server runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where it listens for gRPC, if it does.
    pub grpc: Option<SocketAddr>,
    /// Batches and queues.
    pub batch: BatchOptions,
    /// The most bytes of a body.
    pub max_body: usize,
    /// The time from the head of a request to its answer.
    pub deadline: Duration,
    /// How long it takes connections after it was told to stop.
    pub linger: Duration,
    /// The most connections at a time.
    pub connections: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], 8501)),
            grpc: None,
            batch: BatchOptions::default(),
            max_body: 8 << 20,
            deadline: Duration::from_secs(10),
            linger: Duration::from_millis(500),
            connections: 1024,
        }
    }
}

impl Options {
    /// Takes a flag, such as `--queue=16`; says whether it is one of a server.
    ///
    /// # Errors
    /// For a value that is not one of the flag.
    pub fn take(&mut self, flag: &str) -> Result<bool, String> {
        let Some((name, value)) = flag
            .strip_prefix("--")
            .and_then(|flag| flag.split_once('='))
        else {
            return Ok(false);
        };
        let number = |least: u64| {
            let number = value.parse::<u32>().ok().map(u64::from);
            number
                .filter(|&number| number >= least)
                .ok_or_else(|| format!("{flag}: expected a number from {least} on"))
        };
        let count = |least| number(least).map(|number| number as usize);
        match name {
            "address" => {
                let expected = || format!("{flag}: expected an address, such as 127.0.0.1:8501");
                self.address = value.parse().map_err(|_| expected())?;
            }
            "grpc_address" if value == "none" => self.grpc = None,
            "grpc_address" => {
                let expected = || format!("{flag}: expected an address, such as 127.0.0.1:8500");
                self.grpc = Some(value.parse().map_err(|_| expected())?);
            }
            "max_batch" => self.batch.rows = count(1)?,
            "max_delay_us" => self.batch.delay = Duration::from_micros(number(0)?),
            "queue" => self.batch.queue = count(1)?,
            "runs" => self.batch.runs = count(1)?,
            "max_body" => self.max_body = count(1)?,
            "deadline_ms" => self.deadline = Duration::from_millis(number(1)?),
            "linger_ms" => self.linger = Duration::from_millis(number(0)?),
            "connections" => self.connections = count(1)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_of_the_usage_is_taken_with_its_default() {
        let mut options = Options::default();
        for line in FLAGS.lines() {
            let flag = line.split_whitespace().next().unwrap();
            assert_eq!(options.take(flag), Ok(true), "{flag}");
        }
        assert_eq!(options, Options::default());
    }

    #[test]
    fn a_value_that_does_not_fit_is_named() {
        let mut options = Options::default();
        for flag in [
            "--queue=0",
            "--runs=x",
            "--address=8501",
            "--grpc_address=x",
        ] {
            let error = options.take(flag).unwrap_err();
            assert!(error.starts_with(flag), "{error}");
        }
        for flag in ["--other=1", "--queue", "queue=1"] {
            assert_eq!(options.take(flag), Ok(false), "{flag}");
        }
    }
}
