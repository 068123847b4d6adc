//! One context type over graphs, functions that are being traced, eager contexts and tapes.

use std::borrow::Cow;

use tfp_core::{
    AttrValue, Call, Context, EagerContext, Graph, Operation, Output, Result, Results, Scope,
    Shape, Tensor, TensorHandle,
};

use crate::context::func_graph::FuncGraph;
use crate::context::tape::Tape;
use crate::context::value::AnyValue;

/// The host, as a device.
pub(crate) const HOST: &str = "/device:CPU:0";

/// What the names of functions that this crate traces begin with; a number and a hash follow.
pub(crate) const OWN_PREFIX: &str = "tfp_";

/// Whether a function was traced by this crate.
pub(crate) fn is_own(function: &tfp_core::Function) -> bool {
    function.name().starts_with(OWN_PREFIX)
}

/// A context whose values fit [`AnyValue`]: every context of this crate.
///
/// Code over a `C: Mode` serves graphs and eager execution; [`Self::any`] gives it the one context
/// type that closures (gradient functions, branches, loop bodies) take.
pub trait Mode: Context + Clone {
    /// Returns the context as one of any mode; it is the same place.
    fn any(&self) -> AnyContext;

    /// Returns a value as one of any mode.
    fn to_any(&self, value: &Self::Value) -> AnyValue;

    /// Returns a value of any mode as one of this context.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`](tfp_core::ErrorKind::Foreign) for a value of another mode.
    #[allow(
        clippy::wrong_self_convention,
        reason = "the context decides what it takes: a function captures"
    )]
    fn from_any(&self, value: AnyValue) -> Result<Self::Value>;

    /// Returns the context for ops on a resource, which run where that is, whatever device is asked
    /// for. Eager mode does so by itself.
    fn at_resource(&self) -> Cow<'_, Self> {
        Cow::Borrowed(self)
    }

    /// Tells the shape of a value of which the context itself can't know it, as that of a variable
    /// outside of a function.
    ///
    /// # Errors
    /// What TensorFlow says.
    fn tell_shape(&self, value: &Self::Value, shape: &Shape) -> Result<()> {
        let _ = (value, shape);
        Ok(())
    }
}

/// A context of any mode. A clone is the same place.
#[derive(Clone, Debug)]
pub enum AnyContext {
    /// A place in a graph.
    Scope(Scope),
    /// A function that is being traced.
    Func(FuncGraph),
    /// An eager context.
    Eager(EagerContext),
    /// A tape over an eager context.
    Tape(Tape),
}

impl AnyContext {
    /// Whether calls are executed eagerly.
    #[must_use]
    pub const fn is_eager(&self) -> bool {
        matches!(self, Self::Eager(_) | Self::Tape(_))
    }

    /// Returns the graph to which calls are added; `None` in eager mode.
    #[must_use]
    pub fn graph(&self) -> Option<&Graph> {
        match self {
            Self::Scope(scope) => Some(scope.graph()),
            Self::Func(func) => Some(func.graph()),
            Self::Eager(_) | Self::Tape(_) => None,
        }
    }

    /// Returns the eager context that executes calls; `None` for a graph.
    #[must_use]
    pub fn eager(&self) -> Option<&EagerContext> {
        match self {
            Self::Eager(context) => Some(context),
            Self::Tape(tape) => Some(tape.eager()),
            Self::Scope(_) | Self::Func(_) => None,
        }
    }

    /// Returns the same place, with ops on another device, as `/device:CPU:0`; TensorFlow chooses
    /// where the name is empty.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for what is not the name of a device, and as for
    /// [`EagerContext::on_device`](tfp_core::EagerContext::on_device).
    pub fn on_device(&self, device: &str) -> Result<Self> {
        Ok(match self {
            Self::Scope(scope) => Self::Scope(scope.on_device(device)?),
            Self::Func(func) => {
                let scope = func.scope().on_device(device)?;
                Self::Func(func.with_scope(|_| scope))
            }
            Self::Eager(eager) => Self::Eager(eager.on_device(device)?),
            Self::Tape(tape) => Self::Tape(tape.on_device(device)?),
        })
    }

    /// Adds a function, and nothing that it calls, to the graph's or eager context's library.
    ///
    /// # Errors
    /// TensorFlow's status when another function of the name is there.
    pub fn add_function(&self, function: &tfp_core::Function) -> Result<()> {
        if let Self::Func(func) = self {
            return func.add_function(function);
        }
        match self.graph() {
            Some(graph) => graph.add_function(function),
            None => match self.eager() {
                // Functions of this crate have names of their own: one that is there is the same.
                Some(eager) if is_own(function) && eager.has_function(function.name())? => Ok(()),
                Some(eager) => eager.add_function(function),
                None => Ok(()),
            },
        }
    }

    /// Passes a call on to the context that this one is.
    fn pass_on<C: Mode>(
        &self,
        inner: &C,
        call: &mut Call<'_, AnyValue>,
        attrs: &[AttrValue<'_>],
        to_operation: fn(C::Operation) -> Option<Operation>,
    ) -> Result<Results<AnyValue, Option<Operation>>> {
        let desc = call.desc();
        let prepared = call.prepare(self, attrs)?;
        let values: Vec<C::Value> = prepared
            .values()
            .map(|value| inner.from_any(value.clone()))
            .collect::<Result<_>>()?;
        let mut passed = Call::new(desc);
        let mut rest = values.as_slice();
        for (is_list, operands) in prepared.inputs() {
            let (group, after) = rest.split_at(operands.len());
            rest = after;
            match group {
                [value] if !is_list => passed.input(value),
                list => passed.list(list.iter().collect::<Vec<_>>()),
            };
        }
        let results = inner.execute(&mut passed, attrs)?;
        if results.lengths().iter().all(|&length| length == 0) {
            let operation = to_operation(results.operation());
            return prepared.results(std::iter::empty().collect(), operation);
        }
        let values: tfp_core::SmallVec<AnyValue, 4> = results
            .all()
            .iter()
            .map(|value| inner.to_any(value))
            .collect();
        let operation = match values.first() {
            Some(AnyValue::Output(output)) => Some(output.operation().clone()),
            _ => None,
        };
        prepared.results(values, operation)
    }
}

impl Context for AnyContext {
    type Value = AnyValue;
    /// The operation of a graph; `None` in eager mode.
    type Operation = Option<Operation>;

    fn constant(&self, tensor: &Tensor) -> Result<AnyValue> {
        Ok(match self {
            Self::Scope(scope) => scope.constant(tensor)?.into(),
            Self::Func(func) => func.constant(tensor)?.into(),
            Self::Eager(context) => context.constant(tensor)?.into(),
            Self::Tape(tape) => tape.constant(tensor)?.into(),
        })
    }

    fn execute(
        &self,
        call: &mut Call<'_, AnyValue>,
        attrs: &[AttrValue<'_>],
    ) -> Result<Results<AnyValue, Option<Operation>>> {
        match self {
            Self::Scope(scope) => self.pass_on(scope, call, attrs, Some),
            Self::Func(func) => self.pass_on(func, call, attrs, Some),
            Self::Eager(context) => self.pass_on(context, call, attrs, |()| None),
            Self::Tape(tape) => self.pass_on(tape, call, attrs, |()| None),
        }
    }
}

impl Mode for AnyContext {
    fn any(&self) -> AnyContext {
        self.clone()
    }

    fn to_any(&self, value: &AnyValue) -> AnyValue {
        value.clone()
    }

    fn from_any(&self, value: AnyValue) -> Result<AnyValue> {
        Ok(value)
    }

    fn at_resource(&self) -> Cow<'_, Self> {
        match self {
            Self::Scope(scope) => match scope.at_resource() {
                Cow::Borrowed(_) => Cow::Borrowed(self),
                Cow::Owned(scope) => Cow::Owned(Self::Scope(scope)),
            },
            Self::Func(func) => match func.at_resource() {
                Cow::Borrowed(_) => Cow::Borrowed(self),
                Cow::Owned(func) => Cow::Owned(Self::Func(func)),
            },
            Self::Eager(_) | Self::Tape(_) => Cow::Borrowed(self),
        }
    }

    fn tell_shape(&self, value: &AnyValue, shape: &Shape) -> Result<()> {
        match self {
            Self::Func(func) => func.tell_shape(value.output()?, shape),
            Self::Scope(_) | Self::Eager(_) | Self::Tape(_) => Ok(()),
        }
    }
}

/// Returns a scope without the device that it asks for, if it does.
fn without_device(scope: &Scope) -> Cow<'_, Scope> {
    match scope.device().map(|_| scope.on_device("")) {
        Some(Ok(scope)) => Cow::Owned(scope),
        _ => Cow::Borrowed(scope),
    }
}

macro_rules! graph_modes {
    ($($context:ty, $any:expr, $at_resource:expr;)*) => {
        $(impl Mode for $context {
            fn any(&self) -> AnyContext {
                let any: fn(&Self) -> AnyContext = $any;
                any(self)
            }

            fn to_any(&self, value: &Output) -> AnyValue {
                value.into()
            }

            fn from_any(&self, value: AnyValue) -> Result<Output> {
                match value {
                    AnyValue::Output(output) => Ok(output),
                    AnyValue::Handle(_) => value.output().cloned(),
                }
            }

            fn at_resource(&self) -> Cow<'_, Self> {
                let at_resource: fn(&Self) -> Cow<'_, Self> = $at_resource;
                at_resource(self)
            }
        })*
    };
}

graph_modes! {
    Graph, |graph| AnyContext::Scope(graph.scope()), |graph| Cow::Borrowed(graph);
    Scope, |scope| AnyContext::Scope(scope.clone()), without_device;
}

impl Mode for FuncGraph {
    fn any(&self) -> AnyContext {
        AnyContext::Func(self.clone())
    }

    fn to_any(&self, value: &Output) -> AnyValue {
        value.into()
    }

    /// Takes the value of another graph or of an eager context as a captured input.
    fn from_any(&self, value: AnyValue) -> Result<Output> {
        self.capture(&value)
    }

    fn at_resource(&self) -> Cow<'_, Self> {
        match without_device(self.scope()) {
            Cow::Borrowed(_) => Cow::Borrowed(self),
            Cow::Owned(scope) => Cow::Owned(self.with_scope(|_| scope)),
        }
    }

    fn tell_shape(&self, value: &Output, shape: &Shape) -> Result<()> {
        match shape.rank() {
            Some(_) => self.graph().set_shape(value, shape),
            None => Ok(()),
        }
    }
}

macro_rules! eager_modes {
    ($($context:ty, $any:expr;)*) => {
        $(impl Mode for $context {
            fn any(&self) -> AnyContext {
                let any: fn(&Self) -> AnyContext = $any;
                any(self)
            }

            fn to_any(&self, value: &TensorHandle) -> AnyValue {
                value.into()
            }

            fn from_any(&self, value: AnyValue) -> Result<TensorHandle> {
                match value {
                    AnyValue::Handle(handle) => Ok(handle),
                    AnyValue::Output(_) => value.handle().cloned(),
                }
            }
        })*
    };
}

eager_modes! {
    EagerContext, |context| AnyContext::Eager(context.clone());
    Tape, |tape| AnyContext::Tape(tape.clone());
}
