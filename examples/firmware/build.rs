//! Puts `memory.x` where the linker looks.

use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    fs::write(folder.join("memory.x"), include_bytes!("memory.x"))?;
    println!("cargo:rustc-link-search={}", folder.display());
    println!("cargo:rerun-if-changed=memory.x");
    Ok(())
}
