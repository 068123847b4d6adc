//! Functions of SavedModels as layers that train.

use tfp::nn::layer::{Dense, Layer, Model as Network, Pass, SavedLayer, Sequential, SharedLayer};
use tfp::nn::optimizer::Sgd;
use tfp::nn::training::{Plan, Trainer};
use tfp::nn::{Activation, Loss, Weights};
use tfp::{
    Context as _, DataType, EagerContext, ErrorKind, Graph, Mode as _, Model, ModelWriter, Result,
    Shape, Tensor, Variable, ops,
};

use crate::models::folder;

const SHAPES: [&[i64]; 4] = [&[2, 3], &[3], &[3, 1], &[1]];

/// Those of some values that have these shapes, in this order.
fn of_shapes(mut values: Vec<Tensor>, shapes: &[&[i64]]) -> Vec<Tensor> {
    let mut found = Vec::new();
    for shape in shapes {
        let at = values.iter().position(|value| value.dims() == *shape);
        found.extend(at.map(|at| values.swap_remove(at)));
    }
    found
}

fn network(cx: &EagerContext, layers: &[&dyn Layer]) -> Result<Network> {
    Ok(Sequential::new(&Weights::new(cx, 3), &[2], layers)?.into())
}

fn trainer(network: Network, is_traced: bool) -> Result<Trainer<Sgd>> {
    let plan = Plan::new(Loss::MeanSquaredError, Sgd::default()).rate(0.1);
    let trainer = Trainer::new(network, plan)?;
    Ok(if is_traced { trainer.traced() } else { trainer })
}

fn batch() -> Result<(Tensor, Tensor)> {
    let x = (0..8).map(|at| (at as f32 * 0.7).sin()).collect();
    let truth = (0..8).map(|at| at as f32 * 0.25).collect();
    let truth = Tensor::from_vec(truth, &[4, 2])?;
    Ok((Tensor::from_vec(x, &[4, 2])?, truth))
}

#[test]
fn a_saved_model_trains_as_the_layers_that_it_was() -> Result<()> {
    for is_traced in [false, true] {
        let cx = EagerContext::new()?;
        let model = Model::load(&cx, folder("keras"), &["serve"])?;
        let layer = SavedLayer::new(&model, model.function("serve")?);
        let mut saved = trainer(network(&cx, &[&layer, &Dense::new(2)])?, is_traced)?;
        let layers = [
            Dense::new(3).activation(Activation::Silu),
            Dense::new(1),
            Dense::new(2),
        ];
        let layers: Vec<&dyn Layer> = layers.iter().map(|layer| layer as &dyn Layer).collect();
        let mut twin = trainer(network(&cx, &layers)?, is_traced)?;
        let first = saved.values()?;
        let shapes = [&SHAPES[..], &[&[1, 2], &[2]]].concat();
        let first = of_shapes(first, &shapes);
        assert_eq!(first.len(), 6);
        twin.set_values(&first)?;

        let (x, truth) = batch()?;
        for _ in 0..3 {
            let (one, other) = (saved.train_on(&x, &truth)?, twin.train_on(&x, &truth)?);
            assert!((one - other).abs() <= 1e-6 * other.abs(), "{one} {other}");
        }
        let found = of_shapes(saved.values()?, &shapes);
        for (found, wanted) in found.iter().zip(twin.values()?) {
            let pairs = found
                .as_slice::<f32>()?
                .iter()
                .zip(wanted.as_slice::<f32>()?);
            for (found, wanted) in pairs {
                assert!((found - wanted).abs() <= 1e-6, "{found} {wanted}");
            }
        }
        // The variables are the model's own.
        let own = model.variables().map(|(_, variable)| variable.to_tensor());
        let own = of_shapes(own.collect::<Result<_>>()?, &SHAPES);
        for (own, found) in own.iter().zip(&found) {
            assert_eq!(own.as_slice::<f32>()?, found.as_slice::<f32>()?);
        }
        assert_ne!(own[0].as_slice::<f32>()?, first[0].as_slice::<f32>()?);
    }
    Ok(())
}

#[test]
fn a_frozen_saved_model_stays() -> Result<()> {
    let cx = EagerContext::new()?;
    let model = Model::load(&cx, folder("keras"), &["serve"])?;
    let layer = SavedLayer::new(&model, model.signature("serving_default")?);
    let mut network = network(&cx, &[&layer, &Dense::new(2)])?;
    network.freeze("saved_model")?;
    let mut trainer = trainer(network, false)?;
    let first = of_shapes(trainer.values()?, &SHAPES);
    let (x, truth) = batch()?;
    let losses: Vec<f32> = (0..2)
        .map(|_| trainer.train_on(&x, &truth))
        .collect::<Result<_>>()?;
    assert!(losses[1] < losses[0], "{losses:?}");
    for (now, first) in of_shapes(trainer.values()?, &SHAPES).iter().zip(&first) {
        assert_eq!(now.as_slice::<f32>()?, first.as_slice::<f32>()?);
    }
    Ok(())
}

/// A model with a function for training, and another one.
fn two_functions(folder: &std::path::Path, cx: &EagerContext) -> Result<Model> {
    let slope = Variable::new(cx, "slope", 3.0_f32)?;
    let mut writer = ModelWriter::new();
    writer.variable("slope", &slope)?;
    for (name, term) in [("predicts", 0.0_f32), ("trains", 1.0)] {
        let x = ("x", DataType::FLOAT, Shape::from([-1, 2]));
        writer.signature(name, &[x], |func, arguments| {
            let product = ops::mul(func, &arguments["x"], slope.read(func)?)?;
            let y = ops::add_v2(func, product, term)?;
            Ok(vec![("y".to_owned(), y)])
        })?;
    }
    writer.write(folder)?;
    Model::load(cx, folder, &["serve"])
}

#[test]
fn the_function_for_training_is_that_of_a_pass() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("tfp_saved_layer_{}", std::process::id()));
    let cx = EagerContext::new()?;
    let model = two_functions(&folder, &cx);
    let _ = std::fs::remove_dir_all(&folder);
    let model = model?;
    let layer = SavedLayer::new(&model, model.signature("predicts")?);
    let layer = SharedLayer::new(layer.training(model.signature("trains")?));
    // It is called twice, and has its variable once.
    let network = Sequential::new(&Weights::new(&cx, 0), &[2], &[&layer, &layer])?;
    let mut network = Network::from(network);
    let names: Vec<&str> = network.variables().iter().map(|one| one.name()).collect();
    assert_eq!(names, ["saved_model/slope"]);
    let place = cx.any();
    let x = place.constant(&Tensor::from_array([[1.0_f32, 2.0]])?)?;
    let run = |network: &Network, pass: &Pass<'_>| -> Result<Vec<f32>> {
        let y = network.call(pass, std::slice::from_ref(&x))?;
        y[0].handle()?.to_tensor()?.to_vec()
    };
    let (training, inference) = (Pass::training(&place), Pass::inference(&place));
    assert_eq!(run(&network, &inference)?, [9.0, 18.0]);
    assert_eq!(run(&network, &training)?, [13.0, 22.0]);
    network.freeze("saved_model")?;
    assert_eq!(run(&network, &training)?, [9.0, 18.0]);
    Ok(())
}

#[test]
fn what_a_saved_model_does_not_take_is_refused() -> Result<()> {
    let cx = EagerContext::new()?;
    let model = Model::load(&cx, folder("keras"), &["serve"])?;
    let layer = SavedLayer::new(&model, model.function("serve")?);
    let wrong = layer.build(&Weights::new(&cx, 0), &[5]).err();
    let wrong = wrong.expect("5 inputs do not fit");
    assert!(matches!(wrong.kind(), ErrorKind::Shape { .. }), "{wrong}");
    let two = layer.build_many(&Weights::new(&cx, 0), &[&[2], &[2]]);
    let two = two.err().expect("one input").to_string();
    assert!(two.contains("2 arguments are given"), "{two}");
    let other = Weights::new(&EagerContext::new()?, 0);
    let other = layer.build(&other, &[2]).err();
    let other = other.expect("another context").to_string();
    assert!(other.contains("eager context"), "{other}");
    let graph = Graph::new()?;
    let graph = layer.build(&Weights::new(&graph.scope(), 0), &[2]).err();
    let graph = graph.expect("another context").to_string();
    assert!(graph.contains("eager context"), "{graph}");
    Ok(())
}
