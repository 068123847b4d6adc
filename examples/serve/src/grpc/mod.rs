//! TensorFlow Serving's gRPC interface to the same models, queues and counters: `PredictionService` with
//! `Predict`, `Classify`, `Regress` and `GetModelMetadata`, `GetModelStatus`, and gRPC's health service.

mod examples;
mod message;
mod metadata;
mod predict;
mod tensor;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::{Request, Response};
use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::body::Body;
use tonic::server::{Grpc, UnaryService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Status as Reply};
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use tonic_prost::ProstCodec;
use tower_service::Service;

use self::message::{ModelSpec, Version};
use crate::app::{App, Served};
use crate::failure::{Failure, Status};
use crate::metrics::Metrics;
use crate::route::Target;

/// What a request counts as whose client has gone.
const GONE: u16 = 499;
/// Between two looks whether all models can be used.
const LOOK: Duration = Duration::from_millis(100);

/// A server that listens.
pub(crate) struct Listening {
    /// Where.
    pub(crate) address: SocketAddr,
    incoming: TcpIncoming,
    health: HealthReporter,
}

/// What ends a server.
pub(crate) struct Stop {
    health: HealthReporter,
    reports: JoinHandle<()>,
    end: oneshot::Sender<()>,
}

impl Stop {
    /// Tells clients that ask for its health that the server is about to stop.
    pub(crate) async fn announce(&self) {
        self.reports.abort();
        let status = ServingStatus::NotServing;
        self.health.set_service_status("", status).await;
    }

    /// Takes no more connections and requests; those that were accepted are answered.
    pub(crate) async fn end(mut self) {
        // Streams of its changes would never end.
        self.health.clear_service_status("").await;
        // It has ended by itself if nobody listens.
        let _ = self.end.send(());
    }
}

/// Listens at an address.
///
/// # Errors
/// For an address that can't be listened at.
pub(crate) async fn listen(address: SocketAddr) -> io::Result<Listening> {
    let listener = TcpListener::bind(address).await?;
    Ok(Listening {
        address: listener.local_addr()?,
        // Answers are small: they should not wait for more.
        incoming: TcpIncoming::from(listener).with_nodelay(Some(true)),
        health: HealthReporter::new(),
    })
}

impl Listening {
    /// Serves on the runtime's threads; the future is ready once the server was stopped and has answered.
    pub(crate) fn serve(self, app: Arc<App>) -> (Stop, impl Future<Output = ()>) {
        let (end, ended) = oneshot::channel();
        let health = HealthService::from_health_reporter(self.health.clone());
        let reports = tokio::spawn(report(Arc::clone(&app), self.health.clone()));
        let service = Interface {
            app,
            health: HealthServer::new(health),
        };
        let server =
            Server::builder().serve_with_incoming_shutdown(service, self.incoming, async {
                // It is never dropped without a message.
                let _ = ended.await;
            });
        let task = tokio::spawn(server);
        let stop = Stop {
            health: self.health,
            reports,
            end,
        };
        (stop, async {
            // A client that breaks the protocol has lost only its own.
            let _ = task.await;
        })
    }
}

/// Tells clients that ask for the server's health whether all models can be used.
async fn report(app: Arc<App>, health: HealthReporter) {
    let mut told = ServingStatus::Serving;
    loop {
        tokio::time::sleep(LOOK).await;
        let status = match app.ready() {
            Ok(()) => ServingStatus::Serving,
            Err(_) => ServingStatus::NotServing,
        };
        if status != told {
            health.set_service_status("", status).await;
            told = status;
        }
    }
}

#[derive(Clone)]
struct Interface {
    app: Arc<App>,
    health: HealthServer<HealthService>,
}

type Answered = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

impl Service<Request<Body>> for Interface {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answered;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Answered {
        let app = Arc::clone(&self.app);
        match request.uri().path() {
            "/tensorflow.serving.PredictionService/Predict" => {
                unary(app, request, |app, request, deadline| async move {
                    predict::predict(&app, request, deadline).await
                })
            }
            "/tensorflow.serving.PredictionService/Classify" => {
                unary(app, request, |app, request, deadline| async move {
                    examples::classify(&app, request, deadline).await
                })
            }
            "/tensorflow.serving.PredictionService/Regress" => {
                unary(app, request, |app, request, deadline| async move {
                    examples::regress(&app, request, deadline).await
                })
            }
            "/tensorflow.serving.PredictionService/GetModelMetadata" => {
                unary(app, request, |app, request, _| async move {
                    metadata::metadata(&app, &request)
                })
            }
            "/tensorflow.serving.ModelService/GetModelStatus" => {
                unary(app, request, |app, request, _| async move {
                    metadata::status(&app, &request)
                })
            }
            path if path.starts_with("/grpc.health.v1.Health/") => self.health.call(request),
            path => {
                let reply = Reply::unimplemented(format!("this server does not have {path}"));
                Box::pin(async move { Ok(reply.into_http()) })
            }
        }
    }
}

/// Answers a request of one message with one message.
fn unary<Q, A, M, F>(app: Arc<App>, request: Request<Body>, method: M) -> Answered
where
    Q: Message + Default + 'static,
    A: Message + Default + 'static,
    M: FnOnce(Arc<App>, Q, Instant) -> F + Send + 'static,
    F: Future<Output = Result<A, Failure>> + Send + 'static,
{
    let started = Instant::now();
    app.metrics.accepted.fetch_add(1, Ordering::Relaxed);
    Box::pin(async move {
        let mut counted = Counted {
            metrics: Arc::clone(&app.metrics),
            started,
            status: GONE,
        };
        let deadline = started + app.options.deadline;
        let most = app.options.max_body;
        let called = Called {
            method: Some(move |request| method(app, request, deadline)),
        };
        let codec = ProstCodec::<A, Q>::default();
        let mut grpc = Grpc::new(codec).max_decoding_message_size(most);
        let response = grpc.unary(called, request).await;
        let code = response.extensions().get::<Reply>().map(Reply::code);
        counted.status = code.map_or(200, http_status);
        Ok(response)
    })
}

/// A method that is called once.
struct Called<M> {
    method: Option<M>,
}

type Replied<A> = Pin<Box<dyn Future<Output = Result<tonic::Response<A>, Reply>> + Send>>;

impl<Q, A, M, F> UnaryService<Q> for Called<M>
where
    M: FnOnce(Q) -> F,
    F: Future<Output = Result<A, Failure>> + Send + 'static,
{
    type Response = A;
    type Future = Replied<A>;

    fn call(&mut self, request: tonic::Request<Q>) -> Replied<A> {
        let answer = self
            .method
            .take()
            .map(|method| method(request.into_inner()));
        Box::pin(async move {
            let again = || Reply::internal("a method was called twice");
            let answer = answer.ok_or_else(again)?.await;
            answer.map(tonic::Response::new).map_err(reply)
        })
    }
}

/// Counts the answer of a request, also of one whose client went before.
struct Counted {
    metrics: Arc<Metrics>,
    started: Instant,
    status: u16,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.metrics.answered(self.status, self.started.elapsed());
    }
}

/// The class of a failure in gRPC.
fn reply(failure: Failure) -> Reply {
    let code = match failure.status {
        Status::Invalid => Code::InvalidArgument,
        Status::NotFound => Code::NotFound,
        Status::Method | Status::Unimplemented => Code::Unimplemented,
        Status::TooLarge => Code::ResourceExhausted,
        Status::TooMany | Status::Unavailable => Code::Unavailable,
        Status::TooSlow | Status::Deadline => Code::DeadlineExceeded,
        Status::Internal => Code::Internal,
    };
    Reply::new(code, failure.message)
}

/// The status of HTTP that a class of gRPC counts as.
fn http_status(code: Code) -> u16 {
    let status = match code {
        Code::Ok => return 200,
        Code::Cancelled => return GONE,
        Code::NotFound => Status::NotFound,
        Code::Unimplemented => Status::Unimplemented,
        Code::ResourceExhausted | Code::OutOfRange => Status::TooLarge,
        Code::Unavailable => Status::Unavailable,
        Code::DeadlineExceeded => Status::Deadline,
        Code::InvalidArgument | Code::FailedPrecondition => Status::Invalid,
        _ => Status::Internal,
    };
    status as u16
}

/// The model that a request names, and what the answer calls it.
///
/// # Errors
/// [`Status::NotFound`] for another name or version, and for a label, which this server does not have.
fn served<'a>(app: &'a App, spec: Option<&ModelSpec>) -> Result<(&'a Served, ModelSpec), Failure> {
    let spec = spec.ok_or_else(|| Failure::invalid("Missing ModelSpec"))?;
    if !spec.version_label.is_empty() {
        let label = &spec.version_label;
        let message = format!("a version labelled '{label}': this server has numbers");
        return Err(Failure::new(Status::NotFound, message));
    }
    let version = spec.version.map(|version| version.value);
    let served = app.served(Target {
        model: &spec.name,
        // A version below zero is there for no model.
        version: version.map(|version| u64::try_from(version).unwrap_or(u64::MAX)),
    })?;
    let named = ModelSpec {
        name: spec.name.clone(),
        version: Some(Version {
            value: served.version as i64,
        }),
        signature_name: spec.signature_name.clone(),
        version_label: String::new(),
    };
    Ok((served, named))
}

#[cfg(test)]
mod tests {
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_server::Health;

    use super::*;
    use crate::app::Offer;
    use crate::options::Options;
    use crate::renewed::tests::renewed;

    #[test]
    fn health_tells_of_a_lost_model() {
        let (model, tell) = renewed(1);
        let model = Arc::new(model);
        let offer = Offer {
            name: "m".to_owned(),
            version: 1,
            model: model.clone(),
        };
        let app = Arc::new(App::new(Options::default(), vec![offer]).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let reporter = HealthReporter::new();
            let service = HealthService::from_health_reporter(reporter.clone());
            let told = async |wanted: ServingStatus| loop {
                let request = tonic::Request::new(HealthCheckRequest::default());
                let found = service.check(request).await.unwrap().into_inner();
                if found.status == wanted as i32 {
                    return;
                }
                tokio::time::sleep(LOOK).await;
            };
            told(ServingStatus::Serving).await;
            tokio::spawn(report(Arc::clone(&app), reporter));
            model.lose();
            told(ServingStatus::NotServing).await;
            tell.send(Ok(())).unwrap();
            told(ServingStatus::Serving).await;
        });
    }
}
