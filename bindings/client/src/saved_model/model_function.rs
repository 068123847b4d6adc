//! Functions of a SavedModel: bodies, of which a call takes the one that its arguments fit.

use std::collections::BTreeMap;

use tfp_core::{DataType, Error, ErrorKind, IntoOperand, Operand, Result, Shape};
use tfp_ops::stateful_partitioned_call;

use super::structure::{PythonValue, Spec};
use crate::context::any::Mode;
use crate::context::kept::Loaded;
use crate::context::value::AnyValue;

/// A function of a [`Model`](super::Model), with its captured variables. A tape that calls it watches those
/// that it reads, as any variable.
#[derive(Clone, Debug)]
pub struct ModelFunction {
    name: String,
    /// All, in the order in which they were traced.
    bodies: Vec<Body>,
    /// The places of those that a call may take; there is one at least.
    chosen: Vec<usize>,
    defaults: BTreeMap<String, PythonValue>,
    given: BTreeMap<String, PythonValue>,
    what: String,
}

/// A body: what a function does for arguments of some types and shapes.
#[derive(Clone, Debug)]
pub(super) struct Body {
    /// Its name in the library.
    pub(super) function: String,
    pub(super) inputs: Vec<Spec>,
    pub(super) outputs: Vec<Spec>,
    /// The tensors that it takes after its arguments.
    pub(super) captures: Vec<AnyValue>,
    /// What arguments that are not tensors were when it was traced.
    pub(super) values: BTreeMap<String, PythonValue>,
    /// Holds the model's functions in their context.
    #[allow(dead_code, reason = "what it holds stays in the library")]
    pub(super) kept: Loaded,
}

impl ModelFunction {
    /// Makes a function of one body at least.
    pub(super) fn new(
        name: &str,
        bodies: Vec<Body>,
        defaults: &BTreeMap<String, PythonValue>,
        what: String,
    ) -> Self {
        let mut function = Self {
            name: name.to_owned(),
            chosen: Vec::new(),
            bodies,
            defaults: defaults.clone(),
            given: BTreeMap::new(),
            what,
        };
        function.choose();
        function
    }

    /// Chooses the bodies that have the given values, and the defaults of the others where there is such
    /// a body.
    fn choose(&mut self) {
        let holds = |values: &BTreeMap<String, PythonValue>, body: &Body| {
            let mut values = values.iter();
            values.all(|(name, value)| body.values.get(name) == Some(value))
        };
        let is_default = |body: &Body| {
            let mut others = body.values.iter();
            others.all(|(name, value)| {
                self.given.contains_key(name)
                    || self.defaults.get(name).is_none_or(|usual| usual == value)
            })
        };
        let places = 0..self.bodies.len();
        let given: Vec<usize> = places
            .filter(|&at| holds(&self.given, &self.bodies[at]))
            .collect();
        let usual: Vec<usize> = given
            .iter()
            .copied()
            .filter(|&at| is_default(&self.bodies[at]))
            .collect();
        self.chosen = if usual.is_empty() { given } else { usual };
    }

    /// Chooses the bodies that Python traced with this value of an argument that is not a tensor, as
    /// `with("training", true)`.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none, with the values of all bodies.
    pub fn with(mut self, argument: &str, value: impl Into<PythonValue>) -> Result<Self> {
        let value = value.into();
        let wanted = format!("{argument}={value}");
        self.given.insert(argument.to_owned(), value);
        self.choose();
        if !self.chosen.is_empty() {
            return Ok(self);
        }
        let bodies: Vec<String> = self.bodies.iter().map(Body::to_text).collect();
        Err(Error::new(ErrorKind::NotFound {
            what: "body",
            name: wanted,
            place: format!("{}, which has {}", self.what, bodies.join(" and ")),
        }))
    }

    /// Returns the name by which it was asked for.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The body that a call takes if its arguments fit.
    fn first(&self) -> &Body {
        // There is one: `new` gets one, and `with` refuses a choice of none.
        &self.bodies[self.chosen.first().copied().unwrap_or(0)]
    }

    fn chosen(&self) -> impl Iterator<Item = &Body> {
        self.chosen.iter().map(|&at| &self.bodies[at])
    }

    /// Returns the arguments, in their order; of several bodies, those of the first that a call may take.
    #[must_use]
    pub fn inputs(&self) -> &[Spec] {
        &self.first().inputs
    }

    /// Returns the results, in their order; of several bodies, those of the first that a call may take.
    #[must_use]
    pub fn outputs(&self) -> &[Spec] {
        &self.first().outputs
    }

    /// Returns what arguments that are not tensors have, by their names, in the first body that a call may
    /// take.
    #[must_use]
    pub fn values(&self) -> &BTreeMap<String, PythonValue> {
        &self.first().values
    }

    /// Calls with arguments in their order, and returns the results in theirs.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] for another number of arguments, [`ErrorKind::DType`] and
    /// [`ErrorKind::Shape`] for one that does not fit, [`ErrorKind::Argument`] when they fit none of
    /// several bodies, and what TensorFlow says.
    pub fn call<C: Mode>(&self, context: &C, arguments: &[C::Value]) -> Result<Vec<C::Value>> {
        let given: Vec<AnyValue> = arguments
            .iter()
            .map(|value| context.to_any(value))
            .collect();
        self.fitting(&given, |_| true)?.call(context, arguments)
    }

    /// The first body that arguments fit, of those for which `may` holds.
    fn fitting(&self, arguments: &[AnyValue], may: impl Fn(&Body) -> bool) -> Result<&Body> {
        let mut problem = None;
        for body in self.chosen().filter(|body| may(body)) {
            match body.check(arguments, &self.what) {
                Ok(()) => return Ok(body),
                Err(error) => problem = problem.or(Some(error)),
            }
        }
        match problem {
            Some(error) if self.chosen.len() == 1 => Err(error),
            _ => Err(self.unfit(arguments)?),
        }
    }

    /// Returns the results of the first body that takes arguments of these shapes; the error is that of the
    /// first body if there is none.
    pub(crate) fn results_of(&self, shapes: &[Shape]) -> Result<&[Spec]> {
        let mut problem = None;
        for body in self.chosen() {
            match body.check_shapes(shapes, &self.what) {
                Ok(()) => return Ok(&body.outputs),
                Err(error) => problem = problem.or(Some(error)),
            }
        }
        Err(problem.unwrap_or_else(|| Error::argument(format!("{} has no body", self.what))))
    }

    #[cold]
    fn unfit(&self, arguments: &[AnyValue]) -> Result<Error> {
        let given = arguments
            .iter()
            .map(|value| Ok(format!("{} {}", value.dtype(), value.shape()?)));
        let given = given.collect::<Result<Vec<_>>>()?;
        let bodies: Vec<String> = self.chosen().map(Body::to_text).collect();
        Ok(Error::argument(format!(
            "the arguments ({}) fit no body of {}, which has {}",
            given.join(", "),
            self.what,
            bodies.join(" and ")
        )))
    }

    /// Calls with arguments by name, and returns the results by name.
    ///
    /// # Errors
    /// As for [`Self::call`], [`ErrorKind::NotFound`] for an unknown name, and
    /// [`ErrorKind::Argument`] for one that is missing or given twice.
    pub fn call_named<'a, C: Mode, V: IntoOperand<'a, C::Value>>(
        &self,
        context: &C,
        arguments: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Result<BTreeMap<String, C::Value>> {
        let arguments: Vec<(&str, V)> = arguments.into_iter().collect();
        // Values without a type get that of the first body with these arguments.
        let is_of = |body: &&Body| {
            body.inputs.len() == arguments.len()
                && body
                    .inputs
                    .iter()
                    .all(|spec| arguments.iter().any(|(name, _)| *name == spec.name))
        };
        let inputs = &self
            .chosen()
            .find(is_of)
            .unwrap_or_else(|| self.first())
            .inputs;
        let mut slots: Vec<Option<C::Value>> = vec![None; inputs.len()];
        for (name, value) in arguments {
            let Some(at) = inputs.iter().position(|spec| spec.name == name) else {
                return Err(Error::new(ErrorKind::NotFound {
                    what: "argument",
                    name: name.to_owned(),
                    place: format!("{}, which takes {}", self.what, names(inputs)),
                }));
            };
            let what = format!("argument '{name}' of {}", self.what);
            let value = value.into_operand();
            // Another body may take a value of another type.
            let is_open = self.chosen.len() > 1 && !matches!(value, Operand::Literal(_));
            let value = match is_open {
                true => value.into_own_value(context)?,
                false => value.into_value(context, inputs[at].dtype, &what)?,
            };
            if slots[at].replace(value).is_some() {
                return Err(Error::argument(format!("{what} is given twice")));
            }
        }
        let mut given = Vec::with_capacity(slots.len());
        for (slot, spec) in slots.into_iter().zip(inputs) {
            given.push(slot.ok_or_else(|| {
                Error::argument(format!(
                    "argument '{}' of {} is not given",
                    spec.name, self.what
                ))
            })?);
        }
        let any: Vec<AnyValue> = given.iter().map(|value| context.to_any(value)).collect();
        let has_names = |body: &Body| {
            let mut pairs = body.inputs.iter().zip(inputs);
            pairs.all(|(one, other)| one.name == other.name)
        };
        let body = self.fitting(&any, has_names)?;
        let results = body.call(context, &given)?;
        let names = body.outputs.iter().map(|spec| spec.name.clone());
        Ok(names.zip(results).collect())
    }
}

impl Spec {
    fn check_shape(&self, found: Shape, what: &str) -> Result<()> {
        if self.shape.is_compatible_with(&found) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Shape {
            what: format!("argument '{}' of {what}", self.name),
            expected: format!("shape {}", self.shape),
            found,
        }))
    }
}

impl Body {
    /// Refuses arguments that do not fit.
    fn check(&self, arguments: &[AnyValue], what: &str) -> Result<()> {
        self.check_count(arguments.len(), what)?;
        for (value, spec) in arguments.iter().zip(&self.inputs) {
            if spec.dtype.number() != 0 && value.dtype() != spec.dtype {
                return Err(Error::new(ErrorKind::DType {
                    what: format!("argument '{}' of {what}", spec.name),
                    expected: spec.dtype,
                    found: value.dtype(),
                }));
            }
            spec.check_shape(value.shape()?, what)?;
        }
        Ok(())
    }

    fn check_shapes(&self, shapes: &[Shape], what: &str) -> Result<()> {
        self.check_count(shapes.len(), what)?;
        let mut both = self.inputs.iter().zip(shapes);
        both.try_for_each(|(spec, shape)| spec.check_shape(shape.clone(), what))
    }

    fn check_count(&self, count: usize, what: &str) -> Result<()> {
        if count == self.inputs.len() {
            return Ok(());
        }
        Err(Error::argument(format!(
            "{count} arguments are given to {what}, which takes {}",
            names(&self.inputs)
        )))
    }

    fn call<C: Mode>(&self, context: &C, arguments: &[C::Value]) -> Result<Vec<C::Value>> {
        let mut all: Vec<C::Value> = arguments.to_vec();
        for capture in &self.captures {
            all.push(context.from_any(capture.clone())?);
        }
        let types: Vec<DataType> = self.outputs.iter().map(|spec| spec.dtype).collect();
        stateful_partitioned_call(
            context,
            &all,
            &types,
            self.function.as_str(),
            Default::default(),
        )
    }

    /// What it takes, for errors.
    fn to_text(&self) -> String {
        let inputs = self.inputs.iter();
        let tensors = inputs.map(|spec| format!("{}: {} {}", spec.name, spec.dtype, spec.shape));
        let values = self
            .values
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        format!("({})", tensors.chain(values).collect::<Vec<_>>().join(", "))
    }
}

fn names(specs: &[Spec]) -> String {
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    match names.len() {
        0 => "none".to_owned(),
        _ => names.join(", "),
    }
}
