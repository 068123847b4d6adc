//! What memory has no room for is an error, and not the end of the process.

#![cfg(target_os = "linux")]

use std::hint::black_box;
use std::io::Write as _;

use tfp::weights::TensorFile;
use tfp::{Code, Tensor};

/// Bytes of what does not fit.
const LARGE: usize = 128 << 20;
/// KiB of addresses of a test's process: more than TensorFlow takes at its start.
const ADDRESSES: u32 = 16 << 20;

/// Runs a test in a process with a limit of addresses; returns whether this is that process.
fn is_limited(test: &str) -> bool {
    if std::env::var_os("TFP_LIMITED").is_some() {
        return true;
    }
    let limited = format!("ulimit -v {ADDRESSES} && exec \"$0\" --exact {test} --nocapture");
    let this = std::env::current_exe().expect("a program");
    let mut command = std::process::Command::new("sh");
    let command = command.args([std::ffi::OsStr::new("-c"), limited.as_ref(), this.as_ref()]);
    let done = command.env("TFP_LIMITED", "1").output().expect("a shell");
    let text = String::from_utf8_lossy(&done.stdout);
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{}: {text}{errors}", done.status);
    assert!(text.contains("1 passed"), "{text}");
    false
}

/// Takes addresses until a fourth of what does not fit is left. It writes to none: they cost no memory.
fn taken() -> Vec<Vec<u8>> {
    let mut all = Vec::with_capacity(1 << 10);
    for size in [1 << 30, LARGE, LARGE / 4] {
        loop {
            let mut part: Vec<u8> = Vec::new();
            if part.try_reserve_exact(size).is_err() {
                break;
            }
            // The compiler may leave out memory that nobody looks at.
            all.push(black_box(part));
        }
    }
    all
}

#[test]
fn a_copy_of_a_tensor() -> tfp::Result<()> {
    if !is_limited("a_copy_of_a_tensor") {
        return Ok(());
    }
    let tensor = Tensor::zeros(tfp::DataType::FLOAT, &[LARGE as i64 / 4])?;
    assert_eq!(tensor.to_vec::<f32>()?.len(), LARGE / 4);
    let held = taken();
    let found = tensor.to_vec::<f32>().map(|copy| black_box(copy).len());
    let error = found.expect_err("no memory");
    assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
    let found = Tensor::zeros(tfp::DataType::FLOAT, &[LARGE as i64 / 4]);
    let error = found.map(|made| made.len()).expect_err("no memory");
    assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
    drop(held);
    assert_eq!(tensor.to_vec::<f32>()?.len(), LARGE / 4);
    Ok(())
}

#[test]
fn a_tensor_of_a_file() -> tfp::Result<()> {
    if !is_limited("a_tensor_of_a_file") {
        return Ok(());
    }
    let root = std::env::var_os("TEST_TMPDIR").map_or_else(std::env::temp_dir, Into::into);
    let path = root.join(format!("tfp_memory_{}.safetensors", std::process::id()));
    let header =
        format!(r#"{{"w":{{"dtype":"U8","shape":[{LARGE}],"data_offsets":[0,{LARGE}]}}}}"#);
    let mut file = std::fs::File::create(&path).expect("a file");
    let length = header.len() as u64;
    file.write_all(&length.to_le_bytes()).expect("a file");
    file.write_all(header.as_bytes()).expect("a file");
    // The file has a hole: it takes no space.
    file.set_len(8 + length + LARGE as u64).expect("a file");
    let reader = TensorFile::open(&path);
    std::fs::remove_file(&path).expect("a file");
    let reader = reader?;
    let held = taken();
    let error = reader
        .read("w")
        .map(|made| made.len())
        .expect_err("no memory");
    assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
    drop(held);
    assert_eq!(reader.read("w")?.len(), LARGE);
    Ok(())
}
