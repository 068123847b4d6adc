//! LSTM layers of which TensorFlow's `BlockLSTMV2` computes all steps.

use std::sync::OnceLock;

use tfp_core::wire::Reader;
use tfp_core::{Context, DataType, Result, Tensor, kernels};

use super::Pass;
use crate::context::value::AnyValue;
use crate::nn::Activation;
use crate::nn::functional::{Lstm, RnnOptions};
use crate::ops;

const OP: &str = "BlockLSTMV2";

/// Whether the op computes a layer: it has the usual functions, no mask and one gradient, not a second.
pub(super) fn computes(
    pass: &Pass<'_>,
    [activation, gate]: [Activation; 2],
    x: &AnyValue,
    mask: Option<&AnyValue>,
) -> bool {
    pass.is_first_order()
        && mask.is_none()
        && [activation, gate] == [Activation::Tanh, Activation::Sigmoid]
        && x.dtype() == DataType::FLOAT
        && is_everywhere()
}

/// Whether each device that multiplies matrices has the op. A device that was loaded may not.
fn is_everywhere() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let (Ok(wanted), Ok(found)) = (devices("MatMul"), devices(OP)) else {
            return false;
        };
        wanted.iter().all(|device| found.contains(device))
    })
}

/// The kinds of devices with a kernel of an op, without those of compilers.
fn devices(op: &str) -> Result<Vec<String>> {
    let list = kernels(Some(op))?;
    let mut devices = Vec::new();
    for field in Reader::new("KernelList", &list) {
        let (1, kernel) = field? else { continue };
        for field in Reader::new("KernelDef", kernel.bytes()?) {
            let (2, device) = field? else { continue };
            devices.push(device.text()?.to_owned());
        }
    }
    devices.retain(|device| !device.starts_with("XLA_"));
    Ok(devices)
}

/// Runs over (batch, steps, inputs), from given states or from zeros, as
/// [`run`](crate::nn::functional::run) does. The number of steps may be open.
///
/// Returns the output and the last states.
///
/// # Errors
/// What TensorFlow says.
pub(super) fn run(
    pass: &Pass<'_>,
    cell: &Lstm<AnyValue>,
    x: &AnyValue,
    initial: Option<&[AnyValue]>,
    options: RnnOptions,
) -> Result<(AnyValue, Vec<AnyValue>)> {
    let cx = pass.context();
    let narrow = ops::ShapeOptions::default();
    // The op has the steps first.
    let mut x = ops::transpose(cx, x, [1, 0, 2])?;
    if options.go_backwards {
        x = ops::reverse_v2(cx, x, [0])?;
    }
    let width = ops::strided_slice(
        cx,
        ops::shape(cx, &cell.recurrent, narrow)?,
        [0],
        [1],
        [1],
        ops::StridedSliceOptions::default(),
    )?;
    let filled = |sizes: AnyValue| ops::fill(cx, sizes, 0.0_f32);
    let unseen = filled(width.clone())?;
    let (hidden, carry) = match initial {
        Some([hidden, carry]) => (hidden.clone(), carry.clone()),
        _ => {
            let sizes = ops::shape(cx, &x, narrow)?;
            let batch = ops::slice(cx, sizes, [1], [1])?;
            let zeros = filled(ops::concat_v2(cx, [&batch, &width], 0)?)?;
            (zeros.clone(), zeros)
        }
    };
    let bias = match &cell.bias {
        Some(bias) => bias.clone(),
        None => filled(ops::mul(cx, &width, 4)?)?,
    };
    let sizes = ops::shape(
        cx,
        &x,
        ops::ShapeOptions {
            out_type: Some(DataType::INT64),
        },
    )?;
    let scalar = cx.constant(&Tensor::from_slice::<i32>(&[], &[0])?)?;
    let steps = ops::reshape(cx, ops::slice(cx, sizes, [0], [1])?, scalar)?;
    let weights = ops::concat_v2(cx, [&cell.kernel, &cell.recurrent], 0)?;
    let block = ops::BlockLSTMV2Options {
        // The states are not limited.
        cell_clip: Some(0.0),
        ..Default::default()
    };
    let found = ops::block_lstmv2(
        cx, steps, x, carry, hidden, weights, &unseen, &unseen, &unseen, bias, block,
    )?;
    let last = |values: &AnyValue| {
        let options = ops::StridedSliceOptions {
            shrink_axis_mask: Some(1),
            ..Default::default()
        };
        ops::strided_slice(cx, values, [-1], [0], [1], options)
    };
    let states = vec![last(&found.h)?, last(&found.cs)?];
    let output = match options.return_sequences {
        true => ops::transpose(cx, found.h, [1, 0, 2])?,
        false => states[0].clone(),
    };
    Ok((output, states))
}

#[cfg(test)]
mod tests {
    use tfp_core::{EagerContext, Graph, Shape};

    use super::*;
    use crate::context::any::{AnyContext, Mode};
    use crate::context::tape::Tape;
    use crate::nn::Weights;
    use crate::nn::layer::{Layer, Recurrent, RnnKind};

    fn sum(cx: &AnyContext, x: &AnyValue) -> Result<AnyValue> {
        let flat = ops::reshape(cx, ops::square(cx, x)?, [-1])?;
        ops::sum(cx, flat, [0], ops::SumOptions::default())
    }

    /// The outputs of a layer and the gradients of its weights and its input.
    fn computed(layer: &Recurrent, is_first_order: bool) -> Result<Vec<Vec<f32>>> {
        let eager = EagerContext::new()?;
        let weights = Weights::new(&eager, 3);
        let built = layer.build_many(&weights, &[&[4, 3], &[5], &[5]])?;
        let tape = Tape::new(&eager);
        let numbers = |count: i64, shape: &[i64]| -> Result<AnyValue> {
            let list: Vec<f32> = (0..count)
                .map(|i| (i * 7 % 11) as f32 / 5.0 - 1.0)
                .collect();
            let handle = eager.handle(&Tensor::from_slice(&list, shape)?)?;
            tape.watch(&handle)?;
            Ok(handle.into())
        };
        let x = numbers(24, &[2, 4, 3])?;
        let inputs = [x.clone(), numbers(10, &[2, 5])?, numbers(10, &[2, 5])?];
        let cx = tape.any();
        let pass = match is_first_order {
            true => Pass::training(&cx).first_order(),
            false => Pass::training(&cx),
        };
        let outputs = (built.forward)(&pass, &inputs)?;
        let mut loss = sum(&cx, &outputs[0])?;
        for output in &outputs[1..] {
            loss = ops::add_v2(&cx, loss, sum(&cx, output)?)?;
        }
        let variables = weights.trainables();
        let by = variables.iter().map(|one| one.handle().handle());
        let by = by.chain(inputs.iter().map(AnyValue::handle));
        let by = by.collect::<Result<Vec<_>>>()?;
        let found = tape.gradients(&[loss.handle()?], &by)?;
        let found = found.into_iter().flatten().map(AnyValue::from);
        let all = outputs.into_iter().chain(found);
        all.map(|value| value.handle()?.to_tensor()?.to_vec::<f32>())
            .collect()
    }

    #[test]
    fn steps_are_those_of_single_ops() -> Result<()> {
        for variant in 0..8 {
            let mut layer = Recurrent::new(RnnKind::Lstm, 5).with_state();
            layer.options.return_sequences = variant & 1 != 0;
            layer.options.go_backwards = variant & 2 != 0;
            layer.use_bias = variant & 4 != 0;
            let (one, many) = (computed(&layer, true)?, computed(&layer, false)?);
            assert_eq!(one.len(), many.len());
            // Outputs, two states, two or three weights, three inputs.
            assert_eq!(one.len(), 3 + 2 + usize::from(layer.use_bias) + 3);
            for (one, many) in one.iter().zip(&many) {
                assert_eq!(one.len(), many.len());
                for (a, b) in one.iter().zip(many) {
                    assert!((a - b).abs() < 1e-5, "{layer:?}: {a} and {b}");
                }
            }
        }
        Ok(())
    }

    /// How many ops a layer in a graph has of one type.
    fn count(layer: &Recurrent, is_first_order: bool, steps: i64) -> Result<usize> {
        let graph = Graph::new()?;
        let cx = graph.any();
        let weights = Weights::new(&graph, 3);
        let shape = Shape::new(&[-1, steps, 3]);
        let x = graph.scope().placeholder("x", DataType::FLOAT, &shape)?;
        let built = layer.build(&weights, &[steps, 3])?;
        let pass = match is_first_order {
            true => Pass::training(&cx).first_order(),
            false => Pass::training(&cx),
        };
        (built.forward)(&pass, &x.into())?;
        Ok(graph.operations().filter(|op| op.op_type() == OP).count())
    }

    #[test]
    fn one_op_is_used_where_it_computes_the_same() -> Result<()> {
        let plain = Recurrent::new(RnnKind::Lstm, 5);
        assert_eq!(count(&plain, true, 4)?, 1);
        assert_eq!(count(&plain, false, 4)?, 0);
        let hard = Recurrent {
            gate: Activation::HardSigmoid,
            ..plain
        };
        assert_eq!(count(&hard, true, 4)?, 0);
        // The number of steps may be open.
        assert_eq!(count(&plain, true, -1)?, 1);
        Ok(())
    }
}
