//! Loads Vulkan's drivers so that they use their own libraries, before Vulkan's loader does.
//!
//! TensorFlow makes all of its symbols global, and an LLVM is among them. A driver that links another LLVM, as
//! those of Mesa do, would call TensorFlow's and crash. The loader finds each driver loaded and keeps its scope.

use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Once;

unsafe extern "C" {
    fn dlopen(file: *const c_char, mode: c_int) -> *mut c_void;
}

const RTLD_NOW: c_int = 2;
/// glibc's: the library and what it links come before the symbols of the process.
const RTLD_DEEPBIND: c_int = 8;

/// Where drivers state themselves, below the folders of configuration and data.
const MANIFESTS: &str = "vulkan/icd.d";

/// Loads all drivers that the loader would. Only the first call has an effect.
pub fn load() {
    static LOADED: Once = Once::new();
    LOADED.call_once(|| {
        for manifest in manifests(|name| std::env::var_os(name)) {
            let text = std::fs::read_to_string(&manifest);
            let library = text.ok().and_then(|text| library(&manifest, &text));
            let Some(library) = library.and_then(|path| CString::new(path.as_bytes()).ok()) else {
                continue;
            };
            // SAFETY: the name is a C string. The loader would run the same library's initializers. A library
            // of another processor is an error of dlopen, which leaves nothing behind.
            unsafe { dlopen(library.as_ptr(), RTLD_NOW | RTLD_DEEPBIND) };
        }
    });
}

/// The manifests of all drivers, in the loader's order.
fn manifests(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let named = |value: &OsString| std::env::split_paths(value).collect::<Vec<_>>();
    if let Some(files) = set("VK_DRIVER_FILES").or_else(|| set("VK_ICD_FILENAMES")) {
        return named(&files).iter().flat_map(|path| below(path)).collect();
    }
    let home = |rest| set("HOME").map(|home| Path::new(&home).join(rest));
    let or = |name, usual: &str| named(&set(name).unwrap_or_else(|| usual.into()));
    let mut folders = Vec::new();
    folders.extend(
        set("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .or_else(|| home(".config")),
    );
    folders.extend(or("XDG_CONFIG_DIRS", "/etc/xdg"));
    folders.push("/etc".into());
    folders.extend(
        set("XDG_DATA_HOME")
            .map(PathBuf::from)
            .or_else(|| home(".local/share")),
    );
    folders.extend(or("XDG_DATA_DIRS", "/usr/local/share:/usr/share"));
    let added = set("VK_ADD_DRIVER_FILES").map_or_else(Vec::new, |files| named(&files));
    let folders = folders.into_iter().map(|folder| folder.join(MANIFESTS));
    let all = added.into_iter().chain(folders);
    all.flat_map(|path| below(&path)).collect()
}

/// The manifests of a folder, or the file itself.
fn below(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(path) else {
        return vec![path.to_owned()];
    };
    let mut found: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| path.extension() == Some(OsStr::new("json")));
    found.sort();
    found
}

/// The library that a manifest names: a path, or a name for the search of libraries.
fn library(manifest: &Path, text: &str) -> Option<OsString> {
    let (_, rest) = text.split_once("\"library_path\"")?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    let (name, _) = rest.strip_prefix('"')?.split_once('"')?;
    // A path with an escape is not one that a driver's package has.
    if name.is_empty() || name.contains('\\') {
        return None;
    }
    if !name.contains('/') {
        return Some(name.into());
    }
    let folder = std::path::absolute(manifest).ok()?;
    Some(folder.parent()?.join(name).into_os_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_names_its_library() {
        let read = |name: &str| {
            let text =
                format!("{{\"ICD\": {{\"api_version\": \"1.3\", \"library_path\" : \"{name}\"}}}}");
            library(Path::new("/a/b/icd.json"), &text)
        };
        assert_eq!(read("libdriver.so").unwrap(), "libdriver.so");
        assert_eq!(
            read("/usr/lib/libdriver.so").unwrap(),
            "/usr/lib/libdriver.so"
        );
        assert_eq!(read("./libdriver.so").unwrap(), "/a/b/./libdriver.so");
        assert_eq!(read(""), None);
        assert_eq!(read("a\\u0041"), None);
        assert_eq!(library(Path::new("/a"), "not JSON"), None);
    }

    #[test]
    fn the_variables_of_the_loader_decide() {
        let found =
            manifests(|name| (name == "VK_ICD_FILENAMES").then(|| "/no/a.json:/no/b.json".into()));
        assert_eq!(found, [Path::new("/no/a.json"), Path::new("/no/b.json")]);
        let found = manifests(|name| match name {
            "VK_DRIVER_FILES" => Some("/no/c.json".into()),
            _ => Some("/no/a.json".into()),
        });
        assert_eq!(found, [Path::new("/no/c.json")]);
        let found = manifests(|name| (name == "XDG_DATA_DIRS").then(|| "/no/data".into()));
        assert!(
            found.contains(&PathBuf::from("/no/data/vulkan/icd.d")),
            "{found:?}"
        );
    }
}
