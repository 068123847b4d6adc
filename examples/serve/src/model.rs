//! What can be served: something with signatures that computes arrays of arrays.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::array::{Array, DType};
use crate::failure::{Failure, Status};

/// What is said of a model that is lost.
pub(crate) const LOST: &str = "a run has left the model unusable";

/// An argument or a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// Its name in requests.
    pub name: String,
    /// The name of the tensor in the model's graph, for the metadata.
    pub tensor: String,
    /// The type, such as `DT_FLOAT`; a type that is not one of [`DType`] can't be called with.
    pub dtype: String,
    /// The shape with -1 for what is open; `None` for an unknown rank.
    pub dims: Option<Vec<i64>>,
}

/// A way to call a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signature {
    /// The arguments.
    pub inputs: Vec<Spec>,
    /// The results.
    pub outputs: Vec<Spec>,
    /// What it is for, such as `tensorflow/serving/predict`.
    pub method: String,
}

/// A model. Several threads call it together.
pub trait Model: Send + Sync {
    /// The signatures, by name. They don't change.
    fn signatures(&self) -> &BTreeMap<String, Signature>;

    /// Computes the results of a signature, in the order of its outputs, from arrays in the order
    /// of its inputs. Types and shapes fit the signature. After the deadline nobody waits.
    ///
    /// # Errors
    /// Why there is not a result.
    fn run(
        &self,
        signature: &str,
        inputs: Vec<Array>,
        deadline: Instant,
    ) -> Result<Vec<Array>, Failure>;

    /// Whether an earlier run has left it unusable: no run has a result any more.
    fn is_lost(&self) -> bool {
        false
    }
}

impl Spec {
    /// The element type.
    ///
    /// # Errors
    /// [`Status::Unimplemented`] for a type that requests have no form for.
    pub fn element(&self) -> Result<DType, Failure> {
        DType::from_name(&self.dtype).ok_or_else(|| {
            let what = format!("tensor '{}' has the type {}", self.name, self.dtype);
            Failure::new(
                Status::Unimplemented,
                format!("{what}, which is not served"),
            )
        })
    }

    /// Checks that an array has the type and the shape.
    ///
    /// # Errors
    /// What was expected, and what there is.
    pub fn check(&self, array: &Array) -> Result<(), Failure> {
        let dtype = array.data.dtype().name();
        let fits = self.dims.as_ref().is_none_or(|dims| {
            let mut both = dims.iter().zip(&array.dims);
            dims.len() == array.dims.len()
                && both.all(|(&wanted, &size)| wanted < 0 || wanted as usize == size)
        });
        match fits && dtype == self.dtype {
            true => Ok(()),
            false => Err(Failure::invalid(format!(
                "input '{}' is {} of the shape {}, found {dtype} of the shape {:?}",
                self.name,
                self.dtype,
                self.shape(),
                array.dims
            ))),
        }
    }

    fn shape(&self) -> String {
        match &self.dims {
            Some(dims) => format!("{dims:?}"),
            None => "any".to_owned(),
        }
    }

    fn has_rows(&self) -> bool {
        let first = self.dims.as_ref().and_then(|dims| dims.first());
        first.is_some_and(|&size| size < 0)
    }
}

impl Signature {
    /// Whether requests may go together: axis 0 of every argument and result is open.
    #[must_use]
    pub fn has_rows(&self) -> bool {
        !self.inputs.is_empty() && self.inputs.iter().chain(&self.outputs).all(Spec::has_rows)
    }
}
