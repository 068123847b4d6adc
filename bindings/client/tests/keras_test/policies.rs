//! Models under dtype policies: those of a folder, and one that is made and trained here.

use std::fs;
use std::path::Path;

use tfp::nn::layer::{
    BatchNorm, Bidirectional, Dense, Flatten, Layer, LayerNorm, Recurrent, RnnKind, Sequential,
    TimeDistributed,
};
use tfp::nn::optimizer::{Adam, LossScale};
use tfp::nn::training::{Plan, Trainer};
use tfp::nn::{Loss, Model, Policy, Weights};
use tfp::{DataType, EagerContext, Graph, Mode, Tensor, ops};

use crate::{Result, names, outputs, with, write};

/// Each `NAME.keras` is given `NAME.x0`, (3, 6, 4), and written again; `NAME.y0` is what it computes.
/// `scaled.keras` and `scaled_graph.keras` are made here.
pub fn run(folder: &Path) -> Result<()> {
    let eager = EagerContext::new()?;
    for name in names(folder, ".keras")? {
        let model = Model::from_keras(&Weights::new(&eager, 1), with(&name, ".keras"))?;
        let numbers = fs::read(with(&name, ".x0"))?;
        let numbers = numbers.chunks_exact(4);
        let numbers = numbers.map(|four| f32::from_le_bytes(four.try_into().unwrap_or_default()));
        let x = Tensor::from_vec(numbers.collect(), &[3, 6, 4])?;
        let y = outputs(&eager, &model, &[x])?.remove(0);
        let y = ops::cast(&eager, &y, DataType::FLOAT, ops::CastOptions::default())?;
        write(&with(&name, ".y0"), &y.to_tensor()?)?;
        model.save_keras(with(&name, ".again.keras"))?;
        model.save_weights(with(&name, ".weights.h5"))?;
        model.load_weights(with(&name, ".weights.h5"))?;
    }
    train(folder, "scaled", &eager)?;
    train(folder, "scaled_graph", &Graph::new()?)
}

/// Ten steps, of which the first ones overflow, and the loss of another one.
fn train(folder: &Path, name: &str, place: &impl Mode) -> Result<()> {
    let weights = Weights::new(place, 5).policy(Policy::MixedFloat16);
    let layers: [&dyn Layer; 6] = [
        &Bidirectional {
            layer: Recurrent::new(RnnKind::Lstm, 3).sequences(),
            merge: Default::default(),
        },
        &BatchNorm::default(),
        &TimeDistributed {
            layer: Dense::new(4),
        },
        &LayerNorm::default(),
        &Flatten,
        &Dense::new(2).policy(Policy::Float32),
    ];
    let model = Sequential::new(&weights, &[6, 4], &layers)?;
    let plan = Plan::new(Loss::MeanSquaredError, Adam::default()).rate(0.01);
    let mut trainer = Trainer::new(
        model,
        plan.loss_scale(LossScale::Dynamic {
            initial: 2.0_f32.powi(16),
            growth_steps: 2,
        }),
    )?;
    let x: Vec<f32> = (0..72).map(|at| (at as f32 * 0.7).sin()).collect();
    let x = Tensor::from_vec(x, &[3, 6, 4])?;
    let truth = Tensor::from_array([[0.5_f32, -0.25], [1.0, 0.0], [0.25, 2.0]])?;
    for _ in 0..10 {
        trainer.train_on(&x, &truth)?;
    }
    write(&folder.join(format!("{name}.x0")), &x)?;
    write(&folder.join(format!("{name}.truth0")), &truth)?;
    write(&folder.join(format!("{name}.y0")), &trainer.predict(&x)?)?;
    trainer.save_keras(folder.join(format!("{name}.keras")))?;
    let scale = trainer.loss_scale().unwrap_or_default();
    let (steps, skipped) = (trainer.step(), trainer.skipped());
    let loss = trainer.train_on(&x, &truth)?;
    let text = format!("[{scale}, {}, {loss}]", steps - skipped);
    Ok(fs::write(folder.join(format!("{name}.numbers")), text)?)
}
