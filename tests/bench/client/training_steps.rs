//! The Rust side of `training_vs_python.py`: makes training steps when it is asked to.
//!
//! Reads lines of a folder, a mode (`graph`, `eager`) and a number of steps from standard input. A folder
//! holds a model (`model.keras`) and a batch (`batch.npz` with `x` and `truth`). Answers each line with the
//! nanoseconds that the steps took together, those that reading and building the model took, and the last
//! loss.

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::time::Instant;

use tfp::nn::layer::Model;
use tfp::nn::optimizer::Adam;
use tfp::nn::training::{Plan, Trainer};
use tfp::nn::{Loss, Weights};
use tfp::weights::TensorFile;
use tfp::{EagerContext, Graph, Mode, Tensor};

struct Course {
    trainer: Trainer<Adam>,
    x: Tensor,
    truth: Tensor,
    built: u128,
}

fn course(folder: &Path, mode: &str) -> Result<Course, Box<dyn Error>> {
    let place = match mode {
        "graph" => Graph::new()?.any(),
        "eager" => EagerContext::new()?.any(),
        other => return Err(format!("no mode {other:?}").into()),
    };
    let batch = TensorFile::open(folder.join("batch.npz"))?;
    let begun = Instant::now();
    let model = Model::from_keras(&Weights::new(&place, 1), folder.join("model.keras"))?;
    let loss = Loss::SparseCategoricalCrossentropy { from_logits: true };
    let trainer = Trainer::new(model, Plan::new(loss, Adam::default()))?;
    Ok(Course {
        trainer,
        built: begun.elapsed().as_nanos(),
        x: batch.read("x")?,
        truth: batch.read("truth")?,
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut courses = HashMap::new();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let [folder, mode, steps] = line.split('\t').collect::<Vec<_>>()[..] else {
            return Err(format!("{line:?}: expected a folder, a mode and a number").into());
        };
        let key = (folder.to_owned(), mode.to_owned());
        if !courses.contains_key(&key) {
            // One model at a time, as Python has.
            courses.clear();
            courses.insert(key.clone(), course(Path::new(folder), mode)?);
        }
        let Some(Course {
            trainer,
            x,
            truth,
            built,
        }) = courses.get_mut(&key)
        else {
            continue;
        };
        let steps: u32 = steps.parse()?;
        let mut loss = 0.0;
        let begun = Instant::now();
        for _ in 0..steps {
            loss = trainer.train_on(&*x, &*truth)?;
        }
        println!("{} {built} {loss}", begun.elapsed().as_nanos());
        io::stdout().flush()?;
    }
    Ok(())
}
