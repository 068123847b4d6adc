//! One value type over outputs of graphs and tensors of eager contexts.

use tfp_core::{
    Attr, DataType, Error, ErrorKind, IntoOperand, Operand, Output, Result, Shape, Tensor,
    TensorHandle, Value,
};

/// A tensor value of any mode.
///
/// Two are equal when they are the same tensor of the same graph or eager context.
#[derive(Clone, Debug)]
pub enum AnyValue {
    /// An output in a graph.
    Output(Output),
    /// A tensor of an eager context.
    Handle(TensorHandle),
}

impl Value for AnyValue {
    #[inline]
    fn dtype(&self) -> DataType {
        match self {
            Self::Output(output) => output.dtype(),
            Self::Handle(handle) => handle.dtype(),
        }
    }

    fn shape(&self) -> Result<Shape> {
        Self::shape(self)
    }
}

impl PartialEq for AnyValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Output(a), Self::Output(b)) => a == b,
            (Self::Handle(a), Self::Handle(b)) => a.id() == b.id(),
            _ => false,
        }
    }
}

impl Eq for AnyValue {}

impl std::hash::Hash for AnyValue {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match self {
            Self::Output(output) => output.hash(state),
            Self::Handle(handle) => handle.id().hash(state),
        }
    }
}

impl AnyValue {
    /// Returns the element type; that of the values for a reference.
    #[must_use]
    pub fn dtype(&self) -> DataType {
        Value::dtype(self).base()
    }

    /// Returns what is known of the shape, which is everything in eager mode.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn shape(&self) -> Result<Shape> {
        match self {
            Self::Output(output) => output.shape(),
            Self::Handle(handle) => handle.shape(),
        }
    }

    /// Returns the value where it is known now: in eager mode always, in a graph for a constant.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn known(&self) -> Result<Option<Tensor>> {
        match self {
            Self::Handle(handle) => handle.to_tensor().map(Some),
            Self::Output(output) => match output.operation().op_type().as_str() {
                "Const" => match output.operation().attr("value")? {
                    Attr::Tensor(tensor) => Ok(Some(tensor)),
                    _ => Ok(None),
                },
                _ => Ok(None),
            },
        }
    }

    /// Returns the output of a graph.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`] for a tensor of an eager context.
    pub fn output(&self) -> Result<&Output> {
        match self {
            Self::Output(output) => Ok(output),
            Self::Handle(_) => Err(foreign(
                "a tensor of an eager context was used where an output of a graph is expected",
            )),
        }
    }

    /// Returns the tensor of an eager context.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`] for an output of a graph.
    pub fn handle(&self) -> Result<&TensorHandle> {
        match self {
            Self::Handle(handle) => Ok(handle),
            Self::Output(output) => Err(foreign(format!(
                "output '{}' of a graph was used where a tensor of an eager context is expected",
                output.name()
            ))),
        }
    }
}

#[cold]
pub(crate) fn foreign(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Foreign { what: what.into() })
}

impl From<Output> for AnyValue {
    fn from(output: Output) -> Self {
        Self::Output(output)
    }
}

impl From<TensorHandle> for AnyValue {
    fn from(handle: TensorHandle) -> Self {
        Self::Handle(handle)
    }
}

impl From<&Output> for AnyValue {
    fn from(output: &Output) -> Self {
        Self::Output(output.clone())
    }
}

impl From<&TensorHandle> for AnyValue {
    fn from(handle: &TensorHandle) -> Self {
        Self::Handle(handle.clone())
    }
}

impl<'a> IntoOperand<'a, AnyValue> for &'a Output {
    fn into_operand(self) -> Operand<'a, AnyValue> {
        Operand::Owned(self.into())
    }
}

impl<'a> IntoOperand<'a, AnyValue> for &'a TensorHandle {
    fn into_operand(self) -> Operand<'a, AnyValue> {
        Operand::Owned(self.into())
    }
}

/// Whether a gradient flows through tensors of a type.
pub(crate) fn is_differentiable(dtype: DataType) -> bool {
    let dtype = dtype.base();
    dtype.is_float()
        || dtype.is_complex()
        || matches!(dtype, DataType::RESOURCE | DataType::VARIANT)
}
