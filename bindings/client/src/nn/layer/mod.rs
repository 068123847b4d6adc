//! Layers: descriptions that make variables and become functions.
//!
//! A [`Layer`] describes what it computes; [`Layer::build`] makes its variables for an input shape
//! and returns a [`Forward`]. Data is channels-last. Names, shapes, orders and initial values of
//! weights are those of Keras 3.

mod conv;
mod conv3d;
mod core;
mod norm;
mod pool;
mod recurrent;
mod regularized;
mod sequential;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tfp_core::{Context, Error, Operation, Result, Tensor};

use super::{Regularizer, Weights};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::ops;

pub use self::conv::{Conv, ConvTranspose, DepthwiseConv2d};
pub use self::conv3d::Conv3d;
pub use self::core::{Dense, Dropout, Embedding, Flatten, Reshape};
pub use self::norm::{BatchNorm, GroupNorm, LayerNorm, RmsNorm};
pub use self::pool::{GlobalPool, Pooling};
pub use self::recurrent::{Bidirectional, Merge, MultiHeadAttention, Recurrent, RnnKind};
pub use self::regularized::Regularized;
pub use self::sequential::Sequential;

/// One computation of a model: where it happens, and whether it is for training.
pub struct Pass<'a> {
    context: &'a AnyContext,
    is_training: bool,
    step: Option<AnyValue>,
    draws: AtomicU32,
    updates: Mutex<Vec<Operation>>,
    masks: Mutex<Masks>,
}

/// The masks at the layer that is computed: (batch, steps), false for steps to skip.
#[derive(Default)]
struct Masks {
    input: Option<AnyValue>,
    output: Option<AnyValue>,
}

impl<'a> Pass<'a> {
    /// A computation for training: dropout drops, and batch normalization learns.
    #[must_use]
    pub fn training(context: &'a AnyContext) -> Self {
        Self {
            context,
            is_training: true,
            step: None,
            draws: AtomicU32::new(0),
            updates: Mutex::default(),
            masks: Mutex::default(),
        }
    }

    /// Gives the number of the training step, an int64 scalar: what layers draw then follows from it
    /// and from their seeds alone. Otherwise each computation has other random numbers.
    #[must_use]
    pub fn at_step(mut self, step: AnyValue) -> Self {
        self.step = Some(step);
        self
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

    /// A computation of results.
    #[must_use]
    pub fn inference(context: &'a AnyContext) -> Self {
        Self {
            context,
            is_training: false,
            step: None,
            draws: AtomicU32::new(0),
            updates: Mutex::default(),
            masks: Mutex::default(),
        }
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

    /// Returns the mask of the layer's input, (batch, steps): false for steps to skip.
    #[must_use]
    pub fn mask(&self) -> Option<AnyValue> {
        self.masks().input.clone()
    }

    /// Gives the layer's output a mask. Without this call it has none: a layer that leaves steps where
    /// they are passes [`Self::mask`] on.
    pub fn pass_mask(&self, mask: Option<AnyValue>) {
        self.masks().output = mask;
    }

    /// Goes on to the next layer, whose input is the output of the last one.
    pub(super) fn next_layer(&self) {
        let mut masks = self.masks();
        masks.input = masks.output.take();
    }

    fn masks(&self) -> MutexGuard<'_, Masks> {
        self.masks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an operation that a layer wants to run in each training step. Eager mode has run it.
    pub fn update(&self, operation: Option<Operation>) {
        self.updates
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(operation);
    }

    /// Returns the operations that layers want to run in each training step of a graph.
    #[must_use]
    pub fn into_updates(self) -> Vec<Operation> {
        self.updates
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A layer with its variables: from (batch, ...) to (batch, ...).
pub type Forward = Box<dyn Fn(&Pass<'_>, &AnyValue) -> Result<AnyValue> + Send + Sync>;

/// A built layer and the shape of its output, without the batch.
pub struct Built {
    /// The function.
    pub forward: Forward,
    /// The output's shape.
    pub output: Vec<i64>,
}

impl Built {
    fn new(
        output: Vec<i64>,
        forward: impl Fn(&Pass<'_>, &AnyValue) -> Result<AnyValue> + Send + Sync + 'static,
    ) -> Result<Self> {
        Ok(Self {
            forward: Box::new(forward),
            output,
        })
    }
}

/// The description of a layer.
pub trait Layer {
    /// Makes the layer's variables for inputs of a shape, which is without the batch.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a shape that the layer doesn't
    /// take, and what TensorFlow says.
    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built>;

    /// Adds a penalty of the variables with a name, as `kernel`, `bias` or `embeddings`, to the loss.
    /// Building the layer is an error if it makes no such variable.
    fn regularized(self, variable: &str, regularizer: Regularizer) -> Regularized<Self>
    where
        Self: Sized,
    {
        Regularized {
            layer: self,
            variable: variable.to_owned(),
            regularizer,
        }
    }
}

impl<L: Layer + ?Sized> Layer for Box<L> {
    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        (**self).build(weights, input)
    }
}

/// An error about an input shape.
fn wrong_input(layer: &str, expected: &str, input: &[i64]) -> Error {
    Error::argument(format!(
        "{layer} takes {expected} per sample, found the shape {input:?}"
    ))
}

/// Refuses sizes that are not positive, or larger than TensorFlow's kernels take.
fn check_sizes(layer: &str, what: &str, sizes: &[i64]) -> Result<()> {
    if sizes.iter().all(|size| (1..=LARGEST).contains(size)) {
        return Ok(());
    }
    Err(Error::argument(format!(
        "{layer}: {what} {sizes:?}; expected 1 to {LARGEST}"
    )))
}

/// The largest size along one dimension.
const LARGEST: i64 = i32::MAX as i64;

/// The number of elements, when no size is unknown.
fn elements(sizes: &[i64]) -> Option<i64> {
    sizes.iter().try_fold(1_i64, |count, &size| {
        count.checked_mul(size).filter(|_| size >= 0)
    })
}

/// The channels of an input: its last dimension.
fn channels(layer: &str, input: &[i64]) -> Result<i64> {
    match input.last() {
        Some(&channels) if channels > 0 => Ok(channels),
        _ => Err(wrong_input(layer, "a known last dimension", input)),
    }
}
