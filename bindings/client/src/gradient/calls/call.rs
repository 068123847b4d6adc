//! `PartitionedCall`.

use tfp_core::{Result, Shape};

use super::derivative::Derivative;
use super::{Plan, Ran, Wanted};
use crate::context::any::AnyContext;
use crate::context::record::OpRecord;
use crate::context::value::AnyValue;
use crate::function::traced::Traced;

pub(super) struct CallPlan {
    derivative: Derivative,
    forward: Traced,
    count: usize,
}

impl CallPlan {
    pub(super) fn new(
        cx: &AnyContext,
        op: &OpRecord,
        shapes: &[Shape],
        wanted: &Wanted<'_>,
    ) -> Result<Self> {
        let derivative = Derivative::new(cx, &op.function("f")?, shapes, wanted)?;
        Ok(Self {
            forward: derivative.with_results(&derivative.kept())?,
            count: derivative.body.outputs.len(),
            derivative,
        })
    }
}

impl Plan for CallPlan {
    fn forward(&self, cx: &AnyContext, inputs: &[AnyValue]) -> Result<Ran> {
        let mut outputs = self.forward.call(cx, inputs)?;
        let kept = outputs.split_off(self.count);
        Ok((outputs, kept))
    }

    fn backward(
        &self,
        cx: &AnyContext,
        inputs: &[AnyValue],
        ran: &Ran,
        grads: &[Option<AnyValue>],
    ) -> Result<Vec<Option<AnyValue>>> {
        let mut args: Vec<AnyValue> = grads.iter().flatten().cloned().collect();
        args.extend(self.derivative.arguments(inputs, &ran.1));
        let found = self.derivative.core.call(cx, &args)?;
        let of = |index: &Option<usize>| index.and_then(|index| found.get(index).cloned());
        Ok(self.derivative.results.iter().map(of).collect())
    }
}
