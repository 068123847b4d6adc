//! The search for an installation.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::dl;
use crate::error::{Error, Tried};
use crate::lookup::{CC_LIBRARIES, FRAMEWORK_LIBRARY, Libraries};

/// The environment variable with the folder (or folders, as in `PATH`) of TensorFlow's libraries.
pub const LIBRARY_PATH: &str = "TF_LIBRARY_PATH";
/// The environment variable with the Python whose TensorFlow is used.
pub const PYTHON: &str = "TFP_PYTHON";

const FOLDERS: [&str; 3] = ["/usr/local/lib", "/usr/lib", "/usr/lib/x86_64-linux-gnu"];

/// Prints the folder of the package without importing it, which would take seconds.
/// The working folder, which may hold a folder of the same name, is not searched.
const PACKAGE_FOLDER: &str = "import sys, importlib.util as u; \
    sys.path = [p for p in sys.path if p]; \
    s = u.find_spec('tensorflow'); \
    print(next(iter(s.submodule_search_locations)) if s else '')";

/// Where TensorFlow is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// In this process already.
    Process,
    /// In this folder, which holds both libraries.
    Folder(PathBuf),
}

/// Looks for TensorFlow in the places that the crate's page lists; opens nothing.
///
/// # Errors
/// [`Error::NotFound`] with every place that was tried.
pub fn find() -> Result<Found, Error> {
    let mut search = Search::default();
    if !dl::process_symbol(c"TF_Version").is_null()
        && !dl::process_symbol(c"TF_NewStatus").is_null()
    {
        return Ok(Found::Process);
    }
    if let Some(value) = env::var_os(LIBRARY_PATH) {
        return match search.first(env::split_paths(&value).map(as_folder)) {
            Some(folder) => Ok(Found::Folder(folder)),
            None => Err(search.not_found()),
        };
    }
    for python in pythons() {
        match package_folder(&python) {
            Ok(folder) => {
                if let Some(folder) = search.first([folder]) {
                    return Ok(Found::Folder(folder));
                }
            }
            Err(why) => search.tried.push(Tried {
                place: python.to_string_lossy().into_owned(),
                why,
            }),
        }
    }
    let program = env::current_exe()
        .ok()
        .and_then(|path| path.parent().map(Path::to_owned));
    let folders = program.into_iter().chain(FOLDERS.iter().map(PathBuf::from));
    match search.first(folders) {
        Some(folder) => Ok(Found::Folder(folder)),
        None => Err(search.not_found()),
    }
}

#[derive(Default)]
struct Search {
    tried: Vec<Tried>,
}

impl Search {
    /// Returns the first folder that holds both libraries, and notes why the others do not.
    fn first(&mut self, folders: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
        for folder in folders {
            match Libraries::files(&folder) {
                Ok(_) => return Some(folder),
                Err(error) => self.tried.push(Tried {
                    place: folder.display().to_string(),
                    why: match error {
                        Error::MissingLibrary { names, .. } => format!("no {}", names.join(" or ")),
                        other => other.to_string(),
                    },
                }),
            }
        }
        None
    }

    fn not_found(self) -> Error {
        Error::NotFound {
            libraries: vec![FRAMEWORK_LIBRARY.to_owned(), CC_LIBRARIES.join(" or ")],
            tried: self.tried,
        }
    }
}

/// A library file stands for its folder.
fn as_folder(path: PathBuf) -> PathBuf {
    match path.parent() {
        Some(parent) if path.is_file() => parent.to_owned(),
        _ => path,
    }
}

fn pythons() -> Vec<OsString> {
    if let Some(python) = env::var_os(PYTHON) {
        return vec![python];
    }
    let virtual_env =
        env::var_os("VIRTUAL_ENV").map(|root| Path::new(&root).join("bin/python3").into());
    virtual_env
        .into_iter()
        .chain(["python3".into(), "python".into()])
        .collect()
}

fn package_folder(python: &OsString) -> Result<PathBuf, String> {
    let output = Command::new(python)
        .args(["-c", PACKAGE_FOLDER])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("can't be run: {error}"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(message
            .lines()
            .next_back()
            .unwrap_or("failed")
            .trim()
            .to_owned());
    }
    match String::from_utf8_lossy(&output.stdout).trim() {
        "" => Err("has no package tensorflow".to_owned()),
        folder => Ok(folder.into()),
    }
}
