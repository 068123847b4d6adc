//! Recurrences of which one op computes all steps.

use tfp_core::{Error, Result};

use crate::gradient::rule::{Backward, InputGradients, Rules};

/// Where the cell's states and the hidden ones are among the outputs.
const STATES: [usize; 2] = [1, 6];

/// The gradient by an op of TensorFlow. The gates of the second version are in another order, so it
/// has an op of its own; Python calls the first one for both, and is wrong.
fn block_lstm_grad(c: &Backward<'_>, name: &str) -> Result<InputGradients> {
    let is_inner = |index: &usize| !STATES.contains(index);
    let asked = (0..c.op.outputs.len()).filter(is_inner);
    if asked.into_iter().any(|index| c.raw_grad(index).is_some()) {
        let op = c.op.op_type();
        return Err(Error::argument(format!(
            "{op} has gradients of `cs` and `h` only, and a gate is used"
        )));
    }
    let [cells, hidden] = STATES.map(|index| c.grad(index));
    let (cells, hidden) = (cells?, hidden?);
    let mut inputs: Vec<_> = c.op.inputs.iter().chain(&c.op.outputs).collect();
    inputs.extend([&cells, &hidden]);
    let found = c.run(name, &inputs, &["use_peephole"])?;
    // The first input is the number of steps.
    let found = found.into_iter().map(|value| Some(value.into()));
    Ok(std::iter::once(None).chain(found).collect())
}

pub(super) static RULES: Rules = &[
    ("BlockLSTM", |c| block_lstm_grad(c, "BlockLSTMGrad")),
    ("BlockLSTMV2", |c| block_lstm_grad(c, "BlockLSTMGradV2")),
];
