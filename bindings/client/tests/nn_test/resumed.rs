//! Trainings that end at any moment and go on, and callbacks that are used twice.

use tfp::nn::layer::{Dense, Dropout, Layer, Sequential};
use tfp::nn::optimizer::{Adam, Nadam, Sgd};
use tfp::nn::training::{
    Batches, Callback, Control, EarlyStopping, Goal, Logs, Plan, SaveBest, Trainer,
};
use tfp::nn::{Activation, Dataset, Metric, Weights};
use tfp::{EagerContext, Error, Graph, Mode, Result, Tensor};

use crate::kept::scratch;
use crate::models::{BINARY, exclusive_or};

/// A model whose layers draw random numbers, and data in another order for each epoch.
fn dropping(place: &impl Mode) -> Result<Trainer<Adam>> {
    let layers: [&dyn Layer; 4] = [
        &Dense::new(16).activation(Activation::Tanh),
        &Dropout { rate: 0.4 },
        &Dropout { rate: 0.2 },
        &Dense::new(1),
    ];
    let model = Sequential::new(&Weights::new(place, 3), &[2], &layers)?;
    let plan = Plan::new(BINARY, Adam::default()).metric(Metric::BinaryAccuracy(0.0));
    Trainer::new(model, plan)
}

/// Notes the loss of each step; saves after one, and ends there as if the process had died.
struct Dying {
    losses: Vec<u64>,
    die: Option<(usize, std::path::PathBuf)>,
}

impl Callback<Adam> for Dying {
    fn step(&mut self, _: usize, loss: f64, trainer: &Trainer<Adam>) -> Result<()> {
        self.losses.push(loss.to_bits());
        match &self.die {
            Some((at, prefix)) if self.losses.len() == *at => {
                trainer.save(prefix)?;
                Err(Error::argument("dead"))
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self, _: usize, _: &Logs, _: &Trainer<Adam>) -> Result<Control> {
        Ok(Control::Continue)
    }
}

/// Trains for three epochs, dies after every step in turn, goes on, and compares.
fn resumed(
    make: &dyn Fn() -> Result<Trainer<Adam>>,
    data: &dyn Fn() -> Result<Data>,
) -> Result<()> {
    let run = |trainer: &mut Trainer<Adam>, die| -> Result<(Vec<u64>, Result<Vec<Logs>>)> {
        let mut dying = Dying {
            losses: Vec::new(),
            die,
        };
        let epochs = 3 - trainer.epoch() as usize;
        let logs = match data()? {
            Data::Batches(data) => trainer.fit(&data, epochs, None, &mut [&mut dying]),
            Data::Dataset(data) => trainer.fit(&data, epochs, None, &mut [&mut dying]),
        };
        Ok((dying.losses, logs))
    };
    let (expected, logs) = run(&mut make()?, None)?;
    let logs = logs?;
    assert_eq!(expected.len(), 12);
    let prefix = scratch("resumed").join("training");
    for at in 1..=12 {
        let (mut losses, ended) = run(&mut make()?, Some((at, prefix.clone())))?;
        assert!(ended.is_err() && losses.len() == at);
        let mut trainer = make()?;
        trainer.restore(&prefix)?;
        assert_eq!(trainer.step(), at as u64);
        let (rest, ended) = run(&mut trainer, None)?;
        losses.extend(rest);
        assert_eq!(losses, expected, "ended after step {at}");
        assert_eq!(ended?.last(), logs.last(), "ended after step {at}");
    }
    Ok(())
}

enum Data {
    Batches(Batches),
    Dataset(Dataset),
}

#[test]
fn a_training_that_dies_goes_on_to_the_bit() -> Result<()> {
    let batches = || Ok(Data::Batches(exclusive_or(16)?.shuffled(5)));
    resumed(&|| dropping(&Graph::new()?), &batches)?;
    resumed(&|| dropping(&EagerContext::new()?), &batches)?;
    let dataset = || {
        let cx = EagerContext::new()?;
        let mut x = Vec::new();
        let mut truth = Vec::new();
        for index in 0..64_u8 {
            let (a, b) = (f32::from(index & 1), f32::from(index >> 1 & 1));
            x.extend([a, b]);
            truth.push(if a == b { 0.0_f32 } else { 1.0 });
        }
        let rows = [
            Tensor::from_slice(&x, &[64, 2])?,
            Tensor::from_slice(&truth, &[64, 1])?,
        ];
        let rows = Dataset::rows(&cx, &rows)?;
        Ok(Data::Dataset(rows.shuffle(64, 7)?.batch(16, false)?))
    };
    resumed(&|| dropping(&EagerContext::new()?), &dataset)
}

/// Nadam's product of momenta is one number per variable, which each step multiplies.
fn multiplied(weights: impl Fn() -> Result<Weights>) -> Result<()> {
    let make = || {
        let model = Sequential::new(&weights()?, &[2], &[&Dense::new(4), &Dense::new(1)])?;
        Trainer::new(model, Plan::new(BINARY, Nadam::default()).rate(0.01))
    };
    let batch = exclusive_or(16)?.iter(0).next().expect("a batch")?;
    let prefix = scratch("multiplied").join("training");
    let mut first = make()?;
    for _ in 0..6 {
        first.train_on(&batch.x, &batch.truth)?;
    }
    first.save(&prefix)?;
    let mut second = make()?;
    second.restore(&prefix)?;
    for step in 7..=10 {
        let found = second.train_on(&batch.x, &batch.truth)?;
        let expected = first.train_on(&batch.x, &batch.truth)?;
        assert_eq!(found.to_bits(), expected.to_bits(), "step {step}");
    }
    Ok(())
}

#[test]
fn a_running_product_goes_on_to_the_bit() -> Result<()> {
    multiplied(|| Ok(Weights::new(&Graph::new()?, 5)))?;
    multiplied(|| Ok(Weights::new(&EagerContext::new()?, 5)))
}

#[test]
fn both_modes_drop_the_same() -> Result<()> {
    let losses = |mut trainer: Trainer<Adam>| -> Result<Vec<u32>> {
        let batch = exclusive_or(16)?.iter(0).next().expect("a batch")?;
        let step = |_| trainer.train_on(&batch.x, &batch.truth);
        let losses: Vec<f32> = (0..4).map(step).collect::<Result<_>>()?;
        assert!(
            losses.windows(2).all(|pair| pair[0] != pair[1]),
            "{losses:?}"
        );
        Ok(losses
            .iter()
            .map(|loss| (loss * 1e4).round() as u32)
            .collect())
    };
    let (graph, eager) = (
        losses(dropping(&Graph::new()?)?)?,
        losses(dropping(&EagerContext::new()?)?)?,
    );
    assert_eq!(graph, eager);
    Ok(())
}

/// A model of one weight, which is the value of every epoch.
fn measured() -> Result<Trainer<Sgd>> {
    let cx = EagerContext::new()?;
    let layer = Dense {
        use_bias: false,
        ..Dense::new(1)
    };
    let model = Sequential::new(&Weights::new(&cx, 3), &[1], &[&layer])?;
    Trainer::new(
        model,
        Plan::new(BINARY, Sgd::default()).metric(Metric::BinaryAccuracy(0.5)),
    )
}

/// Shows a callback the values of a measure, one per epoch, with weights of the epoch's number; returns
/// the number of epochs and the weight at the end.
fn show<R: tfp::nn::optimizer::Rule>(
    callback: &mut dyn Callback<R>,
    trainer: &Trainer<R>,
    logs: &[Logs],
) -> Result<(usize, f32)> {
    callback.start(trainer)?;
    let mut epochs = 0;
    for logs in logs {
        trainer.set_values(&[Tensor::from_array([[epochs as f32]])?])?;
        epochs += 1;
        if callback.end(epochs - 1, logs, trainer)? == Control::Stop {
            break;
        }
    }
    callback.finish(trainer)?;
    Ok((epochs, trainer.values()?[0].to_vec::<f32>()?[0]))
}

fn logs(name: &str, values: &[f64]) -> Vec<Logs> {
    let logs = values.iter().map(|&value| Logs::from([(name, value)]));
    logs.collect()
}

#[test]
fn the_best_epoch_is_that_of_keras() -> Result<()> {
    let trainer = measured()?;
    let new = |name: &str, patience| EarlyStopping::new(name, patience);
    // What keras.callbacks.EarlyStopping does with restore_best_weights, computed with Keras 3.
    let rising = [0.5, 0.6, 0.55, 0.58, 0.7, 0.1];
    let mut stopping = new("val_binary_accuracy", 2);
    let accuracy = logs("val_binary_accuracy", &rising);
    assert_eq!(show(&mut stopping, &trainer, &accuracy)?, (4, 1.0));
    // A second training knows nothing of the first.
    assert_eq!(show(&mut stopping, &trainer, &accuracy)?, (4, 1.0));
    assert_eq!(
        show(&mut new("val_binary_accuracy", 3), &trainer, &accuracy)?,
        (6, 4.0)
    );
    let loss = logs("loss", &rising);
    assert_eq!(show(&mut new("loss", 2), &trainer, &loss)?, (3, 0.0));
    let mut stopping = new("loss", 2).goal(Goal::Max);
    assert_eq!(show(&mut stopping, &trainer, &loss)?, (4, 1.0));
    let mut stopping = new("binary_accuracy", 2).min_delta(0.2);
    assert_eq!(
        show(&mut stopping, &trainer, &logs("binary_accuracy", &rising))?,
        (3, 0.0)
    );
    let mut stopping = new("loss", 1).start_from_epoch(2);
    assert_eq!(show(&mut stopping, &trainer, &loss)?, (4, 2.0));
    let mut stopping = new("loss", 2).restore_best(false);
    assert_eq!(show(&mut stopping, &trainer, &loss)?, (3, 2.0));
    let falling = logs("loss", &[0.9, 0.8, 0.7, 0.6, 0.5]);
    let mut stopping = new("loss", 2).baseline(0.1);
    assert_eq!(show(&mut stopping, &trainer, &falling)?, (5, 4.0));
    let stuck = logs("loss", &[0.9, 0.8, 0.85, 0.6, 0.5]);
    let mut stopping = new("loss", 2).baseline(0.1);
    assert_eq!(show(&mut stopping, &trainer, &stuck)?, (3, 1.0));
    // Keras takes a first NaN for the best, with which nothing compares.
    let nothing = logs("loss", &[f64::NAN, f64::NAN, f64::NAN]);
    assert_eq!(show(&mut new("loss", 2), &trainer, &nothing)?, (2, 0.0));
    // What nobody knows the goal of is refused, not minimized.
    let other = logs("speed", &rising);
    let error = show(&mut new("speed", 2), &trainer, &other).unwrap_err();
    assert!(error.to_string().contains("set the goal"), "{error}");
    Ok(())
}

#[test]
fn the_best_is_saved_whatever_better_means() -> Result<()> {
    let trainer = measured()?;
    let values = [0.5, 0.6, f64::NAN, 0.55, 0.7, 0.1];
    for (name, threshold, expected) in [
        ("binary_accuracy", None, vec![0, 1, 4]),
        ("binary_accuracy", Some(0.55), vec![1, 4]),
        ("loss", None, vec![0, 5]),
    ] {
        let saved = std::cell::RefCell::new(Vec::new());
        let mut best = SaveBest::new(name, |epoch, _: &Trainer<Sgd>| {
            saved.borrow_mut().push(epoch);
            Ok(())
        });
        if let Some(threshold) = threshold {
            best = best.threshold(threshold);
        }
        for _ in 0..2 {
            show(&mut best, &trainer, &logs(name, &values))?;
            assert_eq!(saved.take(), expected, "{name}");
        }
    }
    Ok(())
}
