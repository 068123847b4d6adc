//! Functions by name.

use std::ffi::{CStr, c_char, c_void};
use std::path::{Path, PathBuf};

use crate::dl;
use crate::error::Error;

/// The library of kernels, tensors and statuses.
pub const FRAMEWORK_LIBRARY: &str = "libtensorflow_framework.so.2";
/// The library of graphs, sessions and eager execution: in a wheel, in a C release.
pub const CC_LIBRARIES: [&str; 2] = ["libtensorflow_cc.so.2", "libtensorflow.so.2"];

/// Something that knows the addresses of TensorFlow's functions.
///
/// # Safety
/// `address` returns null or the address of the C function of that name in TensorFlow, which stays
/// valid until the process ends.
pub unsafe trait Lookup {
    /// Returns the address of a function; null for none.
    fn address(&self, name: &CStr) -> *mut c_void;

    /// Says where this looks, for error messages.
    fn place(&self) -> String;
}

/// The names under which the dynamic linker knows TensorFlow's libraries in a Python process.
const LOADED: [&CStr; 2] = [c"libtensorflow_framework.so.2", c"libtensorflow_cc.so.2"];

/// The running process: what TensorFlow, already loaded, makes visible to all, as its newer wheels
/// do, or keeps to itself in libraries that are found by their names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Process;

// SAFETY: TensorFlow's names start with TF_, TFE_ or TSL_, and its libraries are never unloaded.
unsafe impl Lookup for Process {
    fn address(&self, name: &CStr) -> *mut c_void {
        let visible = dl::process_symbol(name);
        if !visible.is_null() {
            return visible;
        }
        let own = LOADED.iter().filter_map(|library| dl::loaded(library));
        own.map(|library| dl::symbol(library, name))
            .find(|address| !address.is_null())
            .unwrap_or(std::ptr::null_mut())
    }

    fn place(&self) -> String {
        "the process".to_owned()
    }
}

/// The two libraries of an installation, opened for as long as the process runs.
#[derive(Clone, Debug)]
pub struct Libraries {
    folder: PathBuf,
    handles: [dl::Handle; 2],
}

impl Libraries {
    /// Opens both libraries from one folder: the framework first, because the other needs it.
    ///
    /// # Errors
    /// [`Error::MissingLibrary`] when the folder lacks one, [`Error::Open`] when the dynamic linker
    /// refuses one.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let [framework, cc] = Self::files(folder)?;
        let open = |library: PathBuf| {
            dl::open(library.as_os_str()).map_err(|reason| Error::Open { library, reason })
        };
        Ok(Self {
            folder: folder.to_owned(),
            handles: [open(framework)?, open(cc)?],
        })
    }

    /// Returns the paths of the two libraries in a folder: framework, then graph and eager.
    ///
    /// # Errors
    /// [`Error::MissingLibrary`] when the folder lacks one.
    pub fn files(folder: &Path) -> Result<[PathBuf; 2], Error> {
        let missing = |names: &[&str]| Error::MissingLibrary {
            folder: folder.to_owned(),
            names: names.iter().map(|&name| name.to_owned()).collect(),
        };
        let framework = folder.join(FRAMEWORK_LIBRARY);
        if !framework.is_file() {
            return Err(missing(&[FRAMEWORK_LIBRARY]));
        }
        let cc = CC_LIBRARIES
            .iter()
            .map(|name| folder.join(name))
            .find(|path| path.is_file());
        Ok([framework, cc.ok_or_else(|| missing(&CC_LIBRARIES))?])
    }

    /// Returns the folder of the libraries.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

// SAFETY: the handles are TensorFlow's libraries, and nothing closes them.
unsafe impl Lookup for Libraries {
    fn address(&self, name: &CStr) -> *mut c_void {
        let found = self.handles.iter().map(|&h| dl::symbol(h, name));
        found
            .into_iter()
            .find(|p| !p.is_null())
            .unwrap_or(std::ptr::null_mut())
    }

    fn place(&self) -> String {
        self.folder.display().to_string()
    }
}

/// A function that a group of bindings wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name in the symbol table.
    pub name: &'static CStr,
    /// Whether the group is useless without it.
    pub required: bool,
}

impl Symbol {
    /// A function that must exist.
    #[must_use]
    pub const fn required(name: &'static CStr) -> Self {
        Self {
            name,
            required: true,
        }
    }

    /// A function that some versions of TensorFlow lack.
    #[must_use]
    pub const fn optional(name: &'static CStr) -> Self {
        Self {
            name,
            required: false,
        }
    }
}

/// Resolves all functions of a header.
///
/// The result has an address per symbol, in order; only those of optional functions can be null.
///
/// # Errors
/// [`Error::MissingSymbols`] with every required function that does not exist.
pub fn resolve<const N: usize>(
    lookup: &dyn Lookup,
    header: &'static str,
    symbols: &[Symbol; N],
) -> Result<[*mut c_void; N], Error> {
    let found = symbols.map(|symbol| lookup.address(symbol.name));
    let missing: Vec<_> = symbols
        .iter()
        .zip(&found)
        .filter(|(symbol, address)| symbol.required && address.is_null())
        .map(|(symbol, _)| (header, symbol.name.to_str().unwrap_or("?")))
        .collect();
    if missing.is_empty() {
        return Ok(found);
    }
    Err(Error::MissingSymbols {
        symbols: missing,
        searched: lookup.place(),
    })
}

/// Returns the functions of a header that do not exist, required or not.
#[must_use]
pub fn missing(lookup: &dyn Lookup, symbols: &[Symbol]) -> Vec<&'static CStr> {
    let names = symbols.iter().map(|symbol| symbol.name);
    names
        .filter(|name| lookup.address(name).is_null())
        .collect()
}

/// Joins the errors of several groups into one, so that one message names everything.
///
/// # Errors
/// The joined [`Error::MissingSymbols`], or the first error of another kind.
pub fn check<'a>(errors: impl IntoIterator<Item = Option<&'a Error>>) -> Result<(), Error> {
    let mut all = Vec::new();
    let mut place = String::new();
    for error in errors.into_iter().flatten() {
        let Error::MissingSymbols { symbols, searched } = error else {
            return Err(error.clone());
        };
        all.extend_from_slice(symbols);
        place.clone_from(searched);
    }
    if all.is_empty() {
        return Ok(());
    }
    Err(Error::MissingSymbols {
        symbols: all,
        searched: place,
    })
}

/// Checks what `TF_Version` returns against the oldest supported version of one major version. Where
/// that function is missing nothing is known, and nothing refused.
///
/// # Errors
/// [`Error::Version`] for another major version, an older minor one, or text that is not a version.
pub fn check_version(lookup: &dyn Lookup, minimum: (u32, u32)) -> Result<(), Error> {
    let address = lookup.address(c"TF_Version");
    if address.is_null() {
        return Ok(());
    }
    // SAFETY: by the trait's contract this is TensorFlow's function, which takes nothing and returns a
    // constant C string.
    let version = unsafe {
        let version: unsafe extern "C" fn() -> *const c_char = std::mem::transmute(address);
        CStr::from_ptr(version())
    };
    compare_version(&version.to_string_lossy(), minimum, lookup)
}

/// Compares the text of a version with the oldest supported one.
pub(crate) fn compare_version(
    version: &str,
    minimum: (u32, u32),
    lookup: &dyn Lookup,
) -> Result<(), Error> {
    let mut parts = version.split(['.', '-']).map(str::parse::<u32>);
    if let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next())
        && major == minimum.0
        && minor >= minimum.1
    {
        return Ok(());
    }
    let (major, minor) = minimum;
    Err(Error::Version {
        found: version.to_owned(),
        expected: format!("{major}.{minor} or later, below {}.0", major + 1),
        searched: lookup.place(),
    })
}
