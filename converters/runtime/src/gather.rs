//! Slices by index.

use crate::bytes::Pod;
use crate::error::{Result, at};
use crate::kernels::base::adapt::Element;
use crate::kernels::base::shape::Shape;
use crate::kernels::ops::moving::gather::Gather;
use crate::kernels::ops::moving::one_hot::one_hot as encode;
use crate::memory::{Memory, Slot, Source};
use crate::weights::Tensor;

/// A table of rows that are looked up by index.
#[derive(Clone, Copy, Debug)]
pub struct Embedding {
    /// Name of the layer.
    pub name: &'static str,
    /// The table.
    pub table: Tensor<f32>,
    /// Its rows and their length.
    pub size: [usize; 2],
}

impl Embedding {
    /// Looks up a row per index.
    ///
    /// # Errors
    /// [`crate::error::Error::Layer`] for an index outside the table or a slot that does not fit.
    pub fn run<'a, I: Element + Pod + TryInto<usize> + Into<i64>>(
        &self,
        m: &'a mut Memory<'_>,
        indices: impl Into<Source<'a, I>>,
        out: Slot<f32>,
    ) -> Result<()> {
        let (reader, out) = m.write(out)?;
        let indices = reader.read(indices.into())?;
        let table = reader.read(self.table.into())?;
        let params = Shape::new(&self.size).map_err(at(self.name))?;
        let shape = Shape::new(&[indices.len()]).map_err(at(self.name))?;
        Gather::new(&params, &shape, 0, 0)
            .and_then(|gather| gather.run(table, indices, out, reader.parallel))
            .map_err(at(self.name))
    }
}

/// Slices of `x` along `axis`; the first `batch_dims` axes of both run together.
///
/// # Errors
/// As [`Embedding::run`].
pub fn gather<'a, T: Pod, I: Element + Pod + TryInto<usize> + Into<i64>>(
    m: &'a mut Memory<'_>,
    (x, shape): (impl Into<Source<'a, T>>, &[usize]),
    (indices, indices_shape): (impl Into<Source<'a, I>>, &[usize]),
    (axis, batch_dims): (i64, i64),
    out: Slot<T>,
) -> Result<()> {
    const NAME: &str = "gather";
    let (reader, out) = m.write(out)?;
    let (x, indices) = (reader.read(x.into())?, reader.read(indices.into())?);
    let shape = Shape::new(shape).map_err(at(NAME))?;
    let indices_shape = Shape::new(indices_shape).map_err(at(NAME))?;
    Gather::new(&shape, &indices_shape, axis, batch_dims)
        .and_then(|gather| gather.run(x, indices, out, reader.parallel))
        .map_err(at(NAME))
}

/// `on` at every index along a new axis of `depth` elements, `off` elsewhere; `inner` elements
/// follow the new axis.
///
/// # Errors
/// As [`Embedding::run`].
pub fn one_hot<'a, T: Pod, I: Element + Pod + TryInto<usize>>(
    m: &'a mut Memory<'_>,
    indices: impl Into<Source<'a, I>>,
    (depth, inner): (usize, usize),
    values: (T, T),
    out: Slot<T>,
) -> Result<()> {
    let (reader, out) = m.write(out)?;
    let indices = reader.read(indices.into())?;
    encode(indices, depth, inner, values, out).map_err(at("one_hot"))
}
