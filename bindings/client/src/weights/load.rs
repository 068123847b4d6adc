//! Variables take the values of a file.

use std::collections::BTreeSet;
use std::fmt;

use tfp_core::{DataType, Error, ErrorKind, Result, Shape, Tensor};

use super::file::TensorFile;
use super::layout;
use super::mapping::Mapping;
use super::named::NamedVariables;
use crate::checkpoint::host;
use crate::ops;
use crate::variable::Variable;

/// What came of loading: the variables that got values, and everything that did not match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// The names of the variables that have the file's values.
    pub loaded: Vec<String>,
    /// The names of the variables that the file has nothing for; they keep their values.
    pub missing: Vec<String>,
    /// The names of the file's tensors that no variable took.
    pub unexpected: Vec<String>,
    /// Variables whose tensor has another shape or element type; they keep their values.
    pub mismatched: Vec<Mismatch>,
}

/// A variable whose tensor does not fit it.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// The name of the variable.
    pub variable: String,
    /// The name of the tensor in the file.
    pub tensor: String,
    /// The element type and shape of the variable.
    pub expected: (DataType, Shape),
    /// The element type and shape of the tensor, with its axes in the order of the variable's.
    pub found: (DataType, Shape),
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((expected, shape), (found, other)) = (&self.expected, &self.found);
        write!(
            f,
            "'{}' is {expected} of shape {shape}, and '{}' in the file {found} of shape {other}",
            self.variable, self.tensor
        )
    }
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} variables loaded", self.loaded.len())?;
        for (what, names) in [
            ("missing in the file", &self.missing),
            ("in the file and not used", &self.unexpected),
        ] {
            if !names.is_empty() {
                write!(f, "; {what}: {}", names.join(", "))?;
            }
        }
        for mismatch in &self.mismatched {
            write!(f, "; {mismatch}")?;
        }
        Ok(())
    }
}

impl Loaded {
    /// Whether everything matched.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.unexpected.is_empty() && self.mismatched.is_empty()
    }
}

/// A variable and the name of the tensor that it takes.
struct Pair<'m> {
    variable: Variable,
    tensor: String,
    axes: Option<&'m [usize]>,
    dtype: DataType,
}

impl TensorFile {
    /// Gives variables the values of the file. Those that match take them, the others keep theirs; the
    /// report says which. All tensors are read before the first variable is changed.
    ///
    /// # Errors
    /// [`ErrorKind::File`], naming file and tensor, for damaged data and, with [`Mapping::strict`], for
    /// anything that does not match; [`ErrorKind::Argument`] for two variables of one name or two that
    /// take the same tensor, and as for [`NamedVariables::set_values_of`]. Nothing is changed then,
    /// unless TensorFlow itself fails in between.
    pub fn load<N: NamedVariables + ?Sized>(&self, into: &N, names: &Mapping) -> Result<Loaded> {
        let mut report = Loaded::default();
        let mut pairs = Vec::new();
        let (mut variables, mut taken) = (BTreeSet::new(), BTreeSet::new());
        for (name, variable) in into.named_variables() {
            let wanted = names.tensor_name(&name);
            let Some(tensor) = self.resolve(&wanted).map(str::to_owned) else {
                report.missing.push(name);
                continue;
            };
            if !variables.insert(name.clone()) || !taken.insert(tensor.clone()) {
                return Err(Error::argument(format!(
                    "the variable '{name}' is there twice, or takes the tensor '{tensor}' of another"
                )));
            }
            let axes = names.axes(&name);
            let pair = self.pair(&variable, &tensor, axes, names.casts)?;
            match pair {
                Ok(pair) => {
                    report.loaded.push(name);
                    pairs.push(pair);
                }
                Err(found) => report.mismatched.push(Mismatch {
                    variable: name,
                    tensor,
                    expected: (variable.dtype(), variable.shape().clone()),
                    found,
                }),
            }
        }
        let unexpected = self
            .names()
            .filter(|name| !taken.contains(*name) && !names.is_ignored(name));
        report.unexpected = unexpected.map(str::to_owned).collect();
        if names.is_strict && !report.is_complete() {
            return Err(self.error(format!("it does not match: {report}")));
        }
        let tensors = pairs
            .iter()
            .map(|pair| self.fitting(pair))
            .collect::<Result<Vec<_>>>()?;
        let values: Vec<(&Variable, &Tensor)> = pairs
            .iter()
            .map(|pair| &pair.variable)
            .zip(&tensors)
            .collect();
        into.set_values_of(&values)?;
        Ok(report)
    }

    /// A variable with its tensor, or the type and shape of one that does not fit.
    fn pair<'m>(
        &self,
        variable: &Variable,
        tensor: &str,
        axes: Option<&'m [usize]>,
        casts: bool,
    ) -> Result<std::result::Result<Pair<'m>, (DataType, Shape)>> {
        let (dtype, dims) = self.described(tensor)?;
        let moved = match axes {
            Some(axes) => layout::permuted(dims, axes),
            None => Some(dims.to_vec()),
        };
        let shape = Shape::from(moved.as_deref().unwrap_or(dims));
        let is_type =
            dtype == variable.dtype() || (casts && is_number(dtype) && is_number(variable.dtype()));
        if moved.is_none() || !is_type || !variable.shape().is_compatible_with(&shape) {
            return Ok(Err((dtype, shape)));
        }
        Ok(Ok(Pair {
            variable: variable.clone(),
            tensor: tensor.to_owned(),
            axes,
            dtype,
        }))
    }

    /// Reads a tensor as its variable takes it.
    fn fitting(&self, pair: &Pair<'_>) -> Result<Tensor> {
        let mut tensor = self.read(&pair.tensor)?;
        if let Some(axes) = pair.axes {
            tensor = layout::permute(&tensor, axes)?;
        }
        if pair.dtype != pair.variable.dtype() {
            let options = ops::CastOptions::default();
            tensor = ops::cast(&host()?, &tensor, pair.variable.dtype(), options)?.to_tensor()?;
        }
        Ok(tensor)
    }

    /// An error about the file.
    pub(super) fn error(&self, problem: impl Into<String>) -> Error {
        Error::new(ErrorKind::File {
            path: self.path().display().to_string(),
            problem: problem.into(),
        })
    }
}

/// Whether values of a type are numbers that a cast converts.
fn is_number(dtype: DataType) -> bool {
    !matches!(
        dtype,
        DataType::STRING | DataType::RESOURCE | DataType::VARIANT | DataType::BOOL
    )
}
