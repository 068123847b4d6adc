//! Errors of a model.

use core::fmt;

use crate::kernels::base::error::Error as KernelError;

/// The result of every fallible function of a model.
pub type Result<T> = core::result::Result<T, Error>;

/// The error of a kernel; in a box where there is memory for one, since it is large.
#[cfg(feature = "std")]
pub type Cause = std::boxed::Box<KernelError>;
/// The error of a kernel.
#[cfg(not(feature = "std"))]
pub type Cause = KernelError;

/// Why a model refused its arguments or could not be loaded.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An input has not the length that the model expects.
    Input {
        /// Name of the input.
        name: &'static str,
        /// Elements that were passed.
        found: usize,
        /// Elements of one example.
        example: usize,
        /// The number of batch elements that the other inputs have, or that the model is fixed to.
        batch: Option<usize>,
    },
    /// An axis of an input is not as the model or another input has it.
    Shape {
        /// Name of the input.
        input: &'static str,
        /// The axis, from 0 on.
        axis: usize,
        /// Elements along it.
        found: usize,
        /// What was expected.
        wanted: Wanted,
    },
    /// An input has more or fewer elements than its shape says.
    Elements {
        /// Name of the input.
        input: &'static str,
        /// Elements that were passed.
        found: usize,
        /// Elements of the shape.
        expected: usize,
    },
    /// The inputs are too small: nothing is left of them somewhere in the model.
    Small {
        /// What has to be larger, such as `steps - 2 must be at least 1`.
        what: &'static str,
    },
    /// A buffer for an output is too short or too long.
    Output {
        /// Name of the output.
        name: &'static str,
        /// Elements that were passed.
        found: usize,
        /// Elements that the output has.
        expected: usize,
    },
    /// A workspace is too small for the batch.
    Workspace {
        /// Bytes that it has.
        found: usize,
        /// Bytes that the batch needs.
        expected: usize,
    },
    /// The weights are not those of this model.
    Weights {
        /// What is wrong with them.
        reason: &'static str,
        /// What was found, in bytes or as a fingerprint.
        found: u64,
        /// What was expected.
        expected: u64,
    },
    /// A layer could not compute, for instance because an index lies outside its table.
    Layer {
        /// The layer or operation.
        layer: &'static str,
        /// What the kernel says.
        error: Cause,
    },
    /// `thresholds.json` can't be read.
    Thresholds {
        /// What is wrong with it.
        reason: &'static str,
        /// The byte at which reading stopped.
        position: usize,
    },
    /// Two tensors that an operation uses together overlap, or one lies outside the workspace: a
    /// defect of the converter.
    Plan {
        /// What was expected.
        expected: &'static str,
    },
    /// There is not as much memory: for weights, packed weights or outputs.
    Memory {
        /// Bytes that were asked for.
        bytes: usize,
    },
    /// A file of weights can't be read.
    #[cfg(feature = "std")]
    File(std::io::Error),
}

/// What an axis of an input was expected to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// So many elements.
    Exactly(usize),
    /// So many elements or more.
    AtLeast(usize),
    /// So many elements or fewer.
    AtMost(usize),
    /// A multiple of so many elements.
    MultipleOf(usize),
    /// As many elements as an axis of another input.
    As {
        /// How many that has.
        size: usize,
        /// Name of that input.
        input: &'static str,
        /// Its axis, from 0 on.
        axis: usize,
    },
    /// As many elements as the model computes of open dimensions.
    Computed {
        /// How many that is.
        size: usize,
        /// How it is computed, such as `past + steps`.
        of: &'static str,
    },
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(size) => write!(f, "{size}"),
            Self::AtLeast(size) => write!(f, "at least {size}"),
            Self::AtMost(size) => write!(f, "at most {size}"),
            Self::MultipleOf(size) => write!(f, "a multiple of {size}"),
            Self::As { size, input, axis } => write!(f, "{size} as axis {axis} of input {input}"),
            Self::Computed { size, of } => write!(f, "{size}, which is {of}"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input {
                name,
                found,
                example,
                batch: Some(batch),
            } => write!(
                f,
                "input {name} has {found} elements, expected {batch} examples of {example}"
            ),
            Self::Input {
                name,
                found,
                example,
                batch: None,
            } => write!(
                f,
                "input {name} has {found} elements, expected a multiple of {example}"
            ),
            Self::Shape {
                input,
                axis,
                found,
                wanted,
            } => write!(
                f,
                "axis {axis} of input {input} has {found} elements, expected {wanted}"
            ),
            Self::Elements {
                input,
                found,
                expected,
            } => write!(
                f,
                "input {input} has {found} elements, expected {expected} for its shape"
            ),
            Self::Small { what } => write!(f, "the inputs are too small for the model: {what}"),
            Self::Output {
                name,
                found,
                expected,
            } => write!(
                f,
                "output {name} has room for {found} elements, expected {expected}"
            ),
            Self::Workspace { found, expected } => {
                write!(f, "the workspace has {found} bytes, expected {expected}")
            }
            Self::Weights {
                reason,
                found,
                expected,
            } => write!(f, "weights: {reason}: found {found}, expected {expected}"),
            Self::Layer { layer, error } => write!(f, "layer {layer}: {error}"),
            Self::Thresholds { reason, position } => {
                write!(f, "thresholds.json, byte {position}: {reason}")
            }
            Self::Plan { expected } => write!(f, "the model's memory plan: expected {expected}"),
            Self::Memory { bytes } => write!(f, "there is no memory for {bytes} bytes"),
            #[cfg(feature = "std")]
            Self::File(error) => write!(f, "weights: {error}"),
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            #[cfg(feature = "std")]
            Self::Layer { error, .. } => Some(&**error),
            #[cfg(not(feature = "std"))]
            Self::Layer { error, .. } => Some(error),
            #[cfg(feature = "std")]
            Self::File(error) => Some(error),
            _ => None,
        }
    }
}

/// Names the layer that a kernel's error comes from.
pub(crate) fn at(layer: &'static str) -> impl FnOnce(KernelError) -> Error {
    // Boxed where there is an allocator.
    #[allow(clippy::useless_conversion)]
    move |error| Error::Layer {
        layer,
        error: error.into(),
    }
}
