//! Sessions: what runs graphs.

mod callable;
mod fed;
mod options;
mod partial;
mod run;
mod saved_model;
mod server;

pub use callable::Callable;
pub use options::{RunOptions, TracedNode, traced_nodes};
pub use partial::PartialRun;
use run::What;
pub use run::{Fetched, Run};
pub use saved_model::{SavedModel, Signature, TensorInfo};
pub use server::Server;

use std::fmt;
use std::ptr::{self, NonNull};

use tfp_sys::loader::fenced;
use tfp_sys::{ClientApi, TF_Session, TF_SessionOptions};

use crate::base::api::{Status, api, c_string};
use crate::base::config::Config;
use crate::base::device::{self, Device};
use crate::base::error::{Error, Result};
use crate::graph::Graph;
use crate::graph::operation::{Operation, Output};
use crate::tensor::Tensor;

/// How a session is made.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// The server, as `grpc://host:port`; empty for this process.
    pub target: String,
    /// TensorFlow's settings.
    pub config: Config,
}

/// The options as the C API wants them.
struct RawOptions(*mut TF_SessionOptions, &'static ClientApi);

impl RawOptions {
    fn new(options: &SessionOptions, api: &'static ClientApi) -> Result<Self> {
        let c = &api.c_api;
        // SAFETY: the function has no precondition.
        let raw = Self(fenced(|| unsafe { c.TF_NewSessionOptions() })?, api);
        if !options.target.is_empty() {
            let target = c_string(&options.target)?;
            // SAFETY: options and name are alive; TensorFlow copies the name.
            fenced(|| unsafe { c.TF_SetTarget(raw.0, target.as_ptr()) })?;
        }
        let config = options.config.as_bytes();
        if !config.is_empty() {
            let status = Status::new(api)?;
            let (data, length) = (config.as_ptr().cast(), config.len());
            // SAFETY: options, bytes and status are alive.
            fenced(|| unsafe { c.TF_SetConfig(raw.0, data, length, status.as_ptr()) })?;
            status.check()?;
        }
        Ok(raw)
    }
}

impl Drop for RawOptions {
    fn drop(&mut self) {
        // SAFETY: the options are alive, and this is their end.
        unsafe { self.1.c_api.TF_DeleteSessionOptions(self.0) };
    }
}

/// A session on a graph, which it keeps alive. Several threads may run it together.
pub struct Session {
    raw: NonNull<TF_Session>,
    graph: Graph,
}

// SAFETY: a session guards itself.
unsafe impl Send for Session {}
// SAFETY: as above.
unsafe impl Sync for Session {}

impl Session {
    /// Makes a session with TensorFlow's defaults.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn new(graph: &Graph) -> Result<Self> {
        Self::with_options(graph, &SessionOptions::default())
    }

    /// Makes a session.
    ///
    /// # Errors
    /// TensorFlow's status for bytes that are not a `ConfigProto`, or a server that is not there.
    pub fn with_options(graph: &Graph, options: &SessionOptions) -> Result<Self> {
        let api = api()?;
        let raw_options = RawOptions::new(options, api)?;
        let status = Status::new(api)?;
        // SAFETY: graph, options and status are alive.
        let raw = graph.inner.fence.call(|| unsafe {
            api.c_api
                .TF_NewSession(graph.inner.as_ptr(), raw_options.0, status.as_ptr())
        })?;
        status.check()?;
        // SAFETY: the session is new, or null.
        unsafe { Self::from_owned_ptr(raw, graph) }
    }

    /// Takes a session that TensorFlow gave away.
    ///
    /// # Safety
    /// `raw` is null or a session on `graph` that nothing else deletes.
    unsafe fn from_owned_ptr(raw: *mut TF_Session, graph: &Graph) -> Result<Self> {
        match NonNull::new(raw) {
            Some(raw) => Ok(Self {
                raw,
                graph: graph.clone(),
            }),
            None => Err(Error::internal("TensorFlow returned a null session")),
        }
    }

    fn as_ptr(&self) -> *mut TF_Session {
        self.raw.as_ptr()
    }

    fn api(&self) -> &'static ClientApi {
        self.graph.inner.api
    }

    /// Returns the graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Begins a run.
    #[must_use]
    pub fn run(&self) -> Run<'_> {
        Run::new(self)
    }

    /// Runs the graph once: feeds in, values of the fetches out, in their order.
    ///
    /// # Errors
    /// As for [`Run::go`].
    pub fn eval(&self, feeds: &[(&Output, &Tensor)], fetches: &[&Output]) -> Result<Vec<Tensor>> {
        let what = What {
            feeds,
            fetches,
            targets: &[],
        };
        // SAFETY: no options and no metadata are handed over.
        unsafe { what.run(self, ptr::null(), ptr::null_mut()) }
    }

    /// Prepares a run that is repeated with other values.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`](crate::ErrorKind::Foreign) for what is of another graph.
    pub fn callable(
        &self,
        feeds: &[Output],
        fetches: &[Output],
        targets: &[Operation],
    ) -> Result<Callable<'_>> {
        Callable::new(self, feeds, fetches, targets)
    }

    /// Begins a run in parts; each feed and fetch is used in one part.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`](crate::ErrorKind::Foreign) for what is of another graph, and what
    /// TensorFlow says.
    pub fn partial_run(
        &self,
        feeds: &[Output],
        fetches: &[Output],
        targets: &[Operation],
    ) -> Result<PartialRun<'_>> {
        PartialRun::new(self, feeds, fetches, targets)
    }

    /// Returns the devices.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn devices(&self) -> Result<Vec<Device>> {
        let status = Status::new(self.api())?;
        // SAFETY: session and status are alive.
        let list = self.graph.inner.fence.call(|| unsafe {
            self.api()
                .c_api
                .TF_SessionListDevices(self.as_ptr(), status.as_ptr())
        })?;
        status.check()?;
        // SAFETY: the caller of the function owns the list.
        unsafe { device::from_owned_list(list, self.api()) }
    }

    /// Closes the session; runs fail from then on, and runs of other threads that are going on end with
    /// [`Code::Cancelled`](crate::Code::Cancelled) where they wait. Dropping it closes it too.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn close(&self) -> Result<()> {
        let status = Status::new(self.api())?;
        // SAFETY: session and status are alive.
        self.graph.inner.fence.call(|| unsafe {
            self.api()
                .c_api
                .TF_CloseSession(self.as_ptr(), status.as_ptr())
        })?;
        status.check()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // What a function that threw may have left locked stays.
        if self.graph.inner.fence.is_broken() {
            return;
        }
        let Ok(status) = Status::new(self.api()) else {
            return;
        };
        let c = &self.api().c_api;
        // SAFETY: the session is alive, no run of it is going on, and this is its end.
        let ended = self.graph.inner.fence.call(|| unsafe {
            c.TF_CloseSession(self.as_ptr(), status.as_ptr());
            c.TF_DeleteSession(self.as_ptr(), status.as_ptr());
        });
        // Nobody is left to hear of an error.
        let _ = ended.map(|()| status.check());
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session on {:?}", self.graph)
    }
}
