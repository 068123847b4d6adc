//! Recurrent layers over sequences.

use crate::activation::Activation;
#[cfg(all(feature = "std", not(without = "packing")))]
use crate::bytes::{AlignedBytes, view, view_mut};
use crate::error::{Result, at};
use crate::kernels::base::parallel::Parallel;
use crate::kernels::gemm::Matrix;
#[cfg(all(feature = "std", not(without = "packing")))]
use crate::kernels::gemm::Packed;
use crate::kernels::ops::sequence::recurrent::{
    Factor, GruLayer, LstmLayer, Reset, SimpleRnnLayer, Walk,
};
use crate::memory::{Memory, Reader, Slot, Source, count};
use crate::origin::Origin;
use crate::weights::Tensor;

/// The sizes and the order of a recurrent layer.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Steps of a sequence; 0 for as many as the input of a call has.
    pub steps: usize,
    /// Elements of an input.
    pub inputs: usize,
    /// Elements of the state.
    pub units: usize,
    /// From the last step to the first.
    pub reverse: bool,
    /// Whether a masked step puts 0 into the output, instead of the output before.
    pub zero_masked: bool,
}

impl Order {
    /// From the first step to the last; a masked step repeats the output before.
    #[must_use]
    pub const fn new(steps: usize, inputs: usize, units: usize) -> Self {
        Self {
            steps,
            inputs,
            units,
            reverse: false,
            zero_masked: false,
        }
    }

    /// From the last step to the first.
    #[must_use]
    pub const fn reversed(mut self) -> Self {
        self.reverse = true;
        self
    }

    /// With 0 as the output of a masked step.
    #[must_use]
    pub const fn zero_masked(mut self) -> Self {
        self.zero_masked = true;
        self
    }
}

/// What a call of a recurrent layer reads.
#[derive(Clone, Copy)]
pub struct Operands<'a> {
    /// `[batch, steps, inputs]`
    pub x: Source<'a, f32>,
    /// State at the start, `[batch, units]`; 0 if missing.
    pub hidden: Option<Source<'a, f32>>,
    /// Cell state at the start, `[batch, units]`; 0 if missing.
    pub cell: Option<Source<'a, f32>>,
    /// `[batch, steps]`: 0 where a step leaves the state as it is.
    pub mask: Option<Source<'a, u8>>,
}

impl<'a> Operands<'a> {
    /// A sequence; the states start at 0.
    #[must_use]
    pub fn of(x: impl Into<Source<'a, f32>>) -> Self {
        Self {
            x: x.into(),
            hidden: None,
            cell: None,
            mask: None,
        }
    }

    /// With a state at the start.
    #[must_use]
    pub fn hidden(mut self, state: impl Into<Source<'a, f32>>) -> Self {
        self.hidden = Some(state.into());
        self
    }

    /// With a cell state at the start.
    #[must_use]
    pub fn cell(mut self, state: impl Into<Source<'a, f32>>) -> Self {
        self.cell = Some(state.into());
        self
    }

    /// With steps that leave the state as it is.
    #[must_use]
    pub fn mask(mut self, mask: impl Into<Source<'a, u8>>) -> Self {
        self.mask = Some(mask.into());
        self
    }
}

/// Some columns of a matrix of weights, packed where there is memory for it.
#[derive(Clone, Debug)]
struct Columns {
    rows: usize,
    columns: usize,
    #[cfg(all(feature = "std", not(without = "packing")))]
    packed: AlignedBytes,
    #[cfg(not(all(feature = "std", not(without = "packing"))))]
    source: (Tensor<f32>, usize, usize),
}

impl Columns {
    /// Columns `first..first + columns` of a matrix of `rows` x `ld`.
    fn new(
        layer: &'static str,
        weights: &Origin<'_>,
        matrix: Tensor<f32>,
        (rows, ld): (usize, usize),
        (first, columns): (usize, usize),
        parallel: &dyn Parallel,
    ) -> Result<Self> {
        let bytes = weights.tensor_bytes(matrix)?;
        #[cfg(all(feature = "std", not(without = "packing")))]
        {
            let elements = view(&bytes)?;
            let matrix = Matrix::rows(elements.get(first..).unwrap_or_default(), ld);
            let len = Packed::len(rows, columns).map_err(at(layer))?;
            let mut packed = AlignedBytes::zeroed(len * size_of::<f32>())?;
            let out = view_mut(packed.as_mut_slice())?;
            Packed::pack(&matrix, (rows, columns), out, parallel).map_err(at(layer))?;
            Ok(Self {
                rows,
                columns,
                packed,
            })
        }
        #[cfg(not(all(feature = "std", not(without = "packing"))))]
        {
            let _ = (layer, bytes, parallel);
            Ok(Self {
                rows,
                columns,
                source: (matrix, first, ld),
            })
        }
    }

    fn factor<'a>(&'a self, layer: &'static str, reader: &Reader<'a>) -> Result<Factor<'a>> {
        let size = (self.rows, self.columns);
        #[cfg(all(feature = "std", not(without = "packing")))]
        {
            let _ = reader;
            let data = view(self.packed.as_slice())?;
            let packed = Packed::from_packed(size, data).map_err(at(layer))?;
            Ok(Factor::packed(packed))
        }
        #[cfg(not(all(feature = "std", not(without = "packing"))))]
        {
            let _ = layer;
            let (matrix, first, ld) = self.source;
            let elements = reader.read(Source::Weights(matrix))?;
            let elements = elements.get(first..).unwrap_or_default();
            Ok(Factor::plain(Matrix::rows(elements, ld), size))
        }
    }
}

/// Where a layer goes, with a state for each of its sequences; as many steps as they have where the
/// order has none.
fn walk<'a>(
    order: &Order,
    reader: &Reader<'a>,
    x: &Operands<'a>,
    state: &[f32],
) -> Result<Walk<'a>> {
    let batch = count(state.len(), order.units);
    let steps = match order.steps {
        0 => count(reader.read(x.x)?.len(), batch * order.inputs),
        steps => steps,
    };
    Ok(Walk {
        batch,
        steps,
        units: order.units,
        reverse: order.reverse,
        mask: x.mask.map(|mask| reader.read(mask)).transpose()?,
        zero_masked: order.zero_masked,
    })
}

fn start<'a>(
    reader: &Reader<'a>,
    from: Option<Source<'a, f32>>,
    to: &mut [f32],
    layer: &'static str,
) -> Result<()> {
    use crate::kernels::ops::moving::join::join;
    match from {
        Some(from) => join([reader.read(from)?], 1, to, reader.parallel).map_err(at(layer)),
        None => {
            to.fill(0.0);
            Ok(())
        }
    }
}

/// An LSTM.
#[derive(Clone, Debug)]
pub struct Lstm {
    name: &'static str,
    order: Order,
    kernel: Columns,
    recurrent: Columns,
    bias: Option<Tensor<f32>>,
}

impl Lstm {
    /// Reads the layer's weights: `[inputs, 4 * units]`, `[units, 4 * units]`, `[4 * units]`.
    ///
    /// # Errors
    /// [`crate::error::Error::Plan`] if they lie outside of `weights`.
    pub fn new(
        name: &'static str,
        weights: &Origin<'_>,
        order: Order,
        [kernel, recurrent]: [Tensor<f32>; 2],
        bias: Option<Tensor<f32>>,
        parallel: &dyn Parallel,
    ) -> Result<Self> {
        let columns = 4 * order.units;
        let all = |matrix, rows| {
            let size = (rows, columns);
            Columns::new(name, weights, matrix, size, (0, columns), parallel)
        };
        Ok(Self {
            name,
            order,
            kernel: all(kernel, order.inputs)?,
            recurrent: all(recurrent, order.units)?,
            bias,
        })
    }

    /// Computes the sequence, the last state and the last cell state; the sequence's slot may be
    /// empty.
    ///
    /// # Errors
    /// [`crate::error::Error::Layer`] or [`crate::error::Error::Plan`] if a slot does not fit.
    pub fn run<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        x: Operands<'a>,
        sequence: Slot<f32>,
        [hidden, cell]: [Slot<f32>; 2],
        scratch: Slot<f32>,
    ) -> Result<()> {
        let (reader, [sequence, hidden, cell, scratch]) =
            m.write_many([sequence, hidden, cell, scratch])?;
        start(&reader, x.hidden, hidden, self.name)?;
        start(&reader, x.cell, cell, self.name)?;
        let bias = self.bias.map(|bias| reader.read(bias.into())).transpose()?;
        let layer = LstmLayer {
            walk: walk(&self.order, &reader, &x, hidden)?,
            kernel: self.kernel.factor(self.name, &reader)?,
            recurrent: self.recurrent.factor(self.name, &reader)?,
            bias,
        };
        let x = reader.read(x.x)?;
        layer
            .run(x, hidden, cell, sequence, scratch, reader.parallel)
            .map_err(at(self.name))
    }
}

#[derive(Clone, Debug)]
enum GruMatrices {
    After(Columns, Option<Tensor<f32>>),
    Before(Columns, Columns),
}

/// A GRU.
#[derive(Clone, Debug)]
pub struct Gru {
    name: &'static str,
    order: Order,
    kernel: Columns,
    recurrent: GruMatrices,
    bias: Option<Tensor<f32>>,
}

impl Gru {
    /// Reads the layer's weights: `[inputs, 3 * units]`, `[units, 3 * units]`, `[3 * units]`, and
    /// the bias of the projected state, which only `reset_after` has.
    ///
    /// # Errors
    /// [`crate::error::Error::Plan`] if they lie outside of `weights`.
    pub fn new(
        name: &'static str,
        weights: &Origin<'_>,
        order: Order,
        [kernel, recurrent]: [Tensor<f32>; 2],
        [bias, recurrent_bias]: [Option<Tensor<f32>>; 2],
        reset_after: bool,
        parallel: &dyn Parallel,
    ) -> Result<Self> {
        let units = order.units;
        let part = |matrix, rows, part| {
            Columns::new(name, weights, matrix, (rows, 3 * units), part, parallel)
        };
        let recurrent = if reset_after {
            GruMatrices::After(part(recurrent, units, (0, 3 * units))?, recurrent_bias)
        } else {
            GruMatrices::Before(
                part(recurrent, units, (0, 2 * units))?,
                part(recurrent, units, (2 * units, units))?,
            )
        };
        Ok(Self {
            name,
            order,
            kernel: part(kernel, order.inputs, (0, 3 * units))?,
            recurrent,
            bias,
        })
    }

    /// Computes the sequence and the last state; the sequence's slot may be empty.
    ///
    /// # Errors
    /// As [`Lstm::run`].
    pub fn run<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        x: Operands<'a>,
        sequence: Slot<f32>,
        hidden: Slot<f32>,
        scratch: Slot<f32>,
    ) -> Result<()> {
        let (reader, [sequence, hidden, scratch]) = m.write_many([sequence, hidden, scratch])?;
        start(&reader, x.hidden, hidden, self.name)?;
        let bias =
            |bias: Option<Tensor<f32>>| bias.map(|bias| reader.read(bias.into())).transpose();
        let recurrent = match &self.recurrent {
            GruMatrices::After(matrix, recurrent_bias) => Reset::After {
                matrix: matrix.factor(self.name, &reader)?,
                bias: bias(*recurrent_bias)?,
            },
            GruMatrices::Before(gates, candidate) => Reset::Before {
                gates: gates.factor(self.name, &reader)?,
                candidate: candidate.factor(self.name, &reader)?,
            },
        };
        let layer = GruLayer {
            walk: walk(&self.order, &reader, &x, hidden)?,
            kernel: self.kernel.factor(self.name, &reader)?,
            recurrent,
            bias: bias(self.bias)?,
        };
        let x = reader.read(x.x)?;
        layer
            .run(x, hidden, sequence, scratch, reader.parallel)
            .map_err(at(self.name))
    }
}

/// A fully connected recurrent layer.
#[derive(Clone, Debug)]
pub struct SimpleRnn {
    name: &'static str,
    order: Order,
    kernel: Columns,
    recurrent: Columns,
    bias: Option<Tensor<f32>>,
    activation: Activation,
}

impl SimpleRnn {
    /// Reads the layer's weights: `[inputs, units]`, `[units, units]`, `[units]`.
    ///
    /// # Errors
    /// [`crate::error::Error::Plan`] if they lie outside of `weights`.
    pub fn new(
        name: &'static str,
        weights: &Origin<'_>,
        order: Order,
        [kernel, recurrent]: [Tensor<f32>; 2],
        bias: Option<Tensor<f32>>,
        activation: Activation,
        parallel: &dyn Parallel,
    ) -> Result<Self> {
        let units = order.units;
        let all =
            |matrix, rows| Columns::new(name, weights, matrix, (rows, units), (0, units), parallel);
        Ok(Self {
            name,
            order,
            kernel: all(kernel, order.inputs)?,
            recurrent: all(recurrent, units)?,
            bias,
            activation,
        })
    }

    /// Computes the sequence and the last state; the sequence's slot may be empty.
    ///
    /// # Errors
    /// As [`Lstm::run`].
    pub fn run<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        x: Operands<'a>,
        sequence: Slot<f32>,
        hidden: Slot<f32>,
        scratch: Slot<f32>,
    ) -> Result<()> {
        let (reader, [sequence, hidden, scratch]) = m.write_many([sequence, hidden, scratch])?;
        start(&reader, x.hidden, hidden, self.name)?;
        let bias = self.bias.map(|bias| reader.read(bias.into())).transpose()?;
        let layer = SimpleRnnLayer {
            walk: walk(&self.order, &reader, &x, hidden)?,
            kernel: self.kernel.factor(self.name, &reader)?,
            recurrent: self.recurrent.factor(self.name, &reader)?,
            bias,
            activation: self.activation,
        };
        let x = reader.read(x.x)?;
        layer
            .run(x, hidden, sequence, scratch, reader.parallel)
            .map_err(at(self.name))
    }
}
