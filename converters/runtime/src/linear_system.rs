//! Square matrices taken apart, and what is solved with them. Each function takes the lengths of
//! the rows of its matrices.

use crate::error::{Result, at};
use crate::kernels::ops::matrix::linear_system::{
    Triangle, cholesky as factor, log_determinant as logarithm, solve as eliminate,
    triangular_solve as substitute,
};
use crate::memory::{Memory, Slot, Source};

/// The lower factor of symmetric matrices.
///
/// # Errors
/// [`crate::error::Error::Layer`] for a slot that does not fit.
pub fn cholesky<'a>(
    m: &'a mut Memory<'_>,
    (x, size): (impl Into<Source<'a, f32>>, usize),
    out: Slot<f32>,
) -> Result<()> {
    let (reader, out) = m.write(out)?;
    factor(reader.read(x.into())?, size, out).map_err(at("cholesky"))
}

/// The solutions of triangular systems.
///
/// # Errors
/// As [`cholesky`].
pub fn triangular_solve<'a>(
    m: &'a mut Memory<'_>,
    (matrix, size): (impl Into<Source<'a, f32>>, usize),
    triangle: Triangle,
    (right, columns): (impl Into<Source<'a, f32>>, usize),
    out: Slot<f32>,
) -> Result<()> {
    let (reader, out) = m.write(out)?;
    let (matrix, right) = (reader.read(matrix.into())?, reader.read(right.into())?);
    substitute((matrix, size), triangle, (right, columns), out).map_err(at("triangular_solve"))
}

/// The solutions of systems, or of those of the transposed matrices.
///
/// # Errors
/// As [`cholesky`]; [`crate::error::Error::Layer`] for a matrix that has no inverse.
pub fn solve<'a>(
    m: &'a mut Memory<'_>,
    (matrix, size): (impl Into<Source<'a, f32>>, usize),
    transposed: bool,
    (right, columns): (impl Into<Source<'a, f32>>, usize),
    (out, scratch): (Slot<f32>, Slot<f32>),
) -> Result<()> {
    let (reader, out, scratch) = m.write_with(out, scratch)?;
    let (matrix, right) = (reader.read(matrix.into())?, reader.read(right.into())?);
    let system = (matrix, size);
    eliminate(system, transposed, (right, columns), out, scratch).map_err(at("solve"))
}

/// The signs of determinants, and the logarithms of their magnitudes.
///
/// # Errors
/// As [`cholesky`].
pub fn log_determinant<'a>(
    m: &'a mut Memory<'_>,
    (x, size): (impl Into<Source<'a, f32>>, usize),
    (sign, log, scratch): (Slot<f32>, Slot<f32>, Slot<f32>),
) -> Result<()> {
    let (reader, [sign, log, scratch]) = m.write_many([sign, log, scratch])?;
    let x = reader.read(x.into())?;
    logarithm(x, size, (sign, log), scratch).map_err(at("log_determinant"))
}
