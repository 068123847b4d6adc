//! The largest elements of rows, and rows in falling order.

use crate::bytes::Pod;
use crate::error::{Result, at};
use crate::kernels::base::adapt::Element;
use crate::kernels::base::shape::Shape;
use crate::kernels::ops::reduction::introsort::introsort as sort;
use crate::kernels::ops::reduction::top_k::top_k as run;
use crate::memory::{Memory, Slot, Source};

/// The places of the `k` largest elements along the last axis, in falling order.
///
/// # Errors
/// [`crate::error::Error::Layer`] or [`crate::error::Error::Plan`] if a slot does not fit.
pub fn top_k<'a, T: Element + Pod + PartialOrd>(
    m: &'a mut Memory<'_>,
    (x, shape): (impl Into<Source<'a, T>>, &[usize]),
    k: usize,
    out: Slot<i32>,
) -> Result<()> {
    const NAME: &str = "top_k";
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    let shape = Shape::new(shape).map_err(at(NAME))?;
    run((x, &shape), k, out, reader.parallel).map_err(at(NAME))
}

/// The places of each row of `count` elements, in falling order as C++ sorts them.
///
/// # Errors
/// [`crate::error::Error::Layer`] or [`crate::error::Error::Plan`] if a slot does not fit.
pub fn introsort<'a>(
    m: &'a mut Memory<'_>,
    x: impl Into<Source<'a, f32>>,
    count: usize,
    out: Slot<i32>,
) -> Result<()> {
    let (reader, out) = m.write(out)?;
    sort(reader.read(x.into())?, count, out, reader.parallel).map_err(at("introsort"))
}
