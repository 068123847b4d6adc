//! Servers: tasks of a cluster that compute for others.

use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use tfp_sys::loader::fenced;
use tfp_sys::{ClientApi, TF_Server};

use crate::base::api::{Status, api, not_null, text_from_ptr};
use crate::base::error::Result;

/// A server of this process, as a serialized `ServerDef` describes it: other tasks of the cluster run ops
/// on its devices.
///
/// TensorFlow can't stop a server of gRPC: one that was started runs until the process ends, also when
/// this value is dropped.
pub struct Server {
    raw: NonNull<TF_Server>,
    api: &'static ClientApi,
    is_started: AtomicBool,
}

// SAFETY: a server guards itself.
unsafe impl Send for Server {}
// SAFETY: as above.
unsafe impl Sync for Server {}

impl Server {
    /// Makes a server; it serves after [`Self::start`].
    ///
    /// # Errors
    /// What TensorFlow says: of bytes that are not a `ServerDef`, and of an address that is taken.
    pub fn new(server_def: &[u8]) -> Result<Self> {
        let api = api()?;
        let status = Status::new(api)?;
        let (data, length) = (server_def.as_ptr().cast(), server_def.len());
        // SAFETY: bytes and status are alive.
        let raw = fenced(|| unsafe { api.c_api.TF_NewServer(data, length, status.as_ptr()) })?;
        status.check()?;
        Ok(Self {
            raw: not_null(raw, "TF_NewServer")?,
            api,
            is_started: AtomicBool::new(false),
        })
    }

    /// Begins to serve, in threads of its own.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn start(&self) -> Result<()> {
        let status = Status::new(self.api)?;
        self.is_started.store(true, Ordering::Relaxed);
        // SAFETY: server and status are alive.
        fenced(|| unsafe {
            self.api
                .c_api
                .TF_ServerStart(self.raw.as_ptr(), status.as_ptr())
        })?;
        status.check()
    }

    /// Waits as long as the server runs, which is until the process ends.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn join(&self) -> Result<()> {
        let status = Status::new(self.api)?;
        // SAFETY: server and status are alive.
        fenced(|| unsafe {
            self.api
                .c_api
                .TF_ServerJoin(self.raw.as_ptr(), status.as_ptr())
        })?;
        status.check()
    }

    /// Returns what a session names as its target, such as `grpc://localhost:2222`.
    #[must_use]
    pub fn target(&self) -> String {
        // SAFETY: the server is alive, and its text as long as it.
        unsafe { text_from_ptr(self.api.c_api.TF_ServerTarget(self.raw.as_ptr())) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.is_started.load(Ordering::Relaxed) {
            // TensorFlow aborts the process when a started server of gRPC is deleted.
            return;
        }
        // SAFETY: the server is alive, was not started, and this is its end.
        unsafe { self.api.c_api.TF_DeleteServer(self.raw.as_ptr()) };
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server at {}", self.target())
    }
}
