//! Categories: numbers to bins, and bins to vectors.

use tfp_core::{DataType, Error, Result};

use super::described::KerasLayer;
use super::{Built, Layer, wrong_input};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::formats::json::Json;
use crate::nn::Weights;
use crate::ops;

/// What categories become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// Their numbers, int64.
    Integer,
    /// A vector for each, float32, that is 1 at its number. A last dimension of 1 is left out.
    OneHot,
    /// A vector for those of the last dimension, float32: 1 at each number that is there.
    MultiHot,
    /// A vector for those of the last dimension, float32: how often each number is there.
    Count,
}

impl Encoding {
    /// Its name in Keras.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Integer => "int",
            Self::OneHot => "one_hot",
            Self::MultiHot => "multi_hot",
            Self::Count => "count",
        }
    }

    /// The encoding of a name of Keras.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Integer, Self::OneHot, Self::MultiHot, Self::Count];
        all.into_iter().find(|one| one.name() == name)
    }

    pub(super) fn output(self, input: &[i64], depth: i64) -> Vec<i64> {
        match (self, input) {
            (Self::Integer, _) => input.to_vec(),
            (Self::OneHot, [before @ .., 1]) => [before, &[depth]].concat(),
            (Self::OneHot, _) => [input, &[depth]].concat(),
            (Self::MultiHot | Self::Count, [before @ .., _]) => [before, &[depth]].concat(),
            (Self::MultiHot | Self::Count, []) => vec![depth],
        }
    }

    /// Encodes int64 numbers (batch, ..) of samples of a shape.
    pub(super) fn encode(
        self,
        cx: &AnyContext,
        x: &AnyValue,
        input: &[i64],
        depth: i32,
    ) -> Result<AnyValue> {
        if self == Self::Integer {
            return Ok(x.clone());
        }
        let options = ops::OneHotOptions::default();
        let last = ops::SqueezeOptions {
            squeeze_dims: Some(&[-1]),
        };
        let squeezed = match (self, input) {
            (Self::OneHot, [.., 1]) => ops::squeeze(cx, x, last)?,
            _ => x.clone(),
        };
        let vectors = ops::one_hot(cx, squeezed, depth, 1.0_f32, 0.0_f32, options)?;
        match self {
            Self::Integer | Self::OneHot => Ok(vectors),
            // A sample is a single number.
            Self::MultiHot | Self::Count if input.is_empty() => Ok(vectors),
            Self::MultiHot => ops::max(cx, vectors, -2, Default::default()),
            Self::Count => ops::sum(cx, vectors, -2, Default::default()),
        }
    }
}

/// Numbers to the bins in which they are, int64 or encoded. Bin `i` is from boundary `i - 1` to below
/// boundary `i`.
#[derive(Clone, Debug, PartialEq)]
pub struct Discretization {
    /// The boundaries between bins, in ascending order.
    pub boundaries: Vec<f32>,
    /// What the bins become.
    pub encoding: Encoding,
}

impl Layer for Discretization {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let boundaries = self.boundaries.iter().map(|&one| one.into()).collect();
        let dtype = match self.encoding {
            Encoding::Integer => "int64",
            _ => "float32",
        };
        Ok(KerasLayer::new("Discretization")
            .set("bin_boundaries", Json::List(boundaries))
            .set("output_mode", self.encoding.name())
            .set("dtype", dtype))
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        let Self {
            boundaries,
            encoding,
        } = self.clone();
        if !boundaries.is_sorted_by(|a, b| a <= b) {
            return Err(Error::argument(
                "Discretization: the boundaries are not in ascending order",
            ));
        }
        let depth = boundaries.len() + 1;
        let output = encoding.output(input, depth as i64);
        let input = input.to_vec();
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let x = ops::cast(cx, x, DataType::FLOAT, ops::CastOptions::default())?;
            let bins = ops::bucketize(cx, x, &boundaries)?;
            let bins = ops::cast(cx, bins, DataType::INT64, ops::CastOptions::default())?;
            encoding.encode(cx, &bins, &input, depth as i32)
        })
    }

    // Numbers of categories would be rounded.
    fn casts(&self) -> bool {
        false
    }
}

/// Numbers of categories to vectors, float32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CategoryEncoding {
    /// How many categories there are. A number that is not among them has a vector of zeros.
    pub count: i32,
    /// What categories become; not [`Encoding::Integer`].
    pub encoding: Encoding,
}

impl Layer for CategoryEncoding {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("CategoryEncoding")
            .set("num_tokens", i64::from(self.count))
            .set("output_mode", self.encoding.name()))
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        let Self { count, encoding } = *self;
        if count < 1 || encoding == Encoding::Integer {
            return Err(Error::argument(format!(
                "CategoryEncoding: {count} categories as {}, expected one or more, as vectors",
                encoding.name()
            )));
        }
        if input.len() > 1 && encoding != Encoding::OneHot {
            return Err(wrong_input("CategoryEncoding", "numbers in a row", input));
        }
        let output = encoding.output(input, i64::from(count));
        let input = input.to_vec();
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let x = ops::cast(cx, x, DataType::INT64, ops::CastOptions::default())?;
            encoding.encode(cx, &x, &input, count)
        })
    }

    // Numbers of categories would be rounded.
    fn casts(&self) -> bool {
        false
    }
}
