//! The Rust side of `training_vs_python.py`: makes training steps when it is asked to.
//!
//! Reads lines of a model (`mlp`, `cnn`), a mode (`graph`, `eager`) and a number of steps from standard
//! input, and answers each with the nanoseconds that the steps took together and the last loss.

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, BufRead, Write};
use std::time::Instant;

use tfp::nn::functional::Padding;
use tfp::nn::layer::{Conv, Dense, Flatten, Layer, Pooling, Sequential};
use tfp::nn::optimizer::Adam;
use tfp::nn::training::{Plan, Trainer};
use tfp::nn::{Activation, Loss, Weights};
use tfp::{AnyContext, EagerContext, Graph, Mode, Tensor};

/// Samples per step.
const BATCH: i64 = 32;

fn trainer(model: &str, mode: &str) -> Result<(Trainer<Adam>, Tensor, Tensor), Box<dyn Error>> {
    let place: AnyContext = match mode {
        "graph" => Graph::new()?.any(),
        "eager" => EagerContext::new()?.any(),
        other => return Err(format!("no mode {other:?}").into()),
    };
    let dense = Dense::new(64).activation(Activation::Relu);
    let conv = |filters| {
        Conv::new(filters, 3)
            .padding(Padding::Same)
            .activation(Activation::Relu)
    };
    let (shape, layers): (&[i64], Vec<Box<dyn Layer>>) = match model {
        "mlp" => (
            &[64],
            vec![Box::new(dense), Box::new(dense), Box::new(Dense::new(10))],
        ),
        "cnn" => (
            &[28, 28, 1],
            vec![
                Box::new(conv(16)),
                Box::new(Pooling::max(2)),
                Box::new(conv(32)),
                Box::new(Pooling::max(2)),
                Box::new(Flatten),
                Box::new(Dense::new(10)),
            ],
        ),
        other => return Err(format!("no model {other:?}").into()),
    };
    let layers: Vec<&dyn Layer> = layers.iter().map(|layer| layer as &dyn Layer).collect();
    let model = Sequential::new(&Weights::new(&place, 1), shape, &layers)?;
    let loss = Loss::SparseCategoricalCrossentropy { from_logits: true };
    let trainer = Trainer::new(model, Plan::new(loss, Adam::default()))?;

    let mut dims = vec![BATCH];
    dims.extend(shape);
    let count: i64 = dims.iter().product();
    let x: Vec<f32> = (0..count).map(|i| (i * 37 % 101) as f32 / 101.0).collect();
    let truth: Vec<i64> = (0..BATCH).map(|i| i % 10).collect();
    let x = Tensor::from_vec(x, &dims)?;
    Ok((trainer, x, Tensor::from_vec(truth, &[BATCH])?))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut trainers = HashMap::new();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let [model, mode, steps] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("{line:?}: expected a model, a mode and a number").into());
        };
        let key = (model.to_owned(), mode.to_owned());
        if !trainers.contains_key(&key) {
            trainers.insert(key.clone(), trainer(model, mode)?);
        }
        let Some((trainer, x, truth)) = trainers.get_mut(&key) else {
            continue;
        };
        let steps: u32 = steps.parse()?;
        let mut loss = 0.0;
        let begun = Instant::now();
        for _ in 0..steps {
            loss = trainer.train_on(&*x, &*truth)?;
        }
        println!("{} {loss}", begun.elapsed().as_nanos());
        io::stdout().flush()?;
    }
    Ok(())
}
