//! Layers of a file: those with values of their own, and models in models.

use tfp_core::{DataType, Error, Result, Tensor};

use crate::formats::hdf5::Datasets;
use crate::nn::Weights;
use crate::nn::keras::described::Described;
use crate::nn::keras::layers::Fixed;
use crate::nn::layer::described::KerasLayer;
use crate::nn::layer::{Built, BuiltMany, Layer, SharedLayer};

/// A layer with the name that the file gives it: a model in another, or a layer around one.
pub(super) struct Named<L> {
    pub(super) layer: L,
    pub(super) name: String,
}

impl<L: Layer> Layer for Named<L> {
    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        self.layer.build(weights, input)
    }

    fn build_many(&self, weights: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        self.layer.build_many(weights, inputs)
    }

    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        let name = Some(self.name.clone());
        let layer = self.layer.keras(inputs)?;
        Ok(KerasLayer { name, ..layer })
    }

    fn kind(&self) -> String {
        self.layer.kind()
    }
}

/// The values of a variable. Those of a count are integers in the file.
fn float(values: Tensor) -> Result<Tensor> {
    if values.dtype() != DataType::INT64 {
        return Ok(values);
    }
    let floats = values.as_slice::<i64>()?.iter().map(|&value| value as f32);
    Tensor::from_vec(floats.collect::<Vec<_>>(), values.dims())
}

/// A layer whose variables have the values of a file.
pub(super) struct Loaded {
    layer: SharedLayer<Fixed>,
    values: std::sync::Mutex<Option<Vec<Tensor>>>,
}

impl Loaded {
    pub(super) fn new(
        keras: KerasLayer,
        described: Described,
        datasets: &Datasets<'_>,
    ) -> Result<Self> {
        let Described { layer, places, .. } = described;
        let values = places.iter().map(|place| float(datasets.read(place)?));
        let values = values.collect::<Result<_>>()?;
        Ok(Self {
            layer: SharedLayer::new(Fixed { layer, keras }),
            values: std::sync::Mutex::new(Some(values)),
        })
    }

    fn with<T>(&self, weights: &Weights, build: impl FnOnce(&Weights) -> Result<T>) -> Result<T> {
        let mut values = self
            .values
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // Further calls take the variables of the first one.
        let Some(values) = values.take() else {
            return build(weights);
        };
        let given = weights.given(values);
        let built = build(&given)?;
        match given.left() {
            0 => Ok(built),
            left => Err(Error::argument(format!(
                "the file has {left} values more than the layer has variables"
            ))),
        }
    }
}

impl Layer for Loaded {
    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        self.with(weights, |weights| self.layer.build(weights, input))
    }

    fn build_many(&self, weights: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        self.with(weights, |weights| self.layer.build_many(weights, inputs))
    }

    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        self.layer.keras(inputs)
    }

    fn kind(&self) -> String {
        self.layer.kind()
    }
}
