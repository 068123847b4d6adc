//! Load on an HTTP server: so many connections, each sends its next request when it has an answer.
//!
//! `serve_load ADDRESS PATH BODY CONNECTIONS SECONDS` prints requests per second, and the median and the
//! 99th percentile of their times in microseconds. An answer that is not 200 ends it.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

type Failure = Box<dyn Error + Send + Sync>;

/// Sends a request and reads its answer.
fn ask(
    stream: &mut BufReader<TcpStream>,
    request: &[u8],
    body: &mut Vec<u8>,
) -> Result<(), Failure> {
    stream.get_mut().write_all(request)?;
    let (mut line, mut length, mut status) = (String::new(), 0, String::new());
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        let text = line.trim_end();
        if status.is_empty() {
            text.clone_into(&mut status);
        }
        if text.is_empty() {
            break;
        }
        let (name, value) = text.split_once(':').unwrap_or(("", ""));
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse()?;
        }
    }
    body.resize(length, 0);
    stream.read_exact(body)?;
    match status.split(' ').nth(1) {
        Some("200") => Ok(()),
        _ => Err(format!("{status}: {}", String::from_utf8_lossy(body)).into()),
    }
}

/// Returns the times of a connection's requests after the first `warm` of its time.
fn connection(
    address: &str,
    request: &[u8],
    warm: Duration,
    measured: Duration,
) -> Result<Vec<Duration>, Failure> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let (mut body, mut times) = (Vec::new(), Vec::new());
    let started = Instant::now();
    while started.elapsed() < warm + measured {
        let before = Instant::now();
        ask(&mut stream, request, &mut body)?;
        if started.elapsed() > warm {
            times.push(before.elapsed());
        }
    }
    Ok(times)
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, path, body, connections, seconds] = &arguments[..] else {
        return Err("usage: serve_load ADDRESS PATH BODY CONNECTIONS SECONDS".into());
    };
    let body = std::fs::read(body)?;
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend(body);
    let measured = Duration::from_secs_f64(seconds.parse()?);
    let warm = measured / 4;
    let count: usize = connections.parse()?;
    let times: Result<Vec<Vec<Duration>>, Failure> = thread::scope(|scope| {
        let connect = || connection(address, &request, warm, measured);
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
