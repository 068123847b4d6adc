//! Tests that need no TensorFlow.

use std::ffi::{CStr, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use proptest::prelude::*;

use crate::lookup::{CC_LIBRARIES, FRAMEWORK_LIBRARY, compare_version};
use crate::{
    Error, Found, Libraries, Lookup, Process, Symbol, Tried, check, check_version, find, missing,
    resolve,
};

/// Knows the names of a list, at addresses that are never called.
struct Fake(&'static [&'static CStr]);

// SAFETY: nothing calls the addresses.
unsafe impl Lookup for Fake {
    fn address(&self, name: &CStr) -> *mut c_void {
        match self.0.iter().position(|known| *known == name) {
            Some(index) => std::ptr::without_provenance_mut(index + 1),
            None => std::ptr::null_mut(),
        }
    }

    fn place(&self) -> String {
        "a fake".to_owned()
    }
}

const SYMBOLS: [Symbol; 4] = [
    Symbol::required(c"a"),
    Symbol::optional(c"b"),
    Symbol::required(c"c"),
    Symbol::optional(c"d"),
];

/// A folder that is removed with its content.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[&str]) -> Self {
        let root = env::var_os("TEST_TMPDIR").map_or_else(env::temp_dir, PathBuf::from);
        let folder = root.join(format!("tfp_sys_loader_{}_{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        for file in files {
            fs::write(folder.join(file), "no library").expect("a temporary file");
        }
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn resolve_keeps_the_order_and_leaves_optional_ones_null() {
    let found = resolve(&Fake(&[c"c", c"a", c"d"]), "x.h", &SYMBOLS).expect("both are there");
    assert_eq!(found.map(|p| p.addr()), [2, 0, 1, 3]);
    assert_eq!(
        missing(&Fake(&[c"c"]), &SYMBOLS),
        [c"a", c"b", c"d"].to_vec()
    );
}

#[test]
fn resolve_names_every_missing_function() {
    let error = resolve(&Fake(&[c"b"]), "x.h", &SYMBOLS).expect_err("two are missing");
    assert_eq!(
        error.to_string(),
        "a fake lacks 2 required functions: a (x.h), c (x.h)"
    );
}

#[test]
fn a_library_without_any_function_is_told_in_a_line() {
    let symbols = vec![("x.h", "a"); 565];
    let searched = "here".to_owned();
    let text = Error::MissingSymbols { symbols, searched }.to_string();
    assert!(text.starts_with("here lacks 565 required functions: a (x.h), "));
    assert!(text.ends_with(", a (x.h) and 557 more"), "{text}");
}

#[test]
fn check_joins_what_is_missing() {
    let part = |header, name| Error::MissingSymbols {
        symbols: vec![(header, name)],
        searched: "here".to_owned(),
    };
    assert_eq!(check([None, None]), Ok(()));
    let (a, b) = (part("a.h", "f"), part("b.h", "g"));
    assert_eq!(
        check([Some(&a), None, Some(&b)]),
        Err(Error::MissingSymbols {
            symbols: vec![("a.h", "f"), ("b.h", "g")],
            searched: "here".to_owned(),
        })
    );
    let other = Error::Open {
        library: "l".into(),
        reason: "r".to_owned(),
    };
    assert_eq!(check([Some(&a), Some(&other)]), Err(other.clone()));
}

#[test]
fn versions() {
    assert_eq!(check_version(&Fake(&[]), (2, 16)), Ok(()));
    let check = |version| compare_version(version, (2, 16), &Fake(&[]));
    for good in ["2.16.0", "2.21.0", "2.16.0-rc1", "2.100.3"] {
        assert_eq!(check(good), Ok(()));
    }
    for bad in ["2.15.1", "1.16.0", "3.0.0", "", "2", "two.21", "v2.21.0"] {
        let error = check(bad).expect_err(bad);
        assert_eq!(
            error.to_string(),
            format!(
                "TensorFlow {bad} in a fake is not supported; expected 2.16 or later, below 3.0"
            )
        );
    }
}

proptest! {
    #[test]
    fn any_text_is_a_version_or_an_error(version in ".{0,12}") {
        let result = compare_version(&version, (2, 16), &Fake(&[]));
        let version_error = matches!(result, Err(Error::Version { .. }));
        prop_assert!(result.is_ok() || version_error);
    }

    #[test]
    fn versions_compare_as_numbers(major in 0u32..5, minor in 0u32..40, patch in 0u32..9) {
        let text = format!("{major}.{minor}.{patch}");
        let good = compare_version(&text, (2, 16), &Fake(&[])).is_ok();
        prop_assert_eq!(good, major == 2 && minor >= 16);
    }
}

#[test]
fn a_folder_without_a_library_is_named() {
    let none = Folder::new("none", &[]);
    let error = Libraries::open(&none.0).expect_err("it is empty");
    assert_eq!(
        error.to_string(),
        format!("{} holds no {FRAMEWORK_LIBRARY}", none.0.display())
    );
    let half = Folder::new("half", &[FRAMEWORK_LIBRARY]);
    let error = Libraries::files(&half.0).expect_err("one is missing");
    assert_eq!(
        error,
        Error::MissingLibrary {
            folder: half.0.clone(),
            names: CC_LIBRARIES.map(str::to_owned).to_vec(),
        }
    );
}

#[test]
fn either_name_of_the_second_library_does() {
    for name in CC_LIBRARIES {
        let folder = Folder::new(name, &[FRAMEWORK_LIBRARY, name]);
        let files = Libraries::files(&folder.0).expect("both are there");
        assert_eq!(
            files,
            [folder.0.join(FRAMEWORK_LIBRARY), folder.0.join(name)]
        );
    }
}

#[test]
fn a_file_that_is_no_library_is_named() {
    let folder = Folder::new("bad", &[FRAMEWORK_LIBRARY, CC_LIBRARIES[0]]);
    let Err(Error::Open { library, reason }) = Libraries::open(&folder.0) else {
        panic!("text is no library");
    };
    assert_eq!(library, folder.0.join(FRAMEWORK_LIBRARY));
    assert!(reason.contains("file too short") || reason.contains("invalid ELF header"));
}

#[test]
fn the_process_knows_its_own_functions() {
    assert!(!Process.address(c"malloc").is_null());
    assert!(Process.address(c"TF_no_such_function").is_null());
    assert_eq!(Process.place(), "the process");
}

/// Runs `find` in a process of its own, because its input is the environment.
fn find_with(variables: &[(&str, &Path)]) -> String {
    let mut command = Command::new(env::current_exe().expect("the test program"));
    command
        .args(["--exact", "tests::child_find", "--nocapture", "--ignored"])
        .env_clear()
        .envs(variables.iter().copied());
    let output = command.output().expect("the test program runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.split_once("FOUND "));
    line.map(|(_, rest)| rest.to_owned()).unwrap_or(text)
}

#[test]
#[ignore = "a part of the tests below"]
fn child_find() {
    match find() {
        Ok(Found::Process) => println!("FOUND process"),
        Ok(Found::Folder(folder)) => println!("FOUND folder {}", folder.display()),
        Err(error) => println!("FOUND error {error}"),
    }
}

#[test]
fn the_variable_names_a_folder_or_a_file_or_several() {
    let good = Folder::new("good", &[FRAMEWORK_LIBRARY, CC_LIBRARIES[0]]);
    let expected = format!("folder {}", good.0.display());
    let file = good.0.join(CC_LIBRARIES[0]);
    let several = env::join_paths([Path::new("/nowhere"), &good.0]).expect("no colon in it");
    for value in [good.0.as_path(), &file, Path::new(&several)] {
        assert_eq!(find_with(&[("TF_LIBRARY_PATH", value)]), expected);
    }
}

#[test]
fn with_the_variable_set_nothing_else_is_tried() {
    let text = find_with(&[("TF_LIBRARY_PATH", Path::new("/nowhere"))]);
    assert_eq!(
        text,
        "error TensorFlow not found: no libtensorflow_framework.so.2 with libtensorflow_cc.so.2 or \
         libtensorflow.so.2; /nowhere: no libtensorflow_framework.so.2; set TF_LIBRARY_PATH to the \
         folder of the libraries"
    );
}

/// A program that stands for Python.
#[cfg(unix)]
fn script(folder: &Folder, text: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.0.join("python3");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
    path
}

#[test]
fn the_package_of_python_is_found() {
    let package = Folder::new("package", &[FRAMEWORK_LIBRARY, CC_LIBRARIES[0]]);
    let bin = Folder::new("bin", &[]);
    let python = script(&bin, &format!("echo '{}'", package.0.display()));
    let expected = format!("folder {}", package.0.display());
    assert_eq!(find_with(&[("TFP_PYTHON", &python)]), expected);
    assert_eq!(find_with(&[("PATH", &bin.0)]), expected);
}

#[test]
fn what_python_says_is_in_the_error() {
    let bin = Folder::new("broken", &[]);
    let cases = [
        ("echo 'no such thing' >&2; exit 1", "no such thing"),
        ("echo ''", "has no package tensorflow"),
        ("echo /nowhere", "/nowhere: no libtensorflow_framework.so.2"),
    ];
    for (text, expected) in cases {
        let python = script(&bin, text);
        let found = find_with(&[("TFP_PYTHON", &python)]);
        assert!(found.starts_with("error TensorFlow not found"), "{found}");
        assert!(found.contains(expected), "{found}");
        assert!(found.contains("/usr/local/lib: no "), "{found}");
    }
    let found = find_with(&[("TFP_PYTHON", Path::new("/no/python"))]);
    assert!(found.contains("/no/python: can't be run"), "{found}");
}

#[test]
fn errors_say_what_was_tried() {
    let error = Error::NotFound {
        libraries: vec!["l".to_owned()],
        tried: vec![Tried {
            place: "p".to_owned(),
            why: "w".to_owned(),
        }],
    };
    assert_eq!(
        error.to_string(),
        "TensorFlow not found: no l; p: w; set TF_LIBRARY_PATH to the folder of the libraries"
    );
}
