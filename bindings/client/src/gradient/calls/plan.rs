//! How a call is exchanged for one that keeps what its gradient needs.

use tfp_core::Result;

use crate::context::any::AnyContext;
use crate::context::value::AnyValue;

/// What a call returned: its outputs, and what its gradient needs.
pub(super) type Ran = (Vec<AnyValue>, Vec<AnyValue>);

/// How a call is exchanged, and differentiated then.
pub(super) trait Plan: Send + Sync {
    /// Calls with the same inputs; returns the outputs of the original call, and what is kept.
    fn forward(&self, cx: &AnyContext, inputs: &[AnyValue]) -> Result<Ran>;

    /// Returns the gradients of the inputs.
    fn backward(
        &self,
        cx: &AnyContext,
        inputs: &[AnyValue],
        ran: &Ran,
        grads: &[Option<AnyValue>],
    ) -> Result<Vec<Option<AnyValue>>>;
}

/// Which gradients there are and which are wanted.
pub(super) struct Wanted<'a> {
    /// For each output, whether it has a gradient.
    pub(super) grads: &'a [bool],
    /// For each input, whether its gradient is wanted.
    pub(super) needs: &'a [bool],
}
