//! A function of a loaded SavedModel as a layer.

use tfp_core::{Error, ErrorKind, Result, Shape, Value};

use super::{Built, BuiltMany, Layer, one_input};
use crate::context::any::AnyContext;
use crate::nn::Weights;
use crate::ops;
use crate::saved_model::{Model, ModelFunction, Spec};
use crate::variable::Variable;

/// A function of a SavedModel as a layer, as Keras' `TFSMLayer`. The model's variables are the layer's, so
/// that training changes them, unless they are frozen, and [`Model::save`] writes what they became.
///
/// It is built in the eager context of the model.
///
/// ```no_run
/// use tfp::nn::Weights;
/// use tfp::nn::layer::{Dense, SavedLayer, Sequential};
///
/// # fn main() -> tfp::Result<()> {
/// let cx = tfp::EagerContext::new()?;
/// let base = tfp::Model::load(&cx, "base", &["serve"])?;
/// let base = SavedLayer::new(&base, base.function("serve")?);
/// let weights = Weights::new(&cx, 0);
/// let model = Sequential::new(&weights, &[224, 224, 3], &[&base, &Dense::new(10)])?;
/// # let _ = model;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SavedLayer {
    predicts: ModelFunction,
    trains: Option<ModelFunction>,
    variables: Vec<(String, Variable)>,
}

impl SavedLayer {
    /// Makes a layer of a model and one of its functions or signatures.
    #[must_use]
    pub fn new(model: &Model, function: ModelFunction) -> Self {
        let variables = model.variables();
        Self {
            predicts: function,
            trains: None,
            variables: variables
                .map(|(path, variable)| (path.to_owned(), variable.clone()))
                .collect(),
        }
    }

    /// Takes another function while the layer trains and is not frozen, such as a body that Python traced
    /// with `training=True`; see [`ModelFunction::with`].
    #[must_use]
    pub fn training(mut self, function: ModelFunction) -> Self {
        self.trains = Some(function);
        self
    }

    /// Refuses inputs that a function does not take.
    fn check(function: &ModelFunction, inputs: &[&[i64]]) -> Result<()> {
        let wanted = function.inputs();
        if wanted.len() != inputs.len() {
            return Err(Error::argument(format!(
                "function '{}' takes {} inputs, found {}",
                function.name(),
                wanted.len(),
                inputs.len()
            )));
        }
        for (spec, input) in wanted.iter().zip(inputs) {
            let whole: Vec<i64> = [-1].iter().chain(*input).copied().collect();
            if !may_be(&spec.shape, &whole) {
                return Err(Error::new(ErrorKind::Shape {
                    what: format!("input '{}' of function '{}'", spec.name, function.name()),
                    expected: spec.shape.to_string(),
                    found: Shape::from(&whole),
                }));
            }
        }
        Ok(())
    }
}

/// Whether tensors of a shape, in which -1 is any size, can have another one.
fn may_be(shape: &Shape, whole: &[i64]) -> bool {
    shape.dims().is_none_or(|dims| {
        let mut both = dims.iter().zip(whole);
        dims.len() == whole.len() && both.all(|(a, b)| *a < 0 || *b < 0 || a == b)
    })
}

/// The shape of a result without the batch.
fn without_batch(function: &ModelFunction, spec: &Spec) -> Result<Vec<i64>> {
    match spec.shape.dims() {
        Some([_, rest @ ..]) => Ok(rest.to_vec()),
        _ => Err(Error::argument(format!(
            "result '{}' of function '{}' has shape {}; a layer's result has a batch and a known rank",
            spec.name,
            function.name(),
            spec.shape
        ))),
    }
}

impl Layer for SavedLayer {
    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let many = self.build_many(weights, &[input])?;
        let [output] = many.outputs.as_slice() else {
            return Err(Error::argument(format!(
                "function '{}' has {} results; call it as a layer of several",
                self.predicts.name(),
                many.outputs.len()
            )));
        };
        let output = output.clone();
        Built::new(output, move |pass, x| {
            let mut results = (many.forward)(pass, std::slice::from_ref(x))?;
            match results.len() {
                1 => Ok(results.remove(0)),
                count => Err(one_input("the layer", count)),
            }
        })
    }

    fn build_many(&self, weights: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        if !matches!(weights.context(), AnyContext::Eager(_)) {
            return Err(Error::argument(
                "a SavedModel's layer is built in the eager context into which the model was loaded",
            ));
        }
        let functions = [Some(&self.predicts), self.trains.as_ref()];
        for function in functions.into_iter().flatten() {
            Self::check(function, inputs)?;
        }
        let weights = weights.layer("saved_model");
        for (path, variable) in &self.variables {
            weights.adopt(path, variable)?;
        }
        let specs = self.predicts.outputs().iter();
        let outputs = specs.map(|spec| without_batch(&self.predicts, spec));
        let (predicts, trains) = (self.predicts.clone(), self.trains.clone());
        BuiltMany::new(outputs.collect::<Result<_>>()?, move |pass, inputs| {
            let function = match &trains {
                Some(trains) if pass.is_training() && !weights.is_frozen() => trains,
                _ => &predicts,
            };
            let results = function.call(pass.context(), inputs)?.into_iter();
            let told = results.zip(function.outputs()).map(|(result, spec)| {
                // A call inside of a function does not know the ranks of its results.
                match Value::shape(&result)?.dims() {
                    Some(_) => Ok(result),
                    None => ops::ensure_shape(pass.context(), result, &spec.shape),
                }
            });
            told.collect()
        })
    }
}
