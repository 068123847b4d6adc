//! Runs steps on the TFP device, for a tool that watches memory: each step runs kernels that forward
//! a buffer, allocate one, need scratch memory, read host memory, copy between devices, and fail.
//!
//! `steps PLUGIN COUNT` prints the growth of the resident memory over the second half, in bytes.

use std::process::ExitCode;

use tfp_core::{Context, EagerContext, Error, OpBuilder, Result, Tensor, load_pluggable_device};

/// Bytes of memory that this process holds.
fn resident() -> Result<i64> {
    let problem = |error: &dyn std::fmt::Display| Error::argument(format!("statm: {error}"));
    let text = std::fs::read_to_string("/proc/self/statm").map_err(|error| problem(&error))?;
    let pages = text.split(' ').nth(1).unwrap_or_default();
    Ok(4096 * pages.parse::<i64>().map_err(|error| problem(&error))?)
}

fn step(cx: &EagerContext, x: &<EagerContext as Context>::Value, number: usize) -> Result<()> {
    let relu = OpBuilder::new("Relu")?.input(x).one(cx)?;
    let sum = OpBuilder::new("AddV2")?.input(&relu).input(x).one(cx)?;
    let product = OpBuilder::new("MatMul")?.input(&sum).input(x).one(cx)?;
    let total = OpBuilder::new("Sum")?
        .input(&product)
        .input([0, 1])
        .one(cx)?;
    let part = OpBuilder::new("ConcatV2")?
        .list([&sum, &product])
        .input(0)
        .one(cx)?;
    if number.is_multiple_of(100) {
        let found = total.to_tensor()?.to_scalar::<f32>()?;
        if found != 8192.0 {
            return Err(Error::argument(format!(
                "the sum is {found}, expected 8192"
            )));
        }
        // A step that fails gives everything back, too.
        let bad = OpBuilder::new("AddV2")?.input(&part).input(x).one(cx);
        if bad.is_ok() {
            return Err(Error::argument("shapes that do not fit were added"));
        }
    }
    Ok(())
}

fn run(plugin: &str, count: usize) -> Result<i64> {
    load_pluggable_device(plugin)?;
    let context = EagerContext::new()?;
    let x = context.handle(&Tensor::from_slice(&[1.0_f32; 256], &[16, 16])?)?;
    let device = "/device:TFP:0";
    let (cx, x) = (context.on_device(device)?, x.copy_to(device)?);
    for number in 0..count / 2 {
        step(&cx, &x, number)?;
    }
    let before = resident()?;
    for number in count / 2..count {
        step(&cx, &x, number)?;
    }
    Ok(resident()? - before)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [plugin, count] = &arguments[..] else {
        eprintln!("usage: steps PLUGIN COUNT");
        return ExitCode::from(2);
    };
    match run(plugin, count.parse().unwrap_or(10_000)) {
        Ok(growth) => {
            println!("{growth}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("steps: {error}");
            ExitCode::FAILURE
        }
    }
}
