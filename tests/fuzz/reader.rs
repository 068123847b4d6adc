//! Reads files of strangers with the client: a path a line on standard input, an outcome a line on
//! standard output. `checkpoint PREFIX` and `weights FILE` read every tensor; `model FOLDER` loads a
//! SavedModel and looks at its signatures, without running any; `keras FILE` makes a model of Keras'
//! description and weights; `records FILE` reads records and what examples they are.

use std::io::{BufRead, Write};

use tfp::data::{Example, RecordReader};
use tfp::nn::{self, Weights};
use tfp::weights::TensorFile;
use tfp::{CheckpointReader, EagerContext, Model, Result};

fn checkpoint(prefix: &str) -> Result<usize> {
    let reader = CheckpointReader::open(prefix)?;
    let names: Vec<&str> = reader.entries().map(|(name, _, _)| name).collect();
    let mut count = 0;
    // Each by itself, so that one that is damaged does not hide the others.
    let mut problem = None;
    for name in names {
        match reader.read(name) {
            Ok(tensor) => count += tensor.shape().rank().unwrap_or(0) + 1,
            Err(error) => problem = Some(error),
        }
    }
    problem.map_or(Ok(count), Err)
}

fn model(folder: &str) -> Result<usize> {
    // A context of its own: it keeps the functions of each model.
    let context = EagerContext::new()?;
    let model = Model::load(&context, folder, &["serve"])?;
    let mut count = 0;
    for name in model.signatures() {
        count += model.signature(&name)?.inputs().len() + 1;
    }
    Ok(count)
}

fn weights(path: &str) -> Result<usize> {
    let file = TensorFile::open(path)?;
    let mut count = file.metadata().len();
    let mut problem = None;
    for name in file.names() {
        match file.read(name) {
            Ok(tensor) => count += tensor.shape().rank().unwrap_or(0) + 1,
            Err(error) => problem = Some(error),
        }
    }
    problem.map_or(Ok(count), Err)
}

fn keras(path: &str) -> Result<usize> {
    let weights = Weights::new(&EagerContext::new()?, 1);
    Ok(nn::Model::from_keras(&weights, path)?.variables().len())
}

fn records(path: &str) -> Result<usize> {
    let mut count = 0;
    for record in RecordReader::open(path)? {
        count += Example::parse(&record?)?.features().count();
    }
    Ok(count)
}

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let found = match line.split_once(' ') {
            Some(("checkpoint", path)) => checkpoint(path),
            Some(("model", path)) => model(path),
            Some(("keras", path)) => keras(path),
            Some(("weights", path)) => weights(path),
            Some(("records", path)) => records(path),
            _ => break,
        };
        match found {
            Ok(count) => writeln!(out, "taken {count}")?,
            // An error of several lines stays one line.
            Err(error) => writeln!(out, "refused {:?}", error.to_string())?,
        }
        out.flush()?;
    }
    Ok(())
}
