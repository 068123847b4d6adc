//! Learns the exclusive or, by hand: eager execution, a tape, and an optimizer's formula.
//! Prints the table that it learned.

use tfp::nn::{Activation, Initializer, Loss, functional as f};
use tfp::{DataType, EagerContext, Result, Tape, TensorHandle, Variable, ops};

/// What the network's first layer is wide.
const UNITS: i64 = 8;

fn predict(
    cx: &impl tfp::Mode<Value = TensorHandle>,
    weights: &[Variable],
    x: &TensorHandle,
) -> Result<TensorHandle> {
    let read = |index: usize| weights[index].read(cx);
    let hidden = f::dense(cx, x, &read(0)?, Some(&read(1)?))?;
    let hidden = Activation::Tanh.apply(cx, &hidden)?;
    f::dense(cx, &hidden, &read(2)?, Some(&read(3)?))
}

fn main() -> Result<()> {
    let cx = EagerContext::new()?;
    let first =
        |shape: &[i64], seed| Initializer::GLOROT_UNIFORM.value(&cx, shape, DataType::FLOAT, seed);
    let zeros = |shape: &[i64]| Initializer::Zeros.value(&cx, shape, DataType::FLOAT, 0);
    let weights = [
        Variable::new(&cx, "hidden/kernel", first(&[2, UNITS], 1)?)?,
        Variable::new(&cx, "hidden/bias", zeros(&[UNITS])?)?,
        Variable::new(&cx, "output/kernel", first(&[UNITS, 1], 2)?)?,
        Variable::new(&cx, "output/bias", zeros(&[1])?)?,
    ];
    let loss = Loss::BinaryCrossentropy {
        from_logits: true,
        label_smoothing: 0.0,
    };

    let inputs = [[0.0_f32, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]];
    let x = ops::identity(&cx, inputs)?;
    let truth = ops::identity(&cx, [[0.0_f32], [1.0], [1.0], [0.0]])?;
    for _ in 0..400 {
        let tape = Tape::new(&cx);
        let y = predict(&tape, &weights, &x)?;
        let error = loss.mean(&tape, &truth, &y, None)?;
        for weight in &weights {
            let gradient = tape.gradient(&error, weight.handle().handle()?)?;
            weight.assign_sub(&cx, ops::mul(&cx, gradient, 0.5)?)?;
        }
    }

    let found = ops::sigmoid(&cx, predict(&cx, &weights, &x)?)?.to_tensor()?;
    for ([a, b], y) in inputs.iter().zip(found.as_slice::<f32>()?) {
        println!("{a} xor {b} = {}", y.round());
    }
    Ok(())
}
