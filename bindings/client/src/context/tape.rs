//! Tapes: what was executed, to be differentiated.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tfp_core::{
    AttrValue, Call, Context, DataType, EagerContext, Error, ErrorKind, OpDesc, Prepared, Result,
    Results, Tensor, TensorHandle,
};

use crate::context::any::{AnyContext, Mode};
use crate::context::record::{Attrs, Brought, OpRecord, SharedRule};
use crate::context::value::{foreign, is_differentiable};

/// An eager context that records what is executed with it, so that it can be differentiated.
///
/// It records the ops that depend on a watched tensor or variable. Variables are watched when they
/// are read ([`Tape::without_variables`] makes a tape that does not). A tape can be asked for
/// gradients any number of times; it holds all tensors it recorded until it is dropped or
/// [cleared](Self::clear). A clone is the same tape.
///
/// A tape over a tape records how the gradients of the inner one are computed, which gives
/// gradients of gradients:
///
/// ```no_run
/// use tfp::{Context, EagerContext, Result, Tape, Tensor, ops};
///
/// fn second_derivative() -> Result<()> {
///     let eager = EagerContext::new()?;
///     let x = eager.handle(&Tensor::scalar(3.0_f32)?)?;
///     let outer = Tape::new(&eager);
///     outer.watch(&x)?;
///     let inner = Tape::new(&outer);
///     inner.watch(&x)?;
///     let y = ops::mul(&inner, &x, ops::mul(&inner, &x, &x)?)?;
///     let dy = inner.gradient(&y, &x)?;
///     let d2y = outer.gradient(&dy, &x)?;
///     assert_eq!(d2y.to_tensor()?.to_scalar::<f32>()?, 18.0);
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Tape {
    parent: Box<AnyContext>,
    eager: EagerContext,
    calls: &'static dyn Calls,
    inner: Arc<Inner>,
}

struct Inner {
    watches_variables: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    // Kept, so that their numbers stay theirs.
    watched: Vec<TensorHandle>,
    tracked: HashSet<usize>,
    records: Vec<Arc<OpRecord>>,
}

/// The ops that call functions: their gradients are other calls.
pub(crate) const CALLS: &[&str] = &[
    "PartitionedCall",
    "StatefulPartitionedCall",
    "If",
    "StatelessIf",
    "Case",
    "StatelessCase",
    "While",
    "StatelessWhile",
];

/// The ops that read a variable so that a gradient flows.
pub(crate) const READS: &[&str] = &["ReadVariableOp", "ResourceGather", "ResourceGatherNd"];

/// How a tape executes ops of [`CALLS`], so that they can be differentiated.
pub(crate) trait Calls: Send + Sync {
    /// Returns, for each input of a call, whether it is a variable that the functions read.
    fn read_variables(&self, cx: &AnyContext, op: &OpRecord) -> Result<Vec<bool>>;

    /// Executes a call and records it; `None` where its gradient does not matter.
    fn execute(
        &self,
        tape: &Tape,
        op: OpRecord,
        tracked: &[bool],
    ) -> Result<Option<Vec<TensorHandle>>>;
}

/// An eager context or a tape, over which a tape can be made.
pub trait EagerMode: Mode<Value = TensorHandle> {
    /// Returns the eager context that executes.
    fn eager_context(&self) -> &EagerContext;
}

impl EagerMode for EagerContext {
    fn eager_context(&self) -> &EagerContext {
        self
    }
}

impl EagerMode for Tape {
    fn eager_context(&self) -> &EagerContext {
        &self.eager
    }
}

impl Tape {
    pub(crate) fn with(
        parent: &impl EagerMode,
        watches_variables: bool,
        calls: &'static dyn Calls,
    ) -> Self {
        Self {
            calls,
            parent: Box::new(parent.any()),
            eager: parent.eager_context().clone(),
            inner: Arc::new(Inner {
                watches_variables,
                state: Mutex::default(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the eager context that executes.
    #[must_use]
    pub fn eager(&self) -> &EagerContext {
        &self.eager
    }

    /// Returns the same tape, with ops on another device, as `/device:CPU:0`; TensorFlow chooses where
    /// the name is empty.
    ///
    /// # Errors
    /// As for [`EagerContext::on_device`].
    pub fn on_device(&self, device: &str) -> Result<Self> {
        Ok(Self {
            parent: Box::new(self.parent.on_device(device)?),
            eager: self.eager.on_device(device)?,
            calls: self.calls,
            inner: Arc::clone(&self.inner),
        })
    }

    /// Returns the context that executes without this tape: the eager context or an outer tape.
    #[must_use]
    pub fn parent(&self) -> &AnyContext {
        &self.parent
    }

    /// Makes later ops that depend on a tensor, or on a variable by its resource, recorded.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`] for a tensor of another context, [`ErrorKind::Closed`] after
    /// [`Self::close`], and [`ErrorKind::DType`] for a type through which no gradient flows.
    pub fn watch(&self, tensor: &TensorHandle) -> Result<()> {
        self.check_own(tensor)?;
        if !is_differentiable(tensor.dtype()) {
            return Err(Error::new(ErrorKind::DType {
                what: "a tape watches floating-point and complex tensors and variables".to_owned(),
                expected: DataType::FLOAT,
                found: tensor.dtype(),
            }));
        }
        let mut state = self.open()?;
        if state.tracked.insert(tensor.id()) {
            state.watched.push(tensor.clone());
        }
        Ok(())
    }

    pub(crate) fn check_own(&self, tensor: &TensorHandle) -> Result<()> {
        if tensor.context().is_same(&self.eager) {
            return Ok(());
        }
        Err(foreign(
            "a tensor of another eager context was given to a tape",
        ))
    }

    fn open(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state();
        if state.closed {
            return Err(Error::new(ErrorKind::Closed { what: "tape" }));
        }
        Ok(state)
    }

    /// Forgets everything that was recorded and watched.
    pub fn clear(&self) {
        let closed = self.state().closed;
        let old = std::mem::take(&mut *self.state());
        self.state().closed = closed;
        drop(old);
    }

    /// Ends the recording and forgets everything; what the tape is used for after that is an error.
    pub fn close(&self) {
        self.clear();
        self.state().closed = true;
    }

    /// Returns the variables that were watched or read, by their resources, in that order.
    #[must_use]
    pub fn watched_variables(&self) -> Vec<TensorHandle> {
        let state = self.state();
        let resources = state
            .watched
            .iter()
            .filter(|handle| handle.dtype() == DataType::RESOURCE);
        resources.cloned().collect()
    }

    /// Returns how many ops were recorded.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state().records.len()
    }

    /// Whether no op was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the ops that were recorded, and for each `x` whether something was recorded for it.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`].
    pub(crate) fn recorded(&self, xs: &[&TensorHandle]) -> Result<(Vec<Arc<OpRecord>>, Vec<bool>)> {
        let state = self.open()?;
        let known = xs.iter().map(|x| state.tracked.contains(&x.id()));
        Ok((state.records.clone(), known.collect()))
    }

    fn record(
        &self,
        prepared: &Prepared<'_, TensorHandle>,
        attrs: &[AttrValue<'_>],
        desc: &'static OpDesc,
        inputs: &[&TensorHandle],
        outputs: &[TensorHandle],
    ) -> Result<OpRecord> {
        Ok(OpRecord {
            op_type: desc.name_str().to_owned(),
            inputs: inputs.iter().map(|&handle| handle.into()).collect(),
            outputs: outputs.iter().map(Into::into).collect(),
            attrs: OpRecord::attrs_of_call(desc, prepared, attrs)?,
            custom: None,
        })
    }

    /// Watches the variables that an op reads, itself or by the functions that it calls.
    fn watch_read(
        &self,
        prepared: &Prepared<'_, TensorHandle>,
        attrs: &[AttrValue<'_>],
        desc: &'static OpDesc,
        handles: &[&TensorHandle],
    ) -> Result<()> {
        let read: Vec<bool> = if READS.contains(&desc.name_str()) {
            vec![true]
        } else if CALLS.contains(&desc.name_str())
            && handles
                .iter()
                .any(|handle| handle.dtype() == DataType::RESOURCE)
        {
            let record = self.record(prepared, attrs, desc, handles, &[])?;
            for function in record.functions() {
                self.eager.add_function(function)?;
            }
            self.calls
                .read_variables(&AnyContext::Eager(self.eager.clone()), &record)?
        } else {
            return Ok(());
        };
        let mut state = self.open()?;
        for (&resource, _) in handles.iter().zip(read).filter(|(_, read)| *read) {
            if state.tracked.insert(resource.id()) {
                state.watched.push(resource.clone());
            }
        }
        Ok(())
    }

    /// Records values that were computed outside of the tape, with their gradient.
    pub(crate) fn record_custom(
        &self,
        op_type: &str,
        inputs: Vec<TensorHandle>,
        outputs: &[TensorHandle],
        rule: SharedRule,
    ) -> Result<()> {
        let mut state = self.open()?;
        if !inputs
            .iter()
            .any(|input| state.tracked.contains(&input.id()))
        {
            return Ok(());
        }
        state.tracked.extend(outputs.iter().map(TensorHandle::id));
        state.records.push(Arc::new(OpRecord {
            op_type: op_type.to_owned(),
            inputs: inputs.into_iter().map(Into::into).collect(),
            outputs: outputs.iter().map(Into::into).collect(),
            attrs: Attrs::Values(Vec::new(), Brought::default()),
            custom: Some(rule),
        }));
        Ok(())
    }
}

impl Context for Tape {
    type Value = TensorHandle;
    type Operation = ();

    fn constant(&self, tensor: &Tensor) -> Result<TensorHandle> {
        self.eager.constant(tensor)
    }

    fn execute(
        &self,
        call: &mut Call<'_, TensorHandle>,
        attrs: &[AttrValue<'_>],
    ) -> Result<Results<TensorHandle, ()>> {
        let desc = call.desc();
        let prepared = call.prepare(self, attrs)?;
        let handles: Vec<&TensorHandle> = prepared.values().collect();
        let is_call = CALLS.contains(&desc.name_str());
        if self.inner.watches_variables {
            self.watch_read(&prepared, attrs, desc, &handles)?;
        }
        let tracked: Vec<bool> = {
            let state = self.open()?;
            handles
                .iter()
                .map(|handle| state.tracked.contains(&handle.id()))
                .collect()
        };
        let is_tracked = tracked.contains(&true);
        if is_tracked && is_call {
            let record = self.record(&prepared, attrs, desc, &handles, &[])?;
            if let Some(outputs) = self.calls.execute(self, record, &tracked)? {
                return prepared.results(outputs.into_iter().collect(), ());
            }
        }
        let mut passed = Call::new(desc);
        let mut rest = handles.as_slice();
        for (is_list, operands) in prepared.inputs() {
            let (group, after) = rest.split_at(operands.len());
            rest = after;
            match group {
                [handle] if !is_list => passed.input(*handle),
                list => passed.list(list.to_vec()),
            };
        }
        let results = match &*self.parent {
            AnyContext::Tape(tape) => tape.execute(&mut passed, attrs)?,
            _ => self.eager.execute(&mut passed, attrs)?,
        };
        if !is_tracked {
            return Ok(results);
        }
        let outputs: tfp_core::SmallVec<TensorHandle, 4> = results.all().into_iter().collect();
        if outputs
            .iter()
            .any(|handle| is_differentiable(handle.dtype()))
        {
            let record = self.record(&prepared, attrs, desc, &handles, &outputs)?;
            let mut state = self.open()?;
            let tracked = outputs
                .iter()
                .filter(|handle| is_differentiable(handle.dtype()));
            state.tracked.extend(tracked.map(TensorHandle::id));
            state.records.push(Arc::new(record));
        }
        prepared.results(outputs, ())
    }
}

impl fmt::Debug for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tape({} ops)", self.len())
    }
}
