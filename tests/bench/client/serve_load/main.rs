//! Load on a server: so many connections, each sends its next request when it has an answer.
//!
//! `serve_load rest|grpc ADDRESS PATH BODY CONNECTIONS SECONDS` prints requests per second, and the median and
//! the 99th percentile of their times in microseconds. An answer that is an error ends it.

mod grpc;
mod rest;

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

type Failure = Box<dyn Error + Send + Sync>;

/// A connection on which a request is sent again and again.
trait Ask {
    /// Sends the request and reads its answer.
    ///
    /// # Errors
    /// For a connection that ends, and an answer that is an error.
    fn ask(&mut self) -> Result<(), Failure>;
}

/// Returns the times of a connection's requests after the first `warm` of its time.
fn connection(
    ask: &mut dyn Ask,
    warm: Duration,
    measured: Duration,
) -> Result<Vec<Duration>, Failure> {
    let mut times = Vec::new();
    let started = Instant::now();
    while started.elapsed() < warm + measured {
        let before = Instant::now();
        ask.ask()?;
        if started.elapsed() > warm {
            times.push(before.elapsed());
        }
    }
    Ok(times)
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [interface, address, path, body, connections, seconds] = &arguments[..] else {
        return Err("usage: serve_load rest|grpc ADDRESS PATH BODY CONNECTIONS SECONDS".into());
    };
    let body = std::fs::read(body)?;
    let measured = Duration::from_secs_f64(seconds.parse()?);
    let warm = measured / 4;
    let count: usize = connections.parse()?;
    let connect = || -> Result<Vec<Duration>, Failure> {
        let mut ask: Box<dyn Ask> = match &**interface {
            "rest" => Box::new(rest::Connection::new(address, path, &body)?),
            "grpc" => Box::new(grpc::Connection::new(address, path, &body)?),
            other => return Err(format!("{other:?} is not rest or grpc").into()),
        };
        connection(&mut *ask, warm, measured)
    };
    let times: Result<Vec<Vec<Duration>>, Failure> = thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(connect)).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(times) => times,
            Err(_) => Err("a connection panicked".into()),
        };
        threads.into_iter().map(join).collect()
    });
    let mut times: Vec<Duration> = times?.into_iter().flatten().collect();
    times.sort_unstable();
    let at = |share: f64| {
        let place = (times.len() as f64 * share) as usize;
        times.get(place.min(times.len().saturating_sub(1)))
    };
    let (Some(median), Some(late)) = (at(0.5), at(0.99)) else {
        return Err("not a request was answered in time".into());
    };
    println!(
        "{:.0} {} {}",
        times.len() as f64 / measured.as_secs_f64(),
        median.as_micros(),
        late.as_micros()
    );
    Ok(())
}
