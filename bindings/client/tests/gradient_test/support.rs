//! What the tests share.

use tfp::{Complex, DataType, Error, Result, Tensor};

/// Returns a tensor as doubles; complex numbers as pairs.
pub fn values(tensor: &Tensor) -> Result<Vec<f64>> {
    Ok(match tensor.dtype() {
        DataType::FLOAT => tensor
            .as_slice::<f32>()?
            .iter()
            .map(|&v| v.into())
            .collect(),
        DataType::COMPLEX128 => tensor
            .as_slice::<Complex<f64>>()?
            .iter()
            .flat_map(|v| [v.re, v.im])
            .collect(),
        DataType::COMPLEX64 => tensor
            .as_slice::<Complex<f32>>()?
            .iter()
            .flat_map(|v| [v.re.into(), v.im.into()])
            .collect(),
        _ => tensor.to_vec::<f64>()?,
    })
}

/// Returns the greatest difference of two lists, relative to values above one.
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(b)
        .map(|(a, b)| match (a.is_nan(), b.is_nan()) {
            (true, true) => 0.0,
            (false, false) if a == b => 0.0,
            _ => (a - b).abs() / a.abs().max(b.abs()).max(1.0),
        })
        .fold(0.0, |max, d| if d > max || d.is_nan() { d } else { max })
}

/// Asserts that an error says all of the parts.
#[track_caller]
pub fn refused<T>(result: Result<T>, parts: &[&str]) -> Error {
    match result {
        Ok(_) => panic!("expected an error that says {parts:?}"),
        Err(error) => {
            let message = error.to_string();
            for part in parts {
                assert!(message.contains(part), "{message:?} does not say {part:?}");
            }
            error
        }
    }
}
