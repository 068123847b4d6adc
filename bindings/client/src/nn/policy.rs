//! The types in which layers compute and keep their variables.

use std::fmt;

use tfp_core::{Context, DataType, Result, Value};
use tfp_ops as ops;

use crate::context::any::AnyContext;
use crate::context::value::AnyValue;

/// The types in which a layer computes and keeps its variables, as Keras' `DTypePolicy`.
///
/// [`Weights::policy`](super::Weights::policy) sets that of a model, and
/// [`Layer::policy`](super::layer::Layer::policy) that of one layer. A layer casts its inputs, as far as
/// they are real numbers, and what it reads of its variables to the type in which it computes. As in Keras,
/// batch, layer, group and root-mean-square normalization compute in float32 or wider, and so do losses and
/// metrics. Layers of images and signals compute in float32, and cast their results. Layers of categories
/// give float32 in any case.
///
/// ```
/// use tfp::DataType;
/// use tfp::nn::Policy;
///
/// assert_eq!(Policy::MixedBFloat16.compute(), DataType::BFLOAT16);
/// assert_eq!(Policy::MixedBFloat16.variable(), DataType::FLOAT);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// All of it float32.
    #[default]
    Float32,
    /// All of it float64.
    Float64,
    /// All of it float16.
    Float16,
    /// All of it bfloat16.
    BFloat16,
    /// Computes in float16, and keeps float32 variables. A training
    /// [scales the loss](super::optimizer::LossScale).
    MixedFloat16,
    /// Computes in bfloat16, and keeps float32 variables.
    MixedBFloat16,
}

impl Policy {
    const ALL: [Self; 6] = [
        Self::Float32,
        Self::Float64,
        Self::Float16,
        Self::BFloat16,
        Self::MixedFloat16,
        Self::MixedBFloat16,
    ];

    /// Returns the type in which a layer computes.
    #[must_use]
    pub const fn compute(self) -> DataType {
        match self {
            Self::Float32 => DataType::FLOAT,
            Self::Float64 => DataType::DOUBLE,
            Self::Float16 | Self::MixedFloat16 => DataType::HALF,
            Self::BFloat16 | Self::MixedBFloat16 => DataType::BFLOAT16,
        }
    }

    /// Returns the type of a layer's variables.
    #[must_use]
    pub const fn variable(self) -> DataType {
        match self {
            Self::MixedFloat16 | Self::MixedBFloat16 => DataType::FLOAT,
            whole => whole.compute(),
        }
    }

    /// Returns the name that Keras has for it, such as `mixed_float16`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Float16 => "float16",
            Self::BFloat16 => "bfloat16",
            Self::MixedFloat16 => "mixed_float16",
            Self::MixedBFloat16 => "mixed_bfloat16",
        }
    }

    /// Returns the policy of Keras' name, if it is one of these.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Whether a layer takes a value as it is: real numbers of its type, or other values.
    pub(crate) fn takes(self, x: &AnyValue) -> bool {
        x.dtype() == self.compute() || !x.dtype().is_float()
    }

    /// Casts real numbers to the type in which a layer computes. Other values stay.
    pub(crate) fn cast(self, cx: &AnyContext, x: &AnyValue) -> Result<AnyValue> {
        match self.takes(x) {
            true => Ok(x.clone()),
            false => as_type(cx, x, self.compute()),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The type in which statistics of numbers are computed: float32, or float64 for float64.
pub(crate) fn wide(dtype: DataType) -> DataType {
    match dtype {
        DataType::DOUBLE => DataType::DOUBLE,
        _ => DataType::FLOAT,
    }
}

/// Casts, when the type is another.
pub(crate) fn as_type<C: Context + ?Sized>(
    cx: &C,
    x: &C::Value,
    dtype: DataType,
) -> Result<C::Value> {
    if x.dtype() == dtype {
        Ok(x.clone())
    } else {
        ops::cast(cx, x, dtype, ops::CastOptions::default())
    }
}
