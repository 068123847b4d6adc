//! Convolutions, plain, depthwise and transposed.

mod depthwise;
mod geometry;
mod layer;

pub use self::depthwise::DepthwiseConv;
pub use self::geometry::{Axis, Geometry};
use self::layer::Layer;
use crate::activation::Activation;
#[cfg(all(feature = "std", not(without = "packing")))]
use crate::bytes::{AlignedBytes, view, view_mut};
use crate::error::{Result, at};
use crate::kernels::base::parallel::Parallel;
use crate::kernels::base::shape::Shape;
#[cfg(all(feature = "std", not(without = "packing")))]
use crate::kernels::conv::PackedFilter;
use crate::kernels::conv::{BackwardInput, Conv as Sizes, Direction, Filter, Forward};
use crate::kernels::frame::clamp::AddClamp;
use crate::kernels::frame::zip::zip_in_place;
use crate::kernels::ops::elementwise::binary::Add;
use crate::memory::{Memory, Reader, Slot, Source, count};
use crate::origin::Origin;
use crate::weights::Tensor;

/// The weights of a filter, packed where there is memory for it.
#[derive(Clone, Debug)]
struct Taps {
    #[cfg(all(feature = "std", not(without = "packing")))]
    packed: AlignedBytes,
    #[cfg(not(all(feature = "std", not(without = "packing"))))]
    filter: Tensor<f32>,
}

impl Taps {
    fn new(
        layer: &Layer,
        direction: Direction,
        weights: &Origin<'_>,
        filter: Tensor<f32>,
        parallel: &dyn Parallel,
    ) -> Result<Self> {
        let bytes = weights.tensor_bytes(filter)?;
        #[cfg(all(feature = "std", not(without = "packing")))]
        {
            let elements = view(&bytes)?;
            let sizes = &layer.sizes;
            let len = PackedFilter::len(direction, sizes).map_err(at(layer.name))?;
            let mut packed = AlignedBytes::zeroed(len * size_of::<f32>())?;
            let out = view_mut(packed.as_mut_slice())?;
            PackedFilter::pack(direction, sizes, elements, out, parallel)
                .map_err(at(layer.name))?;
            Ok(Self { packed })
        }
        #[cfg(not(all(feature = "std", not(without = "packing"))))]
        {
            let _ = (layer, direction, bytes, parallel);
            Ok(Self { filter })
        }
    }

    fn filter<'a>(
        &'a self,
        layer: &'static str,
        direction: Direction,
        sizes: &Sizes,
        reader: &Reader<'a>,
    ) -> Result<Filter<'a>> {
        #[cfg(all(feature = "std", not(without = "packing")))]
        {
            let _ = reader;
            let data = view(self.packed.as_slice())?;
            let packed = PackedFilter::from_packed(direction, sizes, data).map_err(at(layer))?;
            Ok(Filter::Packed(packed))
        }
        #[cfg(not(all(feature = "std", not(without = "packing"))))]
        {
            let _ = (layer, direction, sizes);
            Ok(Filter::Plain(reader.read(Source::Weights(self.filter))?))
        }
    }
}

/// `activation(conv(x, filter) + bias)`, channels last, or with `TRANSPOSED` the same of the
/// transposed convolution.
#[derive(Clone, Debug)]
pub struct Filtered<const TRANSPOSED: bool> {
    layer: Layer,
    taps: Taps,
}

/// A convolution.
pub type Conv = Filtered<false>;

/// A transposed convolution: the gradient of a convolution's input.
pub type ConvTranspose = Filtered<true>;

impl<const TRANSPOSED: bool> Filtered<TRANSPOSED> {
    const DIRECTION: Direction = if TRANSPOSED {
        Direction::Backward
    } else {
        Direction::Forward
    };

    /// Reads the layer's weights: a bias, and a filter `[height, width, inputs / groups, outputs]`.
    /// Transposed, `geometry` is that of the convolution from this layer's output to its input,
    /// and the filter has that convolution's shape, too: in the words of this layer
    /// `[height, width, outputs / groups, inputs]`.
    ///
    /// # Errors
    /// [`crate::error::Error::Plan`] if they lie outside of `weights`,
    /// [`crate::error::Error::Layer`] if the sizes do not fit together.
    pub fn new(
        name: &'static str,
        weights: &Origin<'_>,
        geometry: &Geometry,
        filter: Tensor<f32>,
        bias: Option<Tensor<f32>>,
        activation: Activation,
        parallel: &dyn Parallel,
    ) -> Result<Self> {
        let layer = Layer::new(name, geometry, bias, activation)?;
        let taps = Taps::new(&layer, Self::DIRECTION, weights, filter, parallel)?;
        Ok(Self { layer, taps })
    }

    /// Computes the layer.
    ///
    /// # Errors
    /// [`crate::error::Error::Layer`] or [`crate::error::Error::Plan`] if a slot does not fit.
    pub fn run<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        x: impl Into<Source<'a, f32>>,
        out: Slot<f32>,
    ) -> Result<()> {
        let (reader, out) = m.write(out)?;
        let x = reader.read(x.into())?;
        self.compute(&reader, x, out, &mut [], self.layer.activation)
    }

    /// As [`Filtered::run`], with scratch memory right after the output.
    ///
    /// # Errors
    /// As [`Filtered::run`].
    pub fn run_with<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        x: impl Into<Source<'a, f32>>,
        out: Slot<f32>,
        scratch: Slot<f32>,
    ) -> Result<()> {
        let (reader, out, scratch) = m.write_with(out, scratch)?;
        let x = reader.read(x.into())?;
        self.compute(&reader, x, out, scratch, self.layer.activation)
    }

    /// As [`Filtered::run`], over axes that the call decides; transposed, they are those of the
    /// output.
    ///
    /// # Errors
    /// As [`Filtered::run`].
    pub fn run_over<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        axes: [Axis; 2],
        x: impl Into<Source<'a, f32>>,
        out: Slot<f32>,
    ) -> Result<()> {
        let (reader, out) = m.write(out)?;
        let x = reader.read(x.into())?;
        self.compute_over(&reader, axes, x, (out, &mut []), self.layer.activation)
    }

    /// As [`Filtered::run_over`], with scratch memory right after the output.
    ///
    /// # Errors
    /// As [`Filtered::run`].
    pub fn run_with_over<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        axes: [Axis; 2],
        x: impl Into<Source<'a, f32>>,
        out: Slot<f32>,
        scratch: Slot<f32>,
    ) -> Result<()> {
        let (reader, out, scratch) = m.write_with(out, scratch)?;
        let x = reader.read(x.into())?;
        self.compute_over(&reader, axes, x, (out, scratch), self.layer.activation)
    }

    fn compute_over<'a>(
        &'a self,
        reader: &Reader<'a>,
        axes: [Axis; 2],
        x: &[f32],
        (out, scratch): (&mut [f32], &mut [f32]),
        activation: Activation,
    ) -> Result<()> {
        let image = if TRANSPOSED { out.len() } else { x.len() };
        let sizes = self.layer.over(axes, image)?;
        // The filter is packed as for the smallest image: not transformed.
        self.compute_sizes(
            reader,
            (sizes, &self.layer.sizes),
            x,
            (out, scratch),
            activation,
        )
    }

    fn compute<'a>(
        &'a self,
        reader: &Reader<'a>,
        x: &[f32],
        out: &mut [f32],
        scratch: &mut [f32],
        activation: Activation,
    ) -> Result<()> {
        let one = &self.layer.sizes;
        let lens = [one.input_len(), one.output_len()];
        let sizes = self
            .layer
            .sizes(count(x.len(), lens[usize::from(TRANSPOSED)]));
        self.compute_sizes(reader, (sizes, &sizes), x, (out, scratch), activation)
    }

    /// Computes images of some sizes with the filter that is packed for others.
    fn compute_sizes<'a>(
        &'a self,
        reader: &Reader<'a>,
        (sizes, packed): (Sizes, &Sizes),
        x: &[f32],
        (out, scratch): (&mut [f32], &mut [f32]),
        activation: Activation,
    ) -> Result<()> {
        let name = self.layer.name;
        let filter = self.taps.filter(name, Self::DIRECTION, packed, reader)?;
        let bias = self.layer.bias(reader)?;
        if TRANSPOSED {
            let backward = BackwardInput {
                bias,
                activation,
                ..BackwardInput::new(sizes, filter)
            };
            backward.run(x, out, scratch, reader.parallel)
        } else {
            let forward = Forward {
                bias,
                activation,
                ..Forward::new(sizes, filter)
            };
            forward.run(x, out, scratch, reader.parallel)
        }
        .map_err(at(name))
    }

    /// The convolution of so many images in this direction.
    pub(crate) fn forward<'a>(&'a self, reader: &Reader<'a>, batch: usize) -> Result<Forward<'a>> {
        let sizes = self.layer.sizes(batch);
        let filter = self
            .taps
            .filter(self.layer.name, Direction::Forward, &sizes, reader)?;
        Ok(Forward {
            bias: self.layer.bias(reader)?,
            activation: self.layer.activation,
            ..Forward::new(sizes, filter)
        })
    }
}

impl Conv {
    pub(crate) const fn name(&self) -> &'static str {
        self.layer.name
    }

    /// As how many images so many elements are convolved.
    pub(crate) fn batch(&self, found: usize) -> usize {
        self.layer.batch(found)
    }

    /// As [`Filtered::run_with`], with `residual` added before the activation.
    ///
    /// # Errors
    /// As [`Filtered::run`].
    pub fn run_add<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        x: impl Into<Source<'a, f32>>,
        residual: impl Into<Source<'a, f32>>,
        out: Slot<f32>,
        scratch: Slot<f32>,
    ) -> Result<()> {
        let (reader, out, scratch) = m.write_with(out, scratch)?;
        let x = reader.read(x.into())?;
        let residual = reader.read(residual.into())?;
        self.compute(&reader, x, out, scratch, Activation::None)?;
        self.add(&reader, residual, out)
    }

    /// As [`Conv::run_add`], over axes that the call decides.
    ///
    /// # Errors
    /// As [`Filtered::run`].
    pub fn run_add_over<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        axes: [Axis; 2],
        x: impl Into<Source<'a, f32>>,
        residual: impl Into<Source<'a, f32>>,
        out: Slot<f32>,
    ) -> Result<()> {
        let (reader, out) = m.write(out)?;
        let x = reader.read(x.into())?;
        let residual = reader.read(residual.into())?;
        self.compute_over(&reader, axes, x, (out, &mut []), Activation::None)?;
        self.add(&reader, residual, out)
    }

    /// As [`Conv::run_add_over`], with scratch memory right after the output.
    ///
    /// # Errors
    /// As [`Filtered::run`].
    pub fn run_add_with_over<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        axes: [Axis; 2],
        x: impl Into<Source<'a, f32>>,
        residual: impl Into<Source<'a, f32>>,
        out: Slot<f32>,
        scratch: Slot<f32>,
    ) -> Result<()> {
        let (reader, out, scratch) = m.write_with(out, scratch)?;
        let x = reader.read(x.into())?;
        let residual = reader.read(residual.into())?;
        self.compute_over(&reader, axes, x, (out, scratch), Activation::None)?;
        self.add(&reader, residual, out)
    }

    fn add(&self, reader: &Reader<'_>, residual: &[f32], out: &mut [f32]) -> Result<()> {
        let shape = Shape::new(&[out.len()]).map_err(at(self.layer.name))?;
        let (values, other) = ((&mut *out, &shape), (residual, &shape));
        if let Activation::Clamp(low, high) = self.layer.activation {
            let op = AddClamp { low, high };
            return zip_in_place::<_, _, true>(op, values, other, reader.parallel)
                .map_err(at(self.layer.name));
        }
        zip_in_place::<_, _, true>(Add, values, other, reader.parallel)
            .map_err(at(self.layer.name))?;
        self.layer.activation.apply(out, reader.parallel);
        Ok(())
    }
}
