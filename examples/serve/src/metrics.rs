//! What the server counts, in Prometheus' text format.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The upper bounds of the histogram of request times, in milliseconds.
const BOUNDS: [u64; 11] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000];

/// Counters of a server. Threads count together.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Requests whose head was read.
    pub accepted: AtomicU64,
    /// Runs of models.
    pub runs: AtomicU64,
    /// Requests that runs computed.
    pub computed: AtomicU64,
    /// Requests that wait in queues.
    pub waiting: AtomicI64,
    answered: Mutex<Answered>,
}

#[derive(Debug, Default)]
struct Answered {
    by_status: BTreeMap<u16, u64>,
    by_time: [u64; BOUNDS.len()],
    time: Duration,
}

impl Metrics {
    /// Counts an answer with its status of HTTP, and how long the request took.
    pub fn answered(&self, status: u16, took: Duration) {
        let mut all = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        *all.by_status.entry(status).or_default() += 1;
        all.time += took;
        for (count, bound) in all.by_time.iter_mut().zip(BOUNDS) {
            *count += u64::from(took <= Duration::from_millis(bound));
        }
    }

    /// A line for people: what was accepted and what was answered.
    #[must_use]
    pub fn line(&self) -> String {
        let all = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let answered: u64 = all.by_status.values().sum();
        let statuses = all.by_status.iter();
        let statuses: Vec<String> = statuses.map(|(code, n)| format!("{code}: {n}")).collect();
        format!(
            "accepted {} answered {answered} ({}) computed {} in {} runs",
            self.accepted.load(Ordering::Relaxed),
            statuses.join(", "),
            self.computed.load(Ordering::Relaxed),
            self.runs.load(Ordering::Relaxed),
        )
    }

    /// All counters, as Prometheus reads them.
    #[must_use]
    pub fn text(&self) -> String {
        let all = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        let mut line = |what: std::fmt::Arguments<'_>| writeln!(text, "{what}").unwrap_or_default();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        line(format_args!("# TYPE serve_requests_total counter"));
        for (code, answers) in &all.by_status {
            line(format_args!(
                "serve_requests_total{{code=\"{code}\"}} {answers}"
            ));
        }
        line(format_args!("# TYPE serve_request_seconds histogram"));
        for (bound, answers) in BOUNDS.iter().zip(all.by_time) {
            let seconds = *bound as f64 / 1000.0;
            line(format_args!(
                "serve_request_seconds_bucket{{le=\"{seconds}\"}} {answers}"
            ));
        }
        let answered: u64 = all.by_status.values().sum();
        line(format_args!(
            "serve_request_seconds_bucket{{le=\"+Inf\"}} {answered}"
        ));
        let seconds = all.time.as_secs_f64();
        line(format_args!("serve_request_seconds_sum {seconds}"));
        line(format_args!("serve_request_seconds_count {answered}"));
        for (name, value) in [
            ("serve_runs_total", count(&self.runs)),
            ("serve_computed_total", count(&self.computed)),
        ] {
            line(format_args!("# TYPE {name} counter"));
            line(format_args!("{name} {value}"));
        }
        line(format_args!("# TYPE serve_waiting gauge"));
        let waiting = self.waiting.load(Ordering::Relaxed);
        line(format_args!("serve_waiting {waiting}"));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_by_status_and_time() {
        let metrics = Metrics::default();
        metrics.accepted.store(3, Ordering::Relaxed);
        metrics.answered(200, Duration::from_millis(3));
        metrics.answered(200, Duration::from_secs(60));
        metrics.answered(400, Duration::from_micros(10));
        let text = metrics.text();
        for line in [
            "serve_requests_total{code=\"200\"} 2",
            "serve_requests_total{code=\"400\"} 1",
            "serve_request_seconds_bucket{le=\"0.001\"} 1",
            "serve_request_seconds_bucket{le=\"0.005\"} 2",
            "serve_request_seconds_bucket{le=\"5\"} 2",
            "serve_request_seconds_bucket{le=\"+Inf\"} 3",
            "serve_request_seconds_count 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        let line = metrics.line();
        assert!(
            line.contains("accepted 3 answered 3 (200: 2, 400: 1)"),
            "{line}"
        );
    }
}
