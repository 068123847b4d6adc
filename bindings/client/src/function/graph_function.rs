//! Functions as users trace and call them.

use tfp_core::{DataType, Error, ErrorKind, Function, Output, Result, Shape};
use tfp_ops as ops;

use super::body;
use super::traced::Traced;
use crate::context::any::{AnyContext, Mode};
use crate::context::func_graph::FuncGraph;
use crate::context::kept::Kept;
use crate::context::value::AnyValue;

/// A function: a graph with arguments and results that an op calls.
///
/// It is traced once from a closure, for arguments of given types and shapes, and called from
/// graphs, from other functions and in eager mode; each call takes it, and what it calls, into the
/// library of the graph or eager context. In a graph it stays as long as that does. In an eager context
/// it stays until nothing can call it any more: no clone, no other function, and no tape. A context
/// whose ops run in the background keeps it. What the closure takes from outside is captured: the value
/// that it had where the function was traced. Gradients flow through a call to its arguments and to
/// what was captured.
///
/// ```no_run
/// use tfp::{DataType, EagerContext, GraphFunction, Result, Shape, Tensor, ops};
///
/// fn main() -> Result<()> {
///     let eager = EagerContext::new()?;
///     let vector = (DataType::FLOAT, Shape::new(&[-1]));
///     let double = GraphFunction::trace(&eager, "double", &[vector], |cx, args| {
///         Ok(vec![ops::add_v2(cx, &args[0], &args[0])?])
///     })?;
///     let x = eager.handle(&Tensor::from_array([1.0_f32, 2.0])?)?;
///     let y = double.call(&eager, &[x])?;
///     assert_eq!(y[0].to_tensor()?.as_slice::<f32>()?, [2.0, 4.0]);
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct GraphFunction {
    traced: Traced,
    captures: Vec<AnyValue>,
}

impl GraphFunction {
    /// Traces a closure: calls it once with a function's graph and its arguments.
    ///
    /// `outer` is where the function will be called, or a context in which everything it captures is.
    ///
    /// # Errors
    /// Those of the closure, and what TensorFlow says.
    pub fn trace<C: Mode>(
        outer: &C,
        name: &str,
        arguments: &[(DataType, Shape)],
        body: impl FnOnce(&AnyContext, &[AnyValue]) -> Result<Vec<AnyValue>>,
    ) -> Result<Self> {
        let func = FuncGraph::new(Some(outer.any()))?;
        let args: Vec<AnyValue> = arguments
            .iter()
            .map(|(dtype, shape)| func.argument("argument", *dtype, shape).map(Into::into))
            .collect::<Result<_>>()?;
        let results = body(&AnyContext::Func(func.clone()), &args)?;
        Self::of_graph(name, &func, &results)
    }

    /// Makes a function of a graph that was traced step by step.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn of_graph(name: &str, func: &FuncGraph, results: &[AnyValue]) -> Result<Self> {
        let outputs: Vec<Output> = results
            .iter()
            .map(|value| func.capture(value))
            .collect::<Result<_>>()?;
        let (captures, stand_ins): (Vec<AnyValue>, Vec<Output>) =
            func.captures().into_iter().unzip();
        let mut inputs = func.arguments();
        inputs.extend(stand_ins);
        Ok(Self {
            traced: Traced::of(name, func, &inputs, &outputs)?,
            captures,
        })
    }

    /// Returns a function that the library of a graph or an eager context has, as one that a loaded
    /// model brought.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none of the name.
    pub fn named<C: Mode>(cx: &C, name: &str) -> Result<Self> {
        let any = cx.any();
        let library = body::Library::of(&any, name)?;
        let function = library.main().clone();
        let imported = body::Body::import(&library, &[])?;
        let signature = |list: &[Output]| {
            list.iter()
                .map(|output| (output.dtype(), Shape::unknown()))
                .collect::<Vec<_>>()
        };
        // One that somebody else added stays.
        let kept = Kept::find(name).unwrap_or_else(|| {
            let called = library.others().iter();
            let holds = called.filter_map(|function| Kept::find(function.name()));
            Kept::new(Vec::new(), holds.collect())
        });
        let mut outputs = signature(&imported.outputs);
        for ((dtype, shape), output) in outputs.iter_mut().zip(&imported.outputs) {
            if !matches!(*dtype, DataType::RESOURCE | DataType::VARIANT) {
                *shape = output.shape()?;
            }
        }
        Ok(Self {
            traced: Traced {
                function,
                nested: library.others().into(),
                inputs: signature(&imported.inputs),
                outputs,
                is_stateful: super::traced::is_stateful(&imported.graph)?,
                kept,
            },
            captures: Vec::new(),
        })
    }

    /// Returns the name in the library.
    #[must_use]
    pub fn name(&self) -> &str {
        self.traced.function.name()
    }

    /// Returns the function as the core has it; its inputs are the arguments, then the captured values.
    #[must_use]
    pub fn function(&self) -> &Function {
        &self.traced.function
    }

    /// Returns the functions that this one calls.
    #[must_use]
    pub fn nested(&self) -> &[Function] {
        &self.traced.nested
    }

    /// Returns the types and shapes of the arguments.
    #[must_use]
    pub fn arguments(&self) -> &[(DataType, Shape)] {
        let count = self.traced.inputs.len() - self.captures.len();
        &self.traced.inputs[..count]
    }

    /// Returns the types of the results and what is known of their shapes.
    #[must_use]
    pub fn results(&self) -> &[(DataType, Shape)] {
        &self.traced.outputs
    }

    /// Returns the values that were captured, in the order of the inputs behind the arguments.
    #[must_use]
    pub fn captures(&self) -> &[AnyValue] {
        &self.captures
    }

    /// Whether a call has state or an effect.
    #[must_use]
    pub fn is_stateful(&self) -> bool {
        self.traced.is_stateful
    }

    /// Adds the function, and what it calls, to the library of a graph or an eager context.
    ///
    /// # Errors
    /// TensorFlow's status when another function of the name is there.
    pub fn install<C: Mode>(&self, cx: &C) -> Result<()> {
        self.traced.install(&cx.any())
    }

    /// Calls the function.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] for another number of arguments, [`ErrorKind::DType`] and
    /// [`ErrorKind::Shape`] for one that does not fit, [`ErrorKind::Foreign`] for a captured value
    /// that is not of the graph or context of the call.
    pub fn call<C: Mode>(&self, cx: &C, arguments: &[C::Value]) -> Result<Vec<C::Value>> {
        let any = cx.any();
        let mut inputs: Vec<AnyValue> = arguments.iter().map(|value| cx.to_any(value)).collect();
        self.check(&inputs)?;
        for value in &self.captures {
            inputs.push(cx.to_any(&cx.from_any(value.clone())?));
        }
        let outputs = self.traced.call(&any, &inputs)?;
        let outputs = match any.is_eager() {
            true => outputs,
            // The call may be exchanged for one that keeps what its gradient needs; these stay.
            false => identities(&any, &outputs)?,
        };
        outputs
            .into_iter()
            .map(|value| cx.from_any(value))
            .collect()
    }

    fn check(&self, inputs: &[AnyValue]) -> Result<()> {
        let expected = self.arguments();
        if inputs.len() != expected.len() {
            return Err(Error::argument(format!(
                "function '{}' takes {} arguments, {} are given",
                self.name(),
                expected.len(),
                inputs.len()
            )));
        }
        for (index, (value, (dtype, shape))) in inputs.iter().zip(expected).enumerate() {
            let what = || format!("argument {index} of function '{}'", self.name());
            if value.dtype() != *dtype {
                return Err(Error::new(ErrorKind::DType {
                    what: what(),
                    expected: *dtype,
                    found: value.dtype(),
                }));
            }
            if matches!(*dtype, DataType::RESOURCE | DataType::VARIANT) {
                continue;
            }
            let found = value.shape()?;
            if !found.is_compatible_with(shape) {
                return Err(Error::new(ErrorKind::Shape {
                    what: what(),
                    expected: format!("shape {shape}"),
                    found,
                }));
            }
        }
        Ok(())
    }
}

/// Returns values that stay when the operation that computes them is exchanged.
pub(crate) fn identities(cx: &AnyContext, values: &[AnyValue]) -> Result<Vec<AnyValue>> {
    values
        .iter()
        .map(|value| ops::identity(cx, value))
        .collect()
}
