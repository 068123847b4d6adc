//! Variables: tensors that steps change, in graphs and in eager contexts.

mod cast;
mod change;
mod session;

use std::fmt;
use std::sync::Arc;

use tfp_core::{
    Bytes, DataType, Error, ErrorKind, IntoOperand, Operation, Result, Scope, Session, Shape,
    Tensor, Value,
};
use tfp_ops::{
    AssignVariableOpOptions, VarHandleOpOptions, assign_variable_op, read_variable_op,
    var_handle_op, var_is_initialized_op,
};

use crate::context::any::{AnyContext, Mode};
use crate::context::value::AnyValue;

pub(crate) use self::session::assignments;
pub use self::session::{initialize, set_in, values_in};

/// The shared name of resources that live as long as a handle of them does.
pub(crate) const ANONYMOUS: &str = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

/// How a variable is made.
#[derive(Clone, Debug)]
pub struct VariableOptions {
    /// Whether training changes it.
    pub trainable: bool,
    /// What values it may take; `None` for those of the initial value's shape.
    pub shape: Option<Shape>,
}

impl Default for VariableOptions {
    fn default() -> Self {
        Self {
            trainable: true,
            shape: None,
        }
    }
}

/// A tensor that steps change: a resource variable. A clone is the same variable.
///
/// In eager mode it exists as long as a clone of it (or of its handle) does. In a graph each
/// session has a value of its own, which [`initialize`] or an assignment gives it.
///
/// Every method takes the context in which it works: a variable of a graph is used in scopes of that
/// graph and in functions that are traced over it, one of an eager context in that context, in
/// tapes over it and in functions. It stays on the device of the context that made it; what changes
/// or reads it runs there.
#[derive(Clone)]
pub struct Variable {
    inner: Arc<Inner>,
    // What a layer reads it as, where that is another type than its own.
    read_as: Option<DataType>,
}

struct Inner {
    handle: AnyValue,
    name: String,
    dtype: DataType,
    shape: Shape,
    trainable: bool,
    initializer: Option<Operation>,
    // The initial value in a graph, if it is one of numbers, which sessions are fed with.
    given: Option<Tensor>,
}

impl Variable {
    /// Makes a trainable variable with an initial value, whose element type and shape it takes.
    ///
    /// In a graph the name gets a number when it is taken, and the initial value is given by
    /// [`initialize`]; in eager mode the name is a label.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] inside a function that is traced, and what TensorFlow says.
    pub fn new<'a, C: Mode>(
        context: &C,
        name: &str,
        initial: impl IntoOperand<'a, C::Value>,
    ) -> Result<Self> {
        Self::with_options(context, name, initial, &VariableOptions::default())
    }

    /// Makes a variable with an initial value.
    ///
    /// # Errors
    /// As for [`Self::new`], and [`ErrorKind::Shape`] when the options' shape does not fit the value.
    pub fn with_options<'a, C: Mode>(
        context: &C,
        name: &str,
        initial: impl IntoOperand<'a, C::Value>,
        options: &VariableOptions,
    ) -> Result<Self> {
        let initial = initial.into_operand().into_own_value(context)?;
        let dtype = Value::dtype(&initial).base();
        let shape = match &options.shape {
            Some(shape) => shape.clone(),
            None => Value::shape(&initial)?,
        };
        let mut variable = Self::uninitialized(context, name, dtype, &shape, options.trainable)?;
        variable.check_shape(&initial)?;
        let any = context.any();
        let value = context.to_any(&initial);
        let assign = AssignVariableOpOptions::default();
        let handle = &variable.inner.handle;
        let initializer = match &any {
            AnyContext::Scope(scope) => {
                let plain = scope
                    .graph()
                    .scope()
                    .named(&format!("{}/Assign", variable.name()));
                let (handle, value) = (handle.output()?, value.output()?);
                Some(assign_variable_op(&plain, handle, value, assign)?)
            }
            _ => assign_variable_op(&any, handle, &value, assign)?,
        };
        if let Some(inner) = Arc::get_mut(&mut variable.inner) {
            inner.initializer = initializer;
        }
        Ok(variable)
    }

    /// Makes a variable whose initial value is a tensor. A graph does not hold the tensor, so that neither
    /// its size is limited nor TensorFlow's optimizer copies it.
    pub(crate) fn given(
        context: &AnyContext,
        name: &str,
        value: Tensor,
        trainable: bool,
    ) -> Result<Self> {
        if !matches!(context, AnyContext::Scope(_)) {
            let options = VariableOptions {
                trainable,
                shape: None,
            };
            return Self::with_options(context, name, &value, &options);
        }
        let (dtype, shape) = (value.dtype(), value.shape());
        let mut variable = Self::uninitialized(context, name, dtype, &shape, trainable)?;
        if let Some(inner) = Arc::get_mut(&mut variable.inner) {
            inner.given = Some(value);
        }
        Ok(variable)
    }

    /// Makes a variable without a value; reading it before an assignment is an error.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn uninitialized<C: Mode>(
        context: &C,
        name: &str,
        dtype: DataType,
        shape: &Shape,
        trainable: bool,
    ) -> Result<Self> {
        let (handle, name) = match context.any() {
            AnyContext::Scope(scope) => new_handle(&scope, name, dtype, shape)?,
            any if any.is_eager() => {
                let options = VarHandleOpOptions {
                    shared_name: Some(Bytes::new(ANONYMOUS)),
                    debug_name: Some(Bytes::new(name)),
                    ..Default::default()
                };
                let handle = var_handle_op(&any, dtype, shape, options)?;
                (handle, name.to_owned())
            }
            _ => {
                return Err(Error::argument(format!(
                    "variable '{name}' can't be made inside a function: make it before, and use it there"
                )));
            }
        };
        Ok(Self::from_handle(
            handle,
            name,
            shape.clone(),
            dtype,
            trainable,
        ))
    }

    /// Makes a variable of a handle that is there, as the output of a `VarHandleOp` of an imported
    /// graph.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] for a value that is not a handle of a resource.
    pub fn of_handle(
        handle: impl Into<AnyValue>,
        name: &str,
        dtype: DataType,
        shape: &Shape,
        trainable: bool,
    ) -> Result<Self> {
        let handle = handle.into();
        if handle.dtype() != DataType::RESOURCE {
            return Err(Error::new(ErrorKind::DType {
                what: format!("the handle of variable '{name}'"),
                expected: DataType::RESOURCE,
                found: handle.dtype(),
            }));
        }
        Ok(Self::from_handle(
            handle,
            name.to_owned(),
            shape.clone(),
            dtype,
            trainable,
        ))
    }

    fn from_handle(
        handle: AnyValue,
        name: String,
        shape: Shape,
        dtype: DataType,
        trainable: bool,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                handle,
                name,
                dtype,
                shape,
                trainable,
                initializer: None,
                given: None,
            }),
            read_as: None,
        }
    }

    /// The same variable of an eager context under another name.
    pub(crate) fn renamed(&self, name: String) -> Self {
        let inner = &*self.inner;
        Self::from_handle(
            inner.handle.clone(),
            name,
            inner.shape.clone(),
            inner.dtype,
            inner.trainable,
        )
    }

    /// Returns the name: in a graph that of its handle's operation and of the resource.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the element type.
    #[must_use]
    pub fn dtype(&self) -> DataType {
        self.inner.dtype
    }

    /// Returns the shape that every value fits.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.inner.shape
    }

    /// Whether training changes it.
    #[must_use]
    pub fn is_trainable(&self) -> bool {
        self.inner.trainable
    }

    /// Returns the handle, of any mode; gradients and `ResourceApply*` ops take it.
    #[must_use]
    pub fn handle(&self) -> &AnyValue {
        &self.inner.handle
    }

    /// Returns the operation that gives the initial value. There is none in eager mode, and for a variable
    /// whose value a model's file gave: [`initialize`] feeds it.
    #[must_use]
    pub fn initializer(&self) -> Option<&Operation> {
        self.inner.initializer.as_ref()
    }

    /// Returns the handle as a value of a context, for any op that takes a resource.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`], naming the variable, for a context of the other mode.
    pub fn handle_in<C: Mode>(&self, context: &C) -> Result<C::Value> {
        self.own(context.from_any(self.inner.handle.clone()))
    }

    /// Names the variable in an error about a value of another graph or context.
    fn own<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| match error.kind() {
            ErrorKind::Foreign { what } => Error::new(ErrorKind::Foreign {
                what: format!(
                    "variable '{}' is used in another place: {what}",
                    self.name()
                ),
            }),
            _ => error,
        })
    }

    fn check_shape(&self, value: &impl Value) -> Result<()> {
        if self.inner.shape.rank().is_none() {
            return Ok(());
        }
        let found = value.shape()?;
        if self.inner.shape.is_compatible_with(&found) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Shape {
            what: format!("a value for variable '{}'", self.name()),
            expected: format!("shape {}", self.inner.shape),
            found,
        }))
    }

    /// Returns the value; a tape over the context records this.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`], and TensorFlow's status for a variable without a value.
    pub fn read<C: Mode>(&self, context: &C) -> Result<C::Value> {
        let handle = self.handle_in(context)?;
        let place = context.at_resource();
        let value = self.own(read_variable_op(&*place, &handle, self.inner.dtype))?;
        context.tell_shape(&value, &self.inner.shape)?;
        self.as_read(context, value)
    }

    /// Whether the variable has a value.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`].
    pub fn is_initialized<C: Mode>(&self, context: &C) -> Result<C::Value> {
        let handle = self.handle_in(context)?;
        self.own(var_is_initialized_op(&*context.at_resource(), &handle))
    }

    /// Returns the value of a variable of an eager context.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`] for one of a graph, and as for [`Self::read`].
    pub fn to_tensor(&self) -> Result<Tensor> {
        let eager = self.own(self.inner.handle.handle())?.context();
        self.stored().read(&eager)?.to_tensor()
    }

    /// Returns the value that a session has for a variable of its graph.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`] for a variable of another graph, and as for [`Self::read`].
    pub fn value_in(&self, session: &Session) -> Result<Tensor> {
        let mut values = values_in(session, std::slice::from_ref(self))?;
        values
            .pop()
            .ok_or_else(|| Error::argument("a session returned no value"))
    }
}

/// Makes the handle of a variable in a graph; its name, which the resource has too, is unique.
fn new_handle(
    scope: &Scope,
    name: &str,
    dtype: DataType,
    shape: &Shape,
) -> Result<(AnyValue, String)> {
    let graph = scope.graph();
    let mut unique = name.to_owned();
    let mut number = 0;
    loop {
        while graph
            .operation(&format!("{}{unique}", scope.prefix()))
            .is_ok()
        {
            number += 1;
            unique = format!("{name}_{number}");
        }
        let full = format!("{}{unique}", scope.prefix());
        let options = VarHandleOpOptions {
            shared_name: Some(Bytes::new(&full)),
            ..Default::default()
        };
        let place = scope.after_nothing().named(&unique);
        let handle = var_handle_op(&place, dtype, shape, options)?;
        // Another thread may have taken the name, or an operation that was refused had it.
        if handle.operation().name() == full {
            return Ok((handle.into(), full));
        }
        number += 1;
        unique = format!("{name}_{number}");
    }
}

impl Variable {
    /// Checks that a tensor may become the value.
    pub(crate) fn check_tensor(&self, tensor: &Tensor) -> Result<()> {
        if tensor.dtype() != self.dtype() {
            return Err(Error::new(ErrorKind::DType {
                what: format!("a value for variable '{}'", self.name()),
                expected: self.dtype(),
                found: tensor.dtype(),
            }));
        }
        if self.shape().is_compatible_with(&tensor.shape()) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Shape {
            what: format!("a value for variable '{}'", self.name()),
            expected: format!("shape {}", self.shape()),
            found: tensor.shape(),
        }))
    }

    /// Gives a variable of an eager context a value.
    ///
    /// # Errors
    /// As for [`set_in`].
    pub fn set(&self, tensor: &Tensor) -> Result<()> {
        self.check_tensor(tensor)?;
        let eager = self.own(self.inner.handle.handle())?.context();
        self.assign(&eager, tensor)
    }

    /// Whether the variable has a value in its eager context.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`] for a variable of a graph.
    pub fn has_value(&self) -> Result<bool> {
        let eager = self.own(self.inner.handle.handle())?.context();
        self.is_initialized(&eager)?.to_tensor()?.to_scalar()
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.inner;
        write!(
            f,
            "Variable('{}', {}, {})",
            inner.name, inner.dtype, inner.shape
        )
    }
}
