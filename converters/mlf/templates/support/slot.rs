/// A flag that at most one caller ever wins.
///
/// Where the target has no atomic read-modify-write (thumbv6m, riscv32i), a splitter of two words that
/// need only loads and stores does it: callers that race on several cores may all lose, and never more
/// than one wins.
pub(crate) struct Once {
    #[cfg(target_has_atomic = "8")]
    won: core::sync::atomic::AtomicBool,
    #[cfg(not(target_has_atomic = "8"))]
    last: core::sync::atomic::AtomicUsize,
    #[cfg(not(target_has_atomic = "8"))]
    closed: core::sync::atomic::AtomicBool,
}

impl Once {
    pub(crate) const fn new() -> Self {
        Self {
            #[cfg(target_has_atomic = "8")]
            won: core::sync::atomic::AtomicBool::new(false),
            #[cfg(not(target_has_atomic = "8"))]
            last: core::sync::atomic::AtomicUsize::new(0),
            #[cfg(not(target_has_atomic = "8"))]
            closed: core::sync::atomic::AtomicBool::new(false),
        }
    }

    #[cfg(target_has_atomic = "8")]
    pub(crate) fn win(&self) -> bool {
        !self.won.swap(true, core::sync::atomic::Ordering::AcqRel)
    }

    #[cfg(not(target_has_atomic = "8"))]
    pub(crate) fn win(&self) -> bool {
        use core::sync::atomic::Ordering::SeqCst;
        let local = 0u8;
        // The address of a live local tells concurrent callers apart.
        let me = (&raw const local) as usize;
        self.last.store(me, SeqCst);
        if self.closed.load(SeqCst) {
            return false;
        }
        self.closed.store(true, SeqCst);
        self.last.load(SeqCst) == me
    }
}

/// A static that can be taken once, as `&'static mut`, without `unsafe` and without an allocator.
///
/// ```ignore
/// static BUFFER: Slot<[u8; 64]> = Slot::new([0; 64]);
/// let buffer: &'static mut [u8; 64] = BUFFER.take().expect("first use");
/// ```
#[repr(C)]
pub struct Slot<T> {
    value: core::cell::UnsafeCell<T>,
    once: Once,
}

// SAFETY: the value is reached only through `take`, which one caller wins, so at most one thread ever
// has it; it may be another thread than the one that made it, hence `T: Send`.
unsafe impl<T: Send> Sync for Slot<T> {}

impl<T> Slot<T> {
    /// Makes a slot; for use in a `static`.
    pub const fn new(value: T) -> Self {
        Self {
            value: core::cell::UnsafeCell::new(value),
            once: Once::new(),
        }
    }

    /// Hands the value out, the first time; afterwards `None`.
    #[allow(clippy::mut_from_ref)] // `win` hands the value out once.
    pub fn take(&'static self) -> Option<&'static mut T> {
        if !self.once.win() {
            return None;
        }
        // SAFETY: `win` returns true once, so this is the only reference ever made.
        Some(unsafe { &mut *self.value.get() })
    }
}
