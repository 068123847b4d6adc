//! Tensors in memory of a GPU.

use std::ptr::NonNull;

use tfp_gpu::{Gpu, Problem};

/// Bytes between two tensors, which a body must not write.
const GUARD: usize = 256;
const PATTERN: u8 = 0xA5;

/// One block of a GPU's memory, from which slices are cut.
pub struct Arena<'g> {
    gpu: &'g Gpu,
    block: NonNull<u8>,
    bytes: usize,
    used: usize,
}

impl<'g> Arena<'g> {
    /// A block of this size.
    ///
    /// # Errors
    /// If the device has less memory.
    pub fn new(gpu: &'g Gpu, bytes: usize) -> Result<Self, Problem> {
        Ok(Self {
            gpu,
            block: gpu.allocate(bytes)?,
            bytes,
            used: 0,
        })
    }

    /// Bytes that a tensor takes.
    #[must_use]
    pub fn size(bytes: usize) -> usize {
        bytes.next_multiple_of(256) + GUARD
    }

    /// A slice, its guard filled with a pattern; `None` if the block is too small.
    pub fn cut<'a>(&mut self, bytes: usize) -> Option<(&'a mut [u8], Guard)> {
        let size = Self::size(bytes);
        let start = self.used;
        if start + size > self.bytes {
            return None;
        }
        self.used += size;
        // SAFETY: the range is inside of the block, and no other slice or guard is over it: `used` only grows.
        // The slice must not outlive the arena, which the caller keeps in the same function.
        let whole = unsafe { std::slice::from_raw_parts_mut(self.block.as_ptr().add(start), size) };
        let (slice, guard) = whole.split_at_mut(bytes);
        guard.fill(PATTERN);
        Some((slice, Guard(guard)))
    }
}

impl Drop for Arena<'_> {
    fn drop(&mut self) {
        // SAFETY: the block is this arena's, and `Gpu::run` returns finished.
        unsafe { self.gpu.free(self.block) };
    }
}

/// The bytes after a tensor.
pub struct Guard(&'static mut [u8]);

impl Guard {
    /// Whether nobody wrote there.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.0.iter().all(|&byte| byte == PATTERN)
    }
}
