//! An eager context in a cluster: collective ops, remote devices, the health of other tasks.

use std::time::Duration;

use super::context::EagerContext;
use crate::base::api::{Status, c_string};
use crate::base::config::milliseconds;
use crate::base::error::{Code, Result};

/// How long a server keeps a context whose owner is silent, in seconds, as Python has it.
const KEEP_ALIVE: i32 = 600;

impl EagerContext {
    /// Starts the server of this task, and lets collective ops of this context meet those of the other
    /// tasks of a serialized `ServerDef`. With a coordination service in its settings, this waits for
    /// all tasks.
    ///
    /// The devices get the names of the task: call it before anything else. The server runs until the
    /// process ends.
    ///
    /// # Errors
    /// What TensorFlow says: of bytes that are not a `ServerDef`, an address that is taken, and tasks
    /// that don't come.
    pub fn enable_collective_ops(&self, server_def: &[u8]) -> Result<()> {
        let api = self.api();
        let status = Status::new(api)?;
        let (data, length) = (server_def.as_ptr().cast(), server_def.len());
        // SAFETY: context, bytes and status are alive.
        self.fenced(|| unsafe {
            let c = &api.c_api_experimental;
            c.TFE_EnableCollectiveOps(self.as_ptr(), data, length, status.as_ptr());
        })?;
        self.forget_places();
        status.check()
    }

    /// Starts the server of this task, and adds the devices of the other tasks of a serialized
    /// `ServerDef`: [`Self::on_device`] takes their names, such as
    /// `/job:ps/task:0/device:CPU:0`. Each try to reach all of them takes at most `timeout`.
    ///
    /// The devices get the names of the task: call it before anything else. The server runs until the
    /// process ends.
    ///
    /// # Errors
    /// What TensorFlow says: of bytes that are not a `ServerDef`, an address that is taken, and tasks
    /// that don't answer.
    pub fn connect(&self, server_def: &[u8], timeout: Duration, retries: u16) -> Result<()> {
        let api = self.api();
        let status = Status::new(api)?;
        let (data, length) = (server_def.as_ptr().cast(), server_def.len());
        // SAFETY: context, bytes and status are alive.
        self.fenced(|| unsafe {
            api.eager_c_api_experimental
                .TFE_ContextSetServerDefWithTimeoutAndRetries(
                    self.as_ptr(),
                    KEEP_ALIVE,
                    data,
                    length,
                    milliseconds(timeout),
                    retries.into(),
                    status.as_ptr(),
                    false,
                );
        })?;
        self.forget_places();
        status.check()
    }

    /// Ends the collective ops that wait, and all later ones, with an error: after a peer has failed, no
    /// thread waits for it any more. Only a new context has collective ops again.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) for a NUL byte in the message.
    pub fn abort_collective_ops(&self, code: Code, message: &str) -> Result<()> {
        let api = self.api();
        let status = Status::new(api)?;
        let message = c_string(message)?;
        // SAFETY: context, status and message are alive. TensorFlow reads this status.
        self.fenced(|| unsafe {
            let code = tfp_sys::TSL_Code(code as u32);
            api.tf_status
                .TF_SetStatus(status.as_ptr(), code, message.as_ptr());
            api.c_api_experimental
                .TFE_AbortCollectiveOps(self.as_ptr(), status.as_ptr());
        })?;
        // The status holds the message, and is not given back to the thread.
        drop(status);
        Ok(())
    }

    /// Asks another task of the collective ops, such as `/job:worker/replica:0/task:1`, whether it is
    /// there and the same process as before.
    ///
    /// # Errors
    /// [`Code::Unavailable`] or [`Code::DeadlineExceeded`] for one that does not answer,
    /// [`Code::FailedPrecondition`] for one that was started anew, [`Code::InvalidArgument`] for
    /// another name.
    pub fn check_peer(&self, task: &str, timeout: Duration) -> Result<()> {
        let api = self.api();
        let (status, task) = (Status::new(api)?, c_string(task)?);
        // SAFETY: context, name and status are alive.
        self.fenced(|| unsafe {
            api.c_api_experimental.TFE_CollectiveOpsCheckPeerHealth(
                self.as_ptr(),
                task.as_ptr(),
                milliseconds(timeout),
                status.as_ptr(),
            );
        })?;
        status.check()
    }
}
