//! Serialized examples are parsed where a pipeline runs.

use tfp_core::{Context, DataType, Error, Result, Shape, Tensor};

use super::dataset::zero;
use crate::ops;

/// The features of a `tf.train.Example` that a program wants: their names, element types and shapes.
#[derive(Clone, Debug, Default)]
pub struct ExampleSpec {
    fields: Vec<Field>,
}

#[derive(Clone, Debug)]
struct Field {
    name: String,
    dtype: DataType,
    dims: Vec<i64>,
    default: Option<std::sync::Arc<Tensor>>,
}

impl ExampleSpec {
    /// No feature.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn with(
        mut self,
        name: &str,
        dtype: DataType,
        dims: Vec<i64>,
        default: Option<Tensor>,
    ) -> Self {
        self.fields.push(Field {
            name: name.to_owned(),
            dtype,
            dims,
            default: default.map(Into::into),
        });
        self
    }

    /// Adds a feature that each example must have, of type float32, int64 or string, with as many values
    /// as the shape has. It is Python's `FixedLenFeature`.
    #[must_use]
    pub fn fixed(self, name: &str, dtype: DataType, shape: &[i64]) -> Self {
        self.with(name, dtype, shape.to_vec(), None)
    }

    /// Adds a feature that an example may lack: then it has these values. Type and shape are theirs.
    #[must_use]
    pub fn fixed_or(self, name: &str, default: Tensor) -> Self {
        let (dtype, dims) = (default.dtype(), default.dims().to_vec());
        self.with(name, dtype, dims, Some(default))
    }

    /// Adds a feature of any number of rows of a shape, none where an example lacks it: the result has one
    /// more dimension. Of several examples, shorter ones are filled up with zeros or empty strings. It is
    /// Python's `FixedLenSequenceFeature(allow_missing=True)`.
    #[must_use]
    pub fn sequence(self, name: &str, dtype: DataType, row: &[i64]) -> Self {
        self.with(name, dtype, [&[-1], row].concat(), None)
    }

    /// Parses serialized examples, a string scalar or vector. Returns a tensor for each feature, in the
    /// order in which they were added; for a vector the examples are a new first dimension.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a feature of another type than examples
    /// have, and what TensorFlow says, as where a feature is missing.
    pub fn parse<C: Context>(&self, cx: &C, serialized: &C::Value) -> Result<Vec<C::Value>> {
        let mut defaults = Vec::new();
        for field in &self.fields {
            let valid = [DataType::FLOAT, DataType::INT64, DataType::STRING];
            if !valid.contains(&field.dtype) {
                return Err(Error::argument(format!(
                    "the feature '{}' is {}; examples have float32, int64 and strings",
                    field.name, field.dtype
                )));
            }
            defaults.push(match (&field.default, field.dims.first()) {
                (Some(default), _) => default.share()?,
                // What fills up.
                (None, Some(-1)) => zero(field.dtype)?,
                (None, _) if field.dtype == DataType::STRING => {
                    Tensor::from_strings::<&str>(&[], &[0])?
                }
                (None, _) => Tensor::zeros(field.dtype, &[0])?,
            });
        }
        let none = Tensor::from_strings::<&str>(&[], &[0])?;
        let names: Vec<&str> = self
            .fields
            .iter()
            .map(|field| field.name.as_str())
            .collect();
        let names = Tensor::from_strings(&names, &[names.len() as i64])?;
        let shapes: Vec<Shape> = self
            .fields
            .iter()
            .map(|field| Shape::from(field.dims.as_slice()))
            .collect();
        let parsed = ops::parse_example_v2(
            cx,
            serialized,
            &none,
            &none,
            &names,
            &none,
            defaults.iter().collect::<Vec<_>>(),
            0,
            &[],
            &[],
            &[],
            &shapes,
        )?;
        Ok(parsed.dense_values)
    }
}
