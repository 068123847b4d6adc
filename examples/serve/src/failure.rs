//! Why a request has no result, with the status of HTTP that says so.

use std::fmt;

/// A class of failures, by its status of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
pub enum Status {
    /// The request is wrong, whatever the state of the server.
    Invalid = 400,
    /// A model, version, signature or path that is not there.
    NotFound = 404,
    /// A path that is there, with another method.
    Method = 405,
    /// The request did not arrive in time.
    TooSlow = 408,
    /// A body over the limit.
    TooLarge = 413,
    /// The queue is full.
    TooMany = 429,
    /// The model failed.
    Internal = 500,
    /// What this server does not do.
    Unimplemented = 501,
    /// The server is about to stop, or the model is loaded anew.
    Unavailable = 503,
    /// The result was not there in time.
    Deadline = 504,
}

/// A failed request: its class and a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The class.
    pub status: Status,
    /// What is wrong, and what was expected.
    pub message: String,
}

impl Failure {
    /// A failure of a class.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }

    /// A request that is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Status::Invalid, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
