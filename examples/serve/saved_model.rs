//! Serves SavedModels over HTTP, with the REST interface of TensorFlow Serving.
//!
//! `serve_saved_model --model=NAME=FOLDER --address=127.0.0.1:8501`

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use serve::app::Offer;
use serve::array::{Array, Data};
use serve::failure::{Failure, Status};
use serve::http::serve;
use serve::model::{Model, Signature, Spec};
use serve::options::{FLAGS, Options};
use serve::renewed::Renewed;
use tfp::{
    Code, Config, DataType, Element, Output, RunOptions, SavedModel, SessionOptions, Tensor,
    TensorInfo,
};

const USAGE: &str = "usage: serve_saved_model --model=NAME=FOLDER... [FLAG...]
Serves SavedModels until SIGTERM. FOLDER is a SavedModel, or has versions of one in folders 1, 2, ..:
the latest is served. The address is printed once connections are taken.

  --model=NAME=FOLDER        a model; several may be given
  --threads=0                the threads of an op; 0 for TensorFlow's default";

/// A SavedModel with its tensors found.
struct Loaded {
    model: SavedModel,
    signatures: BTreeMap<String, Signature>,
    calls: BTreeMap<String, Call>,
}

/// The tensors of a signature, in the order of its arguments and results.
struct Call {
    feeds: Vec<Output>,
    fetches: Vec<Output>,
}

impl Loaded {
    fn load(folder: &Path, options: &SessionOptions) -> tfp::Result<Self> {
        let model = SavedModel::load(folder, &["serve"], options)?;
        let (mut signatures, mut calls) = (BTreeMap::new(), BTreeMap::new());
        for (name, found) in &model.signatures {
            let outputs = |list: &BTreeMap<String, TensorInfo>| {
                let outputs = list.values().map(|info| model.output(info));
                outputs.collect::<tfp::Result<Vec<_>>>()
            };
            let specs = |list: &BTreeMap<String, TensorInfo>| list.iter().map(spec).collect();
            let call = Call {
                feeds: match outputs(&found.inputs) {
                    Ok(feeds) => feeds,
                    // A sparse or composite tensor, or the signature of an initializer.
                    Err(_) => continue,
                },
                fetches: match outputs(&found.outputs) {
                    Ok(fetches) if !fetches.is_empty() => fetches,
                    _ => continue,
                },
            };
            let signature = Signature {
                inputs: specs(&found.inputs),
                outputs: specs(&found.outputs),
                method: found.method.clone(),
            };
            calls.insert(name.clone(), call);
            signatures.insert(name.clone(), signature);
        }
        Ok(Self {
            model,
            signatures,
            calls,
        })
    }
}

fn spec((name, info): (&String, &TensorInfo)) -> Spec {
    let dtype = match info.dtype.unwrap_or(DataType::from_number(0)) {
        DataType::FLOAT => "FLOAT".to_owned(),
        DataType::DOUBLE => "DOUBLE".to_owned(),
        DataType::HALF => "HALF".to_owned(),
        DataType::STRING => "STRING".to_owned(),
        other if other.is_known() => other.base_name().to_uppercase(),
        _ => "INVALID".to_owned(),
    };
    Spec {
        name: name.clone(),
        tensor: info.name.clone(),
        dtype: format!("DT_{dtype}"),
        dims: info.shape.dims().map(<[i64]>::to_vec),
    }
}

impl Model for Loaded {
    fn signatures(&self) -> &BTreeMap<String, Signature> {
        &self.signatures
    }

    fn run(
        &self,
        signature: &str,
        inputs: Vec<Array>,
        deadline: Instant,
    ) -> Result<Vec<Array>, Failure> {
        let unknown = || Failure::new(Status::Internal, format!("signature '{signature}'"));
        let call = self.calls.get(signature).ok_or_else(unknown)?;
        let tensors: Vec<Tensor> = inputs.into_iter().map(tensor).collect::<Result<_, _>>()?;
        let left = deadline.saturating_duration_since(Instant::now());
        let options = RunOptions::new().timeout(left);
        let mut run = self.model.session.run().options(&options);
        for (feed, tensor) in call.feeds.iter().zip(&tensors) {
            run = run.feed(feed, tensor);
        }
        for fetch in &call.fetches {
            run = run.fetch(fetch);
        }
        let fetched = run.go().map_err(failure)?;
        fetched.tensors.iter().map(array).collect()
    }

    fn is_lost(&self) -> bool {
        self.model.session.graph().is_broken()
    }
}

fn failure(error: tfp::Error) -> Failure {
    let status = match error.code() {
        Code::InvalidArgument | Code::OutOfRange => Status::Invalid,
        Code::Unimplemented => Status::Unimplemented,
        Code::DeadlineExceeded => Status::Deadline,
        Code::Cancelled | Code::Unavailable | Code::ResourceExhausted => Status::Unavailable,
        _ => Status::Internal,
    };
    Failure::new(status, error.to_string())
}

fn tensor(array: Array) -> Result<Tensor, Failure> {
    let dims: Vec<i64> = array.dims.iter().map(|&size| size as i64).collect();
    let tensor = match array.data {
        Data::F32(list) => Tensor::from_vec(list, &dims),
        Data::F64(list) => Tensor::from_vec(list, &dims),
        Data::I8(list) => Tensor::from_vec(list, &dims),
        Data::I16(list) => Tensor::from_vec(list, &dims),
        Data::I32(list) => Tensor::from_vec(list, &dims),
        Data::I64(list) => Tensor::from_vec(list, &dims),
        Data::U8(list) => Tensor::from_vec(list, &dims),
        Data::U16(list) => Tensor::from_vec(list, &dims),
        Data::U32(list) => Tensor::from_vec(list, &dims),
        Data::U64(list) => Tensor::from_vec(list, &dims),
        Data::Bool(list) => Tensor::from_vec(list, &dims),
        Data::Bytes(list) => Tensor::from_strings(&list, &dims),
    };
    tensor.map_err(failure)
}

fn array(tensor: &Tensor) -> Result<Array, Failure> {
    fn list<T: Element>(tensor: &Tensor) -> Result<Vec<T>, Failure> {
        tensor.to_vec().map_err(failure)
    }
    let data = match tensor.dtype() {
        DataType::FLOAT => Data::F32(list(tensor)?),
        DataType::DOUBLE => Data::F64(list(tensor)?),
        DataType::INT8 => Data::I8(list(tensor)?),
        DataType::INT16 => Data::I16(list(tensor)?),
        DataType::INT32 => Data::I32(list(tensor)?),
        DataType::INT64 => Data::I64(list(tensor)?),
        DataType::UINT8 => Data::U8(list(tensor)?),
        DataType::UINT16 => Data::U16(list(tensor)?),
        DataType::UINT32 => Data::U32(list(tensor)?),
        DataType::UINT64 => Data::U64(list(tensor)?),
        DataType::BOOL => Data::Bool(list(tensor)?),
        DataType::STRING => {
            let strings = tensor.as_strings().map_err(failure)?;
            Data::Bytes(strings.into_iter().map(<[u8]>::to_vec).collect())
        }
        other => {
            let message = format!("an output has the type {other:?}, which is not served");
            return Err(Failure::new(Status::Unimplemented, message));
        }
    };
    let dims = tensor.dims().iter().map(|&size| size as usize).collect();
    Array::new(dims, data)
}

/// Finds the latest version in a folder of versions; version 1 for a SavedModel itself.
fn latest(folder: &Path) -> Result<(u64, PathBuf), Box<dyn Error>> {
    if folder.join("saved_model.pb").is_file() {
        return Ok((1, folder.to_owned()));
    }
    let in_folder = |error| format!("'{}': {error}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(in_folder)?;
    let versions = entries.flatten().filter_map(|entry| {
        let version = entry.file_name().to_str()?.parse::<u64>().ok()?;
        let path = entry.path();
        path.join("saved_model.pb")
            .is_file()
            .then_some((version, path))
    });
    let latest = versions.max_by_key(|(version, _)| *version);
    latest.ok_or_else(|| {
        let folder = folder.display();
        format!("'{folder}' is not a SavedModel, and has no folder 1, 2, .. with one").into()
    })
}

fn run(arguments: &[String]) -> Result<String, Box<dyn Error>> {
    let (mut options, mut models, mut threads) = (Options::default(), Vec::new(), 0);
    for flag in arguments {
        let wrong = || format!("{flag}: {USAGE}\n{FLAGS}");
        if let Some(model) = flag.strip_prefix("--model=") {
            models.push(model.split_once('=').ok_or_else(wrong)?);
        } else if let Some(count) = flag.strip_prefix("--threads=") {
            threads = count.parse().map_err(|_| wrong())?;
        } else if !options.take(flag)? {
            return Err(wrong().into());
        }
    }
    if models.is_empty() {
        return Err(format!("not a model to serve\n{USAGE}\n{FLAGS}").into());
    }
    let session = SessionOptions {
        config: match threads {
            0 => Config::new(),
            count => Config::new().threads(count),
        },
        ..SessionOptions::default()
    };
    let mut offers = Vec::new();
    for (name, folder) in models {
        let (version, folder) = latest(Path::new(folder))?;
        let options = session.clone();
        let model = Arc::new(Renewed::new(move || {
            let loaded = Loaded::load(&folder, &options).map_err(|error| error.to_string())?;
            Ok(Arc::new(loaded))
        })?);
        let names: Vec<&str> = model.signatures().keys().map(String::as_str).collect();
        eprintln!("{name}, version {version}: {}", names.join(", "));
        offers.push(Offer {
            name: name.to_owned(),
            version,
            model,
        });
    }
    let line = serve(options, offers, |address, grpc| {
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
            eprintln!("serve_saved_model: {error}");
            ExitCode::FAILURE
        }
    }
}
