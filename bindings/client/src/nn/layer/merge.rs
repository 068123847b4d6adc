//! Layers that make one value of several.

use tfp_core::{DataType, Error, Result};

use super::described::{Arguments, KerasLayer};
use super::{Built, BuiltMany, Layer, Pass, wrong_input};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::Weights;
use crate::ops;

/// An element-wise function of two or more values that broadcast.
type Binary = fn(&AnyContext, AnyValue, &AnyValue) -> Result<AnyValue>;

macro_rules! elementwise {
    ($($(#[$doc:meta])* $name:ident, $binary:expr, $mean:expr;)*) => {
        $($(#[$doc])*
        ///
        /// Shapes without the batch broadcast. The mask is true where one of the inputs' is; an input
        /// without a mask has none.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name;

        impl Layer for $name {
            fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
                Err(one(stringify!($name), input))
            }

            fn build_many(&self, _: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
                merged(stringify!($name), inputs, $binary, $mean)
            }

            fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
                Ok(KerasLayer::new(stringify!($name)).call(Arguments::List))
            }
        })*
    };
}

elementwise! {
    /// The sum of its inputs.
    Add, |cx, a, b| ops::add_v2(cx, a, b), false;
    /// The product of its inputs.
    Multiply, |cx, a, b| ops::mul(cx, a, b), false;
    /// The mean of its inputs.
    Average, |cx, a, b| ops::add_v2(cx, a, b), true;
    /// The largest of its inputs.
    Maximum, |cx, a, b| ops::maximum(cx, a, b), false;
    /// The smallest of its inputs.
    Minimum, |cx, a, b| ops::minimum(cx, a, b), false;
    /// Its first input without its second one.
    Subtract, |cx, a, b| ops::sub(cx, a, b), false;
}

/// An error about a single input.
fn one(layer: &str, input: &[i64]) -> Error {
    wrong_input(layer, "two inputs or more", input)
}

fn merged(layer: &str, inputs: &[&[i64]], binary: Binary, mean: bool) -> Result<BuiltMany> {
    let most = if layer == "Subtract" { 2 } else { usize::MAX };
    let [first, rest @ ..] = inputs else {
        return Err(Error::argument(format!("{layer} without an input")));
    };
    if rest.is_empty() {
        return Err(one(layer, first));
    }
    if inputs.len() > most {
        return Err(Error::argument(format!(
            "{layer} takes {most} inputs, found {}",
            inputs.len()
        )));
    }
    let mut output = first.to_vec();
    for shape in rest {
        output = broadcast(&output, shape).ok_or_else(|| {
            Error::argument(format!(
                "{layer} takes inputs whose shapes broadcast, found {inputs:?} per sample"
            ))
        })?;
    }
    let (rank, count) = (output.len(), inputs.len() as f32);
    let ranks: Vec<usize> = inputs.iter().map(|shape| shape.len()).collect();
    BuiltMany::new(vec![output], move |pass, inputs| {
        let cx = pass.context();
        let mut sum: Option<AnyValue> = None;
        for (input, &own) in inputs.iter().zip(&ranks) {
            let mut input = input.clone();
            // As Keras does, so that the batch stays first.
            for _ in own..rank {
                input = ops::expand_dims(cx, input, 1)?;
            }
            sum = Some(match sum {
                Some(sum) => binary(cx, sum, &input)?,
                None => input,
            });
        }
        let mask = any_mask(pass, inputs.len())?;
        pass.pass_mask(mask);
        let sum = sum.ok_or_else(|| Error::argument("a merge without an input"))?;
        let y = if mean { ops::div(cx, sum, count)? } else { sum };
        Ok(vec![y])
    })
}

/// The shape to which two broadcast.
fn broadcast(a: &[i64], b: &[i64]) -> Option<Vec<i64>> {
    let (long, short) = if a.len() < b.len() { (b, a) } else { (a, b) };
    let mut output = long.to_vec();
    for (size, &other) in output[long.len() - short.len()..].iter_mut().zip(short) {
        *size = match (*size, other) {
            (1, other) => other,
            (size, 1) => size,
            (size, other) if size < 0 || other < 0 => -1,
            (size, other) if size == other => size,
            _ => return None,
        };
    }
    Some(output)
}

/// The mask that is true where one of all inputs' masks is.
fn any_mask(pass: &Pass<'_>, inputs: usize) -> Result<Option<AnyValue>> {
    let mut found: Option<AnyValue> = None;
    for index in 0..inputs {
        let Some(mask) = pass.mask_of(index) else {
            return Ok(None);
        };
        found = Some(match found {
            Some(found) => ops::logical_or(pass.context(), found, mask)?,
            None => mask,
        });
    }
    Ok(found)
}

/// Its inputs side by side along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concatenate {
    /// The axis, where 0 is the batch; negative ones count from the last.
    pub axis: i64,
}

impl Default for Concatenate {
    fn default() -> Self {
        Self { axis: -1 }
    }
}

impl Layer for Concatenate {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("Concatenate")
            .set("axis", self.axis)
            .call(Arguments::List))
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        Err(one("Concatenate", input))
    }

    fn build_many(&self, _: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        let [first, rest @ ..] = inputs else {
            return Err(Error::argument("Concatenate without an input"));
        };
        if rest.is_empty() {
            return Err(one("Concatenate", first));
        }
        let rank = first.len() as i64 + 1;
        let axis = if self.axis < 0 {
            self.axis + rank
        } else {
            self.axis
        };
        let wrong = || {
            Error::argument(format!(
                "Concatenate takes shapes that are equal but for axis {}, found {inputs:?} per sample",
                self.axis
            ))
        };
        if !(1..rank).contains(&axis) {
            return Err(wrong());
        }
        let at = axis as usize - 1;
        let mut output = first.to_vec();
        for shape in rest {
            if shape.len() != output.len() {
                return Err(wrong());
            }
            for (index, (size, &other)) in output.iter_mut().zip(*shape).enumerate() {
                *size = match (*size, other) {
                    (size, other) if index == at && (size < 0 || other < 0) => -1,
                    (size, other) if index == at => size.saturating_add(other),
                    (size, other) if size < 0 => other,
                    (size, other) if other < 0 || size == other => size,
                    _ => return Err(wrong()),
                };
            }
        }
        BuiltMany::new(vec![output], move |pass, inputs| {
            let cx = pass.context();
            let mask = concatenated_mask(pass, inputs, axis, rank)?;
            pass.pass_mask(mask);
            Ok(vec![ops::concat_v2(cx, inputs, axis as i32)?])
        })
    }
}

/// The mask of values side by side, as in Keras: masks are spread over the inputs, and a step counts
/// where one of its elements does.
fn concatenated_mask(
    pass: &Pass<'_>,
    inputs: &[AnyValue],
    axis: i64,
    rank: i64,
) -> Result<Option<AnyValue>> {
    let cx = pass.context();
    if (0..inputs.len()).all(|index| pass.mask_of(index).is_none()) {
        return Ok(None);
    }
    let mut masks = Vec::new();
    for (index, input) in inputs.iter().enumerate() {
        let shape = ops::shape(cx, input, ops::ShapeOptions::default())?;
        let spread = match pass.mask_of(index) {
            None => ops::fill(cx, shape, true)?,
            Some(mask) => {
                let mut own = mask.shape()?.rank().unwrap_or(2) as i64;
                let mut mask = mask;
                while own < rank {
                    mask = ops::expand_dims(cx, mask, -1)?;
                    own += 1;
                }
                ops::broadcast_to(cx, mask, shape)?
            }
        };
        masks.push(spread);
    }
    let all = ops::concat_v2(cx, &masks, axis as i32)?;
    ops::any(cx, all, -1, ops::AnyOptions::default()).map(Some)
}

/// The products of two inputs along an axis of each: (batch, ..., n, ...) and (batch, ..., n, ...).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dot {
    /// The axis of each, where 0 is the batch; negative ones count from the last.
    pub axes: (i64, i64),
    /// Whether each is divided by its length first, so that the result is a cosine.
    pub normalize: bool,
}

impl Dot {
    /// The products along the same axis of both.
    #[must_use]
    pub fn new(axis: i64) -> Self {
        Self {
            axes: (axis, axis),
            normalize: false,
        }
    }
}

impl Layer for Dot {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("Dot")
            .set("axes", [self.axes.0, self.axes.1].as_slice())
            .set("normalize", self.normalize)
            .call(Arguments::List))
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        Err(one("Dot", input))
    }

    fn build_many(&self, _: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        let &[a, b] = inputs else {
            return Err(Error::argument(format!(
                "Dot takes two inputs, found {}",
                inputs.len()
            )));
        };
        let axis = |shape: &[i64], axis: i64| {
            let rank = shape.len() as i64 + 1;
            let axis = if axis < 0 { axis + rank } else { axis };
            (1..rank).contains(&axis).then_some(axis as usize)
        };
        let wrong = || {
            Error::argument(format!(
                "Dot takes two inputs of equal sizes along the axes {:?}, found {inputs:?} per sample",
                self.axes
            ))
        };
        let (i, j) = match (axis(a, self.axes.0), axis(b, self.axes.1)) {
            (Some(i), Some(j)) if a[i - 1] == b[j - 1] || a[i - 1] < 0 || b[j - 1] < 0 => (i, j),
            _ => return Err(wrong()),
        };
        // (batch, rows, n) by (batch, n, columns).
        let rest = |shape: &[i64], axis: usize| -> Vec<i64> {
            let mut rest = shape.to_vec();
            rest.remove(axis - 1);
            rest
        };
        let (rows, columns) = (rest(a, i), rest(b, j));
        let mut output = [rows.clone(), columns.clone()].concat();
        if output.is_empty() {
            output.push(1);
        }
        let is_scalar = rows.is_empty() && columns.is_empty();
        let normalize = self.normalize;
        let forward = move |pass: &Pass<'_>, inputs: &[AnyValue]| {
            let cx = pass.context();
            let [x, y] = inputs else {
                return Err(Error::argument("Dot takes two inputs"));
            };
            let (x, batch, rows) = side(cx, x, i, rows.len(), normalize)?;
            let (y, _, columns) = side(cx, y, j, columns.len(), normalize)?;
            let options = ops::BatchMatMulV2Options {
                adj_y: Some(true),
                ..Default::default()
            };
            let product = ops::batch_mat_mul_v2(cx, x, y, options)?;
            if is_scalar {
                return Ok(vec![ops::reshape(cx, product, [-1, 1])?]);
            }
            let shape = ops::concat_v2(cx, [&batch, &rows, &columns], 0)?;
            Ok(vec![ops::reshape(cx, product, shape)?])
        };
        BuiltMany::new(vec![output], forward)
    }
}

/// One side of a product, whose other dimensions are `rest`: (batch, the rest, n) as a matrix per
/// sample, the batch's size, and the other sizes.
fn side(
    cx: &AnyContext,
    x: &AnyValue,
    axis: usize,
    rest: usize,
    normalize: bool,
) -> Result<(AnyValue, AnyValue, AnyValue)> {
    let x = match normalize {
        true => unit(cx, x, axis as i32)?,
        false => x.clone(),
    };
    let others = (0..rest + 2).filter(|&one| one != axis);
    let order: Vec<i32> = others.chain([axis]).map(|one| one as i32).collect();
    let x = ops::transpose(cx, x, order.as_slice())?;
    let shape = ops::shape(cx, &x, ops::ShapeOptions::default())?;
    let part = |begin: i32, size: i32| ops::slice(cx, &shape, [begin], [size]);
    let rest = rest as i32;
    let (batch, inner, n) = (part(0, 1)?, part(1, rest)?, part(rest + 1, 1)?);
    let any = ops::identity(cx, [-1_i32])?;
    let matrix = ops::concat_v2(cx, [&batch, &any, &n], 0)?;
    Ok((ops::reshape(cx, x, matrix)?, batch, inner))
}

/// Divides by the length along an axis, which is at least the square root of 1e-12.
fn unit(cx: &AnyContext, x: &AnyValue, axis: i32) -> Result<AnyValue> {
    let options = ops::SumOptions {
        keep_dims: Some(true),
    };
    let sum = ops::sum(cx, ops::square(cx, x)?, axis, options)?;
    let least = match x.dtype() {
        DataType::HALF => 1e-7_f32,
        _ => 1e-12,
    };
    ops::mul(cx, x, ops::rsqrt(cx, ops::maximum(cx, sum, least)?)?)
}
