//! What is wrong with bytes that should be a message.

use std::fmt;

/// The result of reading.
pub type Result<T> = std::result::Result<T, Error>;

/// Bytes that should be a protocol buffer are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    message: &'static str,
    problem: String,
}

impl Error {
    pub(crate) fn new(message: &'static str, problem: String) -> Self {
        Self { message, problem }
    }

    /// Returns the type of the message, such as `GraphDef`.
    #[must_use]
    pub fn message_type(&self) -> &'static str {
        self.message
    }

    /// Returns what is wrong, and at which field or byte.
    #[must_use]
    pub fn into_problem(self) -> String {
        self.problem
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a valid {}: {}", self.message, self.problem)
    }
}

impl std::error::Error for Error {}
