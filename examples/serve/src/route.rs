//! Which request asks for what, and the answers that don't need a model's result.

use crate::failure::{Failure, Status};
use crate::json::write_text;
use crate::model::{LOST, Signature, Spec};

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route<'a> {
    /// Whether the process answers.
    Alive,
    /// Whether requests should be sent here.
    Ready,
    /// The counters.
    Metrics,
    /// The state of a model's version.
    State(Target<'a>),
    /// The signatures of a model.
    Metadata(Target<'a>),
    /// A result.
    Predict(Target<'a>),
}

/// The model that a path names, and its version if it names one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// The model.
    pub model: &'a str,
    /// The version.
    pub version: Option<u64>,
}

/// Reads the method and the path of a request.
///
/// # Errors
/// [`Status::NotFound`] for a path that is not there, [`Status::Method`] for the wrong method, and
/// [`Status::Unimplemented`] for what TensorFlow Serving has besides.
pub fn route<'a>(method: &str, path: &'a str) -> Result<Route<'a>, Failure> {
    let unknown = || {
        Failure::new(
            Status::NotFound,
            format!("Malformed request: {method} {path}"),
        )
    };
    let (path_only, verb) = match path.split_once(':') {
        Some((path, verb)) => (path, Some(verb)),
        None => (path, None),
    };
    let parts: Vec<&str> = path_only.split('/').skip(1).collect();
    let (wanted, route) = match (&parts[..], verb) {
        (["healthz"], None) => ("GET", Route::Alive),
        (["readyz"], None) => ("GET", Route::Ready),
        (["metrics"], None) => ("GET", Route::Metrics),
        (["v1", "models", model, rest @ ..], verb) => {
            let (version, rest) = match rest {
                ["versions", number, rest @ ..] => {
                    (Some(number.parse().map_err(|_| unknown())?), rest)
                }
                rest => (None, rest),
            };
            let target = Target { model, version };
            match (rest, verb) {
                ([], None) => ("GET", Route::State(target)),
                (["metadata"], None) => ("GET", Route::Metadata(target)),
                ([], Some("predict")) => ("POST", Route::Predict(target)),
                ([], Some(verb @ ("classify" | "regress"))) => {
                    return Err(Failure::new(
                        Status::Unimplemented,
                        format!("this server does not have ':{verb}'; ':predict' is there"),
                    ));
                }
                _ => return Err(unknown()),
            }
        }
        _ => return Err(unknown()),
    };
    match method == wanted {
        true => Ok(route),
        false => Err(Failure::new(
            Status::Method,
            format!("{method} {path}: expected {wanted}"),
        )),
    }
}

/// The state of a version that is there, or lost.
#[must_use]
pub fn state(version: u64, is_lost: bool) -> String {
    let (state, code, message) = match is_lost {
        true => ("END", "UNAVAILABLE", LOST),
        false => ("AVAILABLE", "OK", ""),
    };
    format!(
        "{{\"model_version_status\": [{{\"version\": \"{version}\", \"state\": \"{state}\", \
         \"status\": {{\"error_code\": \"{code}\", \"error_message\": \"{message}\"}}}}]}}\n"
    )
}

/// The signatures of a model.
#[must_use]
pub fn metadata<'a>(
    model: &str,
    version: u64,
    signatures: impl Iterator<Item = (&'a String, &'a Signature)>,
) -> String {
    let mut to = "{\"model_spec\": {\"name\": ".to_owned();
    write_text(&mut to, model);
    to.push_str(&format!(
        ", \"signature_name\": \"\", \"version\": \"{version}\"}}, \
         \"metadata\": {{\"signature_def\": {{\"signature_def\": {{"
    ));
    for (at, (name, signature)) in signatures.enumerate() {
        to.push_str(if at > 0 { ", " } else { "" });
        write_text(&mut to, name);
        to.push_str(": {\"inputs\": ");
        tensors(&mut to, &signature.inputs);
        to.push_str(", \"outputs\": ");
        tensors(&mut to, &signature.outputs);
        to.push_str(", \"method_name\": ");
        write_text(&mut to, &signature.method);
        to.push('}');
    }
    to.push_str("}}}}\n");
    to
}

fn tensors(to: &mut String, specs: &[Spec]) {
    to.push('{');
    for (at, spec) in specs.iter().enumerate() {
        to.push_str(if at > 0 { ", " } else { "" });
        write_text(to, &spec.name);
        to.push_str(": {\"dtype\": ");
        write_text(to, &spec.dtype);
        to.push_str(", \"tensor_shape\": {\"dim\": [");
        for (at, size) in spec.dims.iter().flatten().enumerate() {
            to.push_str(if at > 0 { ", " } else { "" });
            to.push_str(&format!("{{\"size\": \"{size}\", \"name\": \"\"}}"));
        }
        let unknown = spec.dims.is_none();
        to.push_str(&format!("], \"unknown_rank\": {unknown}}}, \"name\": "));
        write_text(to, &spec.tensor);
        to.push('}');
    }
    to.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;

    fn target(model: &str, version: Option<u64>) -> Target<'_> {
        Target { model, version }
    }

    #[test]
    fn paths_are_those_of_tensorflow_serving() {
        for (method, path, expected) in [
            ("GET", "/v1/models/m", Route::State(target("m", None))),
            (
                "GET",
                "/v1/models/m/versions/3",
                Route::State(target("m", Some(3))),
            ),
            (
                "GET",
                "/v1/models/m/metadata",
                Route::Metadata(target("m", None)),
            ),
            (
                "GET",
                "/v1/models/m/versions/3/metadata",
                Route::Metadata(target("m", Some(3))),
            ),
            (
                "POST",
                "/v1/models/m:predict",
                Route::Predict(target("m", None)),
            ),
            (
                "POST",
                "/v1/models/m/versions/3:predict",
                Route::Predict(target("m", Some(3))),
            ),
            ("GET", "/healthz", Route::Alive),
            ("GET", "/readyz", Route::Ready),
            ("GET", "/metrics", Route::Metrics),
        ] {
            assert_eq!(route(method, path), Ok(expected), "{path}");
        }
    }

    #[test]
    fn other_paths_have_their_status() {
        for (method, path, status) in [
            ("GET", "/", Status::NotFound),
            ("GET", "/v1/models", Status::NotFound),
            ("GET", "/v1/models/m/more", Status::NotFound),
            ("GET", "/v1/models/m/versions/x", Status::NotFound),
            ("POST", "/v1/models/m:other", Status::NotFound),
            ("POST", "/v1/models/m/metadata:predict", Status::NotFound),
            ("POST", "/v1/models/m:classify", Status::Unimplemented),
            ("GET", "/v1/models/m:predict", Status::Method),
            ("POST", "/v1/models/m", Status::Method),
        ] {
            assert_eq!(route(method, path).unwrap_err().status, status, "{path}");
        }
    }

    #[test]
    fn metadata_is_json() {
        let spec = |dims| Spec {
            name: "x".into(),
            tensor: "call_x:0".into(),
            dtype: "DT_FLOAT".into(),
            dims,
        };
        let signature = Signature {
            inputs: vec![spec(Some(vec![-1, 2]))],
            outputs: vec![spec(None)],
            method: "tensorflow/serving/predict".into(),
        };
        let all = [
            ("a".to_owned(), signature.clone()),
            ("b\"".to_owned(), signature),
        ];
        let text = metadata(
            "m",
            7,
            all.iter().map(|(name, signature)| (name, signature)),
        );
        let json = Json::parse(&text).unwrap();
        let defs = ["metadata", "signature_def", "signature_def"];
        let defs = defs.iter().try_fold(&json, |json, name| json.get(name));
        let mut path = ["b\"", "inputs", "x", "tensor_shape"].iter();
        let shape = path.try_fold(defs.unwrap(), |json, name| json.get(name));
        let shape = shape.unwrap();
        assert_eq!(shape.get("unknown_rank"), Some(&Json::Bool(false)));
        assert!(matches!(shape.get("dim"), Some(Json::List(dims)) if dims.len() == 2));
        for (is_lost, expected) in [(false, "AVAILABLE"), (true, "END")] {
            let text = state(7, is_lost);
            assert!(
                Json::parse(&text).is_ok() && text.contains(expected),
                "{text}"
            );
        }
    }
}
