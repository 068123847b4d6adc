//! Layers: descriptions that make variables and become functions.
//!
//! A [`Layer`] describes what it computes; [`Layer::build`] makes its variables for an input shape
//! and returns a [`Forward`]. Data is channels-last. Names, shapes, orders and initial values of
//! weights are those of Keras 3.

mod adaptive;
mod attention;
mod categorical;
mod chosen;
mod constrained;
mod conv;
mod conv3d;
mod conv_lstm;
mod core;
mod depth;
pub(crate) mod described;
mod function;
mod image;
mod initialized;
mod merge;
mod model;
mod node;
mod noise;
mod norm;
mod pool;
mod rectifier;
mod recurrent;
mod regularized;
mod reshape;
mod separable;
mod sequential;
mod shared;
mod standardized;
mod summary;
mod wrapper;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tfp_core::{Context, Error, Operation, Result, Tensor};

use super::{ConstraintFunction, InitializerFunction, RegularizerFunction, Weights};
use crate::context::any::{AnyContext, Mode};
use crate::context::value::AnyValue;
use crate::ops;
use crate::variable::Variable;

pub use self::adaptive::AdaptivePooling;
pub use self::attention::{Attention, GroupedQueryAttention, MultiHeadAttention, Score};
pub use self::categorical::{CategoryEncoding, Discretization, Encoding};
pub use self::constrained::Constrained;
pub use self::conv::{Conv, ConvTranspose, DepthwiseConv2d};
pub use self::conv_lstm::ConvLstm;
pub use self::conv3d::{Conv3d, Conv3dTranspose};
pub use self::core::{Dense, Dropout, EinsumDense, Embedding, Flatten, Reshape};
pub use self::described::KerasLayer;
pub use self::function::Function;
pub use self::image::{
    AspectRatio, AutoContrast, CenterCrop, Equalization, Fill, Flip, RandomBrightness,
    RandomColorDegeneration, RandomColorJitter, RandomContrast, RandomCrop, RandomErasing,
    RandomFlip, RandomGaussianBlur, RandomGrayscale, RandomHue, RandomInvert, RandomPerspective,
    RandomPosterization, RandomRotation, RandomSaturation, RandomSharpness, RandomShear,
    RandomTranslation, RandomZoom, ResizeMethod, Resizing, Solarization,
};
pub use self::initialized::Initialized;
pub use self::merge::{Add, Average, Concatenate, Dot, Maximum, Minimum, Multiply, Subtract};
pub use self::model::{Model, Port};
pub use self::node::Node;
pub use self::noise::{
    ActivityPenalty, AlphaDropout, GaussianDropout, GaussianNoise, Masking, Scaling, SharedDropout,
    SpatialDropout,
};
pub use self::norm::{BatchNorm, GroupNorm, LayerNorm, RmsNorm, UnitNorm};
pub use self::pool::{GlobalPool, Pooling, Pooling3d};
pub use self::rectifier::{PRelu, Relu, Softmax};
pub use self::recurrent::{Bidirectional, Merge, Recurrent, RnnKind, StackedRnn};
pub use self::regularized::Regularized;
pub use self::reshape::{
    Cropping, Identity, Interpolation, Permute, RepeatVector, UpSampling, ZeroPadding,
};
pub use self::separable::{DepthwiseConv1d, SeparableConv};
pub use self::sequential::Sequential;
pub use self::shared::SharedLayer;
pub use self::standardized::{Measured, Normalization};
pub use self::wrapper::TimeDistributed;

/// One computation of a model: where it happens, and whether it is for training.
pub struct Pass<'a> {
    context: &'a AnyContext,
    is_training: bool,
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
        Self {
            context,
            is_training: true,
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
            losses: Mutex::default(),
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

/// A layer with its variables: from (batch, ...) to (batch, ...).
pub type Forward = Box<dyn Fn(&Pass<'_>, &AnyValue) -> Result<AnyValue> + Send + Sync>;

/// A built layer and the shape of its output, without the batch.
pub struct Built {
    /// The function.
    pub forward: Forward,
    /// The output's shape.
    pub output: Vec<i64>,
}

/// Several layers' inputs to several outputs.
pub type ForwardMany = Box<dyn Fn(&Pass<'_>, &[AnyValue]) -> Result<Vec<AnyValue>> + Send + Sync>;

/// A built layer with any number of inputs and outputs, whose shapes are without the batch.
pub struct BuiltMany {
    /// The function.
    pub forward: ForwardMany,
    /// The outputs' shapes.
    pub outputs: Vec<Vec<i64>>,
}

impl BuiltMany {
    pub(crate) fn new(
        outputs: Vec<Vec<i64>>,
        forward: impl Fn(&Pass<'_>, &[AnyValue]) -> Result<Vec<AnyValue>> + Send + Sync + 'static,
    ) -> Result<Self> {
        Ok(Self {
            forward: Box::new(forward),
            outputs,
        })
    }
}

impl From<Built> for BuiltMany {
    fn from(Built { forward, output }: Built) -> Self {
        Self {
            forward: Box::new(move |pass, inputs| {
                let [x] = inputs else {
                    return Err(one_input("the layer", inputs.len()));
                };
                Ok(vec![forward(pass, x)?])
            }),
            outputs: vec![output],
        }
    }
}

/// An error about a number of inputs.
fn one_input(layer: &str, found: usize) -> Error {
    Error::argument(format!("{layer} takes one input, found {found}"))
}

impl Built {
    pub(crate) fn new(
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

    /// Makes the layer's variables for several inputs, whose shapes are without the batch. By default a
    /// layer has one.
    ///
    /// # Errors
    /// As for [`Self::build`].
    fn build_many(&self, weights: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        match inputs {
            [input] => self.build(weights, input).map(BuiltMany::from),
            _ => Err(one_input(&self.kind(), inputs.len())),
        }
    }

    /// Returns what Keras' files say of the layer, for inputs of these shapes.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a layer that Keras does not have.
    fn keras(&self, _inputs: &[&[i64]]) -> Result<KerasLayer> {
        Err(Error::argument("Keras has no such layer"))
    }

    /// Returns the name of the kind of layer, for messages and summaries.
    fn kind(&self) -> String {
        let path = std::any::type_name::<Self>();
        let path = path.split('<').next().unwrap_or(path);
        path.rsplit("::").next().unwrap_or(path).to_owned()
    }

    /// Adds a penalty of the variables with a name, as `kernel`, `bias` or `embeddings`, to the loss.
    /// Building the layer is an error if it makes no such variable.
    fn regularized(
        self,
        variable: &str,
        regularizer: impl RegularizerFunction + 'static,
    ) -> Regularized<Self>
    where
        Self: Sized,
    {
        Regularized {
            layer: self,
            variable: variable.to_owned(),
            regularizer: Arc::new(regularizer),
        }
    }

    /// Makes the variables with a name, as `kernel`, fulfil a constraint after each step of training.
    /// Building the layer is an error if it makes no such variable.
    fn constrained(
        self,
        variable: &str,
        constraint: impl ConstraintFunction + 'static,
    ) -> Constrained<Self>
    where
        Self: Sized,
    {
        Constrained {
            layer: self,
            variable: variable.to_owned(),
            constraint: Arc::new(constraint),
        }
    }

    /// Gives the variables with a name, as `kernel`, their values before training. Building the layer
    /// is an error if it makes no such variable.
    fn initialized(
        self,
        variable: &str,
        initializer: impl InitializerFunction + 'static,
    ) -> Initialized<Self>
    where
        Self: Sized,
    {
        Initialized {
            layer: self,
            variable: variable.to_owned(),
            initializer: Arc::new(initializer),
        }
    }
}

macro_rules! pointers {
    ($($pointer:ty),*) => {
        $(impl<L: Layer + ?Sized> Layer for $pointer {
            fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
                (**self).build(weights, input)
            }

            fn build_many(&self, weights: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
                (**self).build_many(weights, inputs)
            }

            fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
                (**self).keras(inputs)
            }

            fn kind(&self) -> String {
                (**self).kind()
            }
        })*
    };
}

pointers!(Box<L>, &L);

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
