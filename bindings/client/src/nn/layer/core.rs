//! Dense, embedding, activations, dropout and shapes.

use tfp_core::{DataType, Error, Result};

use super::described::{KerasLayer, function, initializer};
use super::{Built, Layer, channels, check_sizes, elements, wrong_input};
use crate::formats::json::Json;
use crate::nn::{Activation, Initializer, Weights, functional as f};
use crate::ops;
use crate::variable::Variable;

/// `activation(x * kernel + bias)` over the last dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dense {
    /// The width of the output.
    pub units: i64,
    /// The function of the output.
    pub activation: Activation,
    /// Whether something is added.
    pub use_bias: bool,
    /// What the kernel is at first.
    pub kernel: Initializer,
    /// What the bias is at first.
    pub bias: Initializer,
}

impl Dense {
    /// A layer of a width, with Keras' defaults.
    #[must_use]
    pub fn new(units: i64) -> Self {
        Self {
            units,
            activation: Activation::Linear,
            use_bias: true,
            kernel: Initializer::GLOROT_UNIFORM,
            bias: Initializer::Zeros,
        }
    }

    /// Sets the function of the output.
    #[must_use]
    pub fn activation(self, activation: Activation) -> Self {
        Self { activation, ..self }
    }
}

impl Layer for Dense {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        KerasLayer::new("Dense")
            .set("units", self.units)
            .set("kernel_initializer", initializer(self.kernel))
            .set("bias_initializer", initializer(self.bias))
            .dense(self.activation, self.use_bias)
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let inputs = channels("Dense", input)?;
        check_sizes("Dense", "units", &[self.units])?;
        let weights = weights.layer("dense");
        let kernel = weights.trainable("kernel", &[inputs, self.units], self.kernel)?;
        let bias = self
            .use_bias
            .then(|| weights.trainable("bias", &[self.units], self.bias))
            .transpose()?;
        let activation = self.activation;
        let mut output = input.to_vec();
        if let Some(last) = output.last_mut() {
            *last = self.units;
        }
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let kernel = kernel.read(cx)?;
            let bias = bias.as_ref().map(|bias| bias.read(cx)).transpose()?;
            let y = f::dense(cx, x, &kernel, bias.as_ref())?;
            pass.pass_mask(pass.mask());
            activation.apply(cx, &y)
        })
    }
}

impl Layer for Activation {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(match *self {
            Self::LeakyRelu(slope) => KerasLayer::new("LeakyReLU").set("negative_slope", slope),
            Self::Elu(alpha) => KerasLayer::new("ELU").set("alpha", alpha),
            other => KerasLayer::new("Activation").set("activation", function(other)?),
        })
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        let activation = *self;
        Built::new(input.to_vec(), move |pass, x| {
            pass.pass_mask(pass.mask());
            activation.apply(pass.context(), x)
        })
    }
}

/// Rows of a table for numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Embedding {
    /// How many numbers there are.
    pub rows: i64,
    /// The width of a row.
    pub width: i64,
    /// What the table is at first.
    pub table: Initializer,
    /// Whether zero stands for a step that later layers skip.
    pub mask_zero: bool,
}

impl Embedding {
    /// A table with Keras' defaults.
    #[must_use]
    pub fn new(rows: i64, width: i64) -> Self {
        Self {
            rows,
            width,
            table: Initializer::UNIFORM,
            mask_zero: false,
        }
    }

    /// Makes zero stand for a step that later layers skip: recurrent ones, attention and means over
    /// steps, and the loss where a result per step is left.
    #[must_use]
    pub fn mask_zero(self) -> Self {
        Self {
            mask_zero: true,
            ..self
        }
    }
}

impl Layer for Embedding {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("Embedding")
            .set("input_dim", self.rows)
            .set("output_dim", self.width)
            .set("embeddings_initializer", initializer(self.table))
            .set("mask_zero", self.mask_zero))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let table = self.table_in(&weights.layer("embedding"))?;
        self.rows_of(table, input)
    }

    // Numbers of categories would be rounded.
    fn casts(&self) -> bool {
        false
    }
}

impl Embedding {
    /// Makes the table.
    pub(super) fn table_in(&self, weights: &Weights) -> Result<Variable> {
        if self.rows < 1 {
            return Err(Error::argument(format!(
                "Embedding: {} rows; expected 1 or more",
                self.rows
            )));
        }
        check_sizes("Embedding", "width", &[self.width])?;
        weights.trainable("embeddings", &[self.rows, self.width], self.table)
    }

    /// The rows of a table for numbers of a shape.
    pub(super) fn rows_of(&self, table: Variable, input: &[i64]) -> Result<Built> {
        let mut output = input.to_vec();
        output.push(self.width);
        let mask_zero = self.mask_zero;
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let indices = match x.dtype() {
                DataType::INT32 | DataType::INT64 => x.clone(),
                _ => ops::cast(cx, x, DataType::INT32, ops::CastOptions::default())?,
            };
            if mask_zero {
                let zero = ops::zeros_like(cx, &indices)?;
                let mask = ops::not_equal(cx, &indices, zero, ops::NotEqualOptions::default())?;
                pass.pass_mask(Some(mask));
            }
            f::embedding(cx, &indices, &table.read(cx)?)
        })
    }
}

/// Drops a share of the elements while training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    /// The share, from 0 up to below 1.
    pub rate: f32,
}

impl Layer for Dropout {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("Dropout").set("rate", self.rate))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let rate = self.rate;
        if !(0.0..1.0).contains(&rate) {
            return Err(Error::argument(format!(
                "Dropout: the rate is {rate}, expected 0 or more and below 1"
            )));
        }
        let seed = weights.next_seed();
        Built::new(input.to_vec(), move |pass, x| {
            pass.pass_mask(pass.mask());
            if !pass.is_training() || rate == 0.0 {
                return Ok(x.clone());
            }
            let cx = pass.context();
            f::dropout(cx, x, rate, &pass.seed(seed)?)
        })
    }
}

/// One dimension per sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flatten;

impl Layer for Flatten {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("Flatten"))
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        let size = elements(input).ok_or_else(|| wrong_input("Flatten", "known sizes", input))?;
        Built::new(vec![size], move |pass, x| {
            ops::reshape(pass.context(), x, [-1, size])
        })
    }
}

/// Other dimensions for the same elements of a sample. One of them may be -1: as large as it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reshape {
    /// The dimensions, without the batch.
    pub shape: Vec<i64>,
}

impl Layer for Reshape {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("Reshape").set("target_shape", &*self.shape))
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        let wrong = || {
            let expected = format!("as many known elements as the shape {:?}", self.shape);
            wrong_input("Reshape", &expected, input)
        };
        let before = elements(input).ok_or_else(wrong)?;
        let mut output = self.shape.clone();
        let open = output.iter().filter(|&&size| size == -1).count();
        if let (1, Some(at)) = (open, output.iter().position(|&size| size == -1)) {
            output[at] = 1;
            let rest = elements(&output)
                .filter(|&rest| rest > 0)
                .ok_or_else(wrong)?;
            output[at] = before / rest;
        }
        if elements(&output) != Some(before) {
            return Err(wrong());
        }
        let mut shape = vec![-1];
        shape.extend(&output);
        Built::new(output, move |pass, x| {
            ops::reshape(pass.context(), x, &shape)
        })
    }
}

/// A dense layer over any dimensions, as Einstein's summation says: `ab,bc->ac`, where the first letter
/// is the batch.
#[derive(Clone, Debug, PartialEq)]
pub struct EinsumDense {
    /// The letters of input, kernel and output. `...` stands for dimensions that stay.
    pub equation: String,
    /// The sizes of the output without the batch; -1 where the input says them.
    pub output: Vec<i64>,
    /// The letters of the output that the bias has, or none.
    pub bias_axes: Option<String>,
    /// The function of the output.
    pub activation: Activation,
}

impl EinsumDense {
    /// The letters of input, kernel and output, each with as many as there are dimensions.
    fn letters(&self, rank: usize) -> Option<[String; 3]> {
        let (sides, output) = self.equation.split_once("->")?;
        let (input, kernel) = sides.split_once(',')?;
        let mut letters = [input, kernel, output].map(|side| side.trim().to_owned());
        if letters.iter().any(|side| side.contains("...")) {
            let named = letters[0].replace("...", "").chars().count();
            let unused = ('A'..='Z').filter(|letter| !self.equation.contains(*letter));
            let more: String = unused.take((rank + 1).checked_sub(named)?).collect();
            for side in [0, 2] {
                letters[side] = letters[side].replace("...", &more);
            }
        }
        let valid = letters.iter().flat_map(|side| side.chars());
        (letters[0].chars().count() == rank + 1
            && valid.clone().all(|one| one.is_ascii_alphabetic()))
        .then_some(letters)
    }
}

impl Layer for EinsumDense {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let output = self.output.iter().map(|&size| match size {
            -1 => Json::Null,
            size => size.into(),
        });
        Ok(KerasLayer::new("EinsumDense")
            .set("equation", &*self.equation)
            .set("output_shape", Json::List(output.collect()))
            .set("activation", function(self.activation)?)
            .set("bias_axes", self.bias_axes.as_deref()))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let wrong = || {
            let expected = format!(
                "what '{}' gives the shape {:?} of",
                self.equation, self.output
            );
            wrong_input("EinsumDense", &expected, input)
        };
        let [from, kernel, to] = self.letters(input.len()).ok_or_else(wrong)?;
        // The sizes of the output that are given are those of its last letters.
        let known = |letter: char| -> Option<i64> {
            let at = |letters: &str| letters.chars().position(|one| one == letter);
            let of_input = at(&from).and_then(|at| input.get(at.checked_sub(1)?).copied());
            let first = to.len().checked_sub(self.output.len())?;
            let of_output = at(&to).and_then(|at| self.output.get(at.checked_sub(first)?).copied());
            of_input.or(of_output).filter(|&size| size > 0)
        };
        let sizes = |letters: &str| -> Option<Vec<i64>> { letters.chars().map(known).collect() };
        let shape = sizes(&kernel).ok_or_else(wrong)?;
        let output: Vec<i64> = to
            .chars()
            .skip(1)
            .map(|letter| known(letter).unwrap_or(-1))
            .collect();
        let weights = weights.layer("einsum_dense");
        let kernel_value = weights.trainable("kernel", &shape, Initializer::GLOROT_UNIFORM)?;
        let bias = match &self.bias_axes {
            None => None,
            Some(axes) => {
                // One where an axis that the bias does not have follows one that it has.
                let first = to.chars().position(|letter| axes.contains(letter));
                let spread = to.chars().skip(first.ok_or_else(wrong)?);
                let spread: Option<Vec<i64>> = spread
                    .map(|letter| match axes.contains(letter) {
                        true => known(letter),
                        false => Some(1),
                    })
                    .collect();
                let spread = spread.ok_or_else(wrong)?;
                Some(weights.trainable("bias", &spread, Initializer::Zeros)?)
            }
        };
        let equation = format!("{from},{kernel}->{to}");
        let activation = self.activation;
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let kernel = kernel_value.read(cx)?;
            let mut y = ops::einsum(cx, [x, &kernel], equation.as_bytes())?;
            if let Some(bias) = &bias {
                y = ops::add_v2(cx, y, bias.read(cx)?)?;
            }
            activation.apply(cx, &y)
        })
    }
}
