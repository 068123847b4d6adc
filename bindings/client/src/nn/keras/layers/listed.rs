//! Layers whose inputs are numbers of categories.

use tfp_core::{DataType, Error, Result};

use super::super::config::Config;
use super::super::described::Described;
use super::prepared::encoding;
use crate::nn::layer::{
    Back, Embedding, Encoding, HashedCrossing, Hashing, IntegerLookup, Tables, UnknownPlace,
};

/// Describes a layer of one of these classes.
pub fn describe(class: &str, config: Config<'_>) -> Option<Result<Described>> {
    Some(match class {
        "HashedCrossing" => crossing(config),
        "Hashing" => hashing(config),
        "IntegerLookup" => lookup(config),
        "ReversibleEmbedding" => reversible(config),
        _ => return None,
    })
}

pub fn embedding(config: Config<'_>) -> Result<Embedding> {
    let rows = config.integer("input_dim")?;
    Ok(Embedding {
        mask_zero: config.flag("mask_zero"),
        ..Embedding::new(rows, config.integer("output_dim")?)
    })
}

/// An integer, if there is one.
fn integer(config: Config<'_>, key: &str) -> Result<Option<i64>> {
    config.has(key).then(|| config.integer(key)).transpose()
}

/// The key of a strong hash, if there is one.
fn salt(config: Config<'_>) -> Result<Option<[i64; 2]>> {
    if !config.has("salt") {
        return Ok(None);
    }
    match config.sizes("salt", 2)?.as_slice() {
        &[first, second] => Ok(Some([first, second])),
        _ => Err(Error::argument("'salt' is not two integers")),
    }
}

fn hashing(config: Config<'_>) -> Result<Described> {
    Described::plain(Hashing {
        bins: config.integer("num_bins")?,
        mask: integer(config, "mask_value")?,
        salt: salt(config)?,
        encoding: encoding(config)?,
    })
}

fn crossing(config: Config<'_>) -> Result<Described> {
    Described::plain(HashedCrossing {
        bins: config.integer("num_bins")?,
        encoding: encoding(config)?,
    })
}

fn lookup(config: Config<'_>) -> Result<Described> {
    if !config.has("vocabulary") {
        return Err(Error::argument(
            "it has no vocabulary: it was not adapted, or its file is of the older format",
        ));
    }
    let unknown = config.integer("num_oov_indices")?;
    let mask = integer(config, "mask_token")?;
    let unknown_number = integer(config, "oov_token")?.unwrap_or(-1);
    let encoding = encoding(config)?;
    let mut vocabulary = config.integers("vocabulary")?;
    // It may begin with what stands for nothing and for unknown numbers.
    let mut special: Vec<i64> = mask
        .filter(|_| encoding == Encoding::Integer)
        .into_iter()
        .collect();
    special.extend(std::iter::repeat_n(
        unknown_number,
        usize::try_from(unknown)
            .unwrap_or_default()
            .min(vocabulary.len()),
    ));
    if vocabulary.starts_with(&special) {
        vocabulary.drain(..special.len());
    }
    let padded = config.flag("pad_to_max_tokens");
    Described::plain(IntegerLookup {
        vocabulary,
        unknown,
        place: match config.text("oov_method") {
            Ok("farmhash") => UnknownPlace::Hash(salt(config)?),
            _ => UnknownPlace::Remainder,
        },
        mask,
        encoding,
        width: integer(config, "max_tokens")?.filter(|_| padded),
        inverse: config.flag("invert").then_some(unknown_number),
    })
}

fn reversible(config: Config<'_>) -> Result<Described> {
    if config.has("quantization_config") {
        return Err(Config::unsupported("quantization"));
    }
    let dtype = match config.text("reverse_dtype") {
        Err(_) => None,
        Ok("float16") => Some(DataType::HALF),
        Ok("bfloat16") => Some(DataType::BFLOAT16),
        Ok("float32") => Some(DataType::FLOAT),
        Ok("float64") => Some(DataType::DOUBLE),
        Ok(other) => return Err(Config::unsupported(&format!("reverse_dtype '{other}'"))),
    };
    let tables = Tables {
        embedding: embedding(config)?,
        is_tied: config.flag("tie_weights"),
        cap: config
            .has("logit_soft_cap")
            .then(|| config.float("logit_soft_cap"))
            .transpose()?,
        dtype,
    };
    Ok(Described {
        reversed: Some(Box::new(Back(tables))),
        ..Described::own(tables, 1 + usize::from(!tables.is_tied))?
    })
}
