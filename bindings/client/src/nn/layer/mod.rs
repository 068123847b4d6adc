//! Layers: descriptions that make variables and become functions.
//!
//! A [`Layer`] describes what it computes; [`Layer::build`] makes its variables for an input shape
//! and returns a [`Forward`]. Data is channels-last. Names, shapes, orders and initial values of
//! weights are those of Keras 3.

mod adaptive;
mod affine;
mod attention;
mod block_lstm;
mod categorical;
mod chosen;
mod composed;
mod constrained;
mod conv;
mod conv3d;
mod conv_lstm;
mod core;
mod depth;
pub(crate) mod described;
mod function;
mod hashed;
mod image;
mod initialized;
mod lookup;
mod merge;
mod model;
mod moments;
mod node;
mod noise;
mod norm;
mod parts;
mod pass;
mod policy;
mod pool;
mod rectifier;
mod recurrent;
mod regularized;
mod reshape;
mod reversible;
mod saved;
mod separable;
mod sequential;
mod shared;
mod signal;
mod spectral;
mod standardized;
mod steps;
mod summary;
mod wrapper;

use std::sync::Arc;

use tfp_core::{Error, Result};

use super::{ConstraintFunction, InitializerFunction, Policy, RegularizerFunction, Weights};
use crate::context::value::AnyValue;

pub use self::adaptive::AdaptivePooling;
pub use self::attention::{Attention, GroupedQueryAttention, MultiHeadAttention, Score};
pub use self::categorical::{CategoryEncoding, Discretization, Encoding};
pub use self::composed::{Composed, Field, Fields};
pub use self::constrained::Constrained;
pub use self::conv::{Conv, ConvTranspose, DepthwiseConv2d};
pub use self::conv_lstm::ConvLstm;
pub use self::conv3d::{Conv3d, Conv3dTranspose};
pub use self::core::{Dense, Dropout, EinsumDense, Embedding, Flatten, Reshape};
pub use self::described::KerasLayer;
pub use self::function::Function;
pub use self::hashed::{HashedCrossing, Hashing};
pub use self::image::{
    AspectRatio, AugMix, AutoContrast, CenterCrop, Clahe, CutMix, Equalization, Fill, Flip, MixUp,
    RandAugment, RandomBrightness, RandomColorDegeneration, RandomColorJitter, RandomContrast,
    RandomCrop, RandomElasticTransform, RandomErasing, RandomFlip, RandomGaussianBlur,
    RandomGrayscale, RandomHue, RandomInvert, RandomPerspective, RandomPosterization,
    RandomRotation, RandomSaturation, RandomSharpness, RandomShear, RandomTranslation, RandomZoom,
    ResizeMethod, Resizing, Solarization,
};
pub use self::initialized::Initialized;
pub use self::lookup::{IntegerLookup, UnknownPlace};
pub use self::merge::{Add, Average, Concatenate, Dot, Maximum, Minimum, Multiply, Subtract};
pub use self::model::{Model, Port};
pub use self::node::Node;
pub use self::noise::{
    ActivityPenalty, AlphaDropout, GaussianDropout, GaussianNoise, Masking, Scaling, SharedDropout,
    SpatialDropout,
};
pub use self::norm::{BatchNorm, GroupNorm, LayerNorm, RmsNorm, UnitNorm};
#[doc(hidden)]
pub use self::parts::Address;
pub(crate) use self::pass::MaskList;
pub use self::pass::Pass;
pub use self::policy::WithPolicy;
pub use self::pool::{GlobalPool, Pooling, Pooling3d};
pub use self::rectifier::{PRelu, Relu, Softmax};
pub use self::recurrent::{Bidirectional, Merge, Recurrent, RnnKind, StackedRnn};
pub use self::regularized::Regularized;
pub use self::reshape::{
    Cropping, Identity, Interpolation, Permute, RepeatVector, UpSampling, ZeroPadding,
};
pub(crate) use self::reversible::{Back, Tables};
pub use self::reversible::{Reversed, ReversibleEmbedding};
pub use self::saved::SavedLayer;
pub use self::separable::{DepthwiseConv1d, SeparableConv};
pub use self::sequential::Sequential;
pub use self::shared::SharedLayer;
pub use self::signal::{
    Decibels, MelSpectrogram, Spectrum, SpectrumScale, StftSpectrogram, Window,
};
pub use self::spectral::SpectralNorm;
pub(crate) use self::spectral::VECTOR;
pub use self::standardized::{Measured, Normalization};
pub use self::wrapper::TimeDistributed;
pub use tfp_derive::Model;

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

/// Takes a layer that was built for one input, and has one output, as such a layer.
fn only(BuiltMany { forward, outputs }: BuiltMany) -> Result<Built> {
    let [output] = <[_; 1]>::try_from(outputs).map_err(|outputs| {
        Error::argument(format!("it has {} outputs, expected one", outputs.len()))
    })?;
    Built::new(output, move |pass, x| {
        let value = forward(pass, std::slice::from_ref(x))?.pop();
        value.ok_or_else(|| Error::argument("a layer returned no value"))
    })
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

    /// Calls the layer with a node, as [`Node::then`]; a model of your own calls its fields so.
    ///
    /// # Errors
    /// As for [`Node::then`].
    fn on(&self, x: &Node) -> Result<Node> {
        x.then(self)
    }

    /// Calls the layer with several nodes and returns its first output, as [`Node::join`].
    ///
    /// # Errors
    /// As for [`Node::join`].
    fn on_all(&self, nodes: &[&Node]) -> Result<Node> {
        Node::join(self, nodes)
    }

    /// Calls the layer with several nodes and returns all its outputs, as [`Node::outputs`].
    ///
    /// # Errors
    /// As for [`Node::outputs`].
    fn outputs_on(&self, nodes: &[&Node]) -> Result<Vec<Node>> {
        Node::outputs(None, self, nodes)
    }

    /// Whether inputs that are real numbers are cast to the type in which the layer computes. If not, the
    /// layer takes them as they are, and computes in a type that it chooses.
    fn casts(&self) -> bool {
        true
    }

    /// Gives the layer a policy of its own, instead of that of its [`Weights`]: the types in which it
    /// computes and keeps its variables.
    fn policy(self, policy: Policy) -> WithPolicy<Self>
    where
        Self: Sized,
    {
        WithPolicy {
            layer: self,
            policy,
        }
    }

    /// Which layer it is, so that a struct knows its fields when they are called.
    #[doc(hidden)]
    fn address(&self) -> Address {
        Address::of(self)
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
    ($($pointer:ty { $($own:item)* })*) => {
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

            fn casts(&self) -> bool {
                (**self).casts()
            }

            $($own)*
        })*
    };
}

pointers! {
    Box<L> {
        fn address(&self) -> Address {
            match (**self).address() {
                // What has no size has no place of its own; the box has.
                inside if inside.is_sizeless() => Address::of(self),
                inside => inside,
            }
        }
    }

    &L {
        fn address(&self) -> Address {
            (**self).address()
        }

        // By default a call is one of a reference to the layer: without these, references to references
        // would have no end.
        fn on(&self, x: &Node) -> Result<Node> {
            (**self).on(x)
        }

        fn on_all(&self, nodes: &[&Node]) -> Result<Node> {
            (**self).on_all(nodes)
        }

        fn outputs_on(&self, nodes: &[&Node]) -> Result<Vec<Node>> {
            (**self).outputs_on(nodes)
        }
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
