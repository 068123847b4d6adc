//! The micro-kernels of inline assembly, which no memory checker sees into: what they read ends at
//! a page that nobody may read.

use std::slice::{from_raw_parts, from_raw_parts_mut};

use crate::level::Level;
use crate::simd::{Body, Simd, available, dispatch};
use crate::testing::numbers;

const PAGE: usize = 4096;

// Of the C library that `std` links.
unsafe extern "C" {
    fn mmap(at: *mut u8, len: usize, access: i32, flags: i32, file: i32, offset: i64) -> *mut u8;
    fn mprotect(at: *mut u8, len: usize, access: i32) -> i32;
    fn munmap(at: *mut u8, len: usize) -> i32;
}

/// Elements before a page that nobody may read.
struct Guarded {
    map: *mut u8,
    size: usize,
    len: usize,
}

impl Guarded {
    fn new(elements: &[f32]) -> Self {
        let size = size_of_val(elements).next_multiple_of(PAGE) + PAGE;
        // SAFETY: new memory, readable and writable (3), private and of no file (0x22), whose last
        // page then loses its access.
        let map = unsafe {
            let map = mmap(core::ptr::null_mut(), size, 3, 0x22, -1, 0);
            assert_eq!(mprotect(map.add(size - PAGE), PAGE, 0), 0);
            map
        };
        let len = elements.len();
        let all = Self { map, size, len };
        // SAFETY: the memory in front of the last page, which nobody else has yet.
        let to = unsafe { from_raw_parts_mut(all.start().cast_mut(), len) };
        to.copy_from_slice(elements);
        all
    }

    fn start(&self) -> *const f32 {
        let end = self.size - PAGE;
        // SAFETY: inside of the memory.
        unsafe { self.map.add(end - self.len * size_of::<f32>()).cast() }
    }

    fn elements(&self) -> &[f32] {
        // SAFETY: written by `new`, and read-only since.
        unsafe { from_raw_parts(self.start(), self.len) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the memory that `new` got; nobody has it any more.
        unsafe { munmap(self.map, self.size) };
    }
}

/// A tile of `MR` rows of `ROW` columns, all of which count.
struct Tile<const MR: usize, const NV: usize, const ROW: usize>;

impl<const MR: usize, const NV: usize, const ROW: usize> Body for Tile<MR, NV, ROW> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let width = NV * S::LANES;
        let (a, b) = (numbers(MR * ROW, 1), numbers(ROW * width, 2));
        let (a, b) = (Guarded::new(&a), Guarded::new(&b));
        let (a, b) = (a.elements().as_chunks::<ROW>().0, b.elements());
        let a = a.first_chunk::<MR>().unwrap();
        for rows in 0..=ROW {
            let mut sums = [[s.splat(0.5); NV]; MR];
            let b = &b[(ROW - rows) * width..];
            let ahead = if rows % 2 == 0 { b } else { &[] };
            let done = s.add_products(&mut sums, a, ROW, b, ahead);
            assert!(done <= rows && rows - done < 4, "{done} of {rows}");
            for i in 0..MR {
                for v in 0..NV {
                    let found = s.to_array(sums[i][v]);
                    for lane in 0..S::LANES {
                        let product = |p: usize| {
                            f64::from(a[i][p]) * f64::from(b[p * width + v * S::LANES + lane])
                        };
                        let exact = 0.5 + (0..done).map(product).sum::<f64>();
                        assert!((f64::from(found[lane]) - exact).abs() <= 1e-5);
                    }
                }
            }
        }
    }
}

#[test]
fn tiles_read_what_is_theirs() {
    if !available().any(|level| level == Level::Avx512) {
        // There is no such loop on this processor.
        return;
    }
    dispatch(Level::Avx512, Tile::<14, 2, 16>);
    dispatch(Level::Avx512, Tile::<14, 2, 19>);
    dispatch(Level::Avx512, Tile::<14, 1, 17>);
    dispatch(Level::Avx512, Tile::<7, 3, 18>);
}
