//! One source, three bodies: compiles a loop once per instruction set and runs the one in use.
//!
//! A loop that the compiler can vectorise is written once, as [`Body::run`]. [`dispatch`] holds a
//! copy of it per [`Level`](crate::base::level::Level), each compiled with that level's instructions.
//! Nothing is contracted or reordered, so all copies give the same bits.

/// A loop over slices. Implement `run` with `#[inline(always)]`, and so everything it calls per
/// element: code that stays out of line is compiled for the target's own features.
pub(crate) trait Body {
    /// What the loop returns.
    type Output;

    /// Whether there is a copy per level. Rare element types do with the portable one: the other
    /// two would be half of the library.
    #[cfg_attr(
        not(all(feature = "std", target_arch = "x86_64")),
        allow(dead_code, reason = "there is one copy")
    )]
    const LEVELS: bool = true;

    /// Runs the loop.
    fn run(self) -> Self::Output;
}

/// Runs the copy of `body` that belongs to the level in use.
#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[inline]
pub(crate) fn dispatch<B: Body>(body: B) -> B::Output {
    if !B::LEVELS {
        return run_portable(body);
    }
    let level = level();
    // SAFETY: `level` returns only what this processor has, and a lesser level is part of it.
    unsafe { run_at(level, body) }
}

/// The level in use; in tests, the one that the calling thread forces.
#[inline]
pub(crate) fn level() -> crate::base::level::Level {
    let level = crate::base::level::level();
    #[cfg(test)]
    let level = forced::level().min(level);
    level
}

/// Runs `body`, compiled with the target's features.
#[cfg(not(all(feature = "std", target_arch = "x86_64")))]
#[inline]
pub(crate) fn dispatch<B: Body>(body: B) -> B::Output {
    body.run()
}

/// Runs a body of [`crate::simd`] for the level in use.
#[inline]
pub(crate) fn dispatch_simd<B: crate::simd::Body>(body: B) -> B::Out {
    crate::simd::dispatch(level(), body)
}

/// Runs the copy of `body` for `level`.
///
/// # Safety
/// The processor must have the instructions of `level`.
#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[inline]
unsafe fn run_at<B: Body>(level: crate::base::level::Level, body: B) -> B::Output {
    use crate::base::level::Level;
    match level {
        // SAFETY: the caller answers for the instructions.
        Level::Avx512 => unsafe { run_avx512(body) },
        // SAFETY: as above.
        Level::Avx2 => unsafe { run_avx2(body) },
        _ => run_portable(body),
    }
}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
fn run_avx512<B: Body>(body: B) -> B::Output {
    body.run()
}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
fn run_avx2<B: Body>(body: B) -> B::Output {
    body.run()
}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[inline(never)]
fn run_portable<B: Body>(body: B) -> B::Output {
    body.run()
}

/// A level for the calling thread, so that tests can compare the bodies.
#[cfg(test)]
pub(crate) mod forced {
    use crate::base::level::Level;
    use std::cell::Cell;

    std::thread_local! {
        static LEVEL: Cell<Level> = const { Cell::new(Level::Avx512) };
    }

    pub(super) fn level() -> Level {
        LEVEL.get()
    }

    /// The results of `run` with the portable body and with those of the better levels.
    pub(crate) fn results<R>(run: impl Fn() -> R) -> [R; 3] {
        let results = [Level::Portable, Level::Avx2, Level::Avx512].map(|level| {
            LEVEL.set(level);
            run()
        });
        LEVEL.set(Level::Avx512);
        results
    }

    fn bits(x: &[f32]) -> Vec<u32> {
        x.iter().map(|x| x.to_bits()).collect()
    }

    /// The results of `run` with each body, which must have the same bits when they are written
    /// past the caches.
    pub(crate) fn each_level(run: impl Fn() -> Vec<f32>) -> [Vec<f32>; 3] {
        let near = results(&run);
        let far = crate::simd::stream::forced::far(|| results(&run));
        for (near, far) in near.iter().zip(&far) {
            assert_eq!(bits(far), bits(near));
        }
        near
    }

    /// The result of `run`, which must have the same bits with every body, and when it is written
    /// past the caches.
    pub(crate) fn same_bits(run: impl Fn() -> Vec<f32>) -> Vec<f32> {
        let [portable, avx2, avx512] = each_level(run);
        assert_eq!(bits(&avx2), bits(&portable));
        assert_eq!(bits(&avx512), bits(&portable));
        portable
    }
}
