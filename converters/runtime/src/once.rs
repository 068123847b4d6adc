//! A static that is handed out once.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

/// A value in a static, for whoever asks first.
#[derive(Debug)]
pub struct Once<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `take` gives the only reference to the value there ever is.
unsafe impl<T: Send> Sync for Once<T> {}

impl<T> Once<T> {
    /// A value that nobody has taken.
    pub const fn new(value: T) -> Self {
        Self {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// The value, the first time that it is asked for; afterwards `None`.
    // The flag makes the reference the only one.
    #[allow(clippy::mut_from_ref)]
    pub fn take(&'static self) -> Option<&'static mut T> {
        if self.taken.swap(true, Ordering::AcqRel) {
            return None;
        }
        // SAFETY: the flag was not set, so that no other reference exists or will.
        Some(unsafe { &mut *self.value.get() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_gets_it() {
        static CELL: Once<u8> = Once::new(7);
        assert_eq!(CELL.take().copied(), Some(7));
        assert!(CELL.take().is_none());
    }
}
