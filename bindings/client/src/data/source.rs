//! What is behind a dataset, and which of it fails: files and iterators of Rust.

use std::sync::Arc;

use tfp_core::{Code, Context, Error, ErrorKind, Result};

use super::csv::Csv;
use super::iterated::Source;
use super::record::RecordReader;
use crate::context::any::AnyContext;
use crate::files::file_error;
use crate::ops;

/// What some files are read as. Without paths, they are those that another dataset names.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub kind: Kind,
    pub paths: Vec<String>,
    /// Whether the bytes are compressed, which only TensorFlow reads.
    pub is_packed: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// The elements are the paths.
    Names,
    Records,
    Csv(Csv),
    /// Decoded with so many channels.
    Images(i64),
    /// An iterator, whose errors are its own.
    Rust(Arc<Source>),
}

/// The origins of datasets that are made of each element of another one.
pub(super) fn opened(outer: &[Origin], inner: &[Origin]) -> Vec<Origin> {
    let is_name = |origin: &&Origin| matches!(origin.kind, Kind::Names);
    let names = outer.iter().filter(is_name).flat_map(|one| &one.paths);
    let names: Vec<String> = names.cloned().collect();
    let filled = inner.iter().cloned().map(|mut origin| {
        if origin.paths.is_empty() {
            origin.paths.clone_from(&names);
        }
        origin
    });
    let is_rust = |origin: &&Origin| matches!(origin.kind, Kind::Rust(_));
    filled
        .chain(outer.iter().filter(is_rust).cloned())
        .collect()
}

/// Looks for what is wrong behind a dataset whose element ended with an error: an error that names file
/// and record, or that of an iterator.
pub(super) fn damage(cx: &AnyContext, origins: &[Origin], error: &Error) -> Option<Error> {
    let ErrorKind::Status { code, message, .. } = error.kind() else {
        return None;
    };
    for origin in origins {
        let check: &dyn Fn(&str) -> Option<Error> = match (&origin.kind, code) {
            (Kind::Records, Code::DataLoss) => &|path| {
                let reader = RecordReader::open(path);
                reader
                    .and_then(|mut all| all.try_for_each(|one| one.map(drop)))
                    .err()
            },
            (Kind::Csv(csv), Code::InvalidArgument) => &|path| csv.check(path),
            // Decoding all images again takes long, so the node must be the one that decodes.
            (Kind::Images(channels), Code::InvalidArgument) if message.contains("DecodeImage") => {
                &|path| of_image(cx, path, *channels)
            }
            (Kind::Rust(source), _) => match source.failure(error) {
                Some(found) => return Some(found),
                None => continue,
            },
            _ => continue,
        };
        if origin.is_packed {
            if let [path] = origin.paths.as_slice() {
                return Some(file_error(path.as_ref(), message.clone()));
            }
            continue;
        }
        if let Some(found) = origin.paths.iter().find_map(|path| check(path)) {
            return Some(found);
        }
    }
    None
}

/// What is wrong with an image, if anything is and an eager context can tell.
fn of_image(cx: &AnyContext, path: &str, channels: i64) -> Option<Error> {
    let cx = cx.eager()?;
    let read = ops::read_file(cx, path);
    let error = read.and_then(|bytes| decoded(cx, &bytes, channels)).err()?;
    let problem = match error.kind() {
        ErrorKind::Status { message, .. } => message.clone(),
        _ => error.to_string(),
    };
    Some(file_error(path.as_ref(), problem))
}

/// The first image of bytes, with so many channels.
pub(super) fn decoded<C: Context>(cx: &C, bytes: &C::Value, channels: i64) -> Result<C::Value> {
    let options = ops::DecodeImageOptions {
        channels: Some(channels),
        expand_animations: Some(false),
        ..Default::default()
    };
    ops::decode_image(cx, bytes, options)
}
