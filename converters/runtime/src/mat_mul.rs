//! Products of two computed matrices.

use crate::activation::Activation;
use crate::error::{Result, at};
use crate::kernels::base::shape::Shape;
use crate::kernels::frame::zip::zip_in_place;
use crate::kernels::ops::elementwise::binary::Add;
use crate::kernels::ops::matrix::batch_mat_mul_v2::BatchMatMul;
use crate::memory::{Memory, Slot, Source};

/// What follows a product.
#[derive(Clone, Copy)]
pub struct Finish<'a> {
    /// Added to every row.
    pub bias: Option<Source<'a, f32>>,
    /// Applied last.
    pub activation: Activation,
}

impl Finish<'_> {
    /// Nothing.
    pub const NONE: Self = Self {
        bias: None,
        activation: Activation::None,
    };
}

/// `out = a * b` of the last two axes, the others broadcast; `transposed` says which of both are.
///
/// # Errors
/// [`crate::error::Error::Layer`] or [`crate::error::Error::Plan`] if a slot does not fit.
pub fn mat_mul<'a>(
    m: &'a mut Memory<'_>,
    (a, a_shape): (impl Into<Source<'a, f32>>, &[usize]),
    (b, b_shape): (impl Into<Source<'a, f32>>, &[usize]),
    transposed: (bool, bool),
    last: Finish<'a>,
    (out, scratch): (Slot<f32>, Slot<f32>),
) -> Result<()> {
    const NAME: &str = "mat_mul";
    let (reader, out, scratch) = m.write_with(out, scratch)?;
    let (a, b) = (reader.read(a.into())?, reader.read(b.into())?);
    let a_shape = Shape::new(a_shape).map_err(at(NAME))?;
    let b_shape = Shape::new(b_shape).map_err(at(NAME))?;
    BatchMatMul::new(&a_shape, &b_shape, transposed)
        .and_then(|product| product.run(a, b, out, scratch, reader.parallel))
        .map_err(at(NAME))?;
    if let Some(bias) = last.bias {
        let bias = reader.read(bias)?;
        let width = bias.len().max(1);
        let shape = Shape::new(&[out.len() / width, width]).map_err(at(NAME))?;
        let row = Shape::new(&[width]).map_err(at(NAME))?;
        zip_in_place::<_, _, true>(Add, (&mut *out, &shape), (bias, &row), reader.parallel)
            .map_err(at(NAME))?;
    }
    last.activation.apply(out, reader.parallel);
    Ok(())
}
