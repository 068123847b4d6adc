//! Reductions along axes.

use crate::bytes::Pod;
use crate::error::{Result, at};
use crate::kernels::base::adapt::Element;
use crate::kernels::base::shape::Shape;
use crate::kernels::frame::reduce::{Axes, Reduce, reduce as run};
use crate::kernels::frame::zip::Zip;
pub use crate::kernels::ops::reduction::arg_max::Extreme;
use crate::kernels::ops::reduction::arg_max::{Ordered, arg_extreme};
pub use crate::kernels::ops::reduction::cumulative::Mode;
use crate::kernels::ops::reduction::cumulative::cumulative;
use crate::memory::{Memory, Slot, Source};

/// Combines the elements along `axes`.
///
/// # Errors
/// [`crate::error::Error::Layer`] or [`crate::error::Error::Plan`] if a slot does not fit.
pub fn reduce<'a, R: Reduce<T>, T: Element + Pod>(
    m: &'a mut Memory<'_>,
    op: R,
    (x, shape): (impl Into<Source<'a, T>>, &[usize]),
    axes: &[i64],
    out: Slot<T>,
) -> Result<()> {
    const NAME: &str = "reduce";
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    let shape = Shape::new(shape).map_err(at(NAME))?;
    let axes = Axes::new(&shape, axes).map_err(at(NAME))?;
    run(op, (x, &shape), &axes, out, reader.parallel).map_err(at(NAME))
}

/// The place of the largest or smallest element along an axis.
///
/// # Errors
/// As [`reduce`].
pub fn arg<'a, T: Ordered + Pod, I: Element + Pod>(
    m: &'a mut Memory<'_>,
    extreme: Extreme,
    (x, shape): (impl Into<Source<'a, T>>, &[usize]),
    axis: i64,
    index: fn(usize) -> I,
    out: Slot<I>,
) -> Result<()> {
    const NAME: &str = "arg";
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    let shape = Shape::new(shape).map_err(at(NAME))?;
    arg_extreme(extreme, (x, &shape), axis, index, out, reader.parallel).map_err(at(NAME))
}

/// A running sum or product along an axis.
///
/// # Errors
/// As [`reduce`].
pub fn running<'a, O: Zip<T, Out = T>, T: Element + Pod>(
    m: &'a mut Memory<'_>,
    (op, neutral): (O, T),
    (x, shape): (impl Into<Source<'a, T>>, &[usize]),
    axis: i64,
    mode: Mode,
    out: Slot<T>,
) -> Result<()> {
    const NAME: &str = "running";
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    let shape = Shape::new(shape).map_err(at(NAME))?;
    cumulative(op, neutral, (x, &shape), axis, mode, out).map_err(at(NAME))
}
