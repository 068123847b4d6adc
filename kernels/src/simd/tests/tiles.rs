//! The micro-kernels of inline assembly, which no memory checker sees into: what they read ends at
//! a page that nobody may read.

use std::slice::{from_raw_parts, from_raw_parts_mut};

use crate::base::level::Level;
use crate::simd::blocks::Block;
use crate::simd::patch::{Finish, Rows};
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

    fn elements_mut(&mut self) -> &mut [f32] {
        // SAFETY: written by `new`; borrowed as this is.
        unsafe { from_raw_parts_mut(self.start().cast_mut(), self.len) }
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
    // Where the processor has such a loop.
    if available().any(|level| level == Level::Avx2) {
        dispatch(Level::Avx2, Tile::<6, 2, 16>);
        dispatch(Level::Avx2, Tile::<6, 2, 19>);
        dispatch(Level::Avx2, Tile::<6, 1, 17>);
        dispatch(Level::Avx2, Tile::<3, 3, 18>);
    }
    if available().any(|level| level == Level::Avx512) {
        dispatch(Level::Avx512, Tile::<14, 2, 16>);
        dispatch(Level::Avx512, Tile::<14, 2, 19>);
        dispatch(Level::Avx512, Tile::<14, 1, 17>);
        dispatch(Level::Avx512, Tile::<7, 3, 18>);
    }
}

/// Whole tiles of rows that begin `ROW` elements apart, or if that is 0 a number that only the
/// tile's caller knows, over some lines of `k` columns, with `width` columns of the output.
struct Whole<const MR: usize, const NV: usize, const ROW: usize> {
    k: usize,
    lines: usize,
    width: usize,
    accumulate: bool,
}

impl<const MR: usize, const NV: usize, const ROW: usize> Body for Whole<MR, NV, ROW> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        const LD: usize = 60;
        let Self {
            k,
            lines,
            width,
            accumulate,
        } = self;
        let (row, pitch) = match ROW {
            0 => (21, 21),
            _ => (ROW, (MR - 1) * ROW + k + 3),
        };
        let columns = NV * S::LANES;
        let seen = (lines - 1) * pitch + (MR - 1) * row + k;
        let (a, b) = (numbers(seen, 1), numbers(lines * k * columns, 2));
        let (a, b) = (Guarded::new(&a), Guarded::new(&b));
        let (a, b) = (a.elements(), b.elements());
        let bias = Guarded::new(&numbers(width, 3));
        let before = numbers((MR - 1) * LD + width, 4);
        for (bias, clamp) in [
            (None, None),
            (Some(bias.elements()), Some((-0.5, 0.5))),
            (Some(bias.elements()), None),
        ] {
            let mut output = Guarded::new(&before);
            let mut block = Block::new(output.elements_mut(), LD, MR, width);
            let mut to = block.patch(0..MR, 0..width);
            let rows = Rows {
                data: a,
                lines,
                pitch,
                k,
            };
            let finish = Finish {
                bias,
                accumulate,
                clamp,
            };
            assert!(s.tile::<MR, NV, ROW>(&rows, b, &[], &mut to, &finish));
            for (at, (&found, &old)) in output.elements().iter().zip(&before).enumerate() {
                let (i, j) = (at / LD, at % LD);
                if j >= width {
                    assert_eq!(found, old, "between two rows");
                    continue;
                }
                let mut exact = bias.map_or(0.0, |bias| f64::from(bias[j]));
                for line in 0..lines {
                    for p in 0..k {
                        let x = f64::from(a[line * pitch + i * row + p]);
                        exact += x * f64::from(b[(line * k + p) * columns + j]);
                    }
                }
                if accumulate {
                    exact += f64::from(old);
                }
                if let Some((low, high)) = clamp {
                    exact = exact.clamp(f64::from(low), f64::from(high));
                }
                let off = (f64::from(found) - exact).abs();
                assert!(off <= 1e-5, "{found} instead of {exact} at {i}, {j}");
            }
        }
    }
}

/// Whole tiles of a level, whose output has one of these widths, with rows that are a constant apart
/// and with rows whose distance only the tile's caller knows.
fn whole<const MR: usize, const NV: usize>(level: Level, widths: &[usize]) {
    if !available().any(|found| found == level) {
        return;
    }
    for k in [0, 1, 3, 4, 9, 16] {
        for (lines, accumulate) in [(1, false), (1, true), (3, false)] {
            for &width in widths {
                let of = (k, lines, width, accumulate);
                one::<MR, NV, 20>(level, of);
                one::<MR, NV, 3>(level, of);
                if lines == 1 {
                    one::<MR, NV, 0>(level, of);
                }
            }
        }
    }
}

fn one<const MR: usize, const NV: usize, const ROW: usize>(
    level: Level,
    (k, lines, width, accumulate): (usize, usize, usize, bool),
) {
    let body = Whole::<MR, NV, ROW> {
        k,
        lines,
        width,
        accumulate,
    };
    dispatch(level, body);
}

#[test]
fn whole_tiles_read_and_write_what_is_theirs() {
    whole::<6, 2>(Level::Avx2, &[9, 12, 15, 16]);
    whole::<6, 1>(Level::Avx2, &[1, 8]);
    whole::<3, 3>(Level::Avx2, &[17, 20, 23, 24]);
    whole::<14, 2>(Level::Avx512, &[17, 24, 25, 32]);
    whole::<14, 1>(Level::Avx512, &[1, 16]);
    whole::<7, 3>(Level::Avx512, &[33, 40, 41, 48]);
}

/// A tile of `MR` rows and a vector whose slices are some elements too short.
struct Short<const MR: usize> {
    /// Whether the distance of its rows is a constant.
    known: bool,
    lines: usize,
    a: usize,
    b: usize,
    bias: usize,
    rows: usize,
    width: usize,
}

impl<const MR: usize> Body for Short<MR> {
    type Out = bool;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> bool {
        let (a, b) = (numbers((MR - 1) * 8 + 5, 1), numbers(5 * S::LANES, 2));
        let bias = numbers(S::LANES, 3);
        let mut output = [0.0; 15 * 20];
        let mut block = Block::new(&mut output, 20, 15, 20);
        let rows = Rows {
            data: &a[self.a..],
            lines: self.lines,
            pitch: 8,
            k: 5,
        };
        let finish = Finish {
            bias: Some(&bias[self.bias..]),
            accumulate: false,
            clamp: None,
        };
        let mut to = block.patch(0..self.rows, 0..self.width);
        let b = &b[self.b..];
        if self.known {
            return s.tile::<MR, 1, 8>(&rows, b, &[], &mut to, &finish);
        }
        s.tile::<MR, 1, 0>(&rows, b, &[], &mut to, &finish)
    }
}

#[test]
fn whole_tiles_that_lack_elements_are_refused() {
    refused::<6>(Level::Avx2, 8);
    refused::<14>(Level::Avx512, 16);
}

fn refused<const MR: usize>(level: Level, lanes: usize) {
    if !available().any(|found| found == level) {
        return;
    }
    let all = [1, 0, 0, 0, MR, lanes];
    let run = |known, [lines, a, b, bias, rows, width]: [usize; 6]| {
        let short = Short::<MR> {
            known,
            lines,
            a,
            b,
            bias,
            rows,
            width,
        };
        std::panic::catch_unwind(|| dispatch(level, short))
    };
    for known in [true, false] {
        assert!(run(known, all).unwrap());
        for (at, value) in [
            (1, 1),
            (2, 1),
            (3, 1),
            (4, MR - 1),
            (4, MR + 1),
            (5, 0),
            (5, lanes + 1),
        ] {
            let mut one = all;
            one[at] = value;
            assert!(run(known, one).is_err(), "{one:?}");
        }
    }
    // Rows whose distance is the pitch have one line.
    let mut two = all;
    two[0] = 0;
    assert!(run(false, two).is_err());
}
