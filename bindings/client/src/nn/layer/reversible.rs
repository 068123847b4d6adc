//! An embedding that also goes back: from vectors to a number for each row.

use tfp_core::{DataType, Error, Result};

use super::core::Embedding;
use super::described::{Arguments, KerasLayer};
use super::shared::SharedLayer;
use super::{Built, Layer, wrong_input};
use crate::context::value::AnyValue;
use crate::nn::{Weights, functional as f};
use crate::ops;
use crate::variable::Variable;

/// An [`Embedding`] whose table also makes logits of vectors: `x * transpose(table)`.
///
/// [`Self::reversed`] is the layer of the way back. Both ways may be called any number of times, and have
/// the same variables.
pub struct ReversibleEmbedding {
    tables: SharedLayer<Tables>,
}

/// The table, and what the way back does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tables {
    pub(crate) embedding: Embedding,
    pub(crate) is_tied: bool,
    pub(crate) cap: Option<f32>,
    pub(crate) dtype: Option<DataType>,
}

/// The way back of a [`ReversibleEmbedding`]: float32 (.., width) to float32 logits (.., rows).
pub struct Reversed<'e> {
    embedding: &'e ReversibleEmbedding,
}

impl ReversibleEmbedding {
    /// A layer whose ways have the same table.
    #[must_use]
    pub fn new(embedding: Embedding) -> Self {
        Self::of(Tables {
            embedding,
            is_tied: true,
            cap: None,
            dtype: None,
        })
    }

    fn of(tables: Tables) -> Self {
        Self {
            tables: SharedLayer::new(tables),
        }
    }

    /// Gives the way back a table of its own (width, rows).
    #[must_use]
    pub fn untied(self) -> Self {
        Self::of(Tables {
            is_tied: false,
            ..*self.tables.layer()
        })
    }

    /// Keeps logits between `-cap` and `cap`: `cap * tanh(logits / cap)`.
    #[must_use]
    pub fn cap(self, cap: f32) -> Self {
        Self::of(Tables {
            cap: Some(cap),
            ..*self.tables.layer()
        })
    }

    /// Makes the way back compute with another type of real numbers. Its results are float32 again.
    #[must_use]
    pub fn reverse_dtype(self, dtype: DataType) -> Self {
        Self::of(Tables {
            dtype: Some(dtype),
            ..*self.tables.layer()
        })
    }

    /// Returns the way back.
    #[must_use]
    pub fn reversed(&self) -> Reversed<'_> {
        Reversed { embedding: self }
    }
}

impl Layer for ReversibleEmbedding {
    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        self.tables.keras(inputs)
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        self.tables.build(weights, input)
    }

    fn kind(&self) -> String {
        "ReversibleEmbedding".to_owned()
    }

    // Numbers of categories would be rounded.
    fn casts(&self) -> bool {
        false
    }
}

impl Layer for Reversed<'_> {
    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        let layer = self.embedding.tables.keras(inputs)?;
        Ok(layer.call(Arguments::Reversed))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let tables = &self.embedding.tables;
        let back = Back(*tables.layer());
        tables.share(weights, |weights| back.build(weights, input))
    }

    fn kind(&self) -> String {
        self.embedding.kind()
    }
}

impl Tables {
    /// Makes the table, and that of the way back if it has its own.
    fn variables(&self, weights: &Weights) -> Result<(Variable, Option<Variable>)> {
        let weights = weights.layer("reversible_embedding");
        let table = self.embedding.table_in(&weights)?;
        if self.is_tied {
            return Ok((table, None));
        }
        let Embedding {
            rows,
            width,
            table: first,
            ..
        } = self.embedding;
        let own = weights.trainable("reverse_embeddings", &[width, rows], first)?;
        Ok((table, Some(own)))
    }
}

impl Layer for Tables {
    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        let mut layer = self.embedding.keras(inputs)?;
        "ReversibleEmbedding".clone_into(&mut layer.class);
        layer = layer.set("tie_weights", self.is_tied);
        if let Some(cap) = self.cap {
            layer = layer.set("logit_soft_cap", cap);
        }
        if let Some(dtype) = self.dtype {
            layer = layer.set("reverse_dtype", dtype.to_string());
        }
        Ok(layer)
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let (table, _) = self.variables(weights)?;
        self.embedding.rows_of(table, input)
    }

    fn kind(&self) -> String {
        "ReversibleEmbedding".to_owned()
    }

    // Numbers of categories would be rounded.
    fn casts(&self) -> bool {
        false
    }
}

/// The way back. It makes the variables of the other way, in the same order.
pub(crate) struct Back(pub(crate) Tables);

impl Layer for Back {
    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Tables {
            embedding: Embedding { rows, width, .. },
            cap,
            dtype,
            ..
        } = self.0;
        let Some((_, before)) = input.split_last().filter(|(last, _)| **last == width) else {
            let expected = format!("vectors of {width}");
            return Err(wrong_input("ReversibleEmbedding", &expected, input));
        };
        if let Some(dtype) = dtype.filter(|dtype| !dtype.is_float()) {
            return Err(Error::argument(format!(
                "ReversibleEmbedding: logits of type {dtype}, expected real numbers"
            )));
        }
        let output = [before, &[rows]].concat();
        let (table, own) = self.0.variables(weights)?;
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let cast = |value: &AnyValue, to| ops::cast(cx, value, to, Default::default());
            let mut kernel = match &own {
                Some(own) => own.read(cx)?,
                None => ops::transpose(cx, table.read(cx)?, [1, 0])?,
            };
            let mut x = x.clone();
            if let Some(dtype) = dtype {
                (x, kernel) = (cast(&x, dtype)?, cast(&kernel, dtype)?);
            }
            let mut logits = f::dense(cx, &x, &kernel, None)?;
            if let Some(cap) = cap {
                let cap = ops::cast(cx, cap, logits.dtype(), Default::default())?;
                let small = ops::tanh(cx, ops::div(cx, logits, &cap)?)?;
                logits = ops::mul(cx, small, cap)?;
            }
            match dtype {
                Some(_) => cast(&logits, DataType::FLOAT),
                None => Ok(logits),
            }
        })
    }
}
