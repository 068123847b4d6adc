//! Reads and writes Keras' files, for a test in Python.
//!
//! `resave FOLDER`: each `NAME.keras` is read and written as `NAME.again.keras`, and each `NAME.h5` as
//! `NAME.h5.again.keras`.
//! `make FOLDER`: writes models made here, what they are given, and what they compute.
//! `train FOLDER`: writes models in training, a batch, and what one more step makes of them.
//! `callbacks FOLDER`: trains with callbacks, whose files are in `rust`.
//! `policies FOLDER`: models under dtype policies; `policies.rs` says which.
//! `check FOLDER`: reads models that `make` wrote and Python wrote again, and compares.

mod callbacks;
mod categories;
mod models;
mod policies;

use std::path::{Path, PathBuf};
use std::{env, fs, process};

use tfp::nn::layer::Pass;
use tfp::nn::optimizer::{
    Adadelta, Adagrad, Adam, Adamax, Clip, Ftrl, Lion, RmsProp, Rule, Schedule, Sgd,
};
use tfp::nn::training::{Head, Plan, Trainer};
use tfp::nn::{Loss, Metric, Model, Weights};
use tfp::{AnyValue, EagerContext, Error, Graph, Mode as _, Tensor};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["resave", folder] => resave(Path::new(folder)),
        ["make", folder] => make(Path::new(folder)),
        ["train", folder] => train(Path::new(folder)),
        ["callbacks", folder] => callbacks::run(Path::new(folder)),
        ["policies", folder] => policies::run(Path::new(folder)),
        ["check", folder] => check(Path::new(folder)),
        _ => Err(Error::argument(
            "expected resave, make, train, callbacks, policies or check, and a folder",
        )
        .into()),
    };
    if let Err(error) = done {
        eprintln!("{error}");
        process::exit(1);
    }
}

/// The files of a folder with an ending, without it.
fn names(folder: &Path, end: &str) -> Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path().display().to_string();
        if let Some(name) = path.strip_suffix(end)
            && !name.ends_with(".again")
        {
            names.push(PathBuf::from(name));
        }
    }
    names.sort();
    Ok(names)
}

fn with(path: &Path, end: &str) -> PathBuf {
    PathBuf::from(format!("{}{end}", path.display()))
}

fn resave(folder: &Path) -> Result<()> {
    let eager = EagerContext::new()?;
    for name in names(folder, ".keras")? {
        let model = Model::from_keras(&Weights::new(&eager, 1), with(&name, ".keras"))?;
        model.save_keras(with(&name, ".again.keras"))?;
    }
    for name in names(folder, ".h5")? {
        let model = Model::from_keras(&Weights::new(&eager, 1), with(&name, ".h5"))?;
        model.save_keras(with(&name, ".h5.again.keras"))?;
    }
    Ok(())
}

fn write(path: &Path, tensor: &Tensor) -> Result<()> {
    Ok(fs::write(path, tensor.as_bytes()?)?)
}

/// Computes a model's outputs for the inputs of a folder's files.
fn outputs(eager: &EagerContext, model: &Model, x: &[Tensor]) -> Result<Vec<Tensor>> {
    let cx = eager.any();
    let x = x.iter().map(|x| Ok(AnyValue::from(eager.handle(x)?)));
    let x = x.collect::<tfp::Result<Vec<AnyValue>>>()?;
    let y = model.call(&Pass::inference(&cx), &x)?;
    let y = y.iter().map(|y| y.handle()?.to_tensor());
    Ok(y.collect::<tfp::Result<_>>()?)
}

fn make(folder: &Path) -> Result<()> {
    let eager = EagerContext::new()?;
    for (name, make) in models::ALL {
        let weights = Weights::new(&eager, 7);
        let model = make(&weights).map_err(|error| Error::argument(format!("{name}: {error}")))?;
        for variable in model.variables() {
            // Values that differ from the initial ones, many of which are zero or one.
            let value = variable.to_tensor()?;
            let count = value.as_slice::<f32>()?.len();
            let more: Vec<f32> = (0..count)
                .map(|at| 0.01 * (at as f32 * 0.7).sin().abs())
                .collect();
            variable.assign_add(&eager, &Tensor::from_vec(more, value.dims())?)?;
        }
        let x = models::inputs(&model)?;
        let y = outputs(&eager, &model, &x)?;
        for (kind, tensors) in [("x", &x), ("y", &y)] {
            for (index, tensor) in tensors.iter().enumerate() {
                write(&folder.join(format!("{name}.{kind}{index}")), tensor)?;
            }
        }
        let path = folder.join(format!("{name}.keras"));
        model.save_weights(folder.join(format!("{name}.weights.h5")))?;
        model
            .save_keras(&path)
            .map_err(|error| Error::argument(format!("{name}: {error}")))?;
        let shapes: Vec<String> = x.iter().map(|x| format!("{:?}", x.dims())).collect();
        fs::write(
            folder.join(format!("{name}.shapes")),
            format!("[{}]", shapes.join(", ")),
        )?;
    }
    Ok(())
}

fn train(folder: &Path) -> Result<()> {
    let schedule = Schedule::ExponentialDecay {
        initial: 0.05,
        steps: 2,
        rate: 0.5,
        staircase: false,
    };
    let nesterov = Sgd {
        momentum: 0.9,
        nesterov: true,
    };
    let centered = RmsProp {
        centered: true,
        momentum: 0.5,
        ..RmsProp::default()
    };
    let amsgrad = Adam {
        amsgrad: true,
        ..Adam::default()
    };
    train_by(folder, "sgd", Sgd::default(), schedule.clone(), Clip::None)?;
    train_by(folder, "nesterov", nesterov, 0.03.into(), Clip::Value(0.01))?;
    train_by(
        folder,
        "adam",
        Adam::default(),
        0.02.into(),
        Clip::GlobalNorm(0.1),
    )?;
    train_by(folder, "adamw", Adam::w(), schedule, Clip::None)?;
    train_by(folder, "amsgrad", amsgrad, 0.02.into(), Clip::Norm(0.2))?;
    train_by(folder, "adamax", Adamax::default(), 0.02.into(), Clip::None)?;
    train_by(folder, "rmsprop", centered, 0.02.into(), Clip::None)?;
    train_by(
        folder,
        "adagrad",
        Adagrad::default(),
        0.1.into(),
        Clip::None,
    )?;
    train_by(
        folder,
        "adadelta",
        Adadelta::default(),
        0.5.into(),
        Clip::None,
    )?;
    train_by(folder, "ftrl", Ftrl::default(), 0.1.into(), Clip::None)?;
    train_by(folder, "lion", Lion::default(), 0.01.into(), Clip::None)
}

fn train_by<R: Rule>(folder: &Path, name: &str, rule: R, rate: Schedule, clip: Clip) -> Result<()> {
    // Layers of branches that Keras has in another order than they are made here.
    let graph = Graph::new()?;
    let model = models::trained(&Weights::new(&graph, 3))?;
    let x = models::inputs(&model)?;
    let truth = |width: i64| {
        let numbers = (0..3 * width).map(|at| (at as f32 * 0.9).cos()).collect();
        Tensor::from_vec(numbers, &[3, width])
    };
    let truth = vec![truth(2)?, truth(2)?];
    let mut plan = Plan::new(Loss::MeanSquaredError, rule)
        .rate(rate)
        .head("f", Head::new(Loss::Huber { delta: 0.3 }).weight(0.5))
        .head(
            "e",
            Head::new(Loss::MeanSquaredError).metric(Metric::Mean(Loss::MeanAbsoluteError)),
        );
    plan.optimizer = plan.optimizer.clip(clip);
    let mut trainer = Trainer::new(model, plan)?;
    for _ in 0..3 {
        trainer.train_on(&x, &truth)?;
    }
    if name == "adam" {
        trainer.set_rate(0.01);
    }
    trainer.save_keras(folder.join(format!("{name}.keras")))?;
    let loss = trainer.train_on(&x, &truth)?;
    trainer.save_keras(folder.join(format!("{name}.after.keras")))?;
    fs::write(folder.join(format!("{name}.loss")), loss.to_string())?;
    for (kind, tensors) in [("x", &x), ("truth", &truth)] {
        for (index, tensor) in tensors.iter().enumerate() {
            write(&folder.join(format!("{name}.{kind}{index}")), tensor)?;
        }
    }
    Ok(())
}

fn y_count(model: &Model) -> usize {
    model.outputs().len()
}

fn check(folder: &Path) -> Result<()> {
    let eager = EagerContext::new()?;
    for (name, make) in models::ALL {
        let first = Model::from_keras(
            &Weights::new(&eager, 1),
            folder.join(format!("{name}.keras")),
        )?;
        let made = make(&Weights::new(&eager, 7))?;
        let again = folder.join(format!("{name}.again.keras"));
        let again = Model::from_keras(&Weights::new(&eager, 1), again)?;
        assert_eq!(first.variables().len(), made.variables().len(), "{name}");
        assert_eq!(first.trainables().len(), made.trainables().len(), "{name}");
        assert_eq!(first.trainables().len(), again.trainables().len(), "{name}");
        assert_eq!(first.variables().len(), again.variables().len(), "{name}");
        let named = |model: &Model| -> Result<Vec<(String, Vec<u8>)>> {
            let mut all = Vec::new();
            for variable in model.variables() {
                let value = variable.to_tensor()?;
                all.push((variable.name().to_owned(), value.as_bytes()?.to_vec()));
            }
            all.sort();
            Ok(all)
        };
        assert_eq!(named(&first)?, named(&again)?, "{name}");
        // The weights that Python wrote, alone.
        made.load_weights(folder.join(format!("{name}.again.weights.h5")))?;
        let mut values: Vec<Vec<u8>> = Vec::new();
        for variable in made.variables() {
            values.push(variable.to_tensor()?.as_bytes()?.to_vec());
        }
        values.sort();
        let mut expected: Vec<Vec<u8>> = named(&first)?.into_iter().map(|(_, one)| one).collect();
        expected.sort();
        assert_eq!(values, expected, "{name}");
        let x = models::inputs(&again)?;
        for (at, y) in outputs(&eager, &again, &x)?.iter().enumerate() {
            // Python has outputs with names of their own in the order of the names.
            let name_of = |model: &Model, at: usize| model.outputs()[at].name.clone();
            let found = (0..y_count(&made)).find(|&one| name_of(&made, one) == name_of(&again, at));
            let index = found.unwrap_or(at);
            let expected = fs::read(folder.join(format!("{name}.y{index}")))?;
            let expected = Tensor::from_bytes(y.dtype(), &expected, y.dims())?;
            let pairs = y.as_slice::<f32>()?.iter().zip(expected.as_slice::<f32>()?);
            for (found, expected) in pairs {
                assert!(
                    (found - expected).abs() <= 2e-5,
                    "{name}: {found}, not {expected}"
                );
            }
        }
    }
    // Weights of another model change nothing.
    let (_, make) = models::ALL[0];
    let model = make(&Weights::new(&eager, 7))?;
    let before = model.variables()[0].to_tensor()?;
    let other = folder.join("image.again.weights.h5");
    let error = model.load_weights(&other).expect_err("other weights");
    assert!(
        error.to_string().contains("image.again.weights.h5"),
        "{error}"
    );
    let after = model.variables()[0].to_tensor()?;
    assert_eq!(before.as_bytes()?, after.as_bytes()?);
    Ok(())
}
