/// The handle of a vendor's C driver, which the model's C passes on unseen.
#[repr(transparent)]
pub struct RawDevice<'a> {
    handle: *mut core::ffi::c_void,
    _driver: core::marker::PhantomData<&'a mut ()>,
}

impl RawDevice<'_> {
    /// Wraps a driver's handle.
    ///
    /// # Safety
    /// `handle` is what the driver's C functions expect, and stays valid and unshared for the lifetime.
    pub const unsafe fn from_ptr(handle: *mut core::ffi::c_void) -> Self {
        Self {
            handle,
            _driver: core::marker::PhantomData,
        }
    }

    /// The handle.
    pub const fn as_ptr(&self) -> *mut core::ffi::c_void {
        self.handle
    }
}
