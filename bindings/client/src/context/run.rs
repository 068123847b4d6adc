//! Short ways to call ops in a context of any mode.

use tfp_core::{AttrValue, Context, DataType, OpBuilder, Result, Tensor};
use tfp_ops as ops;

use crate::context::any::AnyContext;
use crate::context::value::AnyValue;

/// Returns the first of an op's outputs.
pub(crate) fn first(values: Vec<AnyValue>) -> Result<AnyValue> {
    values
        .into_iter()
        .next()
        .ok_or_else(|| tfp_core::Error::argument("an op without outputs was called for its output"))
}

/// Short ways to call ops by their names.
pub(crate) trait Run {
    fn op(
        &self,
        op_type: &str,
        inputs: &[&AnyValue],
        attrs: &[(&str, AttrValue<'_>)],
    ) -> Result<Vec<AnyValue>>;
    fn op1(&self, op_type: &str, inputs: &[&AnyValue]) -> Result<AnyValue>;
    fn cast(&self, value: &AnyValue, dtype: DataType) -> Result<AnyValue>;
    fn constant_of(&self, tensor: &Tensor) -> Result<AnyValue>;
    /// Returns a scalar of the type of another value.
    fn scalar_like(&self, like: &AnyValue, value: f64) -> Result<AnyValue>;
    /// Returns a vector of 32-bit integers.
    fn ints(&self, list: &[i64]) -> Result<AnyValue>;
    /// Returns the shape as a vector of 32-bit integers, constant where it is known.
    fn shape_of(&self, value: &AnyValue) -> Result<AnyValue>;
    fn rank_of(&self, value: &AnyValue) -> Result<AnyValue>;
}

impl Run for AnyContext {
    fn op(
        &self,
        op_type: &str,
        inputs: &[&AnyValue],
        attrs: &[(&str, AttrValue<'_>)],
    ) -> Result<Vec<AnyValue>> {
        let mut builder = OpBuilder::new(op_type)?;
        for input in inputs {
            builder = builder.input(*input);
        }
        for (name, value) in attrs {
            builder = builder.attr(name, *value)?;
        }
        Ok(builder.execute(self)?.all())
    }

    fn op1(&self, op_type: &str, inputs: &[&AnyValue]) -> Result<AnyValue> {
        first(self.op(op_type, inputs, &[])?)
    }

    fn cast(&self, value: &AnyValue, dtype: DataType) -> Result<AnyValue> {
        if value.dtype() == dtype {
            return Ok(value.clone());
        }
        ops::cast(self, value, dtype, ops::CastOptions::default())
    }

    fn constant_of(&self, tensor: &Tensor) -> Result<AnyValue> {
        self.constant(tensor)
    }

    fn scalar_like(&self, like: &AnyValue, value: f64) -> Result<AnyValue> {
        match like.dtype() {
            DataType::FLOAT => self.constant(&Tensor::scalar(value as f32)?),
            DataType::DOUBLE => self.constant(&Tensor::scalar(value)?),
            other => self.cast(&self.constant(&Tensor::scalar(value)?)?, other),
        }
    }

    fn ints(&self, list: &[i64]) -> Result<AnyValue> {
        let narrow: Vec<i32> = list
            .iter()
            .map(|&value| {
                i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX })
            })
            .collect();
        self.constant(&Tensor::from_slice(&narrow, &[narrow.len() as i64])?)
    }

    fn shape_of(&self, value: &AnyValue) -> Result<AnyValue> {
        if value.dtype() != DataType::VARIANT {
            let shape = value.shape()?;
            if let Some(dims) = shape.dims().filter(|_| shape.is_fully_known()) {
                return self.ints(dims);
            }
        }
        ops::shape(self, value, ops::ShapeOptions::default())
    }

    fn rank_of(&self, value: &AnyValue) -> Result<AnyValue> {
        match value.shape()?.rank() {
            Some(rank) => self.constant(&Tensor::scalar(rank as i32)?),
            None => ops::rank(self, value),
        }
    }
}
