/// A driver's error: a code of its own, never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceError(pub NonZeroI32);

/// A driver in Rust for a device that the model uses.
///
/// TVM calls `activate` before the model's first operator, `open` and `close` around each operator on
/// the device, `deactivate` after the last. When a run fails in between, the crate calls `close` and
/// `deactivate` as needed, which TVM does not. A panic in a hook aborts.
pub trait Device {
    /// Powers the device up.
    fn activate(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Prepares for one operator.
    fn open(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Ends one operator.
    fn close(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Powers the device down.
    fn deactivate(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
}

/// What the model's C gets as a device: its first word is the address of the Rust driver.
///
/// Kernels hand this address to the functions that start the accelerator.
#[repr(C)]
pub struct DeviceCell<'a> {
    driver: *mut core::ffi::c_void,
    call: unsafe fn(*mut core::ffi::c_void, Hook) -> Result<(), DeviceError>,
    active: bool,
    open: bool,
    failure: Option<(Hook, DeviceError)>,
    _driver: core::marker::PhantomData<&'a mut ()>,
}

/// # Safety
/// `driver` is the address of a live, unaliased `D`.
unsafe fn call<D: Device>(driver: *mut core::ffi::c_void, hook: Hook) -> Result<(), DeviceError> {
    // SAFETY: the caller gives a live, unaliased `D`.
    let driver = unsafe { &mut *driver.cast::<D>() };
    match hook {
        Hook::Activate => driver.activate(),
        Hook::Open => driver.open(),
        Hook::Close => driver.close(),
        Hook::Deactivate => driver.deactivate(),
    }
}

impl<'a> DeviceCell<'a> {
    pub(crate) fn new<D: Device>(driver: &'a mut D) -> Self {
        Self {
            driver: (&raw mut *driver).cast(),
            call: call::<D>,
            active: false,
            open: false,
            failure: None,
            _driver: core::marker::PhantomData,
        }
    }

    /// Runs a hook for the C; returns 0 or the driver's code.
    ///
    /// # Safety
    /// `cell` is the address of a live `DeviceCell` that nothing else uses during the call.
    pub(crate) unsafe fn hook(cell: *mut core::ffi::c_void, hook: Hook) -> i32 {
        // SAFETY: the caller gives a live, unaliased cell.
        let cell = unsafe { &mut *cell.cast::<DeviceCell<'_>>() };
        cell.run(hook)
    }

    fn run(&mut self, hook: Hook) -> i32 {
        match hook {
            Hook::Activate => self.active = true,
            Hook::Open => self.open = true,
            Hook::Close => self.open = false,
            Hook::Deactivate => self.active = false,
        }
        // SAFETY: `driver` was made from the `&'a mut D` that `call` was made for.
        match unsafe { (self.call)(self.driver, hook) } {
            Ok(()) => 0,
            Err(error) => {
                self.failure.get_or_insert((hook, error));
                error.0.get()
            }
        }
    }

    /// Closes what a failed run left open, and tells the first failure.
    pub(crate) fn finish(&mut self, device: &'static str) -> Result<(), Error> {
        if self.open {
            self.run(Hook::Close);
        }
        if self.active {
            self.run(Hook::Deactivate);
        }
        match self.failure {
            None => Ok(()),
            Some((hook, error)) => Err(Error::Device {
                device,
                hook,
                code: error.0,
            }),
        }
    }
}
