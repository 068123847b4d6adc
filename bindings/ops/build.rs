//! Generates the op wrappers from TensorFlow's registry with the generator of this repository.
//!
//! Needs a Python with `tensorflow`, `jinja2` and `absl-py`: `TFP_PYTHON`, the `python3` of
//! `VIRTUAL_ENV`, `python3` or `python`. `TFP_OP_LIST` names a serialized OpList to use in place of
//! that TensorFlow's own ops. Nothing is downloaded, and TensorFlow is not imported.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

const MODULES: &str = "tensorflow jinja2 absl-py";
const FIND: &str = "import sys, importlib.util as u, google.protobuf, jinja2, absl.app; \
    sys.path = [p for p in sys.path if p]; \
    s = u.find_spec('tensorflow'); \
    print(next(iter(s.submodule_search_locations)) if s else '')";

fn main() -> ExitCode {
    match generate() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tfp_ops: {error}");
            ExitCode::FAILURE
        }
    }
}

fn generate() -> Result<(), Box<dyn Error>> {
    for name in ["TFP_PYTHON", "TFP_OP_LIST", "VIRTUAL_ENV", "PATH"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("no CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    let root = here
        .parent()
        .and_then(Path::parent)
        .ok_or("the crate is not in its repository")?;
    for path in ["tools/opgen", "tools/codegen", "tools/workspace/tensorflow"] {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    let (python, tensorflow) = python_and_tensorflow()?;
    let library = tensorflow.join("libtensorflow_cc.so.2");
    let op_list = match env::var_os("TFP_OP_LIST") {
        Some(file) => {
            println!("cargo::rerun-if-changed={}", Path::new(&file).display());
            PathBuf::from(file)
        }
        None => {
            println!("cargo::rerun-if-changed={}", library.display());
            let file = out.join("op_list.pb");
            let mut command = Command::new(&python);
            command
                .arg(root.join("tools/workspace/tensorflow/op_list.py"))
                .arg(format!("--library={}", library.display()))
                .arg(format!("--out={}", file.display()))
                .env("TF_CPP_MIN_LOG_LEVEL", "2");
            run(&mut command, "TensorFlow's ops can't be listed")?;
            file
        }
    };
    let mut command = Command::new(&python);
    command
        .current_dir(root)
        .env("PYTHONPATH", root)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(["-m", "tools.opgen.main"])
        .arg(format!("--op_list={}", op_list.display()))
        .arg(format!("--out={}", out.display()))
        .arg(tensorflow);
    run(&mut command, "the generator failed")?;
    Ok(())
}

/// Returns the first Python that has what the generator imports, and the folder of its TensorFlow.
fn python_and_tensorflow() -> Result<(OsString, PathBuf), Box<dyn Error>> {
    let mut tried = String::new();
    for python in pythons() {
        let name = python.to_string_lossy().into_owned();
        match run(Command::new(&python).args(["-c", FIND]), "failed") {
            Ok(folder) if folder.is_empty() => {
                tried.push_str(&format!("\n  {name}: has no package tensorflow"));
            }
            Ok(folder) => return Ok((python, folder.into())),
            Err(why) => {
                let last = why.lines().next_back().unwrap_or("failed").to_owned();
                tried.push_str(&format!("\n  {name}: {last}"));
            }
        }
    }
    Err(format!(
        "no Python with the packages {MODULES}; tried:{tried}\n\
         install them, or set TFP_PYTHON to a Python that has them"
    )
    .into())
}

fn pythons() -> Vec<OsString> {
    if let Some(python) = env::var_os("TFP_PYTHON") {
        return vec![python];
    }
    let virtual_env =
        env::var_os("VIRTUAL_ENV").map(|root| Path::new(&root).join("bin/python3").into());
    virtual_env
        .into_iter()
        .chain(["python3".into(), "python".into()])
        .collect()
}

/// Runs a program; returns what it printed, or a text that says what failed and its errors.
fn run(command: &mut Command, what: &str) -> Result<String, String> {
    let output: Output = command
        .output()
        .map_err(|error| format!("{what}: {:?} can't be run: {error}", command.get_program()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(format!("{what}:\n{}", text.trim()))
}
