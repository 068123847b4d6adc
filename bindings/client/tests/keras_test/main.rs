//! Reads and writes Keras' files, for a test in Python.
//!
//! `resave FOLDER`: each `NAME.keras` is read and written as `NAME.again.keras`.
//! `make FOLDER`: writes models made here, what they are given, and what they compute.
//! `check FOLDER`: reads models that `make` wrote and Python wrote again, and compares.

mod models;

use std::path::{Path, PathBuf};
use std::{env, fs, process};

use tfp::nn::layer::Pass;
use tfp::nn::{Model, Weights};
use tfp::{AnyValue, EagerContext, Error, Mode as _, Tensor};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["resave", folder] => resave(Path::new(folder)),
        ["make", folder] => make(Path::new(folder)),
        ["check", folder] => check(Path::new(folder)),
        _ => Err(Error::argument("expected resave, make or check, and a folder").into()),
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
    Ok(())
}
