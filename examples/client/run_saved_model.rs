//! Calls a SavedModel that Python made: lists its signatures, then calls one with a vector of
//! numbers for its only argument.
//!
//! `run_saved_model FOLDER serving_default 1.5 2.5`

use std::error::Error;
use std::process::ExitCode;

use tfp_core::{SavedModel, SessionOptions, Tensor};

const USAGE: &str = "usage: run_saved_model FOLDER SIGNATURE NUMBER...
Lists the signatures of the model and calls one with the numbers, as a row of float32.";

fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [folder, signature, numbers @ ..] = arguments else {
        return Err(USAGE.into());
    };
    let model = SavedModel::load(folder, &["serve"], &SessionOptions::default())?;
    for (name, signature) in &model.signatures {
        let inputs: Vec<_> = signature.inputs.keys().cloned().collect();
        let outputs: Vec<_> = signature.outputs.keys().cloned().collect();
        println!(
            "{name}: ({}) -> ({})",
            inputs.join(", "),
            outputs.join(", ")
        );
    }
    let Some(input) = model.signature(signature)?.inputs.keys().next() else {
        return Err(format!("signature {signature} has no input").into());
    };
    let numbers: Vec<f32> = numbers
        .iter()
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    let row = [1, numbers.len() as i64];
    let results = model.call(
        signature,
        &[(input.as_str(), &Tensor::from_vec(numbers, &row)?)],
    )?;
    for (name, tensor) in results {
        println!("{name} = {:?}", tensor.as_slice::<f32>()?);
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--help") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("run_saved_model: {error}");
            ExitCode::FAILURE
        }
    }
}
