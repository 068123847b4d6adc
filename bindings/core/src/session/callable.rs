//! Runs that are prepared once and repeated.

use std::ptr;

use tfp_sys::{TF_Operation, TF_Output, TF_Tensor};

use super::Session;
use super::fed::check_feed;
use super::run::run;
use crate::base::error::{Error, Result};
use crate::base::shape::Shape;
use crate::base::small_vec::SmallVec;
use crate::graph::operation::{Operation, Output};
use crate::tensor::Tensor;

/// A run whose feeds, fetches and targets are fixed. Several threads may call it together.
pub struct Callable<'s> {
    session: &'s Session,
    feeds: Vec<(Output, Shape)>,
    inputs: Vec<TF_Output>,
    outputs: Vec<TF_Output>,
    targets: Vec<*const TF_Operation>,
}

// SAFETY: the pointers are to operations of the session's graph, which do not change and which the
// session keeps alive.
unsafe impl Send for Callable<'_> {}
// SAFETY: as above.
unsafe impl Sync for Callable<'_> {}

impl<'s> Callable<'s> {
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
        let raw = |outputs: &[Output]| outputs.iter().map(Output::raw).collect();
        Ok(Self {
            session,
            feeds: feeds
                .iter()
                .map(|output| Ok((output.clone(), graph.shape(output)?)))
                .collect::<Result<_>>()?,
            inputs: raw(feeds),
            outputs: raw(fetches),
            targets: targets
                .iter()
                .map(|operation| operation.as_ptr().cast_const())
                .collect(),
        })
    }

    /// Runs with a tensor per feed and returns a tensor per fetch.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) for another number of tensors, and as
    /// for [`Run::go`](super::Run::go).
    pub fn call(&self, values: &[&Tensor]) -> Result<Vec<Tensor>> {
        if values.len() != self.feeds.len() {
            return Err(Error::argument(format!(
                "{} tensors for {} feeds",
                values.len(),
                self.feeds.len()
            )));
        }
        for ((output, shape), tensor) in self.feeds.iter().zip(values) {
            check_feed(output, shape, tensor)?;
        }
        let raw: SmallVec<*mut TF_Tensor, 4> = values.iter().map(|value| value.as_ptr()).collect();
        // SAFETY: all is of the session's graph, and there is a living tensor per feed.
        unsafe {
            let none = ptr::null_mut();
            let (inputs, outputs) = (&self.inputs, &self.outputs);
            run(
                self.session,
                ptr::null(),
                inputs,
                &raw,
                outputs,
                &self.targets,
                none,
            )
        }
    }
}
