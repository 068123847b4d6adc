//! Errors: TensorFlow's statuses, and what is refused before TensorFlow sees it.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::base::shape::Shape;
use tfp_sys::loader::Thrown;
use tfp_wire::DataType;

/// What every fallible function of this crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The class of an error, with TensorFlow's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum Code {
    /// No error.
    Ok = 0,
    /// Somebody asked for the operation to end.
    Cancelled = 1,
    /// An error of no class, or of one that this crate does not know.
    Unknown = 2,
    /// An argument is wrong whatever the state of the system.
    InvalidArgument = 3,
    /// The time ran out first.
    DeadlineExceeded = 4,
    /// Something that was asked for does not exist.
    NotFound = 5,
    /// Something that was to be made exists.
    AlreadyExists = 6,
    /// The caller may not do this.
    PermissionDenied = 7,
    /// Memory or another resource is used up.
    ResourceExhausted = 8,
    /// The system is not in the state that the operation needs.
    FailedPrecondition = 9,
    /// The operation gave up, as after a conflict.
    Aborted = 10,
    /// A position is past the end.
    OutOfRange = 11,
    /// There is no such operation, or no kernel for it.
    Unimplemented = 12,
    /// An invariant of the system is broken.
    Internal = 13,
    /// The service is not there now.
    Unavailable = 14,
    /// Data is lost or damaged.
    DataLoss = 15,
    /// The caller is not known.
    Unauthenticated = 16,
}

impl Code {
    const ALL: [Self; 17] = [
        Self::Ok,
        Self::Cancelled,
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::AlreadyExists,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Aborted,
        Self::OutOfRange,
        Self::Unimplemented,
        Self::Internal,
        Self::Unavailable,
        Self::DataLoss,
        Self::Unauthenticated,
    ];

    /// Returns the class of TensorFlow's number; [`Self::Unknown`] for a number of no class.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        *Self::ALL.get(number as usize).unwrap_or(&Self::Unknown)
    }
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// TensorFlow could not be found, opened, or is of the wrong version.
    Load {
        /// What was tried, and why it failed.
        message: String,
    },
    /// TensorFlow returned an error.
    Status {
        /// Its class.
        code: Code,
        /// The type of the op that was being added or executed, or the SavedModel that was being
        /// loaded; empty for anything else.
        op: String,
        /// TensorFlow's text.
        message: String,
        /// Data attached under a type URL each.
        payloads: Vec<(String, Vec<u8>)>,
    },
    /// An op's input was refused before the call.
    Input {
        /// The op's type, as `Conv2D`.
        op: String,
        /// The input's name in the op's definition.
        input: String,
        /// What is wrong, what was expected.
        problem: String,
    },
    /// An op's attribute was refused before the call.
    Attribute {
        /// The op's type.
        op: String,
        /// The attribute's name.
        attr: String,
        /// What is wrong, what is allowed.
        problem: String,
    },
    /// An op that only graphs have was called in eager mode: it takes or returns a reference to a
    /// variable. The ops on resource variables (`VarHandleOp` and others) serve both modes.
    GraphOnly {
        /// The op's type.
        op: String,
        /// The input or output that is a reference.
        arg: String,
    },
    /// A tensor or value has another element type than asked for.
    DType {
        /// What was asked.
        what: String,
        /// The element type asked for.
        expected: DataType,
        /// The element type there is.
        found: DataType,
    },
    /// A shape does not fit.
    Shape {
        /// What was asked.
        what: String,
        /// What would fit.
        expected: String,
        /// The shape there is.
        found: Shape,
    },
    /// Something that was named does not exist.
    NotFound {
        /// The kind of thing: operation, device, attribute.
        what: &'static str,
        /// The name that was asked for.
        name: String,
        /// Where it was looked for, and what there is.
        place: String,
    },
    /// A value belongs to another graph, context or session than the one it is used with.
    Foreign {
        /// The value and the place where it was used.
        what: String,
    },
    /// Anything else that is wrong with an argument.
    Argument {
        /// What is wrong, and what was expected.
        message: String,
    },
    /// Bytes that should be a protocol buffer are not.
    Proto {
        /// The message type, as `GraphDef`.
        message: &'static str,
        /// What is wrong, and at which byte.
        problem: String,
    },
    /// A file that is missing, damaged, or of a version that is not known here.
    File {
        /// Where it is.
        path: String,
        /// What is wrong with it, and what was expected.
        problem: String,
    },
    /// A task of a cluster that can't be reached, has failed, or whose address is taken.
    Worker {
        /// The task and its address, as `/job:worker/task:1 at 10.0.0.2:2222`; several are separated by
        /// commas.
        worker: String,
        /// TensorFlow's class of it.
        code: Code,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// Something that is used after it was closed.
    Closed {
        /// The thing.
        what: &'static str,
    },
    /// A callback panicked, or an invariant of this crate does not hold.
    Internal {
        /// The details.
        message: String,
    },
}

/// An error of this crate: one pointer wide.
#[derive(Clone, PartialEq)]
pub struct Error(Box<ErrorKind>);

impl Error {
    /// Wraps a kind.
    #[must_use]
    #[cold]
    pub fn new(kind: ErrorKind) -> Self {
        Self(Box::new(kind))
    }

    /// An error about an argument.
    #[must_use]
    #[cold]
    pub fn argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Argument {
            message: message.into(),
        })
    }

    #[cold]
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal {
            message: message.into(),
        })
    }

    /// An error in a class of TensorFlow's, about no op in particular.
    #[must_use]
    #[cold]
    pub fn status(code: Code, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Status {
            code,
            op: String::new(),
            message: message.into(),
            payloads: Vec::new(),
        })
    }

    /// What a panic of `what` carries, as [`ErrorKind::Internal`].
    #[must_use]
    #[cold]
    pub fn panicked(what: &str, payload: Box<dyn Any + Send>) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("no message");
        let error = Self::internal(format!("{what} panicked: {text}"));
        // Dropping a payload may panic, too: the second one is leaked.
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(second);
        }
        error
    }

    /// Memory that there is not, in the class that TensorFlow has for it.
    #[cold]
    pub(crate) fn exhausted(message: impl Into<String>) -> Self {
        Self::status(Code::ResourceExhausted, message)
    }

    #[cold]
    pub(crate) fn dtype(what: impl Into<String>, expected: DataType, found: DataType) -> Self {
        Self::new(ErrorKind::DType {
            what: what.into(),
            expected,
            found,
        })
    }

    #[cold]
    pub(crate) fn shape(
        what: impl Into<String>,
        expected: impl Into<String>,
        found: Shape,
    ) -> Self {
        Self::new(ErrorKind::Shape {
            what: what.into(),
            expected: expected.into(),
            found,
        })
    }

    #[cold]
    pub(crate) fn not_found(
        what: &'static str,
        name: impl Into<String>,
        place: impl Into<String>,
    ) -> Self {
        Self::new(ErrorKind::NotFound {
            what,
            name: name.into(),
            place: place.into(),
        })
    }

    #[cold]
    pub(crate) fn foreign(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Foreign { what: what.into() })
    }

    /// Names the op that TensorFlow was busy with when it returned this status.
    #[cold]
    pub(crate) fn in_op(mut self, name: &str) -> Self {
        if let ErrorKind::Status { op, .. } = &mut *self.0 {
            name.clone_into(op);
        }
        self
    }

    /// Returns what went wrong.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// Returns the class: TensorFlow's own for a status, the closest one otherwise.
    #[must_use]
    pub fn code(&self) -> Code {
        match self.kind() {
            ErrorKind::Status { code, .. } | ErrorKind::Worker { code, .. } => *code,
            ErrorKind::Load { .. } => Code::Unavailable,
            ErrorKind::NotFound { .. } => Code::NotFound,
            ErrorKind::Closed { .. } => Code::FailedPrecondition,
            ErrorKind::Internal { .. } => Code::Internal,
            ErrorKind::GraphOnly { .. } => Code::Unimplemented,
            ErrorKind::Proto { .. } | ErrorKind::File { .. } => Code::DataLoss,
            ErrorKind::Input { .. }
            | ErrorKind::Attribute { .. }
            | ErrorKind::DType { .. }
            | ErrorKind::Shape { .. }
            | ErrorKind::Foreign { .. }
            | ErrorKind::Argument { .. } => Code::InvalidArgument,
        }
    }

    /// Returns the data that TensorFlow attached under a type URL.
    #[must_use]
    pub fn payload(&self, url: &str) -> Option<&[u8]> {
        let ErrorKind::Status { payloads, .. } = self.kind() else {
            return None;
        };
        payloads
            .iter()
            .find(|(key, _)| key == url)
            .map(|(_, value)| value.as_slice())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            ErrorKind::Load { message }
            | ErrorKind::Argument { message }
            | ErrorKind::Internal { message } => f.write_str(message),
            ErrorKind::Status {
                code, op, message, ..
            } if op.is_empty() => {
                write!(f, "{code:?}: {message}")
            }
            ErrorKind::Status {
                code, op, message, ..
            } => write!(f, "{op}: {code:?}: {message}"),
            ErrorKind::Input { op, input, problem } => {
                write!(f, "{op}: input '{input}': {problem}")
            }
            ErrorKind::GraphOnly { op, arg } => write!(
                f,
                "{op}: '{arg}' is a reference to a variable, which only graphs have; in eager mode \
                 use the ops on resource variables"
            ),
            ErrorKind::Attribute { op, attr, problem } => {
                write!(f, "{op}: attribute '{attr}': {problem}")
            }
            ErrorKind::DType {
                what,
                expected,
                found,
            } => {
                write!(f, "{what}: expected {expected}, found {found}")
            }
            ErrorKind::Shape {
                what,
                expected,
                found,
            } => {
                write!(f, "{what}: expected {expected}, found shape {found}")
            }
            ErrorKind::NotFound { what, name, place } => {
                write!(f, "no {what} '{name}' in {place}")
            }
            ErrorKind::Foreign { what } => write!(f, "{what}"),
            ErrorKind::Proto { message, problem } => write!(f, "not a valid {message}: {problem}"),
            ErrorKind::File { path, problem } => write!(f, "'{path}': {problem}"),
            ErrorKind::Worker {
                worker,
                code,
                problem,
            } => write!(f, "{worker}: {code:?}: {problem}"),
            ErrorKind::Closed { what } => write!(f, "the {what} is closed"),
        }
    }
}

impl From<tfp_wire::Error> for Error {
    fn from(error: tfp_wire::Error) -> Self {
        Self::new(ErrorKind::Proto {
            message: error.message_type(),
            problem: error.into_problem(),
        })
    }
}

impl From<Thrown> for Error {
    fn from(thrown: Thrown) -> Self {
        if thrown.is_no_memory() {
            Self::exhausted(thrown.to_string())
        } else {
            Self::internal(thrown.to_string())
        }
    }
}

/// As [`fmt::Display`], since `main` and `unwrap` show an error so; `{:#?}` shows its
/// [`kind`](Error::kind) with every field.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            fmt::Debug::fmt(self.kind(), f)
        } else {
            fmt::Display::fmt(self, f)
        }
    }
}

impl std::error::Error for Error {}

/// In the class of its kind, so that `?` works where a program reads files beside TensorFlow.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        use std::io::ErrorKind as Kind;
        let code = match error.kind() {
            Kind::NotFound => Code::NotFound,
            Kind::AlreadyExists => Code::AlreadyExists,
            Kind::PermissionDenied | Kind::ReadOnlyFilesystem => Code::PermissionDenied,
            Kind::InvalidInput | Kind::IsADirectory | Kind::NotADirectory => Code::InvalidArgument,
            Kind::InvalidData | Kind::UnexpectedEof => Code::DataLoss,
            Kind::TimedOut => Code::DeadlineExceeded,
            Kind::OutOfMemory | Kind::StorageFull | Kind::QuotaExceeded => Code::ResourceExhausted,
            Kind::ConnectionRefused
            | Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NotConnected => Code::Unavailable,
            Kind::Unsupported => Code::Unimplemented,
            _ => Code::Unknown,
        };
        Self::status(code, error.to_string())
    }
}

impl From<std::ffi::NulError> for Error {
    fn from(error: std::ffi::NulError) -> Self {
        Self::argument(format!(
            "{:?} holds a NUL byte at position {}",
            String::from_utf8_lossy(&error.clone().into_vec()),
            error.nul_position()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_files_have_their_class() {
        let read = || -> Result<Vec<u8>> { Ok(std::fs::read("/no/such/file")?) };
        let error = read().unwrap_err();
        assert_eq!(error.code(), Code::NotFound);
        assert!(
            error.to_string().starts_with("NotFound: No such file"),
            "{error}"
        );
        let other = std::io::Error::other("strange");
        assert_eq!(Error::from(other).code(), Code::Unknown);
    }

    /// What `fn main() -> Result<()>` prints of an error.
    #[test]
    fn the_debug_text_is_the_message() {
        let error = Error::dtype("Add's 'y'", DataType::FLOAT, DataType::INT32);
        assert_eq!(format!("{error:?}"), error.to_string());
        assert_eq!(
            format!("{error:?}"),
            "Add's 'y': expected float32, found int32"
        );
        assert!(format!("{error:#?}").starts_with("DType {\n"));
    }
}
