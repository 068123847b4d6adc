//! SavedModels: a graph, a session with its variables, and signatures.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use super::{RawOptions, Session, SessionOptions};
use crate::attr::proto::read_shape;
use crate::attr::set::c_int_len;
use crate::base::api::{Status, c_string};
use crate::base::buffer::OutBuffer;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::shape::Shape;
use crate::graph::Graph;
use crate::graph::def::GraphDef;
use crate::graph::operation::Output;
use crate::graph::untrusted::check_graph_def;
use crate::tensor::Tensor;
use tfp_wire::DataType;
use tfp_wire::Reader;

/// A loaded SavedModel.
#[derive(Debug)]
pub struct SavedModel {
    /// The session, in which variables have the values of the model.
    pub session: Session,
    /// What can be called, by name.
    pub signatures: BTreeMap<String, Signature>,
    /// The serialized `MetaGraphDef`.
    pub meta_graph_def: Vec<u8>,
}

/// A way to call a model: tensors of its graph by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signature {
    /// Arguments.
    pub inputs: BTreeMap<String, TensorInfo>,
    /// Results.
    pub outputs: BTreeMap<String, TensorInfo>,
    /// What the signature is for, as `tensorflow/serving/predict`.
    pub method: String,
}

/// A tensor of a signature.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TensorInfo {
    /// The name in the graph, as `operation:0`; empty for a sparse or composite tensor.
    pub name: String,
    /// The element type; `None` when the model does not say.
    pub dtype: Option<DataType>,
    /// What is known of the shape.
    pub shape: Shape,
}

impl SavedModel {
    /// Loads the part of a model that has all the tags, as `["serve"]`.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for a folder that does not exist, [`ErrorKind::File`] for graphs that
    /// [`check_graph_def`] refuses, and TensorFlow's status for a model that is damaged or has no such part.
    pub fn load(folder: impl AsRef<Path>, tags: &[&str], options: &SessionOptions) -> Result<Self> {
        let folder = folder.as_ref();
        if !folder.is_dir() {
            let name = folder.display().to_string();
            return Err(Error::not_found("SavedModel", name, "the file system"));
        }
        let place = format!("SavedModel '{}'", folder.display());
        let file = folder.join("saved_model.pb");
        check_model(&file).map_err(|error| {
            Error::new(ErrorKind::File {
                path: file.display().to_string(),
                problem: error.to_string(),
            })
        })?;
        let folder = CString::new(folder.as_os_str().as_bytes())?;
        let graph = Graph::new()?;
        graph.inner.lock().others_named();
        let api = graph.inner.api;
        let options = RawOptions::new(options, api)?;
        let (status, meta) = (Status::new(api)?, OutBuffer::new(api)?);
        let tags: Vec<CString> = tags
            .iter()
            .map(|tag| c_string(tag))
            .collect::<Result<_>>()?;
        let tags: Vec<*const c_char> = tags.iter().map(|tag| tag.as_ptr()).collect();
        let tag_count = c_int_len(tags.len())?;
        // SAFETY: graph, options, buffer and status are alive, names are C strings, and the graph is
        // new, as the function demands.
        let session = graph.inner.fence.call(|| unsafe {
            api.c_api.TF_LoadSessionFromSavedModel(
                options.0,
                ptr::null(),
                folder.as_ptr(),
                tags.as_ptr(),
                tag_count,
                graph.inner.as_ptr(),
                meta.as_ptr(),
                status.as_ptr(),
            )
        })?;
        status.check().map_err(|error| error.in_op(&place))?;
        // SAFETY: the session is new and on this graph.
        let session = unsafe { Session::from_owned_ptr(session, &graph)? };
        let meta_graph_def = meta.as_slice().to_vec();
        for field in Reader::new("MetaGraphDef", &meta_graph_def) {
            if let (2, graph_def) = field? {
                let sharing = GraphDef::read(graph_def.bytes()?)?.sharing();
                graph.inner.shares(sharing);
            }
        }
        let signatures = read_signatures(&meta_graph_def)?;
        Ok(Self {
            session,
            signatures,
            meta_graph_def,
        })
    }

    /// Returns a signature.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound), with the names that there are.
    pub fn signature(&self, name: &str) -> Result<&Signature> {
        self.signatures.get(name).ok_or_else(|| {
            Error::not_found(
                "signature",
                name,
                listing("the model", self.signatures.keys()),
            )
        })
    }

    /// Returns the tensor of the graph that a signature names.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) when the graph does not have it.
    pub fn output(&self, info: &TensorInfo) -> Result<Output> {
        self.session.graph().output(&info.name)
    }

    /// Calls a signature with named tensors.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) for a signature or name that does not
    /// exist, [`ErrorKind::Argument`](crate::ErrorKind::Argument) for one that is missing, and as for
    /// [`Run::go`](super::Run::go).
    pub fn call(
        &self,
        signature: &str,
        arguments: &[(&str, &Tensor)],
    ) -> Result<BTreeMap<String, Tensor>> {
        let signature_name = signature;
        let signature = self.signature(signature)?;
        let mut feeds = Vec::new();
        for (name, tensor) in arguments {
            let info = signature.inputs.get(*name).ok_or_else(|| {
                let place = listing(
                    &format!("signature '{signature_name}'"),
                    signature.inputs.keys(),
                );
                Error::not_found("input", *name, place)
            })?;
            feeds.push((self.output(info)?, *tensor));
        }
        if let Some(missing) = signature
            .inputs
            .keys()
            .find(|name| arguments.iter().all(|(given, _)| given != name))
        {
            return Err(Error::argument(format!(
                "input '{missing}' of signature '{signature_name}' is not given"
            )));
        }
        let fetches: Vec<Output> = signature
            .outputs
            .values()
            .map(|info| self.output(info))
            .collect::<Result<_>>()?;
        let feeds: Vec<_> = feeds
            .iter()
            .map(|(output, tensor)| (output, *tensor))
            .collect();
        let tensors = self
            .session
            .eval(&feeds, &fetches.iter().collect::<Vec<_>>())?;
        Ok(signature.outputs.keys().cloned().zip(tensors).collect())
    }
}

fn listing<'a>(place: &str, names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<&str> = names.map(String::as_str).collect();
    format!(
        "{place}, which has {}",
        if names.is_empty() {
            "none".into()
        } else {
            names.join(", ")
        }
    )
}

/// Checks the graphs of a model; what can't be read, or is text, is left to TensorFlow.
fn check_model(path: &Path) -> Result<()> {
    let Ok(bytes) = std::fs::read(path) else {
        return Ok(());
    };
    for field in Reader::new("SavedModel", &bytes) {
        let (2, meta_graph) = field? else { continue };
        for field in Reader::new("MetaGraphDef", meta_graph.bytes()?) {
            if let (2, graph_def) = field? {
                check_graph_def(graph_def.bytes()?)?;
            }
        }
    }
    Ok(())
}

/// Reads the signatures of a `MetaGraphDef`.
fn read_signatures(bytes: &[u8]) -> Result<BTreeMap<String, Signature>> {
    let mut signatures = BTreeMap::new();
    for field in Reader::new("MetaGraphDef", bytes) {
        if let (5, entry) = field? {
            let (name, value) = read_entry(entry.bytes()?)?;
            signatures.insert(name, read_signature(value)?);
        }
    }
    Ok(signatures)
}

fn read_signature(bytes: &[u8]) -> Result<Signature> {
    let mut signature = Signature::default();
    for field in Reader::new("SignatureDef", bytes) {
        match field? {
            (number @ (1 | 2), entry) => {
                let (name, value) = read_entry(entry.bytes()?)?;
                let list = if number == 1 {
                    &mut signature.inputs
                } else {
                    &mut signature.outputs
                };
                list.insert(name, read_tensor_info(value)?);
            }
            (3, method) => signature.method = method.text()?.to_owned(),
            _ => {}
        }
    }
    Ok(signature)
}

fn read_tensor_info(bytes: &[u8]) -> Result<TensorInfo> {
    let mut info = TensorInfo::default();
    for field in Reader::new("TensorInfo", bytes) {
        match field? {
            (1, name) => info.name = name.text()?.to_owned(),
            (2, dtype) => {
                info.dtype = u32::try_from(dtype.int()?).ok().map(DataType::from_number);
            }
            (3, shape) => info.shape = read_shape(shape.bytes()?)?,
            _ => {}
        }
    }
    Ok(info)
}

/// Reads an entry of a map from names to messages.
fn read_entry(bytes: &[u8]) -> Result<(String, &[u8])> {
    let (mut name, mut value) = (String::new(), &[][..]);
    for field in Reader::new("map entry", bytes) {
        match field? {
            (1, field) => name = field.text()?.to_owned(),
            (2, field) => value = field.bytes()?,
            _ => {}
        }
    }
    Ok((name, value))
}
