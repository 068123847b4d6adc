//! Generates the bindings from TensorFlow's headers with the generator of this repository.
//!
//! Needs a Python with `libclang`, `jinja2` and `absl-py`: `TFP_PYTHON`, the `python3` of
//! `VIRTUAL_ENV`, `python3` or `python`. The headers are those of `TF_INCLUDE_PATH`, else those of
//! that Python's `tensorflow` package. Nothing is downloaded.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

const MODULES: &str = "libclang jinja2 absl-py";
const CHECK: &str = "import clang.cindex, jinja2, absl.app";
const INCLUDE: &str = "import sys, importlib.util as u; \
    sys.path = [p for p in sys.path if p]; \
    s = u.find_spec('tensorflow'); \
    print(next(iter(s.submodule_search_locations)) + '/include' if s else '')";

fn main() -> ExitCode {
    match generate() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tfp_sys: {error}");
            ExitCode::FAILURE
        }
    }
}

fn generate() -> Result<(), Box<dyn Error>> {
    for name in [
        "TFP_PYTHON",
        "TF_INCLUDE_PATH",
        "VIRTUAL_ENV",
        "PYTHONPATH",
        "PATH",
    ] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("no CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    let root = here
        .parent()
        .and_then(Path::parent)
        .ok_or("the crate is not in its repository")?;
    for folder in ["tools/ffigen", "tools/codegen"] {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
    }
    let (python, include) = python_and_include()?;
    println!(
        "cargo::rerun-if-changed={}",
        include.join("tensorflow/c").display()
    );
    let mut paths = vec![root.to_owned()];
    if let Some(more) = env::var_os("PYTHONPATH") {
        paths.extend(env::split_paths(&more));
    }
    let mut command = Command::new(&python);
    command
        .current_dir(root)
        .env("PYTHONPATH", env::join_paths(paths)?)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(["-m", "tools.ffigen.main"])
        .arg(format!("--include_dir={}", include.display()))
        .arg(format!("--out={}", out.display()));
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("the generator failed:\n{}", message(&output)).into());
    }
    Ok(())
}

/// Returns the first Python that has what the generator imports, and the headers to use.
fn python_and_include() -> Result<(OsString, PathBuf), Box<dyn Error>> {
    let given = env::var_os("TF_INCLUDE_PATH").map(PathBuf::from);
    if let Some(folder) = &given
        && !folder.join("tensorflow/c/c_api.h").is_file()
    {
        let folder = folder.display();
        return Err(format!("TF_INCLUDE_PATH={folder} holds no tensorflow/c/c_api.h").into());
    }
    let mut tried = String::new();
    for python in pythons() {
        let name = python.to_string_lossy().into_owned();
        match run(&python, CHECK) {
            Err(why) => tried.push_str(&format!("\n  {name}: {why}")),
            Ok(_) => {
                if let Some(folder) = given {
                    return Ok((python, folder));
                }
                match run(&python, INCLUDE).as_deref() {
                    Ok("") => tried.push_str(&format!("\n  {name}: has no package tensorflow")),
                    Ok(folder) => return Ok((python, folder.into())),
                    Err(why) => tried.push_str(&format!("\n  {name}: {why}")),
                }
            }
        }
    }
    Err(format!(
        "no Python with the packages {MODULES}, and tensorflow or TF_INCLUDE_PATH for its headers; \
         tried:{tried}\ninstall them, or set TFP_PYTHON to a Python that has them"
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

fn run(python: &OsString, code: &str) -> Result<String, String> {
    let output = Command::new(python)
        .args(["-c", code])
        .output()
        .map_err(|error| format!("can't be run: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let text = message(&output);
    Err(text.lines().next_back().unwrap_or("failed").to_owned())
}

fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}
