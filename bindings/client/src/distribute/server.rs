//! Tasks that compute for a coordinator.

use tfp_core::{Code, Result};

use super::cluster::worker_error;
use super::config::TfConfig;

/// The server of a task: a parameter server or a worker, whose devices the coordinator uses.
///
/// It runs until the process ends: TensorFlow can't stop a server of gRPC.
#[derive(Debug)]
pub struct Server {
    server: tfp_core::Server,
}

impl Server {
    /// Starts the server of a task.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`](tfp_core::ErrorKind::Worker) for an address that another process has, and
    /// for what TensorFlow says.
    pub fn start(config: &TfConfig) -> Result<Self> {
        config.check_free()?;
        let started = tfp_core::Server::new(&config.server_def(&[]))
            .and_then(|server| server.start().map(|()| server));
        match started {
            Ok(server) => Ok(Self { server }),
            Err(error) if error.code() == Code::Unavailable => Err(error),
            Err(error) => Err(worker_error(
                config.described(),
                error.code(),
                format!("its server did not start: {error}"),
            )),
        }
    }

    /// Waits for the end of the process.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn join(&self) -> Result<()> {
        self.server.join()
    }

    /// Returns what a session names as its target, such as `grpc://localhost:2222`.
    #[must_use]
    pub fn target(&self) -> String {
        self.server.target()
    }
}
