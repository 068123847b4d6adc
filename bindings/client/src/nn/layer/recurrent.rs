//! Recurrent layers.

use tfp_core::{Error, Result};

use super::block_lstm;
use super::described::{Arguments, KerasLayer, function};
use super::{Built, BuiltMany, Forward, Layer, Pass, check_sizes, steps, wrong_input};
use crate::context::value::AnyValue;
use crate::formats::json::Json;
use crate::nn::functional::{Gru, Lstm, RnnOptions, SimpleRnn};
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
    /// A gated recurrent unit.
    Gru,
}

impl RnnKind {
    fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple_rnn",
            Self::Lstm => "lstm",
            Self::Gru => "gru",
        }
    }

    /// Keras' class.
    fn class(self) -> &'static str {
        match self {
            Self::Simple => "SimpleRNN",
            Self::Lstm => "LSTM",
            Self::Gru => "GRU",
        }
    }

    /// What Keras' files call the place of a cell.
    fn cell_place(self) -> &'static str {
        match self {
            Self::Simple => "simple_rnn_cell",
            Self::Lstm => "lstm_cell",
            Self::Gru => "gru_cell",
        }
    }

    /// How many states there are.
    pub(crate) fn states(self) -> usize {
        match self {
            Self::Lstm => 2,
            Self::Simple | Self::Gru => 1,
        }
    }
}

/// A recurrent layer over (steps, inputs) with Keras' activations and initial values.
///
/// Called with more nodes than one, it begins with those as its states, (units) each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recurrent {
    /// Which recurrence.
    pub kind: RnnKind,
    /// The width of state and output.
    pub units: i64,
    /// What is returned, and where it begins.
    pub options: RnnOptions,
    /// The function of the output, or of the candidate.
    pub activation: Activation,
    /// The function of the gates.
    pub gate: Activation,
    /// Whether something is added.
    pub use_bias: bool,
    /// Whether the reset gate of [`RnnKind::Gru`] comes after the product.
    pub reset_after: bool,
    /// Whether the states are returned after the output.
    pub return_state: bool,
}

impl Recurrent {
    /// A layer that returns its last output.
    #[must_use]
    pub fn new(kind: RnnKind, units: i64) -> Self {
        Self {
            kind,
            units,
            options: RnnOptions::default(),
            activation: Activation::Tanh,
            gate: Activation::Sigmoid,
            use_bias: true,
            reset_after: true,
            return_state: false,
        }
    }

    /// Returns the outputs of all steps.
    #[must_use]
    pub fn sequences(mut self) -> Self {
        self.options.return_sequences = true;
        self
    }

    /// Returns the last states after the output.
    #[must_use]
    pub fn with_state(self) -> Self {
        Self {
            return_state: true,
            ..self
        }
    }

    fn variables(&self, weights: &Weights, inputs: i64) -> Result<Weighted> {
        let Self { units, .. } = *self;
        let gates = match self.kind {
            RnnKind::Simple => 1,
            RnnKind::Lstm => 4,
            RnnKind::Gru => 3,
        };
        let width = gates * units;
        let orthogonal = Initializer::Orthogonal(1.0);
        let kernel = weights.trainable("kernel", &[inputs, width], Initializer::GLOROT_UNIFORM)?;
        let recurrent = weights.trainable("recurrent_kernel", &[units, width], orthogonal)?;
        let bias = || match self.kind {
            RnnKind::Gru if self.reset_after => {
                weights.trainable("bias", &[2, width], Initializer::Zeros)
            }
            RnnKind::Gru | RnnKind::Simple => {
                weights.trainable("bias", &[width], Initializer::Zeros)
            }
            RnnKind::Lstm => weights.trainable("bias", &[width], Initializer::LstmBias),
        };
        Ok(Weighted {
            layer: *self,
            kernel,
            recurrent,
            bias: self.use_bias.then(bias).transpose()?,
        })
    }

    /// The shapes of output and states.
    fn outputs(&self, steps: i64) -> Vec<Vec<i64>> {
        let output = match self.options.return_sequences {
            true => vec![steps, self.units],
            false => vec![self.units],
        };
        let mut outputs = vec![output];
        if self.return_state {
            outputs.resize(1 + self.kind.states(), vec![self.units]);
        }
        outputs
    }
}

/// A recurrent layer with its variables.
struct Weighted {
    layer: Recurrent,
    kernel: Variable,
    recurrent: Variable,
    bias: Option<Variable>,
}

impl Weighted {
    /// The output and the last states.
    fn run(
        &self,
        pass: &Pass<'_>,
        x: &AnyValue,
        mask: Option<&AnyValue>,
        initial: Option<&[AnyValue]>,
    ) -> Result<(AnyValue, Vec<AnyValue>)> {
        let cx = pass.context();
        let Recurrent {
            kind,
            options,
            activation,
            gate,
            reset_after,
            ..
        } = self.layer;
        let (kernel, recurrent) = (self.kernel.read(cx)?, self.recurrent.read(cx)?);
        let bias = self.bias.as_ref().map(|bias| bias.read(cx)).transpose()?;
        match kind {
            RnnKind::Simple => {
                let cell = SimpleRnn {
                    kernel,
                    recurrent,
                    bias,
                    activation,
                };
                steps::run(cx, &cell, x, mask, initial, options)
            }
            RnnKind::Lstm => {
                let cell = Lstm {
                    kernel,
                    recurrent,
                    bias,
                    activation,
                    gate,
                };
                if block_lstm::computes(pass, [activation, gate], x, mask) {
                    return block_lstm::run(pass, &cell, x, initial, options);
                }
                steps::run(cx, &cell, x, mask, initial, options)
            }
            RnnKind::Gru => {
                let (bias, recurrent_bias) = match bias {
                    Some(rows) if reset_after => {
                        let rows = ops::unpack(cx, rows, 2, ops::UnpackOptions::default())?;
                        let mut rows = rows.into_iter();
                        (rows.next(), rows.next())
                    }
                    bias => (bias, None),
                };
                let cell = Gru {
                    kernel,
                    recurrent,
                    bias,
                    recurrent_bias,
                    activation,
                    gate,
                    reset_after,
                };
                steps::run(cx, &cell, x, mask, initial, options)
            }
        }
    }
}

/// The steps and the width of a sequence.
fn sequence(layer: &str, input: &[i64]) -> Result<(i64, i64)> {
    match *input {
        [steps, inputs] if inputs > 0 => Ok((steps, inputs)),
        _ => Err(wrong_input(layer, "(steps, inputs)", input)),
    }
}

impl Recurrent {
    /// What a layer and a cell of Keras have in common.
    fn of_keras(&self, class: &str) -> Result<KerasLayer> {
        let layer = KerasLayer::new(class)
            .set("units", self.units)
            .dense(self.activation, self.use_bias)?;
        let layer = match self.kind {
            RnnKind::Simple => layer,
            RnnKind::Lstm | RnnKind::Gru => layer.set("recurrent_activation", function(self.gate)?),
        };
        Ok(match self.kind {
            RnnKind::Gru => layer.set("reset_after", self.reset_after),
            RnnKind::Simple | RnnKind::Lstm => layer,
        })
    }
}

impl RnnOptions {
    fn of_keras(self, layer: KerasLayer) -> KerasLayer {
        layer
            .set("return_sequences", self.return_sequences)
            .set("go_backwards", self.go_backwards)
            .set("zero_output_for_mask", self.zero_masked)
    }
}

impl Layer for Recurrent {
    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        let layer = self.of_keras(self.kind.class())?;
        let call = match inputs.len() {
            1 => Arguments::Each,
            _ => Arguments::States,
        };
        Ok(self
            .options
            .of_keras(layer)
            .set("return_state", self.return_state)
            .within("cell/")
            .call(call))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        if self.return_state {
            return Err(Error::argument(
                "Recurrent returns its states, too: call it with nodes",
            ));
        }
        let BuiltMany { forward, outputs } = self.build_many(weights, &[input])?;
        let output = outputs.into_iter().next().unwrap_or_default();
        Built::new(output, move |pass, x| {
            let y = forward(pass, std::slice::from_ref(x))?.into_iter().next();
            y.ok_or_else(|| Error::argument("Recurrent: no output"))
        })
    }

    fn build_many(&self, weights: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        let [input, states @ ..] = inputs else {
            return Err(Error::argument("Recurrent without an input"));
        };
        let (steps, width) = sequence("Recurrent", input)?;
        check_sizes("Recurrent", "units", &[self.units])?;
        let wanted = self.kind.states();
        let fit = states.iter().all(|state| **state == [self.units]);
        if !fit || !(states.is_empty() || states.len() == wanted) {
            return Err(Error::argument(format!(
                "Recurrent begins with {wanted} states of shape [{}] per sample, found {states:?}",
                self.units
            )));
        }
        let weights = weights.layer(self.kind.name());
        let weighted = self.variables(&weights, width)?;
        let layer = *self;
        BuiltMany::new(self.outputs(steps), move |pass, inputs| {
            let [x, initial @ ..] = inputs else {
                return Err(Error::argument("Recurrent without an input"));
            };
            let mask = pass.mask();
            if layer.options.return_sequences {
                pass.pass_mask(mask.clone());
            }
            let initial = (!initial.is_empty()).then_some(initial);
            let (y, states) = weighted.run(pass, x, mask.as_ref(), initial)?;
            let mut values = vec![y];
            if layer.return_state {
                values.extend(states);
            }
            Ok(values)
        })
    }
}

/// Recurrent layers as the cells of one: each gives its output of a step to the next one.
#[derive(Clone, Debug, PartialEq)]
pub struct StackedRnn {
    /// The cells; their own options do not count.
    pub cells: Vec<Recurrent>,
    /// What is returned, and where it begins.
    pub options: RnnOptions,
}

impl Layer for StackedRnn {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let cells = self.cells.iter().map(|cell| {
            let class = format!("{}Cell", cell.kind.class());
            Ok((cell, cell.of_keras(&class)?.object("keras.layers")))
        });
        let cells = cells.collect::<Result<Vec<_>>>()?;
        let mut before = Vec::new();
        let mut places = Vec::new();
        for (cell, _) in &cells {
            let name = cell.kind.cell_place();
            let number = before.iter().filter(|other| **other == name).count();
            before.push(name);
            let place = match number {
                0 => name.to_owned(),
                _ => format!("{name}_{number}"),
            };
            let count = 2 + usize::from(cell.use_bias);
            places.extend((0..count).map(|at| format!("cell/cells/{place}/vars/{at}")));
        }
        let cells = cells.into_iter().map(|(_, json)| json).collect();
        let cells = KerasLayer::new("StackedRNNCells").set("cells", Json::List(cells));
        let layer = KerasLayer::new("RNN").set("cell", cells.object("keras.layers"));
        Ok(self.options.of_keras(layer).listed(places))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let (steps, mut width) = sequence("StackedRnn", input)?;
        let units: Vec<i64> = self.cells.iter().map(|cell| cell.units).collect();
        let Some(&last) = units.last() else {
            return Err(Error::argument("StackedRnn without a cell"));
        };
        check_sizes("StackedRnn", "units", &units)?;
        let weights = weights.layer("rnn");
        let mut cells = Vec::new();
        for (index, cell) in self.cells.iter().enumerate() {
            let mut cell = *cell;
            cell.options = RnnOptions {
                return_sequences: true,
                go_backwards: false,
                zero_masked: false,
            };
            if index + 1 == self.cells.len() {
                cell.options.return_sequences = self.options.return_sequences;
                cell.options.zero_masked = self.options.zero_masked;
            }
            let place = weights.layer(&format!("{}_cell", cell.kind.name()));
            cells.push(cell.variables(&place, width)?);
            width = cell.units;
        }
        let options = self.options;
        let output = match options.return_sequences {
            true => vec![steps, last],
            false => vec![last],
        };
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let mut mask = pass.mask();
            if options.return_sequences {
                pass.pass_mask(mask.clone());
            }
            let mut x = x.clone();
            if options.go_backwards {
                x = ops::reverse_v2(cx, x, [1])?;
                mask = mask
                    .map(|mask| ops::reverse_v2(cx, mask, [1]))
                    .transpose()?;
            }
            for cell in &cells {
                (x, _) = cell.run(pass, &x, mask.as_ref(), None)?;
            }
            Ok(x)
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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bidirectional {
    /// The layer; the other direction has weights of its own.
    pub layer: Recurrent,
    /// How both become one.
    pub merge: Merge,
}

impl Layer for Bidirectional {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let class = self.layer.kind.class();
        let one = |backwards: bool| -> Result<Json> {
            let mut options = self.layer.options;
            options.go_backwards ^= backwards;
            let layer = options.of_keras(self.layer.of_keras(class)?);
            let name = if backwards { "backward" } else { "forward" };
            Ok(layer.set("name", name).object("keras.layers"))
        };
        let merge = match self.merge {
            Merge::Concat => "concat",
            Merge::Sum => "sum",
            Merge::Mul => "mul",
            Merge::Average => "ave",
        };
        let count = 2 + usize::from(self.layer.use_bias);
        let places = ["forward_layer", "backward_layer"].into_iter();
        let places =
            places.flat_map(|place| (0..count).map(move |at| format!("{place}/cell/vars/{at}")));
        Ok(KerasLayer::new("Bidirectional")
            .set("layer", one(false)?)
            .set("backward_layer", one(true)?)
            .set("merge_mode", merge)
            .listed(places.collect()))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let weights = weights.layer("bidirectional");
        let build = |name: &str, backwards: bool| -> Result<Built> {
            let mut layer = self.layer;
            layer.options.go_backwards ^= backwards;
            layer.options.zero_masked |= layer.options.return_sequences;
            layer.return_state = false;
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
