//! What can go wrong between a program and TensorFlow's libraries.

use std::fmt;
use std::path::PathBuf;

/// A place that was looked at, and what was wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The place: a folder, a file or a program.
    pub place: String,
    /// Why it gave no libraries.
    pub why: String,
}

/// TensorFlow's functions can't be had.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// No place holds the libraries.
    NotFound {
        /// The files that were looked for.
        libraries: Vec<String>,
        /// Every place that was tried, in order.
        tried: Vec<Tried>,
    },
    /// A folder lacks a library.
    MissingLibrary {
        /// The folder.
        folder: PathBuf,
        /// The file names, any of which would do.
        names: Vec<String>,
    },
    /// A library exists but can't be opened.
    Open {
        /// The file.
        library: PathBuf,
        /// The dynamic linker's message.
        reason: String,
    },
    /// Functions that are required do not exist.
    MissingSymbols {
        /// The header and name of each function.
        symbols: Vec<(&'static str, &'static str)>,
        /// Where they were looked for.
        searched: String,
    },
    /// TensorFlow is of a version that these bindings do not support.
    Version {
        /// What `TF_Version` says.
        found: String,
        /// What would do.
        expected: String,
        /// Where that TensorFlow is.
        searched: String,
    },
}

/// How many missing functions a message names.
const SHOWN: usize = 8;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { libraries, tried } => {
                write!(f, "TensorFlow not found: no {}", libraries.join(" with "))?;
                for Tried { place, why } in tried {
                    write!(f, "; {place}: {why}")?;
                }
                write!(
                    f,
                    "; set {} to the folder of the libraries",
                    crate::find::LIBRARY_PATH
                )
            }
            Self::MissingLibrary { folder, names } => {
                write!(f, "{} holds no {}", folder.display(), names.join(" or "))
            }
            Self::Open { library, reason } => {
                write!(f, "{} can't be opened: {reason}", library.display())
            }
            Self::MissingSymbols { symbols, searched } => {
                write!(f, "{searched} lacks {} required function", symbols.len())?;
                f.write_str(if symbols.len() == 1 { ": " } else { "s: " })?;
                for (i, (header, name)) in symbols.iter().take(SHOWN).enumerate() {
                    write!(f, "{}{name} ({header})", if i > 0 { ", " } else { "" })?;
                }
                match symbols.len().saturating_sub(SHOWN) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
            Self::Version {
                found,
                expected,
                searched,
            } => write!(
                f,
                "TensorFlow {found} in {searched} is not supported; expected {expected}"
            ),
        }
    }
}

impl std::error::Error for Error {}
