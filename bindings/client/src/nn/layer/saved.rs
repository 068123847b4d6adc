//! A function of a loaded SavedModel as a layer.

use tfp_core::{Error, Result, Shape, Value};

use super::{Built, BuiltMany, Layer, only};
use crate::context::any::AnyContext;
use crate::nn::Weights;
use crate::nn::policy::as_type;
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
        only(self.build_many(weights, &[input])?)
    }

    fn build_many(&self, weights: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        for (_, variable) in &self.variables {
            let own = variable.handle().handle()?.context();
            if !matches!(weights.context(), AnyContext::Eager(cx) if cx.is_same(&own)) {
                return Err(Error::argument(
                    "a SavedModel's layer is built in the eager context into which the model was loaded",
                ));
            }
        }
        let shapes: Vec<Shape> = inputs
            .iter()
            .map(|input| Shape::from(&[&[-1], *input].concat()))
            .collect();
        let known = |function: &ModelFunction| -> Result<(ModelFunction, Vec<Spec>)> {
            Ok((function.clone(), function.results_of(&shapes)?.to_vec()))
        };
        let predicts = known(&self.predicts)?;
        let trains = self.trains.as_ref().map(known).transpose()?;
        let outputs = predicts.1.iter();
        let outputs = outputs.map(|spec| without_batch(&self.predicts, spec));
        let outputs = outputs.collect::<Result<_>>()?;
        let weights = weights.layer("saved_model");
        for (path, variable) in &self.variables {
            weights.adopt(path, variable)?;
        }
        BuiltMany::new(outputs, move |pass, inputs| {
            let (function, specs) = match &trains {
                Some(trains) if pass.is_training() && !weights.is_frozen() => trains,
                _ => &predicts,
            };
            let cx = pass.context();
            // The model has types of its own.
            let given = inputs.iter().zip(function.inputs());
            let given =
                given.map(
                    |(x, spec)| match x.dtype().is_float() && spec.dtype.is_float() {
                        true => as_type(cx, x, spec.dtype),
                        false => Ok(x.clone()),
                    },
                );
            let given = given.collect::<Result<Vec<_>>>()?;
            let results = function.call(cx, &given)?.into_iter();
            let told = results.zip(specs).map(|(result, spec)| {
                // A call inside of a function does not know the ranks of its results.
                match Value::shape(&result)?.dims() {
                    Some(_) => Ok(result),
                    None => ops::ensure_shape(pass.context(), result, &spec.shape),
                }
            });
            told.collect()
        })
    }

    fn casts(&self) -> bool {
        false
    }
}
