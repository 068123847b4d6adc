//! What gradient functions have at hand: the op, the gradients of its outputs, short ways to call ops.

use tfp_core::{AttrValue, Context, DataType, OpBuilder, Result, Tensor};
use tfp_ops as ops;

use super::record::{OpRecord, with_borrowed};
use super::slices::Gradient;
use crate::any::{AnyContext, AnyValue};

/// The gradients of an op's inputs, in their order; `None` where there is none.
pub type InputGradients = Vec<Option<Gradient<AnyValue>>>;

/// An op whose gradient is asked for.
pub struct Backward<'a> {
    pub(crate) cx: &'a AnyContext,
    pub(crate) op: &'a OpRecord,
    pub(crate) grads: &'a [Option<Gradient<AnyValue>>],
    pub(crate) needs: &'a [bool],
}

impl<'a> Backward<'a> {
    /// Returns the context to which the gradient is added, or which executes it.
    #[must_use]
    pub fn context(&self) -> &'a AnyContext {
        self.cx
    }

    /// Returns the op.
    #[must_use]
    pub fn op(&self) -> &'a OpRecord {
        self.op
    }

    /// Returns an input of the op.
    ///
    /// # Panics
    /// When the op has no such input, like indexing a slice.
    #[must_use]
    pub fn input(&self, index: usize) -> &'a AnyValue {
        &self.op.inputs[index]
    }

    /// Returns an output of the op.
    ///
    /// # Panics
    /// When the op has no such output, like indexing a slice.
    #[must_use]
    pub fn output(&self, index: usize) -> &'a AnyValue {
        &self.op.outputs[index]
    }

    /// Whether the gradient of an input is of use. A function may return `None` where it is not.
    #[must_use]
    pub fn needs(&self, input: usize) -> bool {
        self.needs.get(input).copied().unwrap_or(false)
    }

    /// Returns the gradient of an output as a tensor; zeros where nothing depends on the output.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn grad(&self, output: usize) -> Result<AnyValue> {
        match self.grad_or_none(output)? {
            Some(grad) => Ok(grad),
            None => ops::zeros_like(self.cx, self.output(output)),
        }
    }

    /// Returns the gradient of an output as a tensor; `None` where nothing depends on the output.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn grad_or_none(&self, output: usize) -> Result<Option<AnyValue>> {
        match self.grads.get(output) {
            Some(Some(grad)) => grad.clone().dense(self.cx).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the gradient of an output, which may be slices.
    #[must_use]
    pub fn raw_grad(&self, output: usize) -> Option<&'a Gradient<AnyValue>> {
        self.grads.get(output).and_then(Option::as_ref)
    }

    /// Calls an op with single inputs and some attributes of the differentiated op.
    pub(crate) fn run(
        &self,
        op_type: &str,
        inputs: &[&AnyValue],
        copied: &[&str],
    ) -> Result<Vec<AnyValue>> {
        self.run_with(op_type, inputs, copied, &[])
    }

    /// Calls an op whose first output is wanted.
    pub(crate) fn run1(
        &self,
        op_type: &str,
        inputs: &[&AnyValue],
        copied: &[&str],
    ) -> Result<AnyValue> {
        first(self.run(op_type, inputs, copied)?)
    }

    /// Calls an op with single inputs, some attributes of the differentiated op, and others.
    pub(crate) fn run_with(
        &self,
        op_type: &str,
        inputs: &[&AnyValue],
        copied: &[&str],
        given: &[(&str, AttrValue<'_>)],
    ) -> Result<Vec<AnyValue>> {
        let attrs = copied
            .iter()
            .map(|name| self.op.attr(name).map(|attr| (*name, attr)))
            .collect::<Result<Vec<_>>>()?;
        // Attributes are borrowed one inside the other, so that lists of strings may live on the stack.
        fn nest(
            cx: &AnyContext,
            op_type: &str,
            inputs: &[&AnyValue],
            attrs: &[(&str, tfp_core::Attr)],
            given: &mut Vec<(&str, AttrValue<'_>)>,
        ) -> Result<Vec<AnyValue>> {
            match attrs {
                [] => cx.op(op_type, inputs, given),
                [(name, attr), rest @ ..] => with_borrowed(attr, |value| {
                    let mut given: Vec<_> = given.iter().copied().chain([(*name, value)]).collect();
                    nest(cx, op_type, inputs, rest, &mut given)
                }),
            }
        }
        nest(self.cx, op_type, inputs, &attrs, &mut given.to_vec())
    }
}

/// Returns the first of an op's outputs.
pub(crate) fn first(values: Vec<AnyValue>) -> Result<AnyValue> {
    values
        .into_iter()
        .next()
        .ok_or_else(|| tfp_core::Error::argument("an op without outputs was called for its output"))
}

/// Returns the gradient of an op's only differentiable input, the first.
pub(crate) fn one(value: Result<AnyValue>) -> Result<InputGradients> {
    Ok(vec![Some(value?.into())])
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
