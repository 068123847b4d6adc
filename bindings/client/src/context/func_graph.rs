//! The graph of a function while it is traced.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tfp_core::{
    AttrValue, Call, Context, DataType, Function, Graph, Operation, Output, Result, Results, Scope,
    Shape, Tensor,
};

use crate::context::any::{AnyContext, is_own};
use crate::context::kept::{self, Kept};
use crate::context::op_info::OpInfo;
use crate::context::value::AnyValue;

/// A graph that becomes the body of a function.
///
/// A value from outside (an output of another graph, a tensor of an eager context) that a call in
/// here takes is captured: it becomes an input of the function. Operations with an effect run
/// whenever the function does, in the order in which they were added as far as they share a
/// resource.
#[derive(Clone)]
pub struct FuncGraph {
    scope: Scope,
    inner: Arc<Inner>,
}

struct Inner {
    outer: Option<AnyContext>,
    // Whether constants from outside are copied instead of captured.
    copies_constants: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    inputs: Vec<Output>,
    captures: Vec<(AnyValue, Output)>,
    known: HashMap<AnyValue, Output>,
    uses: HashMap<Output, Uses>,
    // The last operation with an effect that no resource has.
    last: Option<Operation>,
    // What must run whenever the function does.
    effects: Vec<Operation>,
    // Functions of this crate that the library has; one of the same name is the same.
    library: HashSet<String>,
    // What holds the functions that operations call.
    kept: Vec<Arc<Kept>>,
}

/// The operations on a resource that later ones must wait for.
#[derive(Default)]
struct Uses {
    write: Option<Operation>,
    reads: Vec<Operation>,
}

/// Ops on resources that only read them.
const READS: &[&str] = &[
    "ReadVariableOp",
    "ResourceGather",
    "ResourceGatherNd",
    "VariableShape",
    "VarIsInitializedOp",
    "LookupTableFindV2",
    "LookupTableSizeV2",
];

impl FuncGraph {
    /// Begins a function.
    ///
    /// `outer` is the place where the function will be called; values that are captured must be
    /// reachable from there.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn new(outer: Option<AnyContext>) -> Result<Self> {
        Self::over(&Graph::new()?, outer, false)
    }

    /// Begins a function that nothing but its caller sees before it is one.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub(crate) fn of_body() -> Result<Self> {
        Self::over(&Graph::of_bodies()?, None, false)
    }

    pub(crate) fn over(
        graph: &Graph,
        outer: Option<AnyContext>,
        copies_constants: bool,
    ) -> Result<Self> {
        Ok(Self {
            scope: graph.scope(),
            inner: Arc::new(Inner {
                outer,
                copies_constants,
                state: Mutex::default(),
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        self.scope.graph()
    }

    /// Returns the scope with which operations are added.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Returns the same function with operations added by a scope of its graph.
    #[must_use]
    pub fn with_scope(&self, change: impl FnOnce(&Scope) -> Scope) -> Self {
        Self {
            scope: change(&self.scope),
            inner: Arc::clone(&self.inner),
        }
    }

    /// Returns the place where the function will be called.
    #[must_use]
    pub fn outer(&self) -> Option<&AnyContext> {
        self.inner.outer.as_ref()
    }

    /// Adds an argument.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn argument(&self, name: &str, dtype: DataType, shape: &Shape) -> Result<Output> {
        let plain = self.graph().scope();
        let output = plain.placeholder(name, dtype, shape)?;
        self.state().inputs.push(output.clone());
        Ok(output)
    }

    /// Returns the arguments, captured ones aside.
    #[must_use]
    pub fn arguments(&self) -> Vec<Output> {
        self.state().inputs.clone()
    }

    /// Returns each captured value with the input that stands for it.
    #[must_use]
    pub fn captures(&self) -> Vec<(AnyValue, Output)> {
        self.state().captures.clone()
    }

    /// Returns the input that stands for a value, if it was captured.
    #[must_use]
    pub fn captured(&self, value: &AnyValue) -> Option<Output> {
        match value {
            AnyValue::Output(output) if self.owns(output) => Some(output.clone()),
            _ => self.state().known.get(value).cloned(),
        }
    }

    /// Returns the input that stands for a value of the place of the call; it is added when no
    /// operation has taken it.
    pub(crate) fn input_for(&self, outer: &AnyValue) -> Result<Output> {
        let found = self
            .state()
            .captures
            .iter()
            .find(|(value, _)| value == outer)
            .cloned();
        match found {
            Some((_, input)) => Ok(input),
            None => self.capture(outer),
        }
    }

    /// Adds a function to the library of the graph.
    pub(crate) fn add_function(&self, function: &Function) -> Result<()> {
        if is_own(function) && !self.state().library.insert(function.name().to_owned()) {
            return Ok(());
        }
        self.graph().add_function(function)
    }

    /// Returns the operations that must run whenever the function does.
    pub(crate) fn effects(&self) -> Vec<Operation> {
        self.state().effects.clone()
    }

    /// Returns what holds the functions that operations call.
    pub(crate) fn kept(&self) -> Vec<Arc<Kept>> {
        self.state().kept.clone()
    }

    /// Puts an output in the place of another one, as far as it was captured.
    pub(crate) fn replace_captured(&self, old: &AnyValue, new: &AnyValue) {
        let mut state = self.state();
        if let Some(input) = state.known.remove(old) {
            state.known.insert(new.clone(), input);
        }
        for (value, _) in &mut state.captures {
            if value == old {
                *value = new.clone();
            }
        }
    }

    /// Puts an operation in the place of another one, as far as the order of effects goes.
    pub(crate) fn replace_effect(&self, old: &Operation, new: &Operation) {
        let swap = |operation: &mut Operation| {
            if operation == old {
                *operation = new.clone();
            }
        };
        let mut state = self.state();
        state.effects.iter_mut().for_each(swap);
        state.last.iter_mut().for_each(swap);
        for uses in state.uses.values_mut() {
            uses.write.iter_mut().for_each(swap);
            uses.reads.iter_mut().for_each(swap);
        }
    }

    /// Whether an output is of this graph.
    #[must_use]
    pub fn owns(&self, output: &Output) -> bool {
        output.operation().graph().is_same(self.graph())
    }

    /// Returns the output of this graph that stands for a value: itself, or a captured input.
    ///
    /// # Errors
    /// What TensorFlow says, and [`ErrorKind::Foreign`](tfp_core::ErrorKind::Foreign) for a value
    /// that can't be reached from the place of the call.
    pub fn capture(&self, value: &AnyValue) -> Result<Output> {
        if let Some(found) = self.captured(value) {
            return Ok(found);
        }
        if self.inner.copies_constants
            && let AnyValue::Output(output) = value
            && output.operation().op_type() == "Const"
            && let Some(tensor) = value.known()?
        {
            let copy = self.graph().scope().constant(&tensor)?;
            self.state().known.insert(value.clone(), copy.clone());
            return Ok(copy);
        }
        // What the outer function does not have, it captures itself.
        let from = match &self.inner.outer {
            Some(AnyContext::Func(outer)) => AnyValue::Output(outer.capture(value)?),
            _ => value.clone(),
        };
        let shape = match value.dtype() {
            DataType::RESOURCE => Shape::scalar(),
            DataType::VARIANT => Shape::unknown(),
            _ => value.shape()?,
        };
        let input = self
            .graph()
            .scope()
            .placeholder("capture", value.dtype(), &shape)?;
        let mut state = self.state();
        state.known.insert(value.clone(), input.clone());
        state.captures.push((from, input.clone()));
        Ok(input)
    }

    /// Returns the operations that a new one must wait for.
    fn waits_for(&self, info: &OpInfo, resources: &[Output]) -> Vec<Operation> {
        let state = self.state();
        let reads = READS.contains(&info.desc.name_str());
        let mut found = Vec::new();
        for uses in resources.iter().filter_map(|key| state.uses.get(key)) {
            found.extend(uses.write.clone());
            if !reads {
                found.extend(uses.reads.iter().cloned());
            }
        }
        if resources.is_empty() && has_effect(info) {
            found.extend(state.last.clone());
        }
        found
    }

    /// Notes an operation that was added.
    fn note(&self, info: &OpInfo, resources: Vec<Output>, operation: &Operation) {
        let mut state = self.state();
        if resources.is_empty() {
            if has_effect(info) {
                state.last = Some(operation.clone());
                state.effects.push(operation.clone());
            }
            return;
        }
        let reads = READS.contains(&info.desc.name_str());
        for key in resources {
            let uses = state.uses.entry(key).or_default();
            if reads {
                uses.reads.push(operation.clone());
            } else {
                uses.write = Some(operation.clone());
                uses.reads.clear();
            }
        }
        if !reads {
            state.effects.push(operation.clone());
        }
    }
}

/// Whether an op without resources does something besides computing its outputs.
fn has_effect(info: &OpInfo) -> bool {
    const CALLS: &[&str] = &["StatefulPartitionedCall", "If", "While", "Case"];
    info.is_stateful && (info.desc.outputs.is_empty() || CALLS.contains(&info.desc.name_str()))
}

impl Context for FuncGraph {
    type Value = Output;
    type Operation = Operation;

    fn constant(&self, tensor: &Tensor) -> Result<Output> {
        self.scope.constant(tensor)
    }

    fn execute(
        &self,
        call: &mut Call<'_, Output>,
        attrs: &[AttrValue<'_>],
    ) -> Result<Results<Output, Operation>> {
        let desc = call.desc();
        let prepared = call.prepare(self, attrs)?;
        let values: Vec<Output> = prepared
            .values()
            .map(|value| match self.owns(value) {
                true => Ok(value.clone()),
                false => self.capture(&value.into()),
            })
            .collect::<Result<_>>()?;
        let info = OpInfo::find(desc.name_str())?;
        let resources: Vec<Output> = match info.is_stateful {
            true => values
                .iter()
                .filter(|value| value.dtype() == DataType::RESOURCE)
                .cloned()
                .collect(),
            false => Vec::new(),
        };
        let mut passed = Call::new(desc);
        let mut rest = values.as_slice();
        for (is_list, operands) in prepared.inputs() {
            let (group, after) = rest.split_at(operands.len());
            rest = after;
            match group {
                [value] if !is_list => passed.input(value),
                list => passed.list(list),
            };
        }
        let before = self.waits_for(info, &resources);
        let scope = match before.is_empty() {
            true => &self.scope,
            false => &self.scope.after(&before)?,
        };
        let results = scope.execute(&mut passed, attrs)?;
        self.state().kept.extend(kept::of_attrs(attrs));
        if !info.is_stateful {
            return Ok(results);
        }
        let counts = results.lengths().iter().sum::<u32>();
        if counts == 0 {
            let operation = results.operation();
            self.note(info, resources, &operation);
            return prepared.results(std::iter::empty().collect(), operation);
        }
        let outputs: tfp_core::SmallVec<Output, 4> = results.all().into_iter().collect();
        let operation = outputs[0].operation().clone();
        self.note(info, resources, &operation);
        prepared.results(outputs, operation)
    }
}

impl fmt::Debug for FuncGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        write!(
            f,
            "FuncGraph({} arguments, {} captures)",
            state.inputs.len(),
            state.captures.len()
        )
    }
}
