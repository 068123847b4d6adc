//! Errors as TensorFlow knows them: a code and a message.

use std::fmt;

use tfp_sys as sys;

/// The result of every fallible function of this crate that TensorFlow may see.
pub type Result<T> = std::result::Result<T, Error>;

/// TensorFlow's error codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The operation was cancelled.
    Cancelled,
    /// Nothing is known about the error.
    Unknown,
    /// The caller gave an argument that can never be right.
    InvalidArgument,
    /// The time was up.
    DeadlineExceeded,
    /// What was asked for does not exist.
    NotFound,
    /// What should be created exists.
    AlreadyExists,
    /// The caller may not do this.
    PermissionDenied,
    /// Memory or another resource is used up.
    ResourceExhausted,
    /// The state does not allow the operation.
    FailedPrecondition,
    /// The operation was given up.
    Aborted,
    /// An index lies outside the valid range.
    OutOfRange,
    /// The operation does not exist here.
    Unimplemented,
    /// A defect of this software.
    Internal,
    /// The service is not there now.
    Unavailable,
    /// Data was lost or is corrupt.
    DataLoss,
    /// The caller is not known.
    Unauthenticated,
}

/// The one table that connects [`Code`] and the C constants.
const CODES: &[(Code, sys::TSL_Code)] = &[
    (Code::Cancelled, sys::TSL_CANCELLED),
    (Code::Unknown, sys::TSL_UNKNOWN),
    (Code::InvalidArgument, sys::TSL_INVALID_ARGUMENT),
    (Code::DeadlineExceeded, sys::TSL_DEADLINE_EXCEEDED),
    (Code::NotFound, sys::TSL_NOT_FOUND),
    (Code::AlreadyExists, sys::TSL_ALREADY_EXISTS),
    (Code::PermissionDenied, sys::TSL_PERMISSION_DENIED),
    (Code::ResourceExhausted, sys::TSL_RESOURCE_EXHAUSTED),
    (Code::FailedPrecondition, sys::TSL_FAILED_PRECONDITION),
    (Code::Aborted, sys::TSL_ABORTED),
    (Code::OutOfRange, sys::TSL_OUT_OF_RANGE),
    (Code::Unimplemented, sys::TSL_UNIMPLEMENTED),
    (Code::Internal, sys::TSL_INTERNAL),
    (Code::Unavailable, sys::TSL_UNAVAILABLE),
    (Code::DataLoss, sys::TSL_DATA_LOSS),
    (Code::Unauthenticated, sys::TSL_UNAUTHENTICATED),
];

impl Code {
    pub(crate) fn to_raw(self) -> sys::TSL_Code {
        CODES
            .iter()
            .find(|(code, _)| *code == self)
            .map_or(sys::TSL_UNKNOWN, |&(_, raw)| raw)
    }

    /// `None` for OK; codes of a newer TensorFlow become [`Code::Unknown`].
    pub(crate) fn from_raw(raw: sys::TSL_Code) -> Option<Self> {
        if raw == sys::TSL_OK {
            return None;
        }
        let known = CODES.iter().find(|&&(_, candidate)| candidate == raw);
        Some(known.map_or(Self::Unknown, |&(code, _)| code))
    }
}

/// What went wrong, for a `TF_Status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: Code,
    message: String,
}

impl Error {
    /// An error with this code and message.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// An [`Code::InvalidArgument`].
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// An [`Code::Internal`].
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, message)
    }

    /// The code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The same error with `place` in front of its message.
    #[must_use]
    pub fn at(self, place: impl fmt::Display) -> Self {
        Self {
            code: self.code,
            message: format!("{place}: {}", self.message),
        }
    }
}

impl From<tfp_wire::Error> for Error {
    fn from(error: tfp_wire::Error) -> Self {
        Self::invalid(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_survive_the_c_form() {
        for &(code, raw) in CODES {
            assert_eq!(code.to_raw(), raw);
            assert_eq!(Code::from_raw(raw), Some(code));
        }
        assert_eq!(Code::from_raw(sys::TSL_OK), None);
        assert_eq!(Code::from_raw(sys::TSL_Code(4711)), Some(Code::Unknown));
    }
}
