//! Derivatives beyond the gradient of a sum: Jacobians, Hessians, and products with tangents.

use tfp_core::{Context as _, DataType, Error, Result, Shape, Tensor, TensorHandle};
use tfp_ops as ops;

use super::engine::GradientOptions;
use super::of_graph::{gradients, gradients_with};
use crate::context::any::{AnyContext, Mode};
use crate::context::tape::Tape;
use crate::context::value::AnyValue;

/// The gradients of some values with a gradient of `y` that is given.
type Gradients<'g> = dyn Fn(&AnyValue) -> Result<Vec<Option<AnyValue>>> + 'g;

/// A result of [`forward_products`] with its tangent: `None` if it depends on no value.
pub type WithTangent<V> = (V, Option<V>);

impl Tape {
    /// Returns the Jacobian of `y` with respect to each of `xs`: all derivatives of all elements, of the
    /// shape `y.shape + x.shape`. It is `None` where `y` does not depend on the `x`.
    ///
    /// The tape is asked for a gradient once per element of `y`.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a `y` without elements, and as for
    /// [`Tape::gradients`].
    pub fn jacobian(
        &self,
        y: &TensorHandle,
        xs: &[&TensorHandle],
    ) -> Result<Vec<Option<TensorHandle>>> {
        let of = |seed: &AnyValue| self.seeded(y, xs, seed);
        let found = rows(self.parent(), &y.into(), xs.len(), &of)?;
        handles(found)
    }

    /// Returns the Jacobian of each batch element of `y` with respect to that of `x`, of the shape
    /// `[batch] + y.shape[1..] + x.shape[1..]`. A batch element of `y` must depend on that of `x` alone.
    ///
    /// The tape is asked for a gradient once per element of a batch element of `y`.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for values without a common first
    /// dimension, and for a `y` whose batch elements have none or that does not depend on `x`; and as for
    /// [`Tape::gradients`].
    pub fn batch_jacobian(&self, y: &TensorHandle, x: &TensorHandle) -> Result<TensorHandle> {
        let of = |seed: &AnyValue| self.seeded(y, &[x], seed);
        let found = batch_rows(self.parent(), &y.into(), &x.into(), &of)?;
        found.handle().cloned()
    }

    fn seeded(
        &self,
        y: &TensorHandle,
        xs: &[&TensorHandle],
        seed: &AnyValue,
    ) -> Result<Vec<Option<AnyValue>>> {
        let seeds = [Some(seed.handle()?.clone())];
        let options = GradientOptions {
            grad_ys: &seeds,
            ..GradientOptions::default()
        };
        let found = self.gradients_with(&[y], xs, &options)?;
        let dense = found.into_iter().map(|one| {
            let any = |handle| Ok(AnyValue::Handle(handle));
            one.map(|one| one.try_map(any)?.dense(self.parent()))
                .transpose()
        });
        dense.collect()
    }
}

/// Adds the Jacobian of `y` with respect to each of `xs` to a graph, of the shape `y.shape + x.shape`.
/// It is `None` where `y` does not depend on the `x`. In eager mode [`Tape::jacobian`] serves.
///
/// The gradients of each element of `y` are added, so its shape must be known.
///
/// # Errors
/// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a `y` of unknown shape or without elements,
/// and as for [`gradients`](crate::gradients).
pub fn jacobian<C: Mode>(cx: &C, y: &C::Value, xs: &[C::Value]) -> Result<Vec<Option<C::Value>>> {
    let any = cx.any();
    let (y, xs) = (cx.to_any(y), any_of(cx, xs));
    let of = |seed: &AnyValue| seeded(&any, &y, &xs, seed);
    let found = rows(&any, &y, xs.len(), &of)?.into_iter();
    found
        .map(|one| one.map(|one| cx.from_any(one)).transpose())
        .collect()
}

/// Adds the Jacobian of each batch element of `y` with respect to that of `x` to a graph, as
/// [`Tape::batch_jacobian`] computes it. The shape of `y` must be known but for the batch.
///
/// # Errors
/// As for [`jacobian`] and [`Tape::batch_jacobian`].
pub fn batch_jacobian<C: Mode>(cx: &C, y: &C::Value, x: &C::Value) -> Result<C::Value> {
    let any = cx.any();
    let (y, x) = (cx.to_any(y), cx.to_any(x));
    let xs = [x.clone()];
    let of = |seed: &AnyValue| seeded(&any, &y, &xs, seed);
    cx.from_any(batch_rows(&any, &y, &x, &of)?)
}

/// Returns the Hessian of a number that a closure computes of `x`: all second derivatives, of the shape
/// `x.shape + x.shape`. Both modes.
///
/// # Errors
/// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a result that is not one number or does not
/// depend on `x`, those of the closure, and as for [`jacobian`].
pub fn hessian<C: Mode>(
    cx: &C,
    x: &C::Value,
    function: impl FnOnce(&AnyContext, &AnyValue) -> Result<AnyValue>,
) -> Result<C::Value> {
    let (any, x) = (cx.any(), cx.to_any(x));
    let number = |y: AnyValue| match y.shape()?.dims() {
        Some([]) | None => Ok(y),
        Some(dims) => Err(Error::argument(format!(
            "a Hessian is of one number, and the closure's result has the shape {dims:?}"
        ))),
    };
    let unconnected = || Error::argument("the closure's result does not depend on x");
    let found = match Tapes::over(&any) {
        Some(Tapes { outer, inner }) => {
            let handle = x.handle()?;
            outer.watch(handle)?;
            inner.watch(handle)?;
            let y = number(function(&inner.any(), &x)?)?;
            let gradient = inner.gradients(&[y.handle()?], &[handle])?.pop().flatten();
            let gradient = gradient.ok_or_else(unconnected)?;
            match outer.jacobian(&gradient, &[handle])?.pop().flatten() {
                Some(found) => found.into(),
                None => zeros(&any, &gradient.into(), &x)?,
            }
        }
        None => {
            let y = number(function(&any, &x)?)?;
            let gradient = gradients(&any, &[y], std::slice::from_ref(&x))?;
            let gradient = gradient.into_iter().next().flatten();
            let gradient = gradient.ok_or_else(unconnected)?;
            match jacobian(&any, &gradient, std::slice::from_ref(&x))?.pop() {
                Some(Some(found)) => found,
                _ => zeros(&any, &gradient, &x)?,
            }
        }
    };
    cx.from_any(found)
}

/// Computes what a closure makes of some values, and how its results change where the values change by
/// the tangents: the products of the Jacobians with them (forward mode). Both modes.
///
/// Returns the results with their tangents; that of a result is `None` if it depends on no value. It
/// costs two gradients, whatever the size of the results.
///
/// # Errors
/// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for another number of tangents than of values;
/// [`ErrorKind::DType`](tfp_core::ErrorKind::DType) and [`ErrorKind::Shape`](tfp_core::ErrorKind::Shape)
/// for one that does not fit; those of the closure, and as for [`gradients`](crate::gradients).
pub fn forward_products<C: Mode>(
    cx: &C,
    values: &[C::Value],
    tangents: &[C::Value],
    function: impl FnOnce(&AnyContext, &[AnyValue]) -> Result<Vec<AnyValue>>,
) -> Result<Vec<WithTangent<C::Value>>> {
    if values.len() != tangents.len() {
        return Err(Error::argument(format!(
            "{} values and {} tangents: expected one for each",
            values.len(),
            tangents.len()
        )));
    }
    let any = cx.any();
    let (xs, tangents) = (any_of(cx, values), any_of(cx, tangents));
    let found = match Tapes::over(&any) {
        Some(tapes) => tapes.forward(&any, &xs, &tangents, function)?,
        None => {
            let ys = function(&any, &xs)?;
            let tangents_of = |y: AnyValue| -> Result<WithTangent<AnyValue>> {
                let seed = ops::zeros_like(&any, &y)?;
                let back = seeded(&any, &y, &xs, &seed)?;
                let found = match connected(&back, &tangents)? {
                    (list, _) if list.is_empty() => None,
                    (list, given) => graph_product(&any, &list, &given, &seed)?,
                };
                Ok((y, found))
            };
            ys.into_iter()
                .map(tangents_of)
                .collect::<Result<Vec<_>>>()?
        }
    };
    let back = |(y, tangent): WithTangent<AnyValue>| {
        let tangent = tangent.map(|one| cx.from_any(one)).transpose()?;
        Ok((cx.from_any(y)?, tangent))
    };
    found.into_iter().map(back).collect()
}

/// A tape over a tape, for gradients of gradients.
struct Tapes {
    outer: Tape,
    inner: Tape,
}

impl Tapes {
    /// Tapes over an eager context or another tape; none for a graph.
    fn over(cx: &AnyContext) -> Option<Self> {
        let outer = match cx {
            AnyContext::Eager(eager) => Tape::without_variables(eager),
            AnyContext::Tape(tape) => Tape::without_variables(tape),
            AnyContext::Scope(_) | AnyContext::Func(_) => return None,
        };
        let inner = Tape::without_variables(&outer);
        Some(Self { outer, inner })
    }

    fn forward(
        &self,
        cx: &AnyContext,
        xs: &[AnyValue],
        tangents: &[AnyValue],
        function: impl FnOnce(&AnyContext, &[AnyValue]) -> Result<Vec<AnyValue>>,
    ) -> Result<Vec<WithTangent<AnyValue>>> {
        let handles = xs.iter().map(AnyValue::handle);
        let handles = handles.collect::<Result<Vec<_>>>()?;
        for handle in &handles {
            self.inner.watch(handle)?;
        }
        let ys = function(&self.inner.any(), xs)?;
        let mut found = Vec::new();
        for y in ys {
            let seed = ops::zeros_like(cx, &y)?;
            // The gradients are linear in what they begin with: their derivative is the product.
            self.outer.watch(seed.handle()?)?;
            let back = self.inner.seeded(y.handle()?, &handles, &seed)?;
            let (list, given) = connected(&back, tangents)?;
            let mut product = None;
            if !list.is_empty() {
                let ys = list.iter().map(AnyValue::handle);
                let ys = ys.collect::<Result<Vec<_>>>()?;
                let given = given.iter().map(|one| one.handle().cloned().map(Some));
                let options = GradientOptions {
                    grad_ys: &given.collect::<Result<Vec<_>>>()?,
                    ..GradientOptions::default()
                };
                let found = self
                    .outer
                    .gradients_with(&ys, &[seed.handle()?], &options)?;
                if let Some(found) = found.into_iter().next().flatten() {
                    let dense = found.try_map(|handle| Ok(AnyValue::Handle(handle)))?;
                    product = Some(dense.dense(cx)?);
                }
            }
            found.push((y, product));
        }
        Ok(found)
    }
}

/// The gradients that there are, with the tangents of their values.
fn connected(
    back: &[Option<AnyValue>],
    tangents: &[AnyValue],
) -> Result<(Vec<AnyValue>, Vec<AnyValue>)> {
    let pairs = back.iter().zip(tangents);
    let there = pairs.filter_map(|(back, tangent)| Some((back.clone()?, tangent.clone())));
    Ok(there.unzip())
}

fn graph_product(
    cx: &AnyContext,
    ys: &[AnyValue],
    given: &[AnyValue],
    seed: &AnyValue,
) -> Result<Option<AnyValue>> {
    let given: Vec<Option<AnyValue>> = given.iter().cloned().map(Some).collect();
    let options = GradientOptions {
        grad_ys: &given,
        ..GradientOptions::default()
    };
    let found = gradients_with(cx, ys, std::slice::from_ref(seed), &options)?;
    let found = found.into_iter().next().flatten();
    found.map(|one| one.dense(cx)).transpose()
}

fn any_of<C: Mode>(cx: &C, values: &[C::Value]) -> Vec<AnyValue> {
    values.iter().map(|value| cx.to_any(value)).collect()
}

fn handles(found: Vec<Option<AnyValue>>) -> Result<Vec<Option<TensorHandle>>> {
    let handle = |one: Option<AnyValue>| one.map(|one| one.handle().cloned()).transpose();
    found.into_iter().map(handle).collect()
}

/// The gradients of a graph with a gradient of `y` that is given.
fn seeded(
    cx: &AnyContext,
    y: &AnyValue,
    xs: &[AnyValue],
    seed: &AnyValue,
) -> Result<Vec<Option<AnyValue>>> {
    let seeds = [Some(seed.clone())];
    let options = GradientOptions {
        grad_ys: &seeds,
        ..GradientOptions::default()
    };
    let found = gradients_with(cx, std::slice::from_ref(y), xs, &options)?;
    let dense = found.into_iter().map(|one| one.map(|one| one.dense(cx)));
    dense.map(Option::transpose).collect()
}

/// The sizes of a value's dimensions.
fn sizes(y: &AnyValue) -> Result<Vec<i64>> {
    let shape: Shape = y.shape()?;
    let dims = shape
        .dims()
        .filter(|dims| dims.iter().all(|&size| size >= 0));
    let dims = dims.ok_or_else(|| {
        Error::argument(format!(
            "a Jacobian is of a value of known shape, and this one has {shape}"
        ))
    })?;
    Ok(dims.to_vec())
}

/// Zeros with a one, of a type and a shape.
fn one_hot(
    cx: &AnyContext,
    dtype: DataType,
    dims: &[i64],
    count: usize,
    at: usize,
) -> Result<AnyValue> {
    let mut values = vec![0.0_f32; count];
    if let Some(value) = values.get_mut(at) {
        *value = 1.0;
    }
    let seed = cx.constant(&Tensor::from_vec(values, dims)?)?;
    match dtype {
        DataType::FLOAT => Ok(seed),
        _ => ops::cast(cx, seed, dtype, ops::CastOptions::default()),
    }
}

/// Zeros of the shapes of both values.
fn zeros(cx: &AnyContext, y: &AnyValue, x: &AnyValue) -> Result<AnyValue> {
    let shape = |value: &AnyValue| ops::shape(cx, value, ops::ShapeOptions::default());
    let all = ops::concat_v2(cx, [&shape(y)?, &shape(x)?], 0)?;
    let zero = one_hot(cx, x.dtype(), &[], 1, 1)?;
    ops::fill(cx, all, zero)
}

/// The rows of Jacobians, one per element of `y`.
fn rows(
    cx: &AnyContext,
    y: &AnyValue,
    xs: usize,
    of: &Gradients<'_>,
) -> Result<Vec<Option<AnyValue>>> {
    let dims = sizes(y)?;
    let count = dims.iter().product::<i64>() as usize;
    if count == 0 {
        return Err(Error::argument("a Jacobian of a value without elements"));
    }
    let mut all = vec![Some(Vec::new()); xs];
    for at in 0..count {
        let found = of(&one_hot(cx, y.dtype(), &dims, count, at)?)?;
        for (rows, row) in all.iter_mut().zip(found) {
            match (rows.as_mut(), row) {
                (Some(rows), Some(row)) => rows.push(row),
                _ => *rows = None,
            }
        }
    }
    let sized = |rows: Vec<AnyValue>| -> Result<AnyValue> {
        let inner = ops::shape(cx, &rows[0], ops::ShapeOptions::default())?;
        let outer = cx.constant(&lengths(&dims)?)?;
        let shape = ops::concat_v2(cx, [&outer, &inner], 0)?;
        ops::reshape(
            cx,
            ops::pack(cx, &rows, ops::PackOptions::default())?,
            shape,
        )
    };
    all.into_iter()
        .map(|rows| rows.map(sized).transpose())
        .collect()
}

/// The rows of the Jacobians of all batch elements.
fn batch_rows(cx: &AnyContext, y: &AnyValue, x: &AnyValue, of: &Gradients<'_>) -> Result<AnyValue> {
    let (y_shape, x_shape) = (y.shape()?, x.shape()?);
    let first = |shape: &Shape| shape.dims().and_then(|dims| dims.first().copied());
    let agree = match (first(&y_shape), first(&x_shape)) {
        (Some(y), Some(x)) => y == x || y < 0 || x < 0,
        _ => false,
    };
    if !agree {
        return Err(Error::argument(format!(
            "a Jacobian by batch elements is of values with the same first dimension, and these \
             have the shapes {y_shape} and {x_shape}"
        )));
    }
    let inner = y_shape.dims().and_then(|dims| dims.get(1..)).unwrap_or(&[]);
    let known = inner.iter().all(|&size| size >= 0);
    let count = inner.iter().product::<i64>() as usize;
    if !known || count == 0 {
        return Err(Error::argument(format!(
            "a Jacobian is of values whose batch elements have a known shape, and this one has \
             {y_shape}"
        )));
    }
    let shape = ops::shape(cx, y, ops::ShapeOptions::default())?;
    let mut columns = Vec::new();
    for at in 0..count {
        let one = one_hot(cx, y.dtype(), inner, count, at)?;
        let found = of(&ops::broadcast_to(cx, one, &shape)?)?;
        let found = found.into_iter().next().flatten();
        columns.push(found.ok_or_else(|| Error::argument("y does not depend on x"))?);
    }
    let options = ops::PackOptions { axis: Some(1) };
    let packed = ops::pack(cx, &columns, options)?;
    let sizes = |value: &AnyValue| ops::shape(cx, value, ops::ShapeOptions::default());
    let rest = |value: &AnyValue| -> Result<AnyValue> {
        let rank = value.shape()?.dims().map_or(0, <[i64]>::len) as i32;
        ops::slice(cx, sizes(value)?, [1_i32], [rank - 1])
    };
    let all = [&shape, &rest(x)?];
    ops::reshape(cx, packed, ops::concat_v2(cx, all, 0)?)
}

/// Sizes as a shape that ops take.
fn lengths(dims: &[i64]) -> Result<Tensor> {
    let sizes: Vec<i32> = dims.iter().map(|&size| size as i32).collect();
    Tensor::from_vec(sizes, &[dims.len() as i64])
}
