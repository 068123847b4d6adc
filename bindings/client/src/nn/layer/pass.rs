//! One computation of a model, which layers are given.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tfp_core::{Context, Operation, Result, Tensor};

use crate::context::any::{AnyContext, Mode};
use crate::context::value::AnyValue;
use crate::ops;
use crate::variable::Variable;

/// One computation of a model: where it happens, and whether it is for training.
pub struct Pass<'a> {
    context: &'a AnyContext,
    is_training: bool,
    is_first_order: bool,
    step: Option<AnyValue>,
    draws: AtomicU32,
    updates: Mutex<Vec<(Option<AnyValue>, Operation)>>,
    masks: Mutex<Masks>,
    losses: Mutex<Vec<AnyValue>>,
}

/// A mask of each value: (batch, steps), false for steps to skip.
pub(crate) type MaskList = Vec<Option<AnyValue>>;

/// The masks at the layer that is computed.
#[derive(Default)]
struct Masks {
    inputs: MaskList,
    outputs: MaskList,
}

impl<'a> Pass<'a> {
    /// A computation for training: dropout drops, and batch normalization learns.
    #[must_use]
    pub fn training(context: &'a AnyContext) -> Self {
        Self::new(context, true)
    }

    /// A computation of results.
    #[must_use]
    pub fn inference(context: &'a AnyContext) -> Self {
        Self::new(context, false)
    }

    fn new(context: &'a AnyContext, is_training: bool) -> Self {
        Self {
            context,
            is_training,
            is_first_order: false,
            step: None,
            draws: AtomicU32::new(0),
            updates: Mutex::default(),
            masks: Mutex::default(),
            losses: Mutex::default(),
        }
    }

    /// Gives the number of the training step, an int64 scalar: what layers draw then follows from it
    /// and from their seeds alone. Otherwise each computation has other random numbers.
    #[must_use]
    pub fn at_step(mut self, step: AnyValue) -> Self {
        self.step = Some(step);
        self
    }

    /// Says that no gradient of a gradient is taken, so that ops may be used that have no second one.
    pub(crate) fn first_order(mut self) -> Self {
        self.is_first_order = true;
        self
    }

    /// Whether no gradient of a gradient is taken.
    pub(crate) fn is_first_order(&self) -> bool {
        self.is_first_order
    }

    /// Returns two numbers to draw random ones from, which no other call of this pass and no other step
    /// gets.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn seed(&self, layer: u32) -> Result<AnyValue> {
        let cx = self.context;
        let Some(step) = &self.step else {
            // A generator with a state gives each step another seed.
            let options = ops::RandomUniformIntOptions {
                seed: Some(i64::from(layer)),
                seed2: Some(1),
            };
            return ops::random_uniform_int(cx, [2], 0, i32::MAX, options);
        };
        // A layer may be called several times.
        let call = self.draws.fetch_add(1, Ordering::Relaxed);
        let seed = i64::from(layer) << 32 | i64::from(call);
        let seed = cx.constant(&Tensor::scalar(seed)?)?;
        ops::pack(cx, &[seed, step.clone()], ops::PackOptions::default())
    }

    /// Returns the context.
    #[must_use]
    pub fn context(&self) -> &AnyContext {
        self.context
    }

    /// Whether it is for training.
    #[must_use]
    pub fn is_training(&self) -> bool {
        self.is_training
    }

    /// Returns the mask of the layer's first input, (batch, steps): false for steps to skip.
    #[must_use]
    pub fn mask(&self) -> Option<AnyValue> {
        self.mask_of(0)
    }

    /// Returns the mask of one of the layer's inputs.
    #[must_use]
    pub fn mask_of(&self, input: usize) -> Option<AnyValue> {
        self.masks().inputs.get(input).cloned().flatten()
    }

    /// Gives the layer's first output a mask. Without this call it has none: a layer that leaves steps
    /// where they are passes [`Self::mask`] on.
    pub fn pass_mask(&self, mask: Option<AnyValue>) {
        self.pass_masks(vec![mask]);
    }

    /// Gives each of the layer's outputs a mask or none.
    pub fn pass_masks(&self, masks: Vec<Option<AnyValue>>) {
        self.masks().outputs = masks;
    }

    /// Goes on to a layer whose inputs have these masks.
    pub(crate) fn enter(&self, inputs: MaskList) {
        let outputs = Vec::new();
        *self.masks() = Masks { inputs, outputs };
    }

    /// Returns the masks that the layer gave to its outputs.
    pub(crate) fn leave(&self, outputs: usize) -> MaskList {
        let mut masks = std::mem::take(&mut self.masks().outputs);
        masks.resize(outputs, None);
        masks
    }

    fn masks(&self) -> MutexGuard<'_, Masks> {
        self.masks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a scalar to the loss of the batch.
    pub fn add_loss(&self, loss: AnyValue) {
        let mut losses = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
        losses.push(loss);
    }

    /// Returns what layers added to the loss since the last call.
    pub(crate) fn take_losses(&self) -> Vec<AnyValue> {
        let mut losses = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *losses)
    }

    /// Keeps an operation that a layer wants to run in each training step. Eager mode has run it.
    pub fn update(&self, operation: Option<Operation>) {
        let operation = operation.map(|operation| (None, operation));
        self.updates().extend(operation);
    }

    /// Changes a variable in each training step: by a function of a context, in which the changes of
    /// earlier calls are done.
    pub(crate) fn change(
        &self,
        variable: &Variable,
        change: impl FnOnce(&AnyContext) -> Result<Option<Operation>>,
    ) -> Result<()> {
        let is_same = |one: &Option<AnyValue>| one.as_ref() == Some(variable.handle());
        let before: Vec<Operation> = self
            .updates()
            .iter()
            .filter(|(one, _)| is_same(one))
            .map(|(_, operation)| operation.clone())
            .collect();
        let operation = match self.context {
            AnyContext::Scope(scope) if !before.is_empty() => change(&scope.after(&before)?.any())?,
            context => change(context)?,
        };
        let operation = operation.map(|operation| (Some(variable.handle().clone()), operation));
        self.updates().extend(operation);
        Ok(())
    }

    /// Returns the number that the next draw has.
    pub(crate) fn next_draw(&self) -> u32 {
        self.draws.load(Ordering::Relaxed)
    }

    /// Gives the next draw a number.
    pub(crate) fn draw_from(&self, number: u32) {
        self.draws.store(number, Ordering::Relaxed);
    }

    /// Returns a context in which the changes so far are done.
    pub(crate) fn after_changes(&self) -> Result<AnyContext> {
        let changes = self.updates();
        match self.context {
            AnyContext::Scope(scope) if !changes.is_empty() => {
                let changes: Vec<Operation> = changes.iter().map(|(_, one)| one.clone()).collect();
                Ok(scope.after(&changes)?.any())
            }
            // Elsewhere what uses a variable waits for its changes.
            context => Ok(context.clone()),
        }
    }

    /// Goes on in another context.
    pub(crate) fn within<T>(
        &self,
        context: &AnyContext,
        compute: impl FnOnce(&Pass<'_>) -> Result<T>,
    ) -> Result<T> {
        let inner = Pass {
            context,
            is_training: self.is_training,
            is_first_order: self.is_first_order,
            step: self.step.clone(),
            draws: AtomicU32::new(self.next_draw()),
            updates: Mutex::new(std::mem::take(&mut *self.updates())),
            masks: Mutex::new(std::mem::take(&mut *self.masks())),
            losses: Mutex::new(self.take_losses()),
        };
        let result = compute(&inner);
        *self.masks() = std::mem::take(&mut *inner.masks());
        *self.updates() = std::mem::take(&mut *inner.updates());
        self.draw_from(inner.next_draw());
        inner
            .take_losses()
            .into_iter()
            .for_each(|loss| self.add_loss(loss));
        result
    }

    fn updates(&self) -> MutexGuard<'_, Vec<(Option<AnyValue>, Operation)>> {
        self.updates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the operations that layers want to run in each training step of a graph.
    #[must_use]
    pub fn into_updates(self) -> Vec<Operation> {
        let updates = self.updates.into_inner();
        let updates = updates.unwrap_or_else(PoisonError::into_inner);
        updates
            .into_iter()
            .map(|(_, operation)| operation)
            .collect()
    }
}
