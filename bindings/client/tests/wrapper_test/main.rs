//! Variables and what is built on them, in both modes.

mod cancelled;
mod checkpoints;
mod core_types;
mod expressions;
mod kept;
mod models;
mod shared;
mod shared_types;
mod variables;
mod wrappers;

/// Returns an empty folder of a test.
fn scratch(name: &str) -> std::path::PathBuf {
    let root = std::env::var_os("TEST_TMPDIR").map_or_else(std::env::temp_dir, Into::into);
    let folder = root.join(format!("tfp_wrapper_{}_{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}
