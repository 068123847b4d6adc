//! Fine-tunes a model that Keras exported, and writes it back for Keras:
//! `fine_tune MODEL OUT`. The model has a signature `serving_default` from `[batch, 2]` to `[batch, 1]`.
//!
//! The new task is `y = 2 a - b + 1`; prints the loss before and after.

use std::process::ExitCode;

use tfp::ops::{mean, square, sub};
use tfp::{EagerContext, Error, Mode, Model, ModelFunction, Result, Tape, Tensor, TensorHandle};

/// Returns the mean square of what the model is wrong by.
fn loss<C: Mode>(
    ctx: &C,
    model: &ModelFunction,
    points: &C::Value,
    targets: &C::Value,
) -> Result<C::Value> {
    let results = model.call(ctx, std::slice::from_ref(points))?;
    let predicted = results
        .first()
        .ok_or_else(|| Error::argument("the signature has no result"))?;
    let error = square(ctx, sub(ctx, predicted, targets)?)?;
    mean(ctx, error, [0, 1], Default::default())
}

fn fine_tune(folder: &str, out: &str) -> Result<()> {
    let ctx = EagerContext::new()?;
    let model = Model::load(&ctx, folder, &["serve"])?;
    let signature = model.signature("serving_default")?;
    for spec in signature.inputs().iter().chain(signature.outputs()) {
        println!("{}: {} {}", spec.name, spec.dtype, spec.shape);
    }

    // A grid of points from -1 to 1, and what the model shall learn about them.
    let grid = |i: usize| (i as f32 - 7.5) / 7.5;
    let points: Vec<[f32; 2]> = (0..256).map(|i| [grid(i / 16), grid(i % 16)]).collect();
    let targets: Vec<f32> = points.iter().map(|[a, b]| 2.0 * a - b + 1.0).collect();
    let points = ctx.handle(&Tensor::from_vec(points.concat(), &[256, 2])?)?;
    let targets = ctx.handle(&Tensor::from_vec(targets, &[256, 1])?)?;

    let trained: Vec<_> = model
        .variables()
        .map(|(_, variable)| variable)
        .filter(|variable| variable.is_trainable())
        .collect();
    let handles: Vec<TensorHandle> = trained
        .iter()
        .map(|variable| variable.handle_in(&ctx))
        .collect::<Result<_>>()?;
    let handles: Vec<&TensorHandle> = handles.iter().collect();
    let first = loss(&ctx, &signature, &points, &targets)?;
    for _ in 0..200 {
        let tape = Tape::new(&ctx);
        let loss = loss(&tape, &signature, &points, &targets)?;
        // A variable that the signature does not use has no gradient.
        for (variable, gradient) in trained.iter().zip(tape.gradients(&[&loss], &handles)?) {
            if let Some(gradient) = gradient {
                let step = tfp::ops::mul(&ctx, &gradient, 0.1_f32)?;
                variable.assign_sub(&ctx, &step)?;
            }
        }
    }
    let last = loss(&ctx, &signature, &points, &targets)?;
    let number = |loss: &TensorHandle| loss.to_tensor()?.to_scalar::<f32>();
    println!("loss {:.4} -> {:.4}", number(&first)?, number(&last)?);
    model.save(out)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, out] = &arguments[..] else {
        eprintln!("usage: fine_tune MODEL OUT");
        return ExitCode::FAILURE;
    };
    match fine_tune(folder, out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fine_tune: {error}");
            ExitCode::FAILURE
        }
    }
}
