//! Files that replace others: written beside, flushed to the disk, then renamed, so that at every
//! moment the old or the new one is there, whole.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tfp_core::{Error, ErrorKind, Result};

use crate::room::exhausted;

/// What follows a target's name in the name of a folder beside it.
const BESIDE: &str = "_temp_";

/// An error about a file.
#[cold]
pub(crate) fn file_error(path: &Path, problem: impl Into<String>) -> Error {
    Error::new(ErrorKind::File {
        path: path.display().to_string(),
        problem: problem.into(),
    })
}

/// Reads a file.
///
/// # Errors
/// [`ErrorKind::NotFound`] when there is none, [`ErrorKind::File`] when it can't be read, and
/// [`Code::ResourceExhausted`](tfp_core::Code::ResourceExhausted) for a file of more bytes than there is
/// memory.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::new(ErrorKind::NotFound {
            what: "file",
            name: path.display().to_string(),
            place: "the file system".to_owned(),
        }),
        io::ErrorKind::OutOfMemory => exhausted(path.display()),
        _ => file_error(path, format!("it can't be read: {error}")),
    })
}

/// An error about what can't be written.
pub(crate) fn unwritten(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
    move |error| file_error(path, format!("it can't be written: {error}"))
}

/// The folder that holds a path, also of one that is a name alone.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A folder for what is to replace a target, on the same file system. It is deleted when dropped; one
/// that a dead process left is deleted when the next is made for the target.
pub(crate) struct Beside {
    path: PathBuf,
    // A folder whose lock nobody holds is a dead process's.
    _lock: File,
}

impl Beside {
    /// Makes a folder beside a target, whose own folder is made as well.
    pub(crate) fn new(target: &Path) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let parent = folder_of(target);
        fs::create_dir_all(parent).map_err(unwritten(parent))?;
        let mut start = target.file_name().unwrap_or_default().to_owned();
        start.push(BESIDE);
        delete_abandoned(parent, &start);
        loop {
            let mut name = start.clone();
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            name.push(format!("{}_{number}", std::process::id()));
            let path = parent.join(name);
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made.map_err(unwritten(&path))?,
            }
            let lock = File::open(&path).map_err(unwritten(&path))?;
            lock.lock().map_err(unwritten(&path))?;
            // Another process may have taken it for abandoned before it was locked.
            if is_same(&lock, &path) {
                return Ok(Self { path, _lock: lock });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // What is left is deleted by the next save.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn is_same(open: &File, path: &Path) -> bool {
    let (Ok(open), Ok(named)) = (open.metadata(), fs::symlink_metadata(path)) else {
        return false;
    };
    (open.dev(), open.ino()) == (named.dev(), named.ino())
}

/// Deletes folders that dead processes left: those of a name's start, digits and underscores.
fn delete_abandoned(parent: &Path, start: &OsStr) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let rest = name.as_encoded_bytes();
        let rest = rest.strip_prefix(start.as_encoded_bytes());
        let is_ours = rest.is_some_and(|rest| {
            !rest.is_empty()
                && rest
                    .iter()
                    .all(|byte| byte.is_ascii_digit() || *byte == b'_')
        });
        if !is_ours || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if let Ok(lock) = File::open(entry.path())
            && lock.try_lock().is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Flushes a file's or folder's contents to the disk.
pub(crate) fn flush(path: &Path) -> Result<()> {
    let flushed = File::open(path).and_then(|file| file.sync_all());
    match flushed {
        // Some file systems can't flush folders.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        flushed => flushed.map_err(unwritten(path)),
    }
}

/// Renames a file that is flushed, and flushes the folder that holds the new name.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(unwritten(to))?;
    flush(folder_of(to))
}

/// Writes a file, which replaces one that is there.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    replace(path, |part| write_new(part, bytes))
}

/// Writes a file part by part, which replaces one that is there.
pub(crate) fn write_by(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<()> {
    replace(path, |part| {
        let mut file = BufWriter::new(File::create(part)?);
        fill(&mut file)?;
        file.into_inner()?.sync_all()
    })
}

/// Copies a file, which replaces one that is there.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    replace(to, |part| {
        fs::copy(from, part)?;
        File::open(part)?.sync_all()
    })
}

fn replace(path: &Path, fill: impl FnOnce(&Path) -> io::Result<()>) -> Result<()> {
    // A constant name, so that the next save replaces what a dead process left.
    let mut part: OsString = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let is_link = fs::symlink_metadata(&part).is_ok_and(|part| part.is_symlink());
    let done = if is_link {
        fs::remove_file(&part)
    } else {
        Ok(())
    }
    .and_then(|()| fill(&part))
    .and_then(|()| fs::rename(&part, path));
    if done.is_err() {
        let _ = fs::remove_file(&part);
    }
    done.map_err(unwritten(path))?;
    flush(folder_of(path))
}

/// Writes and flushes a file.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Replaces a folder by one that a function fills. Of what is there, everything that `is_own` does not
/// know is kept.
///
/// The new folder is made beside and takes the old one's place in one step. Where that can't be, as
/// for the root of a file system or in a folder that can't be written, the function fills the folder
/// that is there: it must then replace file by file, and last the one that all others hang on.
pub(crate) fn replace_folder(
    folder: &Path,
    is_own: impl Fn(&OsStr) -> bool,
    fill: impl Fn(&Path) -> Result<()>,
) -> Result<()> {
    // A link stays, and what it leads to is replaced.
    let real = fs::canonicalize(folder);
    let target = real.as_deref().unwrap_or(folder);
    let Ok(old) = fs::metadata(target) else {
        let beside = Beside::new(target)?;
        let new = beside.path().join("new");
        fs::create_dir(&new).map_err(unwritten(&new))?;
        fill(&new)?;
        flush_all(&new)?;
        return rename(&new, target);
    };
    let is_root = fs::metadata(folder_of(target)).is_ok_and(|above| above.dev() != old.dev());
    let beside = if is_root {
        None
    } else {
        Beside::new(target).ok()
    };
    let Some(beside) = beside else {
        return fill(target);
    };
    let new = beside.path().join("new");
    fs::create_dir(&new)
        .and_then(|()| fs::set_permissions(&new, old.permissions()))
        .map_err(unwritten(&new))?;
    fill(&new)?;
    for entry in fs::read_dir(target).map_err(unwritten(target))? {
        let name = entry.map_err(unwritten(target))?.file_name();
        if !is_own(&name) {
            link(&target.join(&name), &new.join(&name))?;
        }
    }
    flush_all(&new)?;
    match exchange(&new, target) {
        Ok(()) => flush(folder_of(target)),
        Err(_) => {
            drop(beside);
            fill(target)
        }
    }
}

/// Makes files, links and folders appear in another place too, with their contents.
fn link(from: &Path, to: &Path) -> Result<()> {
    let kind = fs::symlink_metadata(from).map_err(unwritten(to))?;
    if !kind.is_dir() {
        if fs::symlink_metadata(to).is_ok() {
            return Ok(());
        }
        return fs::hard_link(from, to)
            .or_else(|_| fs::copy(from, to).map(|_| ()))
            .map_err(unwritten(to));
    }
    fs::create_dir_all(to)
        .and_then(|()| fs::set_permissions(to, kind.permissions()))
        .map_err(unwritten(to))?;
    for entry in fs::read_dir(from).map_err(unwritten(to))? {
        let name = entry.map_err(unwritten(to))?.file_name();
        link(&from.join(&name), &to.join(&name))?;
    }
    Ok(())
}

/// Flushes a folder with everything in it.
fn flush_all(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(unwritten(folder))? {
        let entry = entry.map_err(unwritten(folder))?;
        match entry.file_type().map_err(unwritten(folder))? {
            kind if kind.is_dir() => flush_all(&entry.path())?,
            kind if kind.is_file() => flush(&entry.path())?,
            _ => {}
        }
    }
    flush(folder)
}

/// Exchanges two paths of one file system in one step.
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use std::ffi::{CString, c_int, c_long, c_uint};
    use std::os::unix::ffi::OsStrExt as _;

    const HERE: c_int = -100;
    const EXCHANGE: c_uint = 2;
    // The number of `renameat2`, which the C library has from glibc 2.28 on alone.
    const RENAMEAT2: c_long = if cfg!(target_arch = "x86_64") {
        316
    } else {
        276
    };
    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }
    let one = CString::new(one.as_os_str().as_bytes())?;
    let other = CString::new(other.as_os_str().as_bytes())?;
    // SAFETY: the system call takes these five arguments, and both paths are C strings that live
    // during the call.
    let done = unsafe {
        syscall(
            RENAMEAT2,
            HERE,
            one.as_ptr(),
            HERE,
            other.as_ptr(),
            EXCHANGE,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
