//! Recurrent layers and attention.

use tfp_core::Result;

use super::{Built, Forward, Layer, check_sizes, wrong_input};
use crate::context::value::AnyValue;
use crate::nn::functional::{self as f, Gru, Lstm, MultiHead, RnnOptions, SimpleRnn};
use crate::nn::{Activation, Initializer, Weights};
use crate::ops;
use crate::variable::Variable;

/// Which recurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RnnKind {
    /// A dense layer of input and state.
    Simple,
    /// Long short-term memory.
    Lstm,
    /// A gated recurrent unit, with the reset after the product as Keras' default is.
    Gru,
}

/// A recurrent layer over (steps, inputs) with Keras' activations and initial values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recurrent {
    /// Which recurrence.
    pub kind: RnnKind,
    /// The width of state and output.
    pub units: i64,
    /// What is returned, and where it begins.
    pub options: RnnOptions,
}

impl Recurrent {
    /// A layer that returns its last output.
    #[must_use]
    pub fn new(kind: RnnKind, units: i64) -> Self {
        Self {
            kind,
            units,
            options: RnnOptions::default(),
        }
    }

    /// Returns the outputs of all steps.
    #[must_use]
    pub fn sequences(mut self) -> Self {
        self.options.return_sequences = true;
        self
    }
}

impl Layer for Recurrent {
    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let &[steps, inputs] = input else {
            return Err(wrong_input("Recurrent", "(steps, inputs)", input));
        };
        check_sizes("Recurrent", "units", &[self.units])?;
        let (name, gates) = match self.kind {
            RnnKind::Simple => ("simple_rnn", 1),
            RnnKind::Lstm => ("lstm", 4),
            RnnKind::Gru => ("gru", 3),
        };
        let Self {
            kind,
            units,
            options,
        } = *self;
        let weights = weights.layer(name);
        let width = gates * units;
        let kernel = weights.trainable("kernel", &[inputs, width], Initializer::GLOROT_UNIFORM)?;
        let orthogonal = Initializer::Orthogonal(1.0);
        let recurrent = weights.trainable("recurrent_kernel", &[units, width], orthogonal)?;
        let bias = match kind {
            RnnKind::Gru => weights.trainable("bias", &[2, width], Initializer::Zeros)?,
            RnnKind::Simple => weights.trainable("bias", &[width], Initializer::Zeros)?,
            RnnKind::Lstm => weights.trainable("bias", &[width], Initializer::LstmBias)?,
        };
        let output = if options.return_sequences {
            vec![steps, units]
        } else {
            vec![units]
        };
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let (kernel, recurrent) = (kernel.read(cx)?, recurrent.read(cx)?);
            let bias = bias.read(cx)?;
            let (activation, gate) = (Activation::Tanh, Activation::Sigmoid);
            let mask = pass.mask();
            if options.return_sequences {
                pass.pass_mask(mask.clone());
            }
            let (output, _) = match kind {
                RnnKind::Simple => {
                    let cell = SimpleRnn {
                        kernel,
                        recurrent,
                        bias: Some(bias),
                        activation,
                    };
                    f::run(cx, &cell, x, mask.as_ref(), None, options)?
                }
                RnnKind::Lstm => {
                    let cell = Lstm {
                        kernel,
                        recurrent,
                        bias: Some(bias),
                        activation,
                        gate,
                    };
                    f::run(cx, &cell, x, mask.as_ref(), None, options)?
                }
                RnnKind::Gru => {
                    let rows = ops::unpack(cx, bias, 2, ops::UnpackOptions::default())?;
                    let mut rows = rows.into_iter();
                    let cell = Gru {
                        kernel,
                        recurrent,
                        bias: rows.next(),
                        recurrent_bias: rows.next(),
                        activation,
                        gate,
                        reset_after: true,
                    };
                    f::run(cx, &cell, x, mask.as_ref(), None, options)?
                }
            };
            Ok(output)
        })
    }
}

/// How the outputs of two directions become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Merge {
    /// Side by side.
    #[default]
    Concat,
    /// Their sum.
    Sum,
    /// Their product.
    Mul,
    /// Their mean.
    Average,
}

/// A recurrent layer in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bidirectional {
    /// The layer; the other direction has weights of its own.
    pub layer: Recurrent,
    /// How both become one.
    pub merge: Merge,
}

impl Layer for Bidirectional {
    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let weights = weights.layer("bidirectional");
        let build = |name: &str, backwards: bool| -> Result<Built> {
            let mut layer = self.layer;
            layer.options.go_backwards ^= backwards;
            layer.options.zero_masked |= layer.options.return_sequences;
            layer.build(&weights.layer(name), input)
        };
        let (ahead, back) = (build("forward", false)?, build("backward", true)?);
        let (ahead, back): (Forward, Forward) = (ahead.forward, back.forward);
        let (merge, sequences) = (self.merge, self.layer.options.return_sequences);
        let width = match merge {
            Merge::Concat => 2 * self.layer.units,
            Merge::Sum | Merge::Mul | Merge::Average => self.layer.units,
        };
        let mut output = vec![width];
        if sequences {
            output.insert(0, input.first().copied().unwrap_or(-1));
        }
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let (ahead, mut back) = (ahead(pass, x)?, back(pass, x)?);
            if sequences {
                back = ops::reverse_v2(cx, back, [1])?;
            }
            match merge {
                Merge::Concat => ops::concat_v2(cx, [ahead, back], -1),
                Merge::Sum => ops::add_v2(cx, ahead, back),
                Merge::Mul => ops::mul(cx, ahead, back),
                Merge::Average => ops::mul(cx, ops::add_v2(cx, ahead, back)?, 0.5),
            }
        })
    }
}

/// Multi-head attention of a sequence to itself, (steps, inputs) to (steps, inputs).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiHeadAttention {
    /// How many heads.
    pub heads: i64,
    /// The width of a head.
    pub width: i64,
    /// Whether a step sees only those up to itself.
    pub causal: bool,
}

impl Layer for MultiHeadAttention {
    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let &[steps, inputs] = input else {
            return Err(wrong_input("MultiHeadAttention", "(steps, inputs)", input));
        };
        let Self {
            heads,
            width,
            causal,
        } = *self;
        check_sizes("MultiHeadAttention", "heads and width", &[heads, width])?;
        if causal && steps < 0 {
            let expected = "a known number of steps to be causal";
            return Err(wrong_input("MultiHeadAttention", expected, input));
        }
        let weights = weights.layer("multi_head_attention");
        let pair = |name: &str, kernel: [i64; 3], bias: &[i64]| -> Result<(Variable, Variable)> {
            let weights = weights.layer(name);
            let kernel = weights.trainable("kernel", &kernel, Initializer::GLOROT_UNIFORM)?;
            let bias = weights.trainable("bias", bias, Initializer::Zeros)?;
            Ok((kernel, bias))
        };
        let query = pair("query", [inputs, heads, width], &[heads, width])?;
        let key = pair("key", [inputs, heads, width], &[heads, width])?;
        let value = pair("value", [inputs, heads, width], &[heads, width])?;
        let output = pair("attention_output", [heads, width, inputs], &[inputs])?;
        Built::new(input.to_vec(), move |pass, x| {
            let cx = pass.context();
            let read =
                |(kernel, bias): &(Variable, Variable)| -> Result<(AnyValue, Option<AnyValue>)> {
                    Ok((kernel.read(cx)?, Some(bias.read(cx)?)))
                };
            let weights = MultiHead {
                query: read(&query)?,
                key: read(&key)?,
                value: read(&value)?,
                output: read(&output)?,
            };
            let past = if causal {
                let numbers = ops::range(cx, 0_i64, steps, 1_i64)?;
                let rows = ops::expand_dims(cx, &numbers, 1)?;
                Some(ops::greater_equal(cx, rows, numbers)?)
            } else {
                None
            };
            let given = pass.mask();
            pass.pass_mask(given.clone());
            // (batch, 1, steps, steps): what is masked neither sees nor is seen.
            let both = given
                .map(|mask| {
                    let rows = ops::expand_dims(cx, &mask, -1)?;
                    let columns = ops::expand_dims(cx, mask, 1)?;
                    ops::expand_dims(cx, ops::logical_and(cx, rows, columns)?, 1)
                })
                .transpose()?;
            let mask = match (past, both) {
                (Some(past), Some(both)) => Some(ops::logical_and(cx, past, both)?),
                (past, both) => past.or(both),
            };
            weights.attend(cx, x, x, mask.as_ref())
        })
    }
}
