//! Products with a matrix of weights.

#[cfg(all(feature = "std", not(without = "packing")))]
use core::sync::atomic::{AtomicBool, Ordering};

use crate::activation::Activation;
#[cfg(all(feature = "std", not(without = "packing")))]
use crate::bytes::{AlignedBytes, view, view_mut};
#[cfg(all(feature = "std", not(without = "packing")))]
use crate::error::Error;
use crate::error::{Result, at};
use crate::kernels::base::parallel::Parallel;
#[cfg(all(feature = "std", not(without = "packing")))]
use crate::kernels::gemm::Scale;
#[cfg(all(feature = "std", not(without = "packing")))]
use crate::kernels::gemm::thin::Thin;
use crate::kernels::gemm::{Gemm, Matrix};
#[cfg(all(feature = "std", not(without = "packing")))]
use crate::kernels::gemm::{Packed, PackedSize};
use crate::memory::{Memory, Reader, Slot, Source};
use crate::origin::Origin;
use crate::weights::Tensor;

#[cfg(all(feature = "std", not(without = "packing")))]
mod pair;

/// A matrix of `rows` x `columns`, in the order in which products read it.
#[derive(Clone, Debug)]
pub struct Panels {
    rows: usize,
    columns: usize,
    #[cfg(all(feature = "std", not(without = "packing")))]
    size: PackedSize,
    #[cfg(all(feature = "std", not(without = "packing")))]
    packed: AlignedBytes,
    #[cfg(not(all(feature = "std", not(without = "packing"))))]
    matrix: Tensor<f32>,
}

impl Panels {
    /// Reads a matrix from the weights.
    ///
    /// # Errors
    /// [`crate::error::Error::Plan`] if it lies outside of them.
    pub fn new(
        layer: &'static str,
        weights: &Origin<'_>,
        matrix: Tensor<f32>,
        [rows, columns]: [usize; 2],
        parallel: &dyn Parallel,
    ) -> Result<Self> {
        let bytes = weights.tensor_bytes(matrix)?;
        #[cfg(all(feature = "std", not(without = "packing")))]
        {
            let elements = view(&bytes)?;
            let size = PackedSize::new(rows, columns).map_err(at(layer))?;
            let mut packed = AlignedBytes::zeroed(size.len() * size_of::<f32>())?;
            let out = view_mut(packed.as_mut_slice())?;
            let matrix = Matrix::rows(elements, columns);
            Packed::pack(&matrix, (rows, columns), out, parallel).map_err(at(layer))?;
            Ok(Self {
                rows,
                columns,
                size,
                packed,
            })
        }
        #[cfg(not(all(feature = "std", not(without = "packing"))))]
        {
            let _ = (layer, bytes, parallel);
            Ok(Self {
                rows,
                columns,
                matrix,
            })
        }
    }

    /// Rows of the matrix.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of the matrix.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    #[cfg(all(feature = "std", not(without = "packing")))]
    #[inline]
    fn packed(&self, layer: &'static str) -> Result<Packed<'_>> {
        let data = view(self.packed.as_slice())?;
        self.size.of(data).map_err(at(layer))
    }

    /// The product of `m` rows of `x` and this matrix.
    ///
    /// # Errors
    /// [`crate::error::Error::Layer`] if `x` or the weights are too short.
    #[inline]
    pub fn gemm<'a>(
        &'a self,
        layer: &'static str,
        m: usize,
        x: &'a [f32],
        weights: &'a [u8],
    ) -> Result<Gemm<'a>> {
        let x = Matrix::rows(x, self.rows);
        #[cfg(all(feature = "std", not(without = "packing")))]
        {
            let _ = weights;
            Ok(Gemm::packed(m, x, self.packed(layer)?))
        }
        #[cfg(not(all(feature = "std", not(without = "packing"))))]
        {
            let _ = layer;
            let elements = self.matrix.of(weights)?;
            let size = (m, self.columns, self.rows);
            Ok(Gemm::new(size, x, Matrix::rows(elements, self.columns)))
        }
    }
}

/// Elements of a matrix from which on it matters which end of it the caches still hold.
#[cfg(all(feature = "std", not(without = "packing")))]
const LARGE: usize = 1 << 17;

/// From which end a matrix is read next: every other time from the last one, so that what was read
/// last, and is still in the caches, is read first.
#[cfg(all(feature = "std", not(without = "packing")))]
#[derive(Debug, Default)]
struct Turn(AtomicBool);

#[cfg(all(feature = "std", not(without = "packing")))]
impl Turn {
    /// Whether it is the last one's turn. Callers at the same time may get the same answer.
    fn next(&self) -> bool {
        let backwards = self.0.load(Ordering::Relaxed);
        self.0.store(!backwards, Ordering::Relaxed);
        backwards
    }
}

#[cfg(all(feature = "std", not(without = "packing")))]
impl Clone for Turn {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// An operand of a product whose elements are scaled on their way into it:
/// `activation(x * scale + shift)` along the last axis.
#[cfg(all(feature = "std", not(without = "packing")))]
#[derive(Clone, Copy)]
pub struct Scaled<'a> {
    x: Source<'a, f32>,
    scale: Source<'a, f32>,
    shift: Option<Tensor<f32>>,
    activation: Activation,
}

#[cfg(all(feature = "std", not(without = "packing")))]
impl<'a> Scaled<'a> {
    /// `x * scale`; the factors are those of all examples or, if there are as many, of each one.
    #[inline]
    pub fn by(x: impl Into<Source<'a, f32>>, scale: impl Into<Source<'a, f32>>) -> Self {
        Self {
            x: x.into(),
            scale: scale.into(),
            shift: None,
            activation: Activation::None,
        }
    }

    /// With so much added.
    #[inline]
    #[must_use]
    pub fn plus(mut self, shift: Tensor<f32>) -> Self {
        self.shift = Some(shift);
        self
    }

    /// Kept within the bounds of an activation, which must be of that kind.
    #[inline]
    #[must_use]
    pub fn within(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self
    }
}

/// `activation(x * kernel + bias)`, or with a residual added before the activation. Rows are the
/// last axis of `x`.
#[derive(Clone, Debug)]
pub struct Dense {
    name: &'static str,
    kernel: Panels,
    #[cfg(all(feature = "std", not(without = "packing")))]
    turn: Turn,
    bias: Option<Tensor<f32>>,
    activation: Activation,
}

impl Dense {
    /// Reads the layer's weights: a matrix of `size` and a bias.
    ///
    /// # Errors
    /// [`crate::error::Error::Plan`] if they lie outside of `weights`.
    pub fn new(
        name: &'static str,
        weights: &Origin<'_>,
        (kernel, size): (Tensor<f32>, [usize; 2]),
        bias: Option<Tensor<f32>>,
        activation: Activation,
        parallel: &dyn Parallel,
    ) -> Result<Self> {
        Ok(Self {
            name,
            kernel: Panels::new(name, weights, kernel, size, parallel)?,
            #[cfg(all(feature = "std", not(without = "packing")))]
            turn: Turn::default(),
            bias,
            activation,
        })
    }

    /// Computes the layer.
    ///
    /// # Errors
    /// [`crate::error::Error::Layer`] or [`crate::error::Error::Plan`] if a slot does not fit.
    // Inlined, so that the places of a small layer's operands are known when it is compiled.
    #[inline(always)]
    pub fn run<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        x: impl Into<Source<'a, f32>>,
        out: Slot<f32>,
    ) -> Result<()> {
        let (reader, out) = m.write(out)?;
        let x = reader.read(x.into())?;
        self.product(&reader, x, out, &mut [], false)
    }

    /// As [`Dense::run`], with scratch memory right after the output.
    ///
    /// # Errors
    /// As [`Dense::run`].
    pub fn run_with<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        x: impl Into<Source<'a, f32>>,
        out: Slot<f32>,
        scratch: Slot<f32>,
    ) -> Result<()> {
        let (reader, out, scratch) = m.write_with(out, scratch)?;
        let x = reader.read(x.into())?;
        self.product(&reader, x, out, scratch, false)
    }

    /// As [`Dense::run`], where the result is added to what `out` holds before the activation.
    ///
    /// # Errors
    /// As [`Dense::run`].
    pub fn run_onto<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        x: impl Into<Source<'a, f32>>,
        out: Slot<f32>,
    ) -> Result<()> {
        let (reader, out) = m.write(out)?;
        let x = reader.read(x.into())?;
        self.product(&reader, x, out, &mut [], true)
    }

    /// As [`Dense::run_onto`], with scratch memory right after the output.
    ///
    /// # Errors
    /// As [`Dense::run`].
    pub fn run_onto_with<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        x: impl Into<Source<'a, f32>>,
        out: Slot<f32>,
        scratch: Slot<f32>,
    ) -> Result<()> {
        let (reader, out, scratch) = m.write_with(out, scratch)?;
        let x = reader.read(x.into())?;
        self.product(&reader, x, out, scratch, true)
    }

    /// As [`Dense::run`], of an operand that is scaled first.
    ///
    /// # Errors
    /// As [`Dense::run`].
    #[cfg(all(feature = "std", not(without = "packing")))]
    pub fn run_scaled<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        x: Scaled<'a>,
        out: Slot<f32>,
    ) -> Result<()> {
        self.scaled(m, x, out, false)
    }

    /// As [`Dense::run_onto`], of an operand that is scaled first.
    ///
    /// # Errors
    /// As [`Dense::run`].
    #[cfg(all(feature = "std", not(without = "packing")))]
    pub fn run_scaled_onto<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        x: Scaled<'a>,
        out: Slot<f32>,
    ) -> Result<()> {
        self.scaled(m, x, out, true)
    }

    #[cfg(all(feature = "std", not(without = "packing")))]
    fn scaled<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        scaled: Scaled<'a>,
        out: Slot<f32>,
        accumulate: bool,
    ) -> Result<()> {
        let (reader, out) = m.write(out)?;
        let x = reader.read(scaled.x)?;
        let scale = reader.read(scaled.scale)?;
        let clamp = match scaled.activation {
            Activation::None => None,
            Activation::Clamp(low, high) => Some((low, high)),
            Activation::Map(_) => {
                return Err(Error::Plan {
                    expected: "bounds in front of a product",
                });
            }
        };
        let shift = scaled
            .shift
            .map(|shift| reader.read(shift.into()))
            .transpose()?;
        let (depth, columns) = (self.kernel.rows, self.kernel.columns);
        let bias = self.bias(reader.weights)?;
        // Examples with factors of their own are products of their own.
        let parts = (scale.len() / depth.max(1)).max(1);
        let rows = x.len() / depth.max(1) / parts;
        for part in 0..parts {
            let x = x.get(part * rows * depth..).unwrap_or_default();
            let out = out.get_mut(part * rows * columns..).unwrap_or_default();
            let scale = match parts {
                1 => scale,
                _ => scale
                    .get(part * depth..(part + 1) * depth)
                    .unwrap_or_default(),
            };
            let gemm = Gemm {
                bias,
                scale: Some(Scale {
                    scale,
                    shift,
                    clamp,
                }),
                activation: self.activation,
                accumulate,
                ..self.kernel.gemm(self.name, rows, x, reader.weights)?
            };
            gemm.run(out, columns, &mut [], reader.parallel)
                .map_err(at(self.name))?;
        }
        Ok(())
    }

    #[inline(always)]
    fn product(
        &self,
        reader: &Reader<'_>,
        x: &[f32],
        out: &mut [f32],
        scratch: &mut [f32],
        accumulate: bool,
    ) -> Result<()> {
        let (weights, parallel) = (reader.weights, reader.parallel);
        // What a product of any size checks takes a small layer longer than its own product.
        #[cfg(all(feature = "std", not(without = "packing")))]
        if x.len() == self.kernel.rows {
            return self.row(x, out, accumulate, weights, parallel);
        }
        self.rows(x, (out, scratch), accumulate, weights, parallel)
    }

    #[inline]
    fn bias<'a>(&self, weights: &'a [u8]) -> Result<Option<&'a [f32]>> {
        self.bias.map(|bias| bias.of(weights)).transpose()
    }

    /// The product of one row.
    #[cfg(all(feature = "std", not(without = "packing")))]
    #[inline(never)]
    fn row(
        &self,
        x: &[f32],
        out: &mut [f32],
        accumulate: bool,
        weights: &[u8],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let large = self.kernel.rows * self.kernel.columns >= LARGE;
        let thin = Thin {
            bias: self.bias(weights)?,
            activation: self.activation,
            accumulate,
            backwards: large && self.turn.next(),
        };
        let packed = self.kernel.packed(self.name)?;
        thin.run(x, &packed, out, parallel).map_err(at(self.name))
    }

    /// The product of any number of rows.
    #[inline(never)]
    fn rows(
        &self,
        x: &[f32],
        (out, scratch): (&mut [f32], &mut [f32]),
        accumulate: bool,
        weights: &[u8],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let rows = x.len() / self.kernel.rows.max(1);
        let gemm = Gemm {
            bias: self.bias(weights)?,
            activation: self.activation,
            accumulate,
            ..self.kernel.gemm(self.name, rows, x, weights)?
        };
        gemm.run(out, self.kernel.columns, scratch, parallel)
            .map_err(at(self.name))
    }
}

#[cfg(all(test, feature = "std"))]
mod tests;
