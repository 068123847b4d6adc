//! Numbers of a vocabulary to their places in it, and back.

use tfp_core::{DataType, Error, Result};

use super::categorical::Encoding;
use super::described::KerasLayer;
use super::hashed::{bin, integers};
use super::{Built, LARGEST, Layer};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::Weights;
use crate::ops;

/// How an [`IntegerLookup`] with several places for unknown numbers chooses among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownPlace {
    /// By the remainder of the number.
    #[default]
    Remainder,
    /// By its hash: a strong one (SipHash64) if there is a key, else FarmHash64.
    Hash(Option<[i64; 2]>),
}

/// Numbers to their places in a vocabulary: int64, or encoded as float32.
///
/// Place 0 is that of the mask, if there is one and places are not encoded. Then follow the places of
/// unknown numbers, then those of the vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntegerLookup {
    /// The known numbers, each once.
    pub vocabulary: Vec<i64>,
    /// How many places unknown numbers have. Without one, an unknown number is an error of the step.
    pub unknown: i64,
    /// Which of them an unknown number has.
    pub place: UnknownPlace,
    /// A number that stands for nothing: it has place 0, and a vector of zeros.
    pub mask: Option<i64>,
    /// What the places become.
    pub encoding: Encoding,
    /// How wide the vectors are, if it is more than there are places.
    pub width: Option<i64>,
    /// The number of an unknown place, for a layer that gives numbers for places; none for one that gives
    /// places for numbers.
    pub inverse: Option<i64>,
}

impl IntegerLookup {
    /// A layer that gives the places of numbers, where all unknown ones have place 0.
    #[must_use]
    pub fn new(vocabulary: &[i64]) -> Self {
        Self {
            vocabulary: vocabulary.to_vec(),
            unknown: 1,
            place: UnknownPlace::Remainder,
            mask: None,
            encoding: Encoding::Integer,
            width: None,
            inverse: None,
        }
    }

    /// The first place of unknown numbers.
    fn first_unknown(&self) -> i64 {
        i64::from(self.mask.is_some() && self.encoding == Encoding::Integer)
    }

    /// The numbers in ascending order, and the place of each.
    fn sorted(&self) -> (Vec<i64>, Vec<i64>) {
        let first = self.first_unknown() + self.unknown;
        let mut pairs: Vec<(i64, i64)> = self.vocabulary.iter().copied().zip(first..).collect();
        pairs.sort_unstable();
        pairs.into_iter().unzip()
    }

    fn check(&self) -> Result<()> {
        let wrong = |what: String| Err(Error::argument(format!("IntegerLookup: {what}")));
        if !(0..=LARGEST).contains(&self.unknown) {
            return wrong(format!("{} places of unknown numbers", self.unknown));
        }
        let (sorted, _) = self.sorted();
        if sorted.is_empty() {
            return wrong("the vocabulary is empty".to_owned());
        }
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return wrong(format!("{} is twice in the vocabulary", pair[0]));
        }
        if let Some(mask) = self.mask.filter(|mask| sorted.binary_search(mask).is_ok()) {
            return wrong(format!("the mask {mask} is in the vocabulary"));
        }
        if self.inverse.is_some() && self.encoding != Encoding::Integer {
            return wrong("numbers of places can't be encoded".to_owned());
        }
        let least = self.count();
        match self.width {
            Some(width) if !(least..=LARGEST).contains(&width) => {
                wrong(format!("a width of {width}, expected {least} to {LARGEST}"))
            }
            _ => Ok(()),
        }
    }

    /// How many places there are.
    fn count(&self) -> i64 {
        self.first_unknown() + self.unknown + self.vocabulary.len() as i64
    }

    /// How wide vectors are.
    fn depth(&self) -> i64 {
        self.width.unwrap_or(self.count())
    }

    /// The places of int64 numbers.
    fn places(&self, cx: &AnyContext, x: &AnyValue) -> Result<AnyValue> {
        let (numbers, places) = self.sorted();
        let last = numbers.len() as i64 - 1;
        let row = ops::expand_dims(cx, numbers.as_slice(), 0)?;
        let flat = ops::reshape(cx, x, [1_i64, -1].as_slice())?;
        let out_type = Some(DataType::INT64);
        let at = ops::lower_bound(cx, row, flat, ops::LowerBoundOptions { out_type })?;
        let shape = ops::shape(cx, x, ops::ShapeOptions::default())?;
        let at = ops::minimum(cx, ops::reshape(cx, at, shape)?, last)?;
        let options = ops::GatherV2Options::default;
        let near = ops::gather_v2(cx, numbers.as_slice(), &at, 0, options())?;
        let found = ops::equal(cx, near, x, ops::EqualOptions::default())?;
        let place = ops::gather_v2(cx, places.as_slice(), at, 0, options())?;
        let first = self.first_unknown();
        let unknown = match (self.unknown, self.place) {
            (0, _) => {
                let nothing = ops::sub(cx, ops::zeros_like(cx, x)?, 1_i64)?;
                let place = ops::select_v2(cx, found, place, nothing)?;
                let place = self.masked(cx, x, place, 0)?;
                // A place of -1 is an error of TensorFlow here.
                let all: Vec<i64> = (0..self.count()).collect();
                let place = ops::gather_v2(cx, all.as_slice(), place, 0, options())?;
                return self.masked(cx, x, place, self.masked_place());
            }
            (1, _) => ops::add_v2(cx, ops::zeros_like(cx, x)?, first)?,
            (count, UnknownPlace::Remainder) => {
                ops::add_v2(cx, ops::floor_mod(cx, x, count)?, first)?
            }
            (count, UnknownPlace::Hash(salt)) => ops::add_v2(cx, bin(cx, x, count, salt)?, first)?,
        };
        let place = ops::select_v2(cx, found, place, unknown)?;
        self.masked(cx, x, place, self.masked_place())
    }

    /// The place of the mask, which no vector has where places are encoded.
    fn masked_place(&self) -> i64 {
        match self.encoding {
            Encoding::Integer => 0,
            _ => -1,
        }
    }

    /// Puts a place where the mask is.
    fn masked(&self, cx: &AnyContext, x: &AnyValue, place: AnyValue, at: i64) -> Result<AnyValue> {
        let Some(mask) = self.mask else {
            return Ok(place);
        };
        let masked = ops::equal(cx, x, mask, ops::EqualOptions::default())?;
        ops::select_v2(cx, masked, at, place)
    }

    /// The numbers of int64 places.
    fn numbers(&self, cx: &AnyContext, x: &AnyValue, unknown: i64) -> Result<AnyValue> {
        let first = self.first_unknown() + self.unknown;
        let count = self.vocabulary.len() as i64;
        let at = ops::sub(cx, x, first)?;
        let near = ops::maximum(cx, ops::minimum(cx, &at, count - 1)?, 0_i64)?;
        let options = ops::GatherV2Options::default();
        let number = ops::gather_v2(cx, self.vocabulary.as_slice(), &near, 0, options)?;
        let known = ops::equal(cx, at, near, ops::EqualOptions::default())?;
        let number = ops::select_v2(cx, known, number, unknown)?;
        let Some(mask) = self.mask else {
            return Ok(number);
        };
        let masked = ops::equal(cx, x, 0_i64, ops::EqualOptions::default())?;
        ops::select_v2(cx, masked, mask, number)
    }
}

impl Layer for IntegerLookup {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let mut layer = KerasLayer::new("IntegerLookup")
            .set("vocabulary", self.vocabulary.as_slice())
            .set("num_oov_indices", self.unknown)
            .set("oov_token", self.inverse.unwrap_or(-1))
            .set("invert", self.inverse.is_some())
            .set("output_mode", self.encoding.name());
        if let Some(mask) = self.mask {
            layer = layer.set("mask_token", mask);
        }
        if let Some(width) = self.width {
            layer = layer
                .set("max_tokens", width)
                .set("pad_to_max_tokens", true);
        }
        if let UnknownPlace::Hash(salt) = self.place {
            layer = layer.set("oov_method", "farmhash");
            if let Some(salt) = salt {
                layer = layer.set("salt", salt.as_slice());
            }
        }
        Ok(layer)
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        self.check()?;
        let layer = self.clone();
        let depth = self.depth();
        let vectors = i32::try_from(depth)
            .map_err(|_| Error::argument(format!("IntegerLookup: vectors of {depth} places")))?;
        let output = self.encoding.output(input, depth);
        let input = input.to_vec();
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let x = &integers(cx, x)?;
            match layer.inverse {
                Some(unknown) => layer.numbers(cx, x, unknown),
                None => layer
                    .encoding
                    .encode(cx, &layer.places(cx, x)?, &input, vectors),
            }
        })
    }

    // Numbers of categories would be rounded.
    fn casts(&self) -> bool {
        false
    }
}
