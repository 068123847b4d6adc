//! What a model keeps beside its layers: threads and a workspace to use again.

use std::fmt;
use std::sync::Mutex;

use crate::bytes::AlignedBytes;
use crate::error::Result;
use crate::kernels::base::parallel::{Parallel, Serial};

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
type Pool = crate::kernels::base::threads::ThreadPool;
/// Where std has no threads, a host may lend some.
#[cfg(not(without = "helpers"))]
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
type Pool = crate::kernels::base::helpers::Helpers;
#[cfg(without = "helpers")]
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
type Pool = Serial;

#[cfg(not(without = "helpers"))]
fn pool(threads: usize) -> Pool {
    Pool::new(threads)
}

#[cfg(without = "helpers")]
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
fn pool(threads: usize) -> Pool {
    Pool::new(threads)
}

#[cfg(without = "helpers")]
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
fn pool(_: usize) -> Pool {
    Serial
}

/// The memory of a call. It serves one call at a time, and any number one after the other.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    bytes: AlignedBytes,
}

impl Workspace {
    /// So many bytes; none if there is no memory for them, which the calls then say.
    #[must_use]
    pub fn with_bytes(bytes: usize) -> Self {
        Self {
            bytes: AlignedBytes::zeroed(bytes).unwrap_or_default(),
        }
    }

    /// Its bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&mut self) -> &mut [u8] {
        self.bytes.as_mut_slice()
    }

    /// How many bytes it has.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.as_slice().len()
    }
}

/// Threads, and the workspace of the last call.
#[derive(Default)]
pub struct Engine {
    threads: Option<Pool>,
    spare: Mutex<Option<Workspace>>,
}

/// As many threads of its own.
impl Clone for Engine {
    fn clone(&self) -> Self {
        let mut engine = Self::default();
        engine.set_threads(self.parallel().threads());
        engine
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("threads", &self.parallel().threads())
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Uses so many threads, the caller's among them; 1 uses no other.
    pub fn set_threads(&mut self, threads: usize) {
        self.threads = (threads > 1).then(|| pool(threads));
    }

    /// The threads.
    #[must_use]
    #[inline]
    pub fn parallel(&self) -> &dyn Parallel {
        match &self.threads {
            Some(pool) => pool,
            None => &Serial,
        }
    }

    /// Gives back the workspace of an earlier call, unless another thread uses it.
    pub fn shrink(&self) {
        if let Ok(mut spare) = self.spare.try_lock() {
            *spare = None;
        }
    }

    /// Calls `run` with a workspace of at least so many bytes: the one of an earlier call, unless
    /// another thread uses it.
    ///
    /// # Errors
    /// Those of `run`.
    pub fn with_workspace<T>(
        &self,
        bytes: usize,
        run: impl FnOnce(&mut Workspace) -> Result<T>,
    ) -> Result<T> {
        let spare = self.spare.try_lock().ok().and_then(|mut x| x.take());
        let mut workspace = spare
            .filter(|workspace| workspace.size() >= bytes)
            .unwrap_or_else(|| Workspace::with_bytes(bytes));
        let result = run(&mut workspace);
        if let Ok(mut spare) = self.spare.try_lock() {
            *spare = Some(workspace);
        }
        result
    }
}
