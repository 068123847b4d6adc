//! Handles of tensors, on any device.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use tfp_sys::TFE_TensorHandle;
use tfp_wire::DataType;

use super::context::{ContextInner, EagerContext};
use crate::base::api::{Status, text_from_ptr};
use crate::base::error::{Error, Result};
use crate::base::shape::Shape;
use crate::call::operand::Value;
use crate::tensor::Tensor;

struct HandleInner {
    raw: NonNull<TFE_TensorHandle>,
    context: Arc<ContextInner>,
    dtype: DataType,
}

// SAFETY: a handle is counted and guarded by TensorFlow; it may be used and deleted on any thread.
unsafe impl Send for HandleInner {}
// SAFETY: as above.
unsafe impl Sync for HandleInner {}

impl Drop for HandleInner {
    fn drop(&mut self) {
        // SAFETY: the handle is alive, and this is its end.
        unsafe {
            self.context
                .api
                .eager_c_api
                .TFE_DeleteTensorHandle(self.raw.as_ptr())
        };
    }
}

/// A tensor of an eager context, on any of its devices. A clone is the same tensor.
#[derive(Clone)]
pub struct TensorHandle {
    inner: Arc<HandleInner>,
}

impl TensorHandle {
    /// Takes a handle that TensorFlow gave away.
    ///
    /// # Safety
    /// `raw` is a handle of `context` that nothing else deletes.
    #[inline]
    pub(super) unsafe fn from_owned_ptr(
        raw: NonNull<TFE_TensorHandle>,
        context: &Arc<ContextInner>,
    ) -> Self {
        // SAFETY: the handle is alive.
        let dtype = unsafe {
            context
                .api
                .eager_c_api
                .TFE_TensorHandleDataType(raw.as_ptr())
        };
        let dtype = DataType::from_raw(dtype);
        Self {
            inner: Arc::new(HandleInner {
                raw,
                context: Arc::clone(context),
                dtype,
            }),
        }
    }

    #[inline]
    pub(super) fn as_ptr(&self) -> *mut TFE_TensorHandle {
        self.inner.raw.as_ptr()
    }

    #[inline]
    pub(super) fn is_of(&self, context: &Arc<ContextInner>) -> bool {
        Arc::ptr_eq(&self.inner.context, context)
    }

    /// Returns a number that no other tensor has as long as this handle or a clone of it lives.
    #[must_use]
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.inner).addr()
    }

    /// Returns the context.
    #[must_use]
    pub fn context(&self) -> EagerContext {
        EagerContext::from_inner(&self.inner.context)
    }

    /// Returns the element type.
    #[must_use]
    pub fn dtype(&self) -> DataType {
        self.inner.dtype
    }

    /// Returns the shape; in async mode this waits until it is known.
    ///
    /// # Errors
    /// The error of the op that should have made the tensor.
    pub fn shape(&self) -> Result<Shape> {
        let api = &self.inner.context.api.eager_c_api;
        let status = Status::new(self.inner.context.api)?;
        // SAFETY: handle and status are alive.
        let rank = self
            .inner
            .context
            .fence
            .call(|| unsafe { api.TFE_TensorHandleNumDims(self.as_ptr(), status.as_ptr()) })?;
        status.check_ref()?;
        let mut dims = Vec::with_capacity(usize::try_from(rank).unwrap_or(0));
        for axis in 0..rank {
            // SAFETY: as above, and the axis is below the rank.
            let dim = self.inner.context.fence.call(|| unsafe {
                api.TFE_TensorHandleDim(self.as_ptr(), axis, status.as_ptr())
            })?;
            status.check_ref()?;
            dims.push(dim);
        }
        status.check()?;
        Ok(if rank < 0 {
            Shape::unknown()
        } else {
            Shape::new(&dims)
        })
    }

    /// Returns the number of elements; in async mode this waits until it is known.
    ///
    /// # Errors
    /// As for [`Self::shape`].
    pub fn element_count(&self) -> Result<i64> {
        let api = self.inner.context.api;
        let status = Status::new(api)?;
        // SAFETY: handle and status are alive.
        let count = self.inner.context.fence.call(|| unsafe {
            api.eager_c_api
                .TFE_TensorHandleNumElements(self.as_ptr(), status.as_ptr())
        })?;
        status.check()?;
        Ok(count)
    }

    /// Returns the device whose op made the tensor.
    ///
    /// # Errors
    /// As for [`Self::shape`].
    pub fn device(&self) -> Result<String> {
        let api = self.inner.context.api;
        let status = Status::new(api)?;
        // SAFETY: handle and status are alive; the text lives as long as the handle.
        let name = self.inner.context.fence.call(|| unsafe {
            let name = api
                .eager_c_api
                .TFE_TensorHandleDeviceName(self.as_ptr(), status.as_ptr());
            text_from_ptr(name)
        })?;
        status.check()?;
        Ok(name)
    }

    /// Returns the device whose memory holds the tensor.
    ///
    /// # Errors
    /// As for [`Self::shape`].
    pub fn backing_device(&self) -> Result<String> {
        let api = self.inner.context.api;
        let status = Status::new(api)?;
        // SAFETY: handle and status are alive; the text lives as long as the handle.
        let name = self.inner.context.fence.call(|| unsafe {
            let c = &api.eager_c_api;
            text_from_ptr(c.TFE_TensorHandleBackingDeviceName(self.as_ptr(), status.as_ptr()))
        })?;
        status.check()?;
        Ok(name)
    }

    /// Returns the tensor in host memory: without a copy when it is there, else copied from its device.
    ///
    /// # Errors
    /// As for [`Self::shape`], and TensorFlow's status for values without a host form, such as a variant.
    pub fn to_tensor(&self) -> Result<Tensor> {
        let api = self.inner.context.api;
        let status = Status::new(api)?;
        // SAFETY: handle and status are alive.
        let raw = self.inner.context.fence.call(|| unsafe {
            api.eager_c_api
                .TFE_TensorHandleResolve(self.as_ptr(), status.as_ptr())
        })?;
        status.check()?;
        // SAFETY: the caller of the function owns the tensor.
        unsafe { Tensor::from_owned_ptr(raw, api) }
    }

    /// Returns a copy on a device, or the tensor itself when it is there. The name is one as for
    /// [`EagerContext::on_device`].
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) as for [`EagerContext::on_device`], and
    /// TensorFlow's status.
    pub fn copy_to(&self, device: &str) -> Result<Self> {
        let context = &self.inner.context;
        let list = || EagerContext::from_inner(context).devices();
        let device = context.places.find(device, list)?.unwrap_or_default();
        let status = Status::new(context.api)?;
        // SAFETY: handle, context, name and status are alive.
        let raw = context.fence.call(|| unsafe {
            context.api.eager_c_api.TFE_TensorHandleCopyToDevice(
                self.as_ptr(),
                context.as_ptr(),
                device.as_ptr(),
                status.as_ptr(),
            )
        })?;
        status.check()?;
        match NonNull::new(raw) {
            // SAFETY: the caller of the function owns the handle.
            Some(raw) => Ok(unsafe { Self::from_owned_ptr(raw, context) }),
            None => Err(Error::internal(
                "TFE_TensorHandleCopyToDevice returned null",
            )),
        }
    }
}

impl Value for TensorHandle {
    #[inline]
    fn dtype(&self) -> DataType {
        self.inner.dtype
    }

    fn shape(&self) -> Result<Shape> {
        Self::shape(self)
    }
}

impl fmt::Debug for TensorHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shape() {
            Ok(shape) => write!(f, "TensorHandle({} {shape})", self.dtype()),
            Err(_) => write!(f, "TensorHandle({})", self.dtype()),
        }
    }
}
