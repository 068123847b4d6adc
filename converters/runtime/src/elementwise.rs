//! Operations on single elements.

use crate::activation::Activation;
use crate::bytes::Pod;
use crate::error::{Result, at};
use crate::kernels::base::adapt::Element;
use crate::kernels::base::shape::Shape;
use crate::kernels::frame::map::{self, Map};
use crate::kernels::frame::zip::{self, Zip};
use crate::kernels::ops::elementwise::cast::{Cast, cast as convert};
use crate::kernels::ops::elementwise::scale_shift as channels;
use crate::kernels::ops::elementwise::select as selection;
use crate::memory::{Memory, Slot, Source};

/// `out = op(x)`.
///
/// # Errors
/// [`crate::error::Error::Layer`] or [`crate::error::Error::Plan`] if a slot does not fit.
pub fn map<'a, O: Map<T>, T: Element + Pod>(
    m: &'a mut Memory<'_>,
    op: O,
    x: impl Into<Source<'a, T>>,
    out: Slot<O::Out>,
) -> Result<()>
where
    O::Out: Pod,
{
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    map::map(op, x, out, reader.parallel).map_err(at("map"))
}

/// `x = op(x)`.
///
/// # Errors
/// As [`map()`].
pub fn map_in_place<O: Map<T, Out = T>, T: Element + Pod>(
    m: &mut Memory<'_>,
    op: O,
    x: Slot<T>,
) -> Result<()> {
    let (reader, x) = m.write(x)?;
    map::map_in_place(op, x, reader.parallel);
    Ok(())
}

/// `out = op(a, b)`, all of one shape.
///
/// # Errors
/// As [`map()`]; also [`crate::error::Error::Layer`] if the operation has no result for an element
/// of `b`, such as a divisor of integers that is 0.
pub fn zip<'a, O: Zip<T>, T: Element + Pod>(
    m: &'a mut Memory<'_>,
    op: O,
    a: impl Into<Source<'a, T>>,
    b: impl Into<Source<'a, T>>,
    out: Slot<O::Out>,
) -> Result<()>
where
    O::Out: Pod,
{
    const NAME: &str = "zip";
    let (reader, out) = m.write(out)?;
    let (a, b) = (reader.read(a.into())?, reader.read(b.into())?);
    let shape = Shape::new(&[a.len()]).map_err(at(NAME))?;
    zip::zip(op, (a, &shape), (b, &shape), out, reader.parallel).map_err(at(NAME))
}

/// `a = op(a, b)`, or `op(b, a)` unless `LEFT`, both of one shape.
///
/// # Errors
/// As [`zip()`].
pub fn zip_in_place<'a, O: Zip<T, Out = T>, T: Element + Pod, const LEFT: bool>(
    m: &'a mut Memory<'_>,
    op: O,
    a: Slot<T>,
    b: impl Into<Source<'a, T>>,
) -> Result<()> {
    const NAME: &str = "zip";
    let (reader, a) = m.write(a)?;
    let b = reader.read(b.into())?;
    let shape = Shape::new(&[a.len()]).map_err(at(NAME))?;
    zip::zip_in_place::<O, T, LEFT>(op, (a, &shape), (b, &shape), reader.parallel).map_err(at(NAME))
}

/// `out = op(a, b)`, where `a` and `b` are broadcast against each other.
///
/// # Errors
/// As [`zip()`].
pub fn zip_broadcast<'a, O: Zip<T>, T: Element + Pod>(
    m: &'a mut Memory<'_>,
    op: O,
    (a, a_shape): (impl Into<Source<'a, T>>, &[usize]),
    (b, b_shape): (impl Into<Source<'a, T>>, &[usize]),
    out: Slot<O::Out>,
) -> Result<()>
where
    O::Out: Pod,
{
    const NAME: &str = "zip";
    let (reader, out) = m.write(out)?;
    let (a, b) = (reader.read(a.into())?, reader.read(b.into())?);
    let a_shape = Shape::new(a_shape).map_err(at(NAME))?;
    let b_shape = Shape::new(b_shape).map_err(at(NAME))?;
    zip::zip(op, (a, &a_shape), (b, &b_shape), out, reader.parallel).map_err(at(NAME))
}

/// `a = op(a, b)`, or `op(b, a)` unless `LEFT`, where `b` is broadcast to the shape of `a`.
///
/// # Errors
/// As [`zip()`].
pub fn zip_broadcast_in_place<'a, O: Zip<T, Out = T>, T: Element + Pod, const LEFT: bool>(
    m: &'a mut Memory<'_>,
    op: O,
    (a, a_shape): (Slot<T>, &[usize]),
    (b, b_shape): (impl Into<Source<'a, T>>, &[usize]),
) -> Result<()> {
    const NAME: &str = "zip";
    let (reader, a) = m.write(a)?;
    let b = reader.read(b.into())?;
    let a_shape = Shape::new(a_shape).map_err(at(NAME))?;
    let b_shape = Shape::new(b_shape).map_err(at(NAME))?;
    zip::zip_in_place::<O, T, LEFT>(op, (a, &a_shape), (b, &b_shape), reader.parallel)
        .map_err(at(NAME))
}

/// `then` where the condition is 1, else `otherwise`; all three are broadcast.
///
/// # Errors
/// As [`map()`].
pub fn select<'a, T: Pod>(
    m: &'a mut Memory<'_>,
    (condition, condition_shape): (impl Into<Source<'a, u8>>, &[usize]),
    (then, then_shape): (impl Into<Source<'a, T>>, &[usize]),
    (otherwise, otherwise_shape): (impl Into<Source<'a, T>>, &[usize]),
    out: Slot<T>,
) -> Result<()> {
    const NAME: &str = "select";
    let (reader, out) = m.write(out)?;
    let shape = |dims| Shape::new(dims).map_err(at(NAME));
    let condition = (reader.read(condition.into())?, &shape(condition_shape)?);
    let then = (reader.read(then.into())?, &shape(then_shape)?);
    let otherwise = (reader.read(otherwise.into())?, &shape(otherwise_shape)?);
    selection::select(condition, then, otherwise, out, reader.parallel).map_err(at(NAME))
}

/// `out = x` in another type.
///
/// # Errors
/// As [`map()`].
pub fn cast<'a, T: Element + Pod, U: Element + Pod>(
    m: &'a mut Memory<'_>,
    x: impl Into<Source<'a, T>>,
    out: Slot<U>,
) -> Result<()>
where
    Cast<U>: Map<T, Out = U>,
{
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    convert(x, out, reader.parallel).map_err(at("cast"))
}

/// `activation(x * scale + shift)` along the last axis.
///
/// # Errors
/// As [`map()`].
pub fn scale_shift<'a>(
    m: &'a mut Memory<'_>,
    x: impl Into<Source<'a, f32>>,
    scale: impl Into<Source<'a, f32>>,
    shift: impl Into<Source<'a, f32>>,
    activation: Activation,
    out: Slot<f32>,
) -> Result<()> {
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    let (scale, shift) = (reader.read(scale.into())?, reader.read(shift.into())?);
    let last = match activation {
        Activation::Map(_) => Activation::None,
        simple => simple,
    };
    channels::scale_shift(Some(x), (scale, shift), &last, out, reader.parallel)
        .map_err(at("scale_shift"))?;
    if let Activation::Map(_) = activation {
        activation.apply(out, reader.parallel);
    }
    Ok(())
}

/// Applies an activation in place.
///
/// # Errors
/// As [`map()`].
pub fn activate(m: &mut Memory<'_>, activation: Activation, x: Slot<f32>) -> Result<()> {
    let (reader, x) = m.write(x)?;
    activation.apply(x, reader.parallel);
    Ok(())
}
