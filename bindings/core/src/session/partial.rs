//! Runs in parts.

use std::ffi::c_char;
use std::ptr::{self, NonNull};

use tfp_sys::{TF_Operation, TF_Output, TF_Tensor};

use super::Session;
use super::fed::{FedCopies, check_feeds, fetched};
use crate::base::api::Status;
use crate::base::error::{Error, Result};
use crate::graph::operation::{Operation, Output, count_of};
use crate::tensor::Tensor;

/// A run that goes on over several calls, with values between them: what was computed stays.
///
/// TensorFlow can't abandon one: what is dropped before its last part keeps its values until the
/// session is closed.
pub struct PartialRun<'s> {
    session: &'s Session,
    handle: NonNull<c_char>,
}

// SAFETY: the handle is a name that only TensorFlow reads, and the session guards itself.
unsafe impl Send for PartialRun<'_> {}
// SAFETY: as above.
unsafe impl Sync for PartialRun<'_> {}

impl<'s> PartialRun<'s> {
    pub(super) fn new(
        session: &'s Session,
        feeds: &[Output],
        fetches: &[Output],
        targets: &[Operation],
    ) -> Result<Self> {
        let graph = session.graph();
        feeds
            .iter()
            .chain(fetches)
            .try_for_each(|output| graph.check_own(output))?;
        targets
            .iter()
            .try_for_each(|operation| graph.check_operation(operation))?;
        let api = session.api();
        let status = Status::new(api)?;
        let raw = |outputs: &[Output]| outputs.iter().map(Output::raw).collect::<Vec<_>>();
        let (inputs, outputs) = (raw(feeds), raw(fetches));
        let targets: Vec<*const TF_Operation> = targets
            .iter()
            .map(|operation| operation.as_ptr().cast_const())
            .collect();
        let mut handle: *const c_char = ptr::null();
        let input_count = count_of(&inputs)?;
        let output_count = count_of(&outputs)?;
        let target_count = count_of(&targets)?;
        // SAFETY: all is of the session's graph, and every list has the length that is passed.
        session.graph().inner.fence.call(|| unsafe {
            api.c_api.TF_SessionPRunSetup(
                session.as_ptr(),
                inputs.as_ptr(),
                input_count,
                outputs.as_ptr(),
                output_count,
                targets.as_ptr(),
                target_count,
                &raw mut handle,
                status.as_ptr(),
            );
        })?;
        status.check()?;
        match NonNull::new(handle.cast_mut()) {
            Some(handle) => Ok(Self { session, handle }),
            None => Err(Error::internal("TF_SessionPRunSetup returned no handle")),
        }
    }

    /// Runs one part: feeds in, values of the fetches out.
    ///
    /// # Errors
    /// As for [`Run::go`](super::Run::go), and TensorFlow's status for a feed or fetch that was not
    /// announced or was used in an earlier part.
    pub fn step(
        &self,
        feeds: &[(&Output, &Tensor)],
        fetches: &[&Output],
        targets: &[&Operation],
    ) -> Result<Vec<Tensor>> {
        let (session, api) = (self.session, self.session.api());
        check_feeds(session.graph(), feeds)?;
        fetches
            .iter()
            .try_for_each(|output| session.graph().check_own(output))?;
        targets
            .iter()
            .try_for_each(|target| session.graph().check_operation(target))?;
        let inputs: Vec<TF_Output> = feeds.iter().map(|(output, _)| output.raw()).collect();
        let values: Vec<*mut TF_Tensor> = feeds.iter().map(|(_, tensor)| tensor.as_ptr()).collect();
        // SAFETY: the tensors are alive.
        let copies = unsafe { FedCopies::where_needed(session.graph(), &values)? };
        let values = copies.as_ref().map_or(&values[..], FedCopies::as_ptrs);
        let outputs: Vec<TF_Output> = fetches.iter().map(|output| output.raw()).collect();
        let targets: Vec<*const TF_Operation> = targets
            .iter()
            .map(|operation| operation.as_ptr().cast_const())
            .collect();
        let mut results: Vec<*mut TF_Tensor> = vec![ptr::null_mut(); outputs.len()];
        let status = Status::new(api)?;
        let input_count = count_of(&inputs)?;
        let output_count = count_of(&outputs)?;
        let target_count = count_of(&targets)?;
        // SAFETY: all is of the session's graph, and every list has the length that is passed.
        session.graph().inner.fence.call(|| unsafe {
            api.c_api.TF_SessionPRun(
                session.as_ptr(),
                self.handle.as_ptr(),
                inputs.as_ptr(),
                values.as_ptr(),
                input_count,
                outputs.as_ptr(),
                results.as_mut_ptr(),
                output_count,
                targets.as_ptr(),
                target_count,
                status.as_ptr(),
            );
        })?;
        status.check()?;
        // SAFETY: the caller of the function owns each tensor.
        results
            .into_iter()
            .map(|raw| unsafe { fetched(session.graph(), raw) })
            .collect()
    }
}

impl Drop for PartialRun<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is alive, and this is its end.
        unsafe {
            self.session
                .api()
                .c_api
                .TF_DeletePRunHandle(self.handle.as_ptr())
        };
    }
}
