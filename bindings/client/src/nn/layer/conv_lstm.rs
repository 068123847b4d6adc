//! Recurrent layers over images: long short-term memory whose products are convolutions.

use tfp_core::{Error, Result};

use super::conv::windows;
use super::described::{KerasLayer, function};
use super::{Built, Layer, check_sizes, steps, wrong_input};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::functional::{self as f, Cell, ConvOptions, Padding, RnnOptions};
use crate::nn::{Activation, Initializer, Weights};
use crate::ops;

/// Convolutional long short-term memory (Shi et al., arXiv:1506.04214) over (steps, ..., channels), with
/// one to three dimensions between them.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvLstm {
    /// How many channels the output has.
    pub filters: i64,
    /// The size of the window in each dimension.
    pub size: Vec<i64>,
    /// The step between windows of the input in each dimension.
    pub strides: Vec<i64>,
    /// How the borders of the input are treated.
    pub padding: Padding,
    /// What is returned, and where it begins.
    pub options: RnnOptions,
    /// The function of the output.
    pub activation: Activation,
    /// The function of the gates.
    pub gate: Activation,
    /// Whether something is added.
    pub use_bias: bool,
}

impl ConvLstm {
    /// A layer with Keras' defaults.
    #[must_use]
    pub fn new(filters: i64, size: &[i64]) -> Self {
        Self {
            filters,
            size: size.to_vec(),
            strides: vec![1; size.len()],
            padding: Padding::Valid,
            options: RnnOptions::default(),
            activation: Activation::Tanh,
            gate: Activation::Sigmoid,
            use_bias: true,
        }
    }
}

/// The cell with its values of a pass.
struct ConvCell<'a> {
    layer: &'a ConvLstm,
    kernel: AnyValue,
    recurrent: AnyValue,
    bias: Option<AnyValue>,
}

/// A convolution in one to three dimensions.
fn convolve(
    cx: &AnyContext,
    x: &AnyValue,
    kernel: &AnyValue,
    bias: Option<&AnyValue>,
    strides: &[i64],
    padding: Padding,
) -> Result<AnyValue> {
    let strides = match *strides {
        [planes, rows, columns] => {
            return f::conv3d(cx, x, kernel, bias, [planes, rows, columns], padding);
        }
        [rows, columns] => (rows, columns),
        [steps] => (steps, 1),
        _ => return Err(Error::argument("ConvLstm: one to three dimensions")),
    };
    let options = ConvOptions {
        strides,
        padding,
        ..ConvOptions::default()
    };
    f::conv(cx, x, kernel, bias, &options)
}

impl Cell<AnyContext> for ConvCell<'_> {
    fn units(&self) -> i64 {
        self.layer.filters
    }

    fn states(&self) -> usize {
        2
    }

    fn project(&self, cx: &AnyContext, x: &AnyValue) -> Result<AnyValue> {
        // All steps of all samples are samples of the convolution.
        let shape = ops::shape(cx, x, ops::ShapeOptions::default())?;
        let dims = self.layer.size.len() as i32 + 1;
        let outer = ops::slice(cx, &shape, [0], [2])?;
        let inner = ops::slice(cx, &shape, [2], [dims])?;
        let flat = ops::concat_v2(cx, [&ops::identity(cx, [-1_i32])?, &inner], 0)?;
        let x = ops::reshape(cx, x, flat)?;
        let (strides, padding) = (&self.layer.strides, self.layer.padding);
        let y = convolve(cx, &x, &self.kernel, self.bias.as_ref(), strides, padding)?;
        let shape = ops::shape(cx, &y, ops::ShapeOptions::default())?;
        let inner = ops::slice(cx, shape, [1], [dims])?;
        ops::reshape(cx, y, ops::concat_v2(cx, [&outer, &inner], 0)?)
    }

    fn step(&self, cx: &AnyContext, x: &AnyValue, states: &[AnyValue]) -> Result<Vec<AnyValue>> {
        let [hidden, carry] = states else {
            return Err(Error::argument("ConvLstm: two states"));
        };
        let (activation, gate) = (self.layer.activation, self.layer.gate);
        let ones = vec![1; self.layer.size.len()];
        let same = convolve(cx, hidden, &self.recurrent, None, &ones, Padding::Same)?;
        let sum = ops::add_v2(cx, x, same)?;
        let z = ops::split(cx, -1, sum, 4)?;
        let kept = ops::mul(cx, gate.apply(cx, &z[1])?, carry)?;
        let new = ops::mul(cx, gate.apply(cx, &z[0])?, activation.apply(cx, &z[2])?)?;
        let carry = ops::add_v2(cx, kept, new)?;
        let hidden = ops::mul(cx, gate.apply(cx, &z[3])?, activation.apply(cx, &carry)?)?;
        Ok(vec![hidden, carry])
    }
}

impl Layer for ConvLstm {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        KerasLayer::new(format!("ConvLSTM{}D", self.size.len()))
            .set("filters", self.filters)
            .windows(&self.size, self.strides.clone(), self.padding)
            .set("dilation_rate", vec![1; self.size.len()])
            .set("recurrent_activation", function(self.gate)?)
            .set("return_sequences", self.options.return_sequences)
            .set("go_backwards", self.options.go_backwards)
            .within("cell/")
            .dense(self.activation, self.use_bias)
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let layer = "ConvLstm";
        let dims = self.size.len();
        let [steps, space @ .., channels] = input else {
            return Err(wrong_input(layer, "(steps, ..., channels)", input));
        };
        let (steps, channels) = (*steps, *channels);
        if !(1..=3).contains(&dims) || space.len() != dims || self.strides.len() != dims {
            let expected = format!("steps, {dims} dimensions and channels");
            return Err(wrong_input(layer, &expected, input));
        }
        check_sizes(layer, "known sizes and channels", &input[1..])?;
        check_sizes(layer, "size", &self.size)?;
        check_sizes(layer, "strides", &self.strides)?;
        check_sizes(layer, "filters", &[self.filters])?;
        f::not_causal(layer, self.padding)?;
        let mut state: Vec<i64> = (0..dims)
            .map(|at| windows(space[at], self.size[at], self.strides[at], 1, self.padding))
            .collect();
        if state.iter().any(|&size| size < 1) {
            return Err(wrong_input(layer, "at least one window", input));
        }
        state.push(self.filters);
        let width = 4 * self.filters;
        let weights = weights.layer(&format!("conv_lstm{dims}d"));
        let shape = |inputs: i64| [self.size.as_slice(), &[inputs, width]].concat();
        let kernel = weights.trainable("kernel", &shape(channels), Initializer::GLOROT_UNIFORM)?;
        let orthogonal = Initializer::Orthogonal(1.0);
        let shape = shape(self.filters);
        let recurrent = weights.trainable("recurrent_kernel", &shape, orthogonal)?;
        let bias = self
            .use_bias
            .then(|| weights.trainable("bias", &[width], Initializer::LstmBias))
            .transpose()?;
        let layer = self.clone();
        let output = match self.options.return_sequences {
            true => [&[steps], state.as_slice()].concat(),
            false => state.clone(),
        };
        let state: Vec<i32> = state.iter().map(|&size| size as i32).collect();
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let mask = pass.mask();
            if layer.options.return_sequences {
                pass.pass_mask(mask.clone());
            }
            let cell = ConvCell {
                layer: &layer,
                kernel: kernel.read(cx)?,
                recurrent: recurrent.read(cx)?,
                bias: bias.as_ref().map(|bias| bias.read(cx)).transpose()?,
            };
            let shape = ops::shape(cx, x, ops::ShapeOptions::default())?;
            let batch = ops::slice(cx, shape, [0], [1])?;
            let shape = ops::concat_v2(cx, (batch, state.as_slice()), 0)?;
            let zeros = ops::fill(cx, shape, 0.0_f32)?;
            let initial = [zeros.clone(), zeros];
            let options = layer.options;
            let (y, _) = steps::run(cx, &cell, x, mask.as_ref(), Some(&initial), options)?;
            Ok(y)
        })
    }
}
