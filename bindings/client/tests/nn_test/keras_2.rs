//! Models in files of Keras 2: they predict and train as there.

use std::env;
use std::path::{Path, PathBuf};

use tfp::nn::optimizer::Sgd;
use tfp::nn::training::{Plan, Trainer};
use tfp::nn::{Loss, Model, Weights};
use tfp::weights::TensorFile;
use tfp::{EagerContext, Error, Result, Tensor};

use crate::keras::{damage, distance};

/// A file of the folder, which `keras_2/write.py` wrote.
fn path(name: &str) -> Result<PathBuf> {
    let one = env::var("KERAS_2").map_err(|error| Error::argument(format!("KERAS_2: {error}")))?;
    Ok(Path::new(&one).with_file_name(name))
}

/// The arrays whose names are numbered.
fn several(file: &TensorFile, name: &str) -> Result<Vec<Tensor>> {
    let names = (0..).map(|index| format!("{name}{index}"));
    let there: Vec<&str> = file.names().collect();
    names
        .take_while(|name| there.contains(&name.as_str()))
        .map(|name| file.read(&name))
        .collect()
}

fn near(found: &[Tensor], expected: &[Tensor], what: &str, tolerance: f32) -> Result<()> {
    assert_eq!(found.len(), expected.len(), "{what}");
    assert!(!found.is_empty(), "{what}");
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        let most = distance(found, expected)?;
        assert!(
            most <= tolerance,
            "{what} {index} is {most} away from Keras'"
        );
    }
    Ok(())
}

fn compare(eager: &EagerContext, file: &str) -> Result<()> {
    compare_within(eager, file, 2e-5)
}

fn compare_within(eager: &EagerContext, file: &str, tolerance: f32) -> Result<()> {
    let model = Model::from_keras(&Weights::new(eager, 1), path(file)?)?;
    let name = file.split('.').next().unwrap_or_default();
    let expected = TensorFile::open(path(&format!("{name}.npz"))?)?;
    let dtype = model.inputs()[0].dtype;
    let mut plan = Plan::new(Loss::MeanSquaredError, Sgd::default()).rate(0.05);
    plan.input = dtype.unwrap_or(tfp::DataType::FLOAT);
    let mut trainer = Trainer::new(model, plan)?;
    assert_eq!(trainer.loss_scale().is_some(), name == "mixed", "{name}");
    let x = several(&expected, "x")?;
    let y = trainer.predict_all(&x)?;
    near(
        &y,
        &several(&expected, "y")?,
        &format!("{name}: output"),
        tolerance,
    )?;
    let loss = trainer.train_on(&x, &several(&expected, "truth")?)?;
    let golden = expected.read("loss")?.to_scalar::<f32>()?;
    assert!(
        (loss - golden).abs() <= tolerance * golden.abs().max(1.0),
        "{name}: the loss is {loss}, Keras has {golden}"
    );
    let after = trainer.predict_all(&x)?;
    let golden = several(&expected, "after")?;
    let what = format!("{name}: after a step, output");
    near(&after, &golden, &what, tolerance)
}

/// One test, so that the models share a start of TensorFlow.
#[test]
fn models_compute_and_train_as_in_keras_2() -> Result<()> {
    let eager = EagerContext::new()?;
    for name in ["words", "sequences", "image", "nested", "frames"] {
        compare(&eager, &format!("{name}.h5"))?;
    }
    Ok(())
}

/// Layers have the policies of the file, and float16 rounds: a training scales the loss, as there.
#[test]
fn policies_of_keras_2_are_read() -> Result<()> {
    let eager = EagerContext::new()?;
    compare_within(&eager, "mixed.h5", 1e-2)?;
    compare_within(&eager, "mixed.keras", 1e-2)
}

/// The same models in the format `.keras`.
#[test]
fn archives_of_keras_2_are_read() -> Result<()> {
    let eager = EagerContext::new()?;
    compare(&eager, "sequences.keras")?;
    compare(&eager, "nested.keras")?;
    compare(&eager, "frames.keras")
}

#[test]
fn all_layers_that_are_not_known_are_listed() -> Result<()> {
    let weights = Weights::new(&EagerContext::new()?, 1);
    let error = Model::from_keras(&weights, path("lambdas.h5")?).expect_err("unknown layers");
    let text = error.to_string();
    for part in [
        "3 of its layers",
        "lambdas.h5",
        "'tf.nn.relu' (TFOpLambda)",
        "'tf.math.multiply' (TFOpLambda)",
        "'lambda' (Lambda)",
    ] {
        assert!(text.contains(part), "no {part}: {text}");
    }
    Ok(())
}

/// `Model::load_weights` takes them by the order of the layers, from a file of weights and from one of a
/// whole model; a model of other layers is refused and stays as it is.
#[test]
fn weights_of_keras_2_are_loaded() -> Result<()> {
    let eager = EagerContext::new()?;
    weights_of(&eager, "mixed")?;
    let model = weights_of(&eager, "nested")?;
    let first = values(&model)?;
    let other = model.load_weights(path("image.h5")?);
    let other = other.expect_err("weights of another model").to_string();
    assert!(
        other.contains("image.h5") && other.contains("layers"),
        "{other}"
    );
    assert_eq!(values(&model)?, first);
    let alone = read(&eager, "nested_weights.h5").expect_err("no model");
    let alone = alone.to_string();
    assert!(alone.contains("weights alone"), "{alone}");
    Ok(())
}

fn read(eager: &EagerContext, name: &str) -> Result<Model> {
    Model::from_keras(&Weights::new(eager, 1), path(name)?)
}

fn values(model: &Model) -> Result<Vec<Vec<f32>>> {
    let all = model.variables().iter();
    all.map(|one| one.to_tensor()?.to_vec::<f32>()).collect()
}

/// Reads a model, takes its weights away and loads them.
fn weights_of(eager: &EagerContext, name: &str) -> Result<Model> {
    let model = read(eager, &format!("{name}.h5"))?;
    let first = values(&model)?;
    for file in [format!("{name}_weights.h5"), format!("{name}.h5")] {
        for variable in model.variables() {
            let zeros = Tensor::zeros(variable.dtype(), variable.shape().dims().unwrap_or(&[]))?;
            variable.assign(eager, &zeros)?;
        }
        assert_ne!(values(&model)?, first);
        model.load_weights(path(&file)?)?;
        assert_eq!(values(&model)?, first, "{file}");
    }
    Ok(model)
}

/// What Keras 3 computes in another way is not written for it.
#[test]
fn a_function_of_keras_2_is_not_saved_for_keras_3() -> Result<()> {
    let weights = Weights::new(&EagerContext::new()?, 1);
    let model = Model::from_keras(&weights, path("words.h5")?)?;
    let folder = env::var("TEST_TMPDIR").unwrap_or_else(|_| "/tmp".to_owned());
    let error = model.save_keras(Path::new(&folder).join("words.keras"));
    let error = error.expect_err("hard_sigmoid of Keras 2").to_string();
    assert!(
        error.contains("1 of its layers") && error.contains("hard_sigmoid"),
        "{error}"
    );
    Ok(())
}

#[test]
fn damaged_files_of_keras_2_are_errors() -> Result<()> {
    let bytes = std::fs::read(path("words.h5")?).expect("a file");
    damage(&EagerContext::new()?, &bytes, 200);
    Ok(())
}
