//! Registration of kernels, checked against the op's definition because TensorFlow itself accepts
//! anything and fails, or ignores the kernel, much later.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::api::api;
use crate::data_type::DataType;
use crate::error::{Code, Error};
use crate::kernel::{self, AsyncKernel, Callbacks, Compute, Kernel, c_name};
use crate::opdefs;
use crate::proto::opdef::OpDef;
use crate::status::with_status;

/// Why a kernel was not registered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegistrationError {
    /// This TensorFlow has no such op.
    UnknownOp {
        /// The op.
        op: String,
    },
    /// The op has no such type attribute.
    UnknownAttr {
        /// The op.
        op: String,
        /// The attribute.
        attr: String,
        /// The type attributes that the op has.
        available: Vec<String>,
    },
    /// The op never has this type.
    ImpossibleType {
        /// The op.
        op: String,
        /// The attribute.
        attr: String,
        /// The type.
        data_type: DataType,
        /// The types that the op allows.
        allowed: Vec<DataType>,
    },
    /// The op has no such input or output.
    UnknownArgument {
        /// The op.
        op: String,
        /// The argument.
        argument: String,
        /// The arguments that the op has.
        available: Vec<String>,
    },
    /// Another kernel that was registered before serves some of the same nodes.
    Duplicate {
        /// The op.
        op: String,
        /// The constraints of the earlier kernel.
        earlier: String,
    },
    /// TensorFlow or the name table refused.
    Refused(Error),
}

impl fmt::Display for RegistrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownOp { op } => write!(f, "this TensorFlow has no op {op}"),
            Self::UnknownAttr {
                op,
                attr,
                available,
            } => write!(
                f,
                "op {op} has no type attribute {attr}; it has {available:?}"
            ),
            Self::ImpossibleType {
                op,
                attr,
                data_type,
                allowed,
            } => write!(
                f,
                "op {op} never has {attr}={data_type}; it allows {allowed:?}"
            ),
            Self::UnknownArgument {
                op,
                argument,
                available,
            } => write!(
                f,
                "op {op} has no argument {argument}; it has {available:?}"
            ),
            Self::Duplicate { op, earlier } => {
                write!(f, "op {op} has a kernel for these nodes already: {earlier}")
            }
            Self::Refused(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl std::error::Error for RegistrationError {}

impl From<Error> for RegistrationError {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<RegistrationError> for Error {
    fn from(error: RegistrationError) -> Self {
        let code = match &error {
            RegistrationError::UnknownOp { .. } => Code::NotFound,
            RegistrationError::Duplicate { .. } => Code::AlreadyExists,
            RegistrationError::Refused(error) => error.code(),
            RegistrationError::UnknownAttr { .. }
            | RegistrationError::ImpossibleType { .. }
            | RegistrationError::UnknownArgument { .. } => Code::InvalidArgument,
        };
        Self::new(code, error.to_string())
    }
}

/// A kernel to be registered: which nodes it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    op: String,
    device_type: String,
    constraints: Vec<(String, DataType)>,
    host: Vec<String>,
    priority: i32,
    label: String,
}

impl Registration {
    /// For all nodes of `op` on devices of `device_type`.
    #[must_use]
    pub fn new(op: &str, device_type: &str) -> Self {
        Self {
            op: op.to_owned(),
            device_type: device_type.to_owned(),
            constraints: Vec::new(),
            host: Vec::new(),
            priority: 0,
            label: String::new(),
        }
    }

    /// Only for nodes whose type attribute `attr` is `data_type`.
    #[must_use]
    pub fn constraint(mut self, attr: &str, data_type: DataType) -> Self {
        self.constraints.push((attr.to_owned(), data_type));
        self
    }

    /// The input or output `argument` is in host memory.
    #[must_use]
    pub fn host_memory(mut self, argument: &str) -> Self {
        self.host.push(argument.to_owned());
        self
    }

    /// Of several kernels for one node the one with the highest priority serves; 0 if not set.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Only for nodes whose attribute `_kernel` is `label`.
    #[must_use]
    pub fn label(mut self, label: &str) -> Self {
        label.clone_into(&mut self.label);
        self
    }

    /// Registers kernel type `K`.
    ///
    /// # Errors
    /// If the op's definition contradicts the registration; nothing is registered then.
    pub fn register<K: Kernel>(&self) -> Result<(), RegistrationError> {
        self.register_callbacks(&kernel::sync_callbacks::<K>())
    }

    /// Registers kernel type `K`, whose steps may end later.
    ///
    /// # Errors
    /// As [`Registration::register`].
    pub fn register_async<K: AsyncKernel>(&self) -> Result<(), RegistrationError> {
        self.register_callbacks(&kernel::async_callbacks::<K>())
    }

    /// Compares the registration with the op's definition.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self, op: &OpDef) -> Result<(), RegistrationError> {
        for (attr, data_type) in &self.constraints {
            let types = || op.attrs.iter().filter(|a| a.kind.contains("type"));
            let Some(found) = types().find(|a| &a.name == attr) else {
                return Err(RegistrationError::UnknownAttr {
                    op: self.op.clone(),
                    attr: attr.clone(),
                    available: types().map(|a| a.name.clone()).collect(),
                });
            };
            if !found.allowed_types.is_empty() && !found.allowed_types.contains(data_type) {
                return Err(RegistrationError::ImpossibleType {
                    op: self.op.clone(),
                    attr: attr.clone(),
                    data_type: *data_type,
                    allowed: found.allowed_types.clone(),
                });
            }
        }
        for argument in &self.host {
            let mut arguments = op.inputs.iter().chain(&op.outputs);
            if !arguments.clone().any(|a| a == argument) {
                return Err(RegistrationError::UnknownArgument {
                    op: self.op.clone(),
                    argument: argument.clone(),
                    available: arguments.by_ref().cloned().collect(),
                });
            }
        }
        Ok(())
    }

    /// Whether a node can match both registrations with nothing to choose between them.
    fn overlaps(&self, other: &Self) -> bool {
        let apart = self.constraints.iter().any(|(attr, data_type)| {
            let same = other.constraints.iter().find(|(a, _)| a == attr);
            same.is_some_and(|(_, t)| t != data_type)
        });
        !apart
            && self.op == other.op
            && self.device_type == other.device_type
            && self.priority == other.priority
            && self.label == other.label
    }

    fn register_callbacks(&self, callbacks: &Callbacks) -> Result<(), RegistrationError> {
        // Without the functions that look definitions up nothing can be compared.
        if opdefs::available()? {
            let op = opdefs::find(&self.op)?.ok_or_else(|| RegistrationError::UnknownOp {
                op: self.op.clone(),
            })?;
            self.check(&op)?;
        }
        static REGISTERED: Mutex<Option<HashMap<String, Vec<Registration>>>> = Mutex::new(None);
        let mut table = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = table
            .get_or_insert_default()
            .entry(self.op.clone())
            .or_default();
        if let Some(other) = earlier.iter().find(|other| self.overlaps(other)) {
            return Err(RegistrationError::Duplicate {
                op: self.op.clone(),
                earlier: other.to_string(),
            });
        }
        self.hand_over(callbacks)?;
        earlier.push(self.clone());
        Ok(())
    }

    fn hand_over(&self, callbacks: &Callbacks) -> Result<(), Error> {
        let api = api()?;
        let op = c_name(&self.op)?;
        let device = c_name(&self.device_type)?;
        let label = c_name(&self.label)?;
        let name = c_name(&self.to_string())?;
        let host = self.host.iter().map(|a| c_name(a));
        let host = host.collect::<Result<Vec<_>, _>>()?;
        let constraints = self.constraints.iter().map(|(a, t)| Ok((c_name(a)?, *t)));
        let constraints = constraints.collect::<Result<Vec<_>, Error>>()?;
        let (create, delete) = (Some(callbacks.create as _), Some(callbacks.delete as _));
        // SAFETY: the names are C strings that the callee copies, and the callbacks have the
        // types that the header gives them.
        let builder = unsafe {
            match callbacks.compute {
                Compute::Sync(compute) => api.kernels.TF_NewKernelBuilder(
                    op.as_ptr(),
                    device.as_ptr(),
                    create,
                    Some(compute as _),
                    delete,
                ),
                Compute::Async(compute) => api.kernels.TF_NewAsyncKernelBuilder(
                    op.as_ptr(),
                    device.as_ptr(),
                    create,
                    Some(compute as _),
                    delete,
                ),
            }
        };
        if builder.is_null() {
            return Err(Error::internal("TF_NewKernelBuilder returned null"));
        }
        with_status(|status| {
            for (attr, data_type) in &constraints {
                // SAFETY: builder and status are live, the name is a C string.
                unsafe {
                    api.kernels.TF_KernelBuilder_TypeConstraint(
                        builder,
                        attr.as_ptr(),
                        data_type.raw(),
                        status.as_ptr(),
                    );
                }
                if let Err(error) = status.take() {
                    // SAFETY: the builder has not been registered and is not used again.
                    unsafe { api.kernels.TF_DeleteKernelBuilder(builder) };
                    return Err(error);
                }
            }
            // SAFETY: builder and status are live, the names are C strings; the last call takes
            // the builder over.
            unsafe {
                for argument in &host {
                    api.kernels
                        .TF_KernelBuilder_HostMemory(builder, argument.as_ptr());
                }
                if self.priority != 0 {
                    api.kernels
                        .TF_KernelBuilder_Priority(builder, self.priority);
                }
                if !self.label.is_empty() {
                    api.kernels.TF_KernelBuilder_Label(builder, label.as_ptr());
                }
                api.kernels
                    .TF_RegisterKernelBuilder(name.as_ptr(), builder, status.as_ptr());
            }
            status.take()
        })
    }
}

impl fmt::Display for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.op, self.device_type)?;
        for (attr, data_type) in &self.constraints {
            write!(f, " {attr}={data_type}")?;
        }
        if !self.label.is_empty() {
            write!(f, " label={}", self.label)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::opdef::AttrDef;

    fn relu() -> OpDef {
        OpDef {
            name: "Relu".into(),
            inputs: vec!["features".into()],
            outputs: vec!["activations".into()],
            attrs: vec![AttrDef {
                name: "T".into(),
                kind: "type".into(),
                allowed_types: vec![DataType::FLOAT, DataType::INT32],
            }],
        }
    }

    #[test]
    fn contradictions_are_named() {
        let base = Registration::new("Relu", "TFP");
        let good = base.clone().constraint("T", DataType::FLOAT);
        assert_eq!(good.clone().host_memory("features").check(&relu()), Ok(()));
        let error = base.clone().constraint("U", DataType::FLOAT).check(&relu());
        assert!(matches!(error, Err(RegistrationError::UnknownAttr { .. })));
        let error = base.constraint("T", DataType::STRING).check(&relu());
        assert_eq!(
            error.unwrap_err().to_string(),
            "op Relu never has T=string; it allows [float32, int32]"
        );
        let error = good.host_memory("input").check(&relu());
        assert!(matches!(
            error,
            Err(RegistrationError::UnknownArgument { .. })
        ));
    }

    #[test]
    fn overlap_needs_a_common_node() {
        let base = Registration::new("Cast", "TFP").constraint("SrcT", DataType::FLOAT);
        let to_int = base.clone().constraint("DstT", DataType::INT32);
        let to_long = base.clone().constraint("DstT", DataType::INT64);
        assert!(!to_int.overlaps(&to_long));
        assert!(to_int.overlaps(&base));
        assert!(to_int.overlaps(&to_int.clone().host_memory("x")));
        assert!(!to_int.overlaps(&to_int.clone().priority(1)));
        assert!(!to_int.overlaps(&Registration::new("Cast", "GPU")));
    }
}
