//! Layers of a file: those with values of their own, and models in models.

use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use tfp_core::{DataType, Error, Result, Tensor};

use crate::formats::hdf5::Datasets;
use crate::nn::Weights;
use crate::nn::keras::described::Described;
use crate::nn::keras::layers::Fixed;
use crate::nn::layer::described::{Arguments, KerasLayer};
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

    fn casts(&self) -> bool {
        self.layer.casts()
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
struct Loaded {
    layer: SharedLayer<Fixed>,
    reversed: Option<Box<dyn Layer>>,
    values: Mutex<Option<Vec<Tensor>>>,
}

/// One of the two ways of such a layer.
pub(super) struct Way {
    loaded: Rc<Loaded>,
    is_back: bool,
}

impl Way {
    /// The layer, and the layer on its way back if it has one.
    pub(super) fn all(
        keras: KerasLayer,
        described: Described,
        datasets: &Datasets<'_>,
    ) -> Result<(Self, Option<Self>)> {
        let Described {
            layer,
            places,
            reversed,
            ..
        } = described;
        let values = places.iter().map(|place| float(datasets.read(place)?));
        let values = values.collect::<Result<_>>()?;
        let has_back = reversed.is_some();
        let loaded = Rc::new(Loaded {
            layer: SharedLayer::new(Fixed { layer, keras }),
            reversed,
            values: Mutex::new(Some(values)),
        });
        let way = |is_back| Self {
            loaded: loaded.clone(),
            is_back,
        };
        Ok((way(false), has_back.then(|| way(true))))
    }

    /// The layer on its way back, if this is that way.
    fn back(&self) -> Option<&dyn Layer> {
        let back = self.loaded.reversed.as_deref();
        back.filter(|_| self.is_back)
    }
}

impl Loaded {
    fn with<T>(&self, weights: &Weights, build: impl FnOnce(&Weights) -> Result<T>) -> Result<T> {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
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

impl Layer for Way {
    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let layer = &self.loaded.layer;
        self.loaded.with(weights, |weights| match self.back() {
            Some(back) => layer.share(weights, |weights| back.build(weights, input)),
            None => layer.build(weights, input),
        })
    }

    fn build_many(&self, weights: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        let layer = &self.loaded.layer;
        self.loaded.with(weights, |weights| match self.back() {
            Some(back) => layer.share(weights, |weights| back.build_many(weights, inputs)),
            None => layer.build_many(weights, inputs),
        })
    }

    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        let layer = self.loaded.layer.keras(inputs)?;
        Ok(match self.is_back {
            true => layer.call(Arguments::Reversed),
            false => layer,
        })
    }

    fn kind(&self) -> String {
        self.loaded.layer.kind()
    }

    fn casts(&self) -> bool {
        self.loaded.layer.casts()
    }
}
