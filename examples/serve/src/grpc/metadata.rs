//! `GetModelMetadata` and `GetModelStatus`.

use prost::Message;
use tonic::Code;

use super::message::{
    Any, Info, MetadataRequest, MetadataResponse, Signature, Signatures, StatusProto,
    StatusRequest, StatusResponse, VersionStatus,
};
use super::{served, tensor};
use crate::app::App;
use crate::failure::Failure;
use crate::model::{self, LOST, Spec};

/// The one kind of metadata that there is.
const SIGNATURES: &str = "signature_def";
/// The state of a version that answers.
const AVAILABLE: i32 = 30;
/// The state of a version that can't any more.
const END: i32 = 50;

/// The signatures of a model.
///
/// # Errors
/// [`Status::NotFound`](crate::failure::Status::NotFound) for a model that is not there, and
/// [`Status::Invalid`](crate::failure::Status::Invalid) for other kinds of metadata.
pub(super) fn metadata(app: &App, request: &MetadataRequest) -> Result<MetadataResponse, Failure> {
    let (served, model) = served(app, request.model.as_ref())?;
    if request.fields.is_empty() {
        return Err(Failure::invalid(format!(
            "metadata_field is empty, expected '{SIGNATURES}'"
        )));
    }
    if let Some(field) = request.fields.iter().find(|field| *field != SIGNATURES) {
        return Err(Failure::invalid(format!(
            "metadata_field '{field}', expected '{SIGNATURES}'"
        )));
    }
    let all = served.model.signatures().iter();
    let all = all.map(|(name, signature)| (name.clone(), written(signature)));
    let any = Any {
        type_url: "type.googleapis.com/tensorflow.serving.SignatureDefMap".to_owned(),
        value: Signatures {
            signatures: all.collect(),
        }
        .encode_to_vec(),
    };
    Ok(MetadataResponse {
        model: Some(model),
        metadata: [(SIGNATURES.to_owned(), any)].into(),
    })
}

fn written(signature: &model::Signature) -> Signature {
    let info = |spec: &Spec| {
        let info = Info {
            name: spec.tensor.clone(),
            dtype: tensor::number(&spec.dtype),
            shape: Some(tensor::shape(spec.dims.as_deref())),
        };
        (spec.name.clone(), info)
    };
    Signature {
        inputs: signature.inputs.iter().map(info).collect(),
        outputs: signature.outputs.iter().map(info).collect(),
        method: signature.method.clone(),
    }
}

/// The state of the version that is served.
///
/// # Errors
/// [`Status::NotFound`](crate::failure::Status::NotFound) for a model that is not there.
pub(super) fn status(app: &App, request: &StatusRequest) -> Result<StatusResponse, Failure> {
    let (served, _) = served(app, request.model.as_ref())?;
    let (state, status) = match served.model.is_lost() {
        true => {
            let (code, message) = (Code::Unavailable as i32, LOST.to_owned());
            (END, StatusProto { code, message })
        }
        false => (AVAILABLE, StatusProto::default()),
    };
    let version = VersionStatus {
        version: served.version as i64,
        state,
        status: Some(status),
    };
    Ok(StatusResponse {
        versions: vec![version],
    })
}
