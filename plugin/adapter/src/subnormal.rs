//! Subnormal numbers, which TensorFlow's threads take as 0 and flush to 0.

/// Calls `work` on this thread with subnormal numbers as 0 in arguments and results. A thread that is started
/// meanwhile begins with the same setting, and keeps it.
pub(crate) fn flushed<T>(work: impl FnOnce() -> T) -> T {
    let restored = Restored(control::read());
    control::write(restored.0 | control::FLUSH);
    work()
}

/// Puts the thread's setting back.
struct Restored(control::Word);

impl Drop for Restored {
    fn drop(&mut self) {
        control::write(self.0);
    }
}

#[cfg(target_arch = "x86_64")]
mod control {
    use std::arch::asm;

    pub(super) type Word = u32;

    /// Results that are subnormal become 0 (bit 15), and so do arguments (bit 6).
    pub(super) const FLUSH: Word = 1 << 15 | 1 << 6;

    pub(super) fn read() -> Word {
        let mut word: Word = 0;
        // SAFETY: the instruction writes the four bytes of `word`, and nothing else.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)) };
        word
    }

    pub(super) fn write(word: Word) {
        // SAFETY: `word` is what `read` gave, with bits that every x86-64 processor has. The compiler may fold
        // constants as if they were not set, which changes subnormal numbers and nothing else.
        unsafe {
            asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack, readonly, preserves_flags));
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod control {
    use std::arch::asm;

    pub(super) type Word = u64;

    /// Arguments and results that are subnormal become 0.
    pub(super) const FLUSH: Word = 1 << 24;

    pub(super) fn read() -> Word {
        let word: Word;
        // SAFETY: the instruction reads a register of this thread.
        unsafe { asm!("mrs {}, fpcr", out(reg) word, options(nomem, nostack, preserves_flags)) };
        word
    }

    pub(super) fn write(word: Word) {
        // SAFETY: `word` is what `read` gave, with a bit that every processor has. The compiler may fold
        // constants as if it were not set, which changes subnormal numbers and nothing else.
        unsafe { asm!("msr fpcr, {}", in(reg) word, options(nomem, nostack, preserves_flags)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod control {
    pub(super) type Word = u32;

    pub(super) const FLUSH: Word = 0;

    pub(super) fn read() -> Word {
        0
    }

    pub(super) fn write(_: Word) {}
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use std::hint::black_box;
    use std::sync::Mutex;
    use std::thread;
    use std::time::Duration;

    use tfp_kernels::base::parallel::Parallel;
    use tfp_kernels::base::threads::ThreadPool;

    use super::*;

    const SMALL: f32 = 1e-40;

    #[test]
    fn threads_that_start_inside_flush_and_others_do_not() {
        let inside = flushed(|| {
            let started = thread::spawn(|| black_box(SMALL) * black_box(1.0));
            [black_box(SMALL) * black_box(1.0), started.join().unwrap()]
        });
        assert_eq!(inside, [0.0; 2]);
        assert!(black_box(SMALL) * black_box(1.0) > 0.0);
    }

    #[test]
    fn a_pool_gives_one_result_whichever_thread_computes() {
        let pool = flushed(|| ThreadPool::new(2));
        let found = Mutex::new(Vec::new());
        flushed(|| {
            pool.run(32, &|_| {
                // So long that the other thread is woken for the rest.
                thread::sleep(Duration::from_millis(1));
                let product = black_box(SMALL) * black_box(1.0);
                found.lock().unwrap().push(product);
            });
        });
        assert_eq!(found.into_inner().unwrap(), [0.0; 32]);
    }
}
