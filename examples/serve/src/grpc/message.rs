//! Messages of TensorFlow Serving's gRPC interface, with the numbers of their fields. Fields that this
//! server does not read are left out: what a client sends in them is skipped.

use std::collections::BTreeMap;

use prost::Message;
use prost::bytes::Bytes;

/// Which model is meant: by name, version and signature.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ModelSpec {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub version: Option<Version>,
    #[prost(string, tag = "3")]
    pub signature_name: String,
    #[prost(string, tag = "4")]
    pub version_label: String,
}

/// A number that may be missing.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Version {
    #[prost(int64, tag = "1")]
    pub value: i64,
}

/// A shape; sizes of -1 are open.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Shape {
    #[prost(message, repeated, tag = "2")]
    pub dims: Vec<Dim>,
    #[prost(bool, tag = "3")]
    pub is_unknown: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Dim {
    #[prost(int64, tag = "1")]
    pub size: i64,
}

/// A dense array: its bytes, or its elements in the list of their type.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Tensor {
    #[prost(int32, tag = "1")]
    pub dtype: i32,
    #[prost(message, optional, tag = "2")]
    pub shape: Option<Shape>,
    #[prost(bytes = "bytes", tag = "4")]
    pub content: Bytes,
    #[prost(float, repeated, tag = "5")]
    pub floats: Vec<f32>,
    #[prost(double, repeated, tag = "6")]
    pub doubles: Vec<f64>,
    #[prost(int32, repeated, tag = "7")]
    pub ints: Vec<i32>,
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub strings: Vec<Vec<u8>>,
    #[prost(int64, repeated, tag = "10")]
    pub int64s: Vec<i64>,
    #[prost(bool, repeated, tag = "11")]
    pub bools: Vec<bool>,
    #[prost(uint32, repeated, tag = "16")]
    pub uint32s: Vec<u32>,
    #[prost(uint64, repeated, tag = "17")]
    pub uint64s: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PredictRequest {
    #[prost(message, optional, tag = "1")]
    pub model: Option<ModelSpec>,
    #[prost(btree_map = "string, message", tag = "2")]
    pub inputs: BTreeMap<String, Tensor>,
    /// The results that are wanted; all if it is empty.
    #[prost(string, repeated, tag = "3")]
    pub outputs: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PredictResponse {
    #[prost(btree_map = "string, message", tag = "1")]
    pub outputs: BTreeMap<String, Tensor>,
    #[prost(message, optional, tag = "2")]
    pub model: Option<ModelSpec>,
}

/// The request of `Classify` and of `Regress`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ExamplesRequest {
    #[prost(message, optional, tag = "1")]
    pub model: Option<ModelSpec>,
    #[prost(message, optional, tag = "2")]
    pub input: Option<Input>,
}

/// Examples, alone or with features that all of them have.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Input {
    #[prost(message, optional, tag = "1")]
    pub examples: Option<Examples>,
    #[prost(message, optional, tag = "2")]
    pub with_context: Option<ExamplesWithContext>,
}

/// Examples as the model parses them: their bytes.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Examples {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub examples: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ExamplesWithContext {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub examples: Vec<Vec<u8>>,
    #[prost(bytes = "vec", tag = "2")]
    pub context: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ClassifyResponse {
    #[prost(message, optional, tag = "1")]
    pub result: Option<Classified>,
    #[prost(message, optional, tag = "2")]
    pub model: Option<ModelSpec>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Classified {
    #[prost(message, repeated, tag = "1")]
    pub rows: Vec<Classes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Classes {
    #[prost(message, repeated, tag = "1")]
    pub classes: Vec<Class>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Class {
    #[prost(string, tag = "1")]
    pub label: String,
    #[prost(float, tag = "2")]
    pub score: f32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RegressResponse {
    #[prost(message, optional, tag = "1")]
    pub result: Option<Regressed>,
    #[prost(message, optional, tag = "2")]
    pub model: Option<ModelSpec>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Regressed {
    #[prost(message, repeated, tag = "1")]
    pub rows: Vec<Value>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Value {
    #[prost(float, tag = "1")]
    pub value: f32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MetadataRequest {
    #[prost(message, optional, tag = "1")]
    pub model: Option<ModelSpec>,
    #[prost(string, repeated, tag = "2")]
    pub fields: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MetadataResponse {
    #[prost(message, optional, tag = "1")]
    pub model: Option<ModelSpec>,
    #[prost(btree_map = "string, message", tag = "2")]
    pub metadata: BTreeMap<String, Any>,
}

/// A message with its type.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Any {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Signatures {
    #[prost(btree_map = "string, message", tag = "1")]
    pub signatures: BTreeMap<String, Signature>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Signature {
    #[prost(btree_map = "string, message", tag = "1")]
    pub inputs: BTreeMap<String, Info>,
    #[prost(btree_map = "string, message", tag = "2")]
    pub outputs: BTreeMap<String, Info>,
    #[prost(string, tag = "3")]
    pub method: String,
}

/// A tensor of a signature.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Info {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(int32, tag = "2")]
    pub dtype: i32,
    #[prost(message, optional, tag = "3")]
    pub shape: Option<Shape>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusRequest {
    #[prost(message, optional, tag = "1")]
    pub model: Option<ModelSpec>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusResponse {
    #[prost(message, repeated, tag = "1")]
    pub versions: Vec<VersionStatus>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct VersionStatus {
    #[prost(int64, tag = "1")]
    pub version: i64,
    #[prost(int32, tag = "2")]
    pub state: i32,
    #[prost(message, optional, tag = "3")]
    pub status: Option<StatusProto>,
}

/// A class of errors and a text; empty for none.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusProto {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
}
