//! `Classify` and `Regress`: signatures that parse examples.

use std::time::Instant;

use super::message::{
    Class, Classes, Classified, ClassifyResponse, ExamplesRequest, Input, ModelSpec,
    RegressResponse, Regressed, Value,
};
use super::served;
use crate::app::App;
use crate::array::{Array, Data};
use crate::failure::{Failure, Status};
use crate::predict::signature_of;

/// Classes and scores of each example.
///
/// # Errors
/// [`Status::Invalid`] for a signature of another kind, and as for `Predict`.
pub(super) async fn classify(
    app: &App,
    request: ExamplesRequest,
    deadline: Instant,
) -> Result<ClassifyResponse, Failure> {
    let method = "tensorflow/serving/classify";
    let computed = compute(app, request, method, deadline).await?;
    let labels = computed.output("classes")?;
    let scores = computed.output("scores")?;
    let count = |array: &Array| columns(array, computed.rows);
    let wide = [
        labels.map(count).transpose()?,
        scores.map(count).transpose()?,
    ];
    let width = match wide {
        [Some(labels), Some(scores)] if labels == scores => labels,
        [Some(one), None] | [None, Some(one)] => one,
        _ => return Err(broken("as many classes as scores")),
    };
    let mut rows = Vec::with_capacity(computed.rows);
    for row in 0..computed.rows {
        let mut classes = Vec::with_capacity(width);
        for at in row * width..(row + 1) * width {
            let label = labels.map(|labels| text(labels, at)).transpose()?;
            let score = scores.map(|scores| float(scores, at)).transpose()?;
            classes.push(Class {
                label: label.unwrap_or_default(),
                score: score.unwrap_or_default(),
            });
        }
        rows.push(Classes { classes });
    }
    Ok(ClassifyResponse {
        result: Some(Classified { rows }),
        model: Some(computed.model),
    })
}

/// A number for each example.
///
/// # Errors
/// As for [`classify`].
pub(super) async fn regress(
    app: &App,
    request: ExamplesRequest,
    deadline: Instant,
) -> Result<RegressResponse, Failure> {
    let method = "tensorflow/serving/regress";
    let computed = compute(app, request, method, deadline).await?;
    let outputs = computed.output("outputs")?;
    let outputs = outputs.ok_or_else(|| broken("a result 'outputs'"))?;
    if columns(outputs, computed.rows)? != 1 {
        return Err(broken("a number for each example"));
    }
    let value = |at| float(outputs, at).map(|value| Value { value });
    let rows = (0..computed.rows).map(value).collect::<Result<_, _>>()?;
    Ok(RegressResponse {
        result: Some(Regressed { rows }),
        model: Some(computed.model),
    })
}

struct Computed {
    results: Vec<(String, Array)>,
    rows: usize,
    model: ModelSpec,
}

impl Computed {
    /// The result of a name, if the signature has it.
    fn output(&self, name: &str) -> Result<Option<&Array>, Failure> {
        let found = self.results.iter().find(|(known, _)| known == name);
        let found = found.map(|(_, array)| array);
        match found.is_some_and(|array| array.rows() != Some(self.rows)) {
            true => Err(broken("a row for each example")),
            false => Ok(found),
        }
    }
}

async fn compute(
    app: &App,
    request: ExamplesRequest,
    method: &str,
    deadline: Instant,
) -> Result<Computed, Failure> {
    let (served, mut model) = served(app, request.model.as_ref())?;
    let signatures = served.model.signatures();
    let (name, signature) = signature_of(signatures, &model.signature_name)?;
    let [input] = &signature.inputs[..] else {
        return Err(unfit(name, &signature.method, method));
    };
    if signature.method != method || input.dtype != "DT_STRING" {
        return Err(unfit(name, &signature.method, method));
    }
    let examples = examples(request.input.unwrap_or_default())?;
    let rows = examples.len();
    let array = Array::new(vec![rows], Data::Bytes(examples))?;
    input.check(&array)?;
    let results = app.run(served, name, vec![array], deadline).await?;
    let names = signature.outputs.iter().map(|spec| spec.name.clone());
    name.clone_into(&mut model.signature_name);
    Ok(Computed {
        results: names.zip(results).collect(),
        rows,
        model,
    })
}

/// The bytes of the examples of a request.
fn examples(input: Input) -> Result<Vec<Vec<u8>>, Failure> {
    let examples = match (input.examples, input.with_context) {
        (Some(alone), None) => alone.examples,
        // Messages behind each other are one with the features of both; those of the example win.
        (None, Some(all)) => {
            let merged = all.examples.iter();
            let merged = merged.map(|example| [&all.context[..], example].concat());
            merged.collect()
        }
        _ => Vec::new(),
    };
    match examples.is_empty() {
        true => Err(Failure::invalid("the input has no example")),
        false => Ok(examples),
    }
}

/// How many values a row has; results of one axis have one.
fn columns(array: &Array, rows: usize) -> Result<usize, Failure> {
    let values = array.data.len();
    let is_even = array.dims.len() <= 2 && rows > 0 && values.is_multiple_of(rows);
    let unfit = || broken("results of one or two axes");
    is_even.then(|| values / rows).ok_or_else(unfit)
}

fn float(array: &Array, at: usize) -> Result<f32, Failure> {
    match &array.data {
        Data::F32(list) => Ok(list[at]),
        Data::F64(list) => Ok(list[at] as f32),
        _ => Err(broken("numbers of DT_FLOAT")),
    }
}

fn text(array: &Array, at: usize) -> Result<String, Failure> {
    match &array.data {
        Data::Bytes(list) => Ok(String::from_utf8_lossy(&list[at]).into_owned()),
        _ => Err(broken("classes of DT_STRING")),
    }
}

fn broken(expected: &str) -> Failure {
    let message = format!("the model's results don't fit its signature, expected {expected}");
    Failure::new(Status::Internal, message)
}

fn unfit(name: &str, method: &str, expected: &str) -> Failure {
    Failure::invalid(format!(
        "signature '{name}' is one of {method}, expected {expected} with one input of DT_STRING"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::message::{Examples, ExamplesWithContext};
    use super::*;

    #[test]
    fn a_context_is_a_part_of_each_example() {
        let with_context = Some(ExamplesWithContext {
            examples: vec![b"a".to_vec(), b"b".to_vec()],
            context: b"+".to_vec(),
        });
        let input = Input {
            examples: None,
            with_context,
        };
        assert_eq!(examples(input), Ok(vec![b"+a".to_vec(), b"+b".to_vec()]));
        let alone = Some(Examples {
            examples: vec![b"a".to_vec()],
        });
        let input = Input {
            examples: alone,
            with_context: None,
        };
        assert_eq!(examples(input), Ok(vec![b"a".to_vec()]));
        assert!(examples(Input::default()).is_err());
    }
}
