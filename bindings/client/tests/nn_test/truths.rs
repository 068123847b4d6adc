//! Truths with and without a last dimension.

use tfp::nn::layer::{Dense, Sequential};
use tfp::nn::optimizer::Sgd;
use tfp::nn::training::{Batches, Plan, Trainer};
use tfp::nn::{Activation, Loss, Metric, Weights};
use tfp::{DataType, EagerContext, Graph, Mode, Result, Tensor};

use crate::models::SPARSE;

/// A model of one input and one output that computes `2 x`, with a loss and a metric.
fn doubling(place: &impl Mode, loss: Loss, metric: Metric) -> Result<Trainer<Sgd>> {
    let model = Sequential::new(&Weights::new(place, 0), &[1], &[&Dense::new(1)])?;
    let trainer = Trainer::new(model, Plan::new(loss, Sgd::default()).metric(metric))?;
    trainer.set_values(&[
        Tensor::from_array([[2.0_f32]])?,
        Tensor::zeros(DataType::FLOAT, &[1])?,
    ])?;
    Ok(trainer)
}

/// Truths of shape `(batch)` and `(batch, 1)` must not be compared with each prediction of the batch.
fn truths_fit(place: &impl Mode) -> Result<()> {
    let x = Tensor::from_array([[1.0_f32], [2.0], [4.0]])?;
    let truth = Tensor::from_array([3.0_f32, 4.0, 6.0])?;
    // Errors of 1, 0 and 2.
    let cases = [
        (
            Loss::MeanSquaredError,
            Metric::RootMeanSquaredError,
            5.0,
            5.0_f64.sqrt(),
        ),
        (
            Loss::MeanAbsoluteError,
            Metric::Mean(Loss::MeanSquaredError),
            3.0,
            5.0,
        ),
        (Loss::MeanAbsoluteError, Metric::Accuracy, 3.0, 1.0),
    ];
    for (loss, metric, sum, measure) in cases {
        let mut values = Vec::new();
        for dims in [&[3, 1][..], &[3], &[3, 1, 1]] {
            let mut trainer = doubling(place, loss, metric)?;
            let truth = truth.reshaped(dims)?;
            let data = Batches::new(x.share()?, truth.share()?, 3)?;
            let logs = trainer.evaluate(&data)?;
            let found = logs.get("loss").unwrap_or(f64::NAN) * 3.0;
            assert!((found - sum).abs() < 1e-6, "{loss:?} of {dims:?}: {found}");
            let mut found = logs.get(metric.name()).unwrap_or(f64::NAN);
            found *= if metric == Metric::RootMeanSquaredError {
                3.0_f64.sqrt()
            } else {
                3.0
            };
            assert!(
                (found - measure).abs() < 1e-6,
                "{metric:?} of {dims:?}: {found}"
            );
            trainer.train_on(&x, &truth)?;
            values.push(trainer.values()?[0].to_scalar::<f32>()?);
        }
        assert!(
            values
                .iter()
                .all(|value| *value == values[0] && *value != 2.0),
            "{values:?}"
        );
    }

    // Class numbers with and without a last dimension.
    let model = Sequential::new(&Weights::new(place, 0), &[3], &[&Activation::Linear])?;
    let plan = Plan::new(SPARSE, Sgd::default()).metric(Metric::SparseTopK(2));
    let mut trainer = Trainer::new(model, plan.metric(Metric::SparseCategoricalAccuracy))?;
    let x = Tensor::from_array([[9.0_f32, 0.0, 1.0], [0.0, 9.0, 1.0], [0.0, 1.0, 9.0]])?;
    for dims in [&[3][..], &[3, 1]] {
        let truth = Tensor::from_slice(&[0_i64, 0, 1], dims)?;
        let logs = trainer.evaluate(&Batches::new(x.share()?, truth, 3)?)?;
        let found = logs.get("sparse_categorical_accuracy").unwrap_or(f64::NAN);
        assert!((found - 1.0 / 3.0).abs() < 1e-6, "{dims:?}: {found}");
        let found = logs
            .get("sparse_top_k_categorical_accuracy")
            .unwrap_or(f64::NAN);
        assert!((found - 2.0 / 3.0).abs() < 1e-6, "{dims:?}: {found}");
    }
    Ok(())
}

#[test]
fn truths_with_and_without_a_last_dimension_are_the_same_in_a_graph() -> Result<()> {
    truths_fit(&Graph::new()?.scope())
}

#[test]
fn truths_with_and_without_a_last_dimension_are_the_same_in_eager_mode() -> Result<()> {
    truths_fit(&EagerContext::new()?)
}
