//! Gradient functions, and what they have at hand: the op, the gradients of its outputs, short ways
//! to call ops.

use std::sync::Arc;

use tfp_core::{AttrValue, Result};
use tfp_ops as ops;

use crate::context::any::AnyContext;
use crate::context::record::{OpRecord, SharedRule, with_borrowed};
use crate::context::run::{Run, first};
use crate::context::slices::Gradient;
use crate::context::value::AnyValue;

/// The gradients of an op's inputs, in their order; `None` where there is none.
pub type InputGradients = Vec<Option<Gradient<AnyValue>>>;

/// An op whose gradient is asked for.
pub struct Backward<'a> {
    pub(crate) cx: &'a AnyContext,
    pub(crate) op: &'a OpRecord,
    pub(crate) grads: &'a [Option<Gradient<AnyValue>>],
    pub(crate) needs: &'a [bool],
}

impl<'a> Backward<'a> {
    /// Returns the context to which the gradient is added, or which executes it.
    #[must_use]
    pub fn context(&self) -> &'a AnyContext {
        self.cx
    }

    /// Returns the op.
    #[must_use]
    pub fn op(&self) -> &'a OpRecord {
        self.op
    }

    /// Returns an input of the op.
    ///
    /// # Panics
    /// When the op has no such input, like indexing a slice.
    #[must_use]
    pub fn input(&self, index: usize) -> &'a AnyValue {
        &self.op.inputs[index]
    }

    /// Returns an output of the op.
    ///
    /// # Panics
    /// When the op has no such output, like indexing a slice.
    #[must_use]
    pub fn output(&self, index: usize) -> &'a AnyValue {
        &self.op.outputs[index]
    }

    /// Whether the gradient of an input is of use. A function may return `None` where it is not.
    #[must_use]
    pub fn needs(&self, input: usize) -> bool {
        self.needs.get(input).copied().unwrap_or(false)
    }

    /// Returns the gradient of an output as a tensor; zeros where nothing depends on the output.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn grad(&self, output: usize) -> Result<AnyValue> {
        match self.grad_or_none(output)? {
            Some(grad) => Ok(grad),
            None => ops::zeros_like(self.cx, self.output(output)),
        }
    }

    /// Returns the gradient of an output as a tensor; `None` where nothing depends on the output.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn grad_or_none(&self, output: usize) -> Result<Option<AnyValue>> {
        match self.grads.get(output) {
            Some(Some(grad)) => grad.clone().dense(self.cx).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the gradient of an output, which may be slices.
    #[must_use]
    pub fn raw_grad(&self, output: usize) -> Option<&'a Gradient<AnyValue>> {
        self.grads.get(output).and_then(Option::as_ref)
    }

    /// Calls an op with single inputs and some attributes of the differentiated op.
    pub(crate) fn run(
        &self,
        op_type: &str,
        inputs: &[&AnyValue],
        copied: &[&str],
    ) -> Result<Vec<AnyValue>> {
        self.run_with(op_type, inputs, copied, &[])
    }

    /// Calls an op whose first output is wanted.
    pub(crate) fn run1(
        &self,
        op_type: &str,
        inputs: &[&AnyValue],
        copied: &[&str],
    ) -> Result<AnyValue> {
        first(self.run(op_type, inputs, copied)?)
    }

    /// Calls an op with single inputs, some attributes of the differentiated op, and others.
    pub(crate) fn run_with(
        &self,
        op_type: &str,
        inputs: &[&AnyValue],
        copied: &[&str],
        given: &[(&str, AttrValue<'_>)],
    ) -> Result<Vec<AnyValue>> {
        let attrs = copied
            .iter()
            .map(|name| self.op.attr(name).map(|attr| (*name, attr)))
            .collect::<Result<Vec<_>>>()?;
        // Attributes are borrowed one inside the other, so that lists of strings may live on the stack.
        fn nest(
            cx: &AnyContext,
            op_type: &str,
            inputs: &[&AnyValue],
            attrs: &[(&str, tfp_core::Attr)],
            given: &mut Vec<(&str, AttrValue<'_>)>,
        ) -> Result<Vec<AnyValue>> {
            match attrs {
                [] => cx.op(op_type, inputs, given),
                [(name, attr), rest @ ..] => with_borrowed(attr, |value| {
                    let mut given: Vec<_> = given.iter().copied().chain([(*name, value)]).collect();
                    nest(cx, op_type, inputs, rest, &mut given)
                }),
            }
        }
        nest(self.cx, op_type, inputs, &attrs, &mut given.to_vec())
    }
}

/// Returns the gradient of an op's only differentiable input, the first.
pub(crate) fn one(value: Result<AnyValue>) -> Result<InputGradients> {
    Ok(vec![Some(value?.into())])
}

/// A gradient function of this crate.
pub(crate) type Rule = fn(&Backward<'_>) -> Result<InputGradients>;

/// The gradient functions of a group of ops.
pub(crate) type Rules = &'static [(&'static str, Rule)];

/// Returns a gradient function of the user, or of one recorded op.
pub(crate) fn shared(
    function: impl Fn(&Backward<'_>) -> Result<InputGradients> + Send + Sync + 'static,
) -> SharedRule {
    SharedRule(Arc::new(move |cx, op, grads, needs| {
        function(&Backward {
            cx,
            op,
            grads,
            needs,
        })
    }))
}
