//! How much of the stack a call uses: the free part is filled with a pattern before.

unsafe extern "C" {
    /// Lowest address of the stack, of the linker script.
    static _stack_end: u8;
}

const PATTERN: u32 = 0x5AFE_57AC;
/// Bytes below the painting function's own frame that stay as they are.
const RED_ZONE: usize = 256;

/// A stack whose free part was painted.
pub struct Paint {
    low: *const u32,
    high: *const u32,
}

impl Paint {
    /// Paints the stack below the caller.
    #[inline(never)]
    pub fn new() -> Self {
        let here = 0u32;
        let low = &raw const _stack_end as usize;
        let high = (&raw const here as usize).saturating_sub(RED_ZONE) & !3;
        let mut word = low.next_multiple_of(4);
        let first = word as *const u32;
        while word < high {
            // SAFETY: the word lies between the linker's end of the stack and this function's frame, so
            // it belongs to no object.
            unsafe { (word as *mut u32).write_volatile(PATTERN) };
            word += 4;
        }
        Self {
            low: first,
            high: high as *const u32,
        }
    }

    /// Bytes below the painting call's frame that were in use since: at least `RED_ZONE`.
    pub fn used(&self) -> usize {
        let mut word = self.low;
        // SAFETY: these words were painted by `new`, and are memory of the stack.
        while word < self.high && unsafe { word.read_volatile() } == PATTERN {
            word = word.wrapping_add(1);
        }
        self.high as usize - word as usize + RED_ZONE
    }
}
