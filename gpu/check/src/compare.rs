//! Whether a GPU's result is the CPU's.

use tfp_gpu::{Gpu, body};
use tfp_kernels::base::dtype::DType;

use crate::run::{Case, Failure};
use crate::tensor::Tensor;

/// How far a number may be from the expected one: `absolute + relative * |expected|`.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// Whatever the number.
    pub absolute: f64,
    /// As a part of the number.
    pub relative: f64,
}

impl Tolerance {
    fn is_exact(self) -> bool {
        self.absolute == 0.0 && self.relative == 0.0
    }
}

/// The first number that is too far.
fn difference(found: &Tensor, expected: &Tensor, tolerance: Tolerance) -> Option<String> {
    if found.dims != expected.dims || found.dtype != expected.dtype {
        return Some(format!(
            "shape {:?} instead of {:?}",
            found.dims, expected.dims
        ));
    }
    // Not every int64 is a number here.
    if found.dtype == DType::I64 && found.bytes() == expected.bytes() {
        return None;
    }
    if found.dtype == DType::I64 && tolerance.is_exact() {
        return Some("other numbers of int64".to_owned());
    }
    let pairs = found.numbers().into_iter().zip(expected.numbers());
    let mut pairs = pairs.enumerate();
    let bad = pairs.find(|(_, (found, expected))| {
        let same = found == expected || (found.is_nan() && expected.is_nan());
        let limit = tolerance.absolute + tolerance.relative * expected.abs();
        let near = (found - expected).abs() <= limit;
        !same && !near
    });
    bad.map(|(at, (found, expected))| format!("element {at} is {found:e}, expected {expected:e}"))
}

/// Runs a case on both, and compares all outputs. `Ok(false)` if the body declined.
///
/// # Errors
/// Where they differ, or what failed.
pub fn check(gpu: &Gpu, case: &Case, tolerance: Tolerance) -> Result<bool, String> {
    let dims: Vec<_> = case.inputs.iter().map(|input| &input.dims).collect();
    let name = format!("{} of {dims:?} {:?}", case.def.op, case.attrs.0);
    let dtype = case.dtype;
    let body = body(case.def, dtype).ok_or_else(|| format!("{name}: not a body for {dtype:?}"))?;
    let expected = case
        .on_cpu()
        .map_err(|failure| format!("{name}: on the CPU, {failure:?}"))?;
    let found = match case.on_gpu(gpu, &body) {
        Ok(found) => found,
        Err(Failure::Declined(_)) => return Ok(false),
        Err(failure) => return Err(format!("{name}: on the GPU, {failure:?}")),
    };
    for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
        if let Some(text) = difference(found, expected, tolerance) {
            return Err(format!("{name}: output {number}, {text}"));
        }
    }
    Ok(true)
}
