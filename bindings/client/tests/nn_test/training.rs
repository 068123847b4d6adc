//! Training in both modes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tfp::nn::layer::{
    BatchNorm, Dense, Dropout, Embedding, Flatten, Layer, Pass, Recurrent, RnnKind, Sequential,
};
use tfp::nn::optimizer::{Adam, Clip, Sgd};
use tfp::nn::training::{Batches, EarlyStopping, Plan, Progress, SaveBest, Trainer};
use tfp::nn::{Constraint, Loss, LossFunction, Metric, Weights};
use tfp::{
    AnyContext, AnyValue, Context, DataType, EagerContext, Graph, Mode, Result, Tensor, ops,
};

use crate::goldens::{Goldens, near};
use crate::models::{MODELS, SPARSE, exclusive_or, small, with_model};

/// Ten steps from Keras' weights, compared with those of Keras.
fn ten_steps(goldens: &Goldens, name: &str, place: &impl Mode, traced: bool) -> Result<()> {
    let case = format!("training/{name}");
    with_model(name, |input, shape, layers| {
        let weights = Weights::new(place, 1);
        let model = Sequential::new(&weights, shape, layers)?;
        assert_eq!(model.output_shape().last(), Some(&4), "{name}");
        let mut rule = Adam::default();
        if name == "sequences" {
            rule.epsilon = 1e-5;
        }
        let mut plan = Plan::new(SPARSE, rule)
            .rate(0.01)
            .metric(Metric::SparseCategoricalAccuracy);
        plan.optimizer = plan.optimizer.clip(Clip::Norm(1.0));
        plan.input = input;
        let mut trainer = Trainer::new(model, plan)?;
        if traced {
            trainer = trainer.traced();
        }
        let variables = weights.variables();
        let before = (0..variables.len())
            .map(|index| goldens.get(&format!("{case}/before{index}"))?.to_tensor())
            .collect::<Result<Vec<_>>>()?;
        trainer.set_values(&before)?;

        let x = goldens.get_as(&format!("{case}/x"), input)?.to_tensor()?;
        let truth = goldens
            .get_as(&format!("{case}/truth"), DataType::INT64)?
            .to_tensor()?;
        let expected = goldens.get(&format!("{case}/losses"))?.to_tensor()?;
        for (step, expected) in expected.as_slice::<f32>()?.iter().enumerate() {
            let loss = trainer.train_on(&x, &truth)?;
            assert!(
                (loss - expected).abs() <= 1e-5,
                "{name}: the loss of step {step} is {loss}, Keras has {expected}"
            );
        }
        for (index, (variable, value)) in variables.iter().zip(trainer.values()?).enumerate() {
            let value = goldens.eager.handle(&value)?;
            goldens.check(&format!("{case}/after{index}"), &value, 5e-5)?;
            assert!(variable.name().contains('/'), "{}", variable.name());
        }
        let y = goldens.eager.handle(&trainer.predict(&x)?)?;
        goldens.check(&format!("{case}/y"), &y, 5e-5)?;
        // The mean of a masked loss is that of a batch.
        let batch = if ["masked", "pooled", "sequences"].contains(&name) {
            12
        } else {
            5
        };
        let logs = trainer.evaluate(&Batches::new(x, truth, batch)?)?;
        let expected = goldens.get(&format!("{case}/test"))?.to_tensor()?;
        for (name, expected) in ["loss", "sparse_categorical_accuracy"]
            .iter()
            .zip(expected.as_slice::<f32>()?)
        {
            let found = logs.get(name).unwrap_or(f64::NAN);
            assert!(
                (found - f64::from(*expected)).abs() < 1e-5,
                "{name}: {logs}"
            );
        }
        Ok(())
    })
}

#[test]
fn steps_in_a_graph_are_those_of_keras() -> Result<()> {
    let goldens = Goldens::open()?;
    for name in MODELS {
        ten_steps(&goldens, name, &Graph::new()?, false)?;
    }
    Ok(())
}

#[test]
fn steps_in_eager_mode_are_those_of_keras() -> Result<()> {
    let goldens = Goldens::open()?;
    for name in MODELS {
        ten_steps(&goldens, name, &goldens.eager, false)?;
    }
    Ok(())
}

#[test]
fn steps_that_are_traced_are_those_of_keras() -> Result<()> {
    let goldens = Goldens::open()?;
    for name in MODELS {
        ten_steps(&goldens, name, &goldens.eager, true)?;
    }
    Ok(())
}

/// Counts its calls, in a function that is traced, too.
#[derive(Clone, Debug, Default)]
struct Counted(Arc<AtomicUsize>);

impl LossFunction for Counted {
    fn name(&self) -> String {
        "counted".to_owned()
    }

    fn per_sample(&self, cx: &AnyContext, truth: &AnyValue, y: &AnyValue) -> Result<AnyValue> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let square = ops::squared_difference(cx, truth, y)?;
        ops::mean(cx, &square, -1, ops::MeanOptions::default())
    }
}

#[test]
fn traced_steps_have_the_state_of_others() -> Result<()> {
    let run = |traced: bool| -> Result<(usize, Vec<f32>, Vec<Tensor>)> {
        let cx = EagerContext::new()?;
        let constraint = Constraint::max_norm(0.5);
        let first = Dense::new(6).constrained("kernel", constraint);
        let layers: [&dyn Layer; 4] = [
            &first,
            &BatchNorm::default(),
            &Dropout { rate: 0.3 },
            &Dense::new(2),
        ];
        let model = Sequential::new(&Weights::new(&cx, 3), &[4], &layers)?;
        let loss = Counted::default();
        // What is normalized has a bias without a gradient, whose noise Adam would make steps of.
        let rule = Sgd {
            momentum: 0.9,
            nesterov: false,
        };
        let plan = Plan::new(loss.clone(), rule).rate(0.05);
        let mut trainer = Trainer::new(model, plan)?;
        if traced {
            trainer = trainer.traced();
        }
        let mut losses = Vec::new();
        for step in 0..6_i64 {
            // The batches have several sizes.
            let rows = 3 + step % 2;
            let count = (rows * 4) as usize;
            let x = (0..count).map(|n| ((n * 7 + step as usize) % 11) as f32 / 11.0);
            let x = Tensor::from_vec(x.collect(), &[rows, 4])?;
            let y = Tensor::from_vec(vec![0.5_f32; 2 * rows as usize], &[rows, 2])?;
            losses.push(trainer.train_on(&x, &y)?);
            trainer.set_rate(0.05 / (step + 1) as f32);
        }
        Ok((loss.0.load(Ordering::Relaxed), losses, trainer.values()?))
    };
    let (calls, losses, values) = run(false)?;
    let (traces, traced, same) = run(true)?;
    assert_eq!((calls, traces), (6, 1));
    for (found, expected) in traced.iter().zip(&losses) {
        assert!((found - expected).abs() <= 1e-6, "{traced:?} {losses:?}");
    }
    near(&same, &values, 1e-5)
}

#[test]
fn a_small_model_learns_the_exclusive_or_in_both_modes() -> Result<()> {
    for mut trainer in [small(&Graph::new()?)?, small(&EagerContext::new()?)?] {
        let data = exclusive_or(16)?.shuffled(5);
        let history = trainer.fit(&data, 60, Some(&exclusive_or(64)?), &mut [])?;
        assert_eq!(trainer.step(), 240);
        let last = &history[59];
        assert_eq!(last.get("val_binary_accuracy"), Some(1.0), "{last}");
        assert!(
            last.get("val_loss").is_some_and(|loss| loss < 0.1),
            "{last}"
        );
    }
    Ok(())
}

#[test]
fn a_training_ends_early_with_its_best_values() -> Result<()> {
    let mut trainer = small(&EagerContext::new()?)?;
    let data = exclusive_or(64)?;
    let mut saved = Vec::new();
    let mut best = SaveBest::new("val_loss", |epoch, trainer: &Trainer<Adam>| {
        saved.push((epoch, trainer.values()?));
        Ok(())
    });
    let mut stopping = EarlyStopping::new("val_loss", 2);
    let mut progress = Progress::default();
    let history = trainer.fit(
        &data,
        400,
        Some(&data),
        &mut [&mut best, &mut stopping, &mut progress],
    )?;
    let losses: Vec<f64> = history
        .iter()
        .filter_map(|logs| logs.get("val_loss"))
        .collect();
    assert_eq!(losses.len(), history.len());
    let (epoch, values) = saved.last().expect("the first epoch is the best so far");
    let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(losses[*epoch], least);
    if history.len() < 400 {
        assert_eq!(history.len(), epoch + 3, "two epochs of patience");
        for (now, best) in trainer.values()?.iter().zip(values) {
            assert_eq!(now.as_bytes()?, best.as_bytes()?);
        }
    }
    Ok(())
}

#[test]
fn without_patience_the_first_epoch_that_is_no_better_is_the_last() -> Result<()> {
    let mut trainer = small(&EagerContext::new()?)?;
    let data = exclusive_or(64)?;
    let mut stopping = EarlyStopping::new("val_loss", 0);
    let history = trainer.fit(&data, 400, Some(&data), &mut [&mut stopping])?;
    let losses: Vec<f64> = history
        .iter()
        .filter_map(|logs| logs.get("val_loss"))
        .collect();
    let fell: Vec<bool> = losses.windows(2).map(|pair| pair[1] < pair[0]).collect();
    let (last, before) = fell.split_last().expect("two epochs");
    assert!(before.iter().all(|&fell| fell), "{losses:?}");
    assert_eq!(*last, losses.len() == 400, "{losses:?}");
    Ok(())
}

#[test]
fn masks_reach_what_they_are_for() -> Result<()> {
    let eager = EagerContext::new()?;
    let build = |layers: &[&dyn Layer]| Sequential::new(&Weights::new(&eager, 1), &[3], layers);
    let x = eager.constant(&Tensor::from_array([[3_i64, 0, 0]])?)?;
    let cx = eager.any();
    let embedding = Embedding::new(4, 2).mask_zero();
    let pass = Pass::inference(&cx);
    build(&[&embedding, &Dense::new(2)])?.call(&pass, &(&x).into())?;
    let mask = pass.mask().expect("a mask").handle()?.to_tensor()?;
    assert_eq!(mask.as_slice::<bool>()?, [true, false, false]);
    // What has no steps has no mask.
    let pass = Pass::inference(&cx);
    build(&[&embedding, &Flatten, &Dense::new(2)])?.call(&pass, &(&x).into())?;
    assert!(pass.mask().is_none());
    let plan = Plan::new(SPARSE, Sgd::default()).metric(Metric::TopK(1));
    let mut plan = plan;
    plan.input = DataType::INT64;
    let mut trainer = Trainer::new(build(&[&embedding])?, plan)?;
    let truth = Tensor::zeros(DataType::INT64, &[1, 3])?;
    let error = trainer.train_on(&Tensor::from_array([[3_i64, 0, 0]])?, &truth);
    assert!(error.is_err_and(|error| error.to_string().contains("'top_k_categorical_accuracy'")));
    Ok(())
}

/// A batch of which every step is masked has a loss of zero and changes nothing, as in Keras.
fn nothing_is_left(place: &impl Mode) -> Result<()> {
    let layers: [&dyn Layer; 3] = [
        &Embedding::new(4, 3).mask_zero(),
        &Recurrent::new(RnnKind::Gru, 2).sequences(),
        &Dense::new(1),
    ];
    let model = Sequential::new(&Weights::new(place, 5), &[3], &layers)?;
    let mut plan = Plan::new(Loss::MeanSquaredError, Sgd::default());
    plan.input = DataType::INT64;
    let mut trainer = Trainer::new(model, plan)?;
    let values = |trainer: &Trainer<Sgd>| -> Result<Vec<Vec<f32>>> {
        trainer.values()?.iter().map(Tensor::to_vec).collect()
    };
    let before = values(&trainer)?;
    let truth = Tensor::from_array([[[1.0_f32]; 3]; 2])?;
    let padding = Tensor::zeros(DataType::INT64, &[2, 3])?;
    assert_eq!(trainer.train_on(&padding, &truth)?, 0.0);
    assert_eq!(trainer.test_on(&padding, &truth)?, 0.0);
    assert_eq!(values(&trainer)?, before);
    let loss = trainer.train_on(&Tensor::from_array([[1_i64, 2, 0], [3, 0, 0]])?, &truth)?;
    assert!(loss > 0.0 && values(&trainer)? != before, "{loss}");
    Ok(())
}

#[test]
fn a_batch_that_is_all_padding_changes_nothing() -> Result<()> {
    nothing_is_left(&Graph::new()?.scope())?;
    nothing_is_left(&EagerContext::new()?)
}
