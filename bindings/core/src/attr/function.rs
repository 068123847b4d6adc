//! Functions that ops call, as values.

use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock, Weak};

use tfp_sys::loader::fenced;
use tfp_sys::{ClientApi, TF_Function};

use crate::attr::sharing::Sharing;
use crate::base::api::{Status, c_string, not_null, text_from_ptr};
use crate::base::buffer::OutBuffer;
use crate::base::error::Result;

struct FunctionInner {
    raw: NonNull<TF_Function>,
    api: &'static ClientApi,
    name: String,
    sharing: Sharing,
    // The functions that its operations name, once somebody asked.
    named: OnceLock<Vec<String>>,
}

// SAFETY: a function does not change: an attribute is set only on a copy that nobody else has yet.
unsafe impl Send for FunctionInner {}
// SAFETY: as above.
unsafe impl Sync for FunctionInner {}

impl Drop for FunctionInner {
    fn drop(&mut self) {
        // SAFETY: the function is alive, and this is its end; graphs and contexts have their own.
        unsafe { self.api.c_api.TF_DeleteFunction(self.raw.as_ptr()) };
    }
}

/// A graph with arguments and results, which ops call by its name. A clone is the same function.
#[derive(Clone)]
pub struct Function {
    inner: Arc<FunctionInner>,
}

/// What tells a function from any other, also from later ones; it does not keep the function.
pub(crate) struct FunctionId(Weak<FunctionInner>);

impl FunctionId {
    pub(crate) fn is_of(&self, function: &Function) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&function.inner))
    }
}

impl Function {
    /// Takes a function that TensorFlow gave away, whose operations write to at most so much.
    ///
    /// # Safety
    /// `raw` is null or a function that nothing else deletes.
    pub(crate) unsafe fn from_owned_ptr(
        raw: *mut TF_Function,
        api: &'static ClientApi,
        sharing: Sharing,
    ) -> Result<Self> {
        let raw = not_null(raw, "TensorFlow, asked for a function,")?;
        // SAFETY: the function is alive, and so is its name.
        let name = unsafe { text_from_ptr(api.c_api.TF_FunctionName(raw.as_ptr())) };
        Ok(Self {
            inner: Arc::new(FunctionInner {
                raw,
                api,
                name,
                sharing,
                named: OnceLock::new(),
            }),
        })
    }

    pub(crate) fn sharing(&self) -> Sharing {
        self.inner.sharing
    }

    /// Whether both are the same function, not only equal ones.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    pub(crate) fn named(&self) -> &OnceLock<Vec<String>> {
        &self.inner.named
    }

    pub(crate) fn id(&self) -> FunctionId {
        FunctionId(Arc::downgrade(&self.inner))
    }

    pub(crate) fn as_ptr(&self) -> *mut TF_Function {
        self.inner.raw.as_ptr()
    }

    pub(crate) fn api(&self) -> &'static ClientApi {
        self.inner.api
    }

    /// Returns the function as a serialized `FunctionDef`.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn to_function_def(&self) -> Result<Vec<u8>> {
        let api = self.inner.api;
        let (status, buffer) = (Status::new(api)?, OutBuffer::new(api)?);
        // SAFETY: function, buffer and status are alive.
        fenced(|| unsafe {
            let status = status.as_ptr();
            api.c_api
                .TF_FunctionToFunctionDef(self.as_ptr(), buffer.as_ptr(), status);
        })?;
        status.check()?;
        Ok(buffer.as_slice().to_vec())
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns an attribute as a serialized `AttrValue`.
    ///
    /// # Errors
    /// TensorFlow's status for an attribute that the function does not have.
    pub fn attr(&self, name: &str) -> Result<Vec<u8>> {
        let api = self.inner.api;
        let name = c_string(name)?;
        let (status, buffer) = (Status::new(api)?, OutBuffer::new(api)?);
        // SAFETY: function, name, buffer and status are alive.
        fenced(|| unsafe {
            let (out, status) = (buffer.as_ptr(), status.as_ptr());
            api.c_api
                .TF_FunctionGetAttrValueProto(self.as_ptr(), name.as_ptr(), out, status);
        })?;
        status.check()?;
        Ok(buffer.as_slice().to_vec())
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function '{}'", self.name())
    }
}
