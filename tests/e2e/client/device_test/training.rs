//! Training in both modes.

use tfp::nn::functional::Padding;
use tfp::nn::layer::{
    BatchNorm, Conv, Dense, Embedding, Flatten, Layer, LayerNorm, Pooling, Recurrent, RnnKind,
    Sequential,
};
use tfp::nn::optimizer::{
    Adadelta, Adagrad, Adam, Adamax, Clip, Ftrl, Lion, Nadam, RmsProp, Rule, Sgd,
};
use tfp::nn::training::{Plan, Trainer};
use tfp::nn::{Activation, Loss, Metric, Weights};
use tfp::{AnyContext, DataType, Graph, Mode, Operation, Result, Tensor};

use crate::place::{CPU, DEVICE, compare, eager, is_on, load, numbers};

const SPARSE: Loss = Loss::SparseCategoricalCrossentropy { from_logits: true };

/// A model: the element type of its inputs, a batch of 12, and its layers.
struct Model {
    name: &'static str,
    x: Tensor,
    layers: Vec<Box<dyn Layer>>,
}

fn models() -> Result<Vec<Model>> {
    let words: Vec<i64> = (0..60).map(|index| (index * 7 + 3) % 20).collect();
    Ok(vec![
        Model {
            name: "mlp",
            x: numbers(&[12, 6])?,
            layers: vec![
                Box::new(Dense::new(16).activation(Activation::Tanh)),
                Box::new(LayerNorm::default()),
                Box::new(Dense::new(4)),
            ],
        },
        Model {
            name: "cnn",
            x: numbers(&[12, 8, 8, 2])?,
            layers: vec![
                Box::new(
                    Conv::new(6, 3)
                        .padding(Padding::Same)
                        .activation(Activation::Relu),
                ),
                Box::new(BatchNorm::default()),
                Box::new(Pooling::max(2)),
                Box::new(Flatten),
                Box::new(Dense::new(4)),
            ],
        },
        Model {
            name: "rnn",
            x: Tensor::from_vec(words, &[12, 5])?,
            layers: vec![
                Box::new(Embedding::new(20, 6)),
                Box::new(Recurrent::new(RnnKind::Lstm, 8)),
                Box::new(Dense::new(4)),
            ],
        },
    ])
}

fn truths() -> Result<Tensor> {
    let classes: Vec<i64> = (0..12).map(|index| index * 5 % 4).collect();
    Tensor::from_vec(classes, &[12])
}

/// Makes steps, and returns the losses, then the last predictions, then the variables.
fn steps<R: Rule>(place: &AnyContext, model: &Model, rule: R, clip: Clip) -> Result<Vec<Tensor>> {
    let layers: Vec<&dyn Layer> = model.layers.iter().map(|layer| &**layer).collect();
    let built = Sequential::new(&Weights::new(place, 3), &model.x.dims()[1..], &layers)?;
    let first = place.graph().map_or(0, |graph| graph.operations().count());
    let mut plan = Plan::new(SPARSE, rule).metric(Metric::SparseCategoricalAccuracy);
    plan.optimizer = plan.optimizer.clip(clip);
    plan.input = model.x.dtype();
    let mut trainer = Trainer::new(built, plan)?;
    if let Some(graph) = place.graph() {
        // What works on a variable is where that is; its first value comes from the host.
        let at_variable = |op: &Operation| {
            op.inputs()
                .first()
                .is_some_and(|input| input.dtype() == DataType::RESOURCE)
        };
        let elsewhere = |op: &Operation| !is_on(&op.device(), DEVICE);
        let unplaced: Vec<String> = graph
            .operations()
            .skip(first)
            .filter(|op| op.op_type() != "Const" && elsewhere(op) && !at_variable(op))
            .map(|op| format!("{} on '{}'", op.name(), op.device()))
            .collect();
        assert!(unplaced.is_empty(), "{}: {unplaced:?}", model.name);
    }
    let truth = truths()?;
    let losses = (0..10)
        .map(|_| trainer.train_on(&model.x, &truth))
        .collect::<Result<Vec<f32>>>()?;
    assert!(losses[9] < losses[0], "{} learns: {losses:?}", model.name);
    let mut values = vec![Tensor::from_vec(losses, &[10])?, trainer.predict(&model.x)?];
    values.push(Tensor::scalar(trainer.test_on(&model.x, &truth)?)?);
    values.extend(trainer.values()?);
    Ok(values)
}

/// Trains on the CPU at once, and on the device in both modes, and compares losses, predictions and
/// weights.
fn check_training<R: Rule + Clone>(model: &Model, name: &str, rule: R, clip: Clip) -> Result<()> {
    load();
    let at_once = |device: &str| steps(&eager(device)?.any(), model, rule.clone(), clip);
    let expected = at_once(CPU)?;
    let what = format!("{} with {name} at once", model.name);
    compare(&what, &at_once(DEVICE)?, &expected, 2e-4)?;
    let scope = Graph::new()?.scope().on_device(DEVICE)?;
    let found = steps(&scope.any(), model, rule.clone(), clip)?;
    compare(
        &format!("{} with {name} in a graph", model.name),
        &found,
        &expected,
        2e-4,
    )
}

#[test]
fn models_train_as_on_the_cpu() -> Result<()> {
    for model in models()? {
        check_training(&model, "Adam", Adam::default(), Clip::Norm(1.0))?;
    }
    Ok(())
}

#[test]
fn every_optimizer_trains_as_on_the_cpu() -> Result<()> {
    let model = &models()?[0];
    let momentum = Sgd {
        momentum: 0.9,
        nesterov: true,
    };
    check_training(model, "SGD", momentum, Clip::GlobalNorm(0.5))?;
    check_training(model, "AdamW", Adam::w(), Clip::Value(0.1))?;
    check_training(model, "Adagrad", Adagrad::default(), Clip::None)?;
    check_training(model, "Adadelta", Adadelta::default(), Clip::None)?;
    check_training(model, "RMSprop", RmsProp::default(), Clip::None)?;
    check_training(model, "Adamax", Adamax::default(), Clip::None)?;
    check_training(model, "Nadam", Nadam::default(), Clip::None)?;
    check_training(model, "Ftrl", Ftrl::default(), Clip::None)?;
    check_training(model, "Lion", Lion::default(), Clip::None)
}
