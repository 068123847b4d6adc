//! Recurrent layers, one step after the other.

use tfp_core::{Context, Error, Result, Value};
use tfp_ops as ops;

use super::dense::dense;
use super::known;
use crate::nn::Activation;

/// What recurrent layers share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RnnOptions {
    /// Whether all outputs are returned, (batch, steps, units), or the last one, (batch, units).
    pub return_sequences: bool,
    /// Whether it begins at the last step. Outputs are in the order of the computation.
    pub go_backwards: bool,
    /// Whether the output of a masked step is zero; otherwise it is that of the step before.
    pub zero_masked: bool,
}

/// One step of a recurrent layer.
pub trait Cell<C: Context + ?Sized> {
    /// The width of the output.
    fn units(&self) -> i64;

    /// How many states it has; the first one is the output.
    fn states(&self) -> usize;

    /// Computes what does not depend on the state, for all steps together: (batch, steps, inputs)
    /// gives (batch, steps, n).
    ///
    /// # Errors
    /// What TensorFlow says.
    fn project(&self, cx: &C, x: &C::Value) -> Result<C::Value>;

    /// Computes the next states, (batch, units) each, from a step of [`Self::project`].
    ///
    /// # Errors
    /// What TensorFlow says.
    fn step(&self, cx: &C, x: &C::Value, states: &[C::Value]) -> Result<Vec<C::Value>>;
}

/// Runs a cell over (batch, steps, inputs), from given states or from zeros. A mask (batch, steps)
/// of truth values keeps state and output where it is false.
///
/// Returns the output and the last states.
///
/// # Errors
/// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) when the number of steps is not known,
/// and what TensorFlow says.
pub fn run<C: Context + ?Sized>(
    cx: &C,
    cell: &impl Cell<C>,
    x: &C::Value,
    mask: Option<&C::Value>,
    initial: Option<&[C::Value]>,
    options: RnnOptions,
) -> Result<(C::Value, Vec<C::Value>)> {
    let count = known("recurrent layer", x, 1)?;
    let by_step = ops::UnpackOptions { axis: Some(1) };
    let mut steps = ops::unpack(cx, cell.project(cx, x)?, count, by_step)?;
    let mut masks = match mask {
        Some(mask) => ops::unpack(cx, ops::expand_dims(cx, mask, -1)?, count, by_step)?,
        None => Vec::new(),
    };
    if options.go_backwards {
        steps.reverse();
        masks.reverse();
    }
    let mut states = match initial {
        Some(states) => states.to_vec(),
        None => {
            vec![zero_state(cx, x, cell.units())?; cell.states()]
        }
    };
    let mut outputs = Vec::new();
    let mut output: Option<C::Value> = None;
    for (index, step) in steps.iter().enumerate() {
        let mut next = cell.step(cx, step, &states)?;
        let [mut now] = take(&next)?.clone();
        if let Some(mask) = masks.get(index) {
            let mut mask = mask.clone();
            for _ in 2..now.shape()?.rank().unwrap_or(2) {
                mask = ops::expand_dims(cx, mask, -1)?;
            }
            let mask = &mask;
            for (next, old) in next.iter_mut().zip(&states) {
                *next = ops::select_v2(cx, mask, &*next, old)?;
            }
            let before = match &output {
                Some(output) if !options.zero_masked => output.clone(),
                _ => ops::zeros_like(cx, &now)?,
            };
            now = ops::select_v2(cx, mask, now, before)?;
        }
        states = next;
        if options.return_sequences {
            outputs.push(now.clone());
        }
        output = Some(now);
    }
    let output = match output {
        Some(output) if !options.return_sequences => output,
        Some(_) => ops::pack(cx, &outputs, ops::PackOptions { axis: Some(1) })?,
        None => return Err(Error::argument("recurrent layer: the input has no steps")),
    };
    Ok((output, states))
}

/// Zeros (batch, units).
pub(crate) fn zero_state<C: Context + ?Sized>(
    cx: &C,
    x: &C::Value,
    units: i64,
) -> Result<C::Value> {
    let shape = super::part(cx, &super::shape_of(cx, x)?, 0, Some(1))?;
    let shape = ops::concat_v2(cx, (shape, [units as i32]), 0)?;
    let zero = ops::cast(cx, 0.0_f32, x.dtype(), ops::CastOptions::default())?;
    ops::fill(cx, shape, zero)
}

/// The states of a cell that has `N`.
fn take<V, const N: usize>(states: &[V]) -> Result<&[V; N]> {
    states.first_chunk().ok_or_else(|| {
        let found = states.len();
        Error::argument(format!("recurrent layer: {found} states, expected {N}"))
    })
}

/// `h = activation(x * kernel + h * recurrent + bias)`. Kernel (inputs, units), recurrent (units,
/// units), bias (units).
#[derive(Clone, Debug)]
pub struct SimpleRnn<V> {
    /// For the input.
    pub kernel: V,
    /// For the state.
    pub recurrent: V,
    /// Added.
    pub bias: Option<V>,
    /// The output's function; Keras' default is the hyperbolic tangent.
    pub activation: Activation,
}

impl<C: Context + ?Sized> Cell<C> for SimpleRnn<C::Value> {
    fn units(&self) -> i64 {
        known("SimpleRnn", &self.recurrent, 0).unwrap_or(0)
    }

    fn states(&self) -> usize {
        1
    }

    fn project(&self, cx: &C, x: &C::Value) -> Result<C::Value> {
        dense(cx, x, &self.kernel, self.bias.as_ref())
    }

    fn step(&self, cx: &C, x: &C::Value, states: &[C::Value]) -> Result<Vec<C::Value>> {
        let [state] = take(states)?;
        let state = mat_mul(cx, state, &self.recurrent)?;
        Ok(vec![
            self.activation.apply(cx, &ops::add_v2(cx, x, state)?)?,
        ])
    }
}

/// Long short-term memory (Hochreiter and Schmidhuber, 1997). Gates are in Keras' order: input,
/// forget, cell, output. Kernel (inputs, 4 units), recurrent (units, 4 units), bias (4 units).
#[derive(Clone, Debug)]
pub struct Lstm<V> {
    /// For the input.
    pub kernel: V,
    /// For the state.
    pub recurrent: V,
    /// Added.
    pub bias: Option<V>,
    /// The cell's function; Keras' default is the hyperbolic tangent.
    pub activation: Activation,
    /// The gates' function; Keras' default is the sigmoid.
    pub gate: Activation,
}

impl<C: Context + ?Sized> Cell<C> for Lstm<C::Value> {
    fn units(&self) -> i64 {
        known("Lstm", &self.recurrent, 0).unwrap_or(0)
    }

    fn states(&self) -> usize {
        2
    }

    fn project(&self, cx: &C, x: &C::Value) -> Result<C::Value> {
        dense(cx, x, &self.kernel, self.bias.as_ref())
    }

    fn step(&self, cx: &C, x: &C::Value, states: &[C::Value]) -> Result<Vec<C::Value>> {
        let [hidden, carry] = take(states)?;
        let z = ops::add_v2(cx, x, mat_mul(cx, hidden, &self.recurrent)?)?;
        let z = ops::split(cx, 1, z, 4)?;
        let kept = ops::mul(cx, self.gate.apply(cx, &z[1])?, carry)?;
        let input = self.gate.apply(cx, &z[0])?;
        let new = ops::mul(cx, input, self.activation.apply(cx, &z[2])?)?;
        let carry = ops::add_v2(cx, kept, new)?;
        let output = self.gate.apply(cx, &z[3])?;
        let hidden = ops::mul(cx, output, self.activation.apply(cx, &carry)?)?;
        Ok(vec![hidden, carry])
    }
}

/// Gated recurrent unit (Cho et al., 2014). Gates are in Keras' order: update, reset, candidate.
/// Kernel (inputs, 3 units), recurrent (units, 3 units), bias (3 units), or (2, 3 units) for input
/// and state when the reset comes after the product.
#[derive(Clone, Debug)]
pub struct Gru<V> {
    /// For the input.
    pub kernel: V,
    /// For the state.
    pub recurrent: V,
    /// Added to the input's product.
    pub bias: Option<V>,
    /// Added to the state's product; only with `reset_after`.
    pub recurrent_bias: Option<V>,
    /// The candidate's function; Keras' default is the hyperbolic tangent.
    pub activation: Activation,
    /// The gates' function; Keras' default is the sigmoid.
    pub gate: Activation,
    /// Whether the reset gate multiplies the state's product instead of the state. Keras' default
    /// is true.
    pub reset_after: bool,
}

impl<C: Context + ?Sized> Cell<C> for Gru<C::Value> {
    fn units(&self) -> i64 {
        known("Gru", &self.recurrent, 0).unwrap_or(0)
    }

    fn states(&self) -> usize {
        1
    }

    fn project(&self, cx: &C, x: &C::Value) -> Result<C::Value> {
        dense(cx, x, &self.kernel, self.bias.as_ref())
    }

    fn step(&self, cx: &C, x: &C::Value, states: &[C::Value]) -> Result<Vec<C::Value>> {
        let [state] = take(states)?;
        let x = ops::split(cx, 1, x, 3)?;
        let gate = |x: &C::Value, h: &C::Value| -> Result<C::Value> {
            self.gate.apply(cx, &ops::add_v2(cx, x, h)?)
        };
        let (update, candidate) = if self.reset_after {
            let mut inner = mat_mul(cx, state, &self.recurrent)?;
            if let Some(bias) = &self.recurrent_bias {
                inner = ops::bias_add(cx, inner, bias, ops::BiasAddOptions::default())?;
            }
            let inner = ops::split(cx, 1, inner, 3)?;
            let (update, reset) = (gate(&x[0], &inner[0])?, gate(&x[1], &inner[1])?);
            (update, ops::mul(cx, reset, &inner[2])?)
        } else {
            let parts = ops::split(cx, 1, &self.recurrent, 3)?;
            let update = gate(&x[0], &mat_mul(cx, state, &parts[0])?)?;
            let reset = gate(&x[1], &mat_mul(cx, state, &parts[1])?)?;
            (
                update,
                mat_mul(cx, &ops::mul(cx, reset, state)?, &parts[2])?,
            )
        };
        let sum = ops::add_v2(cx, &x[2], candidate)?;
        let candidate = self.activation.apply(cx, &sum)?;
        let kept = ops::mul(cx, &update, state)?;
        let new = ops::mul(cx, ops::sub(cx, 1.0, update)?, candidate)?;
        Ok(vec![ops::add_v2(cx, kept, new)?])
    }
}

fn mat_mul<C: Context + ?Sized>(cx: &C, a: &C::Value, b: &C::Value) -> Result<C::Value> {
    ops::mat_mul(cx, a, b, ops::MatMulOptions::default())
}
