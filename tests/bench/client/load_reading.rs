//! One loading of a SavedModel, for `load_vs_python.py`: `load_reading FOLDER` prints the nanoseconds of the
//! loading, the bytes that the process grew by, and the nanoseconds of the first call.

use std::error::Error;
use std::fs;
use std::time::Instant;

use tfp::{EagerContext, Model, Tensor};

/// Returns the bytes of this process in memory.
fn resident() -> Result<i64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("no VmRSS")?.parse::<i64>()? * 1024)
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("expected a folder")?;
    let cx = EagerContext::new()?;
    // What the first op of a process sets up is not of the model.
    cx.handle(&Tensor::scalar(0.0_f32)?)?;
    let (before, begun) = (resident()?, Instant::now());
    let model = Model::load(&cx, &folder, &["serve"])?;
    let loaded = begun.elapsed();
    let grown = resident()? - before;
    let signature = model.signature("serving_default")?;
    let begun = Instant::now();
    let arguments = signature.inputs().iter().map(|spec| {
        let dims = spec.shape.dims().unwrap_or_default();
        let dims: Vec<i64> = dims.iter().map(|&dim| dim.max(1)).collect();
        cx.handle(&Tensor::zeros(spec.dtype, &dims)?)
    });
    let results = signature.call(&cx, &arguments.collect::<Result<Vec<_>, _>>()?)?;
    for result in &results {
        result.to_tensor()?;
    }
    let called = begun.elapsed();
    println!("{} {grown} {}", loaded.as_nanos(), called.as_nanos());
    Ok(())
}
