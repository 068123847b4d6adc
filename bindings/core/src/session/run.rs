//! One run of a graph.

use std::ptr;

use tfp_sys::{TF_Buffer, TF_Operation, TF_Output, TF_Tensor};

use super::Session;
use super::fed::{FedCopies, check_feeds, fetched};
use super::options::RunOptions;
use crate::base::api::Status;
use crate::base::buffer::{OutBuffer, lend};
use crate::base::error::Result;
use crate::base::small_vec::SmallVec;
use crate::graph::operation::{Operation, Output, count_of};
use crate::tensor::Tensor;

/// A run of a session that is being put together.
pub struct Run<'r> {
    session: &'r Session,
    feeds: SmallVec<(&'r Output, &'r Tensor), 4>,
    fetches: SmallVec<&'r Output, 4>,
    targets: SmallVec<&'r Operation, 4>,
    options: Option<&'r RunOptions>,
    metadata: bool,
}

/// What a run returns.
#[derive(Debug)]
pub struct Fetched {
    /// The values of the fetches, in their order.
    pub tensors: Vec<Tensor>,
    /// A serialized `RunMetadata`; empty unless it was asked for. [`traced_nodes`](crate::traced_nodes)
    /// reads the times of its ops.
    pub metadata: Vec<u8>,
}

impl<'r> Run<'r> {
    pub(super) fn new(session: &'r Session) -> Self {
        Self {
            session,
            feeds: SmallVec::new(),
            fetches: SmallVec::new(),
            targets: SmallVec::new(),
            options: None,
            metadata: false,
        }
    }

    /// Feeds an output with a tensor.
    #[must_use]
    pub fn feed(mut self, output: &'r Output, tensor: &'r Tensor) -> Self {
        self.feeds.push((output, tensor));
        self
    }

    /// Asks for the value of an output.
    #[must_use]
    pub fn fetch(mut self, output: &'r Output) -> Self {
        self.fetches.push(output);
        self
    }

    /// Runs an operation for its effect.
    #[must_use]
    pub fn target(mut self, operation: &'r Operation) -> Self {
        self.targets.push(operation);
        self
    }

    /// Sets how the graph runs, such as a trace or a deadline.
    #[must_use]
    pub fn options(mut self, options: &'r RunOptions) -> Self {
        self.options = Some(options);
        self
    }

    /// Asks for the run's metadata.
    #[must_use]
    pub fn with_metadata(mut self) -> Self {
        self.metadata = true;
        self
    }

    /// Runs.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`](crate::ErrorKind::Foreign) for what is of another graph,
    /// [`ErrorKind::DType`](crate::ErrorKind::DType) or [`ErrorKind::Shape`](crate::ErrorKind::Shape)
    /// for a feed that does not fit, and TensorFlow's status for the rest, as a missing feed or a
    /// closed session.
    pub fn go(self) -> Result<Fetched> {
        let session = self.session;
        let metadata = if self.metadata {
            Some(OutBuffer::new(session.api())?)
        } else {
            None
        };
        let bytes = self.options.map_or(&[][..], RunOptions::as_bytes);
        let options = lend(bytes);
        let what = What {
            feeds: &self.feeds,
            fetches: &self.fetches,
            targets: &self.targets,
        };
        // SAFETY: both buffers are alive during the call.
        let tensors = unsafe {
            let options = if bytes.is_empty() {
                ptr::null()
            } else {
                &raw const options
            };
            let metadata = metadata.as_ref().map_or(ptr::null_mut(), OutBuffer::as_ptr);
            what.run(session, options, metadata)?
        };
        let metadata = metadata
            .map(|buffer| buffer.as_slice().to_vec())
            .unwrap_or_default();
        Ok(Fetched { tensors, metadata })
    }
}

/// What is fed, fetched and run.
pub(super) struct What<'a> {
    pub(super) feeds: &'a [(&'a Output, &'a Tensor)],
    pub(super) fetches: &'a [&'a Output],
    pub(super) targets: &'a [&'a Operation],
}

impl What<'_> {
    /// Runs a session.
    ///
    /// # Errors
    /// As for [`Run::go`].
    ///
    /// # Safety
    /// The buffers are alive or null.
    #[inline]
    pub(super) unsafe fn run(
        &self,
        session: &Session,
        options: *const TF_Buffer,
        metadata: *mut TF_Buffer,
    ) -> Result<Vec<Tensor>> {
        let graph = session.graph();
        check_feeds(graph, self.feeds)?;
        let mut inputs: SmallVec<TF_Output, 4> = SmallVec::new();
        let mut values: SmallVec<*mut TF_Tensor, 4> = SmallVec::new();
        for (output, tensor) in self.feeds {
            inputs.push(output.raw());
            values.push(tensor.as_ptr());
        }
        let mut outputs: SmallVec<TF_Output, 4> = SmallVec::new();
        for output in self.fetches {
            graph.check_own(output)?;
            outputs.push(output.raw());
        }
        let mut targets: SmallVec<*const TF_Operation, 4> = SmallVec::new();
        for operation in self.targets {
            graph.check_operation(operation)?;
            targets.push(operation.as_ptr().cast_const());
        }
        // SAFETY: everything is of the session's graph, and alive during the call.
        unsafe {
            run(
                session, options, &inputs, &values, &outputs, &targets, metadata,
            )
        }
    }
}

/// Runs a session.
///
/// # Safety
/// Outputs and operations are of the session's graph; tensors and buffers are alive; `inputs` and
/// `values` are of one length.
pub(super) unsafe fn run(
    session: &Session,
    options: *const TF_Buffer,
    inputs: &[TF_Output],
    values: &[*mut TF_Tensor],
    outputs: &[TF_Output],
    targets: &[*const TF_Operation],
    metadata: *mut TF_Buffer,
) -> Result<Vec<Tensor>> {
    let api = session.api();
    let status = Status::new(api)?;
    // SAFETY: the tensors are alive.
    let copies = unsafe { FedCopies::where_needed(session.graph(), values)? };
    let values = copies.as_ref().map_or(values, FedCopies::as_ptrs);
    let (mut few, mut many) = ([ptr::null_mut::<TF_Tensor>(); 4], Vec::new());
    let results = match few.get_mut(..outputs.len()) {
        Some(few) => few,
        None => {
            many.resize(outputs.len(), ptr::null_mut());
            &mut many[..]
        }
    };
    let input_count = count_of(inputs)?;
    let output_count = count_of(outputs)?;
    let target_count = count_of(targets)?;
    // SAFETY: by this function's contract; every list has the length that is passed with it, and
    // `results` has room for a tensor per output.
    session.graph().inner.fence.call(|| unsafe {
        api.c_api.TF_SessionRun(
            session.as_ptr(),
            options,
            inputs.as_ptr(),
            values.as_ptr(),
            input_count,
            outputs.as_ptr(),
            results.as_mut_ptr(),
            output_count,
            targets.as_ptr(),
            target_count,
            metadata,
            status.as_ptr(),
        );
    })?;
    status.check()?;
    let mut tensors = Vec::with_capacity(results.len());
    for &mut raw in results {
        // SAFETY: the caller of the function owns each tensor.
        tensors.push(unsafe { fetched(session.graph(), raw)? });
    }
    Ok(tensors)
}
