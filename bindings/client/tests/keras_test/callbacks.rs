//! Trainings with callbacks, whose files Python compares with those of Keras.

use std::fs;
use std::path::Path;

use tfp::nn::layer::{Dense, Sequential};
use tfp::nn::optimizer::Sgd;
use tfp::nn::training::{
    BackupAndRestore, Batches, Callback, Control, CsvLogger, LearningRateScheduler, Logs,
    ModelCheckpoint, Plan, ReduceLrOnPlateau, TensorBoard, TerminateOnNan, Trainer,
};
use tfp::nn::{Activation, Loss, Metric, Weights};
use tfp::{Error, Graph, Tensor};

use crate::{Result, write};

/// Batches in order, and those of the validation.
fn data(folder: &Path) -> Result<(Batches, Batches)> {
    let wave = |count: usize, by: f32| (0..count).map(|at| (at as f32 * by).sin()).collect();
    let x = Tensor::from_vec(wave(30, 1.7), &[10, 3])?;
    let y = Tensor::from_vec(wave(10, 0.6), &[10, 1])?;
    let more = Tensor::from_vec(wave(12, 2.3), &[4, 3])?;
    let truth = Tensor::from_vec(wave(4, 0.8), &[4, 1])?;
    for (name, tensor) in [("x", &x), ("y", &y), ("val_x", &more), ("val_y", &truth)] {
        write(&folder.join(name), tensor)?;
    }
    Ok((Batches::new(x, y, 4)?, Batches::new(more, truth, 4)?))
}

fn trainer(rate: f32) -> Result<Trainer<Sgd>> {
    let layers: [&dyn tfp::nn::layer::Layer; 2] =
        [&Dense::new(4).activation(Activation::Tanh), &Dense::new(1)];
    let model = Sequential::new(&Weights::new(&Graph::new()?, 5), &[3], &layers)?;
    let plan = Plan::new(Loss::MeanSquaredError, Sgd::default())
        .metric(Metric::Mean(Loss::MeanAbsoluteError))
        .rate(rate);
    Ok(Trainer::new(model, plan)?)
}

/// Notes the rate after each epoch.
#[derive(Default)]
struct Rates(Vec<f32>);

impl Callback<Sgd> for Rates {
    fn end(&mut self, _: usize, _: &Logs, trainer: &Trainer<Sgd>) -> tfp::Result<Control> {
        self.0.push(trainer.rate());
        Ok(Control::Continue)
    }
}

/// Ends a training as a dying process does.
struct Dying(usize);

impl Callback<Sgd> for Dying {
    fn step(&mut self, _: usize, _: f64, trainer: &Trainer<Sgd>) -> tfp::Result<()> {
        match trainer.step() == self.0 as u64 {
            true => Err(Error::argument("dead")),
            false => Ok(()),
        }
    }

    fn end(&mut self, _: usize, _: &Logs, _: &Trainer<Sgd>) -> tfp::Result<Control> {
        Ok(Control::Continue)
    }
}

pub fn run(folder: &Path) -> Result<()> {
    let (train, validation) = data(folder)?;
    trainer(0.5)?.save_keras(folder.join("first.keras"))?;
    let mut plateau = ReduceLrOnPlateau::new("val_loss")
        .factor(0.3)
        .patience(1)
        .cooldown(1)
        .min_delta(0.2)
        .min_rate(0.02);
    let mut csv = CsvLogger::new(folder.join("rust/log.csv"));
    let mut board = TensorBoard::new(folder.join("rust/board"));
    let pattern = folder.join("rust/{epoch:02d}-{val_loss:.1f}.keras");
    let pattern = pattern.display().to_string();
    let save = |path: &Path, trainer: &Trainer<Sgd>| trainer.save_keras(path);
    let mut best = ModelCheckpoint::new(&pattern, save).save_best_only("val_loss");
    let mut rates = Rates::default();
    // The second training knows nothing of the first one.
    for _ in 0..2 {
        rates.0.clear();
        let mut all: [&mut dyn Callback<Sgd>; 5] =
            [&mut plateau, &mut csv, &mut board, &mut best, &mut rates];
        trainer(0.5)?.fit(&train, 12, Some(&validation), &mut all)?;
    }
    let shown: Vec<String> = rates.0.iter().map(f32::to_string).collect();
    fs::write(folder.join("rates"), shown.join(" "))?;
    // Rows of a second training, below.
    let mut csv = CsvLogger::new(folder.join("rust/log.csv"))
        .append()
        .separator(",");
    trainer(0.5)?.fit(&train, 2, Some(&validation), &mut [&mut csv])?;

    // A rate by epoch: each is that of its own steps.
    let mut csv = CsvLogger::new(folder.join("rust/scheduled.csv"));
    let mut scheduler = LearningRateScheduler::new(|epoch, rate| match epoch {
        0 => 0.1,
        _ => rate * 0.5,
    });
    trainer(0.5)?.fit(&train, 4, None, &mut [&mut scheduler, &mut csv])?;

    // A loss that is no number ends the training in its epoch.
    let mut wild = trainer(1e30)?;
    let logs = wild.fit(&train, 5, None, &mut [&mut TerminateOnNan])?;
    assert!(logs.len() < 5 && wild.step() < 6, "{} steps", wild.step());

    // What died goes on: the same values to the bit, after as many epochs.
    for at in [3, 7, 9] {
        let backup = folder.join(format!("backup{at}"));
        let mut back = BackupAndRestore::new(&backup).every(2);
        let died = trainer(0.1)?.fit(&train, 4, None, &mut [&mut back, &mut Dying(at)]);
        assert!(died.is_err());
        let mut again = trainer(0.1)?;
        again.fit(&train, 4, None, &mut [&mut back])?;
        let mut whole = trainer(0.1)?;
        whole.fit(&train, 4, None, &mut [])?;
        assert_eq!(again.step(), whole.step());
        for (found, expected) in again.values()?.iter().zip(&whole.values()?) {
            assert_eq!(found.as_bytes()?, expected.as_bytes()?);
        }
        assert_eq!(fs::read_dir(&backup)?.count(), 0, "the save is deleted");
    }
    Ok(())
}
