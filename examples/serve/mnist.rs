//! Serves a crate that tf2rust made, by the same interface and without TensorFlow.
//!
//! `serve_mnist --address=127.0.0.1:8501`

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use mnist::{Inputs, Mnist};
use serve::app::Offer;
use serve::array::{Array, Data};
use serve::failure::{Failure, Status};
use serve::http::serve;
use serve::model::{Model, Signature, Spec};
use serve::options::{FLAGS, Options};

const USAGE: &str = "usage: serve_mnist [FLAG...]
Serves the model 'mnist' of examples/tf2rust until SIGTERM.
";

/// A picture has 8 x 8 pixels of one channel.
const IMAGE: [i64; 4] = [-1, 8, 8, 1];
/// A result has a probability per digit.
const DIGITS: usize = 10;

struct Digits {
    model: Mnist,
    signatures: BTreeMap<String, Signature>,
}

impl Digits {
    fn new() -> Result<Self, mnist::Error> {
        let spec = |name: &str, dims: &[i64]| Spec {
            name: name.into(),
            tensor: name.into(),
            dtype: "DT_FLOAT".into(),
            dims: Some(dims.to_vec()),
        };
        let signature = Signature {
            inputs: vec![spec("image", &IMAGE)],
            outputs: vec![spec("digit", &[-1, DIGITS as i64])],
            method: "tensorflow/serving/predict".into(),
        };
        Ok(Self {
            model: Mnist::new()?,
            signatures: [("serving_default".to_owned(), signature)].into(),
        })
    }
}

impl Model for Digits {
    fn signatures(&self) -> &BTreeMap<String, Signature> {
        &self.signatures
    }

    fn run(&self, _: &str, inputs: Vec<Array>, _: Instant) -> Result<Vec<Array>, Failure> {
        let Some(Data::F32(image)) = inputs.first().map(|input| &input.data) else {
            return Err(Failure::invalid("'image' is not given as DT_FLOAT"));
        };
        let outputs = self.model.predict(Inputs { image });
        let outputs = outputs.map_err(|error| Failure::new(Status::Internal, error.to_string()))?;
        let rows = outputs.digit.len() / DIGITS;
        Ok(vec![Array::new(
            vec![rows, DIGITS],
            Data::F32(outputs.digit.to_vec()),
        )?])
    }
}

fn run(arguments: &[String]) -> Result<String, Box<dyn Error>> {
    let mut options = Options::default();
    for flag in arguments {
        if !options.take(flag)? {
            return Err(format!("{flag}: {USAGE}\n{FLAGS}").into());
        }
    }
    let offer = Offer {
        name: "mnist".to_owned(),
        version: 1,
        model: Arc::new(Digits::new()?),
    };
    let line = serve(options, vec![offer], |address, grpc| {
        println!("http://{address}");
        if let Some(address) = grpc {
            println!("grpc://{address}");
        }
        // Whoever started this need not read it.
        let _ = std::io::stdout().flush();
    })?;
    Ok(line)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--help") {
        println!("{USAGE}\n{FLAGS}");
        return ExitCode::SUCCESS;
    }
    match run(&arguments) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("serve_mnist: {error}");
            ExitCode::FAILURE
        }
    }
}
