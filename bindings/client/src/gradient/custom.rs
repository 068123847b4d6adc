//! Gradients that the user gives along with a computation.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tfp_core::{Error, IntoOperand, Operand, Result, Scope, TensorHandle};
use tfp_ops as ops;

use super::engine::GRADIENT_ATTR;
use super::registry::register_gradient;
use super::rule::{Backward, InputGradients, shared};
use crate::context::any::{AnyContext, Mode};
use crate::context::record::{Attrs, Brought, OpRecord};
use crate::context::value::AnyValue;

/// Computes with a custom gradient.
///
/// `forward` computes from `inputs`; its ops are not differentiated. `backward` is asked instead: its
/// [`Backward::input`]s are `inputs`, its [`Backward::output`]s what `forward` returned (what else
/// it needs of `forward`, `forward` returns too), and it returns a gradient for each of `inputs`.
/// What `forward` takes besides `inputs` counts as constant.
///
/// In a graph `backward` is found by a name of this process: a graph that another process loads
/// computes the same values, and its gradient is an error that names the function.
///
/// # Errors
/// Those of `forward`, and [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) when it returns
/// nothing.
pub fn custom_gradient<C: Mode>(
    cx: &C,
    inputs: &[C::Value],
    forward: impl FnOnce(&AnyContext, &[AnyValue]) -> Result<Vec<AnyValue>>,
    backward: impl Fn(&Backward<'_>) -> Result<InputGradients> + Send + Sync + 'static,
) -> Result<Vec<C::Value>> {
    let inputs: Vec<AnyValue> = inputs.iter().map(|input| cx.to_any(input)).collect();
    let any = cx.any();
    let outputs = match &any {
        AnyContext::Scope(_) | AnyContext::Func(_) => in_graph(&any, &inputs, forward, backward)?,
        AnyContext::Eager(_) => not_empty(forward(&any, &inputs)?)?,
        AnyContext::Tape(_) => on_tapes(&any, &inputs, forward, backward)?,
    };
    outputs
        .into_iter()
        .map(|value| cx.from_any(value))
        .collect()
}

fn not_empty(values: Vec<AnyValue>) -> Result<Vec<AnyValue>> {
    match values.is_empty() {
        true => Err(Error::argument(
            "the computation with a custom gradient returned no value",
        )),
        false => Ok(values),
    }
}

fn in_graph(
    cx: &AnyContext,
    inputs: &[AnyValue],
    forward: impl FnOnce(&AnyContext, &[AnyValue]) -> Result<Vec<AnyValue>>,
    backward: impl Fn(&Backward<'_>) -> Result<InputGradients> + Send + Sync + 'static,
) -> Result<Vec<AnyValue>> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // A graph may come from another process, whose numbers begin with zero too.
    static PROCESS: OnceLock<u64> = OnceLock::new();
    let process = PROCESS.get_or_init(|| RandomState::new().build_hasher().finish());
    let outputs = not_empty(forward(cx, inputs)?)?;
    let count = outputs.len();
    let name = format!(
        "tfp.custom_gradient.{process:016x}.{}",
        NEXT.fetch_add(1, Ordering::Relaxed)
    );
    // One operation has the outputs and the inputs of the whole, and the attribute that names its gradient.
    register_gradient(&name, move |call| {
        let op = OpRecord {
            op_type: "custom_gradient".to_owned(),
            inputs: call.op.inputs[count..].to_vec(),
            outputs: call.op.outputs[..count].to_vec(),
            attrs: Attrs::Values(Vec::new(), Brought::default()),
            custom: None,
        };
        let inner = Backward {
            cx: call.cx,
            op: &op,
            grads: &call.grads[..count],
            needs: &call.needs[count..],
        };
        let mut grads = vec![None; count];
        grads.extend(backward(&inner)?);
        Ok(grads)
    });
    let mark = |scope: &Scope| scope.with_attr(GRADIENT_ATTR, &name);
    let marked = match cx {
        AnyContext::Scope(scope) => AnyContext::Scope(mark(scope)?),
        AnyContext::Func(func) => {
            let scope = mark(func.scope())?;
            AnyContext::Func(func.with_scope(|_| scope))
        }
        eager => eager.clone(),
    };
    let all: Vec<Operand<'_, AnyValue>> = outputs
        .iter()
        .chain(inputs)
        .map(IntoOperand::into_operand)
        .collect();
    let mut all = ops::identity_n(&marked, all)?;
    all.truncate(count);
    Ok(all)
}

fn on_tapes(
    cx: &AnyContext,
    inputs: &[AnyValue],
    forward: impl FnOnce(&AnyContext, &[AnyValue]) -> Result<Vec<AnyValue>>,
    backward: impl Fn(&Backward<'_>) -> Result<InputGradients> + Send + Sync + 'static,
) -> Result<Vec<AnyValue>> {
    let mut tapes = Vec::new();
    let mut at = cx;
    while let AnyContext::Tape(tape) = at {
        tapes.push(tape);
        at = tape.parent();
    }
    let computed = not_empty(forward(at, inputs)?)?;
    // New tensors, so that an input that is returned as it is does not stand for itself.
    let outputs: Vec<AnyValue> = computed
        .iter()
        .map(|value| ops::identity(at, value))
        .collect::<Result<_>>()?;
    let handles = |list: &[AnyValue]| -> Result<Vec<TensorHandle>> {
        list.iter().map(|value| value.handle().cloned()).collect()
    };
    let rule = shared(backward);
    for tape in tapes {
        let (from, to) = (handles(inputs)?, handles(&outputs)?);
        tape.record_custom("custom_gradient", from, &to, rule.clone())?;
    }
    Ok(outputs)
}
