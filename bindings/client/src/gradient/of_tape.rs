//! Gradients of what a tape recorded.

use tfp_core::{Error, Result, TensorHandle};

use super::calls::{self, OnTape};
use super::engine::{self, GradientOptions, Question, Unconnected};
use crate::context::record::OpRecord;
use crate::context::slices::Gradient;
use crate::context::tape::{EagerMode, Tape};
use crate::context::value::AnyValue;

impl Tape {
    /// Begins to record over an eager context or another tape.
    #[must_use]
    pub fn new(parent: &impl EagerMode) -> Self {
        Self::with(parent, true, &OnTape)
    }

    /// Begins to record; variables are watched only if [`Self::watch`] says so.
    #[must_use]
    pub fn without_variables(parent: &impl EagerMode) -> Self {
        Self::with(parent, false, &OnTape)
    }

    /// Returns the gradient of the sum of `y` with respect to one `x`, as a tensor.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) when `y` does not depend on `x`, and
    /// as for [`Self::gradients`].
    pub fn gradient(&self, y: &TensorHandle, x: &TensorHandle) -> Result<TensorHandle> {
        let found = self.gradients(&[y], &[x])?.pop().flatten();
        found.ok_or_else(|| {
            Error::argument(
                "the value to differentiate does not depend on the tensor by what the tape \
                 recorded: watch it before it is used",
            )
        })
    }

    /// Returns the gradients of the sum of all `ys` with respect to each of `xs`, as tensors.
    ///
    /// They are executed on the tape's parent. A gradient is `None` where no `y` depends on the
    /// `x` by ops that were recorded.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](tfp_core::ErrorKind::NotFound) names an op that has no gradient
    /// function; [`ErrorKind::Foreign`](tfp_core::ErrorKind::Foreign) a tensor of another context;
    /// [`ErrorKind::Closed`](tfp_core::ErrorKind::Closed) a closed tape;
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) a `y` that is not of a floating-point
    /// type.
    pub fn gradients(
        &self,
        ys: &[&TensorHandle],
        xs: &[&TensorHandle],
    ) -> Result<Vec<Option<TensorHandle>>> {
        self.gradients_with(ys, xs, &GradientOptions::default())?
            .into_iter()
            .map(|grad| {
                grad.map(|grad| {
                    let any = grad.try_map(|handle| Ok(AnyValue::Handle(handle)))?;
                    any.dense(self.parent())?.handle().cloned()
                })
                .transpose()
            })
            .collect()
    }

    /// The same as [`Self::gradients`], with options and with slices as they are.
    ///
    /// # Errors
    /// As for [`Self::gradients`], [`ErrorKind::DType`](tfp_core::ErrorKind::DType) and
    /// [`ErrorKind::Shape`](tfp_core::ErrorKind::Shape) for a given gradient that does not fit its
    /// `y`.
    pub fn gradients_with(
        &self,
        ys: &[&TensorHandle],
        xs: &[&TensorHandle],
        options: &GradientOptions<'_, TensorHandle>,
    ) -> Result<Vec<Option<Gradient<TensorHandle>>>> {
        let own = |list: &[&TensorHandle]| -> Result<Vec<AnyValue>> {
            list.iter()
                .map(|&handle| self.check_own(handle).map(|()| handle.into()))
                .collect()
        };
        let (ys, any_xs) = (own(ys)?, own(xs)?);
        let stops = own(&options.stop.iter().collect::<Vec<_>>())?;
        let mut grad_ys = Vec::with_capacity(options.grad_ys.len());
        for grad in options.grad_ys {
            if let Some(grad) = grad {
                self.check_own(grad)?;
            }
            grad_ys.push(grad.as_ref().map(AnyValue::from));
        }
        let (records, known) = self.recorded(xs)?;
        let records: Vec<&OpRecord> = records.iter().map(|record| &**record).collect();
        let question = Question {
            ys: &ys,
            grad_ys: &grad_ys,
            xs: &any_xs,
            stops: &stops,
            calls: calls::gradient,
        };
        engine::differentiate(self.parent(), &records, &question)?
            .into_iter()
            .zip(any_xs.iter().zip(known))
            .map(|(grad, (x, known))| {
                // An op may have been recorded for another input than one that nobody watched.
                let grad = grad.filter(|_| known);
                let grad = match (grad, options.unconnected) {
                    (None, Unconnected::Zeros) => Some(engine::zeros_of(self.parent(), x)?.into()),
                    (grad, _) => grad,
                };
                grad.map(|grad| grad.try_map(|value| value.handle().cloned()))
                    .transpose()
            })
            .collect()
    }
}
