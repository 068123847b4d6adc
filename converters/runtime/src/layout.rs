//! Operations that move elements.

use crate::bytes::Pod;
use crate::error::{Result, at};
use crate::kernels::base::error::Error;
use crate::kernels::base::shape::Shape;
use crate::kernels::frame::strided::{View, read};
use crate::kernels::ops::moving::broadcast_to::broadcast_to;
use crate::kernels::ops::moving::join::join;
use crate::kernels::ops::moving::pad::{Paddings, mirror_pad, pad as constant_pad};
use crate::kernels::ops::moving::tile::tile as repeat;
use crate::kernels::ops::moving::transpose::transpose as reorder;
use crate::memory::{Memory, Reader, Slot, Source};

/// `out = x`.
///
/// # Errors
/// [`crate::error::Error::Layer`] or [`crate::error::Error::Plan`] if a slot does not fit.
pub fn copy<'a, T: Pod>(
    m: &'a mut Memory<'_>,
    x: impl Into<Source<'a, T>>,
    out: Slot<T>,
) -> Result<()> {
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    join([x], 1, out, reader.parallel).map_err(at("copy"))
}

/// Fills a slot with a number.
///
/// # Errors
/// [`crate::error::Error::Plan`] if the slot lies outside the workspace.
pub fn set<T: Pod>(m: &mut Memory<'_>, number: T, out: Slot<T>) -> Result<()> {
    m.get_mut(out)?.fill(number);
    Ok(())
}

/// Whether the truth value in a slot is true.
///
/// # Errors
/// [`crate::error::Error::Plan`] if the slot lies outside the workspace.
pub fn is_set(m: &Memory<'_>, slot: Slot<u8>) -> Result<bool> {
    Ok(m.get(slot)?.first().is_some_and(|&x| x != 0))
}

/// Output axis `i` is input axis `perm[i]`.
///
/// # Errors
/// As [`copy`].
pub fn transpose<'a, T: Pod>(
    m: &'a mut Memory<'_>,
    (x, shape): (impl Into<Source<'a, T>>, &[usize]),
    perm: &[i64],
    out: Slot<T>,
) -> Result<()> {
    const NAME: &str = "transpose";
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    let shape = Shape::new(shape).map_err(at(NAME))?;
    reorder((x, &shape), perm, out, reader.parallel).map_err(at(NAME))
}

/// Joins tensors side by side, `outer` times: each gives the next `1 / outer` of its elements.
///
/// # Errors
/// As [`copy`].
pub fn concat<'a, T: Pod, const N: usize>(
    m: &'a mut Memory<'_>,
    parts: [Source<'a, T>; N],
    outer: usize,
    out: Slot<T>,
) -> Result<()> {
    let (reader, out) = m.write(out)?;
    let mut slices: [&[T]; N] = [&[]; N];
    for (slice, part) in slices.iter_mut().zip(parts) {
        *slice = reader.read(part)?;
    }
    join(slices, outer, out, reader.parallel).map_err(at("concat"))
}

/// Takes elements `begin + i * stride` of each axis, as many as `out_shape` says.
///
/// # Errors
/// As [`copy`].
pub fn slice<'a, T: Pod>(
    m: &'a mut Memory<'_>,
    (x, shape): (impl Into<Source<'a, T>>, &[usize]),
    (begin, strides): (&[usize], &[isize]),
    (out, out_shape): (Slot<T>, &[usize]),
) -> Result<()> {
    const NAME: &str = "slice";
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    let mut steps = [1_usize; crate::kernels::base::shape::MAX_RANK];
    let rank = shape.len().min(steps.len());
    for axis in (1..rank).rev() {
        steps[axis - 1] = steps[axis].saturating_mul(shape[axis]);
    }
    let offset = begin.iter().zip(steps).map(|(b, step)| b * step).sum();
    let mut view = View::new(offset);
    for ((&dim, &stride), step) in out_shape.iter().zip(strides).zip(steps) {
        view.push(dim, stride * step.cast_signed())
            .map_err(at(NAME))?;
    }
    read(x, &view, out, reader.parallel).map_err(at(NAME))
}

/// What a border is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Border<T> {
    /// A value.
    Constant(T),
    /// The mirror image without the edge.
    Reflect,
    /// The mirror image with the edge.
    Symmetric,
}

/// Widens each axis before and after.
///
/// # Errors
/// As [`copy`].
pub fn pad<'a, T: Pod>(
    m: &'a mut Memory<'_>,
    (x, shape): (impl Into<Source<'a, T>>, &[usize]),
    padding: &[(usize, usize)],
    border: Border<T>,
    out: Slot<T>,
) -> Result<()> {
    const NAME: &str = "pad";
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    let shape = Shape::new(shape).map_err(at(NAME))?;
    let mut paddings = Paddings::default();
    for (to, from) in paddings.iter_mut().zip(padding) {
        *to = *from;
    }
    let x = (x, &shape);
    match border {
        Border::Constant(value) => constant_pad(x, &paddings, value, out, reader.parallel),
        Border::Reflect => mirror_pad(x, &paddings, false, out),
        Border::Symmetric => mirror_pad(x, &paddings, true, out),
    }
    .map_err(at(NAME))
}

/// Repeats a tensor along each axis.
///
/// # Errors
/// As [`copy`].
pub fn tile<'a, T: Pod>(
    m: &'a mut Memory<'_>,
    (x, shape): (impl Into<Source<'a, T>>, &[usize]),
    multiples: &[i64],
    out: Slot<T>,
) -> Result<()> {
    const NAME: &str = "tile";
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    let shape = Shape::new(shape).map_err(at(NAME))?;
    repeat((x, &shape), multiples, out, reader.parallel).map_err(at(NAME))
}

/// Repeats a tensor to a larger shape.
///
/// # Errors
/// As [`copy`].
pub fn broadcast<'a, T: Pod>(
    m: &'a mut Memory<'_>,
    (x, shape): (impl Into<Source<'a, T>>, &[usize]),
    (out, out_shape): (Slot<T>, &[usize]),
) -> Result<()> {
    const NAME: &str = "broadcast";
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    let shape = Shape::new(shape).map_err(at(NAME))?;
    let out_shape = Shape::new(out_shape).map_err(at(NAME))?;
    broadcast_to((x, &shape), (out, &out_shape), reader.parallel).map_err(at(NAME))
}

/// Copies `x` with slice `index` of its first axis replaced by `slice`.
///
/// # Errors
/// As [`copy`]; [`crate::error::Error::Layer`] for an index outside.
pub fn update<'a, T: Pod>(
    m: &'a mut Memory<'_>,
    x: impl Into<Source<'a, T>>,
    index: impl Into<Source<'a, i32>>,
    slice: impl Into<Source<'a, T>>,
    out: Slot<T>,
) -> Result<()> {
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    join([x], 1, out, reader.parallel).map_err(at(UPDATE))?;
    replace(&reader, index.into(), slice.into(), out)
}

/// Replaces slice `index` of the first axis by `slice`.
///
/// # Errors
/// As [`update`].
pub fn update_in_place<'a, T: Pod>(
    m: &'a mut Memory<'_>,
    index: impl Into<Source<'a, i32>>,
    slice: impl Into<Source<'a, T>>,
    out: Slot<T>,
) -> Result<()> {
    let (reader, out) = m.write(out)?;
    replace(&reader, index.into(), slice.into(), out)
}

const UPDATE: &str = "update";

fn replace<'a, T: Pod>(
    reader: &Reader<'a>,
    index: Source<'a, i32>,
    slice: Source<'a, T>,
    out: &mut [T],
) -> Result<()> {
    let slice = reader.read(slice)?;
    let index = reader.read(index)?.first().copied().unwrap_or(-1);
    let limit = out.len() / slice.len().max(1);
    let place = usize::try_from(index).ok().filter(|&i| i < limit);
    let place = place.ok_or_else(|| {
        at(UPDATE)(Error::Index {
            argument: "index",
            index: i64::from(index),
            limit,
        })
    })?;
    out[place * slice.len()..][..slice.len()].copy_from_slice(slice);
    Ok(())
}
