//! The server itself: connections, requests, and an end that loses nothing.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout, timeout_at};

use crate::app::{App, Offer, Served};
use crate::failure::{Failure, Status};
use crate::grpc;
use crate::json::error_body;
use crate::options::Options;
use crate::predict::{self, answer};
use crate::route::{Route, metadata, route, state};

/// How much of a body that is too large is read so that its sender hears the answer.
const DISCARDED: usize = 16 << 20;

/// Serves until SIGTERM or SIGINT; then answers what was accepted, and returns what it counted.
///
/// `started` is called with the address, and that of gRPC if there is one, once connections are taken.
///
/// # Errors
/// For an address that can't be listened at, and where the system has no threads left.
pub fn serve(
    options: Options,
    offers: Vec<Offer>,
    started: impl FnOnce(SocketAddr, Option<SocketAddr>),
) -> io::Result<String> {
    let app = Arc::new(App::new(options, offers)?);
    let metrics = Arc::clone(&app.metrics);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(listen(app, started))?;
    Ok(metrics.line())
}

async fn listen(
    app: Arc<App>,
    started: impl FnOnce(SocketAddr, Option<SocketAddr>),
) -> io::Result<()> {
    let listener = TcpListener::bind(app.options.address).await?;
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    let grpc = match app.options.grpc {
        Some(address) => Some(grpc::listen(address).await?),
        None => None,
    };
    started(
        listener.local_addr()?,
        grpc.as_ref().map(|grpc| grpc.address),
    );
    let (stop_grpc, grpc) = grpc.map(|grpc| grpc.serve(Arc::clone(&app))).unzip();
    let connections = Arc::new(Semaphore::new(app.options.connections));
    let graceful = GracefulShutdown::new();
    {
        let take = async {
            loop {
                // It is never closed.
                let Ok(permit) = Arc::clone(&connections).acquire_owned().await else {
                    return;
                };
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let connection = connect(&app, stream, &graceful);
                        tokio::spawn(async move {
                            connection.await;
                            drop(permit);
                        });
                    }
                    // As when the process has no file descriptor left: others will close.
                    Err(_) => sleep(Duration::from_millis(10)).await,
                }
            }
        };
        let mut take = pin!(take);
        let stop = first(terminate.recv(), interrupt.recv());
        first(&mut take, stop).await;
        app.stopping.store(true, Ordering::Relaxed);
        if let Some(stop) = &stop_grpc {
            stop.announce().await;
        }
        first(&mut take, sleep(app.options.linger)).await;
    }
    // What the system connected meanwhile.
    while let Ok(Ok((stream, _))) = timeout(Duration::ZERO, listener.accept()).await {
        tokio::spawn(connect(&app, stream, &graceful));
    }
    drop(listener);
    if let Some(stop) = stop_grpc {
        stop.end().await;
    }
    let answered = async {
        graceful.shutdown().await;
        if let Some(grpc) = grpc {
            grpc.await;
        }
    };
    let longest = app.options.deadline + Duration::from_secs(1);
    // Who does not read an answer for so long won't.
    let _ = timeout(longest, answered).await;
    Ok(())
}

/// Waits for whichever is ready first.
async fn first<A, B>(a: impl Future<Output = A>, b: impl Future<Output = B>) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    poll_fn(|context| {
        if a.as_mut().poll(context).is_ready() || b.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        Poll::Pending
    })
    .await;
}

/// Serves a connection.
fn connect(
    app: &Arc<App>,
    stream: TcpStream,
    graceful: &GracefulShutdown,
) -> impl Future<Output = ()> + Send + use<> {
    // Answers are small: they should not wait for more.
    let _ = stream.set_nodelay(true);
    let app = Arc::clone(app);
    let service = service_fn(move |request| {
        let app = Arc::clone(&app);
        async move { Ok::<_, Infallible>(respond(&app, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service);
    let connection = graceful.watch(connection);
    async move {
        // A client that breaks the connection or the protocol has lost only its own.
        let _ = connection.await;
    }
}

/// A body and its type.
type Found = Result<(&'static str, String), Failure>;

async fn respond(app: &App, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let started = Instant::now();
    app.metrics.accepted.fetch_add(1, Ordering::Relaxed);
    let (kind, body, status) = match app.find(request, started).await {
        Ok((kind, body)) => (kind, body, StatusCode::OK),
        Err(failure) => {
            let status = StatusCode::from_u16(failure.status as u16);
            let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (JSON, error_body(&failure.message), status)
        }
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    // The rest of a body that was not read would be taken for a request.
    let is_cut = [StatusCode::PAYLOAD_TOO_LARGE, StatusCode::REQUEST_TIMEOUT].contains(&status);
    if is_cut || app.stopping.load(Ordering::Relaxed) {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    app.metrics.answered(status.as_u16(), started.elapsed());
    response
}

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

impl App {
    async fn find(&self, request: Request<Incoming>, started: Instant) -> Found {
        let (head, body) = request.into_parts();
        match route(head.method.as_str(), head.uri.path())? {
            Route::Alive => Ok((TEXT, "ok\n".to_owned())),
            Route::Ready => self.ready().map(|()| (TEXT, "ok\n".to_owned())),
            Route::Metrics => Ok((TEXT, self.metrics.text())),
            Route::State(target) => {
                let served = self.served(target)?;
                Ok((JSON, state(served.version, served.model.is_lost())))
            }
            Route::Metadata(target) => {
                let served = self.served(target)?;
                let signatures = served.model.signatures().iter();
                Ok((JSON, metadata(target.model, served.version, signatures)))
            }
            Route::Predict(target) => {
                let served = self.served(target)?;
                let deadline = started + self.options.deadline;
                let body = timeout_at(deadline.into(), self.body(body)).await;
                let body = body.map_err(|_| {
                    Failure::new(Status::TooSlow, "the request did not arrive in time")
                })??;
                Ok((JSON, self.predict(served, &body, deadline).await?))
            }
        }
    }

    async fn body(&self, mut body: Incoming) -> Result<Vec<u8>, Failure> {
        let (mut read, mut length) = (Vec::new(), 0);
        let most = self.options.max_body;
        while let Some(frame) = body.frame().await {
            let broken = |error| Failure::invalid(format!("the body is not complete: {error}"));
            let Ok(data) = frame.map_err(broken)?.into_data() else {
                continue;
            };
            length += data.len();
            if length <= most {
                read.extend_from_slice(&data);
            } else if length > most + DISCARDED {
                break;
            }
        }
        match length <= most {
            true => Ok(read),
            false => Err(Failure::new(
                Status::TooLarge,
                format!("the body has more than {most} bytes"),
            )),
        }
    }

    async fn predict(
        &self,
        served: &Served,
        body: &[u8],
        deadline: Instant,
    ) -> Result<String, Failure> {
        let signatures = served.model.signatures();
        let request = predict::Request::read(body, signatures)?;
        let name = &request.signature;
        let arrays = self.run(served, name, request.arrays, deadline).await?;
        let (_, signature) = predict::signature_of(signatures, name)?;
        answer(&signature.outputs, &arrays, request.rows)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::sync::mpsc::channel;

    use super::*;
    use crate::renewed::tests::renewed;

    /// Returns the status and the body of an answer.
    fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
        let request = format!("{head}content-length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap();
        (status.parse().unwrap(), body.to_owned())
    }

    #[test]
    fn a_lost_model_is_told_until_it_is_loaded_anew() {
        let (model, tell) = renewed(1);
        let offer = Offer {
            name: "m".to_owned(),
            version: 3,
            model: Arc::new(model),
        };
        let options = Options {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            ..Options::default()
        };
        let (started, address) = channel();
        // It serves until the process of the tests ends.
        std::thread::spawn(move || {
            serve(options, vec![offer], |address, _| {
                started.send(address).unwrap();
            })
        });
        let address = address.recv().unwrap();
        let get = |path| ask(address, "GET", path, "");
        let predict = |number: i32| {
            let body = format!("{{\"inputs\": [{number}]}}");
            ask(address, "POST", "/v1/models/m:predict", &body)
        };
        assert_eq!(predict(7).0, 200);
        assert_eq!(get("/readyz").0, 200);
        let (status, body) = predict(99);
        assert!(status == 503 && body.contains("it threw"), "{body}");
        assert_eq!(predict(7).0, 503);
        let (status, body) = get("/readyz");
        assert!(status == 503 && body.contains("'m' is lost"), "{body}");
        assert!(get("/v1/models/m").1.contains("\"state\": \"END\""));
        assert_eq!(get("/healthz").0, 200);
        tell.send(Ok(())).unwrap();
        while get("/readyz").0 != 200 {}
        assert!(get("/v1/models/m").1.contains("\"state\": \"AVAILABLE\""));
        assert_eq!(predict(7).0, 200);
    }
}
