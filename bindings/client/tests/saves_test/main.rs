//! Saves that a process dies in, or that find a full disk, leave what was there before.
//!
//! `saves all FOLDER` tries every fault of every kind of save in this process; `saves kill FOLDER KIND N`
//! dies in one, and `saves check FOLDER KIND` looks at what is left. The library that makes the faults
//! is preloaded.

mod kinds;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tfp::Result;

use crate::kinds::{COUNT, KINDS, Kind, write_model};

/// Returns the one number that all values are.
fn number(kind: &Kind, folder: &Path) -> f32 {
    let values = (kind.load)(folder).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
    assert!(values.len() >= COUNT, "{}", kind.name);
    let first = values[0];
    assert!(values.iter().all(|value| *value == first), "{}", kind.name);
    first
}

/// Returns the files of a folder; the number of a checkpoint's files is no difference.
fn listing(folder: &Path) -> BTreeSet<String> {
    fn add(list: &mut BTreeSet<String>, root: &Path, folder: &Path) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(root).expect("below").to_string_lossy();
            list.insert(name.replace("-of-00002", "-of-00001"));
            if path.is_dir() {
                add(list, root, &path);
            }
        }
    }
    let mut list = BTreeSet::new();
    add(&mut list, folder, folder);
    list
}

fn arm(mode: &str, at: usize) {
    fs::rename(format!("fault:{mode}"), at.to_string()).expect("the library is preloaded");
}

/// Ends faults, and returns whether one happened.
fn disarm() -> bool {
    fs::rename("fault:off", "").is_err()
}

fn prepare(kind: &Kind, folder: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).expect("a folder");
    let source = folder.with_extension("source");
    if kind.name == "model" && !source.exists() {
        write_model(&source, 0.0)?;
        fs::write(source.join("notes.txt"), "a file beside").expect("a file");
    }
    (kind.save)(folder, 1.0)?;
    // What is somebody else's stays.
    let other = folder.join("model");
    if other.is_dir() {
        fs::write(other.join("README"), "mine").expect("a file");
    }
    Ok(())
}

/// Tries every call of a kind of save, and returns their number.
fn every_call(kind: &Kind, mode: &str, folder: &Path) -> Result<usize> {
    prepare(kind, folder)?;
    let before = listing(folder);
    (kind.save)(folder, 2.0)?;
    let clean = listing(folder);
    for at in 1.. {
        prepare(kind, folder)?;
        arm(mode, at);
        let saved = (kind.save)(folder, 2.0);
        let happened = disarm();
        let found = number(kind, folder);
        let place = format!("{} {mode} at {at}: {saved:?}, value {found}", kind.name);
        assert!(found == 1.0 || found == 2.0, "{place}");
        assert!(saved.is_err() || found == 2.0, "{place}");
        // File by file, a model's variables may be new when its graph is not yet.
        let is_one_step = std::env::var_os("FAULT_NO_EXCHANGE").is_none();
        if mode == "full" && saved.is_err() && is_one_step {
            assert_eq!(found, 1.0, "{place}");
            // A numbered checkpoint may be whole before the folder's note of it.
            if kind.name != "numbered" {
                assert_eq!(listing(folder), before, "{place}");
            }
        }
        // The next save removes what is left.
        (kind.save)(folder, 3.0)?;
        assert_eq!(number(kind, folder), 3.0, "{place}");
        if kind.name != "numbered" {
            assert_eq!(listing(folder), clean, "{place}");
        }
        let left = listing(folder)
            .into_iter()
            .find(|name| name.contains("_temp_"));
        assert_eq!(left, None, "{place}");
        if !happened {
            return Ok(at - 1);
        }
    }
    unreachable!("a save makes finitely many calls")
}

fn kind(name: &str) -> &'static Kind {
    KINDS.iter().find(|kind| kind.name == name).expect("a kind")
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["all", folder] => {
            for kind in &KINDS {
                // A file is written in one call at least.
                for (mode, fewest) in [("dead", 4), ("full", 1)] {
                    let folder = PathBuf::from(folder).join(format!("{}_{mode}", kind.name));
                    let calls = every_call(kind, mode, &folder)?;
                    println!("{} {mode}: {calls} calls", kind.name);
                    assert!(calls >= fewest, "the library sees no calls");
                }
            }
        }
        ["kill", folder, name, at] => {
            let (kind, folder) = (kind(name), Path::new(folder));
            prepare(kind, folder)?;
            arm("kill", at.parse().expect("a number"));
            (kind.save)(folder, 2.0)?;
            disarm();
        }
        ["check", folder, name] => {
            let (kind, folder) = (kind(name), Path::new(folder));
            println!("{}", number(kind, folder));
            (kind.save)(folder, 3.0)?;
            let left = listing(folder)
                .into_iter()
                .find(|name| name.contains("_temp_"));
            assert_eq!((number(kind, folder), left), (3.0, None));
        }
        _ => panic!("all FOLDER, kill FOLDER KIND N or check FOLDER KIND, not {arguments:?}"),
    }
    Ok(())
}
