//! Products of bfloat16 by tiles: AMX, which Intel's servers have from Sapphire Rapids on.
//!
//! A tile of the left side is 16 rows of 32 numbers. One of the right side is 16 rows, each of two
//! numbers of 16 columns, one below the other. A tile of sums is 16 rows of 16 `f32`. A number that is
//! subnormal counts as 0.

// Elsewhere nothing makes tiles.
#![cfg_attr(not(feature = "std"), allow(dead_code, unused_variables))]
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_variables))]

use core::marker::PhantomData;

/// Numbers of a tile of bfloat16.
pub(crate) const TILE: usize = 512;
/// Rows and columns of sums that are computed at a time: two tiles each way.
pub(crate) const SIDE: usize = 32;
/// Products that a step adds to each sum.
pub(crate) const DEPTH: usize = 32;

/// Sums of [`SIDE`] rows and columns.
#[repr(C, align(64))]
pub(crate) struct Sums(pub(crate) [[f32; SIDE]; SIDE]);

/// The tiles of the calling thread's processor, as long as it lives.
pub(crate) struct Tiles {
    #[cfg(test)]
    emulated: bool,
    /// They belong to a thread.
    thread: PhantomData<*const ()>,
}

impl Tiles {
    /// Sets the tiles up; `None` if the processor or its operating system has none, or if
    /// `TFP_KERNELS` asks for less.
    #[inline]
    pub(crate) fn new() -> Option<Self> {
        is_here().then(|| {
            // SAFETY: the processor has tiles, and the process may use them.
            #[cfg(all(feature = "std", target_arch = "x86_64"))]
            unsafe {
                tiles::begin();
            }
            Self {
                #[cfg(test)]
                emulated: false,
                thread: PhantomData,
            }
        })
    }

    /// What computes the same without tiles.
    #[cfg(test)]
    pub(crate) fn emulated() -> Option<Self> {
        Some(Self {
            emulated: true,
            thread: PhantomData,
        })
    }

    /// Sets `sums` to the product of two rows and two columns of tiles. `a` and `b` have two tiles for
    /// each [`DEPTH`] numbers: those of the first and of the last 16 rows or columns.
    ///
    /// # Panics
    /// If `a` and `b` have not equally many tiles.
    #[inline]
    pub(crate) fn multiply(&self, a: &[[u16; TILE]], b: &[[u16; TILE]], sums: &mut Sums) {
        assert_eq!(a.len(), b.len(), "sides of one depth");
        #[cfg(test)]
        if self.emulated {
            return emulation::multiply(a, b, sums);
        }
        #[cfg(all(feature = "std", target_arch = "x86_64"))]
        // SAFETY: `new` set the tiles of this thread up; both sides have so many tiles.
        unsafe {
            tiles::multiply(a.as_ptr(), b.as_ptr(), a.len() / 2, sums);
        }
    }
}

impl Drop for Tiles {
    #[inline]
    fn drop(&mut self) {
        #[cfg(test)]
        if self.emulated {
            return;
        }
        #[cfg(all(feature = "std", target_arch = "x86_64"))]
        // SAFETY: `new` set them up.
        unsafe {
            tiles::end();
        }
    }
}

/// Whether [`Tiles::new`] gives tiles. Found once.
#[cfg(all(feature = "std", target_arch = "x86_64", target_os = "linux"))]
#[inline]
pub(crate) fn is_here() -> bool {
    static HERE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    super::body::level() == crate::base::level::Level::Avx512
        && *HERE.get_or_init(tiles::is_allowed)
}

/// Nowhere else are they asked for.
#[cfg(not(all(feature = "std", target_arch = "x86_64", target_os = "linux")))]
#[inline]
pub(crate) const fn is_here() -> bool {
    false
}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
mod tiles {
    use core::arch::asm;

    use super::{SIDE, Sums, TILE};

    /// Bytes of a tile's row.
    const ROW: usize = 64;

    /// How the tiles are: all have 16 rows of 64 bytes.
    #[repr(C, align(64))]
    struct Shapes {
        palette: u8,
        start: u8,
        reserved: [u8; 14],
        bytes: [u16; 16],
        rows: [u8; 16],
    }

    static SHAPES: Shapes = Shapes {
        palette: 1,
        start: 0,
        reserved: [0; 14],
        bytes: [
            ROW as u16, ROW as u16, ROW as u16, ROW as u16, ROW as u16, ROW as u16, ROW as u16,
            ROW as u16, 0, 0, 0, 0, 0, 0, 0, 0,
        ],
        rows: [16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0],
    };

    /// Asks the operating system, which gives the state of tiles to who asks for it.
    #[cfg(target_os = "linux")]
    pub(super) fn is_allowed() -> bool {
        use core::arch::x86_64::{__cpuid, __cpuid_count};

        const FEATURES: u32 = 7;
        // Of the features' last word: bfloat16 in tiles, and tiles.
        const BITS: u32 = 1 << 22 | 1 << 24;
        const ARCH_PRCTL: i64 = 158;
        const REQUEST_PERMISSION: i64 = 0x1023;
        const TILE_DATA: i64 = 18;

        // SAFETY: all processors of 64 bits tell what they can.
        #[allow(unused_unsafe, reason = "a later Rust has no unsafe function for it")]
        let has =
            unsafe { __cpuid(0).eax >= FEATURES && __cpuid_count(FEATURES, 0).edx & BITS == BITS };
        if !has {
            return false;
        }
        let mut result = ARCH_PRCTL;
        // SAFETY: the call of Linux reads no memory, and changes what this process may use.
        unsafe {
            asm!(
                "syscall",
                inout("rax") result, in("rdi") REQUEST_PERMISSION, in("rsi") TILE_DATA,
                out("rcx") _, out("r11") _, options(nostack),
            );
        }
        result == 0
    }

    /// # Safety
    /// The processor has tiles, and the process may use them.
    #[inline]
    pub(super) unsafe fn begin() {
        // SAFETY: the shapes are 64 bytes that the instruction knows.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &raw const SHAPES, options(nostack, readonly));
        }
    }

    /// # Safety
    /// As for [`begin`].
    #[inline]
    pub(super) unsafe fn end() {
        // SAFETY: it gives up the tiles, which nothing uses from here on.
        unsafe {
            asm!(
                "tilerelease",
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, nomem),
            );
        }
    }

    /// # Safety
    /// [`begin`] was called in this thread; `a` and `b` have twice `steps` tiles.
    #[inline]
    pub(super) unsafe fn multiply(
        a: *const [u16; TILE],
        b: *const [u16; TILE],
        steps: usize,
        sums: &mut Sums,
    ) {
        // SAFETY: a step reads 2 KiB of each side, and the sums are 32 rows of 128 bytes.
        unsafe {
            asm!(
                "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                "test {steps}, {steps}", "je 3f",
                "2:",
                "tileloadd tmm4, [{a} + {row}]",
                "tileloadd tmm6, [{b} + {row}]",
                "tileloadd tmm5, [{a} + {row} + 1024]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{b} + {row} + 1024]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {a}, 2048", "add {b}, 2048", "dec {steps}", "jne 2b",
                "3:",
                "tilestored [{c} + {line}], tmm0",
                "tilestored [{c} + {line} + 64], tmm1",
                "tilestored [{c} + {line} + 2048], tmm2",
                "tilestored [{c} + {line} + 2112], tmm3",
                a = inout(reg) a => _, b = inout(reg) b => _, steps = inout(reg) steps => _,
                row = in(reg) ROW, c = in(reg) &raw mut *sums, line = in(reg) SIDE * size_of::<f32>(),
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            );
        }
    }
}

#[cfg(test)]
mod emulation {
    use super::{SIDE, Sums, TILE};

    fn number(bits: u16) -> f32 {
        f32::from_bits(u32::from(bits) << 16)
    }

    pub(super) fn multiply(a: &[[u16; TILE]], b: &[[u16; TILE]], sums: &mut Sums) {
        for (i, row) in sums.0.iter_mut().enumerate() {
            for (j, sum) in row.iter_mut().enumerate() {
                *sum = 0.0;
                for (a, b) in a.chunks(2).zip(b.chunks(2)) {
                    for p in 0..32 {
                        let left = a[i / 16][i % 16 * SIDE + p];
                        let right = b[j / 16][p / 2 * SIDE + j % 16 * 2 + p % 2];
                        *sum += number(left) * number(right);
                    }
                }
            }
        }
    }
}
