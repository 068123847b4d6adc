//! A server of models over HTTP and gRPC, with the interfaces of TensorFlow Serving.
//!
//! It knows [`Model`](model::Model)s and nothing of TensorFlow: `saved_model.rs` serves SavedModels, and
//! `mnist.rs` a crate of tf2rust.
#![deny(missing_docs, unsafe_code)]

pub mod app;
pub mod array;
pub mod batch;
pub mod failure;
mod grpc;
pub mod http;
pub mod json;
mod leaf;
pub mod metrics;
pub mod model;
pub mod options;
pub mod predict;
pub mod renewed;
pub mod route;
