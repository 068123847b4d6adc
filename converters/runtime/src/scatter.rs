//! Slices written by index.

use crate::bytes::Pod;
use crate::error::{Result, at};
use crate::kernels::base::adapt::Element;
use crate::kernels::ops::moving::join::join;
use crate::kernels::ops::moving::scatter::{Number, Reduction, scatter_groups};
use crate::memory::{Memory, Slot, Source};

/// Copies `x` with slices changed by `updates`, in each of the groups by its own indices; see
/// [`scatter_groups`].
///
/// # Errors
/// [`crate::error::Error::Layer`] for a number outside of its axis, or a slot that does not fit.
pub fn scatter<'a, T: Number + Pod, I: Element + Pod + Into<i64>>(
    m: &'a mut Memory<'_>,
    how: (Reduction, bool),
    (groups, limits): (usize, &[usize]),
    (x, indices, updates): (
        impl Into<Source<'a, T>>,
        impl Into<Source<'a, I>>,
        impl Into<Source<'a, T>>,
    ),
    out: Slot<T>,
) -> Result<()> {
    const NAME: &str = "scatter";
    let (reader, out) = m.write(out)?;
    let (x, updates) = (reader.read(x.into())?, reader.read(updates.into())?);
    let indices = reader.read(indices.into())?;
    join([x], 1, out, reader.parallel)
        .and_then(|()| scatter_groups(out, (groups, limits), indices, updates, how))
        .map_err(at(NAME))
}
