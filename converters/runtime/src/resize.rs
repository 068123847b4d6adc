//! Images of another size.

use crate::bytes::Pod;
use crate::error::{Result, at};
use crate::kernels::base::shape::Shape;
pub use crate::kernels::ops::image::resize::Corners;
use crate::kernels::ops::image::resize::{resize_bilinear, resize_nearest};
use crate::memory::{Memory, Slot, Source};

/// Takes the nearest pixel.
///
/// # Errors
/// [`crate::error::Error::Layer`] or [`crate::error::Error::Plan`] if a slot does not fit.
pub fn nearest<'a, T: Pod>(
    m: &'a mut Memory<'_>,
    (x, shape): (impl Into<Source<'a, T>>, &[usize]),
    corners: Corners,
    (out, out_shape): (Slot<T>, &[usize]),
) -> Result<()> {
    const NAME: &str = "resize";
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    let shape = Shape::new(shape).map_err(at(NAME))?;
    let out_shape = Shape::new(out_shape).map_err(at(NAME))?;
    resize_nearest((x, &shape), (out, &out_shape), corners, reader.parallel).map_err(at(NAME))
}

/// Interpolates between four pixels.
///
/// # Errors
/// As [`nearest`].
pub fn bilinear<'a>(
    m: &'a mut Memory<'_>,
    (x, shape): (impl Into<Source<'a, f32>>, &[usize]),
    corners: Corners,
    (out, out_shape): (Slot<f32>, &[usize]),
) -> Result<()> {
    const NAME: &str = "resize";
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    let shape = Shape::new(shape).map_err(at(NAME))?;
    let out_shape = Shape::new(out_shape).map_err(at(NAME))?;
    resize_bilinear((x, &shape), (out, &out_shape), corners, reader.parallel).map_err(at(NAME))
}
