//! Kernels: the compute of an op on a device.

use std::ffi::{CString, c_void};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use tfp_sys as sys;

use crate::api::api;
use crate::barrier::guard;
use crate::construction::Construction;
use crate::context::{Context, Node, Progress};
use crate::error::{Error, Result};
use crate::proto::graph::NodeDef;
use crate::status::{Status, with_status};

/// A kernel whose outputs are complete when `compute` returns. One object serves a node, from
/// several threads at the same time.
pub trait Kernel: Send + Sync + Sized + 'static {
    /// Makes the kernel for a node.
    ///
    /// # Errors
    /// If the attributes are not ones that the kernel can serve; the node then fails.
    fn new(node: &Construction) -> Result<Self>;

    /// Computes one step.
    ///
    /// # Errors
    /// Fails the step; the message is preceded by the op and the node.
    fn compute(&self, context: &mut Context<'_>) -> Result<()>;
}

/// A kernel that may finish a step on another thread.
///
/// TensorFlow's C interface keeps what ends a step on the stack of the thread that starts it. So
/// that thread waits here until the step has ended; it does no other work meanwhile.
pub trait AsyncKernel: Send + Sync + Sized + 'static {
    /// As [`Kernel::new`].
    ///
    /// # Errors
    /// As [`Kernel::new`].
    fn new(node: &Construction) -> Result<Self>;

    /// Starts one step. The step ends when `step` is finished or dropped.
    fn compute(self: Arc<Self>, step: Step);
}

/// A step of an [`AsyncKernel`] that has not ended yet.
pub struct Step {
    context: NonNull<sys::TF_OpKernelContext>,
    node: Arc<Node>,
    progress: Progress,
    ended: SyncSender<Result<()>>,
}

// SAFETY: the context is only used through `&mut self`, TensorFlow does not tie it to a thread, and
// it lives until `ended` has got a value or is dropped, for which the starting thread waits.
unsafe impl Send for Step {}

impl Step {
    /// Works with the step's inputs and outputs.
    ///
    /// # Errors
    /// What `body` returns; a panic in it is an error.
    pub fn with<T>(&mut self, body: impl FnOnce(&mut Context<'_>) -> Result<T>) -> Result<T> {
        let context = self.context.as_ptr();
        let (node, progress) = (&self.node, &mut self.progress);
        with_status(|status| {
            // SAFETY: the context lives until the step ends, which consumes `self`; the step is one
            // of the node.
            let mut context = unsafe { Context::from_borrowed_ptr(context, status, node)? };
            context.progress = std::mem::take(progress);
            let result = guard(|| body(&mut context));
            *progress = context.progress;
            result
        })
    }

    /// Ends the step, which fails if an output has not been given.
    pub fn finish(mut self, result: Result<()>) {
        let result = result.and_then(|()| self.with(|context| context.check_complete()));
        // The starting thread waits for this value, so it arrives.
        let _ = self.ended.send(result);
    }
}

/// The C functions of a kernel type.
pub(crate) struct Callbacks {
    pub(crate) create: unsafe extern "C" fn(*mut sys::TF_OpKernelConstruction) -> *mut c_void,
    pub(crate) compute: Compute,
    pub(crate) delete: unsafe extern "C" fn(*mut c_void),
}

pub(crate) enum Compute {
    Sync(unsafe extern "C" fn(*mut c_void, *mut sys::TF_OpKernelContext)),
    Async(
        unsafe extern "C" fn(
            *mut c_void,
            *mut sys::TF_OpKernelContext,
            *mut sys::TF_AsyncOpKernelDoneCallback,
        ),
    ),
}

pub(crate) fn sync_callbacks<K: Kernel>() -> Callbacks {
    Callbacks {
        create: create::<Direct<K>>,
        compute: Compute::Sync(compute_sync::<K>),
        delete: delete::<Direct<K>>,
    }
}

pub(crate) fn async_callbacks<K: AsyncKernel>() -> Callbacks {
    Callbacks {
        create: create::<Deferred<K>>,
        compute: Compute::Async(compute_async::<K>),
        delete: delete::<Deferred<K>>,
    }
}

/// A kernel object as TensorFlow holds it.
trait Object: Sized {
    fn make(node: &Construction) -> Result<Self>;
}

struct Direct<K> {
    kernel: K,
    node: Node,
}

struct Deferred<K> {
    kernel: Arc<K>,
    node: Arc<Node>,
}

impl<K: Kernel> Object for Direct<K> {
    fn make(node: &Construction) -> Result<Self> {
        Ok(Self {
            kernel: K::new(node)?,
            node: Node::new(place(node)),
        })
    }
}

impl<K: AsyncKernel> Object for Deferred<K> {
    fn make(node: &Construction) -> Result<Self> {
        Ok(Self {
            kernel: Arc::new(K::new(node)?),
            node: Arc::new(Node::new(place(node))),
        })
    }
}

/// What a kernel's errors begin with.
fn place(node: &Construction) -> String {
    format!("{} node {:?}", node.op(), node.name())
}

unsafe extern "C" fn create<O: Object>(raw: *mut sys::TF_OpKernelConstruction) -> *mut c_void {
    let made = guard(|| {
        with_status(|status| {
            // SAFETY: TensorFlow passes a live construction.
            let node = Construction::new(unsafe { read_node(raw, status)? });
            guard(|| O::make(&node)).map_err(|error| error.at(place(&node)))
        })
    });
    match made {
        Ok(object) => Box::into_raw(Box::new(object)).cast(),
        Err(error) => {
            let _ = with_status(|status| {
                // SAFETY: construction and status are live; the callee copies the status.
                unsafe {
                    crate::status::write(status.api(), status.as_ptr(), &Err(error));
                    status
                        .api()
                        .kernels
                        .TF_OpKernelConstruction_Failure(raw, status.as_ptr());
                }
                let _ = status.take();
                Ok(())
            });
            std::ptr::null_mut()
        }
    }
}

/// # Safety
/// `raw` points to a live construction.
unsafe fn read_node(raw: *mut sys::TF_OpKernelConstruction, status: &Status) -> Result<NodeDef> {
    let api = status.api();
    // SAFETY: by this function's contract.
    let buffer = unsafe {
        api.kernels
            .TF_OpKernelConstruction_GetNodeDef(raw, status.as_ptr())
    };
    let outcome = status.take();
    let Some(buffer) = NonNull::new(buffer) else {
        outcome?;
        return Err(Error::internal("TensorFlow gave no node"));
    };
    let buffer = crate::buffer::Buffer::from_owned_ptr(buffer, api);
    outcome?;
    NodeDef::parse(buffer.bytes())
}

unsafe extern "C" fn compute_sync<K: Kernel>(
    object: *mut c_void,
    raw: *mut sys::TF_OpKernelContext,
) {
    let _ = with_status(|status| {
        // SAFETY: `object` is null or what `create` returned, and lives until `delete`.
        let Some(object) = (unsafe { object.cast::<Direct<K>>().as_ref() }) else {
            // SAFETY: TensorFlow passes the context of a running step.
            unsafe { fail(raw, status, no_kernel()) };
            return Ok(());
        };
        // SAFETY: as above; the kernel object is that of the node.
        let mut context = unsafe { Context::from_borrowed_ptr(raw, status, &object.node)? };
        if let Err(error) = guard(|| {
            object.kernel.compute(&mut context)?;
            context.check_complete()
        }) {
            // SAFETY: as above.
            unsafe { fail(raw, status, error.at(object.node.place())) };
        }
        Ok(())
    });
}

unsafe extern "C" fn compute_async<K: AsyncKernel>(
    object: *mut c_void,
    context: *mut sys::TF_OpKernelContext,
    done: *mut sys::TF_AsyncOpKernelDoneCallback,
) {
    let (Ok(api), Some(context)) = (api(), NonNull::new(context)) else {
        return;
    };
    // SAFETY: `object` is null or what `create` returned, and lives until `delete`.
    let result = match unsafe { object.cast::<Deferred<K>>().as_ref() } {
        None => Err(no_kernel()),
        Some(object) => {
            let (ended, end) = sync_channel(1);
            let step = Step {
                context,
                node: Arc::clone(&object.node),
                progress: Progress::default(),
                ended,
            };
            let started = guard(|| {
                Arc::clone(&object.kernel).compute(step);
                Ok(())
            });
            let unfinished = || Err(Error::internal("the kernel gave up the step unfinished"));
            // After a panic, too: another thread may have the step.
            let ended = end.recv().unwrap_or_else(|_| unfinished());
            started
                .and(ended)
                .map_err(|error| error.at(object.node.place()))
        }
    };
    if let Err(error) = result {
        let _ = with_status(|status| {
            // SAFETY: the step has ended but TensorFlow does not know it yet.
            unsafe { fail(context.as_ptr(), status, error) };
            Ok(())
        });
    }
    // SAFETY: TensorFlow passed the callback, which runs once.
    unsafe { api.kernels.TF_RunAsyncOpKernelDoneCallback(done) };
}

#[cold]
fn no_kernel() -> Error {
    Error::internal("the kernel was not constructed")
}

/// Reports that a step has failed.
///
/// # Safety
/// `context` is that of a running step.
#[cold]
unsafe fn fail(context: *mut sys::TF_OpKernelContext, status: &Status, error: Error) {
    // SAFETY: by this function's contract; the callee copies the status.
    unsafe {
        crate::status::write(status.api(), status.as_ptr(), &Err(error));
        let kernels = &status.api().kernels;
        kernels.TF_OpKernelContext_Failure(context, status.as_ptr());
    }
    let _ = status.take();
}

unsafe extern "C" fn delete<O: Object>(object: *mut c_void) {
    if !object.is_null() {
        let _ = guard(|| {
            // SAFETY: TensorFlow passes what `create` returned, once.
            drop(unsafe { Box::from_raw(object.cast::<O>()) });
            Ok(())
        });
    }
}

/// Names as C wants them.
pub(crate) fn c_name(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::invalid(format!("{text:?} holds a NUL")))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bomb;

    impl Kernel for Bomb {
        fn new(_: &Construction) -> Result<Self> {
            Ok(Self)
        }

        fn compute(&self, _: &mut Context<'_>) -> Result<()> {
            Ok(())
        }
    }

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }

    #[test]
    fn a_kernel_that_panics_when_dropped_ends_no_process() {
        let node = Construction::new(NodeDef::default());
        let object = Direct::<Bomb>::make(&node).unwrap();
        let object = Box::into_raw(Box::new(object)).cast();
        // SAFETY: the object is of this type and not used again.
        unsafe { delete::<Direct<Bomb>>(object) };
    }
}
