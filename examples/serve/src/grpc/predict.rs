//! `Predict`: tensors by name.

use std::collections::BTreeMap;
use std::time::Instant;

use super::message::{PredictRequest, PredictResponse};
use super::{served, tensor};
use crate::app::App;
use crate::failure::Failure;
use crate::model::{Signature, Spec};
use crate::predict::signature_of;

/// Computes the results of a request.
///
/// # Errors
/// As for the same request over HTTP.
pub(super) async fn predict(
    app: &App,
    mut request: PredictRequest,
    deadline: Instant,
) -> Result<PredictResponse, Failure> {
    let (served, mut model) = served(app, request.model.as_ref())?;
    let signatures = served.model.signatures();
    let (name, signature) = signature_of(signatures, &model.signature_name)?;
    let mut arrays = Vec::new();
    for spec in &signature.inputs {
        let tensor = request.inputs.remove(&spec.name);
        let tensor = tensor.ok_or_else(|| unfit("is missing", &spec.name, &signature.inputs))?;
        let array = tensor::read(tensor, app.options.max_body);
        let named = |failure: Failure| {
            let message = format!("input '{}': {}", spec.name, failure.message);
            Failure::new(failure.status, message)
        };
        let array = array.map_err(named)?;
        spec.check(&array)?;
        arrays.push(array);
    }
    if let Some(name) = request.inputs.keys().next() {
        return Err(unfit("is not one of it", name, &signature.inputs));
    }
    let wanted = wanted(&request.outputs, signature)?;
    let results = app.run(served, name, arrays, deadline).await?;
    let outputs = signature.outputs.iter().zip(results).zip(wanted);
    let outputs = outputs
        .filter(|(_, is_wanted)| *is_wanted)
        .map(|((spec, array), _)| (spec.name.clone(), tensor::write(array)));
    let outputs: BTreeMap<_, _> = outputs.collect();
    name.clone_into(&mut model.signature_name);
    Ok(PredictResponse {
        outputs,
        model: Some(model),
    })
}

/// Which of the results a request names.
fn wanted(names: &[String], signature: &Signature) -> Result<Vec<bool>, Failure> {
    let is_known = |name: &&String| signature.outputs.iter().any(|spec| spec.name == **name);
    if let Some(name) = names.iter().find(|name| !is_known(name)) {
        return Err(unfit(
            "of output_filter is not one of it",
            name,
            &signature.outputs,
        ));
    }
    let is_wanted = |spec: &Spec| names.is_empty() || names.contains(&spec.name);
    Ok(signature.outputs.iter().map(is_wanted).collect())
}

fn unfit(problem: &str, name: &str, there: &[Spec]) -> Failure {
    let there: Vec<&str> = there.iter().map(|spec| spec.name.as_str()).collect();
    let there = there.join(", ");
    Failure::invalid(format!("'{name}' {problem}; the signature has {there}"))
}
