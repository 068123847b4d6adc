//! Models of any graph: several inputs and outputs, shared layers, skips, models in models.

use tfp::nn::layer::{
    Add, AlphaDropout, BatchNorm, Concatenate, Dense, Dropout, GaussianDropout, GaussianNoise,
    Layer, Model, Node, Pass, Sequential, SharedDropout, SharedLayer, SpatialDropout,
};
use tfp::nn::optimizer::Sgd;
use tfp::nn::training::{Batch, Batches, Head, Plan, Trainer};
use tfp::nn::{Activation, Loss, LossFunction, Metric, MetricFunction, Weights};
use tfp::{
    AnyContext, AnyValue, DataType, EagerContext, Graph, Mode, Result, Session, Tensor, ops,
};

use crate::goldens::Goldens;
use crate::models::SPARSE;

/// Two inputs, a shared layer, a skip, and two outputs.
fn two_heads(weights: &Weights) -> Result<Model> {
    let a = Node::input(weights, "a", &[3])?;
    let b = Node::input(weights, "b", &[3])?;
    let shared = SharedLayer::new(Dense::new(4).activation(Activation::Tanh));
    let x = a.then_named("encoder", &shared)?;
    let y = b.then(&shared)?;
    let sum = Node::join(Add, &[&x, &y])?;
    let both = Node::join(Concatenate::default(), &[&sum, &x])?;
    let class = both.then_named("class", Dense::new(2))?;
    let age = sum.then_named("age", Dense::new(1))?;
    Model::new(&[&a, &b], &[("class", &class), ("age", &age)])
}

fn numbers(count: usize, dims: &[i64]) -> Result<Tensor> {
    let value = |index: usize| ((index * 7 + 3) % 11) as f32 / 5.0 - 1.0;
    Tensor::from_vec((0..count).map(value).collect(), dims)
}

fn plan() -> Plan<Sgd> {
    Plan::new(Loss::MeanSquaredError, Sgd::default())
        .head(
            "class",
            Head::new(SPARSE).metric(Metric::SparseCategoricalAccuracy),
        )
        .head("age", Head::new(Loss::MeanSquaredError).weight(0.25))
        .rate(0.2)
}

#[test]
fn a_shared_layer_has_its_variables_once() -> Result<()> {
    let weights = Weights::new(&EagerContext::new()?, 1);
    let model = two_heads(&weights)?;
    let names: Vec<&str> = model.variables().iter().map(|one| one.name()).collect();
    let expected = [
        "encoder/kernel",
        "encoder/bias",
        "class/kernel",
        "class/bias",
        "age/kernel",
        "age/bias",
    ];
    assert_eq!(names, expected);
    let summary = model.summary();
    assert!(
        summary.contains("encoder (Dense)") && summary.contains("add, encoder"),
        "{summary}"
    );
    assert!(
        summary.ends_with("39 parameters, 39 of them trained, 0 kept\n"),
        "{summary}"
    );
    Ok(())
}

/// Two calls of a layer change its state in the order of Keras, whatever order the graph was made in.
#[test]
fn calls_of_a_layer_have_the_order_of_keras() -> Result<()> {
    let goldens = Goldens::open()?;
    let weights = Weights::new(&goldens.eager, 1);
    let x = Node::input(&weights, "x", &[3])?;
    let norm = SharedLayer::new(BatchNorm {
        momentum: 0.5,
        ..BatchNorm::default()
    });
    let first = x.then(&norm)?.then(Activation::Tanh)?;
    let other = x.then(Activation::Relu)?.then(&norm)?;
    let other = other.then(Activation::Linear)?.then(Activation::Tanh)?;
    let sum = Node::join(Add, &[&first, &other])?;
    let model = Model::new(&[&x], &[("sum", &sum)])?;
    let cx = goldens.eager.any();
    let y = model.call(
        &Pass::training(&cx),
        &[goldens.get("shared_norm/x")?.into()],
    )?;
    goldens.check("shared_norm/y", y[0].handle()?, 1e-5)?;
    for (index, variable) in model.variables().iter().enumerate() {
        let value = variable.read(&goldens.eager)?;
        goldens.check(&format!("shared_norm/after{index}"), &value, 1e-6)?;
    }
    Ok(())
}

/// The loss is the weighted sum of those of the outputs, and each has its logs.
fn several_losses(place: &impl Mode) -> Result<()> {
    let mut trainer = Trainer::new(two_heads(&Weights::new(place, 1))?, plan())?;
    let (a, b) = (numbers(12, &[4, 3])?, numbers(12, &[4, 3])?);
    let (class, age) = (Tensor::from_array([0_i32, 0, 1, 1])?, numbers(4, &[4, 1])?);
    let data = Batches::of(
        vec![a.share()?, b.share()?],
        vec![class.share()?, age.share()?],
        2,
    );
    let data = data?;
    let logs = trainer.evaluate(&data)?;
    let get = |name: &str| logs.get(name).unwrap_or(f64::NAN);
    let sum = get("class_loss") + 0.25 * get("age_loss");
    assert!((get("loss") - sum).abs() < 1e-6, "{logs}");
    assert!(
        logs.get("class_sparse_categorical_accuracy").is_some(),
        "{logs}"
    );
    let by_name = trainer.test_on([("b", &b), ("a", &a)], [("age", &age), ("class", &class)])?;
    assert!((f64::from(by_name) - get("loss")).abs() < 1e-6);
    trainer.fit(&data, 60, Some(&data), &mut [])?;
    let after = trainer.evaluate(&data)?;
    assert!(
        after
            .get("loss")
            .is_some_and(|loss| loss < 0.7 * get("loss")),
        "{after}"
    );
    let all = trainer.predict_over(&data)?;
    assert_eq!((all[0].dims(), all[1].dims()), (&[4, 2][..], &[4, 1][..]));
    // Kernels may add in another order for batches of another size.
    let (over, once) = (all[0].to_vec::<f32>()?, trainer.predict([&a, &b])?);
    for (over, once) in over.iter().zip(once.to_vec::<f32>()?) {
        assert!(
            (over - once).abs() <= 1e-6 * once.abs().max(1.0),
            "{over} {once}"
        );
    }
    let missing = trainer.train_on([("a", &a), ("c", &b)], [&class, &age]);
    assert!(missing.is_err_and(|error| error.to_string().contains("'c'; the inputs are a, b")));
    let few = trainer.train_on([&a, &b], &class);
    assert!(few.is_err_and(|error| error.to_string().contains("class, age")));
    let wrong = trainer.train_on([&a, &class], [&class, &age]);
    assert!(wrong.is_err_and(|error| error.to_string().contains("the input 'b' of a batch")));
    Ok(())
}

#[test]
fn outputs_have_losses_of_their_own_in_both_modes() -> Result<()> {
    several_losses(&Graph::new()?)?;
    several_losses(&EagerContext::new()?)
}

/// Weights of two are as good as a sample that is there twice, and those of zero as none.
fn weighted(place: &impl Mode) -> Result<()> {
    let build = |plan: Plan<Sgd>| -> Result<Trainer<Sgd>> {
        let weights = Weights::new(place, 1);
        let x = Node::input(&weights, "x", &[2])?;
        let y = x.then(Dense::new(2))?;
        Trainer::new(Model::new(&[&x], &[("y", &y)])?, plan)
    };
    let x = Tensor::from_array([[1.0_f32, 2.0], [3.0, -1.0], [0.5, 4.0]])?;
    let truth = Tensor::from_array([0_i64, 1, 1])?;
    let plan = || Plan::new(SPARSE, Sgd::default());
    let losses: Vec<f32> = {
        let mut trainer = build(plan())?;
        let one = |index: usize| -> Result<(Tensor, Tensor)> {
            let row = &x.as_slice::<f32>()?[2 * index..][..2];
            let class = truth.as_slice::<i64>()?[index];
            Ok((
                Tensor::from_slice(row, &[1, 2])?,
                Tensor::from_array([class])?,
            ))
        };
        let losses = (0..3).map(|index| {
            let (x, truth) = one(index)?;
            trainer.test_on(&x, &truth)
        });
        losses.collect::<Result<_>>()?
    };
    let mut batch = Batch::new(x.share()?, truth.share()?);
    batch.weights = vec![Tensor::from_array([2.0_f32, 0.0, 1.0])?];
    let found = build(plan().weighted())?.train_batch(&batch)?;
    let expected = (2.0 * losses[0] + losses[2]) / 3.0;
    assert!((found - expected).abs() < 1e-5, "{found}, not {expected}");
    let refused = build(plan())?.train_batch(&batch);
    assert!(refused.is_err_and(|error| error.to_string().contains("Plan::weighted")));

    let mut by_class = build(plan().class_weights(&[3.0, 0.5]))?;
    let found = by_class.train_on(&x, &truth)?;
    let expected = (3.0 * losses[0] + 0.5 * (losses[1] + losses[2])) / 3.0;
    assert!((found - expected).abs() < 1e-5, "{found}, not {expected}");
    let wide = Batches::new(x, truth, 3)?.weighted(vec![Tensor::from_array([1.0_f32])?]);
    assert!(wide.is_err());
    Ok(())
}

#[test]
fn samples_and_classes_have_weights_in_both_modes() -> Result<()> {
    weighted(&Graph::new()?)?;
    weighted(&EagerContext::new()?)
}

/// What is frozen stays as it is; batch normalization there does not learn, either.
fn frozen(place: &impl Mode) -> Result<()> {
    let weights = Weights::new(place, 1);
    let x = Node::input(&weights, "x", &[3])?;
    let inner = {
        let place = weights.layer("base");
        let x = Node::input(&place, "x", &[3])?;
        let y = x.then(Dense::new(4))?.then(BatchNorm::default())?;
        Model::new(&[&x], &[("y", &y)])?
    };
    let y = x
        .then_named("inner", &inner)?
        .then_named("head", Dense::new(1))?;
    let mut model = Model::new(&[&x], &[("y", &y)])?;
    assert_eq!(model.variables().len(), 8);
    let error = model.freeze("bases").unwrap_err().to_string();
    assert!(
        error.contains("'bases'; the model's layers are inner, head"),
        "{error}"
    );
    model.freeze("base")?;
    assert_eq!(model.trainables().len(), 2);
    assert!(
        model
            .summary()
            .contains("37 parameters, 5 of them trained, 32 kept"),
        "{}",
        model.summary()
    );
    let mut trainer = Trainer::new(model, Plan::new(Loss::MeanSquaredError, Sgd::default()))?;
    let before = trainer.values()?;
    trainer.train_on(&numbers(12, &[4, 3])?, &numbers(4, &[4, 1])?)?;
    for (index, (before, after)) in before.iter().zip(trainer.values()?).enumerate() {
        let same = before.as_bytes()? == after.as_bytes()?;
        assert_eq!(same, index < 6, "variable {index}");
    }
    Ok(())
}

#[test]
fn what_is_frozen_stays_in_both_modes() -> Result<()> {
    frozen(&Graph::new()?)?;
    frozen(&EagerContext::new()?)
}

/// The mean of the fourth powers of the differences.
#[derive(Debug)]
struct Fourth;

impl LossFunction for Fourth {
    fn name(&self) -> String {
        "fourth".to_owned()
    }

    fn per_sample(&self, cx: &AnyContext, truth: &AnyValue, y: &AnyValue) -> Result<AnyValue> {
        let square = ops::squared_difference(cx, truth, y)?;
        ops::mean(
            cx,
            ops::square(cx, square)?,
            -1,
            ops::MeanOptions::default(),
        )
    }
}

/// The largest prediction.
#[derive(Debug)]
struct Count;

impl MetricFunction for Count {
    fn name(&self) -> String {
        "count".to_owned()
    }

    fn statistics(
        &self,
        cx: &AnyContext,
        truth: &AnyValue,
        _: &AnyValue,
        _: Option<&AnyValue>,
    ) -> Result<AnyValue> {
        let size = ops::size(cx, truth, ops::SizeOptions::default())?;
        let size = ops::cast(cx, size, DataType::FLOAT, ops::CastOptions::default())?;
        ops::reshape(cx, size, [1])
    }

    fn result(&self, sums: &[f64]) -> f64 {
        // A training asks for the result of batches that were seen.
        sums[0]
    }
}

fn own_parts(place: &impl Mode) -> Result<()> {
    let weights = Weights::new(place, 1);
    let x = Node::input(&weights, "x", &[1])?;
    let y = x.then(Activation::Linear)?.then(Dense::new(1))?;
    let model = Model::new(&[&x], &[("y", &y)])?;
    let mut trainer = Trainer::new(model, Plan::new(Fourth, Sgd::default()).metric(Count))?;
    trainer.set_values(&[
        Tensor::from_array([[2.0_f32]])?,
        Tensor::from_array([0.0_f32])?,
    ])?;
    let x = Tensor::from_array([[1.0_f32], [2.0]])?;
    let truth = Tensor::from_array([[0.0_f32], [3.0]])?;
    let logs = trainer.evaluate(&Batches::new(x.share()?, truth.share()?, 1)?)?;
    assert_eq!(
        (logs.get("loss"), logs.get("count")),
        (Some(8.5), Some(2.0)),
        "{logs}"
    );
    // The derivative by the kernel: the mean of 4 d^3 x.
    trainer.train_on(&x, &truth)?;
    let kernel = trainer.values()?[0].to_scalar::<f32>()?;
    assert!(
        (kernel - (2.0 - 0.01 * (4.0 * 8.0 + 4.0 * 2.0) / 2.0)).abs() < 1e-6,
        "{kernel}"
    );
    Ok(())
}

#[test]
fn losses_and_metrics_of_ones_own_train_in_both_modes() -> Result<()> {
    own_parts(&Graph::new()?)?;
    own_parts(&EagerContext::new()?)
}

#[test]
fn what_does_not_fit_is_named_before_a_step() -> Result<()> {
    let eager = EagerContext::new()?;
    let weights = Weights::new(&eager, 1);
    let a = Node::input(&weights, "a", &[3])?;
    let b = Node::input(&weights, "b", &[4])?;
    let said = |result: Result<Node>, expected: &str| {
        let error = result.expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    };
    said(
        Node::join_named("sum", Add, &[&a, &b]),
        "layer sum (Add), called with 'a', 'b'",
    );
    said(a.then(Concatenate::default()), "two inputs or more");
    said(
        a.then_named("drop", Dropout { rate: 2.0 }),
        "drop (Dropout)",
    );
    let shared = SharedLayer::new(Dense::new(2));
    a.then_named("shared", &shared)?;
    said(b.then(&shared), "the layer is shared");
    let other = Node::input(&Weights::new(&eager, 1), "c", &[3])?;
    said(Node::join(Add, &[&a, &other]), "different weights");
    let y = Node::join(Concatenate::default(), &[&a, &b])?;
    let missing = Model::new(&[&a], &[("y", &y)]);
    assert!(missing.is_err_and(|error| error.to_string().contains("depends on the input 'b'")));
    let twice = Model::new(&[&a, &b], &[("y", &y), ("y", &a)]);
    assert!(twice.is_err_and(|error| error.to_string().contains("called 'y'")));
    let inner = Model::new(&[&y], &[("y", &y)]);
    assert!(inner.is_err_and(|error| error.to_string().contains("can't be an input")));
    let model = Model::new(&[&a, &b], &[("y", &y)])?;
    let plan = plan();
    assert!(
        Trainer::new(model, plan).is_err_and(|error| error.to_string().contains("outputs are y"))
    );
    Ok(())
}

/// Mean and deviation of numbers.
fn moments(x: &[f32]) -> (f64, f64) {
    let count = x.len() as f64;
    let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
    let square = x
        .iter()
        .map(|&x| (f64::from(x) - mean).powi(2))
        .sum::<f64>();
    (mean, (square / count).sqrt())
}

/// Layers that draw at random, while training only: their moments are those of Keras' formulas.
fn noises(place: &impl Mode) -> Result<()> {
    let cx = place.any();
    let run = |layer: &dyn Layer, value: f32| -> Result<(Vec<f32>, Vec<f32>)> {
        let model = Sequential::new(&Weights::new(place, 1), &[100, 100], &[layer])?;
        let x = ops::fill(&cx, [4_i64, 100, 100], value)?;
        let outputs = [
            model.call(&Pass::training(&cx), &x)?,
            model.call(&Pass::inference(&cx), &x)?,
        ];
        let read = |y: &AnyValue| -> Result<Vec<f32>> {
            match y {
                AnyValue::Handle(handle) => handle.to_tensor()?.to_vec(),
                AnyValue::Output(output) => {
                    let graph = cx.graph().expect("a graph");
                    let session = Session::new(graph)?;
                    session
                        .callable(&[], std::slice::from_ref(output), &[])?
                        .call(&[])?[0]
                        .to_vec()
                }
            }
        };
        Ok((read(&outputs[0])?, read(&outputs[1])?))
    };
    let close = |(mean, deviation): (f64, f64), wanted: (f64, f64)| {
        assert!((mean - wanted.0).abs() < 0.02, "{mean}, not {}", wanted.0);
        assert!(
            (deviation - wanted.1).abs() < 0.02,
            "{deviation}, not {}",
            wanted.1
        );
    };
    let (noisy, same) = run(&GaussianNoise { deviation: 0.5 }, 2.0)?;
    close(moments(&noisy), (2.0, 0.5));
    assert!(same.iter().all(|&y| y == 2.0));
    let (noisy, same) = run(&GaussianDropout { rate: 0.2 }, 2.0)?;
    close(moments(&noisy), (2.0, 1.0));
    assert!(same.iter().all(|&y| y == 2.0));
    // The input of mean 0 keeps it, and what is dropped is one number.
    let (noisy, same) = run(&AlphaDropout { rate: 0.3 }, 0.0)?;
    let mut values = noisy.clone();
    values.sort_by(f32::total_cmp);
    values.dedup();
    assert_eq!(values.len(), 2, "{values:?}");
    assert!(moments(&noisy).0.abs() < 0.02 && same.iter().all(|&y| y == 0.0));
    let (noisy, _) = run(&SpatialDropout { rate: 0.25 }, 3.0)?;
    // There are 400 draws only.
    assert!((moments(&noisy).0 - 3.0).abs() < 0.4);
    for channel in 0..400 {
        let (sample, channel) = (channel / 100, channel % 100);
        let at = |step: usize| noisy[sample * 10_000 + step * 100 + channel];
        assert!((0..100).all(|step| at(step) == at(0)), "a channel in part");
    }
    // A draw for each sample and step, which all channels share.
    let draws = vec![None, None, Some(1)];
    let (noisy, same) = run(&SharedDropout { rate: 0.25, draws }, 3.0)?;
    assert!((moments(&noisy).0 - 3.0).abs() < 0.4 && same.iter().all(|&y| y == 3.0));
    let steps = noisy.chunks(100);
    assert!(steps.clone().any(|step| step[0] == 0.0) && steps.clone().any(|step| step[0] == 4.0));
    assert!(
        steps
            .into_iter()
            .all(|step| step.iter().all(|&y| y == step[0]))
    );
    Ok(())
}

#[test]
fn noise_has_its_moments_in_both_modes() -> Result<()> {
    noises(&Graph::new()?)?;
    noises(&EagerContext::new()?)
}

/// Thousands of layers are made and forgotten without a deep stack.
#[test]
fn deep_models_need_no_deep_stack() -> Result<()> {
    let weights = Weights::new(&EagerContext::new()?, 1);
    let x = Node::input(&weights, "x", &[1])?;
    let mut y = x.clone();
    for _ in 0..5000 {
        y = y.then(Activation::Relu)?;
    }
    let model = Model::new(&[&x], &[("y", &y)])?;
    drop(y);
    assert_eq!(model.kind(), "Model");
    Ok(())
}
