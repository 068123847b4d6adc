//! The functions of an eager context.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use super::EagerContext;
use crate::attr::function::{Function, FunctionId};
use crate::base::api::{Status, c_string};
use crate::base::buffer::OutBuffer;
use crate::base::error::{Error, Result};
use crate::graph::def::FunctionDef;
use crate::graph::in_place;
use crate::graph::untrusted::Calls;

/// Bytes of removed functions after which cached kernels are dropped. The kernel of a call takes about ten
/// times as many: of the function's definition, and of [`KERNEL`] however small that is.
const MOST_REMOVED: usize = 2 << 20;
const KERNEL: usize = 4 << 10;

impl EagerContext {
    /// Adds a function; does nothing when the same function is there.
    ///
    /// # Errors
    /// TensorFlow's status when another function of the name is there, and as for
    /// [`Self::add_function_def`].
    pub fn add_function(&self, function: &Function) -> Result<()> {
        let mut functions = self.functions();
        if functions
            .get(function.name())
            .is_some_and(|id| id.is_of(function))
        {
            return Ok(());
        }
        // By its definition: TensorFlow writes a note into a function that it is given as it is, which
        // then differs from its copies in graphs, and which other threads may be reading.
        self.add_function_def(&function.to_function_def()?)?;
        functions.insert(function.name().to_owned(), function.id());
        Ok(())
    }

    fn functions(&self) -> MutexGuard<'_, HashMap<String, FunctionId>> {
        let functions = self.inner.functions.lock();
        functions.unwrap_or_else(PoisonError::into_inner)
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        let calls = self.inner.calls.lock();
        calls.unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a function by its serialized `FunctionDef`.
    ///
    /// # Errors
    /// [`ErrorKind::Proto`](crate::ErrorKind::Proto) for bytes that are none,
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) for a function that writes to memory which tensors share, for what [`check_graph_def`](crate::check_graph_def) refuses, and
    /// TensorFlow's status.
    pub fn add_function_def(&self, bytes: &[u8]) -> Result<()> {
        let function = FunctionDef::read(bytes)?;
        function.check()?;
        in_place::check_function(function.name, &function.body)?;
        let mut calls = self.calls();
        let called = function.called()?;
        calls.check_new(function.name, &called)?;
        let api = self.inner.api;
        let status = Status::new(api)?;
        let (data, length) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: context, bytes and status are alive.
        self.fenced(|| unsafe {
            let c = &api.eager_c_api;
            c.TFE_ContextAddFunctionDef(self.as_ptr(), data, length, status.as_ptr());
        })?;
        status.check()?;
        calls.set(function.name, Some(called));
        Ok(())
    }

    /// Whether there is a function.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) for a NUL byte in the name.
    pub fn has_function(&self, name: &str) -> Result<bool> {
        let name = c_string(name)?;
        // One that another thread is adding may not have reached the other tasks of a cluster yet.
        let _adding = self.calls();
        // SAFETY: context and name are alive.
        let found = self.fenced(|| unsafe {
            self.inner
                .api
                .eager_c_api
                .TFE_ContextHasFunction(self.as_ptr(), name.as_ptr())
        })?;
        Ok(found != 0)
    }

    /// Returns a function as a serialized `FunctionDef`.
    ///
    /// # Errors
    /// TensorFlow's status when there is none of the name.
    pub fn function_def(&self, name: &str) -> Result<Vec<u8>> {
        let api = self.inner.api;
        let name = c_string(name)?;
        let (status, buffer) = (Status::new(api)?, OutBuffer::new(api)?);
        // SAFETY: context, name, buffer and status are alive.
        self.fenced(|| unsafe {
            let (c, out) = (&api.eager_c_api_experimental, buffer.as_ptr());
            c.TFE_ContextGetFunctionDef(self.as_ptr(), name.as_ptr(), out, status.as_ptr());
        })?;
        status.check()?;
        Ok(buffer.as_slice().to_vec())
    }

    /// Removes a function.
    ///
    /// TensorFlow keeps the kernel of each call that was made. Once 500 functions or 2 MiB of them were removed,
    /// all kernels are dropped, and calls make theirs again. A context whose threads have an
    /// [`Executor`](crate::Executor), or whose ops run in the background, keeps its kernels until
    /// [`Self::clear_caches`].
    ///
    /// # Errors
    /// TensorFlow's status when there is none of the name.
    pub fn remove_function(&self, name: &str) -> Result<()> {
        if !self.has_function(name)? {
            return Err(Error::not_found("function", name, "the eager context"));
        }
        let size = self.function_def(name)?.len();
        let c_name = c_string(name)?;
        let api = self.inner.api;
        let status = Status::new(api)?;
        let mut functions = self.functions();
        functions.remove(name);
        self.calls().set(name.as_bytes(), None);
        let (context, name) = (self.as_ptr(), c_name.as_ptr());
        // TensorFlow counts how often a function was added.
        loop {
            // SAFETY: context, name and status are alive.
            let is_there = self.fenced(|| unsafe {
                let c = &api.eager_c_api;
                c.TFE_ContextRemoveFunction(context, name, status.as_ptr());
                c.TFE_ContextHasFunction(context, name)
            })?;
            status.check_ref()?;
            if is_there == 0 {
                break;
            }
        }
        drop(functions);
        let removed = &self.inner.removed;
        let size = size + KERNEL;
        let total = removed.fetch_add(size, Ordering::Relaxed) + size;
        // Dropping kernels waits for the executors of all threads, of which one may end meanwhile.
        if total >= MOST_REMOVED && !self.runs_in_background() && !self.has_executors() {
            removed.store(0, Ordering::Relaxed);
            self.clear_caches();
        }
        Ok(())
    }
}
