//! Categories without a list of them: numbers or strings to bins, by their hash.

use tfp_core::{DataType, Error, Result};

use super::categorical::Encoding;
use super::described::{Arguments, KerasLayer};
use super::{Built, BuiltMany, LARGEST, Layer};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::Weights;
use crate::ops;

/// What a crossing's hash begins with: the one of Keras.
const CROSSING_KEY: i64 = 0x00DE_CAFC_AFFE;

/// The hash of numbers or strings, from 0 to below a number of bins, int64.
///
/// Numbers are hashed as their decimal digits, and real ones without their fraction.
pub(super) fn bin(
    cx: &AnyContext,
    x: &AnyValue,
    bins: i64,
    salt: Option<[i64; 2]>,
) -> Result<AnyValue> {
    let text = if x.dtype() == DataType::STRING {
        x.clone()
    } else {
        let whole = integers(cx, x)?;
        ops::as_string(cx, whole, ops::AsStringOptions::default())?
    };
    match salt {
        Some(salt) => ops::string_to_hash_bucket_strong(cx, text, bins, &salt),
        None => ops::string_to_hash_bucket_fast(cx, text, bins),
    }
}

/// Numbers as int64, without their fraction.
pub(super) fn integers(cx: &AnyContext, x: &AnyValue) -> Result<AnyValue> {
    ops::cast(cx, x, DataType::INT64, ops::CastOptions::default())
}

/// The type that Keras notes for a layer that gives categories.
pub(super) fn dtype(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Integer => "int64",
        _ => "float32",
    }
}

fn check_bins(layer: &str, bins: i64) -> Result<i32> {
    let fits = i32::try_from(bins).ok().filter(|&bins| bins > 0);
    fits.ok_or_else(|| Error::argument(format!("{layer}: {bins} bins; expected 1 to {LARGEST}")))
}

/// Numbers or strings to bins by their hash: int64, or encoded as float32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashing {
    /// How many bins there are.
    pub bins: i64,
    /// The number that is alone in bin 0, if there is one and more than one bin.
    pub mask: Option<i64>,
    /// The key of a strong hash (SipHash64); without one it is FarmHash64.
    pub salt: Option<[i64; 2]>,
    /// What the bins become.
    pub encoding: Encoding,
}

impl Hashing {
    /// A layer that gives the bins' numbers.
    #[must_use]
    pub fn new(bins: i64) -> Self {
        Self {
            bins,
            mask: None,
            salt: None,
            encoding: Encoding::Integer,
        }
    }

    fn bins_of(&self, cx: &AnyContext, x: &AnyValue) -> Result<AnyValue> {
        let Some(mask) = self.mask.filter(|_| self.bins > 1) else {
            return bin(cx, x, self.bins, self.salt);
        };
        if x.dtype() == DataType::STRING {
            return Err(Error::argument(
                "Hashing: strings can't be compared with the mask, which is a number",
            ));
        }
        let mask = ops::cast(cx, mask, x.dtype(), ops::CastOptions::default())?;
        let masked = ops::equal(cx, x, mask, ops::EqualOptions::default())?;
        let found = bin(cx, x, self.bins - 1, self.salt)?;
        let found = ops::add_v2(cx, found, 1_i64)?;
        ops::select_v2(cx, masked, 0_i64, found)
    }
}

impl Layer for Hashing {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let mut layer = KerasLayer::new("Hashing")
            .set("num_bins", self.bins)
            .set("output_mode", self.encoding.name())
            .set("dtype", dtype(self.encoding));
        if let Some(mask) = self.mask {
            layer = layer.set("mask_value", mask);
        }
        if let Some(salt) = self.salt {
            layer = layer.set("salt", salt.as_slice());
        }
        Ok(layer)
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        let bins = check_bins("Hashing", self.bins)?;
        let layer = *self;
        let output = self.encoding.output(input, self.bins);
        let input = input.to_vec();
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let found = layer.bins_of(cx, x)?;
            layer.encoding.encode(cx, &found, &input, bins)
        })
    }

    // Numbers of categories would be rounded.
    fn casts(&self) -> bool {
        false
    }
}

/// Several numbers or strings of a sample to a bin of their combination, by its hash: int64, or one-hot
/// float32. Each input is one value per sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashedCrossing {
    /// How many bins there are.
    pub bins: i64,
    /// What the bins become: [`Encoding::Integer`] or [`Encoding::OneHot`].
    pub encoding: Encoding,
}

impl Layer for HashedCrossing {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("HashedCrossing")
            .set("num_bins", self.bins)
            .set("output_mode", self.encoding.name())
            .set("dtype", dtype(self.encoding))
            .call(Arguments::List))
    }

    fn build(&self, _: &Weights, _: &[i64]) -> Result<Built> {
        Err(Error::argument(
            "HashedCrossing takes two or more inputs, found one",
        ))
    }

    fn build_many(&self, _: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        let Self { bins, encoding } = *self;
        let depth = check_bins("HashedCrossing", bins)?;
        if !matches!(encoding, Encoding::Integer | Encoding::OneHot) {
            return Err(Error::argument(format!(
                "HashedCrossing: bins as {}, expected their numbers or one-hot",
                encoding.name()
            )));
        }
        let (&[first, ..], true) = (inputs, inputs.len() > 1) else {
            return Err(Error::argument(format!(
                "HashedCrossing takes two or more inputs, found {}",
                inputs.len()
            )));
        };
        if !matches!(first, [] | [1]) || inputs.iter().any(|input| *input != first) {
            return Err(Error::argument(format!(
                "HashedCrossing takes inputs of one value per sample, found {inputs:?}"
            )));
        }
        let sample = first.to_vec();
        let output = encoding.output(first, bins);
        BuiltMany::new(vec![output], move |pass, inputs| {
            let cx = pass.context();
            let column = |x: &AnyValue| -> Result<AnyValue> {
                let x = match x.dtype() {
                    DataType::STRING => x.clone(),
                    _ => integers(cx, x)?,
                };
                ops::reshape(cx, x, [-1_i64, 1].as_slice())
            };
            let columns = inputs.iter().map(column).collect::<Result<Vec<_>>>()?;
            let texts = columns.iter().all(|x| x.dtype() == DataType::STRING);
            let internal = if texts {
                DataType::STRING
            } else {
                DataType::INT64
            };
            let none: &[AnyValue] = &[];
            let crossed = ops::sparse_cross(
                cx,
                none,
                none,
                none,
                &columns,
                true,
                bins,
                CROSSING_KEY,
                DataType::INT64,
                internal,
            )?;
            // A row has one combination.
            let shape = [&[-1], &*sample].concat();
            let found = ops::reshape(cx, crossed.output_values, shape.as_slice())?;
            Ok(vec![encoding.encode(cx, &found, &sample, depth)?])
        })
    }

    // Numbers of categories would be rounded.
    fn casts(&self) -> bool {
        false
    }
}
