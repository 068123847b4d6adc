//! What all that belongs to a graph shares.

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tfp_sys::{ClientApi, TF_Graph};

use crate::attr::function::Function;
use crate::attr::sharing::Sharing;
use crate::base::fence::Fence;
use crate::base::names::Names;

/// A graph, which every operation and session on it keeps alive.
pub(crate) struct GraphInner {
    raw: NonNull<TF_Graph>,
    pub(crate) api: &'static ClientApi,
    pub(crate) fence: Fence,
    // Held while operations or edges are added or edges are read: TensorFlow reads edges unguarded.
    names: Mutex<Names>,
    epoch: AtomicU64,
    sharing: AtomicU8,
    functions: Mutex<Functions>,
    is_owned: bool,
}

/// The functions of a graph's library that are known by handles.
#[derive(Default)]
pub(crate) struct Functions {
    pub(crate) by_name: BTreeMap<String, Function>,
    /// How many functions TensorFlow's graph has, all of which are here.
    pub(crate) given: usize,
    /// Whether TensorFlow's graph gets none that is added.
    pub(crate) aside: bool,
}

/// Returns a number that was not returned before.
fn new_epoch() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

// SAFETY: the C API guards a graph by its own mutex; what it does not guard, `names` does.
unsafe impl Send for GraphInner {}
// SAFETY: as above.
unsafe impl Sync for GraphInner {}

impl GraphInner {
    pub(crate) fn new(
        raw: NonNull<TF_Graph>,
        api: &'static ClientApi,
        names: Names,
        is_owned: bool,
    ) -> Self {
        Self {
            raw,
            api,
            fence: Fence::default(),
            names: Mutex::new(names),
            epoch: AtomicU64::new(new_epoch()),
            sharing: AtomicU8::new(Sharing::Nothing as u8),
            functions: Mutex::default(),
            is_owned,
        }
    }

    pub(crate) fn as_ptr(&self) -> *mut TF_Graph {
        self.raw.as_ptr()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn functions(&self) -> MutexGuard<'_, Functions> {
        self.functions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a number that this graph alone has, as long as no shape in it is set.
    #[inline]
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Notes that a shape was set. It is, before this is called: who reads the new epoch sees it.
    pub(crate) fn renew_epoch(&self) {
        self.epoch.store(new_epoch(), Ordering::Release);
    }

    /// Notes what operations that are added may write to.
    pub(crate) fn shares(&self, sharing: Sharing) {
        self.sharing.fetch_max(sharing as u8, Ordering::AcqRel);
    }

    /// Returns what the operations may write to.
    #[inline]
    pub(crate) fn sharing(&self) -> Sharing {
        Sharing::from_number(self.sharing.load(Ordering::Acquire))
    }

    /// Whether the graph has an operation of a name, which must end in a NUL byte.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        // SAFETY: the graph is alive and the name is a C string.
        let found = unsafe {
            self.api
                .c_api
                .TF_GraphOperationByName(self.as_ptr(), name.as_ptr().cast())
        };
        !found.is_null()
    }
}

impl Drop for GraphInner {
    fn drop(&mut self) {
        if self.is_owned && !self.fence.is_broken() {
            // SAFETY: the graph is alive, and nothing of this crate refers to it any more.
            unsafe { self.api.c_api.TF_DeleteGraph(self.raw.as_ptr()) };
        }
    }
}
