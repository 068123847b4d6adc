//! What memory has no room for is an error, and not the end of the process.

#![cfg(target_os = "linux")]

mod graphs;

use std::hint::black_box;
use std::io::Write as _;

use tfp::nn::training::Batches;
use tfp::weights::{self, TensorFile};
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

/// A path for a file of this process.
fn file(end: &str) -> std::path::PathBuf {
    let root = std::env::var_os("TEST_TMPDIR").map_or_else(std::env::temp_dir, Into::into);
    root.join(format!("tfp_memory_{}.{end}", std::process::id()))
}

/// Checks that something has no memory while it is taken, and succeeds afterwards.
fn check<T>(make: impl Fn() -> tfp::Result<T>) {
    let held = taken();
    let error = make().map(|_| ()).expect_err("no memory");
    assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
    drop(held);
    let made = make().map(|_| ());
    assert!(made.is_ok(), "{made:?}");
}

#[test]
fn strings_of_a_tensor() -> tfp::Result<()> {
    if !is_limited("strings_of_a_tensor") {
        return Ok(());
    }
    let count = LARGE / 16;
    let tensor = Tensor::from_strings(&vec![b"a"; count], &[count as i64])?;
    check(|| tensor.as_strings().map(|strings| strings.len()));
    Ok(())
}

#[test]
fn a_batch_of_a_training() -> tfp::Result<()> {
    if !is_limited("a_batch_of_a_training") {
        return Ok(());
    }
    let x = Tensor::zeros(tfp::DataType::FLOAT, &[4, LARGE as i64 / 16])?;
    let truth = Tensor::zeros(tfp::DataType::FLOAT, &[4])?;
    let batches = Batches::new(x, truth, 4)?;
    check(|| batches.iter(0).collect::<tfp::Result<Vec<_>>>());
    Ok(())
}

#[test]
fn a_file_of_weights_that_is_written() -> tfp::Result<()> {
    if !is_limited("a_file_of_weights_that_is_written") {
        return Ok(());
    }
    let tensor = Tensor::zeros(tfp::DataType::FLOAT, &[LARGE as i64 / 4])?;
    let path = file("npz");
    check(|| weights::write_npz(&path, &[("w", &tensor)]));
    check(|| TensorFile::open(&path));
    std::fs::remove_file(&path).expect("a file");
    Ok(())
}

#[test]
fn a_header_of_many_numbers() -> tfp::Result<()> {
    if !is_limited("a_header_of_many_numbers") {
        return Ok(());
    }
    // 8 MiB of text, which are 128 MiB of numbers.
    let zeros = "0,".repeat(LARGE / 32);
    let header = format!(r#"{{"w":{{"dtype":"U8","shape":[{zeros}0],"data_offsets":[0,0]}}}}"#);
    let path = file("safetensors");
    let length = header.len() as u64;
    let bytes = [&length.to_le_bytes(), header.as_bytes()].concat();
    std::fs::write(&path, bytes).expect("a file");
    drop((zeros, header));
    check(|| TensorFile::open(&path));
    std::fs::remove_file(&path).expect("a file");
    Ok(())
}

#[test]
fn a_tensor_of_a_file() -> tfp::Result<()> {
    if !is_limited("a_tensor_of_a_file") {
        return Ok(());
    }
    let path = file("safetensors");
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
